"""What an op costs a program that wants no gradient, in instructions: callgrind counts them, so that no load disturbs it.

Before gradients `a + b` took 748 instructions of devtensor's own (docs/decisions/22-gradients.md).
"""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import Built

from devtensor import _C

pytestmark = [
    pytest.mark.whole,
    pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed"),
    pytest.mark.skipif("gcc" not in str(Built.compiler), reason="748 is the number of gcc's code"),
]
BEFORE, ALLOWED = 748, 45
PROGRAM = """
import sys
from itertools import repeat
import devtensor as dt

def add(n, wanted):
    a, b = dt.ones(1, requires_grad=wanted), dt.ones(1)
    for _ in repeat(None, n):
        a + b

add(int(sys.argv[1]), False)
add(int(sys.argv[2]), True)
"""
