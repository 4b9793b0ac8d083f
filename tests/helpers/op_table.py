"""The table of ops that the modules of the reference fill."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Op:
    """A reference function; rule: how the result's dtype follows from the promoted one."""

    function: Callable[..., Any]
    rule: str
    # The result is a sum of products, so its error is bounded by the same sum of absolute values.
    sums: bool = False


OPS: dict[str, Op] = {}


def op(rule: str, *, sums: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        OPS[function.__name__.rstrip("_")] = Op(function, rule, sums)
        return function

    return enter
