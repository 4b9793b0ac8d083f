"""Makes every allocation of every op fail, one by one: run by test_alloc_failures in processes of its own.

python failing_allocations.py DEVICE MODE [CASE ...]    MODE: once, from-there-on

On the CPU each point runs in a forked child, so that first calls are swept too. CUDA does not survive a fork: there the
first pass goes on in one process until the op succeeds, and a second pass retries after each fault. Prints one JSON
object a case: its index, the number of points and what went wrong. DEVTENSOR_ALLOC_SHARE=3 takes one point in three.
"""

from __future__ import annotations

import copy
import gc
import hashlib
import json
import os
import pickle
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from cases import CASES, Case
from support import Built, bits_of, stepped

import devtensor as dt
from devtensor.utils.checkpoint import checkpoint

SHARE = int(os.environ.get("DEVTENSOR_ALLOC_SHARE", "1"))

MORE: dict[str, Callable[[dt.DeviceArray], Any]] = {
    "clone": lambda x: x.clone(),
    "to float64": lambda x: x.to(dt.float64),
    "to cpu and float16": lambda x: x.to("cpu", dt.float16),
    "copy_": lambda x: dt.zeros_like(x).copy_(x),
    "contiguous": lambda x: x.T.contiguous(),
    "add_": lambda x: dt.zeros_like(x).add_(x),
    "getitem": lambda x: x[1:, ::2],
    "setitem": lambda x: dt.zeros_like(x).__setitem__(0, x[0]),
    "tolist": lambda x: x.tolist(),
    "repr": repr,
    "zeros": lambda x: dt.zeros((3, 4), device=x.device),
    "full": lambda x: dt.full((3, 4), 2.0, device=x.device),
    "arange": lambda x: dt.arange(9, device=x.device),
    "linspace": lambda x: dt.linspace(0, 1, 5, device=x.device),
    "eye": lambda x: dt.eye(4, device=x.device),
    "rand": lambda x: dt.rand(7, device=x.device).shape,
    "randperm": lambda x: dt.randperm(7, device=x.device).shape,
    "array": lambda x: dt.array([[1.0, 2.0]], device=x.device),
    "mismatch": lambda x: mismatch(x),
    "Parameter": lambda x: dt.nn.Parameter(x),
    "copies of a Parameter": lambda x: copy.deepcopy(dt.nn.Parameter(x)) + copy.copy(dt.nn.Parameter(x)),
    "pickle of a Buffer": lambda x: pickle.loads(pickle.dumps(dt.nn.Buffer(x, persistent=False))),
    "data": lambda x: x.data,
    "pickle 5": lambda x: pickle.loads(pickle.dumps(x.T, 5)),
    "deepcopy": lambda x: copy.deepcopy([x, x[1:]])[1],
    "to DLPack and back": lambda x: dt.from_dlpack(lend(x, "__dlpack__")),
    "DLPack and a copy": lambda x: np.from_dlpack(x, device="cpu", copy=True).tolist(),
    "CUDA array interface": lambda x: dt.asarray(lend(x, "__cuda_array_interface__")),
    "frombuffer": lambda x: dt.frombuffer(x.cpu(), dtype=dt.float32, offset=4),
    "attention": lambda x: dt.nn.functional.scaled_dot_product_attention(*[x.repeat(6, 1)] * 3, x[:1, :1] > 0),
    "gradients of attention": lambda x: gradient(x.repeat(6, 1), attend),
    "gradients of conv2d": lambda x: gradients_of_layers(x.device, dt.float32, 1),
    "gradients of conv2d in float16": lambda x: gradients_of_layers(x.device, dt.float16, 1),
    "gradients of a depthwise conv2d": lambda x: gradients_of_layers(x.device, dt.float32, 4),
    "conv2d of narrow planes": lambda x: narrow(x.device),
    "depthwise conv2d with a stride, channels side by side": lambda x: narrow(x.device, dt.channels_last, stride=2),
    "all steps of an LSTM": lambda x: steps("LSTM", x.device),
    "all steps of a GRU": lambda x: steps("GRU", x.device),
    "cat of rows": lambda x: dt.cat([x.repeat(1, 8)] * 2, 1),
    "pad": lambda x: dt.pad(x, (1, 2, 0, 1), "reflect"),
    "conv_transpose2d": lambda x: transposed(x.device, padding=1, output_padding=1, stride=2),
    "conv_transpose2d by its formula": lambda x: transposed(x.device, dilation=3, output_padding=2),
    "gradient of a long avg_pool1d": lambda x: long_pool(x.device),
    "layer_norm": lambda x: dt.layer_norm(x, 4, x[0], x[1]),
    "batch_norm": lambda x: dt.batch_norm(x, x[0], x[1], x[2], x[0]),
    "batch_norm in float16": lambda x: dt.batch_norm(*(a.to(dt.float16) for a in (x, *x))),
    "gather": lambda x: x.gather(1, dt.zeros(3, 1, dtype=dt.int64, device=x.device)),
    "scatter_add": lambda x: x.scatter_add(1, dt.zeros(3, 2, dtype=dt.int64, device=x.device), x),
    "scatter_add_ of sorted places": lambda x: dt.zeros(3, device=x.device).scatter_add_(
        0, dt.arange(300, device=x.device) % 3, dt.ones(300, device=x.device)
    ),
    "index_add of halves": lambda x: (x.half()).index_add(
        0, dt.zeros(3, dtype=dt.int64, device=x.device), x.half(), alpha=2
    ),
    "x[list, list]": lambda x: x[[0, 2, 1], [1, 1, 0]],
    "x[:, index]": lambda x: x[:, dt.arange(2, device=x.device)],
    "x[mask]": lambda x: x[x > 4],
    "x[True]": lambda x: x[True],
    "nonzero": lambda x: dt.where(x),
    "masked_select": lambda x: x.masked_select(x[0] > 1),
    "take_along_dim": lambda x: dt.take_along_dim(x, dt.zeros(3, 1, dtype=dt.int64, device=x.device), 1),
    "x[index] = rows": lambda x: written(x, dt.arange(2, device=x.device), x[1:]),
    "x[mask] = 1": lambda x: written(x, x > 4, 1),
    "x[mask] = row": lambda x: written(x, x[:, 0] > 2, x[0]),
    "x[index] = overlapping": lambda x: overlapping(x.clone()),
    "cross_entropy": lambda x: dt.cross_entropy(x, dt.zeros(3, dtype=dt.int64, device=x.device)),
    "optimizer": lambda x: stepped(x.clone(), x, momentum=0.5),
    "optimizer over other strides": lambda x: stepped(x.clone(), x.T.contiguous().T, momentum=0.5),
    "backward": lambda x: slope(x, lambda w: ((w @ w.t()).tanh() * w[:, :3]).sum()),
    "backward of lists": lambda x: slope(x, lambda w: dt.cat([w, w[1:], *w.split(1)]).softmax(1)[:, 0].sum()),
    "backward of selections": lambda x: slope(x, lambda w: w[[0, 2, 0]][:, dt.arange(2, device=x.device)].prod()),
    "backward with hooks": lambda x: slope(x, lambda w: hooked(w * w).exp().sum()),
    "backward of written": lambda x: slope(x, lambda w: written(w * 1, 0, w[1]).square().sum()),
    "backward of norms": lambda x: slope(x, lambda w: (dt.layer_norm(w, 4) + w.std() + w.norm(3)).sum()),
    "backward of itself": lambda x: slope(x, lambda w: dt.autograd.grad((w**3).sum(), w, create_graph=True)[0].sum()),
    "copies of a leaf": lambda x: copy.deepcopy([gradient_given(x)])[0].grad + copy.copy(gradient_given(x)),
    "pickle of a leaf": lambda x: pickle.loads(pickle.dumps(gradient_given(x))),
    "gradient": lambda x: gradient(x, lambda w: (w * w + w[0]).tanh().log_softmax(1)),
    "gradient of a gradient": lambda x: gradient(x, lambda w: gradient(w, dt.Tensor.exp, create_graph=True)),
    "gradient of a function of a user's": lambda x: gradient(
        x, lambda w: Both.apply(w, w + 1)[1] * Both.apply(w, w)[0]
    ),
    "gradient through a checkpoint": lambda x: gradient(x, lambda w: checkpoint(lambda v: v.exp().sin() * w, w)),
    "gradient under watch": lambda x: watched(x),
    "gradient through a module with hooks": lambda x: through_hooked_module(x),
    "binary_cross_entropy": lambda x: gradient(x, lambda w: dt.nn.functional.binary_cross_entropy(w.sigmoid(), x * 0)),
    "a kernel": lambda x: own_kernel(x),
    "a kernel refused": lambda x: own_kernel(x.cpu()),
}
SAMPLE = 40


def gradient(x: dt.DeviceArray, function: Callable[[Any], Any], **options: Any) -> dt.DeviceArray:
    w = x if x.requires_grad else x.clone().requires_grad_()
    (found,) = dt.autograd.grad(function(w).sum(), w, **options)
    return found


class Both(dt.autograd.Function):
    """x * y and x + y."""

    @staticmethod
    def forward(ctx: Any, x: dt.DeviceArray, y: dt.DeviceArray) -> Any:
        product = x * y
        ctx.save_for_backward(x, y, product)
        return product, x + y

    @staticmethod
    def backward(ctx: Any, p: dt.DeviceArray, q: dt.DeviceArray) -> Any:
        x, y, _ = ctx.saved_tensors
        return p * y + q, p * x + q


def watched(x: dt.DeviceArray) -> dt.DeviceArray:
    with dt.autograd.detect_anomaly():
        return gradient(x, lambda w: w.exp() * w)


def through_hooked_module(x: dt.DeviceArray) -> dt.DeviceArray:
    module = dt.nn.Flatten()
    module.register_full_backward_hook(lambda module, into, out: (into[0] * 2,))
    module.register_full_backward_pre_hook(lambda module, out: None)
    return gradient(x, module)


KERNEL = 'extern "C" __global__ void twice(const float *x, float *y) { y[threadIdx.x] = 2 * x[threadIdx.x]; }'


def gradients_of_layers(device: dt.device, dtype: dt.dtype, groups: int) -> tuple[dt.DeviceArray, ...]:
    x = dt.ones((2, 4, 7, 6), device=device, dtype=dtype, requires_grad=True)
    w = dt.ones((4, 4 // groups, 3, 3), device=device, dtype=dtype, requires_grad=True)
    loss = dt.max_pool2d(dt.conv2d(x, w, stride=2, padding=1, groups=groups), 2, 1).sum()
    dt.autograd.grad(loss, (x, w), create_graph=True)  # by formulas: the way round a library that refuses
    return dt.autograd.grad(loss, (x, w))


def narrow(device: dt.device, layout: dt.memory_format = dt.contiguous_format, **stride: int) -> tuple[Any, ...]:
    x = dt.ones((2, 16, 5, 5), device=device).contiguous(memory_format=layout).requires_grad_()
    w = dt.ones((16, 1, 3, 3), device=device, requires_grad=True)
    y = dt.conv2d(x, w, padding=1, groups=16, **stride)
    loss = y.square().sum()  # whose gradient has the layout of y
    dt.autograd.grad(loss, (x, w), create_graph=True)  # by formulas, as above
    return y, *dt.autograd.grad(loss, (x, w))


def steps(kind: str, device: dt.device) -> list[dt.DeviceArray]:
    """Few rows, which go step by step, and many."""
    layer = getattr(dt.nn, kind)(2, 3, bidirectional=True, batch_first=True, device=device).requires_grad_(False)
    for weight in layer.parameters():
        weight.fill_(0.5)
    return [layer(dt.ones(n, 3, 2, device=device))[0] for n in (1, 20)]


def attend(x: dt.DeviceArray) -> dt.DeviceArray:
    return dt.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)


def transposed(device: dt.device, **options: int) -> tuple[dt.DeviceArray, ...]:
    f = dt.nn.functional.conv_transpose2d
    x, w = (dt.ones(shape, device=device, requires_grad=True) for shape in ((1, 2, 3, 3), (2, 2, 3, 3)))
    y = f(x, w, dt.ones(2, device=device), **options)
    return y, *dt.autograd.grad(y.sum(), (x, w))


def long_pool(device: dt.device) -> dt.DeviceArray:
    x = dt.ones((1, 2, 300), device=device, requires_grad=True)
    return dt.autograd.grad(dt.nn.functional.avg_pool1d(x, 3, 2, 1, count_include_pad=False).sum(), x)[0]


def own_kernel(x: dt.DeviceArray) -> Any:
    """y = 2 x by a kernel of a user's; on the cpu what it says."""
    kernel, y = dt.cuda.RawKernel(KERNEL, "twice"), dt.zeros_like(x)
    try:
        kernel[1, x.numel()](x, y)
    except dt.DeviceMismatchError as error:
        return str(error)
    return y


class Lender:
    """Another library's array over the memory of one of ours, which it keeps alive."""

    def __init__(self, x: dt.DeviceArray) -> None:
        self.__cuda_array_interface__ = x.__cuda_array_interface__
        self.kept = x


def slope(x: dt.DeviceArray, function: Callable[[dt.DeviceArray], dt.DeviceArray]) -> dt.DeviceArray:
    """The gradient of function at x."""
    leaf = x.detach().clone().requires_grad_()
    function(leaf).backward()
    return leaf.grad


def hooked(x: dt.DeviceArray) -> dt.DeviceArray:
    x.register_hook(lambda gradient: gradient * 2)
    x.retain_grad()
    return x


def gradient_given(x: dt.DeviceArray) -> dt.DeviceArray:
    leaf = x.detach().requires_grad_()
    leaf.grad = x.clone()
    return leaf


def lend(x: dt.DeviceArray, protocol: str) -> Any:
    """x as a capsule or as another library's array; an array on the cpu has no interface and stays what it is."""
    dt._C._test.lend_simulated(True)
    try:
        if protocol == "__dlpack__":
            return x.__dlpack__(max_version=(1, 0), stream=-1)  # no stream waits for ever in a simulated queue
        return Lender(x) if x.is_cuda else x
    finally:
        dt._C._test.lend_simulated(False)


def mismatch(x: dt.DeviceArray) -> str:
    try:
        x @ x
    except RuntimeError as error:
        return str(error)
    raise AssertionError("no mismatch")


def written(x: dt.DeviceArray, key: Any, value: Any) -> dt.DeviceArray:
    y = x.clone()
    y[key] = value
    return y


def overlapping(x: dt.DeviceArray) -> dt.DeviceArray:
    x[dt.arange(2, device=x.device)] = x[1:]
    return x


def chosen() -> list[Case]:
    """One case per op, the one with most elements below a limit, and conv2d with groups and without bias."""
    best: dict[tuple[str, int], Case] = {}
    for case in CASES:
        size = max((len(o.shape), sum(o.shape)) for o in case.arrays)
        key = (case.op, len(case.arrays))
        if 0 < size[1] < 200 and all(0 not in o.shape for o in case.arrays):
            best.setdefault(key, case)
    return list(best.values())


def catalogue(device: str) -> list[tuple[str, Callable[[], Any], list[dt.DeviceArray]]]:
    """(name, call, inputs)"""
    rows: list[tuple[str, Callable[[], Any], list[dt.DeviceArray]]] = []
    for case in chosen():
        built = Built(case, "float32" if "float32" in case.dtypes else "int32", device, case.layouts[-1])
        rows.append((str(case), built.call, built.arrays))
    x = dt.arange(12, dtype=dt.float32, device=device).reshape(3, 4)
    rows += [(name, lambda f=function: f(x), [x]) for name, function in MORE.items()]
    return rows


def stored(x: dt.DeviceArray) -> str:
    """Its bytes, by which two runs can be compared; of a large array a digest."""
    data = bits_of(x).tobytes()
    return data.hex() if len(data) <= 1000 else hashlib.sha256(data).hexdigest()


def show(result: Any) -> str:
    """A result as text that two runs can be compared by."""
    if isinstance(result, dt.DeviceArray):
        return f"{result.dtype}{result.shape}{stored(result)}"
    if isinstance(result, tuple | list):
        return "".join(show(one) for one in result)
    return repr(result)


def attempt(call: Callable[[], Any], n: int, sticky: bool) -> tuple[str, Any]:
    """ok with the result, memory for the right exception, else what came."""
    result = None
    dt._C._test.fail_allocations(n, sticky)
    try:
        result = call()
        kind = "ok"
    except MemoryError:
        kind = "memory"
    except BaseException as error:
        kind = f"{type(error).__name__}: {error}"
    finally:
        dt._C._test.fail_allocations(-1, False)
    return kind, result


def one_point(call: Callable[[], Any], inputs: list[dt.DeviceArray], n: int, sticky: bool) -> dict[str, Any]:
    """Fails the n-th allocation, looks at the damage, calls again."""
    values = [bits_of(x).tobytes() for x in inputs]
    gc.collect()
    before = dt._C._test.live_blocks()
    kind, result = attempt(call, n, sticky)
    failed = kind
    if kind == "memory":
        kind, result = attempt(call, -1, False)
    text = show(result)
    del result
    gc.collect()
    return {
        "failed": failed,
        "retry": kind,
        "result": text,
        "inputs_kept": [bits_of(x).tobytes() for x in inputs] == values,
        "left": dt._C._test.live_blocks() - before,
    }


def forked(*point: Any) -> dict[str, Any]:
    """one_point in a child; a crash is part of the answer."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            os.write(write, json.dumps(one_point(*point)).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        answer = pipe.read()
    status = os.waitpid(child, 0)[1]
    if status or not answer:
        return {"failed": f"crash, status {status}"}
    return json.loads(answer)


def complaints(n: int, got: dict[str, Any], clean: dict[str, Any]) -> list[str]:
    found = []
    if got["failed"] not in ("ok", "memory"):
        return [f"allocation {n}: {got['failed']}"]
    if got["retry"] != "ok":
        found.append(f"allocation {n}: the retry gave {got['retry']}")
    elif got["result"] != clean["result"]:
        found.append(f"allocation {n}: the retry gave another result")
    if not got["inputs_kept"]:
        found.append(f"allocation {n}: an input changed")
    if got["left"] > clean["left"]:
        found.append(f"allocation {n}: {got['left'] - clean['left']} blocks leaked")
    return found


def sweep(
    call: Callable[[], Any], inputs: list[dt.DeviceArray], sticky: bool, fork: bool, first: int = 0
) -> tuple[int, list[str]]:
    """The number of points, one in SHARE from the first on, and what was wrong at them."""
    found: list[str] = []
    points = 0
    if not fork:  # the first calls, while caches are cold
        for n in range(first, 10_000, SHARE):
            kind, _ = attempt(call, n, sticky)
            if kind == "ok":
                break
            points += 1
            if kind != "memory":
                found.append(f"allocation {n}, first call: {kind}")
                break
    run = forked if fork else one_point
    clean = run(call, inputs, -1, False)
    if clean["failed"] != "ok":
        return points, [*found, f"without a fault: {clean['failed']}"]
    for n in range(first, 10_000, SHARE):
        got = run(call, inputs, n, sticky)
        found += complaints(n, got, clean)
        if got["failed"] != "memory":
            break
        points += 1
    return points, found


def main(device: str, mode: str, *wanted: str) -> None:
    rows = catalogue(device)
    gc.freeze()  # each point collects what is not frozen, twice
    for i in [int(text) for text in wanted] or range(len(rows)):
        name, call, inputs = rows[i]
        print(json.dumps({"start": i, "name": name}), flush=True)
        points, found = sweep(call, inputs, mode == "from-there-on", device == "cpu", i % SHARE)
        print(json.dumps({"index": i, "name": name, "points": points, "found": found}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
