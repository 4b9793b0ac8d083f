"""python -m devtensor run: a script as it is, on simulated devices or with devtensor in the place of PyTorch."""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib.util
import linecache
import os
import runpy
import sys
import traceback
import types
from collections.abc import Iterator
from typing import Any

import devtensor
from devtensor import _C, _transfers

_STDIN = "<stdin>"

# What `import torch.x` may ask for, and where devtensor has it.
_MODULES = {
    "torch.amp": "amp",
    "torch.autograd": "autograd",
    "torch.autograd.function": "autograd.function",
    "torch.cuda": "cuda",
    "torch.cuda.amp": "cuda.amp",
    "torch.distributions": "distributions",
    "torch.distributions.bernoulli": "distributions.bernoulli",
    "torch.distributions.categorical": "distributions.categorical",
    "torch.distributions.constraints": "distributions.constraints",
    "torch.distributions.distribution": "distributions.distribution",
    "torch.distributions.exponential": "distributions.exponential",
    "torch.distributions.independent": "distributions.independent",
    "torch.distributions.kl": "distributions.kl",
    "torch.distributions.laplace": "distributions.laplace",
    "torch.distributions.normal": "distributions.normal",
    "torch.distributions.uniform": "distributions.uniform",
    "torch.nn": "nn",
    "torch.nn.functional": "nn.functional",
    "torch.nn.init": "nn.init",
    "torch.nn.modules": "nn",
    "torch.nn.modules.activation": "nn",
    "torch.nn.modules.batchnorm": "nn.norm",
    "torch.nn.modules.container": "nn.container",
    "torch.nn.modules.conv": "nn.conv",
    "torch.nn.modules.dropout": "nn.dropout",
    "torch.nn.modules.instancenorm": "nn.normalization",
    "torch.nn.modules.linear": "nn.layers",
    "torch.nn.modules.loss": "nn.loss",
    "torch.nn.modules.module": "nn.module",
    "torch.nn.modules.normalization": "nn",
    "torch.nn.modules.distance": "nn.distance",
    "torch.nn.modules.rnn": "nn.rnn",
    "torch.nn.parameter": "nn",
    "torch.nn.utils": "nn.utils",
    "torch.nn.utils.rnn": "nn.utils.rnn",
    "torch.optim": "optim",
    "torch.optim.lr_scheduler": "optim.lr_scheduler",
    "torch.optim.optimizer": "optim.optimizer",
    "torch.utils": "utils",
    "torch.utils.checkpoint": "utils.checkpoint",
    "torch.utils.data": "utils.data",
    "torch.utils.data.dataloader": "data.loader",
    "torch.utils.data.dataset": "data.dataset",
    "torch.utils.data.sampler": "data.sampler",
    "torch.testing": "testing",
}


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(prog="python -m devtensor run", description="Runs a script as it is.")
    p.add_argument("--simulate", type=int, metavar="N", help="CUDA is simulated by N devices")
    p.add_argument("--as-torch", action="store_true", help="import torch means devtensor inside of the script")
    p.add_argument("--no-report", action="store_true", help="say nothing of transfers at the end")
    p.add_argument("script", help="a file, a folder with __main__.py, or - for standard input")
    p.add_argument("arguments", nargs=argparse.REMAINDER, help="those of the script")
    return p


def run(argv: list[str]) -> int:
    """Run a script as __main__. The exit code is 0, or what the script gives to sys.exit; its errors are its own."""
    try:
        options = parser().parse_args(argv)
    except SystemExit as end:
        return 2 if end.code else 0
    if options.simulate is not None:
        if options.simulate < 1:
            print("--simulate takes a number of devices", file=sys.stderr)
            return 2
        devtensor.testing.simulate_cuda(options.simulate)
    source = sys.stdin.buffer.read() if options.script == "-" else None
    script = _main_file(options.script) if source is None else options.script
    if script is None:
        return 2
    sys.argv = [options.script, *options.arguments]
    sys.path[0] = "" if source is not None else os.path.dirname(os.path.abspath(script))
    if options.as_torch:
        install_torch()
    totals = _transfers.Totals()
    stop_watching = None if options.no_report else _transfers.watch(totals.add)
    try:
        if source is None:
            runpy.run_path(options.script, run_name="__main__")
        else:
            _run_source(source)
    finally:
        if stop_watching is not None:
            stop_watching()
            with contextlib.suppress(Exception):  # what the script raised is what counts
                print(f"\n{end_report(totals)}", file=sys.stderr)
        lacking = missing_names(script, source) if options.as_torch else []
        if lacking:
            print(f"\ndevtensor has no {', '.join(f'{name} ({place})' for name, place in lacking)}", file=sys.stderr)
    return 0


def _main_file(script: str) -> str | None:
    """The script itself, or a folder's __main__.py; None where that is told not to be there."""
    try:
        os.stat(script)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        print(f"python -m devtensor run: cannot open {script!r}: {reason}", file=sys.stderr)
        return None
    if not os.path.isdir(script):
        return script
    found = os.path.join(os.path.abspath(script), "__main__.py")
    if os.path.isfile(found):
        return found
    example = os.path.join(script, "train.py")
    print(
        f"python -m devtensor run: {script!r} is a folder without __main__.py; pass a file, such as {example!r}",
        file=sys.stderr,
    )
    return None


def _run_source(source: bytes) -> None:
    """Standard input as __main__, whose lines errors and tracebacks show as they do those of a file."""
    try:
        text = importlib.util.decode_source(source)
    except (SyntaxError, UnicodeDecodeError):
        text = ""  # compile() says what is wrong
    linecache.cache[_STDIN] = (len(text), None, text.splitlines(keepends=True), _STDIN)
    if sys.excepthook is sys.__excepthook__:  # which looks for a file
        sys.excepthook = traceback.print_exception
    main = types.ModuleType("__main__")
    before = sys.modules["__main__"]
    sys.modules["__main__"] = main
    try:
        exec(compile(source, _STDIN, "exec"), vars(main))
    finally:
        sys.modules["__main__"] = before


def end_report(totals: _transfers.Totals) -> str:
    """What a script did between devices: the devices, the lines with transfers, the round trips."""
    launches = _C.counters()["launches"]
    used = []
    if totals.lines() or launches:
        for i in range(devtensor.cuda.device_count()):
            peak = devtensor.cuda.max_memory_allocated(i)
            if peak:
                used.append(f"cuda:{i} (at most {_transfers.size_text(peak)})")
    kind = "simulated " if used and devtensor.cuda.is_simulated() else ""
    first = f"{kind}devices used: {', '.join(used)}; {launches} launches" if used else "devices used: cpu"
    return f"devtensor: {first}\n{_transfers.report(totals)}"


# ---------------------------------------------------------------- devtensor in the place of PyTorch


def install_torch() -> None:
    """From now on `import torch` gives devtensor."""
    sys.modules["torch"] = devtensor
    for name, ours in _MODULES.items():
        module = _find(f"devtensor.{ours}")
        if module is not None:
            sys.modules[name] = module
            parent, _, last = name.rpartition(".")
            if not hasattr(sys.modules[parent], last):  # for `import torch.nn.parameter as p` and torch.nn.parameter.x
                setattr(sys.modules[parent], last, module)


def _find(name: str) -> types.ModuleType | None:
    if name in sys.modules:
        return sys.modules[name]
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None


# ---------------------------------------------------------------- what a script asks for


def missing_names(path: str, source: bytes | None = None) -> list[tuple[str, str]]:
    """The names of PyTorch that devtensor lacks, in a script and in the files beside it that it imports.

    Each comes with the place where it stands first: "line 3", "model.py:12". source is the text of what is no file.
    """
    first: dict[str, str] = {}
    files = [path]
    for file in files:  # grows
        tree = _tree(_read(file) if source is None or file != path else source)
        files += [beside for beside in _imported(tree, os.path.dirname(path)) if beside not in files]
        for line, name in sorted((line, name) for name, line in _used(tree)):
            lacking = _lacking(name)
            if lacking is not None:
                first.setdefault(lacking, f"line {line}" if file == path else f"{os.path.basename(file)}:{line}")
    return list(first.items())


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _tree(source: bytes) -> ast.AST:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError):
        return ast.Module([], [])


def _imported(tree: ast.AST, folder: str) -> Iterator[str]:
    """The files of a folder, and of packages in it, that are imported by their full names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            base = os.path.join(folder, *name.split("."))
            yield from (file for file in (f"{base}.py", os.path.join(base, "__init__.py")) if os.path.isfile(file))


def _used(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """("torch.nn.Linear", line) for every dotted name below torch."""
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == "torch":
                    known[alias.asname or "torch"] = alias.name if alias.asname else "torch"
                    yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").partition(".")[0] == "torch":
            for alias in node.names:
                if alias.name != "*":
                    known[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                    yield f"{node.module}.{alias.name}", node.lineno
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            dotted = _dotted(node)
            head, _, rest = dotted.partition(".")
            if rest and head in known:
                yield f"{known[head]}.{rest}", node.lineno


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    before = _dotted(node.value) if isinstance(node, ast.Attribute) else ""
    return f"{before}.{node.attr}" if before and isinstance(node, ast.Attribute) else ""


def _lacking(name: str) -> str | None:
    """The shortest part of a dotted name that is not there, or None."""
    found: Any = sys.modules.get("torch")
    parts = name.split(".")
    for i, part in enumerate(parts[1:], 2):
        module = sys.modules.get(".".join(parts[:i]))
        try:
            found = module if module is not None else getattr(found, part)
        except Exception:
            return ".".join(parts[:i])
        if i > 1 and not isinstance(found, types.ModuleType):
            return None  # what hangs on classes and values is seen when it is used
    return None
