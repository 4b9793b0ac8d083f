"""The situations of examples/situations: what each script must say, in this order among other lines.

`message` is what the table of docs/situations.md shows. `gpu` is for one GPU and, without `two`, for two.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import devtensor as dt

FOLDER = Path(__file__).parents[3] / "examples" / "situations"
NO_GPU = "no GPU here, so nothing can be on the wrong device"
DEVICES = "Expected all tensors to be on the same device, but found at least two devices,"


class Situation(NamedTuple):
    name: str
    message: str
    cpu: tuple[str, ...]
    gpu: tuple[str, ...]
    two: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        return FOLDER / self.name

    @property
    def title(self) -> str:
        """The first line of the script, without number and full stop."""
        return self.path.read_text().partition("\n")[0].removeprefix('"""').partition(" ")[2].removesuffix(".")


def both(*texts: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is said on the cpu and on a GPU alike."""
    on = [tuple(text.replace("{device}", device) for text in texts) for device in ("cpu", "cuda")]
    return on[0], on[1]


SITUATIONS = [
    Situation(
        "01_conv2d_devices.py",
        f"DeviceMismatchError: {DEVICES} cpu and cuda:0! (conv2d: input on cpu, weight on cuda:0)",
        cpu=(NO_GPU, "conv2d on cpu: (8, 16, 32, 32)"),
        gpu=(
            f"devtensor.DeviceMismatchError: {DEVICES} cpu and cuda:0! (conv2d: input on cpu, weight on cuda:0)",
            "created by randn at 01_conv2d_devices.py:13  <- the odd one",
            'Fix: images = images.to("cuda:0")',
            f"{DEVICES} cuda:0 and cpu! (conv2d: input on cuda:0, weight on cpu)",
            f"{DEVICES} cuda:0 and cpu! (conv2d: input on cuda:0, weight on cuda:0, bias on cpu)",
            "conv2d on cuda: (8, 16, 32, 32)",
        ),
    ),
    Situation(
        "02_is_there_a_gpu.py",
        "DeviceNotAvailableError: Device cuda:31 does not exist: 2 CUDA devices are visible.",
        cpu=(
            "CUDA is switched off by DEVTENSOR_CUDA=off.",
            "devtensor.DeviceNotAvailableError: CUDA is switched off by DEVTENSOR_CUDA=off.",
            "to use CUDA: unset DEVTENSOR_CUDA",
            "x + y on cpu: [1.0, 2.0, 3.0]",
        ),
        gpu=(
            "there is a GPU here; elsewhere the line above fails",
            "devtensor.DeviceNotAvailableError: Device cuda:31 does not exist: 1 CUDA device is visible.",
            "x + y on cuda: [1.0, 2.0, 3.0]",
        ),
        two=("Device cuda:31 does not exist: 2 CUDA devices are visible.", "visible: cpu, cuda:0, cuda:1"),
    ),
    Situation(
        "03_raw_kernel.py",
        f"DeviceMismatchError: {DEVICES} cuda:0 and cpu! (scale: out on cuda:0, x on cpu)",
        cpu=("a CUDA kernel needs a CUDA device: try it with `python -m devtensor run --simulate 1`",),
        gpu=(
            f"devtensor.DeviceMismatchError: {DEVICES} cuda:0 and cpu! (scale: out on cuda:0, x on cpu)",
            "moved by .cpu() at 03_raw_kernel.py:34    <- the odd one",
            "Expected x tensor to have dtype float32 for const float *x, but got float64 instead",
            "scale takes 4 arguments (float *out, const float *x, float factor, int n), but got 3",
            "out[-1] == 1998.0",
        ),
    ),
    Situation(
        "04_input_on_the_cpu.py",
        f"DeviceMismatchError: {DEVICES} cpu and cuda:0! (conv2d: input on cpu, weight on cuda:0, bias on cuda:0)",
        cpu=(NO_GPU, "net(batch) on cpu: (4, 10)"),
        gpu=(
            f"devtensor.DeviceMismatchError: {DEVICES} cpu and cuda:0! (conv2d: input on cpu, weight on cuda:0, bias",
            "created by randn at 04_input_on_the_cpu.py:24        <- the odd one",
            'net.body.0.weight  (8, 1, 3, 3)  float32  cuda:0  moved by .to("cuda:0") at 04_input_on_the_cpu.py:23',
            "In module: Net.body.0",
            "the layer was Net.body.0",
            f"{DEVICES} cpu and cuda:0! (linear: input on cpu, weight on cuda:0, bias on cuda:0)",
            "net(batch) on cuda: (4, 10)",
        ),
    ),
    Situation(
        "05_float64_from_numpy.py",
        "DTypeMismatchError: mat1 and mat2 must have the same dtype, but got float64 and float32 "
        "(linear: input float64, weight float32, bias float32)",
        cpu=(
            "devtensor.DTypeMismatchError: mat1 and mat2 must have the same dtype, but got float64 and float32 (",
            "created by from_numpy at 05_float64_from_numpy.py:19  <- the odd one",
            "Fix: x = x.float()",
            "model(x): (64, 10), devtensor.float32",
            "bytes moved: 0 together, 0 one after the other",
        ),
        gpu=(
            "devtensor.DTypeMismatchError: mat1 and mat2 must have the same dtype, but got float64 and float32 (",
            "created by from_numpy at 05_float64_from_numpy.py:19  <- the odd one",
            "-> mul (05_float64_from_numpy.py:20)",
            "Fix: x = x.float()",
            "model(x): (64, 10), devtensor.float32",
            "bytes moved: 25600 together, 51200 one after the other",
        ),
    ),
    Situation(
        "06_half_precision.py",
        "DTypeMismatchError: mat1 and mat2 must have the same dtype, but got float32 and float16 "
        "(linear: input float32, weight float16, bias float16)",
        cpu=(
            "devtensor.DTypeMismatchError: mat1 and mat2 must have the same dtype, but got float32 and float16 (",
            "model.weight  (8, 4096)  float16  cpu",
            "Fix: batch = batch.half()",
            "model(batch): devtensor.float16",
            "devtensor.float16: sum 4096, product 4096",
            "devtensor.bfloat16: sum 4096, product 4096",
            "float16 [inf, 3.140625], bfloat16 [70144.0, 3.140625]",
        ),
        gpu=(
            "devtensor.DTypeMismatchError: mat1 and mat2 must have the same dtype, but got float32 and float16 (",
            "model.weight  (8, 4096)  float16  cuda:0",
            "Fix: batch = batch.half()",
            "model(batch): devtensor.float16",
            "devtensor.float16: sum 4096, product 4096",
            "devtensor.bfloat16: sum 4096, product 4096",
            "float16 [inf, 3.140625], bfloat16 [70144.0, 3.140625]",
        ),
    ),
    Situation(
        "07_pinned_batches.py",
        f"DeviceMismatchError: {DEVICES} cpu and cuda:0! (linear: input on cpu, weight on cuda:0, bias on cuda:0)",
        cpu=(
            "a batch is on cpu, pinned: False",
            NO_GPU,
            "by hand: (128, 10)",
            "prefetched: 0 copies, 0 of them waited for",
            "of 512 right, as the model has learned nothing yet",
        ),
        gpu=(
            "a batch is on cpu, pinned: True",
            f"devtensor.DeviceMismatchError: {DEVICES} cpu and cuda:0! (linear: input on cpu, weight on cuda:0, bias",
            'Fix: images = images.to("cuda:0")',
            "by hand: (128, 10)",
            "prefetched: 8 copies, 0 of them waited for",
            "of 512 right, as the model has learned nothing yet",
        ),
    ),
    Situation(
        "08_mat1_is_on_the_cpu.py",
        f"DeviceMismatchError: {DEVICES} cuda:0 and cpu! (addmm: input on cuda:0, mat1 on cpu, mat2 on cuda:0)",
        cpu=(NO_GPU, "scores on cpu: (4, 16)"),
        gpu=(
            f"devtensor.DeviceMismatchError: {DEVICES} cuda:0 and cpu! (addmm: input on cuda:0, mat1 on cpu, mat2 on",
            "mat1   queries  (4, 64)   float32  cpu     created by randn at 08_mat1_is_on_the_cpu.py:11  <- the odd",
            'Fix: queries = queries.to("cuda:0")',
            f"{DEVICES} cpu and cuda:0! (mm: input on cpu, mat2 on cuda:0)",
            f"{DEVICES} cpu and cuda:0! (matmul: input on cpu, other on cuda:0)",
            f"{DEVICES} cpu and cuda:0! (linear: input on cpu, weight on cuda:0, bias on cuda:0)",
            "scores on cuda: (4, 16)",
        ),
    ),
    Situation(
        "09_create_on_the_device.py",
        "a transfer of 36 bytes from cpu to cuda:0 is forbidden here, and nothing was moved",
        cpu=(
            "made on the cpu, then moved: 0 bytes moved",
            "made on the device, cpu: 0 bytes moved",
            "the same numbers: True",
            "no GPU here, so nothing moves",
        ),
        gpu=(
            "made on the cpu, then moved: 4000000 bytes moved",
            "made on the device, cuda: 0 bytes moved",
            "the same numbers: True",
            "a transfer of 36 bytes from cpu to cuda:0 is forbidden here, and nothing was moved",
        ),
    ),
    Situation(
        "10_in_place.py",
        f"DeviceMismatchError: {DEVICES} cuda:0 and cpu! (add: input on cuda:0, other on cpu)",
        cpu=(
            NO_GPU,
            "result type float32 can't be cast to the desired output type int64 (add: input int64)",
            "counts is what it was: [0, 0, 0]",
            "same memory: True, on cpu, seen through a view: [1.5, 1.5, 1.5]",
        ),
        gpu=(
            f"devtensor.DeviceMismatchError: {DEVICES} cuda:0 and cpu! (add: input on cuda:0, other on cpu)",
            'Fix: mat2 = mat2.to("cuda:0")',
            "mat1 is what it was: [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]",
            "result type float32 can't be cast to the desired output type int64 (add: input int64)",
            "counts is what it was: [0, 0, 0]",
            "same memory: True, on cuda, seen through a view: [1.5, 1.5, 1.5]",
        ),
    ),
    Situation(
        "11_helper_in_forward.py",
        f"DeviceMismatchError: {DEVICES} cuda:0 and cpu! (add: input on cuda:0, other on cpu)",
        cpu=(NO_GPU, "made where x is: cpu", "randn_like: True, new_zeros: True"),
        gpu=(
            f"devtensor.DeviceMismatchError: {DEVICES} cuda:0 and cpu! (add: input on cuda:0, other on cpu)",
            "device of 0.1 * noise: randn (11_helper_in_forward.py:14) -> mul (11_helper_in_forward.py:15)",
            "In module: Noisy",
            "made where x is: cuda",
            "randn_like: True, new_zeros: True",
        ),
    ),
    Situation(
        "12_not_registered.py",
        "self.mean is a plain attribute, not a parameter or buffer, so .to() on the Module leaves it where it is",
        cpu=(
            "scale on cpu, mean on cpu, saved: ['scale']",
            NO_GPU,
            "scale on cpu, mean on cpu, saved: ['scale', 'mean']",
            "layer(x): (2, 3)",
        ),
        gpu=(
            "scale on cuda, mean on cpu, saved: ['scale']",
            f"devtensor.DeviceMismatchError: {DEVICES} cuda:0 and cpu! (sub: input on cuda:0, other on cpu)",
            "self.mean is a plain attribute, not a parameter or buffer, so .to() on the Module leaves it where it is; "
            'register it: self.register_buffer("mean", ...)',
            "scale on cuda, mean on cuda, saved: ['scale', 'mean']",
            "layer(x): (2, 3)",
        ),
    ),
    Situation(
        "13_several_gpus.py",
        f"DeviceMismatchError: {DEVICES} cuda:0 and cuda:1! (matmul: input on cuda:0, other on cuda:1)",
        cpu=("this needs two GPUs, and here are 0: try `python -m devtensor run --simulate 2`",),
        gpu=("this needs two GPUs, and here are 1: try `python -m devtensor run --simulate 2`",),
        two=(
            f"devtensor.DeviceMismatchError: {DEVICES} cuda:0 and cuda:1! (matmul: input on cuda:0, other on cuda:1)",
            'Fix: second = second.to("cuda:0")',
            "result on cuda:1, after a copy from cuda:0 to cuda:1",
            "made inside of the block: cuda:1; after it: cuda:0",
            "gathered: (12, 4) on cuda:0, right: True",
        ),
    ),
    Situation(
        "14_threads_and_processes.py",
        "CUDA was used, first at 14_threads_and_processes.py:14 before this process was forked, and cannot be used in "
        'the child. Start the process with the "spawn" method, or use CUDA only in the child.',
        cpu=("threads: [0.0, 100.0, 200.0, 300.0]", "forked: 100.0", "spawned: 100.0"),
        gpu=(
            "threads: [0.0, 100.0, 200.0, 300.0]",
            "forked: CUDA was used, first at 14_threads_and_processes.py:14 before this process was forked, and cannot "
            'be used in the child. Start the process with the "spawn" method, or use CUDA only in the child.',
            "spawned: 100.0",
        ),
    ),
    Situation(
        "15_is_it_on_the_gpu.py",
        "8 transfers: 5 to devices (12.3 KiB), 3 to the host (12 bytes)",
        cpu=("batch on cpu, model on cpu", "row 2: float", "0 transfers", "result on cpu"),
        gpu=(
            "batch on cpu, model on cpu",
            "8 transfers: 5 to devices (12.3 KiB), 3 to the host (12 bytes)",
            "model.*      15_is_it_on_the_gpu.py:19",
            "batch        15_is_it_on_the_gpu.py:20",
            "round trips: 15_is_it_on_the_gpu.py:22 waited for cuda:0 3 times (.item() of result[row])",
            "result on cuda",
        ),
    ),
    Situation(
        "16_round_trips.py",
        "round trips: 16_round_trips.py:18 waited for cuda:0 5 times (.cpu() of y)",
        cpu=("0 transfers", "afterwards: 0 bytes, same result: True, largest 0.99"),
        gpu=(
            "15 transfers: 10 to the host (19.6 KiB), 5 to devices (19.5 KiB)",
            "round trips: 16_round_trips.py:18 waited for cuda:0 5 times (.cpu() of y)",
            "round trips: 16_round_trips.py:20 waited for cuda:0 5 times (.item() of y.max())",
            "afterwards: 4 bytes, same result: True, largest 0.99",
        ),
    ),
    Situation(
        "17_state_carried_on.py",
        "Fix: h = h.detach()   (before 17_state_carried_on.py:20)",
        *both(
            "GradientError: Trying to backward through the graph a second time",
            "(freed by backward at 17_state_carried_on.py:22, needed by tanh at 17_state_carried_on.py:20)",
            "h was made by the graph that is used up, and is used again after that backward",
            "Fix: h = h.detach()   (before 17_state_carried_on.py:20)",
            "fix: h = h.detach(), before line 20",
            "three batches, gradient of (8, 8) on {device}",
        ),
    ),
    Situation(
        "18_changed_in_place.py",
        "kept by sigmoid at 18_changed_in_place.py:17, changed at 18_changed_in_place.py:18",
        *both(
            "GradientError: one of the variables needed for gradient computation has been modified by an inplace",
            "kept by sigmoid at 18_changed_in_place.py:17, changed at 18_changed_in_place.py:18",
            "Fix: gate = gate.clone()   (before 18_changed_in_place.py:18)",
            "net.2.weight float32 (1, 8) on {device}",
            "kept by linear at 18_changed_in_place.py:26, changed at 18_changed_in_place.py:28",
            "An optimizer stepped between forward and backward",
            "a step on {device}",
        ),
    ),
    Situation(
        "19_left_the_graph.py",
        "<- the odd one: no gradient flows through .detach()",
        *both(
            "19_left_the_graph.py:18  <- the odd one: no gradient flows through .detach()",
            "Fix: encoder(x)   (instead of encoder(x).detach() at 19_left_the_graph.py:18)",
            "off     @dt.no_grad()",
            "19_left_the_graph.py:23  <- the odd one: nothing was recorded here",
            "Fix: dt.enable_grad()   (instead of dt.no_grad() at 19_left_the_graph.py:21)",
            "19_left_the_graph.py:28  <- the odd one: an array made of numbers, which have no gradient",
            "both have gradients: True",
        ),
    ),
    Situation(
        "20_forgotten_zero_grad.py",
        "a gradient that still holds what an earlier step has used. Call zero_grad() before backward()",
        *both(
            "20_forgotten_zero_grad.py:19: GradientWarning: step(): 2 parameters (model.weight first) had a gradient "
            "that still holds what an earlier step has used. Call zero_grad() before backward()",
            "20_forgotten_zero_grad.py:24: GradientWarning: step() changed nothing: no gradient in its 2 parameters; "
            "zero_grad() has cleared the gradients at 20_forgotten_zero_grad.py:23",
            "trained on {device}",
        ),
    ),
    Situation(
        "21_wrong_loss.py",
        "the input is the result of softmax, but cross_entropy takes scores and applies log_softmax itself",
        *both(
            "21_wrong_loss.py:17: GradientWarning: cross_entropy(): the input is the result of softmax",
            "Fix: classes(x)   (instead of dt.softmax(classes(x), dim=1) at 21_wrong_loss.py:16)",
            "21_wrong_loss.py:21: GradientWarning: Using a target size ((4,)) that is different to the input size",
            "Fix: predicted = predicted.squeeze(-1)",
            "corrected on {device}, the losses differ: True",
        ),
    ),
    Situation(
        "22_no_leaf.py",
        "can't optimize a non-leaf Tensor: parameter 0, float32 (3,), is the result of to at 22_no_leaf.py:12",
        *both(
            "22_no_leaf.py:14: GradientWarning: The .grad attribute of a Tensor that is not a leaf Tensor",
            "Fix: dt.randn(3, requires_grad=True, device=device)",
            "w.grad is None",
            "can't optimize a non-leaf Tensor: parameter 0, float32 (3,), is the result of to at 22_no_leaf.py:12",
            "22_no_leaf.py:25: GradientWarning:",
            "result of sub at 22_no_leaf.py:23",
            "w.grad is None",
            "w is a leaf on {device}: True",
        ),
    ),
    Situation(
        "23_moved_meanwhile.py",
        "it was moved between forward and backward (model.weight)",
        cpu=(
            "DTypeMismatchError: the gradient of linear is float32, but its operand is float64 now: it was cast "
            "between forward and backward (model.weight)",
            NO_GPU,
            "two steps on cpu",
        ),
        gpu=(
            "the gradient of linear is on cpu, but its operand is on cuda:0 now: it was moved between forward and "
            "backward (model.weight)",
            "moved   model.to(device, dt.float64)  23_moved_meanwhile.py:17  <- the odd one",
            "momentum_buffer[0] on cpu)",
            "two steps on cuda",
        ),
    ),
    Situation(
        "24_report_of_training.py",
        "2 parameters of Adam never had a gradient in its 5 steps: net.old_head.weight, net.old_head.bias",
        *both(
            "2 parameters of Adam never had a gradient in its 5 steps: net.old_head.weight, net.old_head.bias",
            "training: net.body.2 (Dropout) was in evaluation mode in 4 of 5 steps of Adam, since eval() at <stdin>:27",
            "training: 5 arrays made at <stdin>:17 keep 15 recorded ops",
            "afterwards: []",
        ),
    ),
]


@functools.cache
def output(situation: Situation, cuda: str) -> str:
    """What the script prints with DEVTENSOR_CUDA=cuda, in the order in which a terminal shows it."""
    env = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    env |= {"DEVTENSOR_CUDA": cuda, "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(Path(dt.__file__).parent.parent)}
    command = [sys.executable, "-W", "ignore::DeprecationWarning", situation.name]  # of fork, by newer Pythons
    done = subprocess.run(
        command, cwd=FOLDER, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120
    )
    text = done.stdout.replace(f"{FOLDER}{os.sep}", "")
    if done.returncode:
        raise AssertionError(f"{situation.name} ended with {done.returncode}:\n{text}")
    return text


PAGE = """# 24 situations

These are the mistakes and needs that devtensor was written for. Each is a short script in `examples/situations`. It
shows the mistake, what devtensor says, and the correction. The scripts run on any machine: `python FILE` uses the GPU
if there is one and the cpu otherwise, and `python -m devtensor run --simulate 2 FILE` simulates two GPUs.

| | situation | what devtensor says |
|---|---|---|
{table}

Below is what each script prints on two simulated GPUs. The tests run every script on the cpu alone, with one GPU and
with two, and compare the output. `tools/docs/situations_page.py` writes this page.

{sections}"""


def page() -> str:
    """docs/situations.md."""
    rows, sections = [], []
    for number, situation in enumerate(SITUATIONS, 1):
        link = f"../examples/situations/{situation.name}"
        rows.append(f"| {number} | [{situation.title}]({link}) | `{situation.message}` |")
        sections.append(f"## {number}. {situation.title}\n\n```text\n{output(situation, 'sim:2')}```\n")
    return PAGE.format(table="\n".join(rows), sections="\n".join(sections))
