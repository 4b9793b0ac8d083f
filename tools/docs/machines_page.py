"""Writes docs/machines.md: the whole records of benchmarks/results beside each other, machine by machine.

--check compares instead.
"""

from __future__ import annotations

import ast
import csv
import math
import re
import sys
from pathlib import Path
from typing import NamedTuple

import written_page

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
TARGET = ROOT / "docs" / "machines.md"
PEERS = ("torch", "numpy")
BEHIND = 0.95
# Records up to these do not say which cores "AMD EPYC" stands for.
RECORDS = {
    "2026-11-22-amd-epyc-avx2-1t": "Zen 3",
    "2026-11-28-amd-epyc-avx-512-1t": "Zen 4",
    "2026-11-28-amd-epyc-avx-512-2t": "Zen 4",
    "2026-11-22-amd-epyc-avx-512-1t": "Zen 5",
    "2026-11-22-amd-epyc-avx-512-2t": "Zen 5",
    "2026-11-26-intel-avx-512-1t": "Intel",
    "2026-11-27-intel-avx-512-2t": "Intel",
}
PAGE = """# Machines

The same comparison on every machine that we were lent so far: virtual machines with two cores, one thread or two.
A ratio is the time of PyTorch 2.13 or NumPy 2.4 over devtensor's: above 1, devtensor is faster. Older records are of
older builds: compare columns of one date. The Zen 3 was noisy. What is also a row of a ladder counts once.
`python tools/docs/machines_page.py` writes this page from the whole records in
[benchmarks/results](../benchmarks/results); `python -m benchmarks` makes one of your machine.

{machines}

## Groups of rows

The geometric mean of PyTorch's ratios in each group, and how many rows it has in the newest record. `-`: the record has
no such rows.

{groups}

## Where a peer is ahead

Rows in which PyTorch or NumPy was ahead by 5 % or more in at least half of the records that have the row, and in two at
least: the smaller of both ratios, the worst row first. Most causes are in the
[performance notes](performance-notes.md).

{behind}
"""


class Record(NamedTuple):
    """What a run measured: its heading, and {(group, row): {peer: ratio}}."""

    stem: str
    machine: str
    meta: dict[str, str]
    rows: dict[tuple[str, str], dict[str, float]]

    @property
    def column(self) -> str:
        return f"{self.machine}, {self.meta['threads']}t"


def read(stem: str, machine: str) -> Record:
    text = (RESULTS / f"{stem}.md").read_text()
    rows: dict[tuple[str, str], dict[str, float]] = {}
    with (RESULTS / f"{stem}.csv").open(newline="") as file:
        for line in csv.DictReader(file):
            if line["library"] in PEERS and line["ratio"]:
                rows.setdefault((line["group"], line["name"]), {})[line["library"]] = float(line["ratio"])
    return Record(stem, machine, dict(re.findall(r"^- (\w+): (.*)$", text, re.MULTILINE)), rows)


def mean(ratios: list[float]) -> str:
    return f"{math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}" if ratios else "-"


def table(heads: list[str], lines: list[list[str]]) -> str:
    rule = ["---", *["---:"] * (len(heads) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [heads, rule, *lines])


def machines(records: list[Record]) -> str:
    lines = []
    for record in records:
        ceilings = ast.literal_eval(record.meta["ceilings"])
        beside = [[ratios[peer] for ratios in record.rows.values() if peer in ratios] for peer in PEERS]
        behind = sum(min(ratios.values()) < BEHIND for ratios in record.rows.values())
        lines.append(
            [
                f"[{record.machine}](../benchmarks/results/{record.stem}.md)",
                record.meta["instruction_set"],
                record.meta["threads"],
                record.meta["date"],
                f"{ceilings['float32 GFLOP/s']:.0f}",
                f"{ceilings['GB/s']:.0f}",
                *(f"{mean(ratios)} ({len(ratios)})" for ratios in beside),
                f"{behind} of {len(record.rows)}",
            ]
        )
    heads = ["machine", "set", "threads", "date", "float32 GFLOP/s", "GB/s"]
    return table([*heads, "beside PyTorch (rows)", "beside NumPy (rows)", "rows behind by 5 %"], lines)


def groups(records: list[Record]) -> str:
    newest = max(records, key=lambda record: record.meta["date"])
    lines = []
    for group in dict.fromkeys(group for group, _ in newest.rows):
        beside = [
            [r["torch"] for (g, _), r in record.rows.items() if g == group and "torch" in r] for record in records
        ]
        if any(beside):
            lines.append([group, str(sum(g == group for g, _ in newest.rows)), *map(mean, beside)])
    return table(["group", "rows", *(record.column for record in records)], lines)


def behind(records: list[Record]) -> str:
    found = []
    for row in dict.fromkeys(row for record in records for row in record.rows):
        least = [min(record.rows[row].values()) if row in record.rows else None for record in records]
        ratios = [ratio for ratio in least if ratio is not None]
        slow = sum(ratio < BEHIND for ratio in ratios)
        if slow >= max(2, len(ratios) / 2):
            cells = ["-" if ratio is None else f"{ratio:.2f}" for ratio in least]
            found.append((math.prod(ratios) ** (1 / len(ratios)), [row[1].replace("|", "\\|"), *cells]))
    return table(["row", *(record.column for record in records)], [cells for _, cells in sorted(found)])


def page() -> str:
    records = [read(stem, machine) for stem, machine in RECORDS.items()]
    return PAGE.format(machines=machines(records), groups=groups(records), behind=behind(records))


if __name__ == "__main__":
    sys.exit(written_page.main(TARGET, page()))
