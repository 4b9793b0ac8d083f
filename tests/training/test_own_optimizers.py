"""Names beside Optimizer that optimizers of the users' own import, as they began as a copy of one of PyTorch's."""

from __future__ import annotations

from typing import Any

import pytest

import devtensor as dt
from devtensor.optim import optimizer as module
from devtensor.optim.optimizer import Optimizer


class Plain(Optimizer):
    """SGD with a count of steps, written as PyTorch's Adam is."""

    def __init__(self, params: module.ParamsT, lr: float, differentiable: bool = False) -> None:
        super().__init__(params, {"lr": lr, "differentiable": differentiable})

    @module._use_grad_for_differentiable
    def step(self, closure: Any = None) -> None:
        self._cuda_graph_capture_health_check()
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            grads = [p.grad for p in params]
            for p in params:
                module._device_dtype_check_for_fused(p)
                self.state[p].setdefault("step", dt.tensor(0.0, dtype=module._get_scalar_dtype()))
                self.state[p]["step"] += 1
            module._view_as_real(params, grads)
            update(params, grads, [self.state[p]["step"] for p in params], group["lr"])


@module._disable_dynamo_if_unsupported(single_tensor_fn=None)
def update(params: list[Any], grads: list[Any], steps: list[Any], lr: float) -> None:
    assert module._default_to_fused_or_foreach(params, False) == (False, False)
    grouped = Optimizer._group_tensors_by_device_and_dtype([params, grads, steps])
    for (_, dtype), ((some, their_grads, their_steps), places) in grouped.items():
        assert len(some) == len(places) and {p.dtype for p in some} == {dtype}
        for p, grad, step in zip(some, their_grads, their_steps, strict=True):
            p.add_(grad, alpha=-lr * module._get_value(step))


def test_an_optimizer_that_began_as_a_copy(device: str) -> None:
    a = dt.nn.Parameter(dt.ones(2, device=device))
    b = dt.nn.Parameter(dt.ones(3, dtype=dt.float64, device=device))
    optimizer = Plain([a, b], lr=0.5)
    for _ in range(2):
        optimizer.zero_grad()
        (a.sum() + b.sum().float()).backward()
        optimizer.step()
    assert a.tolist() == [-0.5] * 2 and b.tolist() == [-0.5] * 3  # 1 - 0.5 - 2 * 0.5
    assert a.is_leaf and a.requires_grad


def test_small_ones() -> None:
    assert module._get_value(dt.tensor(2.5)) == 2.5 and module._get_value(3) == 3
    assert module._to_scalar(dt.ones(1)).ndim == 0 and module._to_scalar(2.0) == 2.0
    assert module._get_scalar_dtype(is_fused=True) is dt.float32
    assert module._get_capturable_supported_devices() == ["cuda"] and module._stack_if_compiling([1]) == [1]
    with pytest.raises(RuntimeError, match=r"requires all the params to be floating point Tensors, but got .*int64"):
        module._device_dtype_check_for_fused(dt.ones(2, dtype=dt.int64))
