"""Plants bugs, one at a time, and says which of them the quick suite finds.

    python tools/checks/planted.py [NAME ...]
    python tools/checks/planted.py --list          what is planted
    python tools/checks/planted.py --work FOLDER   where the copy and its build are (kept; a temporary folder)

Each bug is a change of one text that the sources have once. A copy of the checkout is changed and built, and runs the
quick rows of the files that concern the bug, then the quick suite, until a test fails. Where none does, it runs those
files whole: what they find is what the quick suite misses.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("csrc", "python/devtensor")
MISFITS = "incompatible-pointer-types|int-conversion|discarded-qualifiers"
LIMIT = 900  # seconds: a bug may hang


@dataclass(frozen=True)
class Bug:
    name: str
    files: str  # of tests, which concern it
    old: str
    new: str


BUGS = [
    # core
    Bug("an operand that overlaps the target from below", "ops views bad_input",
        "return a0 < b1 && b0 < a1;", "return a0 < b0 && b0 < a1;"),
    Bug("a 0-dim operand of the same category decides the dtype", "ops numpy",
        "(a->ndim == 0 ? ca : cb) > (a->ndim == 0 ? cb : ca)", "(a->ndim == 0 ? ca : cb) >= (a->ndim == 0 ? cb : ca)"),
    Bug("beta of a product is taken for 1", "ops edges",
        "params = {alpha, beta, DT_ACTIVATION_NONE};", "params = {alpha, 1.0, DT_ACTIVATION_NONE};"),
    Bug("a batch of one steps to the next matrix", "ops cpu_products",
        "is_matrix || x->shape[d - lead] == out->shape[d]",
        "true"),
    Bug("ceil_mode leaves out a window that begins in the last pixel", "ops nn_functional",
        "*out <= (size + p->padding[i] - 1) / stride", "*out < (size + p->padding[i] - 1) / stride"),
    Bug("the last block of draws is drawn again", "random", "return ((uint64_t)n + lanes - 1) / lanes;",
        "return (uint64_t)n / lanes;"),
    Bug("dimensions merge though the target jumps", "ops select views", "merges = strides[k][n - 1] ==",
        "merges = k == 0 || strides[k][n - 1] =="),
    Bug("the diagonal stays in its column", "create", "all->strides[a] + all->strides[b];", "all->strides[a];"),
    Bug("the dtype of the wrong operand in the sentence", "errors error_operands",
        "*a = dt_dtypes[first->array->dtype].name, *b = dt_dtypes[second->array->dtype].name;",
        "*a = dt_dtypes[second->array->dtype].name, *b = dt_dtypes[first->array->dtype].name;"),
    # cpu
    Bug("a half that broadcasts is read on", "ops cpu_loops", "steps[j] = strides[j] != 0;", "steps[j] = 1;"),
    Bug("a transposed copy writes behind its last row", "cpu_loops transfer",
        "const int64_t row = CPU_MIN(i, rows - count); ", "const int64_t row = i;                           "),
    Bug("argmax of a merged view tells the place in memory", "ops",
        "op != DT_REDUCE_argmax && op != DT_REDUCE_argmin),", "op != DT_REDUCE_argmax),"),
    Bug("a reduction of two chunks combines the first alone", "cpu_loops ops",
        "for (int64_t chunk = 1; chunk < job->nchunks; chunk++)",
        "for (int64_t chunk = 2; chunk < job->nchunks; chunk++)"),
    Bug("the transposed product takes its bias by columns", "cpu_products ops nn_functional",
        "t.bias_row = g->bias_column;", "t.bias_row = g->bias_row;"),
    Bug("groups of a convolution share the first one's bias", "ops cpu_products nn_functional",
        ".bias_group = bias ? outputs * bias->strides[0] : 0,", ".bias_group = 0,"),
    # kernels
    Bug("an index below zero does not wrap on the GPU", "select", "(index < 0 && by->wraps ? size : 0)", "0"),
    Bug("argmax of equal elements tells a later one", "kernels ops",
        "if (before || (!after && b->at < a->at)) {   ", "if (before || (!after && b->at > a->at)) {   "),
    Bug("the last part of a long row is left out", "kernels cuda_memory",
        "split == splits - 1 ? a.inner.numel : begin + a.chunk;",
        "begin + a.chunk > a.inner.numel ? begin : begin + a.chunk;"),
    Bug("the rest of a flat range begins one tile late", "kernels ops cast",
        "const int64_t flat_ = a_.tiles * (depth_", "const int64_t flat_ = (a_.tiles + (a_.tiles > 8)) * (depth_"),
    # cuda
    Bug("a writer does not wait for the first reader", "cuda_order cuda_streams",
        "for (unsigned i = 0; i < usage->nread; i++) {\n        DT_TRY(cuda_wait_for(",
        "for (unsigned i = 1; i < usage->nread; i++) {\n        DT_TRY(cuda_wait_for("),
    Bug("blocks of a size class are a step too small", "cuda_memory", "*size = ((step + 1) << shift) * GRANULE;",
        "*size = (step << shift) * GRANULE;"),
    Bug("vectors go over the end of a row", "kernels ops", "(last > 0 && walk->shape[last] % width != 0)", "false"),
    Bug("a fetch into page-locked memory does not wait", "transfer pending",
        "return non_blocking ? DT_OK : dt_settle(dst, DT_READ, err);", "return DT_OK;"),
    Bug("the latest wrong index is told, not the earliest", "late_indices",
        "found.launch == 0 || launch < found.launch", "found.launch == 0 || launch > found.launch"),
    # sim
    Bug("the simulated GPU reads pageable memory late", "transfer conformance",
        "if (!sim_is_pinned(source, nbytes)) {\n        item.what", "if (nbytes > 65536) {\n        item.what"),
    Bug("a simulated stream does not wait for an event", "cuda_order cuda_streams conformance",
        "return reach(item->point);", "return CUDA_SUCCESS;"),
    # py
    Bug("sub of ints adds alpha", "ops", "params.i[0] = (int64_t)(0 - (uint64_t)alpha.i);", "params.i[0] = alpha.i;"),
    Bug("a refused capsule is lost", "dlpack_cuda",
        "(void)PyCapsule_SetName(capsule, name);", "(void)name;"),
    Bug("__dlpack_device__'s answer is never freed", "dlpack leaks lifetime",
        "Py_XDECREF(method);\n    Py_XDECREF(pair);", "Py_XDECREF(method);"),
    Bug("an ellipsis before a mask counts one dimension too few", "select",
        "dimension += x->ndim - used;", "dimension += x->ndim - used - 1;"),
    # python
    Bug("batches that are dropped are counted", "data",
        "return count // self.batch_size if self.drop_last else -(-count // self.batch_size)\n\n\ndef",
        "return -(-count // self.batch_size)\n\n\ndef"),
    Bug("the header of a file is not aligned", "save_load files", 'text += b" " * (-len(text) % 8)', "pass"),
    Bug("the mean of all batches counts one more", "nn_layers nn_module nn_torch", "momentum = 1.0 / int(count)",
        "momentum = 1.0 / (int(count) + 1)"),
    Bug("a parameter that stands twice becomes two", "nn_module", "if id(old) not in done:", "if True:"),
    Bug("the commonest dtype is not preferred", "diagnosis_fixes diagnosis_catalogue",
        "(counts[value], preferred(value))", "(preferred(value), counts[value])"),
]  # fmt: skip


def holders(text: str, root: Path) -> list[Path]:
    """The source files that have text."""
    kinds = {".c", ".h", ".inc", ".cu", ".py", ".def"}
    files = (path for folder in SOURCES for path in sorted((root / folder).rglob("*")) if path.suffix in kinds)
    return [path for path in files for _ in range(path.read_text().count(text))]


class Copy:
    """A checkout of its own, built in place; only folder is brought up to date."""

    def __init__(self, work: Path, folder: str = ".") -> None:
        self.root = work / "checkout"
        self.root.mkdir(parents=True, exist_ok=True)
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard", folder], cwd=ROOT, capture_output=True, text=True
        )
        for name in listed.stdout.splitlines():
            source, target = ROOT / name, self.root / name
            if source.exists() and not (target.exists() and target.read_bytes() == source.read_bytes()):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, target)  # what was changed here is newer than what was built of it
        path = os.pathsep.join([str(self.root / "python"), *filter(None, [os.environ.get("PYTHONPATH")])])
        self.env = os.environ | {"PYTHONPATH": path, "DEVTENSOR_BUILD_CUDA": "0"}
        self.env |= {"PYTHONDONTWRITEBYTECODE": "1"}

    def build(self, strict: bool = False) -> bool:
        """Whether it compiles; strict: without a word, and without pointers that do not fit."""
        command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace", "--build-temp", ".objects"]
        done = subprocess.run(command, cwd=self.root, env=self.env, capture_output=True, text=True)
        if done.returncode != 0 and not strict:
            print(done.stderr[-2000:])
        return done.returncode == 0 and not (strict and re.search(MISFITS, done.stderr))

    def failure(self, *options: str) -> str | None:
        """The first test that fails, if any."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *options]
        try:
            done = subprocess.run(command, cwd=self.root, env=self.env, capture_output=True, text=True, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            return "a hang"
        failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
        if done.returncode == 0:
            return None
        return failed[0].split()[1] if failed else f"the process ended with {done.returncode}"


def examine(bug: Bug, copy: Copy) -> tuple[str, str]:
    """Who finds the bug, and by which test."""
    (path,) = holders(bug.old, copy.root)
    before = path.read_text()
    files = [str(file) for name in bug.files.split() for file in copy.root.glob(f"tests/*/test_{name}.py")]
    path.write_text(before.replace(bug.old, bug.new))
    try:
        if not copy.build():
            return "nobody: it does not compile", ""
        for found, options in (
            ("quick", [*files, "-m", "not whole"]),
            ("quick", []),
            ("whole", [*files, "-m", ""]),
        ):
            test = copy.failure(*options)
            if test is not None:
                return found, test
        return "nobody", ""
    finally:
        path.write_text(before)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="*", help="a part of a bug's name")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    bugs = [bug for bug in BUGS if not options.name or any(name in bug.name for name in options.name)]
    if options.list:
        for bug in bugs:
            print(f"{bug.name}: {', '.join(str(path.relative_to(ROOT)) for path in holders(bug.old, ROOT))}")
        return
    with tempfile.TemporaryDirectory() as own:
        plant(bugs, Copy(options.work or Path(own)))


def plant(bugs: list[Bug], copy: Copy) -> None:
    counts = {"quick": 0, "whole": 0}
    for bug in bugs:
        found, test = examine(bug, copy)
        counts[found] = counts.get(found, 0) + 1
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"{bug.name} | {found} | {test} | {used.ru_utime + used.ru_stime:.0f} s so far", flush=True)
    print(
        f"the quick suite finds {counts['quick']} of the {counts['quick'] + counts['whole']} that the whole one finds"
    )


if __name__ == "__main__":
    main()
