"""A pickle read as pickle reads it, for load(weights_only=False): what it names is imported and called.

Only for files whose writer the caller trusts. Names of PyTorch stand for what has the same name here.
"""

from __future__ import annotations

import importlib
import io
import pickle
from typing import Any

import devtensor
from devtensor import _C
from devtensor._C import _Buffer
from devtensor._checkpoints import names, trusted
from devtensor._checkpoints.pickle_reader import Maker, Storage
from devtensor.nn._state import IncompatibleKeys


def load(data: bytes, at: int, storage: Storage, encoding: str) -> tuple[Any, int]:
    """What the pickle that begins at a byte of data holds, and where it ends.

    storage gives what a persistent id stands for. Raises ValueError where data end too early, what storage raises, and
    whatever the code raises that is run: see is_ours.
    """
    return _load(_Unpickler, data, at, storage, encoding)


def scan(data: bytes, at: int, storage: Storage, encoding: str) -> int:
    """Where that pickle ends. storage gets the persistent ids; nothing else is called."""
    return _load(_Scanner, data, at, storage, encoding)[1]


def is_ours(error: BaseException) -> bool:
    """Whether an error is about the file, and not one of the program's code that the file runs."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is None or trace.tb_frame.f_globals.get("__name__", "").startswith("devtensor._checkpoints")


def _load(kind: type[_Unpickler], data: bytes, at: int, storage: Storage, encoding: str) -> tuple[Any, int]:
    file = io.BytesIO(data)
    file.seek(at)
    try:
        return kind(file, storage, encoding).load(), file.tell()
    except EOFError as error:
        if is_ours(error):
            raise ValueError("its pickle ends too early") from None
        raise


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, storage: Storage, encoding: str) -> None:
        super().__init__(file, encoding=encoding)
        self._storage = storage

    def persistent_load(self, identity: Any) -> Any:
        if identity == ():
            raise pickle.UnpicklingError("it refers to something that is no storage")
        if type(identity) is tuple and identity[0] in ("module", b"module"):  # a class with its source, before 1.6
            return identity[1]
        return self._storage(identity)

    def find_class(self, module: str, name: str) -> Any:
        full = f"{module}.{name}"
        if full in trusted.given:
            return trusted.given[full]
        if module == "torch" or module.startswith("torch."):
            return _of_torch(module, name)
        try:
            return super().find_class(module, name)
        except (ImportError, AttributeError) as error:
            kind = AttributeError if isinstance(error, AttributeError) else type(error)
            last = name.rpartition(".")[2]
            raise kind(
                f"{error}: the file has an object of {full}. A program that reads it must have {last} there, as "
                "that which wrote it had; a file of state_dict() asks for no class"
            ) from None


class _OfAll(type):
    """The class of _Inert, into which SETITEMS puts something."""

    def __setitem__(cls, key: Any, value: Any) -> None:
        pass


class _Inert(metaclass=_OfAll):
    """Stands for all that a pickle names where nothing is to be called. A call of it gives itself."""

    def __new__(cls, *arguments: Any, **named: Any) -> Any:
        return cls

    @classmethod
    def _ignore(cls, *given: Any) -> None:
        pass

    __setstate__ = append = extend = add = update = _ignore


class _Scanner(_Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module == "torch" or module.startswith("torch."):
            try:
                found = names.find(module, name)
            except pickle.UnpicklingError:
                return _Inert
            return found if isinstance(found, names.Kind) else _Inert
        return _Inert


def _of_torch(module: str, name: str) -> Any:
    name = _RENAMED.get(name, name)
    full = f"{module}.{name}"
    if full in _OWN:
        return _OWN[full]
    try:
        found = names.find(module, name)
    except pickle.UnpicklingError:
        return _same_here(module, name)
    return found.make if isinstance(found, Maker) else found


def _same_here(module: str, name: str) -> Any:
    """torch.nn.modules.linear.Linear is devtensor.nn.Linear: the nearest package above that has the name."""
    parts = module.split(".")[1:]
    if parts[:2] == ["_C", "_nn"]:
        parts = ["nn", "functional"]
    if _ELSEWHERE.isdisjoint(parts):  # classes that have the names of others
        for count in range(len(parts), -1, -1):
            public = (
                count > 0 or not parts or parts[0].startswith("_")
            )  # else a function of the package is another thing
            found = getattr(_package(parts[:count]), name, None) if public else None
            if found is not None:
                _check_agreement(found, module, name)
                return found
    raise pickle.UnpicklingError(f"it names {module}.{name}, which devtensor has nothing for")


_ELSEWHERE = frozenset(("quantized", "qat", "quantizable", "intrinsic", "ao"))


def _package(parts: list[str]) -> Any:
    try:
        return importlib.import_module(".".join(["devtensor", *parts]))
    except ImportError:
        return None


def _check_agreement(found: Any, module: str, name: str) -> None:
    """Raises UnpicklingError for a class whose objects have other attributes here than in PyTorch."""
    if not isinstance(found, type) or (issubclass(found, devtensor.nn.Module) and name not in _DIFFERENT):
        return
    known = [names for package, names in _AGREE.items() if f"{module}.".startswith(f"torch.{package}.")]
    if not any(name in names for names in known):
        raise pickle.UnpicklingError(
            f"it has an object of {module}.{name}, whose attributes are others in devtensor: make it anew, and keep "
            "in a file its state_dict() or the arguments that make it"
        )


_DIFFERENT = ("DistributedDataParallel",)
# The classes whose objects were tested to work here as PyTorch has pickled them.
_AGREE = {
    package: frozenset(classes.split())
    for package, classes in {
        "optim": """SGD Adam AdamW Adagrad RMSprop Adadelta Adamax NAdam RAdam ASGD Rprop LBFGS Adafactor Muon""",
        "optim.lr_scheduler": """StepLR LambdaLR MultiplicativeLR MultiStepLR CosineAnnealingLR ExponentialLR LinearLR
            CosineAnnealingWarmRestarts ConstantLR PolynomialLR OneCycleLR ReduceLROnPlateau SequentialLR
            ChainedScheduler""",
        "optim.swa_utils": "SWALR",
        "distributions": """Normal Bernoulli Categorical Uniform Gamma Exponential Poisson Dirichlet Laplace LogNormal
            Independent TransformedDistribution MixtureSameFamily Binomial StudentT Cauchy Geometric Multinomial
            OneHotCategorical OneHotCategoricalStraightThrough HalfNormal HalfCauchy Weibull Pareto Kumaraswamy VonMises
            LowRankMultivariateNormal FisherSnedecor NegativeBinomial ContinuousBernoulli LogisticNormal
            Chi2 GeneralizedPareto""",
        "distributions.transforms": """AbsTransform AffineTransform CatTransform ComposeTransform CorrCholeskyTransform
            CumulativeDistributionTransform ExpTransform IndependentTransform LowerCholeskyTransform
            PositiveDefiniteTransform PowerTransform ReshapeTransform SigmoidTransform SoftmaxTransform
            SoftplusTransform StackTransform StickBreakingTransform TanhTransform""",
        "distributions.constraints": """_GreaterThan _GreaterThanEq _LessThan _Interval _HalfOpenInterval _Real
            _IndependentConstraint _Boolean _IntegerInterval _IntegerGreaterThan _IntegerLessThan _Simplex _OneHot
            _LowerCholesky _PositiveDefinite _CorrCholesky _Square _Cat _Multinomial""",
        "utils.data": """Dataset IterableDataset TensorDataset Subset ConcatDataset StackDataset ChainDataset Sampler
            RandomSampler SequentialSampler BatchSampler WeightedRandomSampler SubsetRandomSampler
            DistributedSampler""",
        "nn.utils.prune": """L1Unstructured RandomUnstructured LnStructured RandomStructured CustomFromMask Identity
            PruningContainer""",
        "nn.utils.rnn": "PackedSequence",
    }.items()
}


def _array_of_class(make: Any, kind: Any, arguments: Any, state: Any) -> Any:
    """torch._tensor._rebuild_from_type_v2: an array with a class and attributes."""
    array = make(*arguments)
    if isinstance(state, dict) and state.get("_is_buffer") is True:
        return _Buffer(array, persistent=state.get("persistent") is True)
    if kind not in (_C.DeviceArray, _C._Parameter):
        raise pickle.UnpicklingError(f"it has an array of class {getattr(kind, '__name__', kind)}")
    return array


def _parameter(data: Any, requires_grad: Any, hooks: Any, state: Any) -> Any:
    """torch._utils._rebuild_parameter_with_state: a parameter with attributes."""
    made = _C._Parameter(data.detach() if isinstance(data, _C.DeviceArray) else data, requires_grad is True)
    trusted.set_state(made, state)
    return made


_RENAMED = {"NonDynamicallyQuantizableLinear": "Linear"}  # of MultiheadAttention
_OWN = {
    "torch._utils._rebuild_parameter_with_state": _parameter,
    "torch.nn.modules.module._IncompatibleKeys": IncompatibleKeys,
    "torch._tensor._rebuild_from_type_v2": _array_of_class,
    "torch._C._VariableFunctionsClass": devtensor,  # getattr(it, "tanh") is torch.tanh
    "torch.Tensor": _C.DeviceArray,
    "torch._C.TensorBase": _C.DeviceArray,
    "torch.nn.parameter.Parameter": _C._Parameter,
    "torch.nn.parameter.Buffer": _C._Buffer,
}
