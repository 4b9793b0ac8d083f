"""An index that a device finds out of range is told at the first door to the host, whichever op and door."""

from __future__ import annotations

import io
import operator
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from support import CUDA_DEVICES, REAL, no_transfers, synchronize

import devtensor as dt

Array = dt.DeviceArray


def host(x: Array) -> Array:
    return dt.empty(x.shape, dtype=x.dtype)


def event(x: Array) -> dt.cuda.Event:
    made = dt.cuda.Event()
    made.record()
    return made


def ints(x: Array) -> Array:
    return x.flatten()[:1].to(dt.int64).reshape(())


# x is (4, 4); i, of 4 elements, has one out of range.
OPS: dict[str, Callable[[Array, Array], Array]] = {
    "gather": lambda x, i: x.gather(1, i[:, None]),
    "gather along 0": lambda x, i: x.gather(0, i[None]),
    "gather of a scalar": lambda x, i: x[0, 0].gather(0, i[1]),
    "scatter_add": lambda x, i: x.scatter_add(1, i[:, None], x),
    "scatter_add along 0": lambda x, i: x.scatter_add(0, i[None], x),
    "scatter_add of many": lambda x, i: x[0].scatter_add(0, i.repeat(50), x.flatten().repeat(13)),
    "index_add": lambda x, i: x.index_add(1, i, x),
    "index_add_": lambda x, i: x.clone().index_add_(0, i, x),
    "index_add of many": lambda x, i: x.index_add(0, i.repeat(50), x.repeat(50, 1)),
    "scatter": lambda x, i: x.scatter(1, i[:, None], x),
    "scatter_ of a number": lambda x, i: x.clone().scatter_(0, i[None], 7.0),
    "index_copy": lambda x, i: x.index_copy(1, i, x),
    "index_reduce": lambda x, i: x.index_reduce(1, i, x, "prod"),
    "index_fill": lambda x, i: x.index_fill(0, i, 7.0),
    "index_put, added": lambda x, i: x.index_put((i, i), x[0], accumulate=True),
    "put": lambda x, i: x.put(i * 5, x[0]),
    "take": lambda x, i: x.take(i * 5),
    "take_along_dim": lambda x, i: x.take_along_dim(i[None], 0),
    "take_along_dim, flat": lambda x, i: x.take_along_dim(i * 5),
    "index_select": lambda x, i: x.index_select(1, i),
    "index_select of a scalar": lambda x, i: x[0, 0].index_select(0, i[1:2]),
    "embedding": lambda x, i: dt.embedding(i, x),
    "Embedding": lambda x, i: dt.nn.Embedding(4, 4, device=x.device)(i),
    "x[i]": lambda x, i: x[i],
    "x[:, i]": lambda x, i: x[:, i],
    "x[i, i]": lambda x, i: x[i, i],
    "x[i, ..., None]": lambda x, i: x[i, ..., None],
    "x[i32]": lambda x, i: x[i.to(dt.int32)],
    "x.T[i]": lambda x, i: x.T[i],
    "x[i] = 7": lambda x, i: operator.setitem(x, i, 7) or x,
    "x[i] = rows": lambda x, i: operator.setitem(x, i, dt.ones(4, 4, device=x.device)) or x,
    "x[i, i] = row": lambda x, i: operator.setitem(x, (i, i), x[0]) or x,
    "x[i] += 1": lambda x, i: operator.setitem(x, i, x[i] + 1) or x,
    "nll_loss": lambda x, i: dt.nll_loss(x, i),
    "nll_loss, none": lambda x, i: dt.nll_loss(x, i, reduction="none"),
    "cross_entropy": lambda x, i: dt.cross_entropy(x, i),
    "cross_entropy, sum": lambda x, i: dt.cross_entropy(x, i, reduction="sum"),
}
DOORS: dict[str, Callable[[Array], Any]] = {
    "tolist": lambda x: x.tolist(),
    "item": lambda x: x.sum().item(),
    "cpu": lambda x: x.cpu(),
    "to": lambda x: x.to("cpu"),
    "to another dtype": lambda x: x.to("cpu", dt.float64),
    "to, not blocking": lambda x: x.to("cpu", non_blocking=True).tolist(),
    "copy_": lambda x: host(x).copy_(x),
    "copy_ into pinned memory": lambda x: host(x).pin_memory().copy_(x),
    "numpy": lambda x: x.cpu().numpy(),
    "repr": repr,
    "str": str,
    "format": lambda x: f"{x.sum():.1f}",
    "bool": lambda x: bool(x.sum()),
    "int": lambda x: int(x.sum()),
    "float": lambda x: float(x.sum()),
    "index": lambda x: operator.index(ints(x)),
    "iteration": lambda x: [float(v) for v in x.flatten()],
    "in": lambda x: 12345 in x,
    "equal": lambda x: dt.equal(x, x),
    "array_equal": lambda x: dt.array_equal(x, x),
    "allclose": lambda x: dt.allclose(x, x),
    "assert_close": lambda x: dt.testing.assert_close(x, x),
    "nonzero": lambda x: x.nonzero(),
    "x[mask]": lambda x: x[x > 0],
    "masked_select": lambda x: x.masked_select(x > 0),
    "where": lambda x: dt.where(x > 0),
    "pickle": lambda x: pickle.dumps(x),
    "save": lambda x: dt.save({"x": x}, io.BytesIO()),
    "synchronize": lambda x: dt.cuda.synchronize(x.device),
    "stream": lambda x: dt.cuda.current_stream(x.device).synchronize(),
    "event": lambda x: event(x).synchronize(),
}


READ = ("gather", "gather along 0", "take_along_dim", "index_select", "embedding", "x[i]", "x[:, i]")


@pytest.fixture
def operands(cuda: str) -> Any:
    with dt.cuda.device(cuda):
        yield dt.arange(16, dtype=dt.float32, device=cuda).reshape(4, 4), dt.array([0, 9, 1, 0], device=cuda)
        synchronize()


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("op", OPS)
def test_the_first_door_tells(op: str, door: str, operands: tuple[Array, Array]) -> None:
    x, i = operands
    with no_transfers():
        result = OPS[op](x, i)  # waits for nothing
    with pytest.raises(IndexError, match=r"out of bounds") as caught:
        DOORS[door](result)
    assert str(caught.value).endswith(f"test_late_indices.py:{OPS[op].__code__.co_firstlineno}")
    assert f" on {x.device}, " in str(caught.value)
    DOORS[door](dt.ones(3, 3, device=x.device))  # told once


@pytest.mark.parametrize(
    "op",
    [
        "gather",
        "gather along 0",
        "index_select",
        "scatter_add",
        "index_add",
        "embedding",
        "Embedding",
        "nll_loss",
        "scatter",
        "index_copy",
    ],
)
def test_what_does_not_count_from_the_end(op: str, cuda: str) -> None:
    x = dt.ones(4, 4, device=cuda)
    result = OPS[op](x, dt.array([0, -1, 1, 0], device=cuda))
    with pytest.raises(IndexError, match="-1 is out of bounds"):
        result.tolist()


@pytest.mark.skipif(len(CUDA_DEVICES) < 2, reason="needs two devices")
@pytest.mark.parametrize("op", OPS)
def test_on_another_device_too(op: str, operands: tuple[Array, Array]) -> None:
    """What was copied on to another device before anybody waited."""
    x, i = operands
    (other,) = (name for name in CUDA_DEVICES if name != str(x.device))
    result = OPS[op](x, i).to(other)
    with pytest.raises(IndexError, match=f"out of bounds.* on {x.device}, "):
        result.tolist()
    assert dt.ones(2, device=other).tolist() == [1, 1]


@pytest.mark.parametrize("dtype", ["float32", "int8", "float64"])
@pytest.mark.parametrize("op", READ)
def test_what_is_out_of_range_gives_zeros(op: str, dtype: str, operands: tuple[Array, Array]) -> None:
    x, i = operands[0].to(getattr(dt, dtype)) + 1, operands[1]
    result = OPS[op](x, i)
    with pytest.raises(IndexError, match="out of bounds"):
        result.tolist()
    here, there = (OPS[op](x, dt.where(i == 9, other, i)) for other in (2, 3))
    assert (here != there).any()
    assert result.tolist() == dt.where(here == there, here, 0).tolist()


def test_another_thread_and_another_stream(operands: tuple[Array, Array]) -> None:
    x, i = operands
    x.cpu(), i.cpu()
    with dt.cuda.stream(dt.cuda.Stream(x.device)):
        result = x[i]
    with ThreadPoolExecutor(1) as pool, pytest.raises(IndexError, match="out of bounds"):
        pool.submit(result.tolist).result()


@pytest.mark.skipif(REAL, reason="a real device may have done the work already")
@pytest.mark.parametrize("elsewhere", [False, True], ids=["one device", "two devices"])
def test_the_earliest_is_told_though_others_wait_for_less(elsewhere: bool, operands: tuple[Array, Array]) -> None:
    """Whoever waits for one stream, or for a copy on another device, sees what all of the device has to say, once."""
    x, i = operands
    x.cpu(), i.cpu()
    others = [name for name in CUDA_DEVICES if name != str(x.device)]
    if elsewhere and not others:
        pytest.skip("needs two devices")
    first, second = dt.cuda.Stream(x.device), dt.cuda.Stream(x.device)
    with dt.cuda.stream(first):
        earlier = x[i]
    with dt.cuda.stream(second):
        later = x.index_select(1, i)
        found = later.to(others[0]) if elsewhere else later
    with pytest.raises(IndexError, match=r"\(getitem on"):
        found.cpu()
    for array in (found, earlier, later):
        array.cpu()  # told once
