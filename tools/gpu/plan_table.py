"""Plans every convolution of the test table and of some networks with cuDNN, for GPUs that are not there.

    python tools/gpu/plan_table.py [--write] [--device NAME ...] [--every N]

The graphs and the choice of engines are those of the shipped extension (csrc/cuda/conv/*.c); cuDNN 9.8 or later takes
the description of a device in place of one. Each case must have a plan that keeps what its dtype promises: no engine
that converts inputs to fewer bits, sums in fewer bits, transforms (FFT, Winograd) or varies from run to run; no tensor
core for strict float32; and nothing that is compiled at run time. How many plans in half precision and TF32 do without
tensor cores is counted. Convolutions that are products of matrices are shown as such: they are cuBLASLt's, which plans
nothing without a device. The gradients of each convolution's input and weight are planned too. How many calls products,
attention and the like take is counted on the simulated GPU (plan_calls.py). --write stores the tables in docs/plans.md,
docs/plans.csv and docs/plans_gradients.csv; without it, the stored ones are compared where they are of the same version
of cuDNN. NVIDIA's wheels have to be importable (pip install .[cuda13]).
"""

import argparse
import csv
import ctypes
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "helpers"))
TABLE = ROOT / "docs" / "plans.csv"
GRADIENTS = ROOT / "docs" / "plans_gradients.csv"
SUMMARY = ROOT / "docs" / "plans.md"

# name: (compute capability, multiprocessors, shared memory a block may opt in to, shared memory, registers and threads
# of a multiprocessor, L2 bytes, memory bytes, clock and memory clock in kHz, bus width)
GPUS = {
    "A100": (80, 108, 166912, 2048, 32, 40 << 20, 80 << 30, 1410000, 1593000, 5120),
    "RTX 4090": (89, 128, 101376, 1536, 24, 72 << 20, 24 << 30, 2520000, 10501000, 384),
    "H100": (90, 132, 232448, 2048, 32, 50 << 20, 80 << 30, 1980000, 2619000, 5120),
    "H200": (90, 132, 232448, 2048, 32, 50 << 20, 141 << 30, 1980000, 3201000, 6144),
    "B200": (100, 148, 232448, 2048, 32, 126 << 20, 180 << 30, 1965000, 3996000, 8192),
}
NOTES = ("t", "down-converts", "reduced-reduction", "fft", "nondeterministic", "winograd", "w4", "w6", "w13", "n")
TENSOR_CORE, ALLOWED = 1 << 0, (1 << 0) | (1 << 9)
RUNTIME_COMPILED = 1 << 0
# What is computed: dtype and the float32 policy.
PRECISIONS = (("float32", "highest"), ("float32", "tf32"), ("float16", ""), ("bfloat16", ""), ("float64", ""))
GRAPHS = ((False, None), (True, None), (True, "relu"), (False, "relu"))
KINDS = (1, 2)  # gradients: of the input, of the weight
# The library of engines compiled at run time is linked with the driver; these are what it asks for when it is loaded.
DRIVER = """cuGetErrorString cuGetErrorName cuModuleGetFunction cuModuleLoadData cuModuleUnload cuTensorMapEncodeIm2col
cuTensorMapEncodeTiled cuCtxGetCurrent cuCtxGetLimit cuCtxPopCurrent cuCtxPushCurrent cuStreamGetCtx cuDriverGetVersion
cuLinkCreate cuLinkAddData cuLinkComplete cuLinkDestroy cuLaunchKernel cuLaunchKernelEx cuLaunchCooperativeKernel
cuDeviceGetCount cuDeviceGet cuLibraryLoadData cuLibraryLoadFromFile cuLibraryGetKernel cuLibraryUnload
cuKernelSetAttribute cuKernelGetAttribute cuKernelGetFunction cuOccupancyMaxPotentialClusterSize"""


def properties(name):
    """A GPU as cuDNN describes one in JSON."""
    version, units, shared, threads, blocks, l2, memory, clock, memory_clock, bus = GPUS[name]
    return json.dumps(
        {
            "deviceVer": version * 10,
            "multiProcessorCount": units,
            "smCountOrigin": 0,
            "warpSize": 32,
            "maxSharedMemoryPerBlock": 49152,
            "maxSharedMemoryPerBlockOptin": shared,
            "oversizedSharedMemoryPerBlock": 0,
            "reservedSharedMemoryPerBlock": 1024,
            "maxRegistersPerSM": 65536,
            "maxCtasPerSM": blocks,
            "maxThreadsPerBlock": 1024,
            "maxThreadsPerSM": threads,
            "regsPerBlock": 65536,
            "totalGlobalMem": memory,
            "smClockRateKHz": clock,
            "l2CacheSize": l2,
            "memClockRateKHz": memory_clock,
            "memoryBusWidth": bus,
            "maxBlockSize": [1024, 1024, 64],
            "maxGridSize": [2147483647, 65535, 65535],
            "supportCoopLaunch": 1,
            "pciDeviceId": 0,
            "isTccDriver": 0,
            "cudaDeviceId": 0,
            "driverVer": 13000,
            "deviceName": f"NVIDIA {name}",
        }
    )


def load_driver():
    """The driver, or where there is none a library of its name with functions that fail."""
    try:
        ctypes.CDLL("libcuda.so.1", ctypes.RTLD_GLOBAL)
        return
    except OSError:
        pass
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "libcuda.so.1"))
        source = "".join(f"int {name}(void) {{ return 100; }}\n" for name in DRIVER.split())
        command = ["cc", "-shared", "-fPIC", "-w", "-Wl,-soname,libcuda.so.1", "-x", "c", "-", "-o", path]
        subprocess.run(command, input=source, text=True, check=True)
        ctypes.CDLL(path, ctypes.RTLD_GLOBAL)


# ---------------------------------------------------------------- the cases


def table_cases():
    """{name: (input, weight, stride, before, after, dilation)} of the rows of the test table."""
    import cases
    import images

    found = {}
    for case in cases.conv_rows():
        x, weight = case.operands[0].shape, case.operands[1].shape
        if 0 in x:
            continue
        p = case.parameters
        dilation = images.pair(p.get("dilation", 1))
        padding = images.padding_of(p.get("padding", 0), weight[2:], dilation)
        x = x if len(x) == 4 else (1, *x)
        sizes = (x, weight, images.pair(p.get("stride", 1)), *zip(*padding, strict=True), dilation)
        found.setdefault(sizes, "table " + "x".join(map(str, x)) + " * " + "x".join(map(str, weight)))
    return {f"{name} #{i}": sizes for i, (sizes, name) in enumerate(found.items())}


def layer(x, channels, kernel, stride=1, groups=1):
    """A layer with padding that keeps the size at stride 1."""
    pad = (kernel // 2, kernel // 2)
    return x, (channels, x[1] // groups, kernel, kernel), (stride, stride), pad, pad, (1, 1)


def resnet50(n=32):
    found = {"stem": layer((n, 3, 224, 224), 64, 7, 2)}
    size, channels = 56, 64
    for stage, width in enumerate((64, 128, 256, 512), 1):
        stride = 1 if stage == 1 else 2
        found[f"{stage} reduce first"] = layer((n, channels, size, size), width, 1)
        found[f"{stage} 3x3 first"] = layer((n, width, size, size), width, 3, stride)
        found[f"{stage} shortcut"] = layer((n, channels, size, size), 4 * width, 1, stride)
        size, channels = size // stride, 4 * width
        found[f"{stage} expand"] = layer((n, width, size, size), 4 * width, 1)
        found[f"{stage} reduce"] = layer((n, channels, size, size), width, 1)
        found[f"{stage} 3x3"] = layer((n, width, size, size), width, 3)
    return {f"resnet50 {name}": sizes for name, sizes in found.items()}


def mobilenet_v2(n=32):
    found = {"stem": layer((n, 3, 224, 224), 32, 3, 2)}
    size, channels = 112, 32
    settings = "1 16 1 1, 6 24 2 2, 6 32 3 2, 6 64 4 2, 6 96 3 1, 6 160 3 2, 6 320 1 1"
    for text in settings.split(","):
        factor, width, repeats, first = map(int, text.split())
        for i in range(repeats):
            stride, hidden = first if i == 0 else 1, channels * factor
            name = f"{channels}@{size}"
            if factor > 1:
                found[f"expand {name}"] = layer((n, channels, size, size), hidden, 1)
            found[f"depthwise {hidden}@{size} s{stride}"] = layer((n, hidden, size, size), hidden, 3, stride, hidden)
            size //= stride
            found[f"project {hidden}@{size} to {width}"] = layer((n, hidden, size, size), width, 1)
            channels = width
    found["head"] = layer((n, 320, 7, 7), 1280, 1)
    return {f"mobilenet_v2 {name}": sizes for name, sizes in found.items()}


def large():
    """Layers whose transposed copies pass 256 MiB, and convolutions that are products of matrices."""
    found = {
        "unet 64@512": layer((8, 64, 512, 512), 64, 3),
        "unet 128@256": layer((8, 128, 256, 256), 128, 3),
        "vgg 64@224": layer((32, 64, 224, 224), 64, 3),
        "vgg 128@112": layer((32, 128, 112, 112), 128, 3),
        "resnet50 expand, batch 256": layer((256, 64, 56, 56), 256, 1),
        "resnet50 3x3, batch 256": layer((256, 64, 56, 56), 64, 3),
        "vit patches": ((32, 3, 224, 224), (768, 3, 16, 16), (16, 16), (0, 0), (0, 0), (1, 1)),
        "whole image": ((32, 512, 7, 7), (4096, 512, 7, 7), (1, 1), (0, 0), (0, 0), (1, 1)),
        "one by one, one image": layer((1, 512, 14, 14), 512, 1),
    }
    return {f"large {name}": sizes for name, sizes in found.items()}


# ---------------------------------------------------------------- planning


def plan(dt, json_text, sizes, dtype, channels_last, bias=False, activation=None, kind=0):
    """What the extension plans, or the text of its error."""
    try:
        return dt._C._test.describe_conv2d(json_text, getattr(dt, dtype), *sizes, channels_last, bias, activation, kind)
    except dt.CudaError as error:
        return str(error)


def cell(found):
    """Engine, notes, KiB of workspace (see write_table)."""
    if found["product"]:
        return "product"
    notes = "".join(name for i, name in enumerate(NOTES) if found["notes"] >> i & 1)
    notes += "c" if found["behaviors"] & RUNTIME_COMPILED else ""
    notes += "*" if found["unloadable"] else ""
    return f"{found['engine']}{notes}/{-(-found['workspace'] // 1024)}"


def complaint(found, precision):
    """What a plan does against the rules; an empty text: nothing."""
    if isinstance(found, str):
        return "no plan: " + found.splitlines()[0]
    if found["product"]:
        return ""
    if found["notes"] & ~ALLOWED:
        return f"notes {found['notes']:#x}"
    if precision == ("float32", "highest") and found["notes"] & TENSOR_CORE:
        return "a tensor core for strict float32"
    if found["behaviors"] & RUNTIME_COMPILED:
        return "compiled at run time"
    return ""


def plan_case(dt, json_text, sizes, precision, channels_last):
    """The cells of the graphs, what is wrong, and how many are products, do less than all or lack tensor cores."""
    dt.set_float32_precision(precision[1] or "highest")
    cells, wrong, counts = [], [], Counter()
    could = precision[0] in ("float16", "bfloat16") or precision[1] == "tf32"
    for bias, activation in GRAPHS:
        found = plan(dt, json_text, sizes, precision[0], channels_last, bias, activation)
        bad = complaint(found, precision)
        if bad:
            wrong.append(bad)
        if isinstance(found, str):
            cells.append("none")
            continue
        has_all = found["bias"] >= bias and found["activation"] >= (activation is not None)
        is_apart = not (found["product"] or has_all)
        cells.append(cell(found) + "+apart" * is_apart)
        counts["products" if found["product"] else "plans"] += not bad
        counts["apart"] += is_apart
        counts["plain"] += could and not found["product"] and not found["notes"] & TENSOR_CORE
    same = len(set(cells)) == 1
    return cells[0] if same else " ".join(cells), wrong, counts


def plan_gradients(dt, json_text, sizes, precision, channels_last):
    """The cells of the input's gradient and the weight's, and what is wrong."""
    dt.set_float32_precision(precision[1] or "highest")
    found = [plan(dt, json_text, sizes, precision[0], channels_last, kind=kind) for kind in KINDS]
    wrong = [f"a gradient: {bad}" for bad in (complaint(one, precision) for one in found) if bad]
    return " ".join("none" if isinstance(one, str) else cell(one) for one in found), wrong


def plan_all(devices, every):
    import devtensor as dt

    version = dt._C._cuda_library_versions()["cudnn"]
    if version is None:
        raise SystemExit("cuDNN cannot be loaded:\n" + dt._C._cuda_report())
    sizes = {**table_cases(), **resnet50(), **mobilenet_v2(), **large()}
    sizes = dict(list(sizes.items())[::every])
    rows, gradients, wrong, summary = {}, {}, [], {}
    for device in devices:
        text, total = properties(device), Counter()
        for name, case in sizes.items():
            for precision in PRECISIONS:
                for layout in ("NCHW", "NHWC"):
                    key = (name, " ".join(precision).strip(), layout)
                    got, bad, counts = plan_case(dt, text, case, precision, layout == "NHWC")
                    rows.setdefault(key, {})[device] = got
                    grads, bad_grads = plan_gradients(dt, text, case, precision, layout == "NHWC")
                    gradients.setdefault(key, {})[device] = grads
                    counts["gradients"] = len(KINDS) - len(bad_grads)
                    wrong += [f"{device}: {' '.join(key)}: {b}" for b in bad + bad_grads]
                    total.update(counts)
        summary[device] = total
        print(
            f"{device}: {total['plans']} plans, {total['apart']} with bias or ReLU apart, {total['plain']} in half"
            f" precision or TF32 without tensor cores; {total['products']} products; {total['gradients']} gradients",
            flush=True,
        )
    dt.set_float32_precision("highest")
    return version, len(sizes), rows, gradients, wrong, summary


def count_calls():
    """The rows of plan_calls.py, as lines of a table."""
    command = [sys.executable, str(ROOT / "tools" / "gpu" / "plan_calls.py")]
    environment = os.environ | {"DEVTENSOR_CUDA": "sim:1"}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found = {}
    for name, _, *numbers in json.loads(ran.stdout):
        found.setdefault(name, []).append(" + ".join(map(str, numbers)))
    return [f"| {name} | {' | '.join(cells)} |" for name, cells in found.items()]


# ---------------------------------------------------------------- the stored table


def gradient_lines(gradients):
    """Of each GPU and kind: how many plans, their engines, tensor cores, workspace. gradients: {key: {GPU: cells}}"""
    lines = [
        "| GPU | gradient of | planned | products | with tensor cores | workspace of 1 MiB or more |"
        " engines, how often |",
        "|---|---|---|---|---|---|---|",
    ]
    for device in next(iter(gradients.values())):
        for kind, name in enumerate(("the input", "the weight")):
            cells = [found[device].split()[kind] for found in gradients.values()]
            plans = [re.fullmatch(r"(\d+)([a-z*-]*)/(\d+)", cell) for cell in cells]
            products, good = cells.count("product"), [plan for plan in plans if plan is not None]
            engines = Counter(plan[1] for plan in good)
            often = ", ".join(f"{engine}: {count}" for engine, count in engines.most_common(4))
            rest = len(engines) - 4
            lines.append(
                f"| {device} | {name} | {len(good)} of {len(cells)} | {products}"
                f" | {sum('t' in plan[2] for plan in good)} | {sum(int(plan[3]) >= 1024 for plan in good)}"
                f" | {often}{f', {rest} others' if rest > 0 else ''} |"
            )
    return lines


def write_table(version, ncases, rows, gradients, summary, calls):
    for path, lines in ((TABLE, rows), (GRADIENTS, gradients)):
        with path.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([f"cuDNN {version}", "precision", "layout", *summary])
            for key, found in lines.items():
                writer.writerow([*key, *(found[device] for device in summary)])
    total, products = (sum(counts[name] for counts in summary.values()) for name in ("plans", "products"))
    lines = [
        "# Which engines cuDNN plans",
        "",
        f"Written by `python tools/gpu/plan_table.py --write` with cuDNN {version}, on a machine with no GPU: {ncases}"
        f" convolutions (the rows of the",
        "test table, the layers of ResNet-50 and MobileNetV2 at batch 32, large ones), float32 strict and TF32,"
        " float16, bfloat16, float64,",
        f"both layouts, each alone, with bias, with bias and ReLU, with ReLU: {total} graphs, each with a plan that"
        " keeps the rules of",
        f"`csrc/cuda/conv/engine.c`, and {products} products of matrices (`csrc/cuda/conv/product.c`), which are"
        " cuBLASLt's. A described device",
        "stands for the real one: no plan of this table has run. An operand is copied where its address is no multiple"
        " of 16 bytes, so that there",
        "is one plan for all alignments.",
        "",
        "| GPU | plans | bias or ReLU as passes of their own | half or TF32 without tensor cores | products |"
        " gradients |",
        "|---|---|---|---|---|---|",
        *(
            f"| {device} | {c['plans']} | {c['apart']} | {c['plain']} | {c['products']} | {c['gradients']} |"
            for device, c in summary.items()
        ),
        "",
        "`plans.csv` has a line for each convolution, precision and layout. A cell is engine, notes and KiB of",
        "workspace, such as `41t/6344`, once where the four graphs get the same plan, else four times. Notes are t:",
        "tensor cores; n: NaN kept; c: compiled at run time; *: cuDNN names an engine before this one that it compiles",
        "and loads while planning, which takes a driver, so that a GPU may run that one. `+apart`: the graph does less",
        "than was asked for, and kernels do the rest. `product`: a product of matrices. `plans_gradients.csv` has the"
        " plans of the",
        "input's gradient and the weight's, which keep the same rules.",
        "",
        "## Gradients",
        "",
        "The plans of `plans_gradients.csv`, each graph alone. All are deterministic: no engine with the note"
        " NONDETERMINISTIC is taken, and",
        "where cuDNN had none left, the gradient would be computed by formulas (`core/grad`); that happens nowhere"
        " here.",
        "",
        *gradient_lines(gradients),
        "",
        "## Calls of products",
        "",
        "cuBLASLt plans nothing without a device, but which calls are made is ours. Counted on the simulated GPU, at"
        " the third call with the",
        "same operands: calls of cuBLASLt + calls of cuDNN + kernels of our own (copies, bias, activation, or the"
        " product itself).",
        "",
        "| op | float32 | float16 | float64 |",
        "|---|---|---|---|",
        *calls,
        "",
    ]
    SUMMARY.write_text("\n".join(lines))


def compare_table(path, version, rows, devices):
    """Lines of a stored table that this cuDNN plans otherwise; None where the stored one is of another version."""
    with path.open(newline="") as file:
        stored = list(csv.reader(file))
    head, body = stored[0], stored[1:]
    if head[0] != f"cuDNN {version}":
        return None
    before = {tuple(line[:3]): dict(zip(head[3:], line[3:], strict=True)) for line in body}
    return [
        f"{device}: {' '.join(key)}: {found[device]}, stored {before.get(key, {}).get(device)}"
        for key, found in rows.items()
        for device in devices
        if before.get(key, {}).get(device) != found[device]
    ]


def refused_attention(name):
    """Graphs of attention for which cuDNN has no code on a GPU. It is compiled, and then wants the device."""
    import devtensor as dt

    query, key = (2, 8, 130, 64), (2, 4, 200, 64)
    graphs = itertools.product(("the result", "the result, kept", "the gradient"), (False, True))
    return [
        f"attention on {name}: {graph}{', causal' if causal else ''}"
        for kind, (graph, causal) in ((i // 2, pair) for i, pair in enumerate(graphs))
        if not dt._C._test.describe_attention(properties(name), dt.float16, query, key, key, causal, kind)
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="store the table")
    parser.add_argument("--device", action="append", choices=list(GPUS), help="only these GPUs")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every N-th convolution")
    options = parser.parse_args()
    if options.write and (options.device or options.every != 1):
        parser.error("the whole table is stored, or nothing")
    devices = options.device or list(GPUS)
    load_driver()
    version, ncases, rows, gradients, wrong, summary = plan_all(devices, options.every)
    wrong += refused_attention(devices[-1])
    for line in wrong[:40]:
        print("  " + line)
    print(f"cuDNN {version}: {ncases} convolutions, {len(rows)} lines of the table, {len(wrong)} against the rules")
    calls = count_calls()
    if options.write:
        write_table(version, ncases, rows, gradients, summary, calls)
    else:
        changed = compare_table(TABLE, version, rows, devices)
        if changed is not None:
            changed += compare_table(GRADIENTS, version, gradients, devices) or []
        print("the stored table is of another version" if changed is None else f"{len(changed)} lines have changed")
        stored = SUMMARY.read_text().splitlines()
        changed = (changed or []) + [f"calls: {line}" for line in calls if line not in stored]
        for line in changed[:40]:
            print("  " + line)
        wrong += changed
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
