"""README for a package index, whose readers have no folder beside them."""

from __future__ import annotations

import sys

import pytest
from support import ROOT

if not (ROOT / "tools" / "package" / "index_page.py").exists():
    pytest.skip("these tests read the source tree", allow_module_level=True)

sys.path.append(str(ROOT / "tools" / "package"))

import index_page

TEXT = (
    "[a `b`](docs/c.md#d) [e](https://f.example) ![g](docs/h.svg)\n<picture>\n<img src='x'>\n</picture>\n\nend [i](#j)"
)


def test_links_lead_into_the_repository() -> None:
    at = "https://git.example/us/devtensor"
    wanted = f"[a `b`]({at}/blob/main/docs/c.md#d) [e](https://f.example) ![g]({at}/raw/main/docs/h.svg)\nend [i](#j)"
    assert index_page.of(TEXT, at + "/") == wanted


def test_without_an_address_only_their_text_stays() -> None:
    assert index_page.of(TEXT, None) == "a `b` [e](https://f.example) \nend [i](#j)"


def test_no_relative_link_is_left() -> None:
    shown = index_page.of((ROOT / "README.md").read_text(), None)
    assert "](" not in shown.replace("](https:", "") and "<picture>" not in shown
