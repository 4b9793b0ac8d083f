"""The 42 mistakes of training programs, and what shows the answer to each.

A proof is the name of a program in gradient_mistakes.py or training_mistakes.py, "report: NAME" of a habit in
test_training_report.py, or FILE::TEST.
"""

from __future__ import annotations

from typing import NamedTuple


class Answer(NamedTuple):
    mistake: str
    answer: str
    proofs: tuple[str, ...]


ERROR, WARNING, REPORT = "error", "warning", "report of `run`"
MISTAKES = [
    Answer("labels on another device", ERROR, ("test_error_operands.py::test_devices",)),
    Answer(
        "an optimizer made before the model moves",
        "works; an error once there is state",
        ("test_optim_errors.py::test_a_model_may_move_before_the_first_step",),
    ),
    Answer(
        "`w.cuda()` after `requires_grad=True`",
        f"{WARNING}; {ERROR} in an optimizer",
        ("a leaf that was moved", "test_optim_errors.py::test_what_cannot_be_is_refused"),
    ),
    Answer(
        "`.grad` of another device", ERROR, ("a gradient of another device", "a gradient of another dtype set by hand")
    ),
    Answer(
        "the model moved between forward and backward",
        ERROR,
        ("a model that moves between forward and backward", "a model that is cast between forward and backward"),
    ),
    Answer("float64 labels from NumPy", ERROR, ("float64 targets from NumPy",)),
    Answer("labels as floats", ERROR, ("classes as floats",)),
    Answer("one-hot labels of integers", ERROR, ("classes as rows of zeros and a one",)),
    Answer("labels in a column", ERROR, ("classes in a column",)),
    Answer("(N, 1) against (N,) in a loss", WARNING, ("a column against a row", "a row against a column, by a Module")),
    Answer("a label out of range", ERROR, ("test_nn_functional.py::test_a_class_out_of_range",)),
    Answer(
        "softmax before `cross_entropy`",
        WARNING,
        ("softmax before cross_entropy", "a Softmax layer before CrossEntropyLoss", "softmax before nll_loss"),
    ),
    Answer("scores in `binary_cross_entropy`", ERROR, ("scores in the place of probabilities",)),
    Answer(
        "`.detach()` or `.data` on the way",
        f"{ERROR}; {REPORT}",
        ("detach on the way to the loss", ".data on the way to the loss", "report: parameters before a cut"),
    ),
    Answer("`.item()`, `float()` on the way", ERROR, ("losses as numbers", "a loss as a number")),
    Answer(
        "argmax, a comparison, `.long()`",
        ERROR,
        ("argmax before the loss", "a comparison before the loss", "rounding to whole numbers before the loss"),
    ),
    Answer(
        "training inside `no_grad`",
        ERROR,
        ("a loss within no_grad", "training within inference_mode", "a forward pass in a function without recording"),
    ),
    Answer("all parameters frozen", ERROR, ("all parameters frozen",)),
    Answer(
        "a kept activation written to",
        ERROR,
        (
            "a write to a result that exp keeps",
            "a write to an operand that mul keeps",
            "an element of a kept result",
            "an activation in place behind one that keeps its result",
        ),
    ),
    Answer("`step()` between forward and backward", ERROR, ("a step of the optimizer between forward and backward",)),
    Answer("`w -= ...` without `no_grad`", ERROR, ("an update by hand", "a part of a leaf set by hand")),
    Answer("`w = w - ...`", WARNING, ("an update that makes a new array",)),
    Answer(
        "backward twice; a state carried on",
        ERROR,
        ("backward twice", "two losses of one forward pass", "a hidden state that is carried on"),
    ),
    Answer("a loss for each row", ERROR, ("a loss for each row",)),
    Answer("`zero_grad` forgotten", WARNING, ("no zero_grad", "zero_grad of another optimizer")),
    Answer("`zero_grad` between backward and step", WARNING, ("zero_grad between backward and step",)),
    Answer(
        "`step()` forgotten, or before backward",
        f"{WARNING}; {REPORT}",
        ("step before the first backward", "report: step forgotten"),
    ),
    Answer("parameters in a plain list or dict", WARNING, ("layers in a plain list", "a parameter in a plain dict")),
    Answer("layers made in `forward`", REPORT, ("report: layers made in forward",)),
    Answer("another model's optimizer", WARNING, ("the optimizer of another model",)),
    Answer("unused parameters", REPORT, ("report: parameters that nothing uses",)),
    Answer("`eval()` left on", REPORT, ("report: evaluation mode left on",)),
    Answer("validation without `eval()`", REPORT, ("report: validation without eval",)),
    Answer(
        "validation without `no_grad`",
        f"{REPORT}; notes of an OutOfMemoryError",
        (
            "report: validation without no_grad",
            "test_training_report.py::test_a_device_that_is_full_names_the_lines_of_graphs",
        ),
    ),
    Answer("`total += loss`", WARNING, ("losses that are added up", "losses that are added up anew")),
    Answer(
        "`scheduler.step()` before `optimizer.step()`",
        "warning, PyTorch's",
        ("test_lr_scheduler.py::test_a_step_too_early_warns",),
    ),
    Answer(
        "clipping at the wrong moment",
        WARNING,
        ("clipping before backward", "clipping after step", "test_nn_utils.py::test_a_used_up_generator_warns"),
    ),
    Answer("a learning rate as text", ERROR, ("test_optim_errors.py::test_what_cannot_be_is_refused",)),
    Answer("a batch of one in BatchNorm", ERROR, ("test_nn_errors.py::test_shapes_and_parameters",)),
    Answer("a custom Function with wrong gradients", ERROR, ("test_functions.py::test_wrong_answers",)),
    Answer(
        "a loss that is NaN",
        f"{ERROR} under `detect_anomaly`; {REPORT}",
        ("report: a loss that is NaN", "test_checkpoint.py::test_nan_is_found_where_it_comes_from"),
    ),
    Answer("a write by NumPy to shared memory", "not seen", ()),
]


def table() -> list[str]:
    rows = [f"| {n} | {one.mistake} | {one.answer} | {len(one.proofs)} |" for n, one in enumerate(MISTAKES, 1)]
    return ["| | mistake | answer | programs and tests |", "|---|---|---|---|", *rows]
