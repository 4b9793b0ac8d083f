"""Two ways to write one thing: the same numbers, and the same gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import devtensor as dt

F = dt.nn.functional
ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
}
INDEX = [[0], [3], [1]]


def place(device: str) -> Any:
    return dt.tensor(INDEX, device=device)


Way = Callable[..., Any]
ROWS: dict[str, tuple[tuple[tuple[int, ...], ...], Way, Way]] = {
    **{
        f"linear, {name}": (
            ((5, 4), (3, 4), (3,)),
            lambda x, w, b, name=name: dt.linear(x, w, b, activation=name),
            lambda x, w, b, apart=apart: apart(dt.linear(x, w, b)),
        )
        for name, apart in ACTIVATIONS.items()
    },
    **{
        f"conv2d, {name}": (
            ((2, 4, 6, 5), (3, 4, 3, 3), (3,)),
            lambda x, w, b, name=name: dt.conv2d(x, w, b, padding=1, activation=name),
            lambda x, w, b, apart=apart: apart(dt.conv2d(x, w, b, padding=1)),
        )
        for name, apart in ACTIVATIONS.items()
    },
    "scatter_add of a part of its source": (
        ((3, 4), (3, 4)),
        lambda x, source: x.scatter_add(1, place(str(x.device)), source),
        lambda x, source: x.scatter_add(1, place(str(x.device)), source[:, :1]),
    ),
    "tiles of neighbouring channels": (
        ((2, 8, 6, 3),),
        lambda x: F.avg_pool2d(x, (2, 3)).permute(0, 2, 3, 1),
        lambda x: x.reshape(2, 8, 3, 2, 3).mean((3, 4)).unsqueeze(3).permute(0, 2, 3, 1),
    ),
}


def found(way: Way, shapes: tuple[tuple[int, ...], ...], device: str, dtype: Any) -> list[Any]:
    """The result, and the gradient of an uneven sum of it for each operand."""
    random = np.random.default_rng(7)
    operands = [dt.tensor(random.normal(size=s), dtype=dtype, device=device, requires_grad=True) for s in shapes]
    result = way(*operands)
    weights = dt.tensor(random.normal(size=result.shape), dtype=dtype, device=device)
    (result * weights).sum().backward()
    return [result.detach().cpu().numpy(), *(x.grad.cpu().numpy() for x in operands)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_both_give_the_same(row: Any, dtype: str, device: str) -> None:
    shapes, one, other = row
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    for a, b in zip(*(found(way, shapes, device, getattr(dt, dtype)) for way in (one, other)), strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
