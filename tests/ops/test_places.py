"""Writes at places, ranges as indices, orders of memory, names of old programs, and what is refused."""

from __future__ import annotations

import copy
import itertools
import pickle
import warnings

import numpy as np
import pytest
from support import DEVICES

import devtensor as dt


def grid(device: str) -> dt.DeviceArray:
    return dt.arange(12.0, device=device).reshape(3, 4)


@pytest.mark.parametrize("device", DEVICES)
def test_the_last_of_several_stays(device: str) -> None:
    index = dt.tensor([1, 1, 1, 0, 1] * 100, device=device)
    values = dt.arange(500.0, device=device)
    zeros = dt.zeros(3, device=device)
    assert zeros.scatter(0, index, values).tolist() == [498, 499, 0]
    assert zeros.index_copy(0, index, values).tolist() == [498, 499, 0]
    assert zeros.put(index, values).tolist() == [498, 499, 0]
    assert zeros.index_put((index,), values).tolist() == [498, 499, 0]


@pytest.mark.parametrize("device", DEVICES)
def test_writes_through_views(device: str) -> None:
    x = dt.zeros(4, 6, device=device)
    x.T[1::2].scatter_(
        0, dt.tensor([[0, 2], [1, 0]], device=device), dt.tensor([[1.0, 2.0], [3.0, 4.0]], device=device)
    )
    assert x.tolist() == [[0, 1, 0, 3, 0, 0], [0, 4, 0, 0, 0, 2], [0] * 6, [0] * 6]
    x.zero_()
    x[1].index_fill_(0, dt.tensor([-1, 0], device=device), 5)
    x[:, 2].masked_scatter_(dt.tensor([True, False, True, False], device=device), dt.tensor([7.0, 8.0], device=device))
    assert x.tolist() == [[0, 0, 7, 0, 0, 0], [5, 0, 0, 0, 0, 5], [0, 0, 8, 0, 0, 0], [0] * 6]
    number = dt.tensor(3.0, device=device)
    assert number.scatter_(0, dt.tensor(0, device=device), 4.0).item() == number.item() == 4
    y = grid(device)
    y.index_put_((None, dt.tensor([0, 0], device=device)), dt.tensor([[1.0, 2.0]], device=device), accumulate=True)
    assert y[:, 0].tolist() == [3, 7, 11]
    z = grid(device)
    assert z.scatter_(1, dt.tensor([[0], [1]], device=device), z).tolist()[:2] == [[0, 1, 2, 3], [4, 4, 6, 7]]


@pytest.mark.parametrize("device", DEVICES)
def test_sums_and_means_at_places(device: str) -> None:
    index, source = dt.tensor([0, 0, 2], device=device), dt.tensor([1, 4, 9], device=device)
    start = dt.tensor([10, 20, 30], device=device)
    assert start.scatter_reduce(0, index, source, "mean").tolist() == [5, 20, 19]
    assert start.scatter_reduce(0, index, source, "mean", include_self=False).tolist() == [2, 20, 9]
    assert start.scatter_reduce(0, index, source, "sum", include_self=False).tolist() == [5, 20, 9]
    assert start.scatter(0, index, 1, reduce="add").tolist() == [12, 20, 31]
    assert start.scatter_reduce(0, index, source, "prod").tolist() == [40, 20, 270]
    assert start.scatter_reduce(0, index, source, "amax").tolist() == [10, 20, 30]
    assert start.scatter_reduce(0, index, source, "amax", include_self=False).tolist() == [4, 20, 9]
    assert start.scatter_reduce(0, index, source, "amin").tolist() == [1, 20, 9]
    assert start.scatter(0, index, 3, reduce="multiply").tolist() == [90, 20, 90]


def test_nothing_is_written_where_something_is_wrong() -> None:
    x = dt.zeros(3)
    for call in (
        lambda: x.scatter_(0, dt.tensor([0, 3]), 1.0),
        lambda: x.scatter_(0, dt.tensor([0, -1]), 1.0),
        lambda: x.index_copy_(0, dt.tensor([-1]), dt.ones(1)),
        lambda: x.put_(dt.tensor([5]), dt.ones(1)),
        lambda: x.index_put_((dt.tensor([3]),), dt.ones(1), accumulate=True),
    ):
        with pytest.raises(IndexError, match="out of bounds for dimension 0 with size 3"):
            call()
    with pytest.raises(dt.ShapeMismatchError, match="Number of elements of source < number of ones in mask"):
        x.masked_scatter_(dt.tensor([True, True, False]), dt.ones(1))
    assert x.tolist() == [0, 0, 0]


@pytest.mark.parametrize("device", DEVICES)
def test_reductions_along_a_dimension_are_pytorchs(device: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    index = [2, 0, 2, 2]
    for dtype, dim, how, own in itertools.product(
        ("float32", "int64"), (0, 2, -1), ("prod", "mean", "amax", "amin"), (True, False)
    ):
        start = (np.arange(24).reshape(3, 2, 4) % 7 + 1).astype(dtype)
        source = (np.arange(32).reshape(4, 2, 4) % 5 + 1).astype(dtype)[: 4 if dim == 0 else 3]
        found = []
        for lib, place in ((dt, device), (torch, "cpu")):
            x, values = (lib.tensor(a.tolist(), dtype=getattr(lib, dtype)).to(place) for a in (start, source))
            arguments = (dim, lib.tensor(index).to(place), values, how)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # PyTorch says that it is new
                found.append(lib.index_reduce(x, *arguments, include_self=own).tolist())
                assert x.index_reduce_(*arguments, include_self=own) is x and x.tolist() == found[-1]
        np.testing.assert_allclose(found[0], found[1], 1e-6, err_msg=f"{dtype} {dim} {how} {own}")
    x = dt.ones(3, device=device)
    for reduce in ("sum", "min"):
        with pytest.raises(RuntimeError, match="must be either prod, mean, amax or amin"):
            x.index_reduce(0, dt.tensor([0], device=device), x[:1], reduce)
    with pytest.raises(dt.ShapeMismatchError, match=r"index_reduce: input \(3,\)"):
        x.index_reduce(0, dt.tensor([0, 1], device=device), x, "prod")


@pytest.mark.parametrize("device", DEVICES)
def test_errors_of_a_recorded_write_name_its_op(device: str) -> None:
    leaf, index = dt.ones(3, device=device, requires_grad=True), dt.tensor([0], device=device)
    one = dt.ones(1, device=device)
    for op, call in {
        "scatter": lambda x: x.scatter_(0, index, 1.0),
        "index_fill": lambda x: x.index_fill_(0, index, 1.0),
        "index_copy": lambda x: x.index_copy_(0, index, one),
        "index_put": lambda x: x.index_put_((index,), one),
        "masked_scatter": lambda x: x.masked_scatter_(x.detach() > 0, dt.ones(3, device=device)),
        "setitem": lambda x: x.__setitem__(index, 1.0),
    }.items():
        for x, text in ((leaf, "a leaf Variable"), (leaf[:], "a view of a leaf Variable")):
            told = rf"{text} that requires grad .*\({op}: input \(3,\)\)"
            with pytest.raises(dt.GradientError, match=told) as caught:
                call(x)
            assert getattr(caught.value, "op", None) == op
    assert leaf.tolist() == [1, 1, 1]


@pytest.mark.parametrize("device", DEVICES)
def test_a_range_is_a_list(device: str) -> None:
    x = grid(device)
    assert x[range(3), range(1, 4)].tolist() == [1, 6, 11]
    assert x[range(2)].tolist() == x[[0, 1]].tolist()
    assert x[:, range(3, 0, -2)].tolist() == x[:, [3, 1]].tolist()
    assert x[range(0)].shape == (0, 4)
    x[range(3), dt.tensor([0, 1, 2], device=device)] = -1
    assert x[1].tolist() == [4, -1, 6, 7]
    for long in (range(9), range(2**62), range(2**80)):
        with pytest.raises(IndexError, match="out of bounds"):
            x[long].tolist()


@pytest.mark.parametrize("device", DEVICES)
def test_orders_of_memory(device: str) -> None:
    x = dt.arange(120.0, device=device).reshape(2, 3, 4, 5)
    last = x.contiguous(memory_format=dt.channels_last)
    assert last.stride() == x.to(memory_format=dt.channels_last).stride() == (60, 1, 15, 3)
    assert last.is_contiguous(memory_format=dt.channels_last) and not last.is_contiguous()
    assert not x.is_contiguous(memory_format=dt.channels_last) and not x[0].is_contiguous(
        memory_format=dt.channels_last
    )
    assert (last == x).all() and last.to(memory_format=dt.channels_last) is last
    assert last.clone().stride() == last.clone(memory_format=dt.preserve_format).stride() == last.stride()
    assert last.clone(memory_format=dt.contiguous_format).stride() == x.stride()
    assert x.to(dt.float64, memory_format=dt.channels_last).stride() == last.stride()
    assert x[:, :, None].contiguous(memory_format=dt.channels_last_3d).stride() == (60, 1, 60, 15, 3)
    for same in (x, x.transpose(0, 3), x[:, ::2], x[0, 0].t(), x[0].expand(2, 3, 4, 5), x[0, 0, 0, 0]):
        assert same.to(memory_format=dt.contiguous_format) is same
        assert same.to(same.device, same.dtype, memory_format=dt.contiguous_format) is same
        assert same.to(dt.float64, memory_format=dt.contiguous_format).is_contiguous()
        assert same.to(copy=True, device=device, memory_format=dt.contiguous_format).is_contiguous()
    for other in (last, last[:, :, ::2], last[:, :, None].contiguous(memory_format=dt.channels_last_3d)):
        assert other.to(memory_format=dt.contiguous_format).is_contiguous()
    weight = dt.nn.Conv2d(3, 2, 3, device=device).to(memory_format=dt.channels_last).weight
    assert weight.stride() == (27, 1, 9, 3) and isinstance(weight, dt.nn.Parameter)
    for wrong, text in (
        (lambda: x[0].contiguous(memory_format=dt.channels_last), "required rank 4 tensor"),
        (lambda: x.contiguous(memory_format=dt.preserve_format), "preserve memory format is unsupported"),
    ):
        with pytest.raises(RuntimeError, match=text):
            wrong()
    with pytest.raises(TypeError, match="must be a memory_format"):
        x.clone(memory_format="rows")


def test_a_gradient_flows_through_another_order_of_memory() -> None:
    x = dt.ones(1, 2, 2, 2, requires_grad=True)
    (x.contiguous(memory_format=dt.channels_last) * dt.arange(8.0).reshape(1, 2, 2, 2)).sum().backward()
    assert x.grad is not None and x.grad.flatten().tolist() == list(range(8))


def test_sizes() -> None:
    size = dt.Size([2, 3, 4])
    assert repr(size) == "(2, 3, 4)" and size.numel() == 24 and pickle.loads(pickle.dumps(size)) == size
    assert type(pickle.loads(pickle.dumps(size))) is dt.Size and type(copy.deepcopy(size)) is dt.Size
    assert dt.ones(2, 3).shape.numel() == dt.ones(2, 3).size().numel() == 6 and dt.ones(()).shape.numel() == 1
    assert type(size * 2) is type(2 * size) is type(size[:0]) is dt.Size and (2,) + size == (2, 2, 3, 4)
    assert type(dt.nn.Parameter(dt.ones(2)).shape) is dt.Size and dt.tensor(dt.ones(2, 3).shape).tolist() == [2, 3]
    for wrong in ((1.5,), "ab", 3):
        with pytest.raises(TypeError):
            dt.Size(wrong)  # type: ignore[arg-type]
    assert isinstance(size[1:], dt.Size) and isinstance(size + (5,), dt.Size) and isinstance((5,) + size, dt.Size)
    assert dt.ones(size).shape == size and isinstance(dt.ones(2).shape, dt.Size)
    assert not isinstance([2, 3], dt.Size) and not isinstance((2.0,), dt.Size)


def test_memory_of_an_empty_size_becomes_nothing_else() -> None:
    """Python 3.14 made ints of it, which then ended as what they were not."""
    x = dt.ones(())
    for _ in range(300):
        assert x.shape == ()
        assert sum([10**6 + i for i in range(50)]) == 50001225


@pytest.mark.parametrize("device", DEVICES)
def test_names_of_old_programs(device: str) -> None:
    x = dt.ones(2, 3, dtype=dt.float64, device=device)
    for new in (x.new(2, 1), x.new([[1], [2]]), x.new_tensor([[1], [2]]), x.new(dt.Size([2, 1]))):
        assert (new.shape, new.dtype, new.device) == ((2, 1), x.dtype, x.device)
    assert x.new().shape == (0,)
    assert (x.nelement(), x.ndimension(), x[1:, 1].storage_offset()) == (6, 2, 4)
    assert x.layout is dt.strided and x.real is x and not (x.is_sparse or x.is_quantized or x.is_meta)
    assert x.get_device() == (-1 if device == "cpu" else x.device.index)
    if device == "cpu":
        assert x.map_(dt.arange(3.0), lambda a, b: a + b).apply_(lambda a: 2 * a).tolist() == [[2, 4, 6]] * 2
    else:
        with pytest.raises(RuntimeError, match="on the cpu only"):
            x.apply_(abs)
    assert [part.shape for part in x.split(split_size=2, dim=1)] == [(2, 2), (2, 1)]


@pytest.mark.parametrize("device", DEVICES)
def test_repeats_of_arrays(device: str) -> None:
    x, repeats = dt.tensor([[1, 2], [3, 4], [5, 6]], device=device), dt.tensor([2, 0, 3], device=device)
    wanted = np.repeat([[1, 2], [3, 4], [5, 6]], [2, 0, 3], 0).tolist()
    assert x.repeat_interleave(repeats, 0).tolist() == wanted
    assert x.repeat_interleave(repeats, 0, output_size=5).tolist() == wanted
    assert dt.repeat_interleave(repeats).tolist() == [0, 0, 2, 2, 2]
    assert x.repeat_interleave(dt.tensor([2], device=device), 1).tolist()[0] == [1, 1, 2, 2]
    assert x[:0].repeat_interleave(repeats[:0], 0).shape == (0, 2)
    with pytest.raises(dt.ShapeMismatchError, match="repeat_interleave"):
        x.repeat_interleave(repeats, 1)
    if device == "cpu":
        with pytest.raises(RuntimeError, match="negative"):
            x.repeat_interleave(-repeats, 0)
        with pytest.raises(RuntimeError, match="expected 5 but got 6"):
            x.repeat_interleave(repeats, 0, output_size=6)


def test_random_numbers_written_into_arrays() -> None:
    found = []
    for device in DEVICES:
        dt.manual_seed(3)
        x = dt.empty(4000, device=device)
        drawn = [x.random_(3, 6).clone(), x.log_normal_(0.0, 0.5).clone(), x.cauchy_(1.0).clone(), x.geometric_(0.25)]
        whole = dt.empty(4000, dtype=dt.int8, device=device).random_()
        normal = dt.normal(dt.full((4000,), 5.0, device=device), 2.0)
        found.append([y.cpu().numpy() for y in (*drawn, whole, normal)])
    integers, logarithms, cauchy, trials, whole, normal = found[0]
    assert set(integers) == {3, 4, 5} and abs(np.log(logarithms).std() - 0.5) < 0.05
    assert abs(np.median(cauchy) - 1) < 0.2 and abs(trials.mean() - 4) < 0.3 and trials.min() == 1
    assert whole.min() >= 0 and whole.max() > 120 and abs(normal.mean() - 5) < 0.2 and abs(normal.std() - 2) < 0.1
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4)
    state = dt.get_rng_state()
    first = dt.rand(3).tolist()
    with dt.random.fork_rng():
        dt.rand(5)
    dt.set_rng_state(state)
    assert dt.rand(3).tolist() == first
    with pytest.raises(RuntimeError, match="a state is 16 uint8"):
        dt.set_rng_state(dt.zeros(16))


def test_what_is_refused_says_what_to_do() -> None:
    x = dt.ones(2)
    for call, text in (
        (lambda: dt.fft.rfft(x), "devtensor.fft.rfft: there are no Fourier transforms: use numpy.fft"),
        (lambda: dt.sparse_coo_tensor(x, x), "there are no sparse arrays"),
        (lambda: dt.jit.load("f"), "call the Python function or module itself"),
        (lambda: dt.onnx.export(x, "f"), "save the weights with dt.save"),
        (lambda: dt.view_as_complex(x), "there are no complex numbers"),
        (lambda: dt.complex64.itemsize, "there are no complex numbers"),
        (lambda: x.set_(x), "use x.data = y, or as_strided"),
    ):
        with pytest.raises(NotImplementedError, match=text):
            call()
    assert x.dtype not in (dt.complex64, dt.complex128)
    assert dt.jit.ignore(abs) is abs and dt.jit.unused(abs) is abs and not dt.jit.is_scripting()
    with pytest.raises(TypeError, match="'dtype' must be a dtype"):
        dt.ones(2, dtype=dt.complex64)
    with pytest.raises(AttributeError, match="no attribute 'nothing_of_the_kind'"):
        dt.nothing_of_the_kind()


def test_repeat_copies(device: str) -> None:
    """Also where sizes of 1 repeat, which a view could show: what is written to it stays there."""
    for shape in ((1, 3), (), (3,), (1, 1), (2, 1), (2, 1, 3), (0, 3)):
        for times in ((2, 1), (1, 2), (2, 2), (1, 1), (3, 2, 1)):
            if len(times) < len(shape):
                continue
            x = dt.ones(shape, device=device)
            copied = x.repeat(*times)
            copied += 1
            assert copied.amin().item() == copied.amax().item() == 2 if copied.numel() else True
            assert x.tolist() == dt.ones(shape).tolist()
