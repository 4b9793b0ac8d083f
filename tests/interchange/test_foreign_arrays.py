"""Arrays of other libraries beside ours: refused by name, and never compared by identity."""

from __future__ import annotations

import operator
from typing import Any

import pytest

import devtensor as dt

OPERATORS: list[Any] = [operator.add, operator.mul, operator.eq, operator.ne, operator.lt, operator.matmul,
                        operator.pow, operator.iadd, operator.lshift]  # fmt: skip


class Foreign:
    """Looks like an array of a library, which has no operators of its own."""

    def __dlpack__(self) -> None: ...


Foreign.__module__ = "cupy.core"


@pytest.mark.parametrize("call", OPERATORS)
def test_operators_name_the_library(call: Any, device: str) -> None:
    x = dt.ones(3, device=device)
    for a, b in ((x, Foreign()), (Foreign(), x)):
        if call is operator.iadd and b is x:
            continue
        with pytest.raises(TypeError, match=r"an array of cupy and a DeviceArray do not mix; .*cupy\.from_dlpack\(x\)"):
            call(a, b)


def test_what_is_no_array_of_theirs_is_compared_as_ever() -> None:
    class Other:
        pass

    Other.__module__ = "cupyx"
    x = dt.ones(3)
    assert (x == Other()) is False and (x != Other()) is True and (x == "a") is False and (x == None) is False  # noqa: E711


def test_pytorch() -> None:
    torch = pytest.importorskip("torch")
    x, t = dt.ones(3), torch.ones(3)
    for call in OPERATORS:
        with pytest.raises(TypeError, match="an array of torch and a DeviceArray do not mix"):
            call(x, t)
    with pytest.raises(TypeError, match="do not mix"):
        _ = t == x
    for function in (torch.nn.Linear(3, 2), torch.relu, lambda v: torch.add(t, v)):
        for value in (x, dt.nn.Parameter(x)):
            with pytest.raises(TypeError, match=r"torch's \w+\(\) takes no DeviceArray; torch.from_dlpack\(x\)"):
                function(value)
    with pytest.raises(dt.GradientError, match="Can't export tensors that require gradient, use tensor.detach"):
        torch.from_dlpack(dt.ones(3, requires_grad=True))
    assert torch.from_dlpack(x).tolist() == [1, 1, 1]
