"""Calls that old optimizers are written with: numbers before arrays, and torch._foreach_, beside PyTorch."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import devtensor as dt
from devtensor._names import foreach

# Arrays x, y, v (3), m (3, 3), b (2, 3, 3), n ().
NUMBERS_FIRST = """x.add(2, y); x.clone().add_(2, y); torch.add(x, 2, y); x.sub(2, y); x.clone().sub_(2, y)
torch.sub(x, 2, y); x.addcmul(2, y, y); x.clone().addcmul_(2, y, x); torch.addcmul(x, 2, y, x); x.addcdiv(2, y, x)
x.clone().addcdiv_(2, y, x); torch.addcdiv(x, 2, y, x); m.addmm(2, m, m); m.addmm(2, 3, m, m)
m.clone().addmm_(2, 3, m, m); m.clone().addmm_(2, m, m); torch.addmm(2, m, 3, m, m); torch.addmm(2, m, m, m)
v.addmv(2, 3, m, v); v.clone().addmv_(2, m, v); torch.addmv(2, v, 3, m, v); m.addr(2, 3, v, v); m.clone().addr_(2, v, v)
torch.addr(2, m, 3, v, v); b.baddbmm(2, 3, b, b); b.clone().baddbmm_(2, b, b); torch.baddbmm(2, b, 3, b, b)
m.addbmm(2, 3, b, b); m.clone().addbmm_(2, b, b); torch.addbmm(2, m, 3, b, b)
x.add(n, y); x.clone().sub_(n, y); torch.add(x, n, y); x.addcmul(n, y, y); torch.addcdiv(x, n, y, x)
m.addmm(n, 3, m, m)""".replace("\n", ";").split(";")


def value(library: Any, text: str, **options: Any) -> Any:
    x = library.tensor([1.0, 2.0, 4.0], **options)
    m = library.arange(9.0, **options).reshape(3, 3)
    names = {"torch": library, "x": x, "y": x + 0.5, "v": x - 2, "m": m, "b": library.stack([m, m * 2])}
    names["n"] = library.tensor(2.0, **options)
    return eval(text.strip(), names)


@pytest.mark.parametrize("text", NUMBERS_FIRST)
def test_numbers_before_arrays(text: str, device: str) -> None:
    with pytest.warns(UserWarning, match=r"numbers before arrays are PyTorch's deprecated form: give them as \w+="):
        found = value(dt, text, device=device)
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert found.tolist() == value(torch, text).tolist()


WRONG = ["x.add(2, 3)", "x.add(x, 2)", "torch.add(x, x, 2)", "torch.add(x, 2, 3, x)", "torch.addmm(1, 2, 3, m, m)",
         "x.addcmul(x, x, 2)", "x.addcmul(2, x, x, value=3)", "x.add_(2, x, alpha=3)", "x.mul(2, x)",
         "x.add('a', x)"]  # fmt: skip


@pytest.mark.parametrize("text", WRONG)
@pytest.mark.filterwarnings("ignore:numbers before arrays")
@pytest.mark.filterwarnings("ignore:add.*numbers before arrays")
def test_others_are_refused(text: str) -> None:
    with pytest.raises(TypeError):
        value(dt, text)


GIVEN: list[tuple[str, ...]] = [(), ("L",), ("2.0",), ("[1.0, 2.0, 3.0]",), ("L", "L"), ("L", "L", "2.0"),
                                ("L", "L", "[1.0, 2.0, 3.0]"), ("L", "0.5")]  # fmt: skip


def outcomes(library: Any, name: str) -> list[Any]:
    """What a function does of each of GIVEN, None where it refuses."""
    function, found = getattr(library, name), []
    for given in GIVEN:
        lists = [[library.tensor([[1.5, 2.0], [0.5, 1.0]]) * (i + 1) for i in range(3)] for _ in range(len(given) + 1)]
        try:
            result = function(lists[0], *(eval(text, {"L": lists[k + 1]}) for k, text in enumerate(given)))
        except (TypeError, RuntimeError, IndexError):
            found.append(None)
            continue
        arrays = lists[0] if name.endswith("_") else result
        found.append([number for x in arrays for number in x.flatten().tolist()])
    return found


# Given a list, max takes it for the other operand of a maximum, and norm for orders.
LOOSE = {"_foreach_max", "_foreach_norm"}


@pytest.mark.parametrize("name", foreach.names())
def test_lists_of_arrays(name: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if name in LOOSE:
        found, wanted = outcomes(dt, name)[:1], outcomes(torch, name)[:1]
    else:
        found, wanted = outcomes(dt, name), outcomes(torch, name)
    assert [one is None for one in found] == [one is None for one in wanted]
    for one, other in zip(found, wanted, strict=True):
        assert one is None or one == pytest.approx(other, rel=1e-5, nan_ok=True)
    assert any(one is not None for one in found) or name == "_foreach_mm"


def test_lists_of_other_lengths_are_refused(device: str) -> None:
    x = dt.ones(2, device=device)
    add: Any = foreach.find("_foreach_add_")
    assert add is not None and foreach.find("_foreach_median") is None
    add([x], [x], alpha=2)
    assert x.tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="lists must have the same length, but got 1 and 2"):
        add([x], [x, x])
    for wrong in (x, 2.0):
        with pytest.raises(TypeError, match="argument 'self' must be a list of arrays, not "):
            add(wrong, [x])
    add([x], scalar=1)
    scaled: Any = foreach.find("_foreach_addcmul")
    y = [dt.ones(2, device=device), dt.ones(3, device=device)]
    assert [z.tolist() for z in scaled(y, y, y, dt.tensor([1.0, 2.0]))] == [[2, 2], [3, 3, 3]]
    assert [z.tolist() for z in scaled(y, y, y, scalars=[1, 2])] == [[2, 2], [3, 3, 3]] and x.tolist() == [4, 4]
