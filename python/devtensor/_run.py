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
from typing import Any, NamedTuple

import devtensor
from devtensor import _C, _refusals, _transfers
from devtensor._answers import PRIVATE, TORCH
from devtensor._missing import file_of_module, lacking, not_python, sentence

_STDIN = "<stdin>"

# What `import torch.x` may ask for, and where devtensor has it.
_MODULES = {
    "torch.accelerator": "accelerator",
    "torch.amp": "amp",
    "torch.autograd": "autograd",
    "torch.autograd.function": "autograd.function",
    "torch.autograd.functional": "autograd.functional",
    "torch.cuda": "cuda",
    "torch.cuda.amp": "cuda.amp",
    "torch.distributed": "distributed",
    "torch.distributions": "distributions",
    "torch.distributions.bernoulli": "distributions.bernoulli",
    "torch.distributions.beta": "distributions.gamma",
    "torch.distributions.binomial": "distributions.counts",
    "torch.distributions.categorical": "distributions.categorical",
    "torch.distributions.cauchy": "distributions.cauchy",
    "torch.distributions.chi2": "distributions.gamma",
    "torch.distributions.constraint_registry": "distributions.constraint_registry",
    "torch.distributions.constraints": "distributions.constraints",
    "torch.distributions.dirichlet": "distributions.gamma",
    "torch.distributions.distribution": "distributions.distribution",
    "torch.distributions.exponential": "distributions.exponential",
    "torch.distributions.gamma": "distributions.gamma",
    "torch.distributions.geometric": "distributions.counts",
    "torch.distributions.gumbel": "distributions.extremes",
    "torch.distributions.half_cauchy": "distributions.transformed_distribution",
    "torch.distributions.half_normal": "distributions.transformed_distribution",
    "torch.distributions.independent": "distributions.independent",
    "torch.distributions.kl": "distributions.kl",
    "torch.distributions.laplace": "distributions.laplace",
    "torch.distributions.log_normal": "distributions.transformed_distribution",
    "torch.distributions.mixture_same_family": "distributions.mixture_same_family",
    "torch.distributions.multinomial": "distributions.one_hot_categorical",
    "torch.distributions.multivariate_normal": "distributions.multivariate_normal",
    "torch.distributions.negative_binomial": "distributions.counts",
    "torch.distributions.normal": "distributions.normal",
    "torch.distributions.one_hot_categorical": "distributions.one_hot_categorical",
    "torch.distributions.pareto": "distributions.extremes",
    "torch.distributions.poisson": "distributions.counts",
    "torch.distributions.relaxed_bernoulli": "distributions.relaxed",
    "torch.distributions.relaxed_categorical": "distributions.relaxed",
    "torch.distributions.studentT": "distributions.cauchy",
    "torch.distributions.transformed_distribution": "distributions.transformed_distribution",
    "torch.distributions.transforms": "distributions.transforms",
    "torch.distributions.uniform": "distributions.uniform",
    "torch.distributions.utils": "distributions.utils",
    "torch.distributions.von_mises": "distributions.von_mises",
    "torch.distributions.weibull": "distributions.extremes",
    "torch._C": "_C",
    "torch.backends": "backends",
    **{f"torch.backends.{name}": f"backends.{name}" for name in ("cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp")},
    "torch.hub": "hub",
    "torch.multiprocessing": "multiprocessing",
    "torch.linalg": "linalg",
    "torch.nn": "nn",
    "torch.nn.functional": "nn.functional",
    "torch.nn.init": "nn.init",
    "torch.nn.modules": "nn",
    "torch.nn.modules.activation": "nn",
    "torch.nn.modules.batchnorm": "nn.norm",
    "torch.nn.modules.container": "nn.container",
    "torch.nn.modules.conv": "nn.conv",
    "torch.nn.modules.dropout": "nn.dropout",
    "torch.nn.modules.fold": "nn.fold",
    "torch.nn.modules.padding": "nn.padding",
    "torch.nn.modules.pooling": "nn",
    "torch.nn.modules.pixelshuffle": "nn.fold",
    "torch.nn.modules.upsampling": "nn.upsampling",
    "torch.nn.modules.instancenorm": "nn.normalization",
    "torch.nn.modules.linear": "nn.layers",
    "torch.nn.modules.loss": "nn.loss",
    "torch.nn.modules.module": "nn.module",
    "torch.nn.modules.normalization": "nn",
    "torch.nn.modules.utils": "nn._modules_utils",
    "torch.nn.modules.distance": "nn.distance",
    "torch.nn.modules.rnn": "nn.rnn",
    "torch.nn.parallel": "nn.parallel",
    "torch.nn.parallel.data_parallel": "nn.parallel.data_parallel",
    "torch.nn.parallel.distributed": "nn.parallel.distributed",
    "torch.nn.parallel.parallel_apply": "nn.parallel.parallel_apply",
    "torch.nn.parallel.replicate": "nn.parallel.replicate",
    "torch.nn.parallel.scatter_gather": "nn.parallel.scatter_gather",
    "torch.nn.parameter": "nn",
    "torch.nn.utils": "nn.utils",
    "torch.nn.utils.fusion": "nn.utils.fusion",
    "torch.nn.utils.parametrizations": "nn.utils.parametrizations",
    "torch.nn.utils.parametrize": "nn.utils.parametrize",
    "torch.nn.utils.prune": "nn.utils.prune",
    "torch.nn.utils.rnn": "nn.utils.rnn",
    "torch.optim": "optim",
    "torch.optim.lr_scheduler": "optim.lr_scheduler",
    "torch.optim.optimizer": "optim.optimizer",
    "torch.optim.swa_utils": "optim.swa_utils",
    "torch.serialization": "serialization",
    "torch.random": "random",
    "torch.special": "special",
    "torch.utils": "utils",
    "torch.utils.checkpoint": "utils.checkpoint",
    "torch.utils.data": "utils.data",
    "torch.utils.data._utils": "data",
    "torch.utils.data._utils.collate": "data.collate",
    "torch.utils.data.dataloader": "data.loader",
    "torch.utils.data.dataset": "data.dataset",
    "torch.utils.data.distributed": "data.distributed",
    "torch.utils.data.sampler": "data.sampler",
    "torch.utils.model_zoo": "utils.model_zoo",
    "torch.utils.tensorboard": "utils.tensorboard",
    "torch.utils._pytree": "utils._pytree",
    "torch.utils.tensorboard.writer": "utils.tensorboard",
    "torch.testing": "testing",
    "torch.types": "_torch_types",
    "torch.version": "version",
}
# Where PyTorch keeps what stands in a package of devtensor.
_INSIDE = {
    "amp": "autocast_mode grad_scaler",
    "autograd": "variable",
    "cuda": "memory random streams",
    "cuda.amp": "autocast_mode grad_scaler",
    "multiprocessing": "pool queue reductions spawn",
    "nn": "modules.adaptive modules.channelshuffle modules.flatten modules.lazy modules.sparse modules.transformer",
    "nn.utils": "clip_grad convert_parameters memory_format spectral_norm weight_norm",
    "optim": "adadelta adagrad adam adamax adamw asgd lbfgs nadam radam rmsprop rprop sgd",
}
_MODULES |= {f"torch.{home}.{name}": home for home, names in _INSIDE.items() for name in names.split()}
_MODULES |= {
    "torch.autograd.anomaly_mode": "autograd.anomaly",
    "torch.autograd.grad_mode": "autograd.grad_mode",
    "torch.autograd.gradcheck": "autograd.gradcheck",
    "torch.cpu": "cpu",
    "torch.utils.dlpack": "utils._dlpack",
    "torch.utils.hooks": "nn._hooks",
}


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(prog="python -m devtensor run", description="Runs a script as it is.")
    p.add_argument("--simulate", type=int, metavar="N", help="CUDA is simulated by N devices")
    p.add_argument("--as-torch", action="store_true", help="import torch means devtensor inside of the script")
    p.add_argument("--check", action="store_true", help="run nothing: list what the script asks of torch in vain")
    p.add_argument("--no-report", action="store_true", help="say nothing of transfers at the end")
    p.add_argument("-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE ...", help="run a module instead")
    p.add_argument("script", nargs="?", help="a file, a folder with __main__.py, or - for standard input")
    p.add_argument("arguments", nargs=argparse.REMAINDER, help="those of the script")
    return p


def run(argv: list[str]) -> int:
    """Run a script as __main__. The exit code is 0, or what the script gives to sys.exit; its errors are its own.

    With --check it is read and not run; the exit code is 1 where something is missing.
    """
    arguments = parser()
    try:
        options = arguments.parse_args(argv)
        if options.module == [] or (options.module is None and options.script is None):
            arguments.error("a script or -m MODULE is required")
    except SystemExit as end:
        return 2 if end.code else 0
    if options.simulate is not None:
        if options.simulate < 1:
            print("--simulate takes a number of devices", file=sys.stderr)
            return 2
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
    totals = _transfers.Totals()
    stop_watching = None if options.no_report else _transfers.watch(totals.add)
    failed = None
    try:
        program.run()
    except Exception as error:
        failed = error
    finally:
        if stop_watching is not None:
            stop_watching()
            with contextlib.suppress(Exception):  # what the script raised is what counts
                print(f"\n{end_report(totals)}", file=sys.stderr)
    if failed is None:
        return 0
    _show(failed)
    if options.as_torch:
        lacks = _lacking(program, failed)
        print("".join(f"\n{lack}" for lack in lacks), file=sys.stderr, end="\n" if lacks else "")
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
    if options.module:
        name, *rest = options.module
        sys.path[0] = os.getcwd()
        file = file_of_module(name)
        if file is None:
            print(f"python -m devtensor run: no module named {name!r} that can be run", file=sys.stderr)
            return None
        run = functools.partial(runpy.run_module, name, run_name="__main__", alter_sys=True)
        return Program(file, None, [file, *rest], os.getcwd(), run)
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
    return filename == __file__ or filename in ("<frozen runpy>", runpy.__file__) or filename.startswith("<frozen imp")


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
        module = next((name for name, held in _modules() if held.__name__ == error.name), error.name)
        return f"{module}.{wanted.group(1)}" if wanted and module.partition(".")[0] == "torch" else None
    if isinstance(error, AttributeError) and error.name and isinstance(error.obj, _C.DeviceArray):
        return f"Tensor.{error.name}"
    return None


def _modules() -> list[tuple[str, types.ModuleType]]:
    loaded = [(name, held) for name, held in list(sys.modules.items()) if name.partition(".")[0] == "torch"]
    return [(name, held) for name, held in loaded if isinstance(held, types.ModuleType)]


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


# They register compiled ops of torchvision, which are not loaded, with PyTorch's dispatcher.
_REGISTRATIONS = ("torchvision._autograd_registrations", "torchvision._meta_registrations")


def install_torch() -> None:
    """From now on `import torch` gives devtensor. A real torch that is imported already is left to who holds it."""
    if sys.modules.get("torch") is devtensor:
        return
    for name, _ in _modules():
        del sys.modules[name]
    sys.modules["torch"] = devtensor
    for name, refused in _refusals.modules().items():
        sys.modules[f"torch.{name}"] = refused
    for name, ours in _MODULES.items():
        module = _find(f"devtensor.{ours}")
        if module is not None:
            sys.modules[name] = module
            parent, _, last = name.rpartition(".")
            if not hasattr(sys.modules[parent], last):  # for `import torch.nn.parameter as p` and torch.nn.parameter.x
                setattr(sys.modules[parent], last, module)
    _separate_modules()
    for name, module in _modules():
        own = vars(module).get("__getattr__")
        if not isinstance(own, functools.partial):
            module.__getattr__ = functools.partial(_no_attribute, name, own)  # type: ignore[method-assign]
    vars(_C).update(PRIVATE)
    for name in _REGISTRATIONS:
        sys.modules.setdefault(name, types.ModuleType(name))
    sys.meta_path.insert(0, _NoOthers())


def _separate_modules() -> None:
    """torch.nn.modules has what nn has, and modules of its own under names that nn has for others."""
    modules = types.ModuleType("torch.nn.modules", devtensor.nn.__doc__)
    vars(modules).update({name: getattr(devtensor.nn, name) for name in devtensor.nn.__all__}, __path__=[])
    for name, held in list(sys.modules.items()):
        parent, _, last = name.rpartition(".")
        if parent == "torch.nn.modules":
            setattr(modules, last, held)
    sys.modules["torch.nn.modules"] = modules
    devtensor.nn.modules = modules  # type: ignore[attr-defined]


def _no_attribute(module: str, own: Callable[[str], Any] | None, name: str) -> Any:
    with contextlib.suppress(AttributeError):
        if own is not None:
            return own(name)
    found = f"{module}.{name}"
    if module == "torch" and name in TORCH:
        return TORCH[name]
    below = found.removeprefix("torch.")
    if _refusals.reason(below) is not None:
        return _refusals.find(below)
    text = f"module {module!r} has no attribute {name!r}" if name.startswith("__") else sentence(found)
    raise AttributeError(text, name=name, obj=sys.modules[module])


class _NoOthers:
    """Finds no module of torch but those that are there, and what is inside of those that are refused."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name.startswith("torch.") and _refusals.module(name.removeprefix("torch.")) is not None:
            return importlib.machinery.ModuleSpec(name, _Refused())
        asked = sys._getframe(2).f_globals.get("__name__") == "importlib.util"  # whether there is one, of no import
        if name.startswith("torch.") and not asked:
            raise ModuleNotFoundError(sentence(name), name=name)
        return None


class _Refused(importlib.abc.Loader):
    """Loads a module inside of one that is refused."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        return _refusals.module(spec.name.removeprefix("torch."))

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def _find(name: str) -> Any:
    """The module of this name, or what a module has under its last part."""
    if name in sys.modules:
        return sys.modules[name]
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        parent, _, last = name.rpartition(".")
        return getattr(sys.modules.get(parent), last, None)
