"""The notes as they are shown, alike on every device; and that no surroundings hide the error behind another one."""

from __future__ import annotations

import copy
import linecache
import logging
import os
import pickle
import re
import subprocess
import sys
import threading
import traceback
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import source_files
from source_files import GPU
from support import DEVICES

import devtensor as dt
from devtensor import _diagnosis

GOLDEN = [
    (
        "a = dt.from_numpy(np.ones((2, 3)))\nb = a * 2\nb.to(GPU) + dt.linear(b, g)",
        [
            "  input   b  (2, 3)  float64  cpu     created by from_numpy at <golden>:1  <- the odd one\n"
            "  weight  g  (2, 3)  float32  cuda:0  created by ones at tests/helpers/source_files.py:LINE",
            "device of b: from_numpy (<golden>:1) -> mul (<golden>:2)",
            'Fix: b = b.to("cuda:0").float()',
            "See: python -m devtensor explain device-mismatch",
        ],
    ),
    (
        "w = dt.ones((3, 4)).to(GPU)\nc = Box(w=w.cpu())\ndt.linear(g, w, bias=c.w)",
        [
            "  input   g    (2, 3)  float32  cuda:0  created by ones at tests/helpers/source_files.py:LINE\n"
            '  weight  w    (3, 4)  float32  cuda:0  moved by .to("cuda:0") at <golden>:1\n'
            "  bias    c.w  (3, 4)  float32  cpu     moved by .cpu() at <golden>:2         <- the odd one",
            "See: python -m devtensor explain device-mismatch",
        ],
    ),
    (
        "w = x.to(dt.float64)\nw @ m",
        [
            "  input  w  (2, 3)  float64  cpu  cast by .to(float64) at <golden>:1            <- the odd one\n"
            "  other  m  (3, 2)  float32  cpu  created by ones at tests/helpers/source_files.py:LINE",
            "Fix: w = w.float()",
            "See: python -m devtensor explain dtype-mismatch",
        ],
    ),
    (
        "s = dt.ones(4)\nx + s",
        [
            "  input  x  (2, 3)  float32  cpu  created by ones at tests/helpers/source_files.py:LINE\n"
            "  other  s  (4,)    float32  cpu  created by ones at <golden>:1             <- the odd one",
            "sizes, aligned at the last dimension (equal, or one of them 1):\n"
            "  input        2     3\n"
            "  other              4",
            "See: python -m devtensor explain shape-mismatch",
        ],
    ),
    (
        "x @ y",
        [
            "  input  x  (2, 3)  float32  cpu  created by ones at tests/helpers/source_files.py:LINE\n"
            "  other  y  (2, 3)  float32  cpu  created by ones at tests/helpers/source_files.py:LINE  <- the odd one",
            "input.T and other.T would each fit, with different results",
            "See: python -m devtensor explain shape-mismatch",
        ],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), GOLDEN)
def test_notes(text: str, expected: list[str]) -> None:
    error = source_files.run(text, filename="<golden>")
    shown = [re.sub(r"\S*source_files\.py:\d+", "tests/helpers/source_files.py:LINE", note) for note in error.__notes__]
    shown = [re.sub(r" +(?=<- )", " ", note) for note in shown]
    assert shown == [re.sub(r" +(?=<- )", " ", note).replace("cuda:0", GPU) for note in expected]


SAME = [
    "dt.linear(A, A.T)", "A @ A", "A + dt.ones(7, device=D)", "dt.softmax(A.long(), 0)", "A.view(7)",
    "dt.cat([A, A[0]])",
    "A @ A.double()", "A.T.contiguous()[0:0] @ A.double()", "dt.ones((0, 3), device=D) @ dt.ones((4, 0), device=D)",
    "A.long().mul_(1.5)", "dt.add(A, A, out=A.double())", "dt.conv2d(A, A)",
]  # fmt: skip


@pytest.mark.parametrize("text", SAME)
def test_the_same_on_every_device(text: str) -> None:
    found = set()
    for device in DEVICES:
        space = source_files.names() | {"A": dt.ones((2, 3), device=device), "D": device}
        error = source_files.run(text, space, filename="<same>")
        assert isinstance(error, RuntimeError)
        found.add("\n".join([str(error), str(error.fix), *(re.sub("cuda:[01]|cpu", "D", re.sub(" +", " ", n)) for n in
                                                          error.__notes__)]))  # fmt: skip
    assert len(found) == 1


# ---------------------------------------------------------------- forms


def mistake() -> Any:
    return source_files.run("w = dt.ones((2, 3))\nw + g", filename="<mistake>")


def test_short_and_full() -> None:
    assert dt.get_error_detail() == "full"
    dt.set_error_detail("short")
    try:
        error = mistake()
        assert not hasattr(error, "__notes__")
        assert error.fix == f'w = w.to("{GPU}")'
    finally:
        dt.set_error_detail("full")
    with pytest.raises(ValueError, match="short"):
        dt.set_error_detail("long")


def test_explain() -> None:
    text = mistake().explain()
    assert text.startswith("DeviceMismatchError: Expected all tensors")
    assert f'Fix: w = w.to("{GPU}")' in text
    assert "never moves an array by itself" in text


@pytest.mark.parametrize("again", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy, copy.deepcopy])
def test_copies(again: Any) -> None:
    error = mistake()
    other = again(error)
    assert type(other) is type(error)
    assert str(other) == str(error)
    for name in ("op", "code", "operands", "culprit", "fix", "__notes__"):
        assert getattr(other, name) == getattr(error, name)
    assert any(other.culprit is operand for operand in other.operands)
    assert other.culprit.origin.lineno == 1


def test_traceback_and_logging_show_the_notes(caplog: pytest.LogCaptureFixture) -> None:
    error = mistake()
    assert f'Fix: w = w.to("{GPU}")' in "".join(traceback.format_exception(error))
    logging.getLogger("devtensor.test").error("failed", exc_info=error)
    assert f'Fix: w = w.to("{GPU}")' in caplog.text


# ---------------------------------------------------------------- hostile surroundings


@pytest.mark.parametrize("where", [
    "sources.locate", "expressions.read", "expressions.match", "fixes.propose", "notes.notes", "origins.origin",
    "notes.disputed", "variables.inside",
])  # fmt: skip
def test_a_failure_of_the_explanation_hides_nothing(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, name = where.split(".")

    def broken(*args: Any) -> Any:
        raise RecursionError("planted")

    monkeypatch.setattr(getattr(_diagnosis, module), name, broken)
    error = mistake()
    assert isinstance(error, dt.DeviceMismatchError)
    assert str(error).startswith("Expected all tensors to be on the same device")
    assert [operand.name for operand in error.operands] == ["input", "other"]
    assert error.culprit.name == "input"


def test_an_error_inside_of_an_explanation(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is raised plain: explanations do not nest."""
    inner: list[Any] = []

    def fails_too(*args: Any) -> Any:
        try:
            dt.ones(2) + dt.ones(3)
        except dt.ShapeMismatchError as error:
            inner.append(error)
        raise ValueError

    monkeypatch.setattr(_diagnosis.sources, "locate", fails_too)
    assert isinstance(mistake(), dt.DeviceMismatchError)
    assert [type(error) for error in inner] == [dt.ShapeMismatchError]
    assert inner[0].operands[0].expression is None


def test_at_the_limit_of_recursion() -> None:
    x, g = dt.ones(3), dt.ones(3, device=GPU)
    caught = []

    def dive() -> None:
        try:
            dive()
        except RecursionError:
            pass
        try:
            x + g
        except dt.DeviceMismatchError as error:
            caught.append(str(error))
        except RecursionError:
            pass

    dive()
    assert caught
    assert all(text.startswith("Expected all tensors") for text in caught)


def test_a_broken_linecache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linecache, "getlines", lambda *args: 1 / 0)
    assert isinstance(mistake(), dt.DeviceMismatchError)


def test_threads() -> None:
    errors: list[Any] = []

    def work(i: int) -> None:
        for k in range(20):
            errors.append(source_files.run(f"w{i} = dt.ones((2, 3))\nw{i} + g\n" + f"# {k}"))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) == 80
    assert {error.fix for error in errors} == {f'w{i} = w{i}.to("{GPU}")' for i in range(4)}


def python(*args: str, cwd: Path, flags: tuple[str, ...] = ()) -> str:
    path = os.pathsep.join([str(Path(dt.__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
    env = {**os.environ, "DEVTENSOR_CUDA": "sim:1", "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, *flags, *args], cwd=cwd, env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1, done
    return done.stderr


SCRIPT = """import devtensor as dt
def f(a, b):
    return a + b
weights = dt.ones(3)
f(weights, dt.ones(3, device="cuda:0"))
"""


@pytest.mark.skipif(os.environ.get("DEVTENSOR_TEST_DEVICES") == "real", reason="starts a simulated device")
def test_programs(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    for flags in ((), ("-OO",), ("-X", "no_debug_ranges")):
        shown = python("script.py", cwd=tmp_path, flags=flags)
        assert "DeviceMismatchError: Expected all tensors" in shown
        assert "created by ones at script.py:4" in shown
        assert ('Fix: a = a.to("cuda:0")' in shown) == ("no_debug_ranges" not in flags)
        assert "During handling" not in shown
    shown = python("-c", SCRIPT, cwd=tmp_path)
    assert "DeviceMismatchError: Expected all tensors" in shown
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as packed:
        packed.writestr("inside.py", SCRIPT)
    shown = python("-c", "import sys; sys.path.insert(0, 'packed.zip'); import inside", cwd=tmp_path)
    assert 'Fix: a = a.to("cuda:0")' in shown
    (tmp_path / "gone.py").write_text("import os; os.remove(__file__)\n" + SCRIPT)
    shown = python("gone.py", cwd=tmp_path)
    assert "DeviceMismatchError: Expected all tensors" in shown
    assert "Fix:" not in shown


def test_bounded_time() -> None:
    """A guard against parsing the whole of a huge file again and again; the limit is far from what it takes."""
    text = "def f{0}(a):\n    return [a, {0}]\n\n"
    long = "".join(text.format(i) for i in range(20000)) + "x + g\n"
    code = compile(long, "<huge>", "exec")
    linecache.cache["<huge>"] = (len(long), None, long.splitlines(keepends=True), "<huge>")
    parsed: list[int] = []
    real = _diagnosis.sources._parse

    def counted(filename: str, lines: list[str], first: int, last: int) -> Any:
        parsed.append(last - first + 1)
        return real(filename, lines, first, last)

    _diagnosis.sources._parse = counted
    try:
        exec(code, source_files.names())
    except dt.DeviceMismatchError as error:
        assert error.fix == f'x = x.to("{GPU}")'
    finally:
        _diagnosis.sources._parse = real
        del linecache.cache["<huge>"]
    assert sum(parsed) < 100


@pytest.mark.parametrize("text", [
    "list(map(lambda a: a + g, [x]))", "sorted([x, y], key=lambda a: (a + g).sum().item())",
    "max([x], key=lambda a: (a + g).sum().item())", "import functools\nfunctools.reduce(lambda b, a: a + g, [y, x])",
])  # fmt: skip
def test_called_from_c(text: str) -> None:
    error = source_files.run(text)
    assert error.culprit.expression == "a"
    assert error.fix == f'a.to("{GPU}")'


HOSTILE = """
class Hostile:
    def __init__(self):
        self.w = x
    def __repr__(self):
        raise SystemExit
    __str__ = __eq__ = __hash__ = __bool__ = __len__ = __repr__
    def __getattr__(self, name):
        raise KeyboardInterrupt
    @property
    def v(self):
        return self.w
held = Hostile()
other = held
held.{0} + g
"""


@pytest.mark.parametrize("name", ["w", "v"])
def test_objects_that_raise_whatever_is_asked(name: str) -> None:
    error = source_files.run(HOSTILE.format(name))
    assert isinstance(error, dt.DeviceMismatchError)
    assert error.culprit.expression == f"held.{name}"
    assert error.__context__ is None
    assert error.fix == (f'held.w = held.w.to("{GPU}")' if name == "w" else f'held.v.to("{GPU}")')


def test_a_file_that_changed_since_it_was_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The names are those of the code, and not of a text that is not its own; no fix is shown."""
    path = tmp_path / "changes_later.py"
    path.write_text("def f(a, b):\n    return a + b\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    function = __import__("changes_later").f
    path.write_text("def f(c, d):\n    return c * d\n")
    with pytest.raises(dt.DeviceMismatchError) as caught:
        function(dt.ones(3), dt.ones(3, device=GPU))
    assert [operand.expression for operand in caught.value.operands] == ["a", "b"]
    assert caught.value.fix is None
    assert caught.value.culprit.origin.filename == __file__
    del sys.modules["changes_later"]


# ---------------------------------------------------------------- devices that are not there


def test_a_device_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    with pytest.raises(dt.DeviceNotAvailableError) as caught:
        dt.zeros(3, device="cuda:7")
    assert str(caught.value).startswith("Device cuda:7 does not exist")
    shown = "\n".join(caught.value.__notes__)
    assert "visible: cpu, cuda:0" in shown
    assert "CUDA_VISIBLE_DEVICES='0,1'" in shown
    assert "devtensor explain device-not-available" in shown


def test_no_cuda_at_all(tmp_path: Path) -> None:
    env = {**os.environ, "DEVTENSOR_CUDA": "off", "PYTHONPATH": str(Path(dt.__file__).parent.parent)}
    code = "import devtensor as dt; dt.zeros(3, device='cuda')"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert "to use CUDA: unset DEVTENSOR_CUDA" in done.stderr
    assert "DEVTENSOR_CUDA='off'" in done.stderr


def test_numpy_side_is_the_culprit() -> None:
    a, x = np.ones(3), dt.ones(3)
    for fails in (lambda: a + x, lambda: x + a):
        with pytest.raises(dt.HostAccessError) as caught:
            fails()
        assert caught.value.culprit.expression == "a"


def test_numpy_in_an_index() -> None:
    assert [o.expression for o in source_files.run("g[0, np.array([1])]").operands] == ["g", None]
    assert [o.expression for o in source_files.run("i = np.array([1])\ng[0, i]").operands] == ["g", "i"]
    assert [o.expression for o in source_files.run("g[np.array([1])]").operands] == ["g", "np.array([1])"]


def test_no_warning_from_the_source(recwarn: pytest.WarningsRecorder) -> None:
    code = "pattern = '\\d'\nx + g"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = compile(code, "<warns>", "exec")
    linecache.cache["<warns>"] = (len(code), None, code.splitlines(keepends=True), "<warns>")
    with pytest.raises(dt.DeviceMismatchError) as caught:
        exec(compiled, source_files.names())
    del linecache.cache["<warns>"]
    assert caught.value.fix == f'x = x.to("{GPU}")'
    assert len(recwarn) == 0


# ---------------------------------------------------------------- memory that is full


def test_what_fills_a_device() -> None:
    """By line, the largest first: in a list, in an attribute, in a variable; a view adds nothing."""

    def fill() -> None:
        held = [dt.zeros(1024, 1024, device=GPU) for _ in range(3)]
        box = source_files.Box(w=dt.ones(2048, 2048, device=GPU))
        mine = dt.full((1 << 20,), 2.0, device=GPU)
        views = (mine[10:], held[0].expand(8, 1024, 1024), box.w.T)
        assert views
        dt.zeros(1 << 44, device=GPU)

    with pytest.raises(dt.OutOfMemoryError) as caught:
        fill()
    (note,) = caught.value.__notes__
    head, *lines = note.splitlines()
    first, second, third = (line for line in lines if "test_diagnosis_notes.py" in line)  # others may live on
    line = fill.__code__.co_firstlineno
    assert head == f"live arrays on {GPU}, by the line that made them:"
    assert re.search(rf"16\.0 MiB +1 x +ones at .*test_diagnosis_notes\.py:{line + 2}$", first)
    assert re.search(rf"12\.0 MiB +3 x +zeros at .*test_diagnosis_notes\.py:{line + 1}$", second)
    assert re.search(rf"4\.0 MiB +1 x +full at .*test_diagnosis_notes\.py:{line + 3}$", third)
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.requested, error.__notes__) == (caught.value.requested, [note])


def test_a_moved_parameter_has_the_same_way_on_every_device(device: str) -> None:
    model = dt.nn.Linear(2, 1, bias=False, dtype="float64").to(device)
    with pytest.raises(dt.DTypeMismatchError) as caught:
        model(dt.ones(3, 2, device=device))
    (way,) = [line for line in "\n".join(caught.value.__notes__).split("\n") if line.startswith("dtype of")]
    assert way.count("-> Parameter (") == 1
