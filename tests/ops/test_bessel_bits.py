"""Bessel functions, Kaiser's window, shifts of bits, and real numbers as complex ones: beside PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import devtensor as dt

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed")
NUMBERS = [0.0, -0.0, 1e-12, 0.3, -0.7, 2.0, 7.9, 8.0, 8.1, -9.0, 30.0, 700.0, -1000.0, float("inf"), float("nan")]


def test_bessel_functions(device: str) -> None:
    for name in ("i0", "i0e", "i1", "i1e"):
        for dtype, rtol in (("float64", 1e-14), ("float32", 2e-6), ("float16", 2e-3), ("int64", 2e-6)):
            numbers = [n for n in NUMBERS if dtype != "int64" or abs(n) < 100]
            x = torch.tensor(numbers).to(getattr(torch, dtype))
            ours = getattr(dt.special, name)(dt.from_numpy(x.numpy()).to(device))
            theirs = getattr(torch.special, name)(x)
            assert str(ours.dtype).rpartition(".")[2] == str(theirs.dtype).rpartition(".")[2]
            np.testing.assert_allclose(ours.cpu().numpy(), theirs.numpy(), rtol=rtol, atol=1e-300, err_msg=name)
        x = torch.tensor(NUMBERS[2:12], dtype=torch.float64, requires_grad=True)
        y = dt.tensor(NUMBERS[2:12], dtype=dt.float64, device=device, requires_grad=True)
        getattr(torch.special, name)(x).sum().backward()
        getattr(dt.special, name)(y).sum().backward()
        assert y.grad is not None
        np.testing.assert_allclose(y.grad.cpu().numpy(), x.grad.numpy(), rtol=1e-10, err_msg=name)


def test_kaiser_window(device: str) -> None:
    for length in (0, 1, 2, 7, 16):
        for periodic in (True, False):
            for beta in (0.0, 3.5, 12.0):
                ours = dt.kaiser_window(length, periodic, beta, dtype=dt.float64, device=device)
                theirs = torch.kaiser_window(length, periodic, beta, dtype=torch.float64)
                np.testing.assert_allclose(ours.cpu().numpy(), theirs.numpy(), rtol=1e-9)


def test_shifts(device: str) -> None:
    for dtype in ("uint8", "int8", "int16", "int32", "int64"):
        limits = torch.iinfo(getattr(torch, dtype))
        values = [limits.min, limits.max, 0, 1, 5, limits.max // 3]
        values += [-1, -8] if limits.min else [200]
        places = [*range(limits.bits + 2), *([-1, limits.min] if limits.min else [255])]
        a = torch.tensor(values, dtype=getattr(torch, dtype)).unsqueeze(1)
        b = torch.tensor(places, dtype=getattr(torch, dtype))
        for name in ("bitwise_left_shift", "bitwise_right_shift"):
            x, y = (dt.from_numpy(z.numpy()).to(device) for z in (a, b))
            wanted = getattr(torch, name)(a, b).tolist()
            assert getattr(dt, name)(x, y).tolist() == wanted, (name, dtype)
            assert getattr(x, name)(3).tolist() == getattr(a, name)(3).tolist()
            assert getattr(dt, name)(5, y).tolist() == getattr(torch, name)(5, b).tolist()
    for wrong in ((dt.ones(2), 1), (dt.ones(2, dtype=dt.bool), dt.ones(2, dtype=dt.bool))):
        with pytest.raises(dt.DTypeMismatchError):
            dt.bitwise_left_shift(*wrong)


def test_real_numbers_are_complex_ones_too(device: str) -> None:
    x = dt.tensor([-1.0, 0.0, -0.0, float("nan")], device=device)
    for name in ("real", "conj", "conj_physical", "resolve_conj"):
        assert getattr(dt, name)(x) is x
    assert str(x.angle().tolist()) == str(torch.tensor([-1.0, 0.0, -0.0, float("nan")]).angle().tolist())
    with pytest.raises(RuntimeError, match="complex"):
        dt.imag(x)
