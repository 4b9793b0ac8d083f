"""Mistakes that everybody makes once: what the error says to write."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import source_files
from source_files import GPU

import devtensor as dt
from devtensor import nn

SPACE = {"nn": nn, "optim": dt.optim, "DataLoader": dt.data.DataLoader}

# (name, source, what is said, the fix, the text that it replaces)
ROWS: list[tuple[str, str, str, str | None, str | None]] = [
    ("a forgotten Flatten in a Sequential",
     "m = nn.Sequential(nn.Conv2d(3, 4, 1), nn.MaxPool2d(1), nn.Linear(900, 10))\nm(dt.ones(8, 3, 15, 15))  # here",
     "m.2 takes 900 features in the last dimension; its input has 15, and would have 900 with nn.Flatten() before it",
     None, None),
    ("a Sequential within a Module",
     "m = nn.ModuleDict({'s': nn.Sequential(nn.ReLU(), nn.Linear(12, 2))})\nm['s'](dt.ones(2, 3, 4))  # here",
     "would have 12 with nn.Flatten() before it", None, None),
    ("an input that nothing flattens", "m = nn.Sequential(nn.ReLU(), nn.Linear(7, 2))\nm(dt.ones(2, 3, 4))  # here",
     "takes 7 features in the last dimension; its input has 4\n", None, None),
    ("the output of an LSTM", "l, h = nn.LSTM(3, 20), nn.Linear(20, 2)\nh(l(dt.ones(5, 2, 3)))  # here",
     "l(dt.ones(5, 2, 3)) is a tuple of 2", "l(dt.ones(5, 2, 3))[0]", "l(dt.ones(5, 2, 3))"),
    ("the output of an LSTM in a variable",
     "l, h = nn.LSTM(3, 20), nn.Linear(20, 2)\no = l(dt.ones(5, 2, 3))\nh(o)  # here",
     "entry [0] is the output, (5, 2, 20)", "o = o[0]", None),
    ("the output of an LSTM in a loop",
     "l, h = nn.LSTM(3, 20), nn.Linear(20, 2)\no = l(dt.ones(5, 2, 3))\nfor i in range(2):\n    h(o)  # here",
     "o is a tuple of 2", "o[0]", "o"),
    ("an output of another size", "l, h = nn.LSTM(3, 20), nn.Linear(7, 2)\no = l(dt.ones(5, 2, 3))\nh(o)  # here",
     "entry [0] is the output, (5, 2, 20)", None, None),
    ("an LSTM in a Sequential", "s = nn.Sequential(nn.LSTM(3, 20), nn.Linear(20, 2))\ns(dt.ones(5, 2, 3))  # here",
     "input is a tuple of 2", None, None),
    ("a checkpoint of a DataParallel",
     "m = nn.Linear(3, 2)\nstate = nn.DataParallel(m).state_dict()\nm.load_state_dict(state)  # here",
     'The keys begin with "module.", as those of a DataParallel do: load_state_dict({key.removeprefix("module."): '
     "value for key, value in state.items()})", None, None),
    ("a checkpoint for a DataParallel",
     "m = nn.Linear(3, 2)\nmodel = nn.DataParallel(m)\nmodel.load_state_dict(m.state_dict())  # here",
     "model.module.load_state_dict(state)", None, None),
    ("the name of a checkpoint", "nn.Linear(3, 2).load_state_dict('w.pt')  # here",
     'It takes what is in a file: load_state_dict(load("w.pt"))', None, None),
    ("the name of a checkpoint of an optimizer",
     "optim.Adam(nn.Linear(3, 2).parameters()).load_state_dict('w.pt')  # here", 'load_state_dict(load("w.pt"))',
     None, None),
    ("an optimizer of a Module", "optim.Adam(nn.Linear(3, 2))  # here",
     "but got devtensor.nn.layers.Linear: its parameters() are what an optimizer takes", None, None),
    ("an optimizer of a Sequential", "optim.Adam(nn.Sequential(nn.Linear(3, 2)))  # here",
     "Linear (index 0): its parameters() are what an optimizer takes", None, None),
    ("an optimizer of a number", "optim.Adam(3)  # here", "or dicts, but got int\n", None, None),
    ("batches of nothing", "DataLoader([1, 2], batch_size=0)  # here",
     "DataLoader(): batch_size should be a positive integer value, but got batch_size=0", None, None),
    ("the device of what is made here", "g + dt.tensor([0., 1, 2])  # here", "(instead of dt.tensor([0., 1, 2]))",
     "dt.tensor([0., 1, 2], device=g.device)", "dt.tensor([0., 1, 2])"),
    ("a device by its name", "dt.ones(2, 3,) @ (n * 1)  # here",
     f'Fix: dt.ones(2, 3, device="{GPU}")', f'dt.ones(2, 3, device="{GPU}")', "dt.ones(2, 3,)"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "says", "fix", "of"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_what_is_said(text: str, says: str, fix: str | None, of: str | None) -> None:
    error = source_files.run(text, source_files.names() | SPACE)
    assert says in said(error)
    assert (getattr(error, "fix", None), getattr(error, "fix_of", None)) == (fix, of)
    if fix is not None:
        assert source_files.run(source_files.repaired(text, error), source_files.names() | SPACE) is None


def said(error: Any) -> str:
    return "\n".join([str(error), *getattr(error, "__notes__", ()), ""])


def test_what_is_said_of_keys_works() -> None:
    model = nn.Linear(3, 2)
    state = nn.DataParallel(model).state_dict()
    with pytest.raises(RuntimeError) as caught:
        model.load_state_dict(state)
    call = re.search(r"load_state_dict\(.*\)", caught.value.__notes__[0])
    assert call is not None
    assert eval(f"model.{call[0]}", {"model": model, "state": state}).missing_keys == []


def test_short_errors_have_no_advice() -> None:
    dt.set_error_detail("short")
    try:
        with pytest.raises(TypeError) as caught:
            nn.Linear(3, 2).load_state_dict("w.pt")  # type: ignore[arg-type]
    finally:
        dt.set_error_detail("full")
    assert not getattr(caught.value, "__notes__", [])


def test_an_index_that_is_told_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line of the call, relative as all others, and nothing of the array that happened to wait."""
    monkeypatch.chdir(tmp_path)
    text = f"import devtensor as dt\nt = dt.zeros(4, 3, device='{GPU}')\ni = dt.tensor([0, 9], device='{GPU}')\n"
    text += "z = t[i]\nprint(z.sum().item())\n"
    path = tmp_path / "late.py"
    path.write_text(text)
    error = source_files.run(text, {}, str(path))
    assert str(error).endswith("; the call is at late.py:4")
    assert error.__notes__ == ["  z = t[i]  late.py:4", "See: python -m devtensor explain index-out-of-range"]
    assert (error.operands, error.culprit, error.fix) == ((), None, None)
