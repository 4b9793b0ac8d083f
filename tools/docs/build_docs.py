"""Builds the site of the documentation with Sphinx: every warning, and so every broken link, is an error.

python tools/docs/build_docs.py [FOLDER]     by default build/site; open FOLDER/html/index.html

The pages are those of docs/. Written here beside them are a page for each error code and the API reference. It needs
devtensor itself and the extra `docs` (pip install '.[docs]').
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = re.compile(r"(^```.*?^```$|`[^`\n]*`)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(#[^)]*)?\)")

# The order of the pages. A page of docs/ that is not listed stands at the end of the guides.
START = ["start", "situations"]
GUIDES = [
    *("guides/devices", "guides/dtypes", "guides/numpy", "guides/torch", "guides/training", "explain-torch", "testing"),
    *("races", "raw-kernel"),
    *("guides/notebooks", "performance", "nn", "data", "optim", "autograd", "distributions", "interchange"),
    *("array-api", "threads"),
    *("cuda", "differences", "errors-compared", "examples"),
]
CONTRIBUTORS = ["CONTRIBUTING", "architecture", "walks", "adding-an-op", "decisions/README"]
CONTRIBUTORS += ["reliability", "mutants", "cuda-kernels", "plans", "performance-notes", "first-day", "CHANGELOG"]
# Pages that stand elsewhere in the repository.
OTHERS = {"CONTRIBUTING.md": "CONTRIBUTING.md", "CHANGELOG.md": "CHANGELOG.md", "examples/README.md": "examples.md"}


def toctree(caption: str, pages: list[str]) -> str:
    return "\n".join([":::{toctree}", ":hidden:", f":caption: {caption}", "", *pages, ":::", ""])


def copied(place: Path, new: Path) -> Path:
    """A file of the repository for the site, or a list of the files in a folder."""
    if place.is_dir() or new.suffix == ".md":  # Sphinx takes the ending .md as that of a page
        new = new.with_suffix(".txt")
    new.parent.mkdir(parents=True, exist_ok=True)
    if place.is_dir():
        new.write_text("".join(f"{path.name}\n" for path in sorted(place.iterdir()) if path.is_file()))
    else:
        shutil.copyfile(place, new)
    return new


def with_links(text: str, page: Path, target: Path, source: Path) -> str:
    """The text of a page with links that lead to what the site has: pages, or copies of the repository's files."""

    def changed(match: re.Match[str]) -> str:
        path, anchor = match[1], match[2] or ""
        if not path:
            return match[0]
        place = (page.parent / path).resolve()
        name = place.relative_to(ROOT).as_posix()
        if place.is_dir() and (place / "README.md").exists():
            place, name = place / "README.md", f"{name}/README.md"
        if name in OTHERS:
            new = source / OTHERS[name]
        elif name.startswith("docs/"):
            new = source / name.removeprefix("docs/")
        else:
            new = copied(place, source / "files" / name)
        return f"]({os.path.relpath(new, target.parent)}{anchor})"

    parts = BLOCKS.split(text)
    parts[::2] = [LINK.sub(changed, part) for part in parts[::2]]
    return "".join(parts)


def error_pages(text: str) -> tuple[str, dict[str, str]]:
    """The index of the error codes, and the page of each."""
    head, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
    index, pages = [head], {}
    for section in sections:
        code, _, body = section.partition("\n")
        cause = body.strip().partition("\n\n")[0]
        index.append(f"## {code}\n\n{cause} [Examples](errors/{code}.md)\n\n")
        pages[code] = f"# {code}\n\n{body.strip()}\n\n[All error codes](../errors.md)\n"
    return "".join(index), pages


def stage(source: Path) -> None:
    """Writes the sources of the site."""
    import api_pages

    shutil.copytree(ROOT / "docs", source, ignore=shutil.ignore_patterns("*.md", "__pycache__"))
    listed = {*START, *GUIDES, *CONTRIBUTORS, "index", "errors", "reference"}
    found = {path: source / path.relative_to(ROOT / "docs") for path in sorted((ROOT / "docs").rglob("*.md"))}
    found |= {ROOT / path: source / name for path, name in OTHERS.items() if (ROOT / path).exists()}
    for page, target in found.items():
        text = with_links(page.read_text(), page, target, source)
        target.parent.mkdir(parents=True, exist_ok=True)
        if page == ROOT / "docs" / "errors.md":
            text, codes = error_pages(text)
            (source / "errors").mkdir(exist_ok=True)
            for code, body in codes.items():
                (source / "errors" / f"{code}.md").write_text(body)
            text += "\n" + toctree("Codes", [f"errors/{code}" for code in codes])
        if page == ROOT / "docs" / "index.md":
            text = text.replace("the API reference of the site", "the [API reference](api/index.md)")
        target.write_text(text)
    (source / "api").mkdir()
    names = []
    for name, text in api_pages.pages().items():
        names += [name] if name != "index" else []
        (source / "api" / f"{name}.md").write_text(text)
    with (source / "api" / "index.md").open("a") as index:
        index.write("\n" + toctree("Pages", names))

    here = {path.relative_to(source).with_suffix("").as_posix() for path in found.values()}
    decisions = sorted(name for name in here if name.startswith("decisions/") and not name.endswith("README"))
    with (source / "decisions" / "README.md").open("a") as index:
        index.write("\n" + toctree("Decisions", [name.removeprefix("decisions/") for name in decisions]))
    more = sorted(here - listed - set(decisions))
    with (source / "index.md").open("a") as index:
        for caption, pages in {
            "Start": START,
            "Guides": GUIDES + more,
            "Reference": ["errors", "api/index", "reference"],
            "For contributors": CONTRIBUTORS,
        }.items():
            index.write("\n" + toctree(caption, [p for p in pages if p in here or p.startswith("api/")]))


def main() -> int:
    os.environ["DEVTENSOR_CUDA"] = "sim:2"
    target = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "site").resolve()
    source = target / "source"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    stage(source)
    from sphinx.cmd.build import main as sphinx

    options = ["-W", "--keep-going", "-q", "-j", "auto", "-d", str(target / "doctrees"), "-b", "html"]
    result = sphinx([*options, str(source), str(target / "html")])
    if result == 0:
        print(f"{len(list((target / 'html').rglob('*.html')))} pages: {target / 'html' / 'index.html'}")
    return result


if __name__ == "__main__":
    sys.exit(main())
