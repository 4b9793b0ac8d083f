"""Nested containers taken apart and put together: torch.utils._pytree, which libraries use."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = [
    "TreeSpec",
    "register_pytree_node",
    "tree_all",
    "tree_any",
    "tree_flatten",
    "tree_iter",
    "tree_leaves",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_structure",
    "tree_unflatten",
]


def __dir__() -> list[str]:
    return __all__


class _Kind(NamedTuple):
    flatten_fn: Callable[[Any], tuple[Iterable[Any], Any]]  # the children, and what else it takes to make one
    unflatten_fn: Callable[[list[Any], Any], Any]


def _dict_flatten(d: dict[Any, Any]) -> tuple[list[Any], list[Any]]:
    return list(d.values()), list(d)


def _dict_unflatten(values: Iterable[Any], keys: Iterable[Any]) -> dict[Any, Any]:
    return dict(zip(keys, values, strict=True))


SUPPORTED_NODES: dict[Any, _Kind] = {
    list: _Kind(lambda x: (x, None), lambda values, _: values),
    tuple: _Kind(lambda x: (x, None), lambda values, _: tuple(values)),
    dict: _Kind(_dict_flatten, _dict_unflatten),
    OrderedDict: _Kind(_dict_flatten, lambda values, keys: OrderedDict(zip(keys, values, strict=True))),
    defaultdict: _Kind(
        lambda d: (list(d.values()), (d.default_factory, list(d))),
        lambda values, about: defaultdict(about[0], zip(about[1], values, strict=True)),
    ),
    deque: _Kind(lambda d: (d, d.maxlen), lambda values, most: deque(values, most)),
}


class MappingKey(NamedTuple):
    """Where a child of a dictionary stands."""

    key: Any


def _dict_flatten_with_keys(d: dict[Any, Any]) -> tuple[list[tuple[MappingKey, Any]], list[Any]]:
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_fn: Callable[[list[Any], Any], Any],
    **options: Any,
) -> None:
    """A class whose instances are taken apart too; options that PyTorch has are accepted."""
    SUPPORTED_NODES[cls] = _Kind(flatten_fn, unflatten_fn)


_register_pytree_node = register_pytree_node


SUPPORTED_NODES[namedtuple] = _Kind(lambda x: (x, type(x)), lambda values, made: made(*values))
structseq = "structseq"
SUPPORTED_NODES[structseq] = _Kind(lambda x: (x, type(x)), lambda values, made: made(values))  # such as of max()
PyTree = Any


def _get_node_type(tree: Any) -> Any:
    """The key of its class in SUPPORTED_NODES, or its class."""
    kind = type(tree)
    if kind in SUPPORTED_NODES or not isinstance(tree, tuple):
        return kind
    return namedtuple if hasattr(kind, "_make") else structseq if hasattr(kind, "n_sequence_fields") else kind


@dataclass(frozen=True)
class TreeSpec:
    """The form of a tree: its class, what else it takes to make one, and the forms of its children; None: a leaf."""

    type: Any
    context: Any
    children_specs: Sequence[TreeSpec]
    num_leaves: int = field(init=False)

    def __post_init__(self) -> None:
        leaves = sum(form.num_leaves for form in self.children_specs) if self.type is not None else 1
        object.__setattr__(self, "num_leaves", leaves)

    def is_leaf(self) -> bool:
        return self.type is None

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        return tree_unflatten(leaves, self)


class LeafSpec(TreeSpec):
    """The form of what is not taken apart."""

    def __init__(self) -> None:
        super().__init__(None, None, [])


def _take_apart(tree: Any, leaves: list[Any], is_leaf: Callable[[Any], bool] | None) -> TreeSpec:
    key = _get_node_type(tree)
    if key not in SUPPORTED_NODES or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return LeafSpec()
    children, context = SUPPORTED_NODES[key].flatten_fn(tree)
    return TreeSpec(key, context, [_take_apart(child, leaves, is_leaf) for child in children])


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], TreeSpec]:
    """The leaves of a tree in order, and its form.

    >>> dt.utils._pytree.tree_flatten({"a": 1, "b": (2, 3)})[0]
    [1, 2, 3]
    """
    leaves: list[Any] = []
    form = _take_apart(tree, leaves, is_leaf)
    return leaves, form


def _put_together(form: TreeSpec, leaves: Iterator[Any]) -> Any:
    if form.type is None:
        return next(leaves)
    children = [_put_together(child, leaves) for child in form.children_specs]
    return SUPPORTED_NODES[form.type].unflatten_fn(children, form.context)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """A tree of this form with these leaves. Raises ValueError for another number of them."""
    values = list(leaves)
    if len(values) != treespec.num_leaves:
        raise ValueError(f"tree_unflatten(): {treespec.num_leaves} leaves are needed, not {len(values)}")
    return _put_together(treespec, iter(values))


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Iterable[Any]:
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The tree of func's results over the leaves of trees of one form."""
    leaves, form = tree_flatten(tree, is_leaf)
    others = [tree_leaves(rest, is_leaf) for rest in rests]
    return tree_unflatten(map(func, leaves, *others), form)


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """func of each leaf; gives the tree as it was."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_only(
    type_or_types: Any, func: Callable[[Any], Any], tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """The same over leaves of these classes; the others stay."""
    return tree_map(lambda x: func(x) if isinstance(x, type_or_types) else x, tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    return any(map(pred, tree_leaves(tree, is_leaf)))
