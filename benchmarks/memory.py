"""The most memory that a call needs beyond its operands and its result, each in a process of its own.

Linux keeps the high-water mark of resident memory, and sets it back on request (proc(5), clear_refs).
"""

import json
import subprocess
import sys
from dataclasses import dataclass

PROGRAM = """
import importlib, json, sys

def status(key):
    for line in open("/proc/self/status"):
        if line.startswith(key):
            return int(line.split()[1]) * 1024

name, warm, inputs, call, result_bytes = json.loads(sys.argv[1])
lib = importlib.import_module(name)
if name == "torch":
    lib.set_grad_enabled(False)
eval(call, {"lib": lib, **{k: eval(e) for k, e in warm.items()}})  # threads, and what a first call brings
space = {"lib": lib, **{k: eval(e) for k, e in inputs.items()}}
before = status("VmRSS")
open("/proc/self/clear_refs", "w").write("5")
result = eval(call, space)
print(status("VmHWM") - before - result_bytes)
"""


@dataclass(frozen=True)
class Case:
    name: str
    inputs: dict  # name -> expression of `lib`
    warm: dict  # the same, small
    calls: dict  # library -> expression
    result_bytes: int


def ones(*shape, dtype="float32"):
    return f"lib.ones({shape}, dtype=lib.{dtype})"


def cast(n):
    calls = {"devtensor": "a.to(lib.float32)", "numpy": "a.astype(lib.float32)", "torch": "a.to(lib.float32)"}
    inputs, warm = {"a": ones(n, dtype="float64")}, {"a": ones(8, dtype="float64")}
    return Case(f"float64 to float32 n={n}", inputs, warm, calls, 4 * n)


def matmul(n):
    inputs, warm = {"a": ones(n, n), "b": ones(n, n)}, {"a": ones(8, 8), "b": ones(8, 8)}
    return Case(f"a @ b n={n}", inputs, warm, dict.fromkeys(("devtensor", "numpy", "torch"), "a @ b"), 4 * n * n)


def conv2d(channels, height, filters, kernel):
    padding = kernel // 2
    inputs = {"x": ones(8, channels, height, height), "w": ones(filters, channels, kernel, kernel)}
    warm = {"x": ones(1, channels, kernel, kernel), "w": inputs["w"]}
    calls = dict.fromkeys(("devtensor", "torch"), f"lib.conv2d(x, w, None, 1, {padding})")
    name = f"conv2d {kernel}x{kernel} {channels} to {filters} at {height}, batch 8"
    return Case(name, inputs, warm, calls, 4 * 8 * filters * height * height)


def training_step(batch, size):
    """Of ResNet-18: gradients and momentum count, as they are made by it."""
    step = "__import__('benchmarks.training_rows', fromlist=['training_rows']).resnet_step(lib)"
    inputs = {"x": ones(batch, 3, size, size), "y": f"lib.zeros({batch}, dtype=lib.int64)", "step": step}
    warm = inputs | {"x": ones(2, 3, 64, 64), "y": "lib.zeros(2, dtype=lib.int64)"}
    name = f"step of ResNet-18, batch {batch}, {size} x {size}"
    return Case(name, inputs, warm, dict.fromkeys(("devtensor", "torch"), "step(x, y)"), 4)


def training_forward(batch, size):
    """Of ResNet-18: what its loss keeps for the way back, and what the layers need beside it for a moment."""
    step = "__import__('benchmarks.training_rows', fromlist=['training_rows']).resnet_forward(lib)"
    inputs = {"x": ones(batch, 3, size, size), "y": f"lib.zeros({batch}, dtype=lib.int64)", "step": step}
    warm = inputs | {"x": ones(2, 3, 64, 64), "y": "lib.zeros(2, dtype=lib.int64)"}
    name = f"forward pass of ResNet-18 that is recorded, batch {batch}, {size} x {size}"
    return Case(name, inputs, warm, dict.fromkeys(("devtensor", "torch"), "step(x, y)"), 4)


CASES = [
    cast(1 << 24),
    matmul(2048),
    conv2d(64, 112, 64, 3),
    conv2d(256, 56, 256, 3),
    conv2d(128, 112, 256, 1),
    training_forward(8, 224),
    training_step(8, 224),
]


def measure(cases, libs):
    """[{name, result_bytes, extra: {library: bytes}}]"""
    out = []
    for case in cases:
        extra = {}
        for name, call in case.calls.items():
            if name in libs:
                argument = json.dumps([name, case.warm, case.inputs, call, case.result_bytes])
                run = [sys.executable, "-c", PROGRAM, argument]
                extra[name] = int(subprocess.run(run, check=True, capture_output=True, text=True).stdout)
        out.append({"name": case.name, "result_bytes": case.result_bytes, "extra": extra})
    return out
