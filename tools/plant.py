"""Mutation testing: small changes of one source file, each of which a test should notice. What survives is printed.

    python tools/plant.py csrc/cuda/streams/order.c               the tests of its room
    python tools/plant.py FILE --tests "cuda_order pending"       tests/*/test_cuda_order.py and test_pending.py
    python tools/plant.py FILE --count 20 --seed 3 --list         what would be planted
    python tools/plant.py FILE --kind dropped --work FOLDER       one kind; where the copy and its build are kept

A change is one of: another relation (< for <=, == for !=), && for ||, a constant that is one off, + for -, a `!` or
`not` that is gone, a call that is left out (dropped: of release, wait, order, note, written and their kin), two
arguments exchanged. A copy of the checkout is changed, built and runs the quick rows of the tests, until one fails. A
change that does not compile is none. The score counts the others; those that survive and change nothing are for the
reader to see.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import re
import sys
import tempfile
import time
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from planted import ROOT, Copy

# The tests that a developer would run, by how the file's name begins; the longest that fits.
COVER = {
    "csrc/core": "ops views edges out errors",
    "csrc/core/memory": "ops lifetime alloc_failures",
    "csrc/core/layout": "views strided ops edges",
    "csrc/core/check": "errors bad_input error_operands edges",
    "csrc/core/grad": "gradients gradient_mistakes leaks",
    "csrc/cpu": "cpu_loops cpu_products cpu_memory ops",
    "csrc/cpu/threads.c": "threads threads_many cpu_loops",
    "csrc/cuda": "cuda_memory cuda_steady_state transfer cuda_faults",
    "csrc/cuda/streams": "cuda_order cuda_streams races",
    "csrc/cuda/memory": "cuda_memory pending transfer races cuda_order several_gpus",
    "csrc/cuda/launch": "ops raw_kernel late_indices cuda_faults",
    "csrc/cuda/conv": "cuda_conv2d cuda_plans cuda_weights cuda_conv_operands",
    "csrc/cuda/matmul": "cuda_matmul cuda_batches cuda_dot",
    "csrc/kernels": "ops kernels select scatter_add",
    "csrc/sim": "conformance races cuda_order sim_settings raw_kernel",
    "csrc/py": "ops index numpy errors leaks",
    "csrc/py/cuda": "cuda_streams cuda_faults cuda_memory raw_kernel races",
    "python/devtensor": "ops errors nn_functional",
    "python/devtensor/_composed": "torch_samples parameters error_operands",
    "python/devtensor/nn": "nn_module nn_layers nn_functional",
    "python/devtensor/data": "data data_workers",
    "python/devtensor/_diagnosis": "diagnosis_fixes diagnosis_notes diagnosis_expressions",
    "python/devtensor/optim": "optim",
}
DROPPED = re.compile(r"release|wait|order|note|written|settle|join|clear|mark|follow")
RELATIONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
OTHERS = {"&&": "||", "||": "&&", "+": "-", "-": "+", "and": "or", "or": "and", "True": "False", "False": "True"}


@dataclass(frozen=True)
class Change:
    kind: str
    begin: int
    end: int
    new: str

    def applied(self, text: str) -> str:
        return text[: self.begin] + self.new + text[self.end :]

    def shown(self, text: str) -> str:
        """The line, before and after."""
        start, stop = text.rfind("\n", 0, self.begin) + 1, text.find("\n", self.end)
        line = text.count("\n", 0, self.begin) + 1
        after = text[start : self.begin] + self.new + text[self.end : stop]
        return f"{line}: {' '.join(text[start:stop].split())}  ->  {' '.join(after.split())}"


def code_of_c(text: str) -> str:
    """The text with comments, strings, characters and lines of the preprocessor blanked."""
    pattern = r"/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|^[ \t]*#(?:\\\n|[^\n])*"
    return re.sub(pattern, lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.DOTALL | re.MULTILINE)


def code_of_python(text: str) -> str:
    """The same for comments, strings, annotations of parameters left as they are."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    kept = list(text)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.STRING, tokenize.COMMENT):
            begin, end = (starts[row - 1] + column for row, column in (token.start, token.end))
            kept[begin:end] = [c if c == "\n" else " " for c in text[begin:end]]
    return "".join(kept)


def changes(path: Path, text: str) -> Iterator[Change]:
    python = path.suffix == ".py"
    code = code_of_python(text) if python else code_of_c(text)
    for m in re.finditer(r"(?<=[\w)\]] )(<=|>=|==|!=|<|>)(?= [\w(*&!\-])", code):
        yield Change("relation", *m.span(), RELATIONS[m[0]])
    for m in re.finditer(r"(?<=[\w)\]] )(&&|\|\||\+|-|and|or)(?= )|\b(True|False)\b", code):
        yield Change("operator", *m.span(), OTHERS[m[0]])
    for m in re.finditer(r"(?<![\w.])\d+(?![\w.])", code):
        yield Change("constant", *m.span(), "1" if m[0] == "0" else "0" if m[0] == "1" else str(int(m[0]) + 1))
    for m in re.finditer(r"\bnot (?!in\b)|(?<=[(\s])!(?=[\w(])", code):
        yield Change("negation", *m.span(), "")
    call = r"^([ \t]+)((?:DT_TRY\(|CUDA_TRY\(|\(void\)!?)?(?:\w+[.])*\w+\([^;{}\n]*\))" + ("$" if python else ";$")
    for m in re.finditer(call, code, re.MULTILINE):
        if not re.match(r"(if|while|for|switch|return|raise|assert|yield|sizeof|.*unlock|.*\block)\b", m[2]):
            kind = "dropped" if DROPPED.search(m[2]) else "call"
            yield Change(kind, m.start(2), m.end(2), "pass" if python else "(void)0")
    for m in re.finditer(r"(?<=\w\()([a-z]\w*), ([a-z]\w*)(?=[,)])", code):
        if m[1] != m[2]:
            yield Change("exchanged", *m.span(), f"{m[2]}, {m[1]}")


def tests_of(name: str) -> str:
    return COVER[max((begin for begin in COVER if name.startswith(begin)), key=len, default="csrc/core")]


def choose(found: list[Change], count: int, seed: int) -> list[Change]:
    """Of each kind about as many."""
    rng = random.Random(seed)
    kinds: dict[str, list[Change]] = {}
    for change in found:
        kinds.setdefault(change.kind, []).append(change)
    for group in kinds.values():
        rng.shuffle(group)
    chosen: list[Change] = []
    while len(chosen) < min(count, len(found)):
        chosen += [group.pop() for group in kinds.values() if group]
    return sorted(chosen[:count], key=lambda change: change.begin)


def plant(path: Path, wanted: list[Change], copy: Copy, tests: str) -> dict[str, int]:
    target, text = copy.root / path, (copy.root / path).read_text()
    files = [str(f) for name in tests.split() for f in sorted(copy.root.glob(f"tests/*/test_{name}.py"))]
    options = [*files, "-m", "not whole"]
    native = path.suffix != ".py"
    if not copy.build() or (reason := copy.failure(*options)) is not None:
        raise SystemExit(f"the checkout fails as it is: {reason}")
    counts = {"killed": 0, "survived": 0, "no change": 0}
    for change in wanted:
        began = time.monotonic()
        target.write_text(change.applied(text))
        try:
            built = copy.build(strict=True) if native else True
            test = copy.failure(*options) if built else None
        finally:
            target.write_text(text)
        result = "no change" if not built else "survived" if test is None else "killed"
        counts[result] += 1
        spent = f"[{test or ''}] {time.monotonic() - began:.0f} s"
        print(f"{result:9} {change.kind:9} {path}:{change.shown(text)}  {spent}", flush=True)
    if native:
        copy.build()
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="+", type=Path)
    parser.add_argument("--tests", help="names of test files, without test_ and .py; those of the room by default")
    parser.add_argument("--count", type=int, default=20, help="changes of a file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", help="only this kind of change")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    chosen = {}
    for path in options.file:
        path = path.resolve().relative_to(ROOT) if path.is_absolute() else path
        text = (ROOT / path).read_text()
        found = [c for c in changes(path, text) if options.kind in (None, c.kind) and c.applied(text) != text]
        chosen[path] = choose(found, options.count, options.seed)
        if options.list:
            for change in chosen[path]:
                print(f"{change.kind:9} {path}:{change.shown(text)}")
    if options.list:
        return
    with tempfile.TemporaryDirectory() as own:
        copy = Copy(options.work or Path(own))
        total = {path: plant(path, some, copy, options.tests or tests_of(str(path))) for path, some in chosen.items()}
    print(json.dumps({str(path): counts for path, counts in total.items()}))
    killed, survived = (sum(counts[key] for counts in total.values()) for key in ("killed", "survived"))
    print(f"{killed} of {killed + survived} killed")


if __name__ == "__main__":
    main()
