"""Lengths around every constant that loops and kernels cut their work by: one less, just so, and one more.

The constants are read from the sources, so that a new tile is met the day it is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import ROOT

import devtensor as dt

ROOMS = [ROOT / "csrc" / room for room in ("cpu", "cuda/ops", "cuda/matmul", "cuda/conv", "kernels")]
CONSTANT = re.compile(r"^#define ([A-Z]\w*) (\d+)\b", re.MULTILINE)
MOST = 4200  # the larger ones are of whole arrays, not of rows

Array = np.ndarray[Any, Any]
Pair = tuple[Any, Array]  # what devtensor says and what is right


def constants() -> dict[str, int]:
    found = {}
    for room in ROOMS:
        for path in sorted(room.rglob("*")) if room.is_dir() else []:
            if path.suffix in (".c", ".h", ".inc", ".cu"):
                for name, value in CONSTANT.findall(path.read_text()):
                    found[f"{path.relative_to(ROOT)} {name}"] = int(value)
    return {name: value for name, value in found.items() if 2 < value <= MOST}


def around(n: int) -> set[int]:
    return {n - 1, n, n + 1} | ({2 * n + 1, 3 * n - 1} if n < 600 else set())


LENGTHS = sorted(set().union(*map(around, constants().values())))

pytestmark = pytest.mark.skipif(not LENGTHS, reason="reads the source tree")


def whole(rng: np.random.Generator, *shape: int) -> Array:
    """Integers in float32, sums of products of which are exact."""
    return rng.integers(-4, 5, shape).astype("float32")


class Maker:
    """Arrays for a length n, of both kinds."""

    def __init__(self, n: int, device: str) -> None:
        self.n, self.device, self.rng = n, device, np.random.default_rng(n)

    def __call__(self, *shape: int) -> tuple[dt.DeviceArray, Array]:
        return self.given(whole(self.rng, *shape))

    def given(self, values: Array) -> tuple[dt.DeviceArray, Array]:
        return dt.array(values, device=self.device), values

    def order(self, *shape: int) -> tuple[dt.DeviceArray, Array]:
        """Distinct numbers."""
        rows = [self.rng.permutation(shape[-1]) for _ in range(int(np.prod(shape[:-1])))]
        return self.given(np.array(rows, "float32").reshape(shape))

    def indices(self, count: int, size: int) -> tuple[dt.DeviceArray, Array]:
        return self.given(self.rng.integers(0, size, count))


def softmax(x: Array) -> Array:
    e = np.exp(x.astype("float64") - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def windows(x: Array, width: int) -> Array:
    return np.lib.stride_tricks.sliding_window_view(x, width, -1)


def elementwise(m: Maker) -> list[Pair]:
    (x, a), (y, b) = m(m.n), m(3, m.n)
    return [
        (x * 2 + y, a * 2 + b),
        (y[:, ::2] - 1, b[:, ::2] - 1),
        (y.T * y.T, b.T * b.T),
        (dt.where(x > 0, x, 1), np.where(a > 0, a, 1)),
    ]


def casts(m: Maker) -> list[Pair]:
    x, a = m(2, m.n)
    return [(x.to(dt.int8), a.astype("int8")), (x.half(), a.astype("float16")), (x.to(dt.float64).T.contiguous(), a.T)]


def copies(m: Maker) -> list[Pair]:
    (x, a), (y, b) = m(m.n, 3), m(m.n, m.n % 37 + 1)
    return [
        (x.T.contiguous(), a.T),
        (y.T.contiguous(), b.T),
        (dt.cat([x, y[:, :1]], 1), np.concatenate([a, b[:, :1]], 1)),
        (x.flip(0), a[::-1]),
        (dt.roll(x, 1, 0), np.roll(a, 1, 0)),
        (x.permute(1, 0)[..., ::2].contiguous(), a.T[:, ::2]),
    ]


def sums(m: Maker) -> list[Pair]:
    found: list[Pair] = []
    for x, a in (m(2, m.n), m(m.n, 2), m(m.n, 33)):
        for dim in (0, 1):
            found += [(x.sum(dim), a.sum(dim)), (x.amax(dim), a.max(dim)), (x.mean(dim), a.mean(dim, dtype="float64"))]
            found += [(x.any(dim), a.any(dim)), (x.T.sum(1 - dim), a.sum(dim)), ((x > 9).any(dim), (a > 9).any(dim))]
    return found


def places(m: Maker) -> list[Pair]:
    found: list[Pair] = []
    for x, a in (m.order(3, m.n), m(m.n, 5)):
        for dim in (0, 1):
            found += [(x.argmax(dim), a.argmax(dim)), (x.argmin(dim), a.argmin(dim))]
    return found


def normalized(m: Maker) -> list[Pair]:
    x, a = m(3, m.n)
    wide = a.astype("float64")
    normal = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5)
    return [
        (dt.softmax(x, -1), softmax(a)),
        (dt.softmax(x.T, 0), softmax(a).T),
        (dt.log_softmax(x, -1), np.log(softmax(a))),
        (dt.layer_norm(x, (m.n,)), normal),
        (x.T.contiguous().softmax(0), softmax(a).T),
    ]


def scans(m: Maker) -> list[Pair]:
    (x, a), (y, b) = m(3, m.n), m(m.n, 3)
    return [
        (x.cumsum(1), a.cumsum(1)),
        (y.cumsum(0), b.cumsum(0)),
        (x.cummax(1).values, np.maximum.accumulate(a, 1)),
        (y.cummin(0).values, np.minimum.accumulate(b, 0)),
    ]


def sorted_rows(m: Maker) -> list[Pair]:
    (x, a), (y, b) = m.order(2, m.n), m(m.n, 2)
    k = min(m.n, 5)
    return [
        (x.sort().values, np.sort(a)),
        (x.argsort(), np.argsort(a)),
        (y.sort(0, stable=True)[1], np.argsort(b, 0, kind="stable")),
        (x.topk(k).values, np.sort(a)[:, ::-1][:, :k]),
        (x.kthvalue(k).values, np.sort(a)[:, k - 1]),
    ]


def selections(m: Maker) -> list[Pair]:
    (x, a), (i, at), (mask, chosen) = m(m.n, 3), m.indices(m.n, m.n), m.given(m.rng.integers(0, 2, m.n) > 0)
    j, to = m.indices(m.n, 5)
    added = np.zeros((5, 3), "float32")
    np.add.at(added, to, a)
    return [
        (x[i], a[at]),
        (x[mask], a[chosen]),
        (mask.nonzero()[:, 0], chosen.nonzero()[0]),
        (dt.zeros(5, 3, device=m.device).index_add(0, j, x), added),
        (x.T.gather(1, i.expand(3, m.n)), a.T[:, at]),
    ]


def products(m: Maker) -> list[Pair]:
    found: list[Pair] = []
    for rows, depth, columns in ((m.n, 3, 5), (3, m.n, 5), (3, 5, m.n), (1, m.n, 1), (m.n, 17, 1), (1, 17, m.n)):
        (x, a), (y, b) = m(rows, depth), m(depth, columns)
        found += [(x @ y, a @ b), (x @ dt.array(b.T.copy(), device=m.device).T, a @ b)]
    (x, a), (y, b) = m(m.n), m(m.n)
    return [*found, (dt.dot(x, y), a @ b)]


def convolutions(m: Maker) -> list[Pair]:
    (x, a), (w, f) = m(1, 2, 1, m.n + 2), m(3, 2, 1, 3)
    wide = np.einsum("bcwk,ock->bow", windows(a[:, :, 0], 3), f[:, :, 0])[:, :, None]
    (y, b), (v, g) = m(1, m.n, 2, 3), m(m.n, m.n % 3 + 1, 1, 1) if m.n < 3 else m(4, m.n, 1, 1)
    deep = np.einsum("bchw,oc->bohw", b, g[:, :, 0, 0]) if m.n >= 3 else None
    (z, c), (u, h) = m(1, m.n, 1, 9), m(m.n, 1, 1, 3)
    own = np.einsum("bcwk,ck->bcw", windows(c[:, :, 0], 3), h[:, 0, 0])[:, :, None]
    found: list[Pair] = [(dt.conv2d(x, w), wide), (dt.conv2d(z, u, groups=m.n), own)]
    return found + ([(dt.conv2d(y, v), deep)] if deep is not None else [])


def pools(m: Maker) -> list[Pair]:
    x, a = m(1, 2, 3, m.n + 2)
    best = windows(a, 3).max(-1)
    return [
        (dt.max_pool2d(x, (1, 3), 1), best),
        (dt.avg_pool2d(x, (1, 3), 1), windows(a, 3).mean(-1)),
        (dt.max_pool2d(x.permute(0, 1, 3, 2), (3, 1), 1).permute(0, 1, 3, 2), best),
    ]


MEASURES = (
    elementwise,
    casts,
    copies,
    sums,
    places,
    normalized,
    scans,
    sorted_rows,
    selections,
    products,
    convolutions,
)
OPS: dict[str, Callable[[Maker], list[Pair]]] = {f.__name__: f for f in (*MEASURES, pools)}


@pytest.mark.parametrize("op", OPS)
def test_every_length(op: str, device: str) -> None:
    for n in LENGTHS:
        for i, (got, want) in enumerate(OPS[op](Maker(n, device))):
            close = {"rtol": 1e-5, "atol": 1e-5} if op in ("normalized", "sums", "pools") else {"rtol": 0, "atol": 0}
            np.testing.assert_allclose(got.cpu().numpy(), want, **close, err_msg=f"{op}, length {n}, result {i}")


def test_the_constants_are_found() -> None:
    known = {name.rpartition(" ")[2]: value for name, value in constants().items()}
    assert {"GEMM_MAX_DEPTH", "K_SORTED_TILE", "LANES", "CONV_TAPS"} <= set(known)
    assert len(known) > 60 and len(LENGTHS) > 40
