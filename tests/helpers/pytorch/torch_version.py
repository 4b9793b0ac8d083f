"""What an older PyTorch lacks, for tests that compare with the one that is installed."""

from __future__ import annotations

import re
from typing import Any

import pytest


def older_than(version: str) -> bool:
    import torch

    return bool(torch.__version__ < version)


def needs_torch(version: str) -> None:
    """Skips a test, or a row of one, where PyTorch is older."""
    if older_than(version):
        pytest.skip(f"needs PyTorch {version}")


def assert_same_text(ours: Any, theirs: Any) -> None:
    """A layer has PyTorch's text; most normalisations of PyTorch before 2.13 have no bias of their own to tell of."""
    text = repr(ours)
    if older_than("2.13") and "bias=" not in repr(theirs):
        text = re.sub(", bias=(True|False)", "", text)
    assert text == repr(theirs)
