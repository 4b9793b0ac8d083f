"""Which dtype comes of several: promote_types, result_type, can_cast."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from devtensor import _C
from devtensor._C import DeviceArray, _need_dtype
from devtensor._composed.arguments import need_array
from devtensor._dtypes import autocast

_F = TypeVar("_F", bound=Callable[..., Any])


@functools.cache
def _promoted(a: _C.dtype, b: _C.dtype) -> _C.dtype:
    return _C.cat([_C.empty(0, dtype=a, device="cpu"), _C.empty(0, dtype=b, device="cpu")]).dtype


def promote_types(type1: _C.dtype, type2: _C.dtype) -> _C.dtype:
    """The smallest dtype that arrays of both are computed in together.

    >>> dt.promote_types(dt.int32, dt.float16)
    devtensor.float16
    """
    first = _need_dtype("promote_types", "type1", type1)
    return _promoted(first, _need_dtype("promote_types", "type2", type2))


def _category(dtype: _C.dtype) -> int:
    return 2 if dtype.is_floating_point else 0 if dtype == _C.bool else 1


def result_type(tensor1: DeviceArray | float, tensor2: DeviceArray | float) -> _C.dtype:
    """The dtype of tensor1 + tensor2: each an array or a number.

    Arrays with dimensions decide; an array without any, then a number, counts where its category (bool, integer, float)
    is higher. Raises TypeError for what is neither.

    >>> dt.result_type(dt.tensor([1, 2], dtype=dt.int32), 1.0)
    devtensor.float32
    """
    by_rank: dict[int, _C.dtype] = {}
    for name, value in (("tensor1", tensor1), ("tensor2", tensor2)):
        if isinstance(value, DeviceArray):
            rank, dtype = (0 if value.ndim else 1), value.dtype
        else:
            number = _C._need_number("result_type", name, value)
            dtype = _C.bool if isinstance(number, bool) else _C.int64 if isinstance(number, int) else _C.float32
            rank, dtype = 2, _C.get_default_dtype() if dtype is _C.float32 else dtype
        by_rank[rank] = _promoted(by_rank[rank], dtype) if rank in by_rank else dtype
    ranks = sorted(by_rank)
    result = by_rank[ranks[0]]
    for rank in ranks[1:]:
        if _category(by_rank[rank]) > _category(result):
            result = by_rank[rank]
    return result


def common_dtype(*arrays: DeviceArray) -> _C.dtype:
    """The dtype that an op of several arrays computes in."""
    found = arrays[0]
    if all(other.dtype == found.dtype for other in arrays[1:]):
        return found.dtype
    for other in arrays[1:]:
        dtype, ndim = result_type(found, other), max(found.ndim, other.ndim)
        found = _C.empty([0] * ndim, dtype=dtype, device="cpu")
    return found.dtype


def can_cast(from_: _C.dtype, to: _C.dtype) -> bool:
    """Whether a write in place may cast so: to a dtype of the same category (bool, integer, float) or a higher one.

    >>> dt.can_cast(dt.float64, dt.float32), dt.can_cast(dt.float32, dt.int64)
    (True, False)
    """
    source, target = _need_dtype("can_cast", "from_", from_), _need_dtype("can_cast", "to", to)
    return _category(source) <= _category(target)


def is_nonzero(input: DeviceArray) -> bool:
    """Whether the one element of input is not zero, which is read from its device.

    Raises RuntimeError for more or fewer elements.

    >>> dt.is_nonzero(dt.tensor([0.5]))
    True
    """
    need_array("is_nonzero", "input", input)
    return bool(input)


def promotes(*names: str, integers: bool = True, first: bool = False) -> Callable[[_F], _F]:
    """A loss whose arrays of these names may differ in dtype under --as-torch, as in PyTorch, where it is a formula.

    They are cast to the dtype that they promote to, or to that of the first. Without integers only floats are.
    """

    def decorate(function: _F) -> _F:
        code = inspect.unwrap(function).__code__
        order = code.co_varnames[: code.co_argcount]
        places = {name: order.index(name) for name in names}

        @functools.wraps(function)
        def _call(*args: Any, **kwargs: Any) -> Any:
            if not _C._as_torch():
                return function(*args, **kwargs)
            given = {n: args[i] if i < len(args) else kwargs.get(n) for n, i in places.items()}
            dtypes = [x.dtype for x in given.values() if isinstance(x, DeviceArray)]
            floats = [dtype for dtype in dtypes if dtype.is_floating_point]
            if len(set(dtypes)) > 1 and floats and (integers or floats == dtypes):
                target = dtypes[0] if first else functools.reduce(_promoted, dtypes)
                cast = {n: x.to(target) if isinstance(x, DeviceArray) else x for n, x in given.items()}
                args = tuple(cast.get(order[i], x) for i, x in enumerate(args))
                kwargs = {n: cast.get(n, x) for n, x in kwargs.items()}
                with autocast.standing_for({id(cast[n]): x for n, x in given.items()}):
                    return function(*args, **kwargs)
            return function(*args, **kwargs)

        return _call  # type: ignore[return-value]

    return decorate
