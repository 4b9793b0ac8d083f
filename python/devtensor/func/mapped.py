"""vmap: a function for each entry of a dimension."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from devtensor import _C, cuda, random
from devtensor._C import DeviceArray
from devtensor.autograd._transforms import calling
from devtensor.utils._pytree import tree_flatten, tree_unflatten

_Function = Callable[..., Any]


def _children(tree: Any) -> tuple[list[Any], Any] | None:
    """What stands in a list, tuple or dictionary, and its form; None for a leaf."""
    leaves, form = tree_flatten(tree, is_leaf=lambda x: x is not tree)
    return None if form.is_leaf() else (leaves, form)


def _spread(dims: Any, tree: Any, refuse: Callable[[], Exception]) -> list[Any]:
    """The dimension of each leaf of tree: dims has its form, or one value where tree has more below."""
    below = _children(tree)
    if dims is None or type(dims) is int:
        return [dims] * len(tree_flatten(tree)[0])
    sides = _children(dims)
    if below is None or sides is None:
        raise refuse()
    its, form = sides
    parts, whole = below
    as_list = form == whole or (isinstance(dims, list | tuple) and isinstance(tree, list | tuple))
    if not as_list or len(its) != len(parts):
        raise refuse()
    return [dim for one, part in zip(its, parts, strict=True) for dim in _spread(one, part, refuse)]


class _Call:
    """One call of a mapped function: what its errors say of it."""

    def __init__(self, func: _Function, in_dims: Any, out_dims: Any) -> None:
        self.name = getattr(func, "__name__", type(func).__name__)
        self.in_dims, self.out_dims = in_dims, out_dims

    def wrong_input(self, text: str) -> ValueError:
        return ValueError(f"vmap({self.name}, in_dims={self.in_dims}, ...)(<inputs>): {text}")

    def leaves(self, args: tuple[Any, ...]) -> tuple[list[Any], list[Any], Any, int]:
        """The leaves of args, the dimension of each, their form, and how many entries those dimensions have."""
        if type(self.in_dims) is not int and not isinstance(self.in_dims, tuple):
            raise self.wrong_input(
                "expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, got: "
                f"{type(self.in_dims)}."
            )
        if not args:
            raise ValueError(
                f"vmap({self.name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to "
                "vmap over a function with no inputs. The latter is unsupported."
            )
        leaves, form = tree_flatten(args)
        unlike = "in_dims is not compatible with the structure of `inputs`."
        dims = _spread(self.in_dims, args, lambda: self.wrong_input(unlike))
        for i, (leaf, dim) in enumerate(zip(leaves, dims, strict=True)):
            dims[i] = None if dim is None else self.dimension(leaf, dim)
        sizes = {leaf.shape[dim] for leaf, dim in zip(leaves, dims, strict=True) if dim is not None}
        if not sizes:
            raise self.wrong_input("at least one input must have a dimension to map over; all in_dims are None.")
        if len(sizes) > 1:
            found = [leaf.shape[dim] for leaf, dim in zip(leaves, dims, strict=True) if dim is not None]
            raise ValueError(
                "vmap: Expected all arrays to have the same size in the mapped dimension, got sizes "
                f"{found} for the mapped dimension"
            )
        return leaves, dims, form, sizes.pop()

    def dimension(self, leaf: Any, dim: int) -> int:
        if not isinstance(leaf, DeviceArray):
            raise self.wrong_input(
                f"Got in_dim={dim} for an input but the input is of type {type(leaf)}. We cannot vmap over non-array "
                "arguments, please use None as the respective in_dim"
            )
        if not -leaf.dim() <= dim < leaf.dim():
            raise self.wrong_input(
                f"Got in_dim={dim} for some input, but that input is an array of dimensionality {leaf.dim()} so "
                f"expected in_dim to satisfy -{leaf.dim()} <= in_dim < {leaf.dim()}."
            )
        return dim % leaf.dim()

    def stacked(self, results: list[Any]) -> Any:
        """What the calls gave, of each array one with the new dimension where out_dims says."""
        rows = []
        _, form = tree_flatten(results[0])
        for result in results:
            row, its_form = tree_flatten(result)
            if its_form != form:
                raise ValueError(f"vmap({self.name}, ...): the calls gave results of different forms")
            rows.append(row)
        unlike = ValueError(
            f"vmap({self.name}, ..., out_dims={self.out_dims})(<inputs>): out_dims is not compatible with the "
            "structure of `outputs`."
        )
        dims = _spread(self.out_dims, results[0], lambda: unlike)
        columns = zip(*rows, strict=True)
        return tree_unflatten([self.joined(list(column), dim) for column, dim in zip(columns, dims, strict=True)], form)

    def joined(self, entries: list[Any], dim: int | None) -> Any:
        if dim is None:
            return entries[0]
        if not isinstance(entries[0], DeviceArray):
            raise ValueError(
                f"vmap({self.name}, ...): `{self.name}` must only return arrays, got type {type(entries[0])}. Did you "
                "mean to set out_dims= to None for output?"
            )
        return _C.stack(entries, dim)


def _random_start() -> Callable[[], None]:
    """A function after which random numbers begin where they begin now."""
    host, devices = random.get_rng_state(), cuda.get_rng_state_all()

    def again() -> None:
        random.set_rng_state(host)
        cuda.set_rng_state_all(devices)

    return again


def vmap(
    func: _Function,
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> _Function:
    """A function that calls func for each entry of a dimension of its arguments, and stacks what the calls give.

    in_dims is the dimension, or a structure like the arguments with a dimension for each array; None for what every
    call gets whole. out_dims says likewise where the new dimension stands; None takes the first call's. It is a loop:
    results and gradients are PyTorch's, the time is that of the calls, and chunk_size changes nothing. func may look at
    values, which PyTorch's may not. Random numbers differ from call to call; randomness="same" gives each the same.

    Raises ValueError for arguments that do not fit in_dims, results that are no arrays or do not fit out_dims, no
    entries; RuntimeError for another randomness.

    >>> dt.vmap(lambda row: row * row.sum())(dt.tensor([[1.0, 2.0], [3.0, 4.0]]))
    DeviceArray([[ 3.,  6.],
                 [21., 28.]], device='cpu', dtype=float32)
    """
    if not callable(func):
        raise TypeError(f"vmap(): argument 'func' must be callable, not {type(func).__name__}")
    if _C._need_str("vmap", "randomness", randomness) not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and _C._need_int("vmap", "chunk_size", chunk_size) <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def _mapped(*args: Any, **kwargs: Any) -> Any:
        call = _Call(func, in_dims, out_dims)
        leaves, dims, form, n = call.leaves(args)
        if n == 0:
            raise ValueError(f"vmap({call.name}, ...)(<inputs>): the mapped dimension has no entries to call it for")
        again = _random_start() if randomness == "same" else None
        results = []
        for i in range(n):
            if again is not None:
                again()
            entry = [x if dim is None else x.select(dim, i) for x, dim in zip(leaves, dims, strict=True)]
            with calling([x for x, dim in zip(entry, dims, strict=True) if dim is not None], maps=True):
                results.append(func(*tree_unflatten(entry, form), **kwargs))
        return call.stacked(results)

    return _mapped
