"""Copies that the host did not wait for: whoever looks at the memory waits, through every door and in every op."""

from __future__ import annotations

import copy
import ctypes
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import cases
import numpy as np
import pytest
import support
import test_ops
from cases import CASES, Case
from formats import STORAGE
from support import CUDA_DEVICES, REAL, Built, calls, for_each, stepped

import devtensor as dt

DOORS: dict[str, Callable[[dt.DeviceArray], Any]] = {
    "numpy": lambda p: p.numpy().tolist(),
    "numpy(force)": lambda p: p.numpy(force=True).tolist(),
    "asarray": lambda p: np.asarray(p).tolist(),
    "__array__(dtype)": lambda p: np.asarray(p, dtype=np.float64).tolist(),
    "np.array of a view": lambda p: np.array(p.T).T.tolist(),
    "memoryview": lambda p: memoryview(p).tolist(),
    "bytes": lambda p: np.frombuffer(bytes(p), dtype=np.float32).reshape(3, 4).tolist(),
    "frombuffer": lambda p: dt.frombuffer(p, dtype=dt.float32).reshape(3, 4).tolist(),
    "data_ptr": lambda p: list(map(list, ((ctypes.c_float * 4) * 3).from_address(p.data_ptr()))),
    "tolist": lambda p: p.tolist(),
    "tolist of a view": lambda p: p.T[1:].tolist() and p.T.T.tolist(),
    "item": lambda p: [[p[i, j].item() for j in range(4)] for i in range(3)],
    "item at first": lambda p: p[2, 3].item() == 11.0 and p.tolist(),
    "float": lambda p: [[float(p[i][j]) for j in range(4)] for i in range(3)],
    "bool": lambda p: bool(p[2, 3]) and not bool(p[0, 0]) and p.tolist(),
    "repr": lambda p: (repr(p) == repr(dt.arange(12, dtype=dt.float32).reshape(3, 4))) and p.tolist(),
    "repr of a view": lambda p: (repr(p[:, 1]) == repr(dt.array([1.0, 5, 9]))) and p.tolist(),
    "format": lambda p: f"{p[1, 1]:.2f}" == "5.00" and p.tolist(),
    "_repr_html_": lambda p: "11" in p._repr_html_() and p.tolist(),
    "iter": lambda p: [row.tolist() for row in p],
    "in": lambda p: (11.0 in p) and (-1.0 not in p) and p.tolist(),
    "pickle": lambda p: pickle.loads(pickle.dumps(p)).tolist(),
    "copy": lambda p: copy.copy(p).tolist(),
    "deepcopy": lambda p: copy.deepcopy(p).tolist(),
    "clone": lambda p: p.clone().tolist(),
    "contiguous": lambda p: p.T.contiguous().T.tolist(),
    "detach": lambda p: p.detach().tolist(),
    "array": lambda p: dt.array(p).tolist(),
    "to(dtype)": lambda p: p.to(dt.float64).tolist(),
    "type_as": lambda p: p.type_as(dt.zeros(1, dtype=dt.float64)).tolist(),
    "repeat": lambda p: p.repeat(2, 1)[3:].tolist(),
    "to(device)": lambda p: p.to("cuda:0").tolist(),
    "to(device, dtype)": lambda p: p.to("cuda:0", dt.float16).tolist(),
    "to(device, non_blocking)": lambda p: p.to("cuda:0", non_blocking=True).tolist(),
    "view to a device": lambda p: p.T.to("cuda:0").T.tolist(),
    "tobytes": lambda p: np.frombuffer(p.tobytes(), "float32").reshape(3, 4).tolist(),
    "pin_memory": lambda p: p.pin_memory().tolist(),
    "where": lambda p: dt.where(p >= 0, p, -p).tolist(),
    "equal": lambda p: p.equal(dt.arange(12, dtype=dt.float32).reshape(3, 4)) and p.tolist(),
    "allclose": lambda p: dt.allclose(p, dt.arange(12, dtype=dt.float32).reshape(3, 4)) and p.tolist(),
    "source of copy_": lambda p: dt.zeros(3, 4).copy_(p).tolist(),
    "value of setitem": lambda p: set_item(dt.zeros(3, 4), p).tolist(),
    "value of fill_": lambda p: dt.zeros(2).fill_(p[2, 3]).tolist() == [11, 11] and p.tolist(),
    "optimizer, gradient": lambda p: stepped(dt.zeros(3, 4), p, momentum=0.5).tolist(),
    "optimizer, parameter": lambda p: stepped(p, dt.zeros(3, 4)).tolist(),
    "add_": lambda p: p.add_(1).sub_(1).tolist(),
    "out=": lambda p: dt.neg(dt.arange(0, -12, -1, dtype=dt.float32).reshape(3, 4), out=p).tolist(),
    "fill_": lambda p: p[1].fill_(4) is not None and p[0].tolist() + p[1].tolist() == [0, 1, 2, 3, 4, 4, 4, 4] and RAMP,
    "zero_": lambda p: p.zero_().tolist() == [[0.0] * 4] * 3 and RAMP,
    "setitem": lambda p: set_item(p, dt.arange(12, dtype=dt.float32).reshape(3, 4)).tolist(),
    "setitem number": lambda p: p.__setitem__((1, 1), 5) or p.tolist(),
    "target of copy_": lambda p: p.copy_(dt.arange(12).reshape(3, 4)).tolist(),
    "target of copy_ from a device": lambda p: p.copy_(dt.arange(12, device="cuda:0").reshape(3, 4)).tolist(),
}
RAMP = np.arange(12.0).reshape(3, 4).tolist()


def set_item(x: dt.DeviceArray, value: dt.DeviceArray) -> dt.DeviceArray:
    x[:] = value
    return x


def arrive(x: dt.DeviceArray, junk: dt.DeviceArray, cuda: str) -> dt.DeviceArray:
    """x's values on the host, as long as nobody looks still on their way; junk stands there in the meantime."""
    target = junk.pin_memory()
    return target.copy_(x.to(cuda), non_blocking=True)


def cast_on_arrival(cuda: str) -> dt.DeviceArray:
    """The values arrive as float16 elsewhere, and become float32 in a strided place when somebody looks."""
    whole = dt.full((3, 8), -5.0).pin_memory()
    return whole[:, ::2].copy_(dt.arange(12, dtype=dt.float16, device=cuda).reshape(3, 4), non_blocking=True)


WAYS: dict[str, Callable[[str], dt.DeviceArray]] = {
    "to": lambda cuda: (dt.arange(12, dtype=dt.float32, device=cuda).reshape(3, 4) * 1).to("cpu", non_blocking=True),
    "copy_": lambda cuda: arrive(dt.arange(12, dtype=dt.float32).reshape(3, 4), dt.full((3, 4), -5.0), cuda),
    "cast": lambda cuda: (
        dt.arange(12, dtype=dt.float16, device=cuda).reshape(3, 4).to("cpu", dt.float32, non_blocking=True)
    ),
    "cast into a part": cast_on_arrival,
}


@pytest.mark.filterwarnings("ignore:.*do not lie side by side")
@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize("door", list(DOORS))
def test_every_door_waits(door: str, way: str, cuda: str) -> None:
    if way == "cast into a part" and door in ("memoryview", "bytes", "frombuffer", "data_ptr"):
        pytest.skip("these doors are for contiguous memory")
    assert DOORS[door](WAYS[way](cuda)) == RAMP


def test_a_target_keeps_its_gradient(cuda: str) -> None:
    """What arrives in another dtype has a place of its own on the way, and no part in the target's gradient."""
    target = dt.zeros(3, 4).pin_memory()
    target.grad = dt.ones(3, 4)
    for _ in range(3):
        target.copy_(dt.arange(12, dtype=dt.float16, device=cuda).reshape(3, 4), non_blocking=True)
        assert target.tolist() == RAMP
    assert not target.requires_grad and target.grad.tolist() == [[1.0] * 4] * 3


READ_NOTHING = set(
    """T mT H mH backward cpu cuda device dim dtype element_size expand expand_as flatten is_contiguous is_cuda
    is_floating_point is_leaf is_pinned itemsize nbytes ndim ndimension nelement numel permute requires_grad
    requires_grad_ reshape shape size squeeze stride strides swapaxes t transpose unflatten unsqueeze view view_as
    movedim moveaxis narrow select split chunk unbind swapdims storage_offset diagonal new_empty new_full new_ones
    new_zeros origin grad grad_fn register_hook register_post_accumulate_grad_hook retain_grad
    as_strided as_strided_ as_subclass
    coalesce get_device is_cpu is_ipu is_maia is_meta is_mkldnn is_mps is_mtia is_nested is_quantized is_shared
    is_sparse is_sparse_csr is_tensor is_vulkan is_xla is_xpu layout new
    new_tensor reshape_as resize_ resize_as_ set_ share_memory_ storage unfold to_sparse to_sparse_csr untyped_storage
    istft stft dim_order is_set_to new_empty_strided record_stream retains_grad""".split()
)


def test_the_table_of_doors_holds_every_method_that_hands_out_memory() -> None:
    """A method that comes later has to be put there, or named here as one that reads no element."""
    ops = {case.op for case in CASES} | {case.op + "_" for case in CASES}
    named = {name.partition("(")[0] for name in DOORS} | {
        "to",
        "type",
        "astype",
        "float",
        "double",
        "half",
        "bfloat16",
        "int",
        "long",
        "short",
        "char",
        "byte",
        "bool",
        "copy_",
        "uniform_",
        "cauchy_",
        "geometric_",
        "log_normal_",
        "random_",
        "apply_",
        "map_",
        "exponential_",
        "fill_diagonal_",
        "sum_to_size",
        "to_device",
    }
    public = {n for n in dir(dt.DeviceArray) if not n.startswith("_")}
    unknown = {n for n in public - ops - named - READ_NOTHING if not hasattr(dt, n.rstrip("_"))}
    assert unknown == set()


class Late:
    """Makes arrays as support.from_bits does; every n-th one on the cpu, after the first, is still on its way there.

    One at a time, since who waits for one array has waited for all that were sent before.
    """

    def __init__(self) -> None:
        self.make = support.from_bits
        self.first, self.n, self.made = 0, 1, 0

    def __call__(self, bits: np.ndarray, dtype: str, device: str = "cpu") -> dt.DeviceArray:
        x = self.make(bits, dtype, device)
        late = device == "cpu" and self.made % self.n == self.first
        self.made += device == "cpu"
        if not late or not x.numel():
            return x
        stored = np.array(bits, dtype=STORAGE[dtype], order="C").reshape(-1)
        other = ~stored if dtype == "bool" else (~stored.view("u1")).view(stored.dtype)
        return arrive(x, self.make(other.reshape(bits.shape), dtype), "cuda:0")

    def each(self, n: int) -> Iterator[None]:
        for self.first in range(n):
            self.n, self.made = n, 0
            yield


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> Late:
    made = Late()
    monkeypatch.setattr(support, "from_bits", made)
    return made


@pytest.mark.parametrize("case", [pytest.param(c, id=str(c)) for c in CASES])
def test_every_op_waits(case: Case, late: Late) -> None:
    """The whole table with each input, target of an in-place form and out that has not arrived."""

    def in_place(built: Built) -> None:
        built.check(getattr(built.operands[0], case.op + "_")(*built.operands[1:], **built.parameters))

    def out(built: Built) -> None:
        (want,) = built.question.answers
        ones = np.ones(want.values.shape, dtype=STORAGE[want.dtype])
        built.check(built.call(out=support.lay_out(ones, want.dtype, "cpu", built.layout)))

    inputs = len(case.arrays)
    for _ in late.each(inputs):
        for_each(case, "cpu", lambda built: built.check(built.call()))
    for _ in late.each(inputs if case.op in cases.IN_PLACE else 0):
        for_each(case, "cpu", in_place, ["contiguous", "transposed", "sliced"], test_ops.can_replace)
    for _ in late.each(inputs + 1 if case.op in cases.OUT else 0):
        for_each(case, "cpu", out, ["contiguous", "transposed"])


def test_what_is_on_its_way_to_a_device_may_be_overwritten(cuda: str) -> None:
    """Writes by our own ops wait until the device has read the source."""
    writes: list[Callable[[dt.DeviceArray], Any]] = [
        lambda x: x.fill_(9), lambda x: x.zero_(), lambda x: x.add_(1), lambda x: x.__setitem__(slice(None), 7),
        lambda x: x.copy_(dt.ones(1000)), lambda x: dt.neg(x, out=x), lambda x: x.numpy().fill(3),
        lambda x: np.asarray(x).fill(3), lambda x: memoryview(x).__setitem__(0, 5.0), lambda x: x.data_ptr(),
    ]  # fmt: skip
    for write in writes:
        x = dt.arange(1000, dtype=dt.float32).pin_memory()
        y = x.to(cuda, non_blocking=True)
        write(x)
        assert y.tolist() == list(range(1000))
    x = dt.arange(1000, dtype=dt.float32).pin_memory()
    with calls(synchronizations=0):
        y = x.to(cuda, non_blocking=True)
        assert x.sum().item() == 499500  # reading need not wait
    y.sum().item()


def test_the_end_of_a_pinned_array_does_not_wait(cuda: str) -> None:
    """Its memory is used again only when the copy is over."""
    dt.cuda.empty_cache()
    there = []
    with calls("cuStreamSynchronize", "cuEventSynchronize", "cuCtxSynchronize", "cuMemFreeHost", synchronizations=0):
        for i in range(20):
            x = dt.full((5000,), float(i)).pin_memory()
            there.append(x.to(cuda, non_blocking=True))
            del x
    for i, y in enumerate(there):
        assert y.tolist() == [float(i)] * 5000


def test_a_result_that_nobody_wanted_does_not_write_into_the_next(cuda: str) -> None:
    for _ in range(10):
        dt.full((5000,), -1.0, device=cuda).to("cpu", non_blocking=True)
        dt.full((5000,), -1.0, device=cuda).to("cpu", dt.float64, non_blocking=True)
        x = dt.ones(5000).pin_memory()
        dt.cuda.synchronize(cuda)
        assert x.sum().item() == 5000


def test_many_copies_of_one_array(cuda: str) -> None:
    """In parts, there and back, in the order of the program."""
    x = dt.arange(6400, dtype=dt.int32).reshape(64, 100).pin_memory()
    y = dt.zeros(64, 100, dtype=dt.int32).pin_memory()
    rows = [x[i].to(cuda, non_blocking=True) for i in range(64)]
    for i, row in enumerate(rows):
        y[i].copy_(row, non_blocking=True)
    for i, row in enumerate(rows):
        y[i].copy_(row.to(dt.int16) + 1, non_blocking=True)  # widened on arrival
    y[0].copy_(rows[5], non_blocking=True)
    want = np.arange(6400).reshape(64, 100) + 1
    want[0] = np.arange(500, 600)
    assert y.tolist() == want.tolist()
    for _ in range(5):  # to and fro through one buffer
        x.copy_(x.to(cuda, non_blocking=True) + 1, non_blocking=True)
    assert x.tolist() == (np.arange(6400).reshape(64, 100) + 5).tolist()


@pytest.mark.skipif(len(CUDA_DEVICES) < 2, reason="needs two CUDA devices")
def test_one_pinned_array_for_two_devices() -> None:
    x = dt.arange(1000, dtype=dt.float32).pin_memory()
    for _ in range(5):
        for device in CUDA_DEVICES:
            x.copy_(x.to(device, non_blocking=True) + 1, non_blocking=True)
    assert x.tolist() == list(range(10, 1010))


def test_an_error_comes_at_the_read() -> None:
    """What went wrong on the device is told by whoever looks, also by doors that raise other errors otherwise."""
    if REAL:
        pytest.skip("it would end the use of the GPU")
    script = """
import numpy as np, pickle
import devtensor as dt
DOORS = [lambda x: x.tolist(), lambda x: x.numpy(), np.asarray, memoryview, repr, lambda x: x.sum(), lambda x: x + 1,
         lambda x: x.data_ptr(), lambda x: x[0].item(), pickle.dumps, lambda x: x.fill_(1), lambda x: x.to("cuda")]
good = dt.ones(10, device="cuda:1").to("cpu", non_blocking=True)
bad = dt.ones(10, device="cuda:0").to("cpu", non_blocking=True)
dt._C._test.api_fail("cuEventSynchronize", 0, 700)
for door in DOORS:
    try:
        door(bad)
    except dt.CudaError as error:
        assert "cuda:0" in str(error), error
    else:
        raise AssertionError(door)
assert good.tolist() == [1.0] * 10
del bad
"""
    child = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False,
                           env={**os.environ, "DEVTENSOR_CUDA": "sim:2"})  # fmt: skip
    assert (child.returncode, child.stderr) == (0, "")


def test_threads_wait_for_one_array(cuda: str) -> None:
    for _ in range(20):
        back = (dt.arange(5000, device=cuda) + 1).to("cpu", non_blocking=True)
        with ThreadPoolExecutor(8) as pool:
            sums = list(pool.map(lambda _, back=back: back.sum().item(), range(8)))
        assert sums == [5000 * 5001 // 2] * 8


def test_a_blocking_copy_is_over_on_return(cuda: str) -> None:
    """Also for NumPy, which sees page-locked memory through a view of its own and never waits."""
    x, y = dt.zeros(50_000).pin_memory(), dt.full((50_000,), -1.0).pin_memory()
    seen, shown = x.numpy(), y.numpy()
    seen[:] = np.arange(50_000)
    there = x.to(cuda)
    seen[:] = 9
    y.copy_(there)
    assert np.array_equal(shown, np.arange(50_000))


def test_a_blocking_copy_comes_after_one_that_is_pending(cuda: str) -> None:
    """Into a strided part of page-locked memory, where an earlier result would be cast by whoever looks."""
    whole = dt.zeros(3, 8).pin_memory()
    whole[:, ::2].copy_(dt.full((3, 4), 1.0, dtype=dt.float16, device=cuda), non_blocking=True)
    whole[:, ::2].copy_(dt.full((3, 4), 2.0, device=cuda))
    assert whole.tolist() == [[2.0, 0.0] * 4] * 3
