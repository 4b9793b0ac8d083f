"""Options of RawKernel: all that the documentation lists are taken, and a wrong one is told how to be right."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from support import needs_kernels

import devtensor as dt
from devtensor.cuda import _raw_kernel

SOURCE = """
#ifdef HEADER
#include "mine.h"
#endif
extern "C" __global__ void put(int *x) { x[0] = VALUE; }
"""
REFUSED = [
    (("--use_fast_mat",), ValueError, "did you mean --use_fast_math?"),
    (("-arch=sm_90",), ValueError, "is settled by the device"),
    (("--gpu-architecture=sm_90",), ValueError, "is settled by the device"),
    (("x.cu",), ValueError, "NVRTC has no option 'x.cu'"),
    (("",), ValueError, "NVRTC has no option ''"),
    (("-D A\0B",), ValueError, "NVRTC has no option"),
    ((3,), TypeError, "options must be str, not int"),
    ("-DX", TypeError, "a sequence of str, not one"),
    (("-D", "VALUE=3"), ValueError, "-D needs its value in the same string: '-DNAME=VALUE'"),
    (("-I",), ValueError, "-I needs its value in the same string: '-I/folder'"),
    (("--include-path=",), ValueError, "--include-path= needs its value in the same string: '--include-path=/folder'"),
    (
        ("--include-path", "x"),
        ValueError,
        "--include-path needs its value in the same string: '--include-path=/folder'",
    ),
    (("--fmad",), ValueError, "--fmad needs its value in the same string: '--fmad=VALUE'"),
]


@pytest.mark.parametrize(("options", "kind", "message"), REFUSED)
def test_what_is_refused(options: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        dt.cuda.RawKernel(SOURCE, "put", options)


@pytest.mark.parametrize("option", _raw_kernel._OPTIONS)
def test_no_option_is_advised_to_be_itself(option: str) -> None:
    """Whole, without its value, without its =, and with an end that does not belong to it."""
    for text in (option, option.rstrip("="), f"{option}x"):
        try:
            dt.cuda.RawKernel(SOURCE, "put", [text])
        except ValueError as error:
            assert not str(error).endswith(f"did you mean {text}? (docs/raw-kernel.md lists them)")


VALUES = {
    ("-DVALUE=5",): 5,
    ("--define-macro=VALUE=6",): 6,
    ("-DVALUE=7", "-DHEADER", "-UHEADER"): 7,
    ("--define-macro=VALUE=8", "-DHEADER", "--undefine-macro=HEADER"): 8,
    ("-DHEADER", "-I{folder}"): 9,
    ("-DHEADER", "--include-path={folder}"): 9,
}
GIVEN = {"-std=": "c++17", "--std=": "c++20", "--maxrregcount=": "32", "-maxrregcount=": "32", "--dopt=": "on"}
GIVEN |= {"-dopt=": "on", "--diag-suppress=": "177", "-diag-suppress=": "177"}


@needs_kernels
@pytest.mark.parametrize("options", VALUES)
def test_macros_and_folders(options: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "mine.h").write_text("#define VALUE 9\n")
    x = dt.zeros(1, dtype=dt.int32, device="cuda")
    dt.cuda.RawKernel(SOURCE, "put", [option.format(folder=tmp_path) for option in options])[1, 1](x)
    assert x.item() == VALUES[options]


@needs_kernels
@pytest.mark.parametrize("dashes", ["-", "--"])
def test_every_other_option_compiles(dashes: str) -> None:
    """All that begin with so many dashes at once: a real compiler would say which of them it does not know."""
    others = [option for option in _raw_kernel._OPTIONS if option not in _raw_kernel._VALUES]
    chosen = [option for option in others if option.startswith("--") is (dashes == "--")]
    whole = [option + (GIVEN.get(option, "true") if option.endswith("=") else "") for option in chosen]
    dt.cuda.RawKernel(SOURCE, "put", ["-DVALUE=1", *whole]).compile()
