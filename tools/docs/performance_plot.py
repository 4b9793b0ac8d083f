"""Writes docs/_static/performance.svg: the first table of docs/performance.md (the CPU's) as bars, in light and dark.

--check compares instead.
"""

import math
import re
import sys
from pathlib import Path
from xml.sax.saxutils import escape

import written_page

PAGE = Path(__file__).parents[2] / "docs" / "performance.md"
TARGET = PAGE.parent / "_static" / "performance.svg"
STYLE = """text { font: 13px system-ui, sans-serif; fill: #24292f }
.faster { fill: #2da44e } .slower { fill: #cf7a28 } line { stroke: #8c959f }
@media (prefers-color-scheme: dark) { text { fill: #c9d1d9 } }"""
LABELS, WIDTH, LINE = 280, 640, 22  # pixels: up to the bars, in all, of a row
LEAST, MOST = 0.15, 40  # of the axis, which is logarithmic


def place(ratio: float) -> float:
    share = math.log(ratio / LEAST) / math.log(MOST / LEAST)
    return LABELS + share * (WIDTH - LABELS - 40)


def picture(page: str) -> str:
    table = page[page.index("\n| ") :].split("\n\n")[0]
    rows = re.findall(r"^\| (.+?) \| [^|]+ \| [^|]+ \| ([\d.]+) \|$", table, re.MULTILINE)
    height = LINE * (len(rows) + 1) + 8
    one = place(1)
    title = "PyTorch's time over devtensor's: above 1, devtensor is faster"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{title}</title>",
        f"<style>{STYLE}</style>",
        f'<text x="0" y="14">{title}</text>',
        f'<line x1="{one:.1f}" y1="{LINE}" x2="{one:.1f}" y2="{height}"/>',
    ]
    for i, (what, ratio) in enumerate(rows, 1):
        end, y = place(float(ratio)), i * LINE
        kind = "faster" if end >= one else "slower"
        left, wide = min(one, end), max(abs(end - one), 1)
        lines.append(f'<text x="0" y="{y + 15}">{escape(what.replace("`", ""))}</text>')
        lines.append(f'<rect class="{kind}" x="{left:.1f}" y="{y + 4}" width="{wide:.1f}" height="14"/>')
        lines.append(f'<text x="{max(one, end) + 5:.1f}" y="{y + 15}">{ratio}</text>')
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    sys.exit(written_page.main(TARGET, picture(PAGE.read_text())))
