"""Methods that give an array object another shape: x.data = a view of x. Nothing is copied, and other views stay."""

from __future__ import annotations

import math

from devtensor import _C
from devtensor._C import DeviceArray, _need_int, _need_ints
from devtensor._composed.arguments import dims_of, misshapen, need_array
from devtensor._errors import GradientError
from devtensor._types import Dims


def check_free(op: str, input: DeviceArray) -> None:
    """Raises GradientError where gradients flow to the array."""
    need_array(op, "input", input)
    if input.requires_grad:
        text = (
            f"{op}(): gradients flow to this array, so that it keeps its shape: use x = x.{op.removesuffix('_')}(...)"
        )
        raise _C._explained(op, ("input",), (input,), "grad-flag", GradientError(text), 0)


def exchanged(input: DeviceArray, view: DeviceArray) -> DeviceArray:
    input.data = view
    return input


def turned(op: str, input: DeviceArray, view: DeviceArray) -> DeviceArray:
    """input, which becomes its view, with the gradient of that. Raises GradientError for leaves and their views."""
    if not view.requires_grad:
        check_free(op, input)
        return exchanged(input, view)
    return _C._become(op, input, view)


def squeeze_(input: DeviceArray, dim: Dims | None = None) -> DeviceArray:
    """Drops dimensions of size 1 of input itself, all of them or those among dim, and returns input.

    Raises IndexError for a dim out of range, GradientError for a leaf that wants a gradient.

    >>> dt.ones(1, 2).squeeze_().shape
    (2,)
    """
    need_array("squeeze_", "input", input)
    if dim is None:
        return turned("squeeze_", input, input.squeeze())
    wanted = _need_ints("squeeze_", "dim", dim)
    return turned("squeeze_", input, input.squeeze(dims_of("squeeze_", wanted, input.ndim, input)) if wanted else input)


def unsqueeze_(input: DeviceArray, dim: int) -> DeviceArray:
    """Gives input itself a new dimension of size 1 at dim, and returns input.

    Raises IndexError for a dim out of range, GradientError for a leaf that wants a gradient.

    >>> dt.ones(2).unsqueeze_(0).shape
    (1, 2)
    """
    need_array("unsqueeze_", "input", input)
    _C._check_rank("unsqueeze_", ("input",), (input,), 0, 0, 7)
    (d,) = dims_of("unsqueeze_", _need_int("unsqueeze_", "dim", dim), input.ndim + 1, input)
    return turned("unsqueeze_", input, input.unsqueeze(d))


def transpose_(input: DeviceArray, dim0: int, dim1: int) -> DeviceArray:
    """Exchanges two dimensions of input itself, and returns input.

    Raises IndexError for a dim out of range, GradientError for a leaf that wants a gradient.

    >>> dt.ones(2, 3).transpose_(0, 1).shape
    (3, 2)
    """
    op = "transpose_"
    need_array(op, "input", input)
    (a,) = dims_of(op, _need_int(op, "dim0", dim0), input.ndim, input, "dim0")
    (b,) = dims_of(op, _need_int(op, "dim1", dim1), input.ndim, input, "dim1")
    return turned(op, input, input.transpose(a, b))


def t_(input: DeviceArray) -> DeviceArray:
    """Transposes a matrix itself, and returns it; vectors and 0-dimensional arrays stay.

    Raises ShapeMismatchError for more than two dimensions, GradientError for a leaf that wants a gradient.

    >>> dt.ones(2, 3).t_().shape
    (3, 2)
    """
    need_array("t_", "input", input)
    _C._check_rank("t_", ("input",), (input,), 0, 0, 2)
    return turned("t_", input, input.t())


def resize_(input: DeviceArray, *size: Dims) -> DeviceArray:
    """Gives input itself another shape, and returns input: of its first elements in the order of memory.

    For more elements input gets new memory on its device, in which those behind its own are undefined; other views of
    the old memory keep that. Raises ShapeMismatchError for an array that is not contiguous, RuntimeError for a negative
    size, GradientError where gradients flow to input.

    >>> dt.arange(6).resize_(2, 2)
    DeviceArray([[0, 1],
                 [2, 3]], device='cpu', dtype=int64)
    """
    return _resized("resize_", input, _need_ints("resize_", "size", size[0] if len(size) == 1 else size))


def resize_as_(input: DeviceArray, the_template: DeviceArray) -> DeviceArray:
    """Gives input itself the shape of another array, as resize_ does, and returns input.

    >>> dt.arange(6).resize_as_(dt.ones(3))
    DeviceArray([0, 1, 2], device='cpu', dtype=int64)
    """
    need_array("resize_as_", "the_template", the_template)
    return _resized("resize_as_", input, the_template.shape)


def _resized(op: str, input: DeviceArray, sizes: tuple[int, ...]) -> DeviceArray:
    check_free(op, input)
    if any(n < 0 for n in sizes):
        raise RuntimeError(f"{op}(): size must hold sizes from 0, but got {sizes}")
    if len(sizes) > 8:
        raise RuntimeError(f"{op}(): size must hold at most 8 sizes, but got {len(sizes)}")
    if not input.is_contiguous():
        text = f"{op}(): an array of shape {tuple(input.shape)} that is not contiguous keeps it: use x.contiguous()"
        raise misshapen(op, ("input",), (input,), text, 0)
    count, flat = math.prod(sizes), input.reshape(input.numel())
    if count <= input.numel():
        return exchanged(input, flat.narrow(0, 0, count).reshape(sizes))
    larger = _C.empty(count, dtype=input.dtype, device=input.device)
    larger.narrow(0, 0, input.numel()).copy_(flat)
    return exchanged(input, larger.reshape(sizes))


__all__: list[str] = []
METHODS = (
    resize_,
    resize_as_,
    squeeze_,
    t_,
    transpose_,
    unsqueeze_,
)
