"""Writes docs/_static/NAME-light.svg and NAME-dark.svg: what programs of README and of a page print in a terminal.

error: the first program of README, which is run. torch-layer, torch-dtype, torch-state: the three of
docs/explain-torch.md, as that page has them; tests/project/test_docs.py runs those where PyTorch is installed.
--check compares instead.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from xml.sax.saxutils import escape

import written_page

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "_static"
COLUMNS, WIDE, HIGH = 98, 7.6, 19  # of the terminal; of a character and a line in pixels
# of the window, its border, text, and of what is marked: error, odd one, fix, command, the rest
THEMES = {
    "light": ("#ffffff", "#d0d7de", "#24292f", "#cf222e", "#9a6700", "#1a7f37", "#0969da", "#57606a"),
    "dark": ("#0d1117", "#30363d", "#e6edf3", "#ff7b72", "#e3b341", "#56d364", "#79c0ff", "#8b949e"),
}
MARKED = [
    (re.compile(r"^(devtensor\.)?\w+Error"), "error"),
    (re.compile(r".*<- the odd one"), "odd"),
    (re.compile(r"^Fix:.*"), "fix"),
    (re.compile(r"^See:.*"), "see"),
    (re.compile(r"^Traceback.*|^  File .*|^  \.\.\."), "rest"),
]


def printed() -> str:
    """What a terminal shows, the command included."""
    program = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)[0]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("DEVTENSOR_", "CUDA_VISIBLE"))}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "train.py").write_text(program)
        env["DEVTENSOR_CUDA"] = "sim:1"
        done = subprocess.run([sys.executable, "train.py"], cwd=folder, env=env, capture_output=True, text=True)
    # The marks below a line are not the same in all Pythons.
    lines = [line for line in done.stderr.replace(f"{folder}/", "").splitlines() if line.strip(" ~^")]
    return "\n".join(["$ python train.py", *lines])


def shown_on_the_page() -> list[str]:
    """What a terminal shows of each program of explain-torch.md; of the traceback only that there is one."""
    page = (ROOT / "docs" / "explain-torch.md").read_text()
    blocks = re.findall(r"^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return [f"$ python train.py\nTraceback (most recent call last):\n  ...\n{block}" for block in blocks]


def picture(text: str, colours: tuple[str, ...]) -> str:
    ground, border, ink, error, odd, fix, see, rest = colours
    lines = [part for line in text.splitlines() for part in textwrap.wrap(line, COLUMNS, drop_whitespace=False) or [""]]
    width, height = int(COLUMNS * WIDE) + 32, HIGH * len(lines) + 28
    style = f"text{{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:{ink};white-space:pre}}"
    style += f".error{{fill:{error};font-weight:bold}}.odd{{fill:{odd}}}"
    style += f".fix{{fill:{fix}}}.see{{fill:{see}}}.rest{{fill:{rest}}}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">',
        f"<title>{escape(text)}</title><style>{style}</style>",
        f'<rect x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8" fill="{ground}" stroke="{border}"/>',
    ]
    for i, line in enumerate(lines):
        found = next(((m.end(), kind) for pattern, kind in MARKED if (m := pattern.match(line))), (0, ""))
        end, kind = found
        marked = f'<tspan class="{kind}">{escape(line[:end])}</tspan>' if kind else ""
        length = f' textLength="{len(line) * WIDE:.0f}"' if line else ""
        place = f'x="16" y="{HIGH * i + 28}"'
        parts.append(f'<text {place}{length} xml:space="preserve">{marked}{escape(line[end:])}</text>')
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    names = ("error", "torch-layer", "torch-dtype", "torch-state")
    results = [
        written_page.main(FOLDER / f"{name}-{theme}.svg", picture(text, colours))
        for name, text in zip(names, [printed(), *shown_on_the_page()], strict=True)
        for theme, colours in THEMES.items()
    ]
    sys.exit(max(results))
