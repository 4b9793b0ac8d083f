"""Attributes of modules: those that a subclass finds itself, those that are assigned too early."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import devtensor as dt
from devtensor import nn


class Wrapped(nn.Module):
    """Has what its inner module has, as programs for PyTorch do it."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("inner"), name)


class Refusing(nn.Module):
    def __getattr__(self, name: str) -> Any:
        return nn.Module.__getattr__(self, name)


def test_attributes_of_a_module_that_finds_its_own() -> None:
    wrapped = Wrapped(nn.Linear(3, 2))
    assert wrapped.weight is wrapped.inner.weight and wrapped.in_features == 3
    assert copy.deepcopy(wrapped).weight.shape == (2, 3)
    assert pickle.loads(pickle.dumps(wrapped)).bias.shape == (2,)
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'nothing'"):
        wrapped.nothing  # noqa: B018
    with pytest.raises(AttributeError, match="'Refusing' object has no attribute 'nothing'"):
        Refusing().nothing  # noqa: B018
    assert not hasattr(nn.ReLU(), "nothing")


def test_what_is_assigned_before_init() -> None:
    """The sentences of PyTorch."""
    made = {
        "self.x = nn.Linear(2, 2)": "module",
        "self.x = nn.Parameter(dt.ones(2))": "parameters",
        "self.register_buffer('x', dt.ones(2))": "buffer",
        "self.register_parameter('x', None)": "parameter",
    }
    for text, what in made.items():
        space: dict[str, Any] = {"nn": nn, "dt": dt}
        exec(f"class Net(nn.Module):\n    def __init__(self):\n        {text}\n        super().__init__()\n", space)
        with pytest.raises(AttributeError, match=rf"^cannot assign {what} before Module.__init__\(\) call"):
            space["Net"]()

    class Bare(nn.Module):
        def __init__(self) -> None:
            self.x = 3

    for use in (lambda net: list(net.parameters()), lambda net: net(dt.ones(1)), lambda net: net.state_dict()):
        with pytest.raises(AttributeError, match="has not called super"):
            use(Bare())
