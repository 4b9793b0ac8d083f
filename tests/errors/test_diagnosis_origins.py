"""Where arrays come from: the step that decided, the chain of steps, and that nothing is kept alive by it."""

from __future__ import annotations

import gc
import itertools
import os
import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import source_files
from source_files import GPU

import devtensor as dt
from devtensor._diagnosis import origins

# (name, source; its last line fails, index of the odd operand's decision: (action, line), chain of actions)
ROWS: list[tuple[str, str, tuple[str, int], str]] = [
    ("created", "a = dt.zeros(3)\nb = dt.zeros(3, device=GPU)\na + b", ("zeros", 1), "zeros"),
    ("from_numpy", "a = dt.from_numpy(np.zeros(3))\na + dt.ones(3, device=GPU)", ("from_numpy", 1), "from_numpy"),
    ("composed", "a = dt.logspace(0, 1, 3)\na + dt.ones(3, device=GPU)", ("logspace", 1), "logspace"),
    ("op", "a = dt.zeros(3)\nc = a + 1\nc + dt.ones(3, device=GPU)", ("zeros", 1), "zeros add"),
    ("view", "a = dt.zeros((2, 3))\nc = a.T\nc + dt.ones((3, 2), device=GPU)", ("zeros", 1), "zeros T"),
    ("part", "a = dt.zeros((2, 3))\nc = a[0]\nc + dt.ones(3, device=GPU)", ("zeros", 1), "zeros getitem"),
    ("moved", "a = dt.zeros(3, device=GPU)\nc = a.cpu()\nd = c * 2\nd + dt.ones(3, device=GPU)", ("cpu", 2), "cpu mul"),
    ("moved by to", "a = dt.zeros(3, device=GPU)\nc = a.to('cpu')\nc + a", ("to", 2), "to"),
    ("cast later", "a = dt.zeros(3)\nc = a.double()\nc + dt.ones(3, device=GPU)", ("zeros", 1), "zeros double"),
    ("like", "a = dt.zeros(3)\nc = dt.ones_like(a)\nc + dt.ones(3, device=GPU)", ("zeros", 1), "zeros ones_like"),
    ("method chain", "a = (dt.zeros(3)\n  .relu()\n  .exp())\na + dt.ones(3, device=GPU)", ("zeros", 1),
     "zeros relu exp"),
    ("side by side", "a = dt.zeros((2, 3))\nb = a.repeat(2, 1, 1)\nb + dt.ones(3, device=GPU)", ("zeros", 1),
     "zeros repeat"),
    ("several arrays", "a = dt.zeros((2, 2))\nb = dt.ones((2, 2))\nc = dt.cat([a, b])\nc + dt.ones(1, device=GPU)",
     ("zeros", 1), "zeros cat"),
    ("in place", "a = dt.zeros(3)\na += 1\na + dt.ones(3, device=GPU)", ("zeros", 1), "zeros"),
    ("dtype: from_numpy", "a = dt.from_numpy(np.ones((2, 3)))\nb = a * 2\nb @ m", ("from_numpy", 1), "from_numpy mul"),
    ("dtype: cast", "a = dt.ones((2, 3))\nb = a.double()\nc = b + 1\nc @ m", ("double", 2), "double add"),
    ("dtype: moved later", "a = dt.ones((2, 3), dtype='float64')\nb = a.to(GPU)\nb @ n", ("ones", 1), "to"),
    ("dtype: the operand that decided", "a = dt.ones((2, 3))\nb = dt.from_numpy(np.ones(3))\nc = a + b\nc @ m",
     ("from_numpy", 2), "from_numpy add"),
    ("dtype: both at once", "a = dt.ones((2, 3))\nb = a.to(GPU, dt.float64)\nb @ n", ("to", 2), "to"),
    ("dtype: not supported", "i = dt.arange(6)\nj = i.reshape(2, 3)\ndt.linear(j, j)", ("arange", 1), "arange reshape"),
    ("shape", "a = dt.ones((2, 3))\nb = a.T\nb @ b", ("T", 2), "T"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "decision", "chain"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_decision(text: str, decision: tuple[str, int], chain: str) -> None:
    error = source_files.run(text, filename="<origins>")
    assert isinstance(error, RuntimeError), error
    origin = error.culprit.origin
    assert (origin.action, origin.lineno) == decision
    assert origin.filename == "<origins>"
    steps = [step.action for step in reversed(error.culprit.history)]
    assert " ".join(action for action, _ in itertools.groupby(steps)).endswith(chain)
    if " " in chain:
        shown = next(note for note in error.__notes__ if " of " in note and " -> " in note)
        assert [part.split(" (")[0] for part in shown.split(": ", 1)[1].split(" -> ")] == chain.split()


def test_the_origin_of_an_array_is_its_own_op() -> None:
    a = dt.zeros(3)
    b = a + 1
    line = sys._getframe().f_lineno
    assert (b.origin.action, b.origin.lineno) == ("add", line - 1)
    assert (a.origin.action, a.origin.lineno) == ("zeros", line - 2)
    assert a.origin.filename == __file__


F = dt.nn.functional
CALLED: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "a function made of ops": ("layer_norm", lambda x: F.layer_norm(x, 4)),
    "one that ends with a cast": ("var", lambda x: dt.var(x.half())),
    "a method": ("std", lambda x: x.std()),
    "a function that autocast wraps": ("mse_loss", lambda x: F.mse_loss(x, x)),
    "an op": ("add", lambda x: x + 1),
    "an op with the array on the right": ("pow", lambda x: 2**x),
    "a layer that is an op": ("linear", lambda x: dt.nn.Linear(4, 2)(x)),
    "a layer made of ops": ("layer_norm", lambda x: dt.nn.LayerNorm(4)(x)),
    "layers in a layer": ("gelu", lambda x: dt.nn.Sequential(dt.nn.LayerNorm(4), dt.nn.GELU())(x)),
    "a layer whose helpers nobody knows": ("stack", lambda x: dt.nn.RNN(4, 2)(x.reshape(2, 2, 4))[0]),
    "a module moved by its method": ("double", lambda x: dt.nn.Linear(4, 2).double().weight),
    "a parameter": ("Parameter", lambda x: dt.nn.Linear(4, 2).weight),
    "batches": ("stack", lambda x: next(iter(dt.utils.data.DataLoader(x, batch_size=2)))),
    "a gradient": ("backward", lambda x: gradient(x)),
    "inside a block of autocast": ("layer_norm", lambda x: in_autocast(x)),
    "library": ("solve", lambda x: dt.linalg.solve(dt.eye(4), x)),
    "a norm": ("norm", lambda x: dt.norm(x)),
}


def gradient(x: Any) -> Any:
    y = x.detach().requires_grad_()
    (y * y).sum().backward()
    return y.grad


def in_autocast(x: Any) -> Any:
    with dt.autocast("cpu"):
        return F.layer_norm(x, 4)


@pytest.mark.parametrize(("name", "make"), CALLED.values(), ids=CALLED)
def test_a_step_has_the_name_of_what_the_user_called(name: str, make: Callable[[Any], Any]) -> None:
    assert make(dt.rand(4, 4)).origin.action == name


def test_arrays_made_by_devtensor_belong_to_the_caller() -> None:
    a = dt.testing.make_array(3)
    assert a.origin.filename == __file__
    assert a.origin.lineno == sys._getframe().f_lineno - 2


def test_a_class_of_devtensor_belongs_to_the_caller_each_time() -> None:
    """From Python 3.13 on, a call of a class that is no longer the first has a frame of its own below __init__."""

    def layer() -> dt.nn.Linear:
        return dt.nn.Linear(2, 2)

    found = {(origin.filename, origin.lineno) for origin in (layer().weight.origin for _ in range(20)) if origin}
    assert found == {(__file__, layer.__code__.co_firstlineno + 1)}


def history(x: dt.DeviceArray) -> Any:
    with pytest.raises(dt.DeviceMismatchError) as caught:
        x + dt.zeros(1, device="cpu" if x.is_cuda else "cuda:0")
    return caught.value.operands[0].history


def test_chains_are_bounded() -> None:
    x = dt.zeros(3)
    longest = 0
    for _ in range(50):
        x = x + 1
        steps = history(x)
        longest = max(longest, len(steps))
        assert steps[-1].action == "zeros"
        assert steps[0].action == "add"
    assert 4 < longest <= 8
    assert any(step.elided for step in steps)


@pytest.mark.parametrize("text", [
    "x = x.cpu().to(GPU) * 2", "x = x.to(GPU) + 1; x = x.cpu()", "x = x.double().float()", "x = x.double() + x.float()",
    "x = (x + 1).to(GPU).cpu().double().float()", "x = dt.where(x > 0, x, -x)",
])  # fmt: skip
def test_chains_of_moves_and_casts_are_bounded(text: str) -> None:
    """And the steps that decide are never dropped."""
    space = source_files.names()
    code = compile(text, "<loop>", "exec")
    for _ in range(40):
        exec(code, space)
        steps = history(space["x"])
        assert len(steps) <= 8
        for what in ("device", "dtype"):
            decided = steps[origins.deciding(steps, what)].action
            if what == "device" and ("cpu" in text or "GPU" in text):
                assert decided in ("cpu", "to", "ones")
            if what == "dtype" and "double" in text:
                assert decided in ("float", "double", "add", "ones")


def test_no_array_or_frame_is_kept() -> None:
    class Held:
        pass

    def make() -> tuple[dt.DeviceArray, weakref.ref[Any], weakref.ref[Any]]:
        held, big = Held(), dt.zeros(1000)
        return big + 1, weakref.ref(held), weakref.ref(big)

    x, held, big = make()
    assert held() is None
    assert big() is None
    del x


def test_an_error_keeps_no_array() -> None:
    def fail() -> tuple[Any, list[weakref.ref[Any]]]:
        a, b = dt.zeros(1000), dt.zeros(1000, device=GPU)
        try:
            a + b
        except dt.DeviceMismatchError as caught:
            return caught.with_traceback(None), [weakref.ref(a), weakref.ref(b)]
        raise AssertionError

    error, arrays = fail()
    gc.collect()
    assert [ref() for ref in arrays] == [None, None]
    assert error.culprit.expression == "a"


def test_locals_are_not_held_after_an_error() -> None:
    """Looking a variable up makes no snapshot of the frame: del frees the array at once."""
    a, b = dt.zeros(1000), dt.zeros(1000, device=GPU)
    try:
        a + b
    except dt.DeviceMismatchError as caught:
        assert caught.fix == f'a = a.to("{GPU}")'
    seen = weakref.ref(a)
    del a
    assert seen() is None
    assert b is not None


def test_code_does_not_accumulate() -> None:
    """A chain that grows by freshly compiled code lets go of the old code."""
    space: dict[str, Any] = {"x": dt.zeros(3)}
    codes = []
    for i in range(100):
        code = compile("x = x + 1", f"<pass {i}>", "exec")
        codes.append(weakref.ref(code))
        exec(code, space)
    del code
    gc.collect()
    assert sum(ref() is not None for ref in codes) <= 10
    space.clear()
    gc.collect()
    assert sum(ref() is not None for ref in codes) == 0


def test_steps_are_given_back() -> None:
    """References to the code object, one a step, return to what they were."""

    def work() -> None:
        x = dt.zeros(3)
        kept = []
        for i in range(200):
            x = (x * 2).T if i % 2 else x.double().float()
            kept.append(x[:2])

    code = work.__code__
    work()
    before = sys.getrefcount(code)
    for _ in range(5):
        work()
    assert sys.getrefcount(code) == before


def test_without_memory_for_a_step() -> None:
    """Nothing depends on it."""
    x = dt.zeros(3)
    for n in range(30):
        dt._C._test.fail_allocations(n)
        try:
            y = x + 1
            assert y.origin.action == "add"
        except MemoryError:
            pass
        finally:
            dt._C._test.fail_allocations(-1)


def test_several_files(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A float64 that came from NumPy in another module, through a class, a generator and a dict."""
    (tmp_path / "origins_data.py").write_text(
        "import numpy as np\nimport devtensor as dt\n\ndef batches(n):\n    for i in range(n):\n"
        "        pixels = np.full((4, 3), i)\n        yield {'image': dt.from_numpy(pixels / 255), 'label': i}\n"
    )
    (tmp_path / "origins_model.py").write_text(
        "import devtensor as dt\n\nclass Net:\n    def __init__(self):\n        self.weight = dt.randn(2, 3)\n\n"
        "    def __call__(self, x):\n        hidden = self.normalise(x)\n"
        "        return dt.linear(hidden, self.weight)\n\n"
        "    @staticmethod\n    def normalise(x):\n        return x - 0.5\n"
    )
    (tmp_path / "origins_train.py").write_text(
        "from origins_data import batches\nfrom origins_model import Net\n\nnet = Net()\n"
        "for batch in batches(2):\n    net(batch['image'])\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(dt.DTypeMismatchError) as caught:
        __import__("origins_train")
    error = caught.value
    assert (error.culprit.name, error.culprit.expression) == ("input", "hidden")
    assert error.culprit.origin == ("from_numpy", str(tmp_path / "origins_data.py"), 7)
    assert error.operands[1].expression == "self.weight"
    assert error.operands[1].origin == ("randn", str(tmp_path / "origins_model.py"), 5)
    assert error.fix == "hidden = hidden.float()"
    (chain,) = [note for note in error.__notes__ if note.startswith("dtype of hidden")]
    assert "from_numpy" in chain and "origins_model.py:13" in chain


def test_devtensor_below_a_folder_that_is_not_called_in_ascii(tmp_path: Path) -> None:
    """Its own lines are no origin there either."""
    folder = tmp_path / "größe"
    folder.mkdir()
    (folder / "devtensor").symlink_to(Path(dt.__file__).parent, target_is_directory=True)
    script = folder / "made.py"
    script.write_text("import devtensor as dt\nx = dt.ones(2, 3)\n\nprint(dt.flip(x, 0).origin.filename)\n")
    env = {**os.environ, "PYTHONPATH": str(folder), "PYTHONUTF8": "1"}
    shown = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, encoding="utf-8", env=env)
    assert shown.stdout == f"{script}\n", shown.stderr
