"""Makes every call to the CUDA libraries fail, one by one: run by test_cuda_faults in processes of its own.

python failing_cuda_calls.py COVER                           how often each program makes each call
python failing_cuda_calls.py PLANTED                         programs with something wrong
python failing_cuda_calls.py WORKER WORKERS SHARE [TEXT]     one of WORKERS; 1 in SHARE points; programs with TEXT

A point is a program, a symbol, the index of its call in the program, a code and a mode. Each runs in a forked child
that has not used CUDA before, so that calls made only once in a process are reached too. Prints one JSON object a
program.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import failing_allocations
import numpy as np
from cuda_faults import (
    FREES,
    LOST,
    NO_DEVICE,
    OUT_OF_MEMORY,
    SITES,
    Fault,
    chosen_points,
    disarm,
    first_of_each_site,
    library,
)
from support import Built, question

import devtensor as dt

NAMES = list(dt._C._test.api_calls())
FIRST, SECOND = BOTH = ("cuda:0", "cuda:1")
SLOTS = 40  # through which transfers pass, of a device
BETWEEN_PARTS = ("cuCtxGetCurrent", "cuCtxSynchronize", "cuMemHostAlloc", "cuMemcpyHtoDAsync_v2")
PARTS = 2  # of the largest transfer here, a slot each
LIMIT_S = 30  # of one child; then it hangs

# ---------------------------------------------------------------- programs


@dataclass
class Ready:
    call: Callable[[], Any]
    inputs: list[dt.DeviceArray]
    target: dt.DeviceArray | None = None  # written in place: as a whole or not at all
    devices: tuple[str, ...] = (FIRST,)


Prepare = Callable[[], Ready]


def values(*shape: int, dtype: Any = dt.float32, device: str = FIRST) -> dt.DeviceArray:
    count = int(np.prod(shape))
    return (dt.arange(count, dtype=dt.float32) % 7 - 3).reshape(shape).to(device, dtype)


def inputs_of(*arrays: dt.DeviceArray, call: Callable[..., Any], devices: tuple[str, ...] = (FIRST,)) -> Ready:
    return Ready(lambda: call(*arrays), list(arrays), None, devices)


def in_place(
    target: dt.DeviceArray, *others: dt.DeviceArray, call: Callable[..., Any], devices: tuple[str, ...] = (FIRST,)
) -> Ready:
    return Ready(lambda: call(target, *others), list(others), target, devices)


def case_program(case: Any) -> Prepare:
    dtype, layout = "float32" if "float32" in case.dtypes else "int32", case.layouts[-1]
    question(case, dtype, layout == "expanded")  # is kept

    def prepare() -> Ready:
        built = Built(case, dtype, FIRST, layout)
        return Ready(built.call, built.arrays)

    return prepare


def host_program(
    make: Callable[[], list[Any]], call: Callable[..., Any], devices: tuple[str, ...] = (FIRST,)
) -> Prepare:
    """Its inputs are on the host: the device is opened inside."""

    def prepare() -> Ready:
        arrays = make()
        return Ready(lambda: call(*arrays), arrays, None, devices)

    return prepare


def pinned() -> dt.DeviceArray:
    return values(300, device="cpu").pin_memory()


def events() -> Any:
    """Two streams, one after the other; events with a time between them."""
    x = values(64, 64)
    start, end = dt.cuda.Event(enable_timing=True), dt.cuda.Event(enable_timing=True)
    side = dt.cuda.Stream()
    start.record()
    with dt.cuda.stream(side):
        side.wait_event(start)
        y = x + 1
        end.record(side)
    end.synchronize()
    assert start.elapsed_time(end) >= 0
    end.query()
    side.query()
    side.synchronize()
    dt.cuda.current_stream().wait_stream(side)
    return y + x


def own_kernel(x: dt.DeviceArray) -> Any:
    """A user's kernel with more shared memory than usual."""
    y = dt.zeros_like(x)
    dt.cuda.RawKernel(failing_allocations.KERNEL, "twice")[1, 64, 100_000](x, y)
    return y


def lends(x: dt.DeviceArray) -> Any:
    """Another library might have kept the address."""
    dt._C._test.lend_simulated(True)
    try:
        y = x + 1
        assert y.__cuda_array_interface__["shape"] == x.shape
        return y + 1
    finally:
        dt._C._test.lend_simulated(False)


def empties(x: dt.DeviceArray) -> None:
    unused = x + 1, pinned()
    del unused
    dt.cuda.empty_cache()


def programs() -> dict[str, Prepare]:
    found: dict[str, Prepare] = {f"case {case}": case_program(case) for case in failing_allocations.chosen()}
    for name, function in failing_allocations.MORE.items():
        found[name] = lambda f=function: inputs_of(values(3, 4), call=f)
    cpu = {"device": "cpu"}
    found |= {
        "open": host_program(list, lambda: dt.zeros(3, device=FIRST)),
        "open by a transfer": host_program(lambda: [values(5, **cpu)], lambda x: x.to(FIRST)),
        "open both": host_program(lambda: [values(5, **cpu)], lambda x: x.to(FIRST).to(SECOND), BOTH),
        "count": host_program(list, lambda: dt._C._cuda_device_count()),
        "properties": host_program(list, lambda: tuple(dt.cuda.get_device_properties(1))[:4], (SECOND,)),
        "info": lambda: inputs_of(values(3), call=lambda x: sorted(dt._C._cuda_info(0))),
        "synchronize": lambda: inputs_of(values(3), call=lambda x: dt.cuda.synchronize(0)),
        "empty_cache": lambda: inputs_of(values(3), call=empties),
        "first kernel": host_program(list, lambda: dt.arange(5, device=FIRST) * 2),
        "first matmul": host_program(lambda: [values(4, 4, **cpu)], lambda x: x.to(FIRST) @ x.to(FIRST)),
        "first conv2d": host_program(
            lambda: [values(1, 2, 5, 5, **cpu), values(2, 2, 3, 3, **cpu)],
            lambda x, w: dt.conv2d(x.to(FIRST), w.to(FIRST)),
        ),
        "large to device": host_program(lambda: [values(1_300_000, **cpu)], lambda x: x.to(FIRST)),
        "large to host": lambda: inputs_of(values(1_300_000), call=lambda x: x.cpu()),
        "float64 to float32": host_program(
            lambda: [values(700, dtype=dt.float64, **cpu)], lambda x: x.to(FIRST, dt.float32)
        ),
        "uint8 to float32": host_program(lambda: [dt.arange(200, dtype=dt.uint8)], lambda x: x.to(FIRST, dt.float32)),
        "strided to device": host_program(lambda: [values(30, 40, **cpu)], lambda x: x.T[::2].to(FIRST)),
        "float32 to host float64": lambda: inputs_of(values(30, 40), call=lambda x: x.T.to("cpu", dt.float64)),
        "pin": lambda: inputs_of(values(3), call=lambda x: values(30, device="cpu").pin_memory()),
        "pinned given back": lambda: inputs_of(values(3), call=lambda x: (pinned() + 1).sum().item()),
        "pinned given back while sent": lambda: inputs_of(
            values(3), call=lambda x: pinned().to(FIRST, non_blocking=True) + 1
        ),
        "pinned to device": lambda: inputs_of(pinned(), call=lambda x: x.to(FIRST)),
        "pinned to device, not waited for": lambda: inputs_of(pinned(), call=lambda x: x.to(FIRST, non_blocking=True)),
        "to pinned": lambda: inputs_of(values(300), call=lambda x: pinned().copy_(x)),
        "to host, not waited for": lambda: inputs_of(
            values(300), call=lambda x: x.to("cpu", non_blocking=True).sum().item()
        ),
        "peer": lambda: inputs_of(values(40), values(2, device=SECOND), call=lambda x, y: x.to(SECOND), devices=BOTH),
        "peer, strided and cast": lambda: inputs_of(
            values(6, 7), call=lambda x: x.T[1:].to(SECOND, dt.float16), devices=BOTH
        ),
        "peer into a view": lambda: in_place(
            values(6, 14, device=SECOND)[:, ::2], values(6, 7), call=lambda t, x: t.copy_(x), devices=BOTH
        ),
        "reduce far": lambda: inputs_of(values(200_000), call=lambda x: x.sum()),
        "conv2d with bias": lambda: inputs_of(
            values(2, 4, 6, 6),
            values(4, 2, 3, 3),
            values(4) + 1,
            call=lambda x, w, b: dt.conv2d(x, w, b, padding=1, groups=2),
        ),
        "conv2d twice": lambda: inputs_of(
            values(1, 2, 6, 6), values(2, 2, 3, 3), call=lambda x, w: (dt.conv2d(x, w), dt.conv2d(x, w, stride=2))
        ),
        "linear with bias": lambda: inputs_of(values(5, 8), values(6, 8), values(6), call=dt.linear),
        "matmul float64": lambda: inputs_of(values(5, 8, dtype=dt.float64), call=lambda x: x @ x.T),
        "matmul float16": lambda: inputs_of(values(8, 8, dtype=dt.float16), call=lambda x: x @ x.T),
        "bmm": lambda: inputs_of(values(3, 5, 8), values(3, 8, 2), call=dt.bmm),
        "matmul strided": lambda: inputs_of(values(10, 16), call=lambda x: x[::2, ::2] @ x.T[::2]),
        "add_ in place": lambda: in_place(values(9), values(9), call=lambda t, x: t.add_(x)),
        "add_ of another dtype": lambda: in_place(values(9), values(9, dtype=dt.int32), call=lambda t, x: t.add_(x)),
        "add_ overlapping": lambda: in_place(values(9), call=lambda t: t[1:].add_(t[:-1])),
        "copy_ from host": lambda: in_place(values(9), values(9, device="cpu"), call=lambda t, x: t.copy_(x)),
        "copy_ from host into a view": lambda: in_place(
            values(9, 4)[:, ::2], values(9, 2, device="cpu"), call=lambda t, x: t.copy_(x)
        ),
        "fill_": lambda: in_place(values(9), call=lambda t: t.fill_(3)),
        "zero_": lambda: in_place(values(9), call=lambda t: t.zero_()),
        "setitem": lambda: in_place(values(9, 4), values(4), call=lambda t, x: t.__setitem__(2, x)),
        "setitem of rows": lambda: in_place(
            values(9, 4), values(3, 4) + 9, dt.arange(3, device=FIRST), call=lambda t, x, i: t.__setitem__(i, x)
        ),
        "setitem of a mask": lambda: in_place(values(9, 4), call=lambda t: t.__setitem__(t > 0, 9)),
        "matmul into": lambda: in_place(values(5, 5), values(5, 5) + 1, call=lambda t, x: dt.matmul(x, x, out=t)),
        "add into": lambda: in_place(values(5), values(5), call=lambda t, x: dt.add(x, 1, out=t)),
        "backward of layers": lambda: inputs_of(values(1, 2, 6, 6), values(2, 2, 3, 3), call=layers_back),
        "backward to the host": lambda: inputs_of(values(300, device="cpu"), call=moved_back),
        "conv_transpose2d": lambda: inputs_of(
            values(1, 2, 3, 3) + 4, values(2, 2, 3, 3), values(2), call=transposed_both_ways
        ),
        "steady state": lambda: steady(),
        "lent": lambda: inputs_of(values(9), call=lends),
        "a kernel": lambda: inputs_of(values(64), call=own_kernel),
    }
    if hasattr(dt.cuda, "Stream"):
        found["streams and events"] = lambda: inputs_of(values(3), call=lambda x: events())
    return found


def layers_back(image: dt.DeviceArray, kernel: dt.DeviceArray) -> Any:
    """Gradients through a convolution, a pool and a loss; a leaf has its own or none."""
    leaves = [image.detach().clone().requires_grad_(), kernel.detach().clone().requires_grad_()]
    rows = dt.max_pool2d(dt.conv2d(*leaves).relu(), 2).flatten(1)
    loss = dt.nn.functional.cross_entropy(rows, dt.zeros(1, dtype=dt.int64, device=image.device))
    dt.autograd.grad(loss, leaves, create_graph=True)  # by formulas: the way round a library that refuses
    loss.backward()
    return [leaf.grad for leaf in leaves]


def transposed_both_ways(image: dt.DeviceArray, kernel: dt.DeviceArray, bias: dt.DeviceArray) -> Any:
    """By the library, then by the formulas that are the way round its refusal: the plans and kernels of both are kept,
    so that a refusal leaves no more of them than there are without one."""
    x, w = (a.detach().clone().requires_grad_() for a in (image, kernel))
    y = dt.nn.functional.conv_transpose2d(x, w, bias, stride=2, padding=1, output_padding=1)
    found = dt.autograd.grad(y.sum(), (x, w), retain_graph=True)
    formulas = dt.autograd.grad(y.sum() * 2, (x, w), create_graph=True)
    into = dt.zeros_like(y).requires_grad_()
    forward = dt.autograd.grad(dt.conv2d(into, w, stride=2, padding=1), into, x, create_graph=True)
    return y, *found, *formulas, *forward


def moved_back(x: dt.DeviceArray) -> Any:
    leaf = x.detach().clone().requires_grad_()
    leaf.to(FIRST).square().sum().backward()
    return leaf.grad


def planted() -> dict[str, Prepare]:
    """Programs in which something is wrong, by the complaint that is due."""
    kept: list[Any] = []

    def swallows(x: dt.DeviceArray) -> Any:
        try:
            return x + 1
        except dt.CudaError:
            return x

    def leaks(x: dt.DeviceArray) -> Any:
        try:
            return x + 1
        except dt.CudaError:
            kept.append(dt.ones(1000, device=FIRST))
            raise

    def changes(x: dt.DeviceArray) -> Any:
        try:
            return x + 1
        except dt.CudaError:
            x.zero_()
            raise

    def hides(x: dt.DeviceArray) -> Any:
        try:
            return x + 1
        except dt.CudaError:
            raise RuntimeError("hidden") from None

    def half(t: dt.DeviceArray) -> Any:
        t[0] = 9
        return t[1:].add_(1)

    def dies(x: dt.DeviceArray) -> Any:
        try:
            return x + 1
        except dt.CudaError:
            os.abort()

    made = {"wrong result": swallows, "leaked": leaks, "input changed": changes, "instead of": hides, "ended": dies}
    found: dict[str, Prepare] = {name: lambda f=f: inputs_of(values(9), call=f) for name, f in made.items()}
    found["half written"] = lambda: in_place(values(9), call=half)
    return found


def steady() -> Ready:
    """Everything that is made once has been made."""
    x, w, image, kernel = values(6, 6), values(6, 6), values(1, 2, 6, 6), values(2, 2, 3, 3)

    def call() -> Any:
        return dt.relu(x @ w + 1).sum(), dt.conv2d(image, kernel), (x * 2).to("cpu")

    call()
    return Ready(call, [x, w, image, kernel])


# ---------------------------------------------------------------- one point


def settle(devices: tuple[str, ...]) -> None:
    for name in devices:
        dt.cuda.synchronize(name)


def stored(x: dt.DeviceArray | None) -> str:
    return "" if x is None else failing_allocations.stored(x)


def attempt(ready: Ready) -> dict[str, Any]:
    """ok with the result, or what the error says."""
    result = None
    try:
        result = ready.call()
        settle(ready.devices)
        return {"kind": "ok", "value": result}
    except RuntimeError as error:
        found = {name: getattr(error, name, None) for name in ("symbol", "status", "device")}
        return {"kind": type(error).__name__, "text": str(error), **found, "device": str(found["device"])}
    except BaseException as error:
        return {"kind": f"unexpected {type(error).__name__}", "text": str(error)}


def ledger(devices: tuple[str, ...]) -> dict[str, int]:
    gc.collect()
    settle(devices)
    dt.cuda.empty_cache()
    settle(devices)
    used = {"allocated": sum(dt.cuda.memory_allocated(d) for d in devices)}
    return {**dt._C._test.ledger(), **used, "live": dt._C._test.live_blocks()}


def one_point(prepare: Prepare, fault: Fault | None) -> dict[str, Any]:
    """Fails one call, looks at the damage, calls again."""
    ready = prepare()
    before = [stored(x) for x in ready.inputs]
    original = None if ready.target is None else ready.target.clone()
    if original is not None:
        settle(ready.devices)
    start = dt._C._test.api_calls()
    if fault is not None:
        fault.arm()
    else:
        dt._C._test.watch_calls()
    first = attempt(ready)
    calls = dt._C._test.watched_calls() if fault is None else []
    end = dt._C._test.api_calls()
    disarm()
    got: dict[str, Any] = {"counts": {k: end[k] - start[k] for k in NAMES if end[k] > start[k]}, "left": {}}
    got["sites"] = first_of_each_site(calls)
    value = first.pop("value", None)
    got["first"] = first
    try:
        first["result"] = failing_allocations.show(value) if first["kind"] == "ok" else ""
        if ready.target is not None and original is not None:
            got["target"], got["original"] = stored(ready.target), stored(original)
            ready.target.copy_(original)
        again = attempt(ready)
        value = again.pop("value", None)
        got["again"] = again
        again["result"] = failing_allocations.show(value) if again["kind"] == "ok" else ""
        del value
        got["inputs_kept"] = [stored(x) for x in ready.inputs] == before
        got["left"] = ledger(ready.devices)
    except RuntimeError as error:
        got["after"] = str(error)
        got["on_host"] = (dt.ones(3) + 1).tolist() == [2.0, 2.0, 2.0]
    return got


ERRORS = tempfile.TemporaryFile()


def forked(prepare: Prepare, fault: Fault | None) -> dict[str, Any]:
    """one_point in a child; a crash, a hang or words on stderr are part of the answer."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        os.dup2(ERRORS.fileno(), 2)
        signal.alarm(LIMIT_S)
        try:
            with os.fdopen(write, "wb") as pipe:
                pipe.write(json.dumps(one_point(prepare, fault)).encode())
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        answer = pipe.read()
    status = os.waitpid(child, 0)[1]
    if status or not answer:
        ERRORS.seek(0)
        text = ERRORS.read()[-300:].decode(errors="replace")
        ERRORS.truncate(0)
        ERRORS.seek(0)
        return {"crash": f"the process ended with status {status}: {text}"}
    found: dict[str, Any] = json.loads(answer)
    return found


# ---------------------------------------------------------------- judgement


def wrong_error(fault: Fault, error: dict[str, Any]) -> list[str]:
    """An error must be of the right class and name the symbol, the code and the device."""
    kind, text, found = error["kind"], error["text"], []
    memory = fault.code in OUT_OF_MEMORY[library(fault.symbol)] and fault.mode != "late"
    wanted = {"OutOfMemoryError"} if memory else {"CudaError"}
    if fault.symbol in NO_DEVICE or fault.symbol == "cuDeviceGet":
        wanted.add("DeviceNotAvailableError")
    if kind not in wanted:
        return [f"{kind} instead of {' or '.join(sorted(wanted))}: {text}"]
    if kind == "DeviceNotAvailableError":
        return []
    if fault.code == 3000 and "no engine for this convolution on cuda:" in text:  # when all of them are refused
        return []
    if error["status"] != fault.code:
        found.append(f"status {error['status']}: {text}")
    if fault.mode != "late" and error["symbol"] != fault.symbol:
        found.append(f"symbol {error['symbol']}: {text}")
    if fault.symbol not in NO_DEVICE and not error["device"].startswith("cuda:"):
        found.append(f"device {error['device']}: {text}")
    if not memory and (str(error["symbol"]) not in text or f"({fault.code})" not in text):
        found.append(f"the text names no symbol or code: {text}")
    if fault.symbol not in (*NO_DEVICE, "cuMemHostAlloc") and error["device"] not in text:  # that memory is the host's
        found.append(f"the text names no device: {text}")
    return found


def complaints(fault: Fault, got: dict[str, Any], clean: dict[str, Any]) -> list[str]:
    if "crash" in got:
        return [got["crash"]]
    first, found = got["first"], []
    if first["kind"] == "ok":
        if first["result"] != clean["first"]["result"]:
            found.append("no error and a wrong result")
        if fault.mode == "late":
            found.append("what went wrong on the device was not noticed")
    else:
        found += wrong_error(fault, first)
    if "after" in got:  # nothing works any more: only after what a context does not survive, and it must say so
        if fault.code not in LOST:
            found.append(f"then: {got['after']}")
        elif "cannot be used any more" not in got["after"] or f"({fault.code})" not in got["after"]:
            found.append(f"then, without the reason: {got['after']}")
        if not got["on_host"]:
            found.append("the cpu no longer works")
        return found
    again = got["again"]
    if again["kind"] != "ok":
        known = fault.code in LOST and "cannot be used any more" in again["text"]
        found += [] if known else [f"the retry gave {again['kind']}: {again['text']}"]
        return found
    if fault.mode == "late":
        found.append("a lost device was used again")
    if again["result"] != clean["first"]["result"]:
        found.append("the retry gave another result")
    if got.get("target") not in (got.get("original"), clean.get("target")):
        found.append("the target is half written")
    if not got["inputs_kept"]:
        found.append("an input changed")
    freeing = any(word in fault.symbol for word in FREES)
    allowed = dict(clean["left"])
    first = allowed["modules"] == 0
    if got["left"]["modules"] == allowed["modules"] + 1 and (first or fault.symbol.startswith("cublasLt")):
        allowed["modules"] += 1  # a way round the failure needed a kernel of ours
        allowed["live"] += 3 if first else 1  # the tables of the device's kernels, and the module
    executed = [answer["counts"].get("cudnnBackendExecute", 0) for answer in (got, clean)]
    if fault.symbol.startswith("cublasLt") and executed[0] == executed[1] + 1:
        allowed["descriptors"] += 1  # cuDNN did what else is a product of matrices, and its plan is kept
        allowed["live"] += 3
    if fault.symbol.startswith("cuEvent"):  # a slot without its mark is passed over: others are equipped, once each
        allowed["events"] += SLOTS
        allowed["live"] += 4 * SLOTS
    elif fault.symbol in BETWEEN_PARTS and allowed["events"]:  # or one whose copy still runs
        allowed["events"] += PARTS
        allowed["live"] += 4 * PARTS
    for name, count in got["left"].items():
        if count > allowed[name] and not freeing:
            found.append(f"{count - allowed[name]} {name} leaked")
    return found


def run(name: str, prepare: Prepare, share: int) -> dict[str, Any]:
    clean = forked(prepare, None)
    if "crash" in clean or clean["first"]["kind"] != "ok" or "after" in clean:
        return {"name": name, "points": 0, "found": [f"without a fault: {clean}"]}
    found, points = [], 0
    for fault in chosen_points(name, clean, share):
        found += [f"{fault}: {text}" for text in complaints(fault, forked(prepare, fault), clean)]
        points += 1
    return {"name": name, "points": points, "found": found}


def main(worker: str, workers: str = "1", share: str = "1", text: str = "") -> None:
    gc.collect()
    gc.freeze()
    rows = planted() if worker == "PLANTED" else programs()
    worker = "0" if worker == "PLANTED" else worker
    if worker == "COVER":
        for name, prepare in rows.items():
            print(json.dumps({"name": name, **forked(prepare, None)}), flush=True)
        return
    for i, (name, prepare) in enumerate(rows.items()):
        if i % int(workers) == int(worker) and text in name:
            print(json.dumps({"start": name}), flush=True)
            print(json.dumps(run(name, prepare, int(share))), flush=True)
    ERRORS.seek(0)
    print(json.dumps({"stderr": ERRORS.read().decode(errors="replace"), "sites": sorted(SITES)}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
