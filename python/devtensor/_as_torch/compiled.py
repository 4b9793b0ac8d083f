"""torch._C: what devtensor._C has, and types of graphs, which programs name in annotations and import by accident."""

from __future__ import annotations

from typing import Any

from devtensor import _C


class Node:
    """A node of a graph of torch.jit; there is none."""


class Graph(Node):
    """Such a graph."""


class Value(Node):
    """What such a node gives."""


NoneType = type(None)


def __getattr__(name: str) -> Any:
    return getattr(_C, name)
