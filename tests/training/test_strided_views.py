"""as_strided of arrays that gradients flow to: views, as PyTorch has them, with their writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import devtensor as dt

# name: what becomes of y, (3, 4), made of the leaf x: a number. Second derivatives too where x is asked for.
PROGRAMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "a part": lambda lib, x, y: lib.as_strided(y, (3, 2), (4, 2), 1).exp().sum(),
    "windows": lambda lib, x, y: (y.as_strided((5, 3), (1, 1)) ** 2).sum(),
    "windows of windows": lambda lib, x, y: (y.as_strided((5, 3), (1, 1)).as_strided((4,), (2,), 1) ** 2).sum(),
    "patches": lambda lib, x, y: (y.as_strided((2, 3, 2, 2), (4, 1, 4, 1)).square() * y.sum()).sum(),
    "repeated": lambda lib, x, y: (y.as_strided((5, 3), (0, 2)) ** 2).sum(),
    "of a transposed": lambda lib, x, y: (y.t().as_strided((3, 3), (1, 2), 2) ** 3).sum(),
    "of an expanded": lambda lib, x, y: (x.expand(2, 3, 4).as_strided((4,), (3,)) ** 2).sum(),
    "of a part": lambda lib, x, y: (y[1:, 1:].as_strided((2, 2), (3, 1)) ** 2).sum(),
    "nothing": lambda lib, x, y: y.as_strided((0, 3), (1, 1)).sum() + y.sum(),
    "a number": lambda lib, x, y: y.as_strided((), (), 5).exp(),
    "twice": lambda lib, x, y: slope(lib, (y.as_strided((5, 3), (1, 1)) ** 3).sum(), x),
    "twice of an expanded": lambda lib, x, y: slope(lib, (x.expand(2, 3, 4).as_strided((4,), (3,)) ** 3).sum(), x),
    "written to": lambda lib, x, y: written(y, y.as_strided((3,), (4,), 1), y),
    "written through another": lambda lib, x, y: written(y, y, y.as_strided((4,), (3,))),
    "windows, written through another": lambda lib, x, y: written(y, y[0], y.as_strided((5, 3), (1, 1))),
    "written, then more of it": lambda lib, x, y: written(y, y.as_strided((2, 2), (4, 1)), y.as_strided((6,), (2,))),
}  # fmt: skip


def slope(lib: Any, value: Any, x: Any) -> Any:
    (gradient,) = lib.autograd.grad(value, x, create_graph=True)
    return gradient.square().sum()


def written(y: Any, target: Any, read: Any) -> Any:
    target.mul_(3)
    return (read * read).sum() + y.exp().sum() * 1e-3


def outcome(lib: Any, program: Callable[[Any, Any, Any], Any], device: str) -> tuple[Any, Any]:
    x = lib.tensor((np.arange(12) / 4 - 1).tolist(), dtype=lib.float64, device=device).reshape(3, 4).detach()
    x.requires_grad_()
    result = program(lib, x, x * 1)
    result.backward()
    return result.item(), x.grad.tolist()


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch(name: str, device: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = outcome(dt, PROGRAMS[name], device), outcome(torch, PROGRAMS[name], "cpu")
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-12)
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-12)


def test_what_it_is(device: str) -> None:
    x = dt.arange(4, dtype=dt.float32, device=device).requires_grad_()
    y = x * 2
    part = y.as_strided((2,), (2,))
    assert part.grad_fn is not None and part.grad_fn.name() == "AsStridedBackward0"
    part.zero_()
    assert y.tolist() == [0, 2, 0, 6]
    y.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [0, 2, 0, 2]
    with pytest.raises(dt.GradientError, match="a view of a leaf Variable that requires grad"):
        x.as_strided((2,), (2,)).zero_()


def test_nothing_moves() -> None:
    x = dt.ones(100, device="cuda", requires_grad=True)
    with dt.forbid_transfers():
        x.as_strided((96, 5), (1, 1)).square().sum().backward()


def test_a_write_beyond_a_view_is_refused(device: str) -> None:
    """as_strided of a part may reach what the part does not have: its gradient would not follow."""
    x = dt.ones(3, device=device, requires_grad=True)
    b = x * 1
    with pytest.raises(NotImplementedError, match="write to a copy"):
        b[1:].as_strided((1,), (1,), 0).mul_(3)
    assert b.tolist() == [1, 1, 1]
    b.as_strided((1,), (1,), 0).mul_(3)
    (gradient,) = dt.autograd.grad(b.sum(), x)
    assert gradient.tolist() == [3, 1, 1]
