"""Who makes a report of a training program: nobody, but in `python -m devtensor run`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from devtensor._diagnosis.report import Report

report: Report | None = None
