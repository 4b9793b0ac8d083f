"""Errors of PyTorch itself with our notes: counts over all tables of mistakes, correct programs, and where it is seen.

Needs PyTorch; test_explain_torch_hooks runs without it.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import subprocess
import sys
import threading
import traceback
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch_mistakes
import training_mistakes
from correct_programs import CORRECT
from support import python_path

import devtensor as dt

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.mark.parametrize("origins", [False, True])
def test_mistakes(origins: bool, tmp_path: Path) -> None:
    found = torch_mistakes.faulty(origins, tmp_path)
    assert len(found) > 50
    for one, script in found:
        assert (type(one.error), str(one.error)) == (type(one.plain), str(one.plain))
        assert one.fixed in (None, ""), (one.name, one.fixed, one.said)
        if one.said:
            assert torch_mistakes.names(one.said, script.culprit), (one.name, one.said)
        if origins:
            line = next(n for n, text in enumerate(one.text.splitlines(), 1) if text.endswith("# origin"))
            assert f"program.py:{line}" in one.said, (one.name, one.said)
    # from Python 3.12 on a comprehension that fails has no frame to look into when its error is shown
    untold = 0 if origins else sys.version_info >= (3, 12)
    assert sum(bool(one.said) for one, _ in found) >= len(found) - (0 if origins else 2) - untold
    assert sum(one.fixed == "" for one, _ in found) >= 49 - untold


def test_mistakes_of_gradients(tmp_path: Path) -> None:
    found = torch_mistakes.gradients(True, tmp_path)
    assert len(found) > 30
    for one, mistake in found:
        assert (type(one.error), str(one.error)) == (type(one.plain), str(one.plain))
        assert one.fixed in (None, ""), (one.name, one.fixed, one.said)
        assert one.said or not mistake.code.startswith("grad-"), one.name
        for role in torch_mistakes.ROLES:
            for number in torch_mistakes.marked(one.text, role):
                assert re.search(rf"^  {role} .*program\.py:{number}\b", one.said, re.MULTILINE), (one.name, one.said)
    assert sum(one.fixed == "" for one, _ in found) >= 26


def test_mistakes_of_gradients_without_origins(tmp_path: Path) -> None:
    for one, mistake in torch_mistakes.gradients(False, tmp_path):
        assert one.fixed in (None, ""), (one.name, one.fixed, one.said)
        for role, number in re.findall(r"^  (\w+) .*program\.py:(\d+)", one.said, re.MULTILINE):
            wanted = torch_mistakes.marked(mistake.text, role)
            assert role == "needed" or int(number) in wanted, (one.name, one.said)


# ---------------------------------------------------------------- correct programs


def correct_programs() -> list[tuple[str, str]]:
    """Those of the tables that PyTorch runs too."""
    found = [(name, torch_mistakes.converted(text, "cpu")) for name, text in CORRECT.items()]
    for name, text in training_mistakes.CORRECT.items():
        found.append(
            (name, torch_mistakes.converted(training_mistakes.START + text, "cpu").replace("devtensor", "torch"))
        )
    return found


def results(text: str, path: Path, origins: bool | None) -> tuple[str, dict[str, Any]] | None:
    """What a program prints and the tensors that it leaves; origins=None: without explain_torch."""
    space: dict[str, Any] = {"__name__": "__main__", "dev": "cpu", "dt": torch}
    torch.manual_seed(0)
    out = io.StringIO()
    path.write_text(text)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), contextlib.ExitStack() as stack:
            if origins is not None:
                stack.enter_context(dt.explain_torch(origins=origins))
            exec(compile(text, str(path), "exec"), space)
    except Exception:
        return None
    finally:
        torch.set_default_device(None)  # which leaves a mode on, and under any mode l1_loss drops its weight
    kept = {name: value for name, value in space.items() if isinstance(value, torch.Tensor)}
    for name, value in space.items():
        if isinstance(value, torch.nn.Module):
            kept |= {f"{name}.{key}": one for key, one in value.state_dict().items()}
    return out.getvalue(), kept | {"the generator": torch.get_rng_state()}


@pytest.mark.filterwarnings("ignore")
def test_correct_programs_are_silent_and_bit_identical(tmp_path: Path) -> None:
    count = 0
    for name, text in correct_programs():
        plain = results(text, tmp_path / "program.py", None)
        if plain is None:  # what PyTorch lacks
            continue
        count += 1
        for origins in (False, True):
            ours = results(text, tmp_path / "program.py", origins)
            assert ours is not None and ours[0] == plain[0], name
            assert ours[1].keys() == plain[1].keys()
            for key, value in plain[1].items():
                assert torch.equal(value, ours[1][key]) or value.isnan().any(), (name, key)
    assert count >= 25


# ---------------------------------------------------------------- never a wrong guess


def caught(function: Any, origins: bool = False) -> BaseException:
    try:
        with dt.explain_torch(origins=origins):
            function()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def notes(function: Any, origins: bool = False) -> list[str]:
    return list(getattr(caught(function, origins), "__notes__", ()))


def test_what_the_user_raises_is_left_alone() -> None:
    def function() -> None:
        x, y = torch.ones(2), torch.ones(3)
        raise RuntimeError(f"The size of tensor a ({len(x)}) must match the size of tensor b ({len(y)}) at "
                           "non-singleton dimension 0")  # fmt: skip

    assert notes(function) == []


def test_variables_that_changed_meanwhile_are_not_told() -> None:
    with dt.explain_torch():
        x, w = torch.ones(2, 3), torch.ones(4, 5)
        try:
            x @ w
        except RuntimeError as error:
            x, w = torch.ones(2, 3), torch.ones(3, 4)
            shown = traceback.format_exception(error)
            assert not hasattr(error, "__notes__"), shown


def test_what_goes_wrong_in_an_explanation_hides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from devtensor._torch_errors import explaining

    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(explaining.families, "families", fail)
    error = caught(lambda: torch.ones(2, 3) @ torch.ones(2, 3))
    assert type(error) is RuntimeError and "cannot be multiplied" in str(error)
    assert not hasattr(error, "__notes__") and dt.explanation(error) is None


def test_nothing_of_the_users_is_run() -> None:
    class Odd(torch.nn.Module):
        @property
        def secret(self) -> Any:
            raise AssertionError("was run")

        def __repr__(self) -> str:
            raise AssertionError("was run")

        def forward(self, x: Any) -> Any:
            return x @ torch.ones(7, 7)

    odd = Odd()
    assert any("torch.ones(7, 7)" in note for note in notes(lambda: odd(torch.ones(2, 3))))


def test_a_mode_of_the_programs_sees_nothing() -> None:
    from torch.overrides import TorchFunctionMode

    seen = []

    class Mode(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(getattr(func, "__name__", ""))
            return func(*args, **(kwargs or {}))

    x, w = torch.ones(2, 3), torch.ones(2, 3)
    with Mode():
        notes(lambda: x @ w)
    assert seen in (["matmul"], ["__matmul__"])
    with torch.device("meta"):  # a mode of PyTorch's own
        assert notes(lambda: x @ w)


def test_no_random_number_is_drawn() -> None:
    x = torch.ones(2, 3)
    torch.manual_seed(3)
    error = caught(lambda: x @ torch.rand(7, 7))
    after = torch.get_rng_state()
    torch.manual_seed(3)
    torch.rand(7, 7)
    assert torch.equal(after, torch.get_rng_state())
    found = dt.explanation(error)
    assert found is not None and found.operands[1].expression == "torch.rand(7, 7)"
    assert found.operands[1].shape == (7, 7)


def test_a_fix_in_a_loop_may_run_again() -> None:
    def function() -> None:
        x, w = torch.ones(2, 3), torch.ones(4, 3)
        for _ in range(2):
            x @ w

    found = dt.explanation(caught(function))
    assert found is not None and (found.fix, found.fix_of) == ("w.T", "w")


def test_states_of_recurrent_layers() -> None:
    lstm = torch.nn.LSTM(5, 4)

    def sizes() -> None:
        x, hidden, cell = torch.ones(3, 2, 5), torch.zeros(1, 4, 2), torch.zeros(1, 2, 4)
        lstm(x, (hidden, cell))

    def dtypes() -> None:
        x, hidden, cell = torch.ones(3, 2, 5).double(), torch.zeros(1, 2, 4), torch.zeros(1, 2, 4)
        lstm(x, (hidden, cell))

    for function, odd in ((sizes, "hidden"), (dtypes, "x")):
        found = dt.explanation(caught(function))
        assert found is not None and found.culprit is not None
        assert [operand.expression for operand in found.operands] == ["x", "hidden", "cell"]
        assert found.culprit.expression == odd


@pytest.mark.parametrize("method", ["scatter", "scatter_add"])
def test_an_index_is_not_the_odd_one(method: str) -> None:
    def function() -> None:
        scores, places, values = torch.zeros(2, 3), torch.zeros(2, 3, dtype=torch.int64), torch.ones(2, 3).double()
        scores.scatter(1, places, values) if method == "scatter" else scores.scatter_add(1, places, values)

    found = dt.explanation(caught(function))
    assert found is not None and found.culprit is not None and found.culprit.expression == "values"
    assert any(
        note.startswith("  src    values  (2, 3)  float64  cpu  <- the odd one") for note in found.notes[0].splitlines()
    )


def test_an_error_is_explained_once() -> None:
    def function() -> None:
        x, w = torch.ones(2, 3), torch.ones(3).double()
        x @ w

    error = caught(function)
    once = list(error.__notes__)
    with dt.explain_torch():
        traceback.format_exception(error)
    found = dt.explanation(error)
    assert error.__notes__ == once and found is not None and found.notes == once
    assert found.culprit is not None and found.culprit.expression == "w" and found.fix == "w = w.float()"
    told = found.to_dict()
    assert told["operands"][1] == {
        "name": "other", "expression": "w", "shape": [3], "dtype": "float64", "device": "cpu", "origin": None
    }  # fmt: skip


def test_short_errors_have_no_notes() -> None:
    dt.set_error_detail("short")
    try:
        error = caught(lambda: torch.ones(2, 3) @ torch.ones(2, 3))
        assert not hasattr(error, "__notes__") and dt.explanation(error) is not None
    finally:
        dt.set_error_detail("full")


# ---------------------------------------------------------------- origins


def test_no_tensor_is_kept_alive() -> None:
    from devtensor._torch_errors import recorder

    with dt.explain_torch(origins=True):
        x = torch.ones(3)
        y = (x * 2).sum()
        before = recorder.size()
        for _ in range(300):
            y = y * 0.5 + x.sum()
        assert recorder.size() <= before + 4
        steps = recorder.steps(y)
        assert len(steps) < 40 and steps[-1].step.action == "ones"
        gone = weakref.ref(x)
        del x
        assert gone() is None


def test_an_explained_error_keeps_no_frame() -> None:
    gone: list[weakref.ref[torch.Tensor]] = []

    def fail() -> None:
        x, w = torch.ones(3, 4), torch.ones(3, 5)
        gone.append(weakref.ref(x))
        x @ w

    with dt.explain_torch():
        try:
            fail()
        except RuntimeError:
            assert "Fix: x = x.T" in traceback.format_exc()
    assert gone[0]() is None


def test_the_traceback_does_not_show_the_recorder() -> None:
    error = caught(lambda: torch.ones(2, 3) @ torch.ones(2, 3), origins=True)
    assert "recorder" not in "".join(traceback.format_exception(error))


def test_from_numpy_is_put_back() -> None:
    before = torch.from_numpy
    with dt.explain_torch(origins=True):
        assert torch.from_numpy is not before
    assert torch.from_numpy is before


# ---------------------------------------------------------------- where it is seen


def test_logging_and_threads(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", lambda given: shown.append(given.exc_value))
    before = threading.excepthook

    def work() -> None:
        batch, weight = torch.ones(2, 3), torch.ones(3, 2).double()
        batch @ weight

    with dt.explain_torch():
        try:
            work()
        except RuntimeError:
            logging.getLogger("training").exception("failed")
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert threading.excepthook is not before
    assert "Fix: weight = weight.float()" in caplog.text
    assert shown[0].__notes__[-1] == "Fix: weight = weight.float()"
    assert threading.excepthook is before


def test_a_decorator() -> None:
    @dt.explain_torch()
    def train(x: Any) -> Any:
        return x @ torch.ones(2, 2)

    assert train.__name__ == "train"
    with pytest.raises(RuntimeError) as caught_:
        train(torch.ones(2, 3))
    assert any("train" in str(entry) for entry in caught_.traceback)
    assert any(note.startswith("  input  x") for note in caught_.value.__notes__)


PROGRAM = """
import sys, torch
from torch import nn

class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 2
    def __getitem__(self, i):
        row, scale = torch.ones(2, 3), torch.ones(3).double()
        return row @ scale

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU())
        self.head = nn.Linear(16, 10)
    def forward(self, images):
        return self.head(self.body(images))

def main():
    print("begins")
    kind = sys.argv[1]
    if kind == "exit":
        sys.exit(7)
    if kind == "worker":
        list(torch.utils.data.DataLoader(Rows(), num_workers=1))
    if kind == "compiled":
        f = torch.compile(lambda x: x @ torch.ones(7, 7), backend="eager")
        f(torch.ones(2, 3))
    Net()(torch.rand(8, 1, 8, 8))

if __name__ == "__main__":
    main()
"""
SAYS = {
    "plain": "self.head takes 16 features in the last dimension; self.body(images) has 32",
    "worker": "Fix: scale = scale.float()",
    "compiled": "This came out of torch.compile",
}


@pytest.mark.parametrize("kind", [*SAYS, "exit"])
def test_a_script_as_it_is(kind: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    env = {**os.environ, "PYTHONPATH": python_path(), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "devtensor", "run", "--torch", "train.py", kind],
        cwd=tmp_path, env=env, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.stdout == "begins\n"
    assert done.returncode == (7 if kind == "exit" else 1)
    assert SAYS.get(kind, "") in done.stderr
    assert "_torch_errors" not in done.stderr and "runpy" not in done.stderr


def shown(folder: Path, *command: str) -> str:
    env = {**os.environ, "PYTHONPATH": python_path(), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "IPYTHONDIR": str(folder)}
    env.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env=env, capture_output=True, text=True, timeout=200
    )  # fmt: skip
    return done.stdout + done.stderr


def test_ipython(tmp_path: Path) -> None:
    """IPython comes with the extra "dev"."""
    pytest.importorskip("IPython", reason="IPython is not installed")
    (tmp_path / "cells.py").write_text(
        "from IPython.testing.globalipapp import start_ipython\n"
        "shell = start_ipython()\n"
        "shell.run_line_magic('load_ext', 'devtensor')\n"
        "shell.run_cell('import torch\\nx, w = torch.ones(2, 3), torch.ones(3, 4).double()')\n"
        "shell.run_cell('y = x @ w')\n"
        "shell.run_cell('try:\\n    y = x @ w\\nfinally:\\n    w = torch.ones(3, 4).half()')\n"
    )
    said = shown(tmp_path, "cells.py")
    assert said.count("Fix: w = w.float()") == 1 and said.count("RuntimeError") >= 2, said


def test_pytest(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import torch\n\ndef test_it():\n    x, w = torch.ones(2, 3), torch.ones(3, 4).double()\n    x @ w\n"
    )
    command = ["-m", "pytest", "-q", "-p", "devtensor_pytest", "--rootdir", str(tmp_path), "test_it.py"]
    assert "Fix: w = w.float()" in shown(tmp_path, *command, "--explain-torch")
    assert "Fix:" not in shown(tmp_path, *command)
