"""Slopes of what is sampled at places: differences of neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from devtensor import _C
from devtensor._C import DeviceArray, _need_int, _need_number
from devtensor._composed.arguments import dims_of, misshapen, need_array

_Spacing: TypeAlias = float | DeviceArray | Sequence[float] | Sequence[DeviceArray]


def _spacings(op: str, input: DeviceArray, spacing: Any, dims: tuple[int, ...]) -> list[DeviceArray | float]:
    """For each dimension how far its entries are apart, or their places."""
    if spacing is None:
        return [1] * len(dims)
    if isinstance(spacing, DeviceArray) and spacing.ndim == 0:
        _C._check_devices(op, ("input", "spacing"), (input, spacing))
        return [spacing] * len(dims)
    if not isinstance(spacing, (tuple, list)):
        if isinstance(spacing, DeviceArray):
            raise TypeError(
                f"{op}(): argument 'spacing' must be a number or a list: places of a dimension stand in one"
            )
        return [_need_number(op, "spacing", spacing)] * len(dims)
    if len(spacing) != len(dims):
        text = (
            f"{op}: spacing must be a number or as long as the list of dimensions, {len(dims)}, but got {len(spacing)}"
        )
        raise _C._explained(op, ("input",), (input,), "invalid-parameter", RuntimeError(text), 0)
    found: list[DeviceArray | float] = []
    for i, (one, dim) in enumerate(zip(spacing, dims, strict=True)):
        if isinstance(one, DeviceArray):
            names, arrays = ("input", f"spacing[{i}]"), (input, one)
            _C._check_devices(op, names, arrays)
            _C._check_shape(op, names, arrays, 1, [input.shape[dim]])
            found.append(one)
        else:
            found.append(_need_number(op, f"spacing[{i}]", one))
    return found


def _sum(x: DeviceArray, dim: int, first: int, factors: Sequence[DeviceArray | float], n: int = 1) -> DeviceArray:
    """Of so many neighbours from first on, each times its factor, the sum; at n places."""
    total: DeviceArray | None = None
    for i, factor in enumerate(factors):
        if not isinstance(factor, DeviceArray) and factor == 0:
            continue
        part = x.narrow(dim, first + i, n)
        part = part * factor if isinstance(factor, DeviceArray) or factor != 1 else part
        total = part if total is None else total + part
    assert total is not None
    return total


def _evenly(x: DeviceArray, dim: int, step: DeviceArray | float, order: int) -> DeviceArray:
    n = x.shape[dim]
    parts = [_sum(x, dim, 0, (-1, 1) if order == 1 else (-1.5, 2, -0.5))]
    if n > 2:
        parts.append((x.narrow(dim, 2, n - 2) - x.narrow(dim, 0, n - 2)) / 2)
    parts.append(_sum(x, dim, n - order - 1, (-1, 1) if order == 1 else (0.5, -2, 1.5)))
    return _C.cat(parts, dim) / step


def _at_places(x: DeviceArray, dim: int, places: DeviceArray, order: int) -> DeviceArray:
    """The slopes of the parabola through three neighbours; at the ends of it too, or of a line."""
    n = x.shape[dim]
    apart = (places[1:] - places[:-1]).reshape([-1] + [1] * (x.ndim - 1 - dim))

    def parabola(at: int, first: int, n: int = 1) -> DeviceArray:
        a, b = apart.narrow(0, first, n), apart.narrow(0, first + 1, n)
        both = a + b
        factors = (
            (-(both + a) / (a * both), both / (a * b), -a / (b * both)),
            (-b / (a * both), (b - a) / (a * b), a / (b * both)),
            (b / (a * both), -both / (a * b), (both + b) / (b * both)),
        )[at]
        return _sum(x, dim, first, factors, n)

    def line(first: int) -> DeviceArray:
        return (x.narrow(dim, first + 1, 1) - x.narrow(dim, first, 1)) / apart.narrow(0, first, 1)

    ends = (line(0), line(n - 2)) if order == 1 else (parabola(0, 0), parabola(2, n - 3))
    return _C.cat([ends[0], parabola(1, 0, n - 2), ends[1]] if n > 2 else list(ends), dim)


def gradient(
    input: DeviceArray,
    *,
    spacing: _Spacing | None = None,
    dim: int | Sequence[int] | None = None,
    edge_order: int = 1,
) -> tuple[DeviceArray, ...]:
    """How much input grows along each dimension of dim, by default all: central differences, each in its shape.

    spacing: how far entries are apart, one number (1) or one for each dimension, or a list of vectors of their places.
    edge_order 1 takes two neighbours at the ends, 2 takes three. Integers give the default dtype. Raises
    DeviceMismatchError, DTypeMismatchError for bools and uint8, ShapeMismatchError for a dimension of fewer than
    edge_order + 1 entries, IndexError for a dim out of range, RuntimeError for another edge_order or length of spacing.

    >>> dt.gradient(dt.tensor([1.0, 2.0, 4.0, 8.0]))
    (DeviceArray([1.0000, 1.5000, 3.0000, 4.0000], device='cpu', dtype=float32),)
    """
    op = "gradient"
    need_array(op, "input", input)
    if input.dtype in (_C.bool, _C.uint8):
        _C._fail_dtype(op, ("input",), (input,), 0, "numbers of both signs")
    order = _need_int(op, "edge_order", edge_order)
    if order not in (1, 2):
        raise RuntimeError(f"{op}() only supports edge_order=1 and edge_order=2, not {order}")
    none = isinstance(dim, (tuple, list)) and not dim
    dims = () if none or (dim is None and input.ndim == 0) else dims_of(op, dim, input.ndim, input)
    spacings = _spacings(op, input, spacing, dims)
    for d in dims:
        if input.ndim == 0 or input.shape[d] <= order:
            text = f"{op} expected each dimension size to be at least edge_order+1, which is {order + 1}"
            raise misshapen(op, ("input",), (input,), text, 0)
    x = input if input.dtype.is_floating_point else input.to(_C.get_default_dtype())
    found = []
    for d, space in zip(dims, spacings, strict=True):
        places = isinstance(space, DeviceArray) and space.ndim == 1
        result = _at_places(x, d, space, order) if places else _evenly(x, d, space, order)  # type: ignore[arg-type]
        found.append(result)
    return tuple(found)


__all__ = ["gradient"]
