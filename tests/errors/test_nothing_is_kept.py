"""What an error or a warning explains is not kept: arrays that the program deletes then are gone at once.

No collection of garbage helps here, as the memory of a device is needed now. Each Python has its own rules for which
frames live on, and what they hold.
"""

from __future__ import annotations

import gc
import textwrap
import traceback
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

import gradient_mistakes
import pytest
import source_files
import training_mistakes
from support import DEVICES, REAL, skip_kernels
from typical_mistakes import EXAMPLES

import devtensor as dt

FULL = """
import devtensor as dt
filling = dt.ones(1000, device="cuda")
dt.empty(1 << 50, dtype=dt.uint8, device="cuda")
"""
PROGRAMS = [
    *((f"{code} {i}", text) for code, rows in EXAMPLES.items() for i, (_, text) in enumerate(rows)),
    ("out-of-memory", FULL),
    *((mistake.name, mistake.text) for mistake in gradient_mistakes.MISTAKES),
    *((mistake.name, training_mistakes.START + mistake.text) for mistake in training_mistakes.MISTAKES),
]


@pytest.fixture(autouse=True)
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def deletes(program: str) -> str:
    """Lines that give each variable of the program to watch() and delete it, for a function with the program in it."""
    space: dict[str, Any] = {}
    exec(compile("def main():\n" + textwrap.indent(program, "    "), "<main>", "exec"), space)
    code = space["main"].__code__
    names = (*code.co_varnames, *code.co_cellvars)
    return "\n".join(f"try:\n    watch({name!r}, {name}); del {name}\nexcept NameError: pass" for name in names)


def in_functions(program: str) -> str:
    """The program in a function that goes on after the error, with a caller that goes on after that."""
    lines = ["def main():", "    try:", textwrap.indent(program, "        "), "    except Exception as error:",
             "        failed(error)", textwrap.indent(deletes(program), "    "), "    check()",
             "def caller(above):", "    main()", "    watch('above', above)", "    del above", "    check()",
             "caller(dt.ones(3, device=dev))"]  # fmt: skip
    return "\n".join(lines)


@pytest.mark.skipif(REAL, reason="the programs ask for simulated devices")
@pytest.mark.parametrize("program", [text for _, text in PROGRAMS], ids=[name for name, _ in PROGRAMS])
def test_nothing_is_kept(program: str) -> None:
    skip_kernels(program)
    watched: list[tuple[str, weakref.ref[Any]]] = []
    told: list[str | None] = []
    kept: list[list[str]] = []

    def watch(name: str, value: Any) -> None:
        if isinstance(value, dt.DeviceArray):
            watched.append((name, weakref.ref(value)))

    def failed(error: Any) -> None:
        told.append(error.code)
        for frame, _ in traceback.walk_tb(error.__traceback__):  # functions that have ended by it among them
            for name in frame.f_code.co_varnames:
                watch(name, dt._C._frame_variable(frame, name, None))

    def check() -> None:
        kept.append([name for name, array in watched if array() is not None])

    space = {"dt": dt, "dev": DEVICES[1], "other": DEVICES[0], "watch": watch, "check": check, "failed": failed}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        assert source_files.run(in_functions(program), space) is None
    told += [one.message.code for one in caught if isinstance(one.message, dt.GradientWarning)]
    assert told  # it fails or is warned of, as it does by itself
    assert kept == [[], []]
