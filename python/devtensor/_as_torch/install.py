"""devtensor in the place of PyTorch: what `import torch` and its modules give, in this process."""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Callable
from typing import Any

import devtensor
from devtensor import _C, _memory_formats, version
from devtensor._as_torch import marks
from devtensor._as_torch.missing import sentence
from devtensor._as_torch.version import __version__ as torch_version
from devtensor._names import refusals
from devtensor._names.answers import PRIVATE, TORCH

# What `import torch.x` may ask for, and where devtensor has it.
_MODULES = {
    "torch.accelerator": "accelerator",
    "torch.amp": "amp",
    "torch.autograd": "autograd",
    "torch.autograd.function": "autograd.function",
    "torch.autograd.functional": "autograd.functional",
    "torch.autograd.graph": "autograd.graph",
    "torch.cuda": "cuda",
    "torch.cuda.amp": "cuda.amp",
    "torch.distributed": "distributed",
    "torch.distributed.nn": "distributed.nn",
    "torch.distributed.nn.functional": "distributed.nn.functional",
    "torch.distributions": "distributions",
    "torch.distributions.bernoulli": "distributions.bernoulli",
    "torch.distributions.beta": "distributions.gamma",
    "torch.distributions.binomial": "distributions.counts",
    "torch.distributions.categorical": "distributions.categorical",
    "torch.distributions.cauchy": "distributions.cauchy",
    "torch.distributions.chi2": "distributions.gamma",
    "torch.distributions.constraint_registry": "distributions.constraint_registry",
    "torch.distributions.constraints": "distributions.constraints",
    "torch.distributions.continuous_bernoulli": "distributions.unit_interval",
    "torch.distributions.dirichlet": "distributions.gamma",
    "torch.distributions.distribution": "distributions.distribution",
    "torch.distributions.exponential": "distributions.exponential",
    "torch.distributions.fishersnedecor": "distributions.ratios",
    "torch.distributions.gamma": "distributions.gamma",
    "torch.distributions.geometric": "distributions.counts",
    "torch.distributions.gumbel": "distributions.extremes",
    "torch.distributions.half_cauchy": "distributions.transformed_distribution",
    "torch.distributions.half_normal": "distributions.transformed_distribution",
    "torch.distributions.independent": "distributions.independent",
    "torch.distributions.inverse_gamma": "distributions.ratios",
    "torch.distributions.kl": "distributions.kl",
    "torch.distributions.kumaraswamy": "distributions.unit_interval",
    "torch.distributions.laplace": "distributions.laplace",
    "torch.distributions.log_normal": "distributions.transformed_distribution",
    "torch.distributions.logistic_normal": "distributions.transformed_distribution",
    "torch.distributions.lowrank_multivariate_normal": "distributions.low_rank",
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
    "torch._utils": "_as_torch.utils",
    "torch.functional": "_as_torch.functional",
    "torch.storage": "storage",
    "torch.backends": "backends",
    **{
        f"torch.backends.{name}": f"backends.{name}"
        for name in ("cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp")
    },
    "torch.func": "func",
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
    "torch.nn.parallel._functions": "nn.parallel._functions",
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
    "torch.nn.utils.stateless": "func.stateless",
    "torch.optim": "optim",
    "torch.optim.lr_scheduler": "optim.lr_scheduler",
    "torch.optim.optimizer": "optim.optimizer",
    "torch.optim.swa_utils": "optim.swa_utils",
    "torch.overrides": "_interchange.overrides",
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
    "torch.torch_version": "_as_torch.version",
    "torch.types": "_as_torch.types",
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


# They register compiled ops of torchvision, which are not loaded, with PyTorch's dispatcher.
_REGISTRATIONS = ("torchvision._autograd_registrations", "torchvision._meta_registrations")


def install_torch() -> None:
    """From now on `import torch` gives devtensor. A real torch that is imported already is left to who holds it."""
    if sys.modules.get("torch") is devtensor:
        return
    for name, _ in modules_of_torch():
        del sys.modules[name]
    sys.modules["torch"] = devtensor
    for name, refused in refusals.modules().items():
        sys.modules[f"torch.{name}"] = refused
    for name, ours in _MODULES.items():
        module = _find(f"devtensor.{ours}")
        if module is not None:
            sys.modules[name] = module
            parent, _, last = name.rpartition(".")
            if not hasattr(sys.modules[parent], last):  # for `import torch.nn.parameter as p` and torch.nn.parameter.x
                setattr(sys.modules[parent], last, module)
    _separate_modules()
    for name, module in modules_of_torch():
        own = vars(module).get("__getattr__")
        if not isinstance(own, functools.partial):
            module.__getattr__ = functools.partial(_no_attribute, name, own)  # type: ignore[method-assign]
    vars(_C).update(PRIVATE, _LinAlgError=devtensor.linalg.LinAlgError)
    _C._as_torch(True)
    marks.install()
    _memory_formats.library = "torch"
    devtensor.__version__ = version.__version__ = torch_version
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
    if refusals.reason(below) is not None:
        return refusals.find(below)
    text = f"module {module!r} has no attribute {name!r}" if name.startswith("__") else sentence(found)
    raise AttributeError(text, name=name, obj=sys.modules[module])


class _NoOthers:
    """Finds no module of torch but those that are there, and what is inside of those that are refused."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name.startswith("torch.") and refusals.module(name.removeprefix("torch.")) is not None:
            return importlib.machinery.ModuleSpec(name, _Refused())
        asked = sys._getframe(2).f_globals.get("__name__") == "importlib.util"  # whether there is one, of no import
        if name.startswith("torch.") and not asked:
            raise ModuleNotFoundError(sentence(name), name=name)
        return None


class _Refused(importlib.abc.Loader):
    """Loads a module inside of one that is refused."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        return refusals.module(spec.name.removeprefix("torch."))

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


def modules_of_torch() -> list[tuple[str, types.ModuleType]]:
    """The modules of torch that are imported, by their names."""
    loaded = [(name, held) for name, held in list(sys.modules.items()) if name.partition(".")[0] == "torch"]
    return [(name, held) for name, held in loaded if isinstance(held, types.ModuleType)]
