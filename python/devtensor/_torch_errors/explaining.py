"""From an exception of PyTorch's to what it means: the family, the operands that bear it out, the odd one, the fix."""

from __future__ import annotations

import collections
import contextlib
import functools
import re
import sys
import threading
from collections.abc import Iterator
from typing import Any

from devtensor import _diagnosis
from devtensor._diagnosis import arrays, fixes, shapes
from devtensor._diagnosis.facts import Fact, Failure
from devtensor._torch_errors import calls, families, frames, gradients, recorder, tensors
from devtensor._torch_errors.explanation import Explanation, attach, attached
from devtensor._torch_errors.families import Family

_KINDS = (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError)
_INTEGERS = {"bool", "uint8", "int8", "int16", "int32", "int64"}
_INDICES = ("index", "indices")
_COMPILED = ("TorchRuntimeError", "BackendCompilerFailed", "InternalTorchDynamoError", "Unsupported")
_busy = threading.local()


def explain(error: BaseException, notes: bool = True, left: BaseException | None = None) -> Explanation | None:
    """Explains an exception once, and adds its notes; None where nothing is sure. Never raises.

    left is the exception that nothing has caught, where this is the end of it or of its thread.
    """
    try:
        known = attached(error)
        if known is None and "torch" in sys.modules and not getattr(_busy, "now", False):
            _busy.now = True
            try:
                known = _explained(error, left)
            finally:
                _busy.now = False
                _leave_out_the_recorder(error)
            if known is not None:
                attach(error, known)
        if known is not None and notes and not known.shown and known.notes and _diagnosis.get_error_detail() == "full":
            known.shown = True
            for note in known.notes:
                error.add_note(note)
        return known
    except Exception:  # an explanation that fails must not hide what it explains
        return None


def _leave_out_the_recorder(error: BaseException) -> None:
    """The traceback as it would be without origins."""
    trace = error.__traceback__
    while trace is not None:
        while trace.tb_next is not None and recorder.is_mode(trace.tb_next.tb_frame.f_code):
            trace.tb_next = trace.tb_next.tb_next
        trace = trace.tb_next


def explain_chain(error: BaseException | None, left: BaseException | None = None) -> None:
    """An exception, what it was raised from, and what it was raised within."""
    for _ in range(8):
        if error is None:
            return
        explain(error, left=left)
        for inner in getattr(error, "exceptions", ()) if isinstance(error, BaseExceptionGroup) else ():
            explain(inner, left=left)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _explained(error: BaseException, left: BaseException | None) -> Explanation | None:
    if type(error).__name__ in _COMPILED and type(error).__module__.startswith("torch._dynamo"):
        return _of_compiled(error)
    if type(error) not in _KINDS or len(error.args) != 1 or type(error.args[0]) is not str:
        return None
    sentence = error.args[0]
    found = families.families(sentence) if not sentence.startswith("Caught ") else []  # of a worker, told there
    stack = frames.stack(error, left) if found else []
    try:
        if not stack or (frames.raises(stack[-1]) and not frames.is_torch(stack[-1].f_code.co_filename)):
            return None
        with _quiet():
            return _told(sentence, found, stack)
    finally:
        stack.clear()  # each of its frames refers to it


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """No mode of the program's sees what is asked here, and nothing is recorded."""
    torch = tensors.torch()
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch._C.DisableTorchFunction())
        stack.enter_context(torch.no_grad())
        if torch._C._len_torch_dispatch_stack():
            stack.enter_context(torch.utils._python_dispatch._disable_current_modes())
        yield


def _of_compiled(error: BaseException) -> Explanation:
    found = Explanation("compiled", "compiled")
    found.notes.append(
        "This came out of torch.compile, which runs the function in pieces of its own: its operands cannot be looked "
        "into. TORCH_COMPILE_DISABLE=1 in the environment runs it as it is written, and then they can"
    )
    return found


def _told(sentence: str, found: list[Family], stack: list[frames.At]) -> Explanation | None:
    if any(family.about == "gradient" for family in found):
        return gradients.explained(sentence, next(f for f in found if f.about == "gradient"), stack)
    failed = calls.read(stack)
    if failed is None:
        return None
    for family in found:
        failure = Failure(failed.op, family.code, families.in_our_words(sentence), failed.facts, -1, library="torch")
        failure.innermost = stack[-1]  # type: ignore[assignment]
        if not _CHECKS[family.about](sentence, failed, failure):
            continue
        failure.passes = functools.partial(_passes, failed, failure)
        return _finished(failure)
    return None


def _finished(failure: Failure) -> Explanation | None:
    explanation = Explanation(failure.op, failure.code)
    try:
        _diagnosis._complete(explanation, failure)
    finally:
        for fact in failure.facts:
            fact.object = fact.node = fact.owner = None
        failure.frame = failure.site = failure.call = failure.held = failure.about = failure.innermost = None
        failure.passes = failure.proposed = None
    return explanation


def _passes(failed: calls.Failed, failure: Failure, conversions: list[tuple[Fact, str]]) -> bool:
    """Whether the call passes after what a fix would do, as far as the meta device tells."""
    if not failed.whole or any(str(fact.device) == "meta" and ".to(" in text for fact, text in conversions):
        return False  # what has no elements cannot be copied
    said = failed.replay(conversions)
    if said is None:
        return failure.code in ("device-mismatch", "dtype-mismatch", "dtype-of-index", "dtype-of-target") or (
            failure.code in ("dtype-not-supported", "host-access", "invalid-argument", "overlapping-write")
        )
    return not said


# ---------------------------------------------------------------- what the operands show


def _device(sentence: str, failed: calls.Failed, failure: Failure) -> bool:
    facts = failure.facts
    devices = {str(fact.device) for fact in facts}
    if len(devices) < 2 or not families.devices_in(sentence) <= devices:
        return False
    failure.culprit = _odd(facts, lambda fact: str(fact.device), lambda value: value == "cpu")
    return True


def _dtype(sentence: str, failed: calls.Failed, failure: Failure) -> bool:
    facts = failure.facts
    names, said = {fact.dtype_name for fact in facts}, families.dtypes_in(sentence)
    in_place = re.match(r"result type \w+ can't be cast", sentence) is not None
    if in_place:
        if facts[0].dtype_name not in said:
            return False
        failure.culprit = 0
        return True
    if len(names) < 2 or not said <= names:
        return False
    meant = [i for i, fact in enumerate(facts) if fact.dtype_name in said]
    if len({facts[i].dtype_name for i in meant}) < 2:  # it does not name both
        meant = [i for i, fact in enumerate(facts) if fact.name not in _INDICES]
    if len({facts[i].dtype_name for i in meant}) < 2:
        return False
    odd = _odd([facts[i] for i in meant], lambda fact: fact.dtype_name, lambda kind: kind in {"float64", *_INTEGERS})
    failure.culprit = meant[odd]
    return True


def _floats(sentence: str, failed: calls.Failed, failure: Failure) -> bool:
    said = families.dtypes_in(sentence)
    wrong = [i for i, fact in enumerate(failure.facts) if fact.dtype_name in said]
    if not wrong:
        return False
    failure.culprit = wrong[0]
    if said & _INTEGERS:
        failure.message += f": it takes float32 ({failure.op}: "
    return True


def _target(sentence: str, failed: calls.Failed, failure: Failure) -> bool:
    target = failure.named("target")
    conversions = fixes._to_classes(failure) if failed.op in shapes.CLASSES else []
    if target is None or len(conversions) != 1:
        return False
    failure.culprit = failure.facts.index(target)
    failure.proposed = conversions
    return True


def _index(sentence: str, failed: calls.Failed, failure: Failure) -> bool:
    right = ("int64",) if failed.op == "one_hot" else ("int64", "int32", "bool", "uint8")
    wrong = [
        fact for fact in failure.facts
        if fact.dtype_name not in right
        and (fact.name in _INDICES or (failed.op, fact.name) in (("embedding", "input"), ("one_hot", "tensor")))
    ]  # fmt: skip
    if len(wrong) != 1:
        return False
    failure.culprit = failure.facts.index(wrong[0])
    return True


def _shape(sentence: str, failed: calls.Failed, failure: Failure) -> bool:
    again = failed.replay() if failed.whole else None
    if again == "":
        return False
    hidden = re.match(r"Expected hidden(?:\[\d\])? size \(.*\), got \[(.*)\]", sentence)
    if hidden is not None:
        shape = tuple(map(int, hidden[1].split(",")))
        wrong = [i for i, fact in enumerate(failure.facts) if fact.name.startswith("hx") and fact.shape == shape]
        failure.culprit = wrong[0] if len(wrong) == 1 else -1
    if again is not None and failed.fresh:
        return True
    return _is_borne_out(sentence, failure.facts)


def _is_borne_out(sentence: str, facts: list[Fact]) -> bool:
    """Whether the sizes that a sentence names are those of the operands."""
    known = [fact.shape for fact in facts]
    whole = re.search(r"is invalid for input of size (\d+)", sentence)
    if whole is not None:
        return int(whole[1]) in map(_product, known)
    sentence = re.sub(r"hidden\[\d\]", "hidden", sentence)
    lists = [tuple(map(int, re.findall(r"\d+", text))) for text in re.findall(r"\[((?:\d+(?:, ?)?)+)\]", sentence)]
    if lists:
        # a convolution counts an image without its batch as a batch of one
        return all(any(shape[-len(one) :] == one or (1, *shape) == one for shape in known) for one in lists)
    pairs = [(int(a), int(b)) for a, b in re.findall(r"\b(\d+)x(\d+)\b", sentence)]
    sizes = {size for shape in known for size in shape}
    if pairs:
        products = {_product(shape) for shape in known}
        return all(a * b in products for a, b in pairs)
    got = re.findall(r"(?:got|not|\() ?(\d+)", sentence)
    ranks = {len(shape) for shape in known}
    return bool(got) and all(int(one) in sizes | ranks for one in got)


def _product(shape: tuple[int, ...]) -> int:
    size = 1
    for n in shape:
        size *= n
    return size


def _alone(sentence: str, failed: calls.Failed, failure: Failure) -> bool:
    failure.culprit = 0
    if failure.code == "host-access":
        return str(failure.facts[0].device) != "cpu"
    return failed.whole and failed.replay() != ""


def _position(sentence: str, failed: calls.Failed, failure: Failure) -> bool:
    said = re.search(r"dimension (\d+) with size (\d+)", sentence)
    if said is not None:
        dim, size = int(said[1]), int(said[2])
        return any(len(fact.shape) > dim and fact.shape[dim] == size for fact in failure.facts)
    return len(failure.facts) > 1


def _argument(sentence: str, failed: calls.Failed, failure: Failure) -> bool:
    name = re.search(r"argument '(\w+)'", sentence)
    arrays_ = [i for i, fact in enumerate(failure.facts) if not arrays.is_array(fact.object)]
    arrays_ = [i for i in arrays_ if failure.facts[i].object is not None]
    if name is None or len(arrays_) != 1:
        return False
    failure.culprit = arrays_[0]
    failure.message = f"argument '{name[1]}' must be DeviceArray"
    return True


_CHECKS = {
    "device": _device, "dtype": _dtype, "floats": _floats, "target": _target, "index": _index, "shape": _shape,
    "alone": _alone, "position": _position, "argument": _argument,
}  # fmt: skip


def _odd(facts: list[Fact], value: Any, wrong: Any) -> int:
    """The operand with the rarest value; of a tie, one that is wrong more often."""
    counts = collections.Counter(map(value, facts))
    return min(range(len(facts)), key=lambda i: (counts[value(facts[i])], not wrong(value(facts[i]))))
