"""as_strided, nextafter, and arrays where creators take numbers."""

from __future__ import annotations

import numpy as np
import pytest

import devtensor as dt


def test_as_strided_is_a_view(device: str) -> None:
    x = dt.arange(12, device=device)[2:]
    with dt.forbid_transfers():
        windows = x.as_strided((3, 4), (2, 1))
        front = dt.as_strided(x, (2,), (1,), 0)
    assert windows.tolist() == [[2, 3, 4, 5], [4, 5, 6, 7], [6, 7, 8, 9]] and windows.stride() == (2, 1)
    front.fill_(-1)
    assert front.tolist() == [-1, -1] and dt.as_strided(x, (3,), (1,), 0).tolist() == [-1, -1, 2]
    assert x.detach().as_strided_((2, 2), (4, 1), 1).tolist() == [[-1, 2], [5, 6]]
    assert x.as_strided((0, 3), (1, 1), 12).shape == (0, 3) and x.as_strided((), ()).item() == 2


def test_as_strided_stays_in_the_memory(device: str) -> None:
    x = dt.arange(12, device=device)
    for arguments in (((13,), (1,)), ((2, 2), (11, 1)), ((1,), (1,), 12), ((2,), (2**62,)), ((2**40, 2**40), (1, 1))):
        with pytest.raises(dt.ShapeMismatchError, match="out of bounds for the memory of input, which holds 12"):
            dt.as_strided(x, *arguments)
    for wrong, text in ((((2,), (1, 1)), "mismatch in length"), (((2,), (-1,)), "stride must hold numbers from 0")):
        with pytest.raises(RuntimeError, match=text):
            dt.as_strided(x, *wrong)  # type: ignore[arg-type]


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.1, 65504.0, 5e-324, 1e-45, 6e-8, -6e-8, 1e-40, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_nextafter(dtype: str, device: str) -> None:
    values = np.array([*SPECIAL, np.finfo(dtype).max, -np.finfo(dtype).max, np.finfo(dtype).tiny]).astype(dtype)
    a, b = np.repeat(values, len(values)), np.tile(values, len(values))
    got = dt.nextafter(dt.array(a, device=device), dt.array(b, device=device)).cpu().numpy()
    with np.errstate(all="ignore"):
        want = np.where(a == b, b, np.nextafter(a, b))  # of equal ones NumPy's halves give the first
    number = ~np.isnan(want)
    assert np.isnan(got[~number]).all() and got[number].tobytes() == want[number].tobytes()


def test_creators_take_arrays_of_their_device(device: str) -> None:
    low, high = dt.tensor(-1.0, device=device), dt.tensor(2.5, dtype=dt.float64, device=device)
    with dt.forbid_transfers():
        made = dt.linspace(low, high, 7, device=device)
        whole = dt.linspace(low, high, 3, dtype=dt.int64, device=device)
        powers = dt.logspace(0, high, 3, device=device)
        full = dt.full((2,), high, device=device), dt.full_like(low, high), low.new_full((2,), whole[0])
    assert made.tolist() == dt.linspace(-1, 2.5, 7).tolist() and whole.tolist() == [-1, 0, 2]
    assert powers.tolist() == dt.logspace(0, 2.5, 3).tolist() and dt.linspace(low, 5, 0, device=device).shape == (0,)
    assert [x.tolist() for x in full] == [[2.5, 2.5], 2.5, [-1, -1]]
    assert [x.dtype for x in full] == [dt.float32] * 3 and dt.full((), whole[0], device=device).dtype == dt.int64
    wrong = dt.ones(2, device=device)
    with pytest.raises(dt.ShapeMismatchError, match="linspace"):
        dt.linspace(0, wrong, 3, device=device)
    for value in (wrong, low.clone().requires_grad_()):
        with pytest.raises(TypeError, match="'fill_value' must be a number"):
            dt.full((2,), value, device=device)


def test_creators_refuse_arrays_of_another_device(cuda: str) -> None:
    x = dt.tensor(2.0, device=cuda)
    for make, op in (
        (lambda: dt.full((2,), x), "full"),
        (lambda: dt.full_like(dt.ones(2), x), "full_like"),
        (lambda: dt.ones(1, device=cuda).new_full((2,), dt.tensor(1.0)), "new_full"),
        (lambda: dt.linspace(0, x, 3), "linspace"),
        (lambda: dt.logspace(x, 1, 3), "logspace"),
    ):
        with pytest.raises(dt.DeviceMismatchError, match=rf"\({op}: out on "):
            make()


def test_a_diagonal_is_filled(device: str) -> None:
    torch = pytest.importorskip("torch")
    for shape, wrap in (((3, 4), False), ((7, 3), True), ((7, 3), False), ((3, 3, 3), False)):
        got = dt.zeros(shape, device=device).fill_diagonal_(2.0, wrap)
        assert got.tolist() == torch.zeros(shape).fill_diagonal_(2.0, wrap).tolist(), (shape, wrap)
    with pytest.raises(dt.ShapeMismatchError):
        dt.zeros(3, 3, 2, device=device).fill_diagonal_(1)


def test_windows(device: str) -> None:
    torch = pytest.importorskip("torch")
    for name in ("hann_window", "hamming_window", "blackman_window", "bartlett_window"):
        for length, periodic in ((0, True), (1, True), (1, False), (2, False), (7, True), (8, False)):
            got = getattr(dt, name)(length, periodic, device=device, dtype=dt.float64)
            want = getattr(torch, name)(length, periodic, dtype=torch.float64)
            np.testing.assert_allclose(got.cpu().numpy(), want.numpy(), rtol=1e-12, atol=1e-15)
        with pytest.raises(RuntimeError, match="non-negative"):
            getattr(dt, name)(-1)
        with pytest.raises(dt.DTypeMismatchError):
            getattr(dt, name)(3, dtype=dt.int64)


def test_drawn_and_unset_arrays_like_others(device: str) -> None:
    x = dt.ones(2, 300, dtype=dt.float64)
    dt.manual_seed(3)
    drawn = dt.randint_like(x.to(device), 2, 5)
    dt.manual_seed(3)
    assert drawn.dtype == dt.float64 and dt.equal(drawn.cpu(), dt.randint_like(x, 2, 5))
    assert drawn.min().item() == 2 and drawn.max().item() == 4
    assert dt.randint_like(x, high=1).sum().item() == 0
    with pytest.raises(RuntimeError, match="randint_like expects 'from' to be less than 'to'"):
        dt.randint_like(x, 4, 2)
    y = dt.empty_strided((2, 3), (1, 2), dtype=dt.int32, device=device)
    assert y.stride() == (1, 2) and y.dtype == dt.int32 and y.fill_(1).sum().item() == 6
    assert dt.empty_strided((2, 0), (5, 1), device=device).shape == (2, 0)
    for wrong in (((2, 3), (1,)), ((2,), (-1,)), ((-2,), (1,)), ((2, 2), (2**62, 1))):
        with pytest.raises(RuntimeError, match="empty_strided"):
            dt.empty_strided(*wrong, device=device)


def test_places_and_sizes(device: str) -> None:
    x = dt.arange(6, device=device).reshape(2, 3)
    found = dt.unravel_index(dt.tensor([5, 7, -1], device=device), (2, 3))
    assert [part.tolist() for part in found] == [[1, 0, 1], [2, 1, 2]]
    assert dt.unravel_index(x, ()) == ()
    for wrong, error in (((x.float(), 3), TypeError), ((x, (-1, 2)), ValueError), ((x, (0, 2)), RuntimeError)):
        with pytest.raises(error):
            dt.unravel_index(*wrong)
    assert x.sum_to_size(3).tolist() == [3, 5, 7] and x.sum_to_size().item() == 15
    assert x.sum_to_size(2, 3).data_ptr() == x.data_ptr()
    for sizes in ((2,), (1, 2, 3), (2, 0)):
        with pytest.raises(dt.ShapeMismatchError, match="is not expandable"):
            x.sum_to_size(sizes)
    with pytest.raises(dt.ShapeMismatchError, match="split_with_sizes"):
        x.split_with_sizes((1, 1), 1)
    assert x[dt.newaxis].shape == (1, 2, 3)
