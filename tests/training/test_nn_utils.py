"""Clipping, and parameters as one vector: PyTorch's numbers, no hidden waits, errors that name the array."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import CUDA_DEVICES, DEVICES, calls

import devtensor as dt
from devtensor.nn import utils

SHAPES = [(3, 4), (), (2, 1, 5)]


def parameters(device: str = "cpu", dtype: Any = dt.float32) -> list[dt.nn.Parameter]:
    """Those of them with a gradient have 3 times their values; the last has none."""
    random = np.random.default_rng(0)
    params = [dt.nn.Parameter(dt.tensor(random.standard_normal(s)).to(device, dtype)) for s in SHAPES]
    for p in params[:-1]:
        p.grad = p.detach() * 3
    return params


def in_pytorch(torch: Any) -> list[Any]:
    params = [torch.tensor(np.asarray(p.detach().numpy()).copy(), requires_grad=True) for p in parameters()]
    for p in params[:-1]:
        p.grad = p.detach() * 3
    return params


def same(mine: list[Any], theirs: list[Any]) -> None:
    for p, q in zip(mine, theirs, strict=True):
        assert (p.grad is None) == (q.grad is None)
        if q.grad is not None:
            np.testing.assert_allclose(p.grad.cpu().numpy(), q.grad.numpy(), rtol=1e-6)


@pytest.mark.parametrize("order", [2, 2.0, 1, 3, 0.5, float("inf"), -float("inf"), 0])
@pytest.mark.parametrize("device", DEVICES)
def test_norms(device: str, order: float) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    mine, theirs = parameters(device), in_pytorch(torch)
    got = utils.clip_grad_norm_(mine, 0.7, norm_type=order)
    want = torch.nn.utils.clip_grad_norm_(theirs, 0.7, norm_type=order)
    assert (str(got.device), got.shape) == (device, ())
    assert got.item() == pytest.approx(want.item(), rel=1e-6)
    same(mine, theirs)


@pytest.mark.parametrize("device", DEVICES)
def test_values(device: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    mine, theirs = parameters(device), in_pytorch(torch)
    utils.clip_grad_value_(mine, 0.5)
    torch.nn.utils.clip_grad_value_(theirs, 0.5)
    same(mine, theirs)


def test_small_gradients_stay() -> None:
    p = dt.nn.Parameter(dt.ones(2))
    p.grad = given = dt.tensor([0.3, -0.4])
    assert utils.clip_grad_norm_(p, 1.0).item() == pytest.approx(0.5)
    assert p.grad is given and given.tolist() == dt.tensor([0.3, -0.4]).tolist()
    with pytest.warns(dt.GradientWarning, match="none of the 1 parameter has a gradient"):
        assert utils.clip_grad_norm_([dt.nn.Parameter(dt.ones(1))], 1.0).item() == 0.0


@pytest.mark.parametrize("dtype", [dt.float16, dt.bfloat16])
def test_half_gradients(dtype: Any) -> None:
    (p,) = [dt.nn.Parameter(dt.zeros(300, dtype=dtype))]
    p.grad = dt.full((300,), 256.0, dtype=dtype)  # its squares do not fit float16
    total = utils.clip_grad_norm_([p], 64.0)
    assert total.dtype == dtype and total.item() == pytest.approx(256 * 300**0.5, rel=1e-2)
    assert p.grad.dtype == dtype and p.grad[0].item() == pytest.approx(64 / 300**0.5, rel=1e-2)


@pytest.mark.parametrize(
    "call",
    [
        lambda params: utils.clip_grad_norm_(params, 0.5),
        lambda params: utils.clip_grad_value_(params, 0.5),
        lambda params: utils.vector_to_parameters(utils.parameters_to_vector(params), params),
    ],
    ids=["norm", "value", "vector"],
)
def test_nobody_waits(call: Callable[[Any], Any]) -> None:
    params = parameters(CUDA_DEVICES[0])
    with calls(synchronizations=0), dt.forbid_transfers():
        call(params)


def test_several_devices() -> None:
    """The norms, which are numbers, move; gradients do not."""
    params = [dt.nn.Parameter(dt.zeros(1, device=device)) for device in DEVICES]
    for p in params:
        p.grad = dt.full((1,), 2.0, device=p.device)
    total = utils.clip_grad_norm_(params, 1.0)
    assert str(total.device) == "cpu" and total.item() == pytest.approx(2 * len(DEVICES) ** 0.5)
    assert [str(p.grad.device) for p in params] == [*DEVICES]
    assert [p.grad.item() for p in params] == pytest.approx([len(DEVICES) ** -0.5] * len(DEVICES), rel=1e-5)


def test_not_finite() -> None:
    p = dt.nn.Parameter(dt.ones(2))
    p.grad = dt.tensor([float("inf"), 1.0])
    with pytest.raises(
        RuntimeError, match=r"The total norm of order 2.0 for gradients from `parameters` is non-finite"
    ):
        utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True)
    assert p.grad.tolist() == [float("inf"), 1.0]
    assert utils.clip_grad_norm_([p], 1.0).item() == float("inf")


def test_clipping_between_the_steps_of_two_optimizers_is_no_mistake() -> None:
    weight, alone = dt.nn.Parameter(dt.ones(2)), dt.nn.Parameter(dt.ones(2))
    first, second = dt.optim.SGD([weight, alone], 0.1), dt.optim.SGD([weight], 0.1)
    (weight * 3 + alone).sum().backward()
    first.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        utils.clip_grad_norm_([weight], 1.0)
    second.step()
    with pytest.warns(dt.GradientWarning, match="has used the gradients of the 1 parameter"):
        utils.clip_grad_norm_([alone], 1.0)


def test_a_used_up_generator_warns() -> None:
    found = dt.nn.Linear(2, 2).parameters()
    list(found)
    with pytest.warns(UserWarning, match="`parameters` is an empty generator") as seen:
        utils.clip_grad_norm_(found, 1.0)
    assert seen[0].filename == __file__


@pytest.mark.parametrize("device", DEVICES)
def test_vectors(device: str) -> None:
    params = parameters(device)
    values = [p.tolist() for p in params]
    addresses = [p.data_ptr() for p in params]
    vector = utils.parameters_to_vector(params)
    assert vector.tolist() == [x for p in params for x in p.detach().reshape(-1).tolist()]
    for p in params:
        p.detach().zero_()
    utils.vector_to_parameters(dt.cat([vector, dt.ones(3, device=device)]), iter(params))
    assert [p.tolist() for p in params] == values
    assert [p.data_ptr() for p in params] == addresses


def test_a_vector_of_parameters_has_a_gradient() -> None:
    params = [dt.ones(2, requires_grad=True), dt.ones(1, 3, requires_grad=True)]
    utils.parameters_to_vector(params).sum().backward()
    assert [p.grad.tolist() for p in params] == [[1, 1], [[1, 1, 1]]]


def one(*shape: int, **options: Any) -> dt.nn.Parameter:
    return dt.nn.Parameter(dt.ones(shape, **options))


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no array": (lambda: utils.clip_grad_norm_([one(1), 3], 1.0), TypeError, r"'parameters\[1\]' must be DeviceArray"),  # type: ignore[list-item]
    "no number": (lambda: utils.clip_grad_norm_([one(1)], "1"), TypeError, "'max_norm' must be a number, not str"),  # type: ignore[arg-type]
    "no limit": (lambda: utils.clip_grad_value_([one(1)], None), TypeError, "'clip_value' must be a number"),  # type: ignore[arg-type]
    "no vector": (lambda: utils.vector_to_parameters([1.0], [one(1)]), TypeError, "'vec' must be DeviceArray"),  # type: ignore[arg-type]
    "devices apart": (
        lambda: utils.parameters_to_vector([one(1), one(1, device=CUDA_DEVICES[0])]),
        dt.DeviceMismatchError,
        "Expected all tensors to be on the same device",
    ),
    "device": (
        lambda: utils.vector_to_parameters(dt.ones(2), [one(1), one(1, device=CUDA_DEVICES[0])]),
        dt.DeviceMismatchError,
        r"\(vector_to_parameters: vec on cpu, parameters\[1\] on cuda:0\)",
    ),
    "dtype": (
        lambda: utils.vector_to_parameters(dt.ones(2), [one(2, dtype=dt.float64)]),
        dt.DTypeMismatchError,
        r"vec and parameters\[0\] must have the same dtype",
    ),
    "too short": (
        lambda: utils.vector_to_parameters(dt.zeros(3), [one(2), one(2)]),
        dt.ShapeMismatchError,
        "exceeds dimension size",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_is_refused(name: str) -> None:
    call, kind, text = WRONG[name]
    with pytest.raises(kind, match=text):
        call()


def test_a_refused_vector_changes_nothing() -> None:
    first, second = one(2), one(2)
    with pytest.raises(dt.ShapeMismatchError):
        utils.vector_to_parameters(dt.zeros(3), [first, second])
    assert first.tolist() == [1, 1]
