"""Hostile input: the right exception, nothing changed, no crash and no huge allocation."""

from __future__ import annotations

import itertools
import math
import operator
from typing import Any

import cases
import numpy as np
import pytest
from cases import CASES
from support import DEVICES, Built, bits_of, call

import devtensor as dt

BIG = [2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1]


# ---------------------------------------------------------------- devices


@pytest.mark.parametrize("text", ["gpu", "", "CPU", "Cuda", "cuda:", "cuda:-1", "cuda:01", "cuda:+1", "cuda: 1",
                                  "cuda:1 ", " cuda", "cpu:1", "cuda:0x1", "cuda:1.0", "cuda:१",
                                  "cuda:0\0", "cuda\n", "x" * 10_000, "cuda:" + "9" * 50])  # fmt: skip
def test_device_strings_are_parsed_strictly(text: str) -> None:
    for use in (dt.device, lambda t: dt.zeros(1, device=t), lambda t: dt.zeros(1).to(t)):
        with pytest.raises((RuntimeError, ValueError)):
            use(text)


def test_a_bad_device_string_lists_what_is_valid() -> None:
    with pytest.raises(RuntimeError) as caught:
        dt.device("gpu")
    for part in ("gpu", "cpu", "cuda"):
        assert part in str(caught.value)


@pytest.mark.parametrize("index", [2, 3, 127, 128, 255, 256, 257, 65536, 2**31 - 1])
def test_an_ordinal_out_of_range_is_not_another_device(index: int) -> None:
    with pytest.raises(dt.DeviceNotAvailableError) as caught:
        dt.zeros(1, device=f"cuda:{index}")
    assert f"cuda:{index}" in str(caught.value)
    with pytest.raises(dt.DeviceNotAvailableError):
        dt.zeros(1).cuda(index)


@pytest.mark.parametrize("bad", [-1, 2**31, 2**64, -(2**70), 1.5, None, [], b"cpu", True, object()])
def test_device_of_other_types(bad: Any) -> None:
    with pytest.raises((TypeError, ValueError, RuntimeError, OverflowError)):
        dt.device(bad)


# ---------------------------------------------------------------- sizes


@pytest.mark.parametrize("make", [dt.zeros, dt.ones, dt.empty, dt.rand, dt.randn])
def test_negative_sizes(make: Any, device: str) -> None:
    for shape in ((-1,), (2, -1), (0, -5), (-(2**63),)):
        with pytest.raises(RuntimeError, match="negative dimension"):
            make(shape, device=device)
    with pytest.raises(RuntimeError, match="negative dimension"):
        make(-1, device=device)


@pytest.mark.parametrize(
    "shape",
    [(2**62,), (2**61, 2), (2**40, 2**40), (2**63 - 1,), (2**32, 2**32), (2**31, 2**31, 4), (2**62, 0, 2**62)],
)  # fmt: skip
def test_sizes_that_overflow(shape: tuple[int, ...], device: str) -> None:
    with pytest.raises((RuntimeError, MemoryError)):
        dt.empty(shape, device=device)
    with pytest.raises((RuntimeError, MemoryError)):
        dt.zeros(1, device=device).expand(shape).clone()


@pytest.mark.parametrize("shape", [(2**62, 0), (0, 2**62), (2**62, 0, 2**62), (2**31, 2**31, 0)])
def test_sizes_that_overflow_beside_a_zero(shape: tuple[int, ...], device: str) -> None:
    """A view is refused the shape that an array is refused."""
    x = dt.zeros(0, device=device)
    for make in (
        lambda: dt.zeros(shape, device=device),
        lambda: x.view(shape),
        lambda: x.reshape(shape),
        lambda: x.unflatten(0, shape),
        lambda: x.reshape(0, *(1 for _ in shape)).expand(0, *shape),
    ):
        with pytest.raises(dt.ShapeMismatchError, match="overflowed"):
            make()


def test_sizes_beyond_64_bits(device: str) -> None:
    for shape in ((2**63,), (2**64,), (10**30,), (-(10**30),)):
        with pytest.raises((OverflowError, RuntimeError, ValueError, TypeError)):
            dt.zeros(shape, device=device)


def test_too_much_memory_is_an_error(device: str) -> None:
    """A size that is legal but not there."""
    with pytest.raises(MemoryError):
        dt.empty(2**60, dtype=dt.uint8, device=device)
    assert dt.ones(2, device=device).tolist() == [1, 1]


def test_more_than_eight_dimensions(device: str) -> None:
    deep: Any = 1.0
    for _ in range(9):
        deep = [deep]
    for make in (
        lambda: dt.zeros((1,) * 9, device=device),
        lambda: dt.array(deep, device=device),
        lambda: dt.zeros((1,) * 8, device=device).unsqueeze(0),
        lambda: dt.zeros((1,) * 8, device=device)[None],
        lambda: dt.zeros(1, device=device).reshape((1,) * 9),
        lambda: dt.zeros(1, device=device).expand((1,) * 9),
        lambda: dt.stack([dt.zeros((1,) * 8, device=device)]),
    ):
        with pytest.raises((RuntimeError, ValueError), match="8 dimensions"):
            make()


@pytest.mark.parametrize("shape", [1.5, "3", (1.0,), ("3",), (None,), [[2]], {2, 3}, object()])
def test_shapes_of_other_types(shape: Any) -> None:
    with pytest.raises(TypeError):
        dt.zeros(shape)


# ---------------------------------------------------------------- nested lists


@pytest.mark.parametrize(
    "data",
    [
        [[1, 2], [3]],
        [[1], 2],
        [1, [2]],
        [[[1]], [[1, 2]]],
        [[], [1]],
        ["a"],
        [None],
        pytest.param([object()], id="[object()]"),
        [1 + 2j],
        {"a": 1},
        "text",
        [[1, 2], "ab"],
        [2**63],
        [-(2**63) - 1],
        [10**400],
        np.array([1, None], dtype=object),
        [np.array([1, 2]), np.array([1])],
    ],
    ids=repr,
)
def test_data_that_is_no_array(data: Any, device: str) -> None:
    with pytest.raises((ValueError, TypeError, OverflowError, RuntimeError)):
        dt.array(data, device=device)


def test_a_list_that_contains_itself() -> None:
    loop: list[Any] = [1]
    loop[0] = loop
    with pytest.raises((ValueError, RuntimeError, RecursionError)):
        dt.array(loop)


class Index:
    """__index__ as given: a value, or an exception to raise."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __index__(self) -> int:
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


class Liar(list):  # type: ignore[type-arg]
    """Its length is not the number of its elements."""

    def __init__(self, items: list[Any], length: Any) -> None:
        super().__init__(items)
        self.length = length

    def __len__(self) -> int:
        if isinstance(self.length, Exception):
            raise self.length
        return self.length


class Boom(Exception):
    pass


def test_index_protocol(device: str) -> None:
    x = dt.arange(6, device=device).reshape(2, 3)
    assert x[Index(1)].tolist() == [3, 4, 5]
    assert x.sum(dim=Index(0)).tolist() == [3, 5, 7]
    assert dt.zeros(Index(2), device=device).shape == (2,)
    for use in (
        lambda v: x[v],
        lambda v: x[v:],
        lambda v: x.sum(dim=v),
        lambda v: x.reshape(v),
        lambda v: x.reshape((v, 3)),
        lambda v: dt.zeros(v, device=device),
        lambda v: x.transpose(v, 0),
        lambda v: dt.conv2d(dt.zeros((1, 1, 3, 3)), dt.zeros((1, 1, 1, 1)), stride=v),
        lambda v: dt.conv2d(dt.zeros((1, 1, 3, 3)), dt.zeros((1, 1, 1, 1)), padding=(v, 1)),
        lambda v: dt.arange(0, v),
        lambda v: x.split(v),
    ):
        with pytest.raises(Boom):
            use(Index(Boom("index")))
        with pytest.raises(TypeError):
            use(Index("text"))


@pytest.mark.parametrize("length", [0, 1, 5, 10**6, -1, Boom("len"), 2**62])
def test_lying_lengths(length: Any) -> None:
    """No promise about the result, but no crash and no other exception than these."""
    for use in (
        dt.array,
        dt.zeros,
        lambda v: dt.zeros((2, 3)).permute(v),
        lambda v: dt.zeros((2, 3)).sum(dim=v),
        lambda v: dt.zeros((2, 3)).reshape(v),
        lambda v: dt.array([v, v]),
    ):
        try:
            use(Liar([0, 1], length))
        except (ValueError, TypeError, RuntimeError, IndexError, Boom, OverflowError, MemoryError):
            pass


def test_a_list_that_changes_while_it_is_read() -> None:
    victim: list[Any] = []

    class Eraser:
        def __index__(self) -> int:
            victim.clear()
            return 1

        def __float__(self) -> float:
            victim.clear()
            return 1.0

    for use in (dt.array, dt.zeros, lambda v: dt.array([v]), lambda v: dt.zeros((2, 2)).reshape(v)):
        victim[:] = [Eraser(), 1, 2, 3]
        try:
            use(victim)
        except (ValueError, TypeError, RuntimeError, IndexError):
            pass


# ---------------------------------------------------------------- conv2d and pooling


CONV = ("stride", "padding", "dilation", "groups")


@pytest.mark.parametrize("name", CONV)
@pytest.mark.parametrize("value", [0, -1, -(2**31), -(2**63), *BIG], ids=repr)
def test_conv2d_parameters(name: str, value: int, device: str) -> None:
    x, weight = dt.ones((1, 2, 5, 6), device=device), dt.ones((2, 2, 3, 3), device=device)
    forms = [value] if name == "groups" else [value, (value, 1), (1, value)]
    for form in forms:
        if name == "padding" and value == 0:
            continue
        if name == "stride" and value > 0:
            assert dt.conv2d(x, weight, stride=form).numel() > 0
            continue
        with pytest.raises((RuntimeError, MemoryError)) as caught:
            dt.conv2d(x, weight, **{name: form})
        assert not isinstance(caught.value, dt.CudaError)


@pytest.mark.parametrize("stride", [1, 2, *BIG])
def test_conv2d_combinations(stride: int) -> None:
    """Any combination gives a result of the right size or an error, the same on every device."""
    for padding, dilation in itertools.product([1, 2, *BIG], repeat=2):
        check_conv2d(stride, padding, dilation)


def check_conv2d(stride: int, padding: int, dilation: int) -> None:
    seen = set()
    for device in DEVICES:
        x, weight = dt.ones((1, 1, 3, 3), device=device), dt.ones((1, 1, 3, 3), device=device)
        try:
            y = dt.conv2d(x, weight, stride=stride, padding=padding, dilation=dilation)
            seen.add(tuple(y.shape))
            want = (3 + 2 * padding - dilation * 2 - 1) // stride + 1
            assert tuple(y.shape) == (1, 1, want, want)
        except MemoryError:
            seen.add(MemoryError)
        except RuntimeError as error:
            seen.add((type(error), str(error)))
    assert len(seen) == 1, (stride, padding, dilation)


@pytest.mark.parametrize(
    "parameters",
    [
        {"stride": 1.5},
        {"stride": "1"},
        {"stride": ()},
        {"stride": (1, 2, 3)},
        {"stride": None},
        {"padding": "full"},
        {"padding": "SAME"},
        {"padding": (1, 2, 3)},
        {"padding": 0.5},
        {"padding": "same", "stride": 2},
        {"dilation": []},
        {"groups": 1.0},
        {"groups": None},
        {"groups": (1, 1)},
        {"unknown": 1},
    ],
    ids=repr,
)
def test_conv2d_parameters_of_other_types(parameters: dict[str, Any], device: str) -> None:
    x, weight = dt.ones((1, 2, 5, 6), device=device), dt.ones((2, 2, 3, 3), device=device)
    with pytest.raises((RuntimeError, TypeError, ValueError)):
        dt.conv2d(x, weight, **parameters)


@pytest.mark.parametrize("op", ["max_pool2d", "avg_pool2d"])
@pytest.mark.parametrize("name", ["kernel_size", "stride", "padding"])
@pytest.mark.parametrize("value", [0, -1, -(2**63), *BIG], ids=repr)
def test_pool_parameters(op: str, name: str, value: int, device: str) -> None:
    x = dt.ones((1, 2, 5, 6), device=device)
    parameters = {"kernel_size": 2} | {name: value}
    if (name == "padding" and value == 0) or (name == "stride" and value > 0):
        assert call(op, [x], **parameters).numel() > 0
        return
    with pytest.raises((RuntimeError, MemoryError)):
        call(op, [x], **parameters)


@pytest.mark.parametrize("size", [-1, (-2, 3), (1, 2, 3), 2**62, "1", 1.5], ids=repr)
def test_adaptive_pool_sizes(size: Any, device: str) -> None:
    with pytest.raises((RuntimeError, TypeError, ValueError, MemoryError)):
        dt.adaptive_avg_pool2d(dt.ones((1, 2, 5, 6), device=device), size)


# ---------------------------------------------------------------- shape parameters


@pytest.mark.parametrize("value", [*BIG, -(2**63), -(2**31) - 1], ids=repr)
def test_huge_parameters(value: int, device: str) -> None:
    x = dt.arange(6, device=device).reshape(2, 3)
    for use in (
        lambda: x.sum(dim=value),
        lambda: x.transpose(0, value),
        lambda: x.unsqueeze(value),
        lambda: x.select(0, value),
        lambda: x.narrow(0, value, 1),
        lambda: x.narrow(0, 0, value),
        lambda: x.narrow(0, 1, value),
        lambda: x.reshape(value, value),
        lambda: x.flatten(0, value),
        lambda: x[value],
    ):
        with pytest.raises((RuntimeError, IndexError)):
            use()
    assert x[value:].shape in ((0, 3), (2, 3))
    assert x[::1][: abs(value + 1)].shape in ((2, 3), (0, 3))
    assert x[:: abs(value + 1) or 1].shape == (1, 3)
    assert dt.tril(x, value).shape == (2, 3)
    assert dt.triu(x, value).shape == (2, 3)
    if value > 0:
        assert [part.shape for part in x.split(value)] == [(2, 3)]
        assert [part.shape for part in x.chunk(value)] == [(1, 3)] * 2


@pytest.mark.parametrize(
    "use",
    [
        lambda x: x.split(0),
        lambda x: x.split(-1),
        lambda x: x.split((1, 2)),
        lambda x: x.split((3, -1)),
        lambda x: x.chunk(0),
        lambda x: x.chunk(-2),
        lambda x: x.narrow(0, 0, -1),
        lambda x: x.narrow(0, -3, 1),
        lambda x: x.unflatten(1, (2, 2)),
        lambda x: x.unflatten(1, (-1, -1)),
        lambda x: x.unflatten(1, ()),
        lambda x: x.flatten(1, 0),
        lambda x: x.expand(3),
        lambda x: x.expand(-1, 2, 3),
        lambda x: x.movedim((0, 1), (0,)),
        lambda x: x.movedim((0, 0), (0, 1)),
        lambda x: dt.cat([]),
        lambda x: dt.stack([]),
        lambda x: dt.cat([x, 1]),
        lambda x: dt.cat(5),
        lambda x: dt.tril(x[0]),
        lambda x: dt.arange(0, 5, 0),
        lambda x: dt.arange(0, 5, math.nan),
        lambda x: dt.arange(0, math.inf),
        lambda x: dt.arange(5, 0),
        lambda x: dt.arange(0, 2**62),
        lambda x: dt.linspace(0, 1, -1),
        lambda x: dt.eye(-1),
        lambda x: dt.eye(2, -1),
        lambda x: x.sum(dim=(0, 0)),
        lambda x: x.sum(dim="a"),
        lambda x: x.permute("ab"),
        lambda x: dt.div(x, x, rounding_mode="up"),
        lambda x: dt.gelu(x.float(), approximate="yes"),
        lambda x: dt.clamp(x),
        lambda x: dt.add(x, x, alpha="2"),
        lambda x: dt.add(x, x, alpha=1.5),
        lambda x: x**-1,
        lambda x: (x != 0) ** -1,
        lambda x: x.pow_(-2),
    ],
)
def test_impossible_parameters(use: Any, device: str) -> None:
    x = dt.arange(6, device=device).reshape(2, 3)
    with pytest.raises((RuntimeError, ValueError, TypeError, IndexError, MemoryError)):
        use(x)


# ---------------------------------------------------------------- calls


@pytest.mark.parametrize("op", sorted({c.op for c in CASES}))
def test_wrong_arguments(op: str) -> None:
    """Missing, extra and unknown arguments are refused."""
    function = getattr(dt, op, None)
    if function is None:
        pytest.skip("the op is only a method")
    x = dt.ones((2, 2))
    for use in (
        lambda: function(),
        lambda: function(*[x] * 12),
        lambda: function(x, no_such_argument=1),
        lambda: function(None),
        lambda: function("text"),
        lambda: function(object()),
    ):
        with pytest.raises((TypeError, dt.ShapeMismatchError)) as caught:
            use()
        assert str(caught.value)


def test_attributes_are_not_assigned() -> None:
    with pytest.raises(AttributeError):
        dt.zeros(1).shape = (1, 1)
    with pytest.raises(AttributeError):
        dt.zeros(1).device = "cuda"


def test_huge_python_numbers(device: str) -> None:
    x = dt.ones(2, device=device)
    n = dt.ones(2, dtype=dt.int64, device=device)
    for big in (10**400, -(10**400)):
        with pytest.raises((OverflowError, RuntimeError)):
            x + big
    for big in (2**63, 2**64, -(2**70)):
        with pytest.raises((OverflowError, RuntimeError)):
            n + big
        with pytest.raises((OverflowError, RuntimeError)):
            n.fill_(big)
    assert n.tolist() == [1, 1]
    assert x.tolist() == [1, 1]


# ---------------------------------------------------------------- nothing changes on failure


@pytest.mark.parametrize("op", [*cases.OPERATORS, "exp", "clamp", "lerp"])
def test_failed_in_place_ops_leave_the_target(op: str, cuda: str) -> None:
    x = dt.arange(6, dtype=dt.int32, device=cuda).reshape(2, 3)
    before = bits_of(x).tobytes()
    address = x.data_ptr()
    bad = [dt.ones((2, 3)), dt.ones((4, 3), device=cuda), "x", np.ones((2, 3))]
    if op not in cases.COMPARISONS:  # whose answer, 0 or 1, any dtype can hold
        bad.append(dt.ones((2, 3), device=cuda))
    method = getattr(x, op + "_", None)
    for other in bad:
        if method is not None:
            with pytest.raises((RuntimeError, TypeError)):
                method(other) if op != "lerp" else method(other, 0.5)
    assert bits_of(x).tobytes() == before
    assert x.data_ptr() == address


def test_failed_out_leaves_the_target(device: str) -> None:
    case = next(c for c in CASES if c.op == "matmul")
    built = Built(case, "float32", device)
    shape = tuple(built.call().shape)
    for out in (
        dt.full((*shape, 1), 7.0, device=device),
        dt.full(shape, 7.0, dtype=dt.float64, device=device),
        dt.full((1,), 7.0, device=device).expand(shape),
    ):
        with pytest.raises(RuntimeError):
            built.call(out=out)
        assert set(out.to(dt.float32).flatten().tolist()) == {7.0}


def test_writing_to_an_expanded_array_is_refused(device: str) -> None:
    x = dt.ones((1, 3), device=device)
    wide = x.expand(4, 3)
    for write in (
        lambda: wide.fill_(2),
        lambda: operator.iadd(wide, 1),
        lambda: wide.copy_(dt.zeros((4, 3), device=device)),
        lambda: wide.exp_(),
        lambda: operator.setitem(wide, (slice(None), 0), 5),
    ):
        with pytest.raises(RuntimeError, match="single memory location"):
            write()
    assert x.tolist() == [[1, 1, 1]]


def test_in_place_with_overlapping_memory_is_as_if_buffered(device: str) -> None:
    x = dt.arange(8, device=device)
    x[1:] += x[:-1]
    assert x.tolist() == [0, 1, 3, 5, 7, 9, 11, 13]
    square = dt.arange(9, device=device).reshape(3, 3)
    square += square.T
    assert square.tolist() == [[0, 4, 8], [4, 8, 12], [8, 12, 16]]
    y = dt.arange(6, dtype=dt.float32, device=device).reshape(2, 3)
    dt.exp(y[:, :2], out=y[:, 1:])
    want = np.arange(6.0).reshape(2, 3)
    want[:, 1:] = np.exp(want[:, :2].copy())
    np.testing.assert_allclose(np.array(y.tolist()), want, rtol=1e-6)
    square = dt.arange(4, dtype=dt.float32, device=device).reshape(2, 2)
    dt.matmul(square, square, out=square)
    assert square.tolist() == [[2, 3], [6, 11]]


def test_casts_of_nan_and_infinity_are_defined(device: str) -> None:
    x = dt.array([math.nan, math.inf, -math.inf, 1e30, -1e30], device=device)
    assert x.to(dt.int32).tolist() == [0, 2**31 - 1, -(2**31), 2**31 - 1, -(2**31)]
    assert x.to(dt.uint8).tolist() == [0, 255, 0, 255, 0]
    assert x.to(dt.bool).tolist() == [True] * 5


def test_integer_arithmetic_wraps(device: str) -> None:
    low, high = -(2**63), 2**63 - 1
    x = dt.array([low, high], device=device)
    assert (x + 1).tolist() == [low + 1, low]
    assert (-x).tolist() == [low, -high]
    assert abs(x).tolist() == [low, high]
    assert (x * 2).tolist() == [0, -2]
    assert (x // -1).tolist() == [low, -high]
    assert (x % -1).tolist() == [0, 0]
    assert (x // 0).tolist() == [0, 0]
    assert (x % 0).tolist() == [0, 0]
    assert (x**2).tolist() == [0, 1]
    assert x.sum().item() == -1


def test_an_int_of_more_digits_than_python_writes_is_named_by_its_bits() -> None:
    huge = 10**5000
    assert dt._C._shown(huge) == f"an int of {huge.bit_length()} bits"
    assert dt._C._shown(-huge) == f"an int of {huge.bit_length()} bits"
    with pytest.raises(ValueError, match=r'the precision is "highest" or "tf32", not an int of 16610 bits'):
        dt.set_float32_precision(huge)  # type: ignore[arg-type]


@pytest.mark.parametrize("text, want", [("cpu", "cpu"), ("cpu:0", "cpu"), ("cuda", "cuda:0"), ("cuda:0", "cuda:0")])
def test_each_way_to_name_a_device(text: str, want: str) -> None:
    assert str(dt.device(text)) == str(dt.zeros(1, device=text).device) == want
