"""Public PyTorch programs with one mistake each: what PyTorch says, and what devtensor.explain_torch adds.

    python tools/programs/public_mistakes.py [--git PATTERN] [--only WORD ...] [--show]

tests/programs/mistakes.toml lists the mistakes, tests/programs/public.toml the programs (public_programs.py fetches
them). Each runs with PyTorch alone, with explain_torch, with origins, and with the proposed fix applied.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LIST = ROOT / "tests" / "programs" / "mistakes.toml"
sys.path[:0] = [str(ROOT / "tools" / "programs")]

import public_programs  # noqa: E402

# In a process for each program: its three runs, as JSON.
RUNS = r"""
import contextlib, io, json, os, runpy, sys, traceback, warnings
warnings.simplefilter("ignore")
import devtensor as dt
path = sys.argv[1]
sys.argv = [path]
sys.path.insert(0, os.path.dirname(os.path.abspath(path)))

def run(path, origins):
    import torch
    torch.manual_seed(0)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            with dt.explain_torch(origins=origins) if origins is not None else contextlib.nullcontext():
                runpy.run_path(path, run_name="__main__")
        except Exception as error:
            found = dt.explanation(error) if origins is not None else None
            notes = list(getattr(error, "__notes__", ()))
            told = found.to_dict() if found is not None else None
            return {"class": type(error).__name__, "sentence": str(error), "notes": notes, "found": told}
    return {"class": "", "sentence": "", "notes": [], "found": None}

said = {"plain": run(path, None), "on": run(path, False), "origins": run(path, True)}

def repaired(text, found, trace_line):
    lines = text.splitlines()
    at = found["fix_at"]
    if at is not None and os.path.abspath(at["file"]) != os.path.abspath(path):
        return None
    i = (at["line"] if at is not None else trace_line) - 1
    if found["fix_how"] == "instead":
        if lines[i].count(found["fix_of"]) != 1:
            return None
        lines[i] = lines[i].replace(found["fix_of"], found["fix"])
    else:
        lines.insert(i, lines[i][: len(lines[i]) - len(lines[i].lstrip())] + found["fix"])
    return "\n".join(lines) + "\n"

def line_of(path):
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            runpy.run_path(path, run_name="__main__")
    except Exception as error:
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == path]
        return lines[-1]

found = said["origins"]["found"]
if found is not None and found["fix"] is not None:
    text = repaired(open(path).read(), found, line_of(path))
    if text is not None:
        open("_fixed.py", "w").write(text)
        said["fixed"] = run("_fixed.py", None)
print(json.dumps(said), file=sys.stderr)
"""


def plant(program: public_programs.Program, mistake: dict[str, Any], checkout: Path) -> tuple[Path, str]:
    """The folder and the script with its mistake."""
    folder, script = public_programs.prepare(program, checkout)
    text = (folder / script).read_text().replace("\r\n", "\n")
    if text.count(mistake["old"]) < 1:
        raise ValueError(f"{program.name}: nothing to replace: {mistake['old']!r}")
    (folder / script).write_text(text.replace(mistake["old"], mistake["new"], 1))
    return folder, script


def run(folder: Path, script: str) -> dict[str, Any]:
    before = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    path = [str(public_programs.STAND_INS), *(os.path.abspath(one) for one in before if one)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "PUBLIC_PROGRAMS": "torch", "MPLBACKEND": "Agg"}
    env |= {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        [sys.executable, "-c", RUNS, script], cwd=folder, env=env, capture_output=True, text=True, errors="replace",
        timeout=public_programs.LIMIT, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    last = done.stderr.strip().splitlines()[-1:] or [""]
    try:
        return json.loads(last[0])  # type: ignore[no-any-return]
    except ValueError:
        raise SystemExit(f"{folder / script}: {done.stderr[-2000:]}") from None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--git", default="https://github.com/{owner}/{name}", metavar="PATTERN")
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD")
    parser.add_argument("--show", action="store_true", help="print what each says")
    options = parser.parse_args()
    programs = {(p.repository, p.path): p for p in public_programs.programs([])}
    counts = dict.fromkeys(
        ("programs", "unchanged", "explained", "variable", "explained with origins", "variable with origins",
         "line of the mistake, with origins", "fix", "fix works"), 0,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as name:
        checkouts: dict[str, Path] = {}
        for mistake in tomllib.loads(LIST.read_text())["mistake"]:
            if options.only and not any(word in f"{mistake['repository']} {mistake['path']}" for word in options.only):
                continue
            program = programs[mistake["repository"], mistake["path"]]
            if program.repository not in checkouts:
                found = public_programs.fetch(program.repository, program.commit, options.git, Path(name))
                checkouts[program.repository] = found
            folder, script = plant(program, mistake, checkouts[program.repository])
            said = run(folder, script)
            plain = said["plain"]
            assert plain["class"], f"{mistake['path']}: PyTorch accepts it"
            line = (folder / script).read_text().partition(mistake["new"])[0].count("\n") + 1
            counts["programs"] += 1
            same = all((said[way]["class"], said[way]["sentence"]) == (plain["class"], plain["sentence"])
                       for way in ("on", "origins"))  # fmt: skip
            counts["unchanged"] += same
            for way, end in (("on", ""), ("origins", " with origins")):
                text = "\n".join(said[way]["notes"])
                counts[f"explained{end}"] += bool(text)
                counts[f"variable{end}"] += mistake["variable"] in text.split() or f" {mistake['variable']} " in text
            text = "\n".join(said["origins"]["notes"])
            counts["line of the mistake, with origins"] += f"{script}:{line}" in text
            found_ = said["origins"]["found"]
            counts["fix"] += found_ is not None and found_["fix"] is not None
            works = "fixed" in said and not said["fixed"]["class"]
            counts["fix works"] += works
            print(f"{mistake['repository']} {mistake['path']}: {mistake['what']}", flush=True)
            if options.show:
                print(f"  {plain['class']}: {plain['sentence'].splitlines()[0]}")
                print("\n".join(f"  {row}" for row in text.splitlines()))
                if "fixed" in said:
                    print(f"  with the fix: {said['fixed']['class'] or 'runs'} {said['fixed']['sentence'][:100]}")
    for what, count in counts.items():
        print(f"{count:4} {what}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
