"""Functions of PyTorch's top level that devtensor finds elsewhere give what PyTorch gives."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import devtensor as dt
from devtensor._names import torch_names

torch = pytest.importorskip("torch")

# In place, of one array; the others with their arguments.
OTHERS = """
clamp_max_(x, 0.5); clamp_min_(x, 0.5); clamp_(x, 0.2, 0.6); clip_(x, 0.2, 0.6)
fill_(x, 2.0); zero_(x); as_strided_(x, (2,), (1,)); index_put_(x, (i,), y[0]); xlogy_(x, y); logit_(x, 0.1)
round_(x); resize_as_(x, x[:2]); nan_to_num_(x, 1.0); detach_(x)
"""
CALLS = """
binary_cross_entropy_with_logits(x, y); binary_cross_entropy_with_logits(x, y, None, None, 2); kl_div(x, y)
kl_div(x, y, 0, log_target=True); cosine_embedding_loss(x, y, s, 0.1, 2); hinge_embedding_loss(x, s3, 1.0, 0)
margin_ranking_loss(x[0], y[0], s, 0.5); poisson_nll_loss(x, y, True, False, 1e-8, 1)
triplet_margin_loss(x, y, x * 2, 0.5, 2, 1e-6, False, 2)
ctc_loss(x.reshape(3, 1, 3).log_softmax(2), i.reshape(1, 3)[:, :1] + 1, (3,), (1,), 0, 1, False)
constant_pad_nd(x, (1, 2), 0.5); adaptive_max_pool1d(x[None], 2)[0]; adaptive_max_pool1d(x[None], 2)[1]
max_pool1d_with_indices(x[None], 2)[1]
grid_sampler(x[None, None], x[None, :, :2].unsqueeze(0)[0][:, None], 0, 1, False)
grid_sampler_2d(x[None, None], x[None, :, :2][:, None], 1, 0, True)
grid_sampler_3d(x[None, None, None], x[None, None, None], 0, 0, True)
affine_grid_generator(x[None, :2], (1, 1, 2, 2), False); rsub(x, y); rsub(x, 3.0, alpha=2); unsafe_chunk(x, 2)[1]
unsafe_split(x, 2)[0]; unsafe_split_with_sizes(x, (1, 2))[1]; fill(x, 2.0); dropout_(x, 0.5, False)
alpha_dropout_(x, 0.5, False); feature_alpha_dropout_(x[None], 0.5, False); feature_dropout(x[None], 0.5, False)
feature_dropout_(x[None], 0.0, True)
as_strided_copy(x, (2, 2), (1, 2)); detach_copy(x); diagonal_copy(x, 1); expand_copy(x[0], (2, 3))
permute_copy(x, (1, 0)); select_copy(x, 1, 2); split_copy(x, 2)[1]; split_with_sizes_copy(x, (1, 2), 1)[1]
squeeze_copy(x[None]); t_copy(x); transpose_copy(x, 0, 1); unbind_copy(x, 1)[2]
unfold_copy(x, 0, 2, 1); unsqueeze_copy(x, 1); view_copy(x, (9,))
as_strided_scatter(x, y[:2, :2], (2, 2), (1, 2), 1); frobenius_norm(x, (0, 1)); frobenius_norm(x, (1,), True)
norm_except_dim(x, 2, 1); norm_except_dim(x, 2, -1); cond(True, lambda x: x * 2, lambda x: x, (x,))
"""
OF_LAPACK = """
nuclear_norm(x); nuclear_norm(x[None], (1, 2), True); triangular_solve(x, y)[0]; triangular_solve(x, y, False, True)[0]
triangular_solve(x, y, unitriangular=True)[1]; svd_lowrank(x, 3)[1]; pca_lowrank(x)[1]
svd_lowrank(x[:2], 2, M=y[:2])[1]
"""
# Neither written in place nor compared by elements.
MODES = set(torch_names.MODES) | {"typename", "GradScaler"}


def split(text: str) -> list[str]:
    return [call.strip() for call in text.replace("\n", ";").split(";") if call.strip()]


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_they_give_what_pytorch_gives(device: str) -> None:
    arrays = {
        "x": np.array([[0.1, 0.9, 0.4], [0.5, 0.3, 0.7], [0.8, 0.2, 0.6]]),
        "y": np.array([[0.3, 0.6, 0.2], [0.9, 0.4, 0.1], [0.7, 0.5, 0.8]]),
        "s": np.array([1.0, -1.0, 1.0]),
        "s3": np.array([[1.0, -1.0, 1.0]] * 3),
        "i": np.array([0, 1, 1]),
    }
    named = {call.partition("(")[0] for call in split(OTHERS + CALLS + OF_LAPACK)} | MODES
    in_place = [name for name in torch_names.names() if name not in named]
    of_lapack = split(OF_LAPACK) if device == "cpu" else []
    wrong = []
    for call in [*split(OTHERS), *split(CALLS), *of_lapack, *(f"{name}(x)" for name in in_place)]:
        if call.partition("(")[0] in {"gcd_", "lcm_", "ldexp_"}:
            continue
        found = []
        for lib, where in ((torch, "cpu"), (dt, device)):
            names: dict[str, Any] = {name: lib.tensor(value.tolist()).to(where) for name, value in arrays.items()}
            names = {key: value.double() if key != "i" else value for key, value in names.items()}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = eval(f"lib.{call}", {"lib": lib, **names})
            found.append(result.detach().cpu().numpy())
        if found[0].shape != found[1].shape or not np.allclose(found[0], found[1], equal_nan=True):
            wrong.append((call, *found))
    assert wrong == []


def test_wrong_numbers_are_refused() -> None:
    x = dt.ones(2)
    for call in (lambda: dt.kl_div(x, x, 3), lambda: dt.kl_div(x, x, True), lambda: dt.grid_sampler(x, x, 7, 0, True)):
        with pytest.raises(ValueError, match="must be one of"):
            call()
    with pytest.raises(AttributeError):
        dt.cosine_(x)
    assert dt.typename(x) == "devtensor.DeviceArray" and dt.typename(3) == "int"


def test_a_size_is_a_size(device: str) -> None:
    x = dt.ones(2, 3, device=device)
    for make in (dt.Tensor, dt.FloatTensor, dt.LongTensor):
        assert make(x.size()).shape == make(x.shape).shape == (2, 3)
        assert make(x.size() + dt.Size([4])).shape == (2, 3, 4)
        assert make(x.size()[:0]).shape == () and make(dt.Size([2, 0])).shape == (2, 0)
        assert make((2, 3)).tolist() == make([2, 3]).tolist() == [2, 3]  # numbers
    assert dt.cuda.FloatTensor(x.size()).is_cuda and x.new(x.size()).device == x.device


def test_type_as_moves(device: str) -> None:
    x = dt.tensor([1.5, 2.5], requires_grad=True)
    y = x.type_as(dt.ones(1, dtype=dt.float64, device=device))
    assert (y.dtype, str(y.device), y.tolist()) == (dt.float64, device, [1.5, 2.5])
    y.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [1.0, 1.0] and x.type_as(dt.ones(1)) is x


def test_names_that_old_schedules_and_optimizers_import() -> None:
    from devtensor.optim.lr_scheduler import LRScheduler, _LRScheduler
    from devtensor.optim.optimizer import Optimizer, required

    assert _LRScheduler is LRScheduler
    with pytest.raises(ValueError, match="didn't specify a value of required optimization parameter lr"):
        Optimizer([dt.ones(1, requires_grad=True)], {"lr": required})


def test_copies_share_no_memory() -> None:
    x = dt.ones(2, 3)
    for name in torch_names._COPIES:
        arguments = {
            "as_strided": ((2,), (1,)), "expand": ((2, 3),), "permute": ((1, 0),), "select": (0, 0), "split": (1,),
            "split_with_sizes": ((1, 1),), "transpose": (0, 1), "unfold": (0, 1, 1), "unsqueeze": (0,), "view": (6,),
        }.get(name, ())  # fmt: skip
        found = getattr(dt, f"{name}_copy")(x, *arguments)
        for part in found if isinstance(found, tuple) else (found,):
            part.zero_()
    assert x.tolist() == [[1.0] * 3] * 2


def test_frequencies_are_pytorchs(device: str) -> None:
    for n in (1, 4, 5):
        for name in ("fftfreq", "rfftfreq"):
            ours, theirs = (getattr(lib.fft, name)(n, 0.5) for lib in (dt, torch))
            assert ours.tolist() == pytest.approx(theirs.tolist()), (name, n)
            assert str(getattr(dt.fft, name)(n, device=device).device) == device
    x = torch.arange(12.0).view(3, 4)
    for name in ("fftshift", "ifftshift"):
        for dim in (None, 0, (-1,), (0, 1)):
            ours = getattr(dt.fft, name)(dt.tensor(x.tolist(), device=device), dim)
            assert ours.tolist() == getattr(torch.fft, name)(x, dim).tolist(), (name, dim)
    with pytest.raises(NotImplementedError, match="no Fourier transforms"):
        dt.fft.rfft(dt.ones(2))
    with pytest.raises(RuntimeError, match="n must be at least 1, but got 0"):
        dt.fft.fftfreq(0)


def test_modes() -> None:
    before = dt.get_default_dtype(), dt.get_default_device()
    try:
        dt.set_default_tensor_type("torch.DoubleTensor")
        assert dt.zeros(1).dtype is dt.float64
        dt.set_default_tensor_type(dt.cuda.HalfTensor)
        assert (dt.get_default_dtype(), dt.get_default_device().type) == (dt.float16, "cuda")
        for wrong in (dt.LongTensor, "torch.LongTensor", "FloatTensor", 3):
            with pytest.raises(TypeError, match="a class of arrays of floats"):
                dt.set_default_tensor_type(wrong)
    finally:
        dt.set_default_dtype(before[0])
        dt.set_default_device(before[1])
    assert not dt.is_anomaly_enabled() and dt.is_anomaly_check_nan_enabled()
    with dt.autograd.detect_anomaly(check_nan=False):
        assert dt.is_anomaly_enabled() and not dt.is_anomaly_check_nan_enabled()
    dt.set_anomaly_enabled(True)
    assert dt.is_anomaly_enabled()
    dt.set_anomaly_enabled(False)
    assert dt.get_autocast_gpu_dtype() is dt.float16 and dt.get_autocast_cpu_dtype() is dt.bfloat16
    assert not dt.is_autocast_cpu_enabled() and dt.is_autocast_cache_enabled()
    layer = dt.nn.Linear(2, 2)
    with dt.autocast("cpu"):
        assert dt.is_autocast_cpu_enabled()
        assert layer(dt.ones(1, 2)).dtype is dt.bfloat16
        dt.clear_autocast_cache()
        assert layer(dt.ones(1, 2)).dtype is dt.bfloat16
    assert dt.GradScaler is dt.amp.GradScaler
    assert dt.get_num_interop_threads() == 1 and dt.get_deterministic_debug_mode() == 2
    for name, good, bad in (
        ("set_num_interop_threads", 4, 0),
        ("set_deterministic_debug_mode", "warn", "loud"),
    ):
        assert getattr(dt, name)(good) is None
        with pytest.raises(RuntimeError):
            getattr(dt, name)(bad)
    assert not dt.set_flush_denormal(True) and dt.set_warn_always(True) is None
    asked = ("is_warn_always_enabled", "is_deterministic_algorithms_warn_only_enabled", "is_vulkan_available")
    assert not any(getattr(dt, name)() for name in asked)
    x = dt.ones(1)
    assert not any(getattr(x, f"is_{kind}") for kind in "nested xla sparse_csr mkldnn xpu ipu mtia maia vulkan".split())


def test_low_rank() -> None:
    dt.manual_seed(0)
    A = dt.randn(9, 3, dtype=dt.float64) @ dt.randn(3, 6, dtype=dt.float64)
    for whole in (A, A.mT, A.expand(2, 9, 6)):
        U, S, V = dt.svd_lowrank(whole, 4)
        np.testing.assert_allclose((U * S.unsqueeze(-2) @ V.mT).numpy(), whole.numpy(), atol=1e-10)
    assert dt.pca_lowrank(A).S.shape == (6,)
    for call in (lambda: dt.svd_lowrank(A, 7), lambda: dt.svd_lowrank(A, 2, -1)):
        with pytest.raises(ValueError, match="must be non-negative integer"):
            call()
    x = dt.randn(4, 3, dtype=dt.float64, requires_grad=True)
    dt.svd_lowrank(x, 3).S.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), dt.autograd.grad(dt.linalg.svdvals(x).sum(), x)[0].numpy(), atol=1e-9)
