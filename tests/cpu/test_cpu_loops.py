"""The loops of the host backend: the same bits from every instruction set and number of threads, stated accuracy, and
no memory beyond what is promised."""

from __future__ import annotations

import ctypes
import functools
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import digest_of_cpu_loops
import numpy as np
import pytest
from support import ROOT

import devtensor as dt

SETS = ("avx512", "avx2", "generic")
FLAGS = {"avx512": {"avx512f", "avx512bw", "avx512dq", "avx512vl"}, "avx2": {"avx2", "f16c"}, "generic": set()}
DTYPES = (*digest_of_cpu_loops.NUMPY, "bfloat16")


@functools.cache
def here() -> list[str]:
    """The sets that this machine can run."""
    try:
        words = set(Path("/proc/cpuinfo").read_text().split())
    except OSError:
        words = set()
    return [name for name in SETS if words >= FLAGS[name]]


def run(source: list[str], **environment: str) -> str:
    full = [sys.executable, *source]
    done = subprocess.run(full, capture_output=True, text=True, env=os.environ | environment, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@functools.cache
def digests(name: str) -> dict[str, dict[str, str]]:
    return json.loads(run([digest_of_cpu_loops.__file__, *DTYPES], DEVTENSOR_CPU=name))


@pytest.mark.parametrize("name", SETS)
def test_every_set_gives_the_same_bits(name: str) -> None:
    """Each length from 0 to 70, at the end of a page; that the values are right is test_ops' business."""
    if name not in here():
        pytest.skip(f"this processor has no {name}")
    want, found = digests("generic"), digests(name)
    assert set(found) == set(DTYPES)
    for dtype in DTYPES:
        assert len(found[dtype]) == len(digest_of_cpu_loops.OPS)
        assert {op for op in digest_of_cpu_loops.OPS if found[dtype][op] != want[dtype][op]} == set()


@pytest.mark.parametrize("name", SETS)
def test_the_case_table_with_every_set(name: str) -> None:
    if name not in here():
        pytest.skip(f"this processor has no {name}")
    if name == here()[0]:
        pytest.skip("test_ops runs with it")
    files = [str(ROOT / "tests" / file) for file in ("ops/test_ops.py", "cpu/test_cpu_products.py")]
    only = "(cpu and (test_function or test_out)) or products_of_integers"
    run(["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-k", only, *files], DEVTENSOR_CPU=name)


@pytest.mark.parametrize("dtype, quotient, large", [("float32", 2**18, 2.0**100), ("float64", 2**45, 2.0**900)])
@pytest.mark.parametrize("far", [False, True])
def test_floor_division_of_floats(far: bool, dtype: str, quotient: int, large: float) -> None:
    """Quotients at, just below and just above integers; a large one sends its whole block another way."""
    rng = np.random.default_rng(11)
    b = np.ldexp(rng.integers(1, 64, 3000), rng.integers(-60, 60, 3000)).astype(dtype)
    a = (rng.integers(-quotient, quotient, 3000) * b).astype(dtype)
    a[1::3] = np.nextafter(a[1::3], np.array(np.inf, dtype))
    a[2::3] = np.nextafter(a[2::3], np.array(-np.inf, dtype))
    b[::2] *= -1
    if far:
        a[::500] = large
    x, y = dt.asarray(a), dt.asarray(b)
    assert (x // y).numpy().tobytes() == np.floor_divide(a, b).tobytes()
    assert (x % y).numpy().tobytes() == np.remainder(a, b).tobytes()


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
def test_division_of_integers(dtype: str) -> None:
    """The least number by -1 among them, which no vector of quotients holds; by 0 it is 0."""
    info = np.iinfo(dtype)
    ends = [info.min, info.min + 1, -1 if info.min else 1, 0, 1, 2, 7, info.max - 1, info.max]
    numbers = np.array([*ends, *np.random.default_rng(3).integers(info.min, info.max, 200, endpoint=True)], dtype)
    a, b = np.repeat(numbers, numbers.size), np.tile(numbers, numbers.size)
    x, y = dt.asarray(a), dt.asarray(b)
    with np.errstate(all="ignore"):
        assert np.array_equal((x // y).numpy(), np.floor_divide(a, b))
        assert np.array_equal((x % y).numpy(), np.remainder(a, b))
        for divisor in ends:
            want = np.floor_divide(numbers, np.array(divisor, dtype))
            assert np.array_equal((dt.asarray(numbers) // divisor).numpy(), want)


@pytest.mark.parametrize("channels", [2, 3, 16, 33, 511, 512, 513])
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64"])
def test_an_operand_that_each_row_repeats(dtype: str, channels: int) -> None:
    """Few channels: rows are joined over copies of it. A large result is stored around the caches."""
    rng, threads = np.random.default_rng(7), dt.get_num_threads()
    blocks = [digest_of_cpu_loops.Guarded((4 << 20) + 4 * channels) for _ in range(2)]
    enough = 2048 // channels
    streamed = (1 << 22) // channels + 3 if (dtype, channels) == ("float32", 33) else 7
    try:
        for rows in (1, enough - 1, enough, enough + 1, 7 * enough + 1, 200_000 // channels, streamed):
            a = rng.integers(0, 5, (rows, channels)).astype(dtype)
            if a.nbytes < 4 << 20:
                guarded = blocks[0].last(a.size, dtype).reshape(a.shape)
                guarded[:] = a
                a = guarded
            b = blocks[1].last(channels, dtype)
            b[:] = rng.integers(0, 5, channels)
            x, y = dt.from_numpy(a), dt.from_numpy(b)
            for n in (1, 2, 3):
                dt.set_num_threads(n)
                assert np.array_equal((x + y).numpy(), a + b)
                assert np.array_equal((y - x[::2]).numpy(), b - a[::2])
                assert np.array_equal(dt.where(y > 2, x, y).numpy(), np.where(b > 2, a, b))
                assert np.array_equal(y.expand(rows, channels).to(dt.float32).numpy(), np.broadcast_to(b, a.shape))
                assert np.array_equal(x.clone().mul_(y).numpy(), a * b)
    finally:
        dt.set_num_threads(threads)


# ---------------------------------------------------------------- accuracy

FUNCTIONS = {
    "exp": (np.exp, 1.01),
    "expm1": (np.expm1, 0.51),
    "log": (np.log, 0.94),
    "log2": (np.log2, 0.51),
    "log10": (np.log10, 0.51),
    "log1p": (np.log1p, 0.95),
    "tanh": (np.tanh, 0.95),
    "erf": (np.vectorize(math.erf, otypes=["float64"]), 0.95),
    "sin": (np.sin, 0.92),
    "cos": (np.cos, 0.92),
    "tan": (np.tan, 1.5),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_in_units_in_the_last_place(name: str) -> None:
    """A sample; tools/checks/measure_ulp.c looks at every float32."""
    exact, allowed = FUNCTIONS[name]
    bits = np.arange(0, 1 << 32, 1 << 16, dtype=np.uint32) + np.uint32(0x5A5A)
    x = np.concatenate([bits.view("float32"), np.linspace(-3, 3, 20001, dtype="float32")])
    with np.errstate(all="ignore"):
        want = exact(x.astype("float64"))
        nearest = want.astype("float32")
    got = getattr(dt, name)(dt.from_numpy(x)).numpy()
    finite = np.isfinite(nearest)
    assert np.array_equal(np.isnan(got), np.isnan(nearest))
    assert np.array_equal(got[np.isinf(nearest)], nearest[np.isinf(nearest)])
    assert np.array_equal(np.signbit(got[finite]), np.signbit(nearest[finite]))
    error = np.abs(got[finite].astype("float64") - want[finite]) / np.spacing(np.abs(nearest[finite])).astype("float64")
    assert error.max() <= allowed


WIDE_FUNCTIONS = {
    "exp": (np.exp, 0.95),
    "expm1": (np.expm1, 1.4),
    "log": (np.log, 0.85),
    "log1p": (np.log1p, 0.95),
    "tanh": (np.tanh, 2.5),
}


@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("name", WIDE_FUNCTIONS)
def test_error_of_float64(name: str, step: int) -> None:
    """Against long double; where that is no longer than double its own error is allowed for."""
    exact, allowed = WIDE_FUNCTIONS[name]
    allowed += np.finfo("longdouble").nmant == np.finfo("float64").nmant
    rng = np.random.default_rng(17)
    bits = rng.integers(0, 1 << 64, 30000, dtype=np.uint64).view("float64")
    ends = [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 1e-310, 709.78, 709.79, -745.1, -745.2, -708.5]
    x = np.concatenate([bits, rng.uniform(-3, 3, 30000), rng.uniform(-760, 720, 30000), ends])
    with np.errstate(all="ignore"):
        want = exact(x.astype("longdouble"))
        nearest = want.astype("float64")
    got = getattr(dt, name)(dt.from_numpy(np.repeat(x, step))[::step]).numpy()
    finite = np.isfinite(nearest)
    assert np.array_equal(got[~finite], nearest[~finite], equal_nan=True)
    assert np.array_equal(np.signbit(got[finite]), np.signbit(nearest[finite]))
    error = np.abs(got[finite] - want[finite]) / np.spacing(np.abs(nearest[finite]))
    assert error.max() <= allowed


@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("name", ["sin", "cos"])
def test_turns_of_float64(name: str, step: int) -> None:
    """Below 2^20, near multiples of pi/2 too, and beyond; which way a number goes does not depend on the block."""
    exact = {"sin": np.sin, "cos": np.cos}[name]
    rng = np.random.default_rng(29)
    ends = [0, -0.0, np.inf, -np.inf, np.nan, 2.0**20, np.nextafter(2.0**20, 0), 5e-324, 1e300]
    multiples = rng.integers(-600000, 600000, 4000) * (np.pi / 2)
    x = np.concatenate([rng.uniform(-10, 10, 4000), rng.uniform(-(2.0**20), 2.0**20, 4000), multiples, ends])
    x = np.concatenate([x, rng.uniform(-(2.0**30), 2.0**30, 700), x[:1000]])
    function = getattr(dt, name)
    got = function(dt.from_numpy(np.repeat(x, step))[::step]).numpy()
    order = rng.permutation(x.size)
    assert function(dt.from_numpy(x[order])).numpy().tobytes() == got[order].tobytes()
    with np.errstate(invalid="ignore"):
        want = exact(x.astype("longdouble"))
    finite = np.isfinite(x)
    assert np.isnan(got[~finite]).all()
    assert np.array_equal(np.signbit(got[finite]), np.signbit(want[finite].astype("float64")))
    error = np.abs(got[finite] - want[finite]) / np.spacing(np.abs(got[finite]))
    assert error.max() <= (0.98 if np.finfo("longdouble").nmant > np.finfo("float64").nmant else 2)


def test_error_of_powers() -> None:
    """Every pair of ends as the C standard has it, and what lies between, of either sign and with whole exponents."""
    rng = np.random.default_rng(19)
    ends = [0, 1, 0.5, 2, 3, 1.5, 1e-45, 1e-38, 3e38, 8388607.5, 8388609, 16777215, 16777216, 33554434, np.inf]
    ends = np.float32([*ends, *np.negative(ends), np.nan])
    x = np.exp2(rng.uniform(-30, 30, 40000)) * rng.choice([-1, 1], 40000)
    y = rng.uniform(-150, 150, x.size) / np.log2(np.abs(x))
    y[::2] = np.rint(y[::2])
    x = np.concatenate([np.repeat(ends, ends.size), x.astype("float32")])
    y = np.concatenate([np.tile(ends, ends.size), y.astype("float32")])
    with np.errstate(all="ignore"):
        want = np.power(x.astype("float64"), y.astype("float64"))
        nearest = want.astype("float32")
    got = (dt.from_numpy(x) ** dt.from_numpy(y)).numpy()
    finite = np.isfinite(nearest)
    assert np.array_equal(got[~finite], nearest[~finite], equal_nan=True)
    assert np.array_equal(np.signbit(got[finite]), np.signbit(nearest[finite]))
    unit = np.spacing(np.abs(nearest[finite])).astype("float64")
    assert (np.abs(got[finite].astype("float64") - want[finite]) / unit).max() <= 0.505
    spread = dt.from_numpy(np.repeat(x, 3))[::3] ** dt.from_numpy(np.repeat(y, 2))[::2]
    assert np.array_equal(spread.numpy(), got, equal_nan=True)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "uint8", "int32", "int64"])
def test_squares(dtype: str) -> None:
    """A number for an exponent, 2, is a product."""
    x = np.random.default_rng(23).integers(-100, 100, 3000).astype(dtype)
    if x.dtype.kind == "f":
        x = np.concatenate([x / x.dtype.type(7), np.array([0, -0.0, np.inf, -np.inf, np.nan, 6e-5], dtype)])
    for a, b in ((x, dt.from_numpy(x)), (x[::3], dt.from_numpy(x)[::3])):
        assert np.array_equal((b**2).numpy(), a * a, equal_nan=x.dtype.kind == "f")


def halves(dtype: str) -> tuple[dt.DeviceArray, np.ndarray]:
    """Every number of a half type there is, and its bits."""
    bits = np.arange(1 << 16, dtype=np.uint16)
    wide = (
        bits.view("float16").astype("float32") if dtype == "float16" else (bits.astype(np.uint32) << 16).view("float32")
    )
    return dt.from_numpy(wide).to(getattr(dt, dtype)), bits


@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_signs_of_half_types(dtype: str, step: int) -> None:
    """Bits alone decide, and NaN is the one of casts."""
    x, bits = halves(dtype)
    infinity, nan = (0x7C00, 0x7E00) if dtype == "float16" else (0x7F80, 0x7FC0)
    want = {dt.neg: bits ^ 0x8000, dt.abs: bits & 0x7FFF, dt.relu: np.where(bits >> 15, 0, bits)}
    for op, expected in want.items():
        expected = np.where(bits & 0x7FFF > infinity, nan, expected).astype("uint16")[::step]
        got = op(x[::step]).contiguous()
        assert ctypes.string_at(got.data_ptr(), got.nbytes) == expected.tobytes()


@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_turns_of_large_numbers(name: str, step: int) -> None:
    """Up to 2^13, to 2^20 and beyond they are reduced in three ways; which one does not depend on the block."""
    exact, allowed = FUNCTIONS[name]
    rng = np.random.default_rng(5)
    bounds = np.float32([2**13, 2**20, 2**30, np.inf])
    near = rng.uniform(-(2.0**13), 2.0**13, 4000).astype("float32")
    ends = [*bounds, *np.nextafter(bounds, np.float32(0)), 0, -0.0, np.nan]
    mixed = np.concatenate([near, near * 100, near * 1e6, ends])
    mixed = np.repeat(rng.permutation(mixed.astype("float32")), step)
    function = getattr(dt, name)
    got = function(dt.from_numpy(mixed)[::step]).numpy()
    x = mixed[::step]
    sorted_got = np.empty_like(got)
    order = np.argsort(np.abs(x))
    sorted_got[order] = function(dt.from_numpy(x[order])).numpy()
    assert got.tobytes() == sorted_got.tobytes()
    with np.errstate(invalid="ignore"):
        want = exact(x.astype("float64"))
    finite = np.isfinite(want)
    assert np.array_equal(np.isnan(got), ~finite)
    assert np.array_equal(np.signbit(got[finite]), np.signbit(want[finite]))
    unit = np.spacing(np.abs(want[finite]).astype("float32")).astype("float64")
    assert (np.abs(got[finite].astype("float64") - want[finite]) / unit).max() <= allowed


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_keeps_its_tail(approximate: str) -> None:
    """Far below 0 the formulas lose every digit where 1 + erf or 1 + tanh cancels; here what is lost grows as x * x."""
    x = np.concatenate([np.linspace(-6, 6, 20001, dtype="float32"), np.float32([0, -0.0, 1e-40, -1e-40, 1e30, np.inf])])
    wide = x.astype("float64")
    with np.errstate(all="ignore"):
        if approximate == "tanh":
            want = wide / (1 + np.exp(-2 * math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)))
        else:
            want = wide * np.vectorize(lambda v: math.erfc(-v * math.sqrt(0.5)) / 2)(wide)
    got = dt.gelu(dt.from_numpy(x), approximate=approximate).numpy()
    assert np.array_equal(np.signbit(got), np.signbit(want.astype("float32")))
    assert got[-1] == np.inf
    unit = np.spacing(np.abs(want[:-1]).astype("float32")).astype("float64")
    error = np.abs(got[:-1].astype("float64") - want[:-1]) / unit
    assert (error <= 3 + np.where(wide < 0, 7 * wide**2, 0)[:-1]).all()
    assert np.array_equal(dt.gelu(dt.tensor([math.nan, -1e30]), approximate=approximate).numpy(), [math.nan, 0], True)


LAYOUTS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.T,
    "every third": lambda x: x[:, ::3],
    "middle": lambda x: x[:, 5:-7],
}


@pytest.mark.parametrize("dim", [None, 0, 1])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_lose_little(dtype: str, layout: str, dim: int | None) -> None:
    """Sums of float32 are accumulated in float64 and rounded once, sums of float64 like a tree: the error is some
    log2(n) roundings of the sum of magnitudes, where adding one after another allows n of them."""
    x = np.random.default_rng(0).uniform(0.5, 1.5, (1500, 1100)).astype(dtype)
    x[::2] *= -1
    view = LAYOUTS[layout](x)
    got = LAYOUTS[layout](dt.from_numpy(x)).sum(dim=dim)
    exact = np.sum(view.astype("longdouble"), axis=dim)
    magnitude = np.sum(np.abs(view).astype("longdouble"), axis=dim)
    n = view.size // max(exact.size, 1)
    roundings = (math.log2(n) + 70) * 2.0**-53
    allowed = magnitude * roundings + (np.abs(exact) * 2.0**-24 if dtype == "float32" else 0)
    assert (np.abs(got.numpy().astype("longdouble") - exact) <= allowed).all()


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64"])
def test_transposed_copies_write_all_of_their_target_and_nothing_else(dtype: str) -> None:
    """Squares are turned in tiles of 32 by 32, the last of which may lie over one another."""
    for rows in (8, 9, 15, 16, 31, 33, 47, 64, 130):
        for columns in (8, 15, 17, 32, 40, 65, 256):
            x = np.random.default_rng(0).integers(1, 200, (rows, columns)).astype(dtype)
            out = dt.zeros(columns + 2, rows, dtype=getattr(dt, dtype))
            out[1:-1].copy_(dt.from_numpy(x).T)
            assert np.array_equal(out.numpy(), np.pad(x.T, ((1, 1), (0, 0)))), (rows, columns)


@pytest.mark.parametrize("n", [8, 9, 31, 33, 64, 71, 300])
def test_the_best_of_a_row_wherever_it_stands(n: int) -> None:
    """Row i has its largest or smallest, or a NaN, at place i and at the last one: the first of them is the answer."""
    for value in (9.0, -9.0, math.nan):
        x = np.random.default_rng(n).uniform(-1, 1, (n, n)).astype("float32")
        x[np.arange(n), np.arange(n)] = value
        x[:, -1] = value
        got = dt.from_numpy(x)
        for name, function in {"amax": np.max, "amin": np.min, "argmax": np.argmax, "argmin": np.argmin}.items():
            assert np.array_equal(getattr(got, name)(dim=1).numpy(), function(x, axis=1), equal_nan=True)


SCRIPT = """
import ctypes, hashlib, sys
import devtensor as dt
dt.manual_seed(0)
x = dt.randn(1200, 1100)
h = hashlib.sha256()
for y in (x.sum(), x.sum(dim=0), x.sum(dim=1), x.T.sum(dim=0), x[:, ::3].mean(), dt.softmax(x, 0), dt.softmax(x, 1),
          dt.argmax(x), dt.tanh(x), x.to(dt.float16), x.T.contiguous(), x * 2 + x.T[0, 0], x.prod(dim=1),
          dt.max_pool2d(x[None], 3, 2), dt.avg_pool2d(x[None], 2)):
    h.update(ctypes.string_at(y.data_ptr(), y.nbytes))
print(h.hexdigest())
"""


def test_bits_do_not_depend_on_the_number_of_threads() -> None:
    threads = [f"import devtensor as dt; dt.set_num_threads({n})\n" for n in (1, 2, 3, 7)]
    assert len({run(["-c", start + SCRIPT]) for start in threads}) == 1


# ---------------------------------------------------------------- large results

LARGE = 7 << 20  # elements: results of this size go around the caches


@pytest.mark.parametrize("start", [0, 1, 3, 15])
def test_large_results_are_complete(start: int) -> None:
    """Also where the result begins and ends within a line of the cache."""
    rng = np.random.default_rng(start)
    a, b = rng.standard_normal(LARGE, "float32"), rng.standard_normal(LARGE)
    x, y = dt.from_numpy(a)[start:-5], dt.from_numpy(b)[start:-5]
    out = dt.full((LARGE + 9,), 7.0)
    dt.add(x, 1.0, out=out[start : start + len(x)])
    got = out.numpy()
    assert np.array_equal(got[start : start + len(x)], a[start:-5] + np.float32(1))
    assert (got[:start] == 7).all() and (got[start + len(x) :] == 7).all()
    assert np.array_equal(y.to(dt.float32).numpy(), b[start:-5].astype("float32"))
    assert np.array_equal((x > 0).numpy(), a[start:-5] > 0)
    rows = dt.from_numpy(a)[: 1400 * 5003].reshape(1400, 5003)
    assert np.array_equal((rows[:, 1:] * 2).numpy(), rows.numpy()[:, 1:] * 2)
    square = a[: 2640 * 2640].reshape(2640, 2640)
    assert np.array_equal(dt.from_numpy(square).T.contiguous().numpy(), square.T)


def test_casts_need_no_memory_but_their_result() -> None:
    script = """
import resource, devtensor as dt
x = dt.zeros(1 << 25, dtype=dt.float64)
dt.zeros(1000, dtype=dt.float64).to(dt.float32)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
y = x.to(dt.float32)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, y.nbytes)
"""
    grown, nbytes = map(int, run(["-c", script]).split())
    unit = 1 if sys.platform == "darwin" else 1024
    assert grown * unit <= nbytes + (32 << 20)
