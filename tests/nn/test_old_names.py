"""PyTorch's first spellings, and the switches that change no result."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from support import CUDA_DEVICES, DEVICES

import devtensor as dt

FLOATS, INTS = ("float16", "bfloat16", "float32", "float64"), ("uint8", "int8", "int16", "int32", "int64")
CLASSES = {
    "Float": dt.float32, "Double": dt.float64, "Half": dt.float16, "BFloat16": dt.bfloat16, "Long": dt.int64,
    "Int": dt.int32, "Short": dt.int16, "Char": dt.int8, "Byte": dt.uint8, "Bool": dt.bool,
}  # fmt: skip


def test_tensor() -> None:
    assert dt.Tensor(2, 3).shape == (2, 3) and dt.Tensor().shape == (0,) and dt.Tensor(2, 3).dtype == dt.float32
    assert dt.Tensor([1, 2]).tolist() == [1.0, 2.0] and dt.Tensor([[1, 2]]).dtype == dt.float32
    x = dt.ones(2)
    assert dt.Tensor(x).data_ptr() == x.data_ptr()
    with pytest.raises(TypeError, match=r"Tensor\(\): expected an array of devtensor.float32 on cpu, but got"):
        dt.Tensor(x.long())
    with pytest.raises(TypeError):
        dt.Tensor("a")  # type: ignore[arg-type]


@pytest.mark.parametrize("word", CLASSES)
def test_typed_classes(word: str) -> None:
    home, gpu = getattr(dt, f"{word}Tensor"), getattr(dt.cuda, f"{word}Tensor")
    x, y = home([1, 0]), gpu(2, 3)
    assert (x.dtype, x.device.type, x.shape) == (CLASSES[word], "cpu", (2,))
    assert (y.dtype, y.device.type, y.shape) == (CLASSES[word], "cuda", (2, 3))
    assert isinstance(x, home) and not isinstance(x, gpu) and not isinstance(y, home) and isinstance(y, gpu)
    assert not isinstance(1, home)
    assert x.type() == f"torch.{word}Tensor" and y.type() == f"torch.cuda.{word}Tensor"


@pytest.mark.parametrize("device", DEVICES)
def test_type(device: str) -> None:
    x = dt.tensor([1.5, 0.0], device=device)
    assert x.type(dt.int64).dtype == dt.int64 and x.type("int32").dtype == dt.int32
    same = "torch.cuda.LongTensor" if device != "cpu" else "torch.LongTensor"
    assert x.type(same).tolist() == [1, 0] and x.type(same).device == x.device
    moved = x.type(dt.cuda.HalfTensor if device == "cpu" else dt.HalfTensor)  # type: ignore[attr-defined]
    assert moved.dtype == dt.float16 and moved.device.type != x.device.type
    for wrong in ("torch.WordTensor", "torch.mps.FloatTensor", 3):
        with pytest.raises(TypeError):
            x.type(wrong)


def test_variable() -> None:
    x = dt.ones(2)
    assert dt.autograd.Variable(x).data_ptr() == x.data_ptr()
    assert dt.autograd.Variable(x, requires_grad=True).requires_grad and not x.requires_grad
    with pytest.warns(UserWarning, match="volatile was removed"):
        assert dt.autograd.Variable(x, volatile=True) is not None


def test_writes_to_views_of_what_nobody_else_sees(device: str) -> None:
    """Are on record for a Variable, and for the result of detach(), of an array that is gone."""
    weight = dt.ones(3, 2, device=device, requires_grad=True)
    for make in (dt.autograd.Variable, dt.DeviceArray.detach):
        for tracked in (False, True):
            x = make(weight * 0 if tracked else dt.zeros(3, 2, device=device))
            assert not x.requires_grad and x.is_leaf
            for i in range(3):
                x[i] = weight[i] * 2
            turned = x.t()
            turned[1, 2:] = 0.0
            turned[0, :1] *= 5
            weight.grad = None
            (turned * dt.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], device=device)).sum().backward()
            assert weight.grad is not None and weight.grad.tolist() == [[10, 8], [4, 10], [6, 0]]


def test_what_others_see_stays_apart(device: str) -> None:
    source, weight = dt.zeros(3, device=device), dt.ones((), device=device, requires_grad=True)
    x = dt.autograd.Variable(source)
    part = x[:2]
    with pytest.raises(dt.GradientError):
        part[0] = weight
    view = source[1:]
    view[0] = weight
    assert source.requires_grad and not x.requires_grad and x.tolist() == [0, 1, 0]
    del source, view, part
    x[:2].mul_(weight)
    assert x.requires_grad
    found = weight * dt.ones(2, device=device)
    assert not dt.autograd.Variable(found).requires_grad and dt.autograd.Variable(found).is_leaf


@pytest.mark.parametrize("name", FLOATS + INTS)
def test_limits(name: str) -> None:
    torch = pytest.importorskip("torch")
    kind = "finfo" if name in FLOATS else "iinfo"
    ours, theirs = getattr(dt, kind)(getattr(dt, name)), getattr(torch, kind)(getattr(torch, name))
    names = ("bits", "max", "min", "dtype")
    names += ("eps", "tiny", "smallest_normal", "resolution") if kind == "finfo" else ()
    assert [getattr(ours, one) for one in names] == [getattr(theirs, one) for one in names]
    assert repr(ours).startswith(f"{kind}(") and name in repr(ours)


def test_limits_of_the_other_kind() -> None:
    assert dt.finfo().dtype == "float32"
    with pytest.raises(TypeError, match="iinfo is for integers"):
        dt.finfo(dt.int64)
    with pytest.raises(TypeError, match="finfo is for floats"):
        dt.iinfo(dt.float32)


def test_backends() -> None:
    cudnn, matmul = dt.backends.cudnn, dt.backends.cuda.matmul
    assert (cudnn.enabled, cudnn.benchmark, cudnn.deterministic) == (True, False, True)
    cudnn.benchmark = True
    assert cudnn.benchmark
    cudnn.benchmark = False
    assert cudnn.is_available() == dt.cuda.is_available() and not dt.backends.mps.is_available()
    assert not dt.backends.mps.is_built()
    try:
        matmul.allow_tf32 = True
        assert dt.get_float32_precision() == "tf32" and cudnn.allow_tf32
    finally:
        matmul.allow_tf32 = False
    assert dt.get_float32_precision() == "highest"
    with pytest.raises(AttributeError, match="no switch 'fastest'"):
        cudnn.fastest = True
    assert "cudnn" in repr(cudnn)


def test_precision_of_products() -> None:
    try:
        for word, read in (("high", "high"), ("medium", "high"), ("highest", "highest")):
            dt.set_float32_matmul_precision(word)
            assert dt.get_float32_matmul_precision() == read
    finally:
        dt.set_float32_precision("highest")
    with pytest.raises(ValueError, match="must be 'highest', 'high' or 'medium'"):
        dt.set_float32_matmul_precision("fast")


def test_compile_says_once_that_it_does_nothing() -> None:
    from devtensor._names import switches

    switches._say_that_nothing_is_compiled.cache_clear()

    def double(x: Any) -> Any:
        return x * 2

    with pytest.warns(UserWarning, match="compiles nothing") as caught:
        assert dt.compile(double) is double and dt.compile(mode="max-autotune")(double) is double
    assert len(caught) == 1 and caught[0].filename == __file__


def test_switches_that_change_nothing() -> None:
    dt.use_deterministic_algorithms(True, warn_only=True)
    assert dt.are_deterministic_algorithms_enabled()
    dt.cuda.manual_seed(3)
    one = dt.rand(2)
    dt.cuda.manual_seed_all(3)
    assert dt.rand(2).tolist() == one.tolist()
    assert dt.cuda.is_bf16_supported() == bool(CUDA_DEVICES)
    assert dt.cuda.OutOfMemoryError is dt.OutOfMemoryError
    with dt.inference_mode():
        assert dt.is_inference_mode_enabled()


NAMES = ("constant", "dirac", "eye", "kaiming_normal", "kaiming_uniform", "normal", "uniform", "xavier_normal",
         "xavier_uniform")  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_old_names_of_init(name: str) -> None:
    x = dt.zeros(3, 3, 3) if name == "dirac" else dt.zeros(3, 3)
    given = (2.0,) if name == "constant" else ()
    with pytest.warns(FutureWarning, match=f"nn.init.{name}` is now deprecated in favor of `nn.init.{name}_`"):
        assert getattr(dt.nn.init, name)(x, *given) is x
    assert x.abs().sum().item() > 0


@pytest.mark.parametrize("device", DEVICES)
def test_trunc_normal(device: str) -> None:
    x = dt.empty(200_000, device=device)
    assert dt.nn.init.trunc_normal_(x, 1.0, 2.0, -1.0, 3.0) is x
    assert x.amin().item() >= -1.0 and x.amax().item() <= 3.0
    # mean 1 by symmetry; the variance of a normal number between -1 and 1 standard deviations is 0.2911
    assert x.mean().item() == pytest.approx(1.0, abs=0.01) and x.var().item() == pytest.approx(4 * 0.2911, rel=0.01)
    below = (x < 0.0).double().mean().item()
    assert below == pytest.approx((0.308538 - 0.158655) / 0.682689, abs=0.005)
    half = dt.nn.init.trunc_normal_(dt.empty(10, dtype=dt.float16, device=device), std=0.02)
    assert half.dtype == dt.float16 and half.isfinite().all().item()


def test_warnings_of_old_names_name_the_line() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dt.nn.init.normal(dt.empty(2))
    assert caught[0].filename == __file__
