"""Every keyword with a default does something: there is a call whose answer another value changes.

The keywords are read off the signatures. Those that no call here shows stand in helpers/unseen_keywords.txt: most need
arguments that nothing draws, and some are there for PyTorch's sake alone. A new keyword is seen, or fails here.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Any

import keyword_calls
import pytest
import test_parameters
from parameter_samples import NOT_CALLED
from support import HELPERS, ONE, bits_of
from test_parameters import ARRAY, FORMS, Form, Parameter

import devtensor as dt

pytestmark = pytest.mark.usefixtures("unexplained")
UNSEEN = HELPERS / "unseen_keywords.txt"
BETWEEN_DEVICES = {"method cuda.device", "nn DataParallel.device_ids"}  # seen where there are two
MOST_PAIRS = 16


def shown(value: Any) -> Any:
    """What tells one answer from another."""
    if isinstance(value, dt.DeviceArray):
        facts = tuple(value.shape), value.stride(), value.dtype, str(value.device), value.requires_grad
        return (*facts, value.is_pinned(), bits_of(value.detach()).tobytes())
    if isinstance(value, dict):
        return [(key, shown(one)) for key, one in value.items()]
    if isinstance(value, tuple | list):
        return [shown(one) for one in value]
    text = re.sub(r" at 0x[0-9a-f]+", "", repr(value))
    state = value.state_dict() if isinstance(value, dt.nn.Module) else {}
    held = getattr(value, "__dict__", {}).items()
    plain = sorted((name, repr(one)) for name, one in held if isinstance(one, int | float | str | tuple | None))
    return [text, shown(state), plain]


class Caller:
    """Calls of a form with its right values, of which some are others."""

    def __init__(self, form: Form, monkeypatch: pytest.MonkeyPatch) -> None:
        self.form, self.given = form, []
        self.instead: dict[str, Any] = {}
        right = test_parameters.value_of

        def value_of(form: Form, name: str) -> Any:
            value = self.instead[name] if name in self.instead else right(form, name)
            if type(value) is dt.DeviceArray and name not in self.instead and value.is_floating_point():
                value = keyword_calls.numbers(*value.shape).to(value.dtype) if value.numel() > 1 else value
            self.given.append(value)
            return value

        monkeypatch.setattr(test_parameters, "value_of", value_of)

    def answer(self, changed: dict[str, Any]) -> Any:
        """The result and what has become of the operands; None: it was refused."""
        self.given.clear()
        dt.manual_seed(3)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = test_parameters.call(self.form, changed)
            return shown(result), shown([x for x in self.given if type(x) is dt.DeviceArray])
        except Exception:
            return None


def values(form: Form, keyword: Parameter) -> list[Any]:
    """What might be given for it."""
    types, found = keyword.types, list(keyword_calls.VALUES.get(keyword.name, []))
    if "bool" in types:
        found += [True, False]
    if re.search(r"\b(int|_Ints?|_Pair|_Size|Dims|_One|_Padding)\b", types):
        found += [0, 1, 2, 3, -1, (1,), (0, 1), (2, 2)]
    if re.search(r"float|_Number|_Operand", types):
        found += [0.5, 2.0, -1.0, 0.0]
    if re.search(r"d[tT]ype|DType", types):
        found += [dt.float64, dt.int64, dt.float16, dt.bool]
    if re.search("[Dd]evice", types):
        found += ["cuda:0"]
    if re.search(ARRAY, types):
        found += [dt.tensor([2.0]), dt.ones(2), dt.ones(3) * 2, dt.tensor(2.0)]
    if keyword.name == "reduction":
        found += ["none", "sum", "mean"]
    found += re.findall(r"'(\w+)'", types)
    try:
        return [*found, test_parameters.value_of(form, keyword.name)]
    except AssertionError:
        return found


def bases(caller: Caller, keywords: dict[str, list[Any]]) -> Iterator[dict[str, Any]]:
    """Calls to begin with: as they are, with the arguments of the table, and with one other keyword given."""
    optional = set(keywords)
    for make in (dict, *keyword_calls.CALLS.get(caller.form.name, ())):
        caller.instead = make()
        yield {name: value for name, value in caller.instead.items() if name in optional}
    caller.instead = {}
    pairs = ({name: value} for name, some in keywords.items() for value in some)
    yield from [pair for pair in pairs if caller.answer(pair) is not None][:MOST_PAIRS]


def unseen(form: Form, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Its keywords that change no answer."""
    keywords = [p for p in form.parameters if not (p.needed or p.star) and p.name != "out"]
    tried = {p.name: values(form, p) for p in keywords}
    left = set(tried)
    with monkeypatch.context() as patch:
        caller = Caller(form, patch)
        for base in bases(caller, tried):
            if not left:
                break
            answer = caller.answer(base)
            for name in sorted(left):
                changed = (caller.answer(base | {name: value}) for value in tried[name])
                if any(other is not None and other != answer for other in changed):
                    left.discard(name)
    return {f"{form}.{name}" for name in left}


@pytest.fixture(autouse=True)
def process_as_it_was() -> Iterator[None]:
    threads, host = dt.get_num_threads(), dt.cpu.memory_stats()
    yield
    dt.set_num_threads(threads)
    dt.cpu.set_cache_limit(host["limit_bytes"])
    dt.cpu.set_packed_limit(host["packed_limit_bytes"])
    dt.cuda.set_workspace_limit(None)
    dt.cuda.set_per_process_memory_fraction(1.0)
    dt.cuda.tune(False)
    dt.set_printoptions(profile="default")


def test_every_keyword_does_something(monkeypatch: pytest.MonkeyPatch) -> None:
    found: set[str] = set()
    for form in FORMS:
        if form.name not in NOT_CALLED:
            found |= unseen(form, monkeypatch)
    listed = set(UNSEEN.read_text().splitlines()) if UNSEEN.exists() else set()
    assert sorted(found - listed - (BETWEEN_DEVICES if ONE else set())) == []
    assert sorted(listed - found) == []


def test_a_keyword_that_does_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def shuffle(input: dt.DeviceArray, scale: float = 1.0, ignored: bool = False) -> dt.DeviceArray:
        return input * scale

    parameters = (Parameter("input", "DeviceArray", True, False), Parameter("scale", "float", False, False))
    form = Form("shuffle", "function", shuffle, (*parameters, Parameter("ignored", "bool", False, False)))
    assert unseen(form, monkeypatch) == {"function shuffle.ignored"}
