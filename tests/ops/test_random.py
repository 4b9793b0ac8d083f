"""Random numbers are a function of the seed alone: equal on all devices, and of the right kind."""

from __future__ import annotations

import collections
import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import philox
import pytest
from formats import FLOATS, INTS
from support import DEVICES, bits_of, name_of, no_transfers, wide_of

import devtensor as dt

N = 20_000
DRAWS: dict[str, Callable[..., Any]] = {
    "rand": lambda **k: dt.rand(1001, **k),
    "rand float64": lambda **k: dt.rand(7, 11, dtype=dt.float64, **k),
    "rand float16": lambda **k: dt.rand(1001, dtype=dt.float16, **k),
    "rand bfloat16": lambda **k: dt.rand(1001, dtype=dt.bfloat16, **k),
    "randn": lambda **k: dt.randn(1001, **k),
    "randn float64": lambda **k: dt.randn(33, 3, dtype=dt.float64, **k),
    "randint": lambda **k: dt.randint(-5, 17, (1001,), **k),
    "randint int8": lambda **k: dt.randint(0, 100, (1001,), dtype=dt.int8, **k),
    "randint wide": lambda **k: dt.randint(-(2**62), 2**62, (1001,), **k),
    "randperm": lambda **k: dt.randperm(1001, **k),
    "normal": lambda **k: dt.normal(2.0, 3.0, (1001,), **k),
}


@pytest.mark.parametrize("draw", list(DRAWS.values()), ids=list(DRAWS))
def test_equal_on_all_devices(draw: Callable[..., Any]) -> None:
    found = []
    for device in DEVICES:
        dt.manual_seed(123)
        with no_transfers():
            first, second = draw(device=device), draw(device=device)
        assert str(first.device) == device
        found.append((bits_of(first).tobytes(), bits_of(second).tobytes()))
    assert len(set(found)) == 1
    assert found[0][0] != found[0][1]


@pytest.mark.parametrize("seed", [0, 1, 2**32 + 5, 2**63 - 1])
def test_the_generator_is_philox(seed: int, device: str) -> None:
    dt.manual_seed(seed)
    for dtype in FLOATS:
        dt.manual_seed(seed)
        got = dt.rand(9, dtype=getattr(dt, dtype), device=device)
        np.testing.assert_array_equal(wide_of(got), philox.rand(seed, 0, 9, dtype))
        next_block = 5 if dtype == "float64" else 3  # no block is used by two draws
        got = dt.rand(3, dtype=getattr(dt, dtype), device=device)
        np.testing.assert_array_equal(wide_of(got), philox.rand(seed, next_block, 3, dtype))
    dt.manual_seed(seed)
    assert dt.randint(-3, 40, (9,), device=device).tolist() == philox.randint(seed, 0, 9, -3, 40)
    for dtype, close in (("float64", 1e-12), ("float32", 5e-7), ("float16", 2**-10), ("bfloat16", 2**-7)):
        dt.manual_seed(seed)
        got = dt.randn(999, dtype=getattr(dt, dtype), device=device)
        np.testing.assert_allclose(wide_of(got), philox.randn(seed, 0, 999, dtype), rtol=close, atol=close / 1000)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64", *FLOATS])
@pytest.mark.parametrize("shape", [(1,), (2,), (3,), (5,), (31, 33), (255,), (257,), (70_001,)], ids=str)
def test_an_element_depends_on_its_place_alone(shape: tuple[int, ...], dtype: str, device: str) -> None:
    """However many there are, however they are cut among threads: what a long draw begins with is a short draw."""
    made = {"rand": dt.rand, "randn": dt.randn} if dtype in FLOATS else {"randint": partial(dt.randint, 0, 100)}
    for draw in made.values():
        dt.manual_seed(77)
        long = draw((70_001,), dtype=getattr(dt, dtype), device="cpu")
        dt.manual_seed(77)
        short = draw(shape, dtype=getattr(dt, dtype), device=device)
        assert np.array_equal(bits_of(short).reshape(-1), bits_of(long)[: short.numel()])


def test_seeds_repeat_and_differ(device: str) -> None:
    dt.manual_seed(1)
    a = dt.rand(100, device=device).tolist()
    b = dt.rand(100, device=device).tolist()
    dt.manual_seed(1)
    assert dt.rand(100, device=device).tolist() == a
    assert not set(a) & set(b)
    dt.manual_seed(2)
    assert dt.rand(100, device=device).tolist() != a


@pytest.mark.parametrize("dtype", FLOATS)
def test_rand_range_and_moments(dtype: str, device: str) -> None:
    x = wide_of(dt.rand(N, dtype=getattr(dt, dtype), device=device))
    assert x.min() >= 0
    assert x.max() < 1
    assert abs(x.mean() - 0.5) < 0.01
    assert abs(x.var() - 1 / 12) < 0.003
    counts = np.histogram(x, 10, (0, 1))[0]
    assert abs(counts - N / 10).max() < 250


@pytest.mark.parametrize("dtype", FLOATS)
def test_randn_moments(dtype: str, device: str) -> None:
    x = wide_of(dt.randn(N, dtype=getattr(dt, dtype), device=device))
    assert abs(x.mean()) < 0.03
    assert abs(x.std() - 1) < 0.02
    assert abs((x**3).mean()) < 0.08
    assert abs((x**4).mean() - 3) < 0.2
    for cut in (-1.5, -0.5, 0.0, 0.7, 2.0):
        assert abs((x < cut).mean() - 0.5 * (1 + math.erf(cut / math.sqrt(2)))) < 0.012


def test_normal(device: str) -> None:
    x = wide_of(dt.normal(5.0, 0.5, (N,), device=device))
    assert abs(x.mean() - 5) < 0.02
    assert abs(x.std() - 0.5) < 0.01


@pytest.mark.parametrize("dtype", [*INTS, "float32"])
def test_randint(dtype: str, device: str) -> None:
    low = 0 if dtype == "uint8" else -3
    x = dt.randint(low, 8, (N,), dtype=getattr(dt, dtype), device=device)
    assert name_of(x.dtype) == dtype
    found, counts = np.unique(wide_of(x).astype(int), return_counts=True)
    assert found.tolist() == list(range(low, 8))
    assert abs(counts - N / len(found)).max() < 260
    assert dt.randint(5, (4,), device=device).dtype == dt.int64
    assert set(dt.randint(7, 8, (4,), device=device).tolist()) == {7}


@pytest.mark.parametrize("n", [0, 1, 2, 3, 10, 1000, 4097])
def test_randperm(n: int, device: str) -> None:
    x = dt.randperm(n, device=device)
    assert x.dtype == dt.int64
    assert sorted(x.tolist()) == list(range(n))
    if n > 100:
        assert x.tolist() != list(range(n))
        shift = np.abs(np.array(x.tolist()) - np.arange(n)).mean()
        assert abs(shift - n / 3) < n / 10


@pytest.mark.parametrize(("dtype", "most"), [
    ("uint8", 256), ("int8", 128), ("int16", 32768), ("float16", 2049), ("bfloat16", 257),
])  # fmt: skip
def test_randperm_is_held_by_its_dtype(dtype: str, most: int, device: str) -> None:
    x = dt.randperm(most, dtype=getattr(dt, dtype), device=device)
    assert sorted(x.tolist()) == list(range(most))
    with pytest.raises(RuntimeError, match=f"for {dtype}"):
        dt.randperm(most + 1, dtype=getattr(dt, dtype), device=device)


def test_randperm_is_fair() -> None:
    """Every order of five is as likely as the others: chi squared of 119 degrees of freedom, 6 deviations allowed."""
    dt.manual_seed(3)
    orders = collections.Counter(tuple(dt.randperm(5).tolist()) for _ in range(48000))
    assert sum((orders[order] - 400) ** 2 / 400 for order in itertools.permutations(range(5))) < 119 + 6 * 238**0.5


@pytest.mark.parametrize("n", [40, 300, 4096])
def test_randperm_has_no_pattern(n: int) -> None:
    """Neighbours of the order are as far apart, round the circle, as chance puts them."""
    dt.manual_seed(4)
    apart = np.zeros(n)
    draws = 200_000 // n
    for _ in range(draws):
        apart += np.bincount(np.diff(wide_of(dt.randperm(n)).astype(int)) % n, minlength=n)
    assert apart[0] == 0
    assert ((apart[1:] - draws) ** 2 / draws).sum() < n - 2 + 6 * (2 * n) ** 0.5


def test_generators(device: str) -> None:
    one, two = dt.Generator(), dt.Generator()
    one.manual_seed(9)
    two.manual_seed(9)
    dt.manual_seed(4)
    want = dt.rand(5, device=device).tolist()
    dt.manual_seed(4)
    a = dt.rand(5, generator=one, device=device)
    assert a.tolist() == dt.rand(5, generator=two, device=device).tolist()
    assert dt.rand(5, device=device).tolist() == want
    assert one.initial_seed() == 9


def test_a_fresh_seed_can_be_used_again(device: str) -> None:
    one, two = dt.Generator(device), dt.Generator(device)
    assert one.device == dt.device(device)
    seed = one.seed()
    assert seed == one.initial_seed() != one.seed()
    one.manual_seed(seed)
    two.manual_seed(seed)
    assert dt.rand(5, generator=one, device=device).tolist() == dt.rand(5, generator=two, device=device).tolist()


def test_empty_draws(device: str) -> None:
    for x in (dt.rand(0, device=device), dt.randn(2, 0, device=device), dt.randperm(0)):
        assert x.numel() == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda d: dt.randint(5, 5, (2,), device=d),
        lambda d: dt.randint(5, 4, (2,), device=d),
        lambda d: dt.randint(0, 300, (2,), dtype=dt.int8, device=d),
        lambda d: dt.randperm(-1, device=d),
        lambda d: dt.normal(0.0, -1.0, (2,), device=d),
        lambda d: dt.rand(2, dtype=dt.int32, device=d),
        lambda d: dt.randn(2, dtype=dt.bool, device=d),
    ],
)
def test_impossible_draws(call: Callable[[str], Any], device: str) -> None:
    with pytest.raises(RuntimeError):
        call(device)


def test_where_a_generator_is(device: str) -> None:
    for g in (dt.Generator().manual_seed(3), dt.manual_seed(3), dt.default_generator.manual_seed(3)):
        dt.rand(5, device=device, generator=g)
        state, apart = g.get_state(), g.clone_state()
        assert state.dtype is dt.uint8 and tuple(state.shape) == (16,)
        wanted = dt.rand(4, device=device, generator=g).tolist()
        assert dt.rand(4, device=device, generator=apart).tolist() == wanted
        assert dt.rand(4, device=device, generator=g).tolist() != wanted
        assert dt.rand(4, device=device, generator=g.set_state(state)).tolist() == wanted
    assert dt.equal(dt.get_rng_state(), dt.default_generator.get_state())
    g = dt.Generator()
    before = g.get_state()
    wrong = (
        dt.zeros(16),
        dt.zeros(15, dtype=dt.uint8),
        dt.zeros(32, dtype=dt.uint8)[::2],
        dt.zeros(4, 4, dtype=dt.uint8),
    )
    for state in wrong:
        with pytest.raises(RuntimeError, match=r"set_state\(\): a state is an array of 16 uint8 on the cpu"):
            g.set_state(state)
    with pytest.raises(TypeError, match=r"set_state\(\): a state is"):
        g.set_state(3)  # type: ignore[arg-type]
    if device != "cpu":
        with pytest.raises(RuntimeError, match="on the cpu"):
            g.set_state(before.to(device))
    assert dt.equal(g.get_state(), before)


def test_seeds_of_cuda_leave_the_cpu_alone_where_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dt.cuda, "is_available", lambda: False)
    dt.manual_seed(1)
    wanted = dt.rand(2).tolist()
    dt.manual_seed(1)
    dt.cuda.manual_seed(7)
    dt.cuda.manual_seed_all(8)
    assert dt.rand(2).tolist() == wanted


def test_draws_of_bools(device: str) -> None:
    assert dt.randint(0, 1, (5,), dtype=dt.bool, device=device).tolist() == [False] * 5
    assert set(dt.randint(0, 2, (64,), dtype=dt.bool, device=device).tolist()) == {False, True}
    assert sorted(dt.randperm(2, dtype=dt.bool, device=device).tolist()) == [False, True]
    for call in (lambda: dt.randint(5, 9, (4,), dtype=dt.bool, device=device), lambda: dt.randperm(3, dtype=dt.bool)):
        with pytest.raises(RuntimeError, match="is out of bounds for bool"):
            call()
