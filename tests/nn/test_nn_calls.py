"""Modules in use: how a call goes, shared parameters on the move, threads."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import devtensor as dt
from devtensor import nn


def test_hooks_that_always_run() -> None:
    m, log = nn.Linear(2, 2), []
    m.register_forward_hook(lambda m, args, out: log.append(out))
    m.register_forward_hook(lambda m, args, kwargs, out: log.append(kwargs), with_kwargs=True, always_call=True)
    m.register_forward_hook(lambda m, args, out: 1 / 0, always_call=True)
    with pytest.warns(UserWarning, match="division by zero"), pytest.raises(dt.ShapeMismatchError) as caught:
        m(dt.ones(3))
    assert log == [{}] and caught.value.module_path == "Linear"


def test_calls_hand_everything_on() -> None:
    class Many(nn.Module):
        def forward(self, *args: int, **kwargs: int) -> Any:
            return args, kwargs

    m = Many()
    for n in (0, 1, 8, 9, 20):
        assert m(*range(n)) == (tuple(range(n)), {})
        assert m(*range(n), a=1) == (tuple(range(n)), {"a": 1})
    m.forward = lambda x: x + 1  # type: ignore[method-assign, assignment]
    assert m(1) == 2 and nn.Module.__call__(m, 1) == 2

    class Wrapped(nn.Module):
        def __init__(self, inner: nn.Module) -> None:
            super().__init__()
            self.inner = inner

        def __getattr__(self, name: str) -> Any:
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self.inner, name)

        def __call__(self, x: Any) -> Any:
            return super().__call__(x * 2)

        def forward(self, x: Any) -> Any:
            return self.inner(x)

    wrapped = Wrapped(nn.Flatten(0))
    assert wrapped.start_dim == 0 and wrapped(dt.ones(1, 2)).tolist() == [2, 2]
    with pytest.raises(AttributeError):
        _ = wrapped.nothing


def test_a_shared_parameter_stays_one(device: str) -> None:
    net = nn.Sequential(nn.Embedding(4, 3), nn.Linear(3, 4, bias=False))
    net[1].weight = net[0].weight
    net[1].register_buffer("mask", dt.ones(2))
    net[0].copy_of_mask = nn.Buffer(dt.zeros(1))
    for change in (
        lambda n: n.to(device),
        lambda n: n.half(),
        lambda n: n.to(device, dt.float64),
        lambda n: n.cpu().float(),
        copy.deepcopy,
        lambda n: pickle.loads(pickle.dumps(n)),
    ):
        net = change(net)
        assert net[0].weight is net[1].weight and len(list(net.parameters())) == 1
        assert list(net.state_dict()) == ["0.weight", "0.copy_of_mask", "1.weight", "1.mask"]
        assert {b.dtype for b in net.buffers()} == {net[0].weight.dtype}
    with pytest.raises(TypeError, match="only accepts floating point dtypes"):
        net.to(dt.int64)
    net.apply(lambda m: m.to(device))
    assert net[0].weight.device == net[1].mask.device == dt.device(device)


def test_one_module_in_many_threads(device: str) -> None:
    net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4)).to(device)
    xs = [dt.full((2, 8), float(i), device=device) for i in range(8)]
    want = [net(x).tolist() for x in xs]
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda x: [net(x).tolist() for _ in range(10)], xs))
    assert got == [[values] * 10 for values in want]
