"""The site of the documentation: its reference has every public name, and each error code has its page.

The section `docs` of .ci/run builds the site with Sphinx, where every warning is an error. Sphinx is not needed here.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import public_names
import pytest
from support import ROOT

from devtensor._diagnosis.causes import CAUSES

if not (ROOT / "tools" / "docs" / "build_docs.py").exists():
    pytest.skip("these tests read the source tree", allow_module_level=True)

sys.path.append(str(ROOT / "tools" / "docs"))

import api_pages
import build_docs


def test_every_public_name_has_an_entry() -> None:
    text = "\n".join(api_pages.pages().values())
    entries = re.findall(r"^:{4,}\{py:(?:function|class|exception|data)\} ([\w.]+)", text, re.MULTILINE)
    assert sorted(entries) == sorted(name for name, _ in public_names.names())
    members = re.findall(r"^::::\{py:(?:method|attribute)\}", text, re.MULTILINE)
    assert len(entries) > 1200 and len(members) > 900


@pytest.mark.parametrize(
    ("docstring", "wanted"),
    [
        ("-x. Integers wrap.", r"\-x. Integers wrap."),
        ("x * y_ of [a]\n1. no list", "x \\* y\\_ of \\[a\\]\n1\\. no list"),
        ("what `a * b` is", "what `a * b` is"),
        ("one\n\n>>> dt.ones(1)\n[1.]", "one\n\n```pycon\n>>> dt.ones(1)\n[1.]\n```"),
    ],
)
def test_docstrings_become_markdown(docstring: str, wanted: str) -> None:
    assert "\n".join(api_pages.markdown(docstring)).strip() == wanted


def test_each_error_code_has_a_page() -> None:
    index, pages = build_docs.error_pages((ROOT / "docs" / "errors.md").read_text())
    assert list(pages) == list(CAUSES) == re.findall(r"^## (\S+)$", index, re.MULTILINE)
    for code, cause in CAUSES.items():
        assert cause in pages[code] and f"(errors/{code}.md)" in index


def test_links_lead_to_what_the_site_has(tmp_path: Path) -> None:
    """To other pages, and to copies of files and lists of folders that are no pages."""
    page = ROOT / "docs" / "start.md"
    text = "[a](situations.md#x) [b](../CONTRIBUTING.md) [c](../examples/fit_line.py) [d](../examples) `[e](../no.md)`"
    text += " [f](../examples/situations) [g](https://example.com)"
    wanted = (
        "[a](situations.md#x) [b](CONTRIBUTING.md) [c](files/examples/fit_line.py) [d](examples.md) `[e](../no.md)`"
    )
    wanted += " [f](files/examples/situations.txt) [g](https://example.com)"
    assert build_docs.with_links(text, page, tmp_path / "start.md", tmp_path) == wanted
    assert (tmp_path / "files" / "examples" / "fit_line.py").exists()


def test_every_page_is_listed_once() -> None:
    listed = [*build_docs.START, *build_docs.GUIDES, *build_docs.CONTRIBUTORS]
    assert len(listed) == len(set(listed))
    pages = {path.relative_to(ROOT / "docs").with_suffix("").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    pages |= {Path(name).stem for name in build_docs.OTHERS.values()}
    assert set(listed) <= pages
