"""Weights packed once: whatever writes to their memory, the next convolution or product sees it; and what is kept stays
within its bounds."""

from __future__ import annotations

import ctypes
import gc
import inspect
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import REAL, stepped

import devtensor as dt

SHAPE = (32, 16, 3, 3)
NUMBERS = 32 * 16 * 3 * 3
SIMULATED = not REAL


def kept() -> int:
    return dt.cpu.memory_stats()["packed_bytes"]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    limit = dt.cpu.memory_stats()["packed_limit_bytes"]
    dt.cpu.empty_cache()
    assert kept() == 0
    yield
    dt.cpu.set_packed_limit(limit)


def numbers(*shape: int, seed: int = 0) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(seed).uniform(-2, 2, shape).astype("float32")


def array(*shape: int, seed: int = 0) -> dt.DeviceArray:
    return dt.tensor(numbers(*shape, seed=seed))  # a copy, in memory of our own


X = array(1, 16, 9, 9, seed=1)


def conv(w: dt.DeviceArray, x: dt.DeviceArray = X) -> bytes:
    return dt.conv2d(x, w, padding=1).numpy().tobytes()


def matrix(w: dt.DeviceArray) -> dt.DeviceArray:
    return w.view(64, 72)


OTHER = array(*SHAPE, seed=2)
MASK = OTHER > 0.5

# In-place methods, with their arguments. Those of integers alone, which no weight has, and what writes nothing:
NOT_OF_FLOATS = {"bitwise_and_", "bitwise_not_", "bitwise_or_", "bitwise_xor_", "detach_", "requires_grad_"}
NOT_OF_FLOATS |= {"gcd_", "lcm_", "bitwise_left_shift_", "bitwise_right_shift_"}
NOT_OF_FLOATS |= {"addbmm_", "addmm_", "addmv_", "addr_", "baddbmm_"}  # of matrices and vectors: written as addcmul_ is
NOT_OF_FLOATS |= {"igamma_", "igammac_"}  # of numbers from 0 on
NOT_OF_FLOATS |= {"set_", "share_memory_"}  # are refused
NOT_OF_FLOATS |= {"fill_diagonal_"}  # of dimensions of one size
NOT_OF_FLOATS |= {"float_power_", "nan_to_num_"}  # of float64 alone; of weights that are NaN
NOT_OF_FLOATS |= {
    "as_strided_",
    "resize_",
    "resize_as_",
    "squeeze_",
    "swapaxes_",
    "swapdims_",
    "t_",
    "transpose_",
    "unsqueeze_",
}  # write no element
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("add_", "div_", "mul_", "sub_", "pow_", "floor_divide_", "remainder_", "fmod_"), (OTHER,)),
    **dict.fromkeys(("atan2_", "hypot_", "logaddexp_"), (OTHER,)),
    **dict.fromkeys(
        ("eq_", "ge_", "gt_", "le_", "lt_", "ne_", "logical_and_", "logical_or_", "logical_xor_"), (OTHER,)
    ),
    **dict.fromkeys(("addcdiv_", "addcmul_"), (OTHER, OTHER)),
    **dict.fromkeys(
        ("arctan2_", "copysign_", "divide_", "heaviside_", "ldexp_", "multiply_", "nextafter_", "subtract_"), (OTHER,)
    ),
    **dict.fromkeys(("true_divide_", "xlogy_", "greater_", "greater_equal_", "less_", "less_equal_"), (OTHER,)),
    "not_equal_": (OTHER,),
    "apply_": (lambda number: number + 1,),
    "map_": (OTHER, lambda number, other: number + other),
    "geometric_": (0.5,),
    "mvlgamma_": (1,),
    "polygamma_": (1,),
    "cumsum_": (0,),
    "cumprod_": (0,),
    "clamp_max_": (0.9,),
    "clamp_min_": (1.1,),
    "clip_": (0.9, 1.1),
    "index_copy_": (0, dt.arange(32), OTHER),
    "index_fill_": (0, dt.arange(4), 0.5),
    "index_reduce_": (0, dt.arange(32), OTHER, "prod"),
    "index_put_": ((dt.arange(32),), OTHER),
    "masked_scatter_": (MASK, OTHER),
    "put_": (dt.arange(NUMBERS), OTHER.flatten()),
    "renorm_": (2, 0, 1.0),
    "scatter_": (0, dt.zeros(SHAPE, dtype=dt.int64), OTHER),
    "scatter_reduce_": (0, dt.zeros(SHAPE, dtype=dt.int64), OTHER, "sum"),
    "clamp_": (0.9, 1.1),
    "copy_": (OTHER,),
    "fill_": (0.75,),
    "hardtanh_": (0.0, 0.5),
    "index_add_": (0, dt.arange(32), OTHER),
    "lerp_": (OTHER, 0.5),
    "masked_fill_": (MASK, 4.0),
    "tril_": (),
    "triu_": (),
    "scatter_add_": (0, dt.zeros(SHAPE, dtype=dt.int64), OTHER),
}
# What has no out=, or one that no weight can be.
PRODUCTS: dict[str, tuple[tuple[int, ...], ...]] = {
    "addmm": ((64, 72), (64, 5), (5, 72)),
    "baddbmm": ((1, 64, 72), (1, 64, 5), (1, 5, 72)),
    "bmm": ((1, 64, 5), (1, 5, 72)),
    "conv2d": ((1, 5, 8, 9), (64, 5, 1, 1)),
    "dot": ((5,), (5,)),
    "linear": ((64, 5), (72, 5)),
    "matmul": ((64, 5), (5, 72)),
    "mm": ((64, 5), (5, 72)),
    "mv": ((64, 5), (5,)),
    "outer": ((64,), (72,)),
}
TERNARY = {"clamp": (OTHER, 0.9, 1.1), "lerp": (OTHER, 2 * OTHER, 0.25), "where": (MASK, OTHER, 2 * OTHER)}
CREATORS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("rand", "randn", "zeros"), (SHAPE,)),
    "ones": (SHAPE,),
    "full": (SHAPE, 0.75),
    "randint": (-9, 9, SHAPE),
    "arange": (NUMBERS,),
    "eye": (64, 72),
    "randperm": (NUMBERS,),
}
REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")
SCANS = ("cumsum", "cumprod", "logcumsumexp")
OUT_VIEWS: dict[str, Callable[[dt.DeviceArray], dt.DeviceArray]] = {
    "baddbmm": lambda w: w.view(1, 64, 72),
    "bmm": lambda w: w.view(1, 64, 72),
    "conv2d": lambda w: w.view(1, 64, 8, 9),
    "dot": lambda w: w[1, 2, 0, 0],
    "mv": lambda w: matrix(w)[:, 3],
    "arange": lambda w: w.view(NUMBERS),
    "eye": matrix,
    "randperm": lambda w: w.view(NUMBERS),
}


def in_place(name: str) -> Callable[[dt.DeviceArray], Any]:
    return lambda w: getattr(w, name)(*ARGUMENTS.get(name, ()))


def into(name: str) -> Callable[[dt.DeviceArray], Any]:
    function = getattr(dt, name)

    def write(w: dt.DeviceArray) -> None:
        if name in PRODUCTS:
            operands = [array(*shape, seed=3) for shape in PRODUCTS[name]]
            function(*operands, out=OUT_VIEWS.get(name, matrix)(w))
            return
        if name in CREATORS:
            function(*CREATORS[name], out=OUT_VIEWS.get(name, lambda w: w)(w))
            return
        if name in TERNARY:
            function(*TERNARY[name], out=w)
            return
        if name in REDUCTIONS:
            function(array(5, *SHAPE, seed=3), dim=0, out=w)
            return
        if name in SCANS:
            function(OTHER, 0, out=w)
            return
        required = [p for p in inspect.signature(function).parameters.values() if p.default is inspect.Parameter.empty]
        function(*(OTHER, array(*SHAPE, seed=4))[: len(required)], out=w)

    return write


# All are written into out= by one function, as tril is.
LIKE_TRIL = {"argsort", "cat", "concat", "concatenate", "cummax", "cummin", "gather", "index_select", "masked_select"}
LIKE_TRIL |= {"empty"}  # is written by zeros
LIKE_TRIL |= {"sort", "stack", "take", "take_along_dim", "topk", "triu", "linspace"}


def with_out() -> list[str]:
    found = []
    for name, function in vars(dt._C).items():
        if " out=" in (getattr(function, "__text_signature__", None) or "") and hasattr(dt, name):
            found.append(name)
    return [name for name in found if name not in LIKE_TRIL]


BOOL_RESULTS = {"isfinite", "isinf", "isnan", "eq", "ge", "gt", "le", "lt", "ne"}
BOOL_RESULTS |= {"logical_and", "logical_not", "logical_or", "logical_xor", "any", "all"}
INTEGERS = {"bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "argmax", "argmin"}
OTHER_SHAPES = {"max", "min"}  # of one array a single number


def through_numpy(w: dt.DeviceArray) -> None:
    w.numpy()[3, 2] = 4


def through_dlpack(w: dt.DeviceArray) -> None:
    np.from_dlpack(w)[3, 2] = 4


def through_buffer(w: dt.DeviceArray) -> None:
    np.asarray(memoryview(w))[3, 2] = 4


def through_address(w: dt.DeviceArray) -> None:
    (ctypes.c_float * NUMBERS).from_address(w.data_ptr())[1234] = 4


def by_index(w: dt.DeviceArray) -> None:
    w[dt.tensor([1, 5])] = 4


def by_mask(w: dt.DeviceArray) -> None:
    w[MASK] = array(int(MASK.sum().item()), seed=5)


def by_masked_number(w: dt.DeviceArray) -> None:
    w[MASK] = 4


def by_slice(w: dt.DeviceArray) -> None:
    w[3:9, ::2] = OTHER[3:9, ::2]


def one_number(w: dt.DeviceArray) -> None:
    w[3, 2, 1, 0] = 4


def by_alias(w: dt.DeviceArray) -> None:
    w.permute(3, 2, 1, 0).view(3, 3, 16, 32).add_(1)


def by_operator(w: dt.DeviceArray) -> None:
    w[5] *= 2


def by_cast(w: dt.DeviceArray) -> None:
    w.copy_(OTHER.to(dt.float64))


def from_device(w: dt.DeviceArray) -> None:
    w.copy_(OTHER.to("cuda"))


def by_initializer(w: dt.DeviceArray) -> None:
    dt.nn.init.kaiming_uniform_(w)


def by_optimizer(w: dt.DeviceArray) -> None:
    stepped(w, OTHER)


def overlapping(w: dt.DeviceArray) -> None:
    w[1:] += w[:-1]


WRITES: dict[str, Callable[[dt.DeviceArray], Any]] = {
    **{f.__name__: f for f in (by_index, by_mask, by_masked_number, by_slice, one_number, by_alias, by_operator)},
    **{f.__name__: f for f in (by_cast, by_initializer, by_optimizer, overlapping)},
    **{f.__name__: f for f in (through_numpy, through_dlpack, through_buffer, through_address)},
    **{
        name: in_place(name)
        for name in dir(dt.DeviceArray)
        if name.endswith("_") and not name.startswith("_") and name not in NOT_OF_FLOATS
    },
    **{f"{name}(out=)": into(name) for name in with_out() if name not in BOOL_RESULTS | INTEGERS | OTHER_SHAPES},
}
if SIMULATED:
    WRITES["from_device"] = from_device


def test_every_write_is_seen() -> None:
    for name, write in WRITES.items():
        w = array(*SHAPE)
        before = [conv(w), conv(w), conv(w)]
        assert before[0] == before[1] == before[2]
        assert kept() == 4 * NUMBERS, name
        old = w.clone()
        write(w)
        assert not bool((w == old).all()), f"{name} wrote nothing"
        assert conv(w) == conv(w.clone()), name
        assert [conv(w), conv(w)] == 2 * [conv(w.clone())], name
        del w, old
        assert kept() == 0, name


@pytest.mark.parametrize("share", (through_numpy, through_dlpack, through_buffer, through_address))
def test_memory_that_others_can_write_is_never_kept(share: Callable[[dt.DeviceArray], None]) -> None:
    w = array(*SHAPE)
    share(w)
    for _ in range(4):
        conv(w)
    assert kept() == 0


def test_memory_of_numpy_is_never_kept() -> None:
    memory = numbers(*SHAPE)
    w = dt.from_numpy(memory)
    for value in range(4):
        memory[2, 3] = value
        assert conv(w) == conv(dt.tensor(memory))
    assert kept() == 0


@pytest.mark.skipif(not SIMULATED, reason="its loops are the host's, on memory of its own")
def test_a_simulated_device_keeps_nothing() -> None:
    x = X.to("cuda:0")
    for seed in range(4):  # the same memory again and again, with other bytes
        w = array(*SHAPE, seed=seed)
        want = conv(w)
        there = w.to("cuda:0")
        for _ in range(3):
            assert dt.conv2d(x, there, padding=1).cpu().numpy().tobytes() == want
            assert kept() == 0
        dt.cpu.empty_cache()
        del there


def test_a_weight_that_changes_each_time_is_not_kept() -> None:
    w = array(*SHAPE)
    for _ in range(4):
        conv(w)
        w.mul_(0.5)
    assert kept() == 0


def test_views_layouts_and_dtypes_are_told_apart() -> None:
    whole = array(2, *SHAPE)
    views = [whole[0], whole[1], whole[0].permute(0, 1, 3, 2), whole[0].flip(0) if hasattr(whole, "flip") else whole[1]]
    for _ in range(3):
        for w in views:
            for x in (X, X.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2), X[:, :, :5]):
                assert conv(w, x) == conv(w.clone(), x)
    for dtype in (dt.float16, dt.bfloat16, dt.float64):
        w, x = array(*SHAPE).to(dtype), X.to(dtype)
        results = [dt.conv2d(x, w, padding=1).to(dt.float64).numpy().tobytes() for _ in range(4)]
        assert len(set(results)) == 1


def test_many_taps_and_channels_give_the_same_bits() -> None:
    for shape in ((24, 300, 1, 1), (24, 9, 9, 9), (20, 40, 3, 5)):
        w, x = array(*shape), array(1, shape[1], 12, 12)
        assert len({conv(w, x) for _ in range(4)}) == 1
        assert kept() > 0
        del w


def product(w: dt.DeviceArray, rows: int = 20) -> bytes:
    return dt.linear(array(rows, w.shape[1], seed=1).to(w.dtype), w).to(dt.float64).numpy().tobytes()


def test_weights_of_products_are_kept_until_they_are_written() -> None:
    for shape in ((96, 70), (40, 1300), (513, 257)):  # columns that fill no panel, more than one stretch of a sum
        w = array(*shape)
        before = [product(w) for _ in range(4)]
        assert len(set(before)) == 1
        assert kept() > 0
        w[3] *= 2
        assert product(w) == product(w.clone()) != before[0]
        assert [product(w), product(w)] == 2 * [product(w.clone())]
        w.numpy()[5, 7] = 9
        assert [product(w), product(w), product(w)] == 3 * [product(w.clone())]
        del w
        assert kept() == 0


def test_views_and_dtypes_of_weights_of_products_are_told_apart() -> None:
    whole = array(3, 64, 64)
    views = [whole[0], whole[1], whole[0].t(), whole[:, 5], whole[0, :40], whole[0, :, :40], whole[0, ::2]]
    for _ in range(4):
        for w in views:
            for rows in (2, 3, 20, 60, 200):
                assert product(w, rows) == product(w.clone(), rows)
    for dtype in (dt.float16, dt.bfloat16, dt.float64):
        w = array(64, 80).to(dtype)
        assert len({product(w) for _ in range(4)}) == 1


def test_products_of_batches_and_in_turned_results_keep_right() -> None:
    a, b, out = array(30, 50), array(50, 90), dt.empty(90, 30).t()
    want = (a @ b).numpy().copy()
    for _ in range(4):
        dt.matmul(a, b, out=out)
        assert np.array_equal(out.numpy(), want)
        assert np.array_equal((a.expand(4, 30, 50) @ b)[2].numpy(), want)
        assert np.array_equal(dt.addmm(dt.zeros(90), a, b).numpy(), want)


def test_the_limit_holds_and_0_turns_it_off() -> None:
    dt.cpu.set_packed_limit(5 * NUMBERS)
    weights = [array(*SHAPE, seed=s) for s in range(4)]
    for _ in range(3):
        for w in weights:
            conv(w)
            assert kept() <= 5 * NUMBERS
    assert kept() == 4 * NUMBERS
    dt.cpu.set_packed_limit(0)
    assert kept() == 0
    for w in 3 * weights:
        conv(w)
    assert kept() == 0
    with pytest.raises(RuntimeError, match="not negative"):
        dt.cpu.set_packed_limit(-1)


def test_the_environment_sets_the_limit() -> None:
    source = "import devtensor as dt; print(dt.cpu.memory_stats()['packed_limit_bytes'])"
    env = {**os.environ, "DEVTENSOR_PACKED_LIMIT": "1234", "PYTHONPATH": str(Path(dt.__file__).parents[1])}
    ran = subprocess.run([sys.executable, "-c", source], env=env, capture_output=True, text=True, check=True)
    assert ran.stdout == "1234\n"


def test_a_place_in_the_table_is_found_for_new_weights() -> None:
    old = [array(256, 16, 1, 1) for _ in range(600)]  # more than the table has places
    for w in 2 * old:
        conv(w)
    w = array(*SHAPE)
    for _ in range(1100):
        conv(w, X[:, :, :1, :1])
    assert conv(w) == conv(w.clone())
    assert kept() <= dt.cpu.memory_stats()["packed_limit_bytes"]
    del old, w
    gc.collect()
    assert kept() == 0


def test_without_memory_for_it_the_weight_is_packed_for_the_call() -> None:
    w = array(*SHAPE)
    expected = conv(w)
    for n in range(12):
        dt._C._test.fail_allocations(n)
        try:
            dt.conv2d(X, w, padding=1)
        except MemoryError:
            pass
        finally:
            dt._C._test.fail_allocations(-1)
        assert conv(w) == expected
        dt.cpu.empty_cache()


def test_threads_that_ask_and_one_that_writes() -> None:
    w, x = array(*SHAPE), array(1, 16, 7, 7)
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            conv(w, x)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for value in range(200):
        w.fill_(float(value))
        expected = w.clone()
        assert conv(w, x) == conv(expected, x)
    stop.set()
    for thread in threads:
        thread.join()
    assert conv(w, x) == conv(w.clone(), x)
