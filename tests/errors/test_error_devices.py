"""An error says the same on every device: first line, notes, fix, operands, culprit of every mistake in the tests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import source_files
import test_diagnosis_catalogue as catalogue
import test_diagnosis_fixes as fixes
import test_errors
import test_nn_errors
from source_files import told
from support import CUDA_DEVICES, REAL
from typical_mistakes import EXAMPLES

import devtensor as dt

HOMES = ("cpu", CUDA_DEVICES[0])
# Mistakes that are about devices, or that only one kind of device makes, or that a device tells of late.
OF_DEVICES = {"grad-moved", "device-mismatch", "host-access", "numpy-operand", "transfer-forbidden", "kernel-argument",
              "not-contiguous", "device-not-available", "read-only", "stream-race", "not-probabilities"}  # fmt: skip


@pytest.fixture(params=HOMES)
def home(request: pytest.FixtureRequest) -> Iterator[str]:
    yield request.param


def on(home: str, text: str, **more: Any) -> Any:
    """What a program raises whose arrays are all made on home, or loaded from NumPy and moved there."""

    def loaded(a: Any) -> Any:
        return dt.from_numpy(a).to(home)

    space = {name: x.to(home) if isinstance(x, dt.DeviceArray) else x for name, x in source_files.names().items()}
    text = text.replace('device="cuda"', "device=D").replace("dt.from_numpy(", "loaded(")
    before = dt.get_default_device()
    dt.set_default_device(home)
    try:
        return source_files.run(text.lstrip("\n"), space | {"D": home, "loaded": loaded} | more, filename="<mistake>")
    finally:
        dt.set_default_device(before)


def same(mistake: Callable[[str], Any]) -> None:
    """mistake raises on each device, and all of it is the same."""
    said = {told(mistake(home)) for home in HOMES}
    assert len(said) == 1, "\n\n".join(said)
    assert said != {""}


# Without those where the fix moves a NumPy array, which is on the host.
GALLERY = [
    text for code, rows in EXAMPLES.items() if code not in OF_DEVICES for _, text in rows if "x = np" not in text
]
PLAIN = [text for _, text, _ in fixes.FIXES if not re.search(r"\b[gn]\b|GPU|cuda|numpy|np\.|weights of classes", text)]
# Arrays that were moved on their way, which is a step on one device and nothing on another.
MOVED = {
    "bias of another dtype": "b = dt.ones(4, dtype='float64').to(D)\ndt.linear(x, dt.ones((4, 3)).to(D), b)",
    "bias cast and moved at once": "b = dt.ones(4).to(D, dt.float64)\ndt.linear(x, dt.ones((4, 3)), b)",
    "bias cast, then moved": "b = dt.ones(4, device='cpu').double().to(D)\ndt.linear(x, dt.ones((4, 3)), b)",
    "integer conv2d": "i = dt.ones((1, 1, 4, 4), dtype='int64').to(D)\ndt.conv2d(i, dt.ones((1, 1, 3, 3)).long())",
    "in-place true division": "i = dt.arange(4, device='cpu').to(D)\ni /= 2",
    "float indices": "i = dt.ones(3, device='cpu').to(D)\nx[i]",
    "addmm": "c = dt.ones((3, 2), dtype='float64', device='cpu').to(D)\ndt.addmm(dt.ones((2, 2)), x, c)",
    "integer linear": "i = dt.ones((2, 2), dtype='int64', device='cpu').to(D)\ndt.linear(i, i)",
    "shape, moved": "i = dt.ones((4, 5), device='cpu').to(D)\nx @ i",
    "shape, cast and moved": "i = dt.ones((4, 5), device='cpu').to(D, dt.float64)\nx.double() @ i",
    "shape, moved on the way": "i = (dt.ones((4, 5), device='cpu') + 1).to(D) * 2\nx @ i",
}  # fmt: skip


@pytest.mark.skipif(REAL, reason="the examples ask for simulated devices")
@pytest.mark.parametrize("text", GALLERY)
def test_gallery(text: str) -> None:
    same(lambda home: on(home, text, __name__="__main__"))


@pytest.mark.parametrize("text", PLAIN)
def test_mistakes_with_fixes(text: str) -> None:
    same(lambda home: on(home, text))


@pytest.mark.parametrize("text", MOVED.values(), ids=MOVED)
def test_arrays_that_were_moved(text: str) -> None:
    same(lambda home: on(home, text))


def raised(call: Callable[[], Any]) -> Any:
    try:
        call()
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("row", [*test_errors.dtype_rows(), *test_errors.shape_rows()], ids=lambda row: row.name)
def test_rows_of_errors(row: test_errors.Row) -> None:
    same(lambda home: raised(lambda: row.call(home, home)))


@pytest.mark.parametrize(
    "call", [row[0] for row in test_nn_errors.SHAPES], ids=[row[2][:50] for row in test_nn_errors.SHAPES]
)
def test_composed_ops(call: Callable[..., Any]) -> None:
    same(lambda home: raised(lambda: call(lambda *shape: dt.ones(shape, device=home))))


@pytest.mark.parametrize("case", catalogue.chosen(), ids=str)
def test_catalogue(case: Any) -> None:
    for kind, text, variables, _ in catalogue.rows(case):
        if kind != "DeviceMismatchError":
            said = {told(on(home, text, **{name: x.to(home) for name, x in variables.items()})) for home in HOMES}
            assert len(said) == 1, "\n\n".join(said)
