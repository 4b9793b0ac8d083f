"""python -m devtensor run: a script as it is, on simulated devices or with devtensor in the place of PyTorch."""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib.abc
import importlib.machinery
import importlib.util
import linecache
import os
import re
import runpy
import sys
import traceback
import types
from collections.abc import Callable
from typing import NamedTuple

import devtensor
from devtensor import _C, _transfers
from devtensor._as_torch import install
from devtensor._as_torch.install import install_torch, modules_of_torch
from devtensor._as_torch.missing import file_of_module, lacking, not_python, sentence
from devtensor._diagnosis import report

_STDIN = "<stdin>"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Runs a script as it is, and lists its transfers at the end."
    add = parser.add_argument
    add("--simulate", type=int, metavar="N", help="CUDA is simulated by N devices")
    add("--as-torch", action="store_true", help="import torch means devtensor inside of the script")
    add("--torch", action="store_true", help="with the PyTorch that is installed, whose errors are explained")
    add("--origins", action="store_true", help="with --torch: record which line made each tensor")
    add("--check", action="store_true", help="run nothing: list what the script asks of torch in vain")
    add("--no-report", action="store_true", help="say nothing of transfers at the end")
    add("-m", dest="is_module", action="store_true", help="the script is a module, given by its name")
    add("script", help="a file, a folder with __main__.py, or - for standard input")
    add("arguments", nargs=argparse.REMAINDER, help="those of the script")


def _problem(options: argparse.Namespace) -> str | None:
    """What is wrong with the options together."""
    if options.torch and (options.as_torch or options.check or options.simulate is not None):
        return "--torch is for PyTorch itself: not with --as-torch, --check or --simulate"
    if options.origins and not options.torch:
        return "--origins is for --torch"
    if options.simulate is not None and options.simulate < 1:
        return "--simulate takes a number of devices"
    return None


def run(options: argparse.Namespace) -> int:
    """Run a script as __main__. The exit code is 0, or what the script gives to sys.exit; its errors are its own.

    With --check it is read and not run; the exit code is 1 where something is missing.
    """
    if problem := _problem(options):
        print(f"python -m devtensor run: {problem}", file=sys.stderr)
        return 2
    if options.simulate is not None:
        devtensor.testing.simulate_cuda(options.simulate)
        os.environ["DEVTENSOR_CUDA"] = f"sim:{options.simulate}"  # for the processes that the script starts
    if options.as_torch or options.check:
        install_torch()  # before anything of the program can be imported
    program = _program(options)
    if program is None:
        return 2
    sys.argv = program.argv
    sys.path[0] = program.folder
    if options.check:
        return _check(program)
    if options.torch:
        return _run_torch(program, options.origins)
    totals = _transfers.Totals()
    stop_watching = None if options.no_report else _transfers.watch(totals.add)
    training = None if options.no_report else report.start()
    failed = kept = None
    try:
        kept = program.run()  # its variables are still there when the report is made
    except Exception as error:
        failed = error
    finally:
        if stop_watching is not None:
            stop_watching()
            with contextlib.suppress(Exception):  # what the script raised is what counts
                print(f"\n{end_report(totals)}", file=sys.stderr)
                for line in training.lines() if training is not None else ():
                    print(f"training: {line}", file=sys.stderr)
            report.stop()
            del kept
    if failed is None:
        return 0
    _show(failed)
    if options.as_torch:
        lacks = _lacking(program, failed)
        print("".join(f"\n{lack}" for lack in lacks), file=sys.stderr, end="\n" if lacks else "")
    return 1


def _run_torch(program: Program, origins: bool) -> int:
    """The script with PyTorch itself: its output and its exit code are its own, its errors have our notes."""
    try:
        explained = devtensor.explain_torch(origins)
    except ImportError as error:
        print(f"python -m devtensor run --torch --origins: {error}", file=sys.stderr)
        return 2
    try:
        with explained:
            program.run()
            return 0
    except Exception as error:
        _show(error)
        return 1


class Program(NamedTuple):
    """What is run: its file ("-" for standard input), how, its arguments, the first entry of sys.path."""

    path: str
    source: bytes | None
    argv: list[str]
    folder: str
    run: Callable[[], object]


def _program(options: argparse.Namespace) -> Program | None:
    """None where there is no such program, which is then told."""
    if options.is_module:
        name = options.script
        sys.path[0] = os.getcwd()
        file = file_of_module(name)
        if file is None:
            print(f"python -m devtensor run: no module named {name!r} that can be run", file=sys.stderr)
            return None
        run = functools.partial(runpy.run_module, name, run_name="__main__", alter_sys=True)
        return Program(file, None, [file, *options.arguments], os.getcwd(), run)
    argv = [options.script, *options.arguments]
    if options.script == "-":
        source = sys.stdin.buffer.read()
        return Program("-", source, argv, "", functools.partial(_run_source, source))
    script = _main_file(options.script)
    if script is None:
        return None
    folder = os.path.dirname(os.path.abspath(script))
    return Program(script, None, argv, folder, lambda: runpy.run_path(options.script, run_name="__main__"))


def _check(program: Program) -> int:
    """Tells what is missing before anything runs; what is no Python, as Python does."""
    errors = not_python(program.path, program.source, program.folder)
    for error in errors:
        print("".join(traceback.format_exception_only(error)), end="", file=sys.stderr)
    if errors:
        return 1
    found = lacking(program.path, program.source, program.folder)
    for lack in found:
        print(lack)
    if not found:
        print("nothing is missing that can be seen without running it")
    return 1 if found else 0


def _show(error: Exception) -> None:
    """The traceback of a program, from its own first line: who runs it is not shown."""
    trace = error.__traceback__
    while trace is not None and _is_runner(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    last = trace
    while last is not None and last.tb_next is not None:
        if last.tb_next.tb_next is None and _is_runner(last.tb_next.tb_frame.f_code.co_filename):
            last.tb_next = None  # where the sentence about a missing name is made
        last = last.tb_next
    error.__traceback__ = trace
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
    sys.excepthook(type(error), error, trace)


def _is_runner(filename: str) -> bool:
    return (
        filename in (__file__, install.__file__)
        or filename in ("<frozen runpy>", runpy.__file__)
        or filename.startswith("<frozen imp")
    )


def _lacking(program: Program, error: Exception) -> list[object]:
    """What is missing; what the error itself asked for comes first."""
    found = lacking(program.path, program.source, program.folder)
    name = _asked(error)
    asked = [lack for lack in found if lack.name == name]
    if name is not None and not asked and name not in str(error):
        return [sentence(name), *found]
    return [*asked, *(lack for lack in found if lack not in asked)]


def _asked(error: BaseException) -> str | None:
    """The name of PyTorch's that an error is about."""
    if isinstance(error, ImportError) and error.name is not None:
        wanted = re.match(r"cannot import name '(\w+)'", str(error))
        module = next((name for name, held in modules_of_torch() if held.__name__ == error.name), error.name)
        return f"{module}.{wanted.group(1)}" if wanted and module.partition(".")[0] == "torch" else None
    if isinstance(error, AttributeError) and error.name and isinstance(error.obj, _C.DeviceArray):
        return f"Tensor.{error.name}"
    return None


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


def _run_source(source: bytes) -> dict[str, object]:
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
    return vars(main)


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
    width, colour = _transfers.of_stream(sys.stderr)
    return f"devtensor: {first}\n{_transfers.report(totals, width=width, colour=colour)}"
