"""Warnings of training programs: facts that a correct program does not have, with variable, line and fix."""

from __future__ import annotations

import ast
import collections
import sys
import threading
import weakref
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, TypeVar

from devtensor import _C, _diagnosis
from devtensor._diagnosis import fixes, gradients, notes, places, variables, watching
from devtensor._diagnosis.facts import Fact, Failure, Fix
from devtensor._errors import GradientWarning, Operand, Step

_busy = threading.local()
_MOST = 10000  # entries of a list that are looked at
_RISES = 50  # steps after each of which more of the graphs of earlier steps was alive
optimizers: weakref.WeakSet[Any] = weakref.WeakSet()  # all that are alive
_Proposal = Callable[[Failure], Fix | None]
_T = TypeVar("_T")


def sought(search: Callable[..., _T], *args: Any) -> _T | None:
    """What a search through the user's variables finds; None where it fails. What it reads warns of nothing."""
    _busy.now = True
    try:
        return search(*args)
    except Exception:  # a step that has been made must not fail for it
        return None
    finally:
        _busy.now = False


def _warn(
    op: str, code: str, message: str, arrays: dict[str, Any], culprit: int = -1, propose: _Proposal | None = None
) -> None:
    """Gives a GradientWarning at the user's line; arrays are by the names of the parameters of op."""
    if getattr(_busy, "now", False):
        return
    _busy.now = True
    try:
        facts = [
            Fact(name, x.shape, x.dtype, x.device, tuple(Step(*step) for step, _, _ in _C._steps(x)), x)
            for name, x in arrays.items()
        ]
        failure = Failure(op, code, message, facts, culprit)
        warning, frame = _told(failure, propose), failure.frame
    finally:
        _busy.now = False
    _diagnosis.warn_at(frame, warning)


def _told(failure: Failure, propose: _Proposal | None) -> GradientWarning:
    """The warning; without variables and fix where they cannot be found."""
    fix = None
    try:
        _diagnosis._find_expressions(failure)
        fix = propose(failure) if propose is not None else None
    except Exception:
        failure.frame = failure.frame or _diagnosis._caller(sys._getframe())
    lines = [failure.message]
    lines += [notes.table(failure)] if failure.facts else []
    lines += [f"Fix: {fix}"] if fix is not None else []
    warning = GradientWarning("\n".join(lines))
    warning.op, warning.code = failure.op, failure.code
    warning.operands = tuple(
        Operand(f.name, f.expression, f.shape, f.dtype, f.device, None, f.history) for f in failure.facts
    )
    warning.culprit = warning.operands[failure.culprit] if failure.culprit >= 0 else None
    if fix is not None:
        warning.fix, warning.fix_at, warning.fix_how, warning.fix_of = fix
    return warning


# ---------------------------------------------------------------- losses


def warn_broadcast(op: str, input: Any, target: Any) -> None:
    """A loss of arrays of two shapes."""
    _warn(
        op,
        "loss-broadcast",
        f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will likely "
        "lead to incorrect results due to broadcasting. Please ensure they have the same size.",
        {"input": input, "target": target},
        0 if input.ndim >= target.ndim else 1,
        _squeezed,
    )


def _squeezed(failure: Failure) -> Fix | None:
    """Without the last dimension of size 1 that one of them has more."""
    one, other = failure.facts[failure.culprit], failure.facts[1 - failure.culprit]
    if one.shape != (*other.shape, 1):
        return None
    return fixes.statement(failure, [(one, ".squeeze(-1)")])


_TWICE = {
    "cross_entropy": ("softmax", "cross_entropy takes scores and applies log_softmax itself"),
    "nll_loss": ("softmax", "nll_loss takes logarithms: log_softmax gives them"),
    "binary_cross_entropy_with_logits": ("sigmoid", "the loss takes scores and applies sigmoid itself"),
}


def check_scores(op: str, input: Any) -> None:
    """Warns of probabilities where a loss takes scores."""
    action, reason = _TWICE[op]
    if _C._made_by(input, action):
        message = f"{op}(): the input is the result of {action}, but {reason}"
        _warn(op, "loss-of-probabilities", message, {"input": input}, 0, _plain if op != "nll_loss" else None)


def _plain(failure: Failure) -> Fix | None:
    """What softmax was called with, in its place."""
    fact = failure.facts[0]
    line = gradients.line_of(_C._steps(fact.object)[0][1])
    if line is None or line.site is None or not isinstance(line.site.node, ast.Call):
        return None
    operands = gradients.operands_at(failure, line)
    if not operands or isinstance(operands[0], ast.Constant):
        return None
    return Fix(ast.unparse(operands[0]), line.origin("call"), "instead", line.site.text(line.site.node))


# ---------------------------------------------------------------- optimizers


def note_step(optimizer: Any) -> None:
    """After a step: warns where it used a gradient a second time, or had none at all."""
    groups = getattr(optimizer, "param_groups", ())  # of a subclass, which may be without
    params = [param for group in groups for param in group["params"]]
    before, rises, last, last_but_one = optimizer._kept
    given, mixed, first, recorded, step, kept = _C._note_step(params, last_but_one)
    if watching.report is not None:
        watching.report.stepped(optimizer, params)
    rises = rises + 1 if kept > before else 0
    optimizer._kept = kept, rises, step, last
    if rises == _RISES:
        _warn_growing(kept)
    if mixed:
        _warn_mixed(params, mixed, first)
    elif not given and params:
        _warn_no_gradient(optimizer, params, recorded > 0)
    if not optimizer._was_checked and given:
        optimizer._was_checked = True
        for message in sought(_unregistered, params) or ():
            _warn("step", "unregistered-parameters", message, {})


def _warn_mixed(params: list[Any], mixed: int, first: int) -> None:
    name = sought(named, params[first]) or "a parameter"
    _warn(
        "step",
        "zero-grad",
        f"step(): {_counted(mixed)} ({name} first) had a gradient that still holds what an earlier step has used. "
        "Call zero_grad() before backward()",
        {},
    )


def _warn_no_gradient(optimizer: Any, params: list[Any], recorded: bool) -> None:
    """Nothing is said of steps that only drive a scheduler."""
    cleared = optimizer._cleared
    if cleared is not None:
        line = gradients.line_of(cleared)
        reason = "zero_grad() has cleared the gradients" + (f" at {line.where}" if line is not None else "")
        reason += ": call it before backward(), or after step()"
    else:
        optimizer._idle += 1
        if not recorded and optimizer._idle & (optimizer._idle - 1):
            return  # the 1st, 2nd, 4th, ... are looked at: it takes milliseconds
        others = sought(_trained, params)
        if others is None and not recorded:
            return
        reason = f"those of {others} have some: is it their optimizer?" if others else "call backward() before step()"
    message = f"step() changed nothing: no gradient in its {_counted(len(params))}; {reason}"
    _warn("step", "step-without-gradient", message, {})


def _warn_growing(kept: int) -> None:
    """Graphs of earlier steps are kept: losses that are added up, or lists of them."""
    from devtensor._diagnosis import graphs

    largest = sought(lambda: graphs.held_graphs()[0])
    message = f"step(): more recorded ops of earlier steps were alive after each of {_RISES} steps, now {kept}"
    if largest is None or 2 * largest.ops < kept:
        _warn("step", "graphs-grow", f"{message}: something keeps the results of earlier steps", {})
        return
    line = gradients.line_of(largest.place)
    held = f"{largest.arrays} arrays made" if largest.arrays > 1 else "the array made"
    name = sought(_collection, largest.place, graphs.line_key)
    message += f": {held} at {largest.where}{f', in {name},' if name else ''} keep" + ("s"[largest.arrays > 1 :])
    message += f" {largest.ops} of them. Keep a number, .item(), or .detach() of it"
    _warn("step", "graphs-grow", message, {}, propose=lambda failure: _as_number(line))


def _collection(place: Any, line_key: Callable[[Any], Any]) -> str | None:
    """A list of the caller's that holds many arrays of one line."""
    frame = frame_of_caller()
    while frame is not None:
        for name, value in list(variables.visible(frame))[:2000]:
            if type(value) in (list, collections.deque):
                arrays = [one for one in list(value)[-10:] if type(one) is _C.DeviceArray]
                if len(arrays) == 10 and all(line_key(_C._steps(one)[0][1]) == line_key(place) for one in arrays):
                    return name
        frame = frame.f_back
    return None


def _as_number(line: gradients.Line | None) -> Fix | None:
    """total += loss, or total = total + loss: of loss the number."""
    statement = line.statement if line is not None else None
    if line is None or line.site is None:
        return None
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
        added = statement.value
    elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.BinOp):
        sides = [statement.value.left, statement.value.right]
        others = [one for one in sides if ast.unparse(one) not in {ast.unparse(to) for to in statement.targets}]
        if len(others) != 1:
            return None
        added = others[0]
    else:
        return None
    text = line.site.text(added)
    if not isinstance(added, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
        return None
    whole = line.site.text(statement)
    head, _, tail = whole.rpartition(text)
    return Fix(f"{head}{text}.item(){tail}", line.origin("add"), "instead", whole)


def _counted(n: int) -> str:
    return f"{n} parameter" + ("s" if n != 1 else "")


def modules() -> list[tuple[str, Any]]:
    """The Modules among the variables of the user's frames."""
    frame = _diagnosis._caller(sys._getframe())
    found: list[tuple[str, Any]] = []
    while frame is not None and len(found) < 100:
        for name, value in list(variables.visible(frame))[:2000]:
            if variables.module_tables(value) and all(value is not held for _, held in found):
                found.append((name, value))
        frame = frame.f_back
    return found


def named(param: Any) -> str | None:
    """The path of a parameter in a Module of the caller's, or its variable."""
    for name, module in modules():
        path = variables.inside(module, param)
        if path is not None:
            return f"{name}.{path}"
    frame = _diagnosis._caller(sys._getframe())
    return variables.find(frame, param) if frame is not None else None


def _trained(params: list[Any]) -> str | None:
    """A Module of the caller's whose parameters have gradients, none of which is among params."""
    held = {id(param) for param in params}
    for name, module in modules():
        own = [param for _, param in gradients.parameters_of(module)]
        if any(param.grad is not None for param in own) and not any(id(param) in held for param in own):
            return name
    return None


def _unregistered(params: list[Any]) -> list[str]:
    """What to say of parameters with gradients that stand in a plain list of a Module whose others are optimized."""
    held = {id(param) for param in params}
    found = []
    for name, module in modules():
        for path, one in variables.below(module):
            own = variables.module_tables(one)[0].values()
            if one is not module and not any(id(param) in held for param in own):
                continue
            for key, value in list(variables.instance_dict(one).items()):
                kind = _forgotten(value, held) if not key.startswith("_") else None
                if kind is not None:
                    place = f"{name}.{path}{key}"
                    found.append(
                        f"step(): the parameters in {place} have gradients, but no optimizer changes them: a plain "
                        f"{type(value).__name__} is not looked into. Register them: {place} = nn.{kind}(...)"
                    )
    return found


def _forgotten(value: Any, held: set[int]) -> str | None:
    """Which container should hold what a plain list, tuple or dict of parameters or Modules holds."""
    if type(value) not in (list, tuple, dict):
        return None
    entries = list(value.values() if type(value) is dict else value)[:_MOST]
    modules = [one for one in entries if variables.module_tables(one)]
    plain = [one for one in entries if type(one) is _C._Parameter]
    below = [param for module in modules for _, param in gradients.parameters_of(module)]
    found = [param for param in (*plain, *below) if param.grad is not None]
    if not found or any(id(param) in held for param in found):
        return None
    names = ("ModuleDict", "ParameterDict") if type(value) is dict else ("ModuleList", "ParameterList")
    return names[0] if modules else names[1]


def frame_of_caller() -> FrameType | None:
    """The nearest frame of the user's."""
    return _diagnosis._caller(sys._getframe())


def place_of_caller() -> tuple[CodeType, int] | None:
    """Its code and instruction."""
    frame = frame_of_caller()
    return (frame.f_code, frame.f_lasti) if frame is not None else None


def warn_no_gradient_to_clip(op: str, params: list[Any]) -> None:
    """Clipping before backward, or after zero_grad."""
    message = f"{op}(): none of the {_counted(len(params))} has a gradient: call it between backward() and step()"
    _warn(op, "clip-without-gradient", message, {})


def warn_of_clipping_too_late(op: str, params: list[Any]) -> None:
    """Clipping after step. Without a limit it only measures, which is done there too; and where several optimizers have
    these parameters, the next step may use what is clipped."""
    clipped = set(map(id, params))
    held = [{id(param) for group in one.param_groups for param in group["params"]} for one in list(optimizers)]
    if sum(not clipped.isdisjoint(those) for those in held) > 1:
        return
    message = (
        f"{op}(): step() has used the gradients of the {_counted(len(params))}: call it between backward() and step()"
    )
    _warn(op, "clip-without-gradient", message, {})


# ---------------------------------------------------------------- .grad of what is no leaf


def warn_no_leaf(array: Any) -> None:
    """.grad of the result of an op."""
    _warn(
        "grad",
        "grad-of-result",
        "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
        "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf "
        "Tensor, use .retain_grad() on the non-leaf Tensor.",
        {"input": array},
        0,
        _leaf_first,
    )


def _leaf_first(failure: Failure) -> Fix | None:
    """w = randn(3, requires_grad=True).cuda(): the device as a parameter of the creation."""
    line = gradients.line_of(_C._steps(failure.facts[0].object)[0][1])
    node = line.site.node if line is not None and line.site is not None else None
    if line is None or not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    inner = node.func.value
    if node.func.attr not in ("cuda", "to") or not isinstance(inner, ast.Call) or len(node.args) > 1:
        return None
    if not any(keyword.arg == "requires_grad" for keyword in inner.keywords):
        return None
    if any(keyword.arg != "copy" for keyword in node.keywords):
        return None
    if any(keyword.arg in ("device", None) for keyword in inner.keywords):
        return None
    site = line.site
    if site is None:
        return None
    device = site.text(node.args[0]) if node.args else f'"{failure.facts[0].device}"'
    made = places.with_keyword(site, inner, "device", device)
    return Fix(made, line.origin("call"), "instead", site.text(node))
