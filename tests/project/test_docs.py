"""Every block of the documentation runs and prints what stands below it; every link leads to something."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import doc_blocks
import pytest
from support import HELPERS, ROOT, python_path, skip_kernels
from torch_differences import VERSION

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

if not PAGES:
    pytest.skip("these tests read the documentation", allow_module_level=True)

# What a reader types in a shell. README's two commands are run by whoever installs it.
COMMANDS = [
    "pip install . && python -m devtensor digits\n",
    "pip install '.[test]' && python -m pytest -n auto\n",
]
SHELL = re.compile(r"(pip install \S+|python -m devtensor\b[^&|;<>]*)\n")
OUTPUTS = {"situations.md", "raw-kernel.md"}  # test_situations compares the first, test_raw_kernel provokes the other


def is_torch_there() -> bool:
    try:
        return importlib.metadata.version("torch").partition("+")[0].startswith(VERSION)
    except importlib.metadata.PackageNotFoundError:
        return False


PROGRAMS = [page for page in PAGES if any(block.kind == "python" for block in doc_blocks.blocks(page.read_text()))]


@pytest.fixture(scope="module")
def run_pages(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """Status, output and errors of each page whose row runs."""
    rows = [getattr(item, "callspec", None) for item in request.session.items if "run_pages" in item.fixturenames]
    pages = [str(row.params["page"]) for row in rows if row]
    command = [sys.executable, str(HELPERS / "doc_blocks.py"), *pages]
    env = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    env |= {"DEVTENSOR_CUDA": "sim:2", "PYTHONPATH": python_path()}
    folder = tmp_path_factory.mktemp("pages")
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("page", PROGRAMS, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_blocks(page: Path, run_pages: dict[str, list[Any]]) -> None:
    """In a process of their own, on two simulated GPUs."""
    if page.name == "explain-torch.md" and not is_torch_there():
        pytest.skip(f"the page shows what PyTorch {VERSION} says, which is not installed")
    skip_kernels(page.read_text())
    status, out, err = run_pages[str(page)]
    assert (status, err) == (0, ""), out + err


def test_other_blocks() -> None:
    """All are Python, the output of one, commands, or on a page of outputs that another test compares."""
    commands = []
    for page in PAGES:
        for block in doc_blocks.blocks(page.read_text()):
            if block.kind == "sh":
                commands += [block.text] if page.name == "README.md" else []
                assert page.name == "README.md" or SHELL.fullmatch(block.text), f"{page.name}:{block.line}"
            elif block.kind != "python":
                assert page.name in OUTPUTS and block.kind == "text", f"{page.name}:{block.line}"
    assert commands == COMMANDS


def test_commands_print_what_stands_below_them(tmp_path: Path) -> None:
    found = [b for page in PAGES for b in doc_blocks.blocks(page.read_text()) if b.kind == "sh" and b.stated]
    assert len(found) >= 2
    env = {name: value for name, value in os.environ.items() if not name.startswith(("CUDA_VIS", "DEVTENSOR_CUDA"))}
    env |= {"PYTHONPATH": python_path()}
    for block in found:
        words = shlex.split(block.text)
        assert words[0] == "python"
        done = subprocess.run([sys.executable, *words[1:]], cwd=ROOT, env=env, capture_output=True, text=True)
        assert block.stated is not None and block.stated in done.stdout + done.stderr, done.stdout + done.stderr


def test_there_are_blocks() -> None:
    counts = {
        str(page.relative_to(ROOT)): sum(b.kind == "python" for b in doc_blocks.blocks(page.read_text()))
        for page in PAGES
    }
    assert counts["README.md"] >= 4 and counts["docs/errors.md"] >= 17 and counts["docs/threads.md"] >= 2


PROGRAM = "```python\nimport devtensor as dt\n{}\n```\n"
CASES = {
    "output": (PROGRAM.format("print(dt.ones(2).tolist())") + "```text\n[1.0, 2.0]\n```\n", 1),
    "error": (PROGRAM.format("dt.ones(2) + dt.ones(3)"), 1),
    "right": (PROGRAM.format("x = dt.ones(1)") + "and\n```python\nprint(x.tolist())\n```\n```text\n[1.0]\n```\n", 0),
}


@pytest.mark.parametrize("kind", CASES)
def test_what_is_wrong_is_found(kind: str, tmp_path: Path) -> None:
    text, wrong = CASES[kind]
    (tmp_path / "page.md").write_text(text)
    assert len(doc_blocks.problems(tmp_path / "page.md")) == wrong


@pytest.mark.parametrize("page", [*PAGES, ROOT / "examples" / "README.md"], ids=lambda p: str(p.relative_to(ROOT)))
def test_links(page: Path) -> None:
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)]+)\)", prose):
        if not target.startswith(("http:", "https:")):
            path, _, anchor = target.partition("#")
            place = (page.parent / path) if path else page
            assert place.exists(), target
            if anchor:
                titles = re.findall(r"^#+ (.*)$", place.read_text(), re.MULTILINE)
                assert anchor in [re.sub(r"[^\w -]", "", t).lower().replace(" ", "-") for t in titles], target
