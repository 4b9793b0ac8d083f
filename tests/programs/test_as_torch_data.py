"""Writes through .data in a program that runs --as-torch: gradients are computed with what is there then."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import devtensor as dt


@pytest.fixture(autouse=True)
def as_torch() -> Iterator[None]:
    dt._C._as_torch(True)
    yield
    dt._C._as_torch(False)


WRITES: dict[str, Callable[[dt.DeviceArray], object]] = {
    "element": lambda x: x.__setitem__((0, 0), 5.0),
    "rows": lambda x: x[1:].fill_(2.0),
    "transposed": lambda x: x.t()[1].add_(1.0),
    "flat": lambda x: x.view(-1).__setitem__(slice(1, 3), dt.tensor([7.0, 8.0], device=x.device)),
    "indices": lambda x: x.__setitem__(dt.tensor([1], device=x.device), 3.0),
    "mask": lambda x: x.__setitem__(x > 0, 4.0),
    "in place": lambda x: x.mul_(3.0),
    "copy_": lambda x: x.copy_(dt.full((2, 2), 6.0, device=x.device)),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_writes_through_data_are_not_counted(write: Callable[[dt.DeviceArray], object], device: str) -> None:
    """PyTorch computes the gradient with what is there at that time, and raises for the same write without .data."""
    x = dt.ones(2, 2, device=device, requires_grad=True)
    scale = dt.ones(2, 2, device=device)
    y = scale * x
    write(scale.data)
    y.sum().backward()
    assert x.grad is not None and dt.equal(x.grad, scale) and not dt.equal(scale, dt.ones_like(scale))
    y = scale * x
    write(scale.detach())
    with pytest.raises(dt.GradientError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_parameter_written_through_data_between_forward_and_backward(device: str) -> None:
    w = dt.nn.Parameter(dt.ones(2, device=device))
    loss = (w * w).sum()
    w.data.clamp_(0.0, 0.5)
    loss.backward()
    assert w.grad is not None and w.grad.tolist() == [1.0, 1.0]  # 2 * 0.5


def test_elsewhere_they_are(device: str) -> None:
    dt._C._as_torch(False)
    x, scale = dt.ones(2, device=device, requires_grad=True), dt.ones(2, device=device)
    y = scale * x
    scale.data[0] = 5.0
    with pytest.raises(dt.GradientError, match="modified by an inplace operation"):
        y.sum().backward()
