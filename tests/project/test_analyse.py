"""tools/checks/analyse.py: a report that is not on the list fails, and so does an entry that nothing reports."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support import ROOT

sys.path.insert(0, str(ROOT / "tools" / "checks"))
import analyse

sys.path.pop(0)

CODE = "int\nk(int *p)\n{\n    p = 0;\n    return *p; /* planted */\n}\n"
CHECK = "clang-analyzer-core.NullDereference"
LIST = f"# a comment\n\na/k.c: {CHECK} in k\n    return *p; /* planted */\n    the reason\n"


def output(folder: Path) -> str:
    """What clang-tidy prints of a file with two reports, one of them for two checks."""
    (folder / "a").mkdir(exist_ok=True)
    (folder / "a" / "k.c").write_text(CODE)
    path = folder / "b" / ".." / "a" / "k.c"
    report = (
        f"{path}:5:12: warning: Dereference of null pointer [{CHECK}]\n    5 |     return *p;\n      |  error: no\n"
    )
    return f"{report}{path}:4:5: note: Null pointer value stored\n{path}:4:5: warning: odd [bugprone-x,bugprone-y]\n"


def test_what_is_printed_is_read(tmp_path: Path) -> None:
    first, *others = analyse.reports(output(tmp_path), tmp_path)
    assert first.key == analyse.Key("a/k.c", CHECK, "k", "return *p; /* planted */")
    assert first.place == "a/k.c:5:12" and first.notes.endswith("Null pointer value stored")
    assert [r.key.check for r in others] == ["bugprone-x", "bugprone-y"] and {r.key.code for r in others} == {"p = 0;"}
    assert analyse.errors(output(tmp_path)) == []
    failed = ["a.c:1:10: fatal error: 'x.h' file not found", "b.c:2:3: error: no type", "error: exit status 1"]
    assert analyse.errors("\n".join(["1 warning generated.", *failed])) == failed


def test_a_report_is_on_the_list_or_fails(tmp_path: Path) -> None:
    found = [next(analyse.reports(output(tmp_path), tmp_path))]
    entries = analyse.known(LIST)
    assert list(entries.values()) == ["the reason"]
    assert analyse.judged(found, entries) == []
    (unknown,) = analyse.judged(found, {})
    assert unknown.startswith("not on the list: a/k.c:5:12: Dereference of null pointer")
    (stale,) = analyse.judged([], entries)
    assert stale.startswith("on the list, but nothing reports it: a/k.c")
    assert analyse.judged([], entries, {"a/other.c"}) == [] and analyse.judged([], entries, {"a/k.c"}) == [stale]


@pytest.mark.parametrize(
    "text", [LIST.rpartition("    the")[0], LIST + LIST, LIST.replace("    the", "the"), LIST.replace(": c", " c")]
)
def test_an_entry_has_three_lines_and_stands_there_once(text: str) -> None:
    with pytest.raises(SystemExit):
        analyse.known(text)


def test_an_equal_line_of_another_function_is_not_on_the_list(tmp_path: Path) -> None:
    text = output(tmp_path)
    (tmp_path / "a" / "k.c").write_text(CODE.replace("k(", "other("))
    unknown, stale = analyse.judged([next(analyse.reports(text, tmp_path))], analyse.known(LIST))
    assert unknown.startswith("not on the list") and stale.startswith("on the list, but nothing reports it")


def test_what_is_on_the_list_is_in_the_sources() -> None:
    for key in analyse.known(analyse.KNOWN.read_text()):
        lines = (ROOT / key.file).read_text().splitlines()
        places = [k for k, line in enumerate(lines, 1) if line.strip() == key.code]
        assert key.function in [analyse.function_of(lines, k) for k in places], key


def test_the_files_and_flags_are_those_of_the_build() -> None:
    assert {"-std=c11", "-pthread", "-DNPY_NO_DEPRECATED_API=NPY_1_25_API_VERSION"} <= set(analyse.flags())
    names = {path.relative_to(ROOT / "csrc").as_posix() for path in analyse.sources()}
    assert {"core/array.c", "py/device.c", "sim/arena.c"} <= names and not any("/isa/" in name for name in names)


@pytest.mark.skipif(analyse.program() is None, reason="clang-tidy is not installed")
def test_a_planted_null_pointer_and_a_missing_header_are_seen(tmp_path: Path) -> None:
    tidy = analyse.program()
    assert tidy is not None and analyse.sees(tidy, ["-std=c11"])
    file = tmp_path / "k.c"
    file.write_text('#include "nowhere.h"\n')
    assert "nowhere.h" in analyse.errors(analyse.analyse(tidy, file, ["-std=c11"]))[0]
