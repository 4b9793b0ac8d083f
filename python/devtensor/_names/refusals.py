"""Names of PyTorch that devtensor has on purpose not: they are there, and what uses them is told so and what to do.

`from torch.fft import rfft` and `torch.fft.rfft` go through; the call raises NotImplementedError.
"""

from __future__ import annotations

import importlib.machinery
import types
from typing import Any, NoReturn

from devtensor._names.answers import ANSWERS

_SPARSE = "there are no sparse arrays: make a dense one, or use index_select, scatter_add and embedding"
_COMPLEX = "there are no complex numbers: keep the real and the imaginary part as two arrays"
_FOURIER = "there are no Fourier transforms: use numpy.fft on x.cpu().numpy()"
_SCRIPT = "nothing is compiled to TorchScript: save and call the Python function or module itself"
_COMPILED = "nothing is compiled: call the Python function or module itself"
_ONNX = "nothing is exported: save the weights with dt.save(model.state_dict(), path)"
_QUANTIZED = "there are no quantised arrays: use float16 or bfloat16"
_FLOAT8 = "there are no floats of 8 or 4 bits: use float16 or bfloat16"
_UNSIGNED = "of unsigned integers there is uint8: use int32 or int64"
_PROFILER = "there is no profiler: use cProfile, nsys for CUDA, or record_transfers for what moves"
_ATTENTION = "there is one way to compute attention: use scaled_dot_product_attention with a mask"
_GRAPHS = "launches are not captured: call the function itself"
_ARCHIVE = "files are read and written whole: use dt.load and dt.save"
_OPERATORS = "ops are functions of Python: call the function itself, or write an autograd.Function"
_SPLIT = "models are not split over processes: each has its own, and DistributedDataParallel averages gradients"
_MEMORY = "an array is not set on the memory of another: use x.data = y, or as_strided"

_FUNCTIONS = {
    **dict.fromkeys(
        """sparse_coo_tensor sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor
        sparse_compressed_tensor sparse_coo sparse_csr sparse_csc hspmm smm sspaddmm""".split(),
        _SPARSE,
    ),
    **dict.fromkeys(
        """complex complex32 complex64 complex128 cfloat cdouble chalf view_as_complex view_as_real polar
        imag""".split(),
        _COMPLEX,
    ),
    **dict.fromkeys(("stft", "istft"), _FOURIER),
    **{
        f"distributed.{name}": _SPLIT
        for name in """DeviceMesh FileStore HashStore PrefixStore Store TCPStore init_device_mesh""".split()
    },
    **dict.fromkeys(("cuda.CUDAGraph", "cuda.graph", "cuda.make_graphed_callables", "cuda.graph_pool_handle"), _GRAPHS),
    **dict.fromkeys(
        "float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn_x2".split(), _FLOAT8
    ),
    **dict.fromkeys(("uint16", "uint32", "uint64"), _UNSIGNED),
    **dict.fromkeys(("PyTorchFileReader", "PyTorchFileWriter"), _ARCHIVE),
    **dict.fromkeys(
        """quantize_per_tensor quantize_per_channel quantize_per_tensor_dynamic dequantize qint8 quint8 qint32
        fake_quantize_per_tensor_affine fake_quantize_per_channel_affine""".split(),
        _QUANTIZED,
    ),
}
_MODULES = {
    "_dynamo": _COMPILED,
    "_inductor": _COMPILED,
    "ao": _QUANTIZED,
    "ao.quantization": _QUANTIZED,
    "compiler": _COMPILED,
    "cuda.nvtx": _PROFILER,
    "cuda.profiler": _PROFILER,
    "autograd.forward_ad": "there is no forward mode: use dt.autograd.grad",
    "autograd.profiler": _PROFILER,
    "export": _COMPILED,
    "fft": _FOURIER,
    **dict.fromkeys(("fx", "fx.graph", "fx.graph_module", "fx.node", "fx.proxy"), _SCRIPT),
    "jit": _SCRIPT,
    "library": _OPERATORS,
    "nested": "there are no nested arrays: pad them, or use nn.utils.rnn.pack_sequence",
    "nn.attention": _ATTENTION,
    "nn.attention.bias": _ATTENTION,
    "nn.attention.flex_attention": _ATTENTION,
    "ops": _OPERATORS,
    "profiler": _PROFILER,
    "utils.benchmark": "use timeit, and devtensor.cuda.synchronize() before the clock is read",
    "utils.cpp_extension": "extensions for PyTorch cannot be loaded: write a kernel with devtensor.cuda.RawKernel",
    "utils.flop_counter": _PROFILER,
    "onnx": _ONNX,
    "quantization": _QUANTIZED,
    "sparse": _SPARSE,
}
# Of these modules whatever is not there is refused.
_INSIDE = {"distributed": _SPLIT}
METHODS = {
    "set_": _MEMORY,
    **dict.fromkeys(("to_sparse", "to_sparse_csr", "coalesce"), _SPARSE),
    **dict.fromkeys(("stft", "istft"), _FOURIER),
    "share_memory_": "memory is not shared between processes so: a DataLoader sends batches by itself",
}


class NotThere(NotImplementedError, AttributeError):
    """What is asked of a refused name: hasattr() says no to it."""


class Refused:
    """A name that says why it is not there when it is called or looked into."""

    def __init__(self, name: str, reason: str) -> None:
        self.__name__ = name
        self._reason = reason

    def __call__(self, *args: Any, **options: Any) -> NoReturn:
        raise NotImplementedError(f"{self.__name__}: {self._reason}")

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotThere(f"{self.__name__}: {self._reason}")

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        """A class of the user's may derive from it: what makes one is told."""
        return (type(self.__name__.rpartition(".")[2], (), {"__init__": self.__call__}),)

    def __instancecheck__(self, other: Any) -> bool:
        return False

    __subclasscheck__ = __instancecheck__

    def __or__(self, other: Any) -> Any:
        """In annotations."""
        return Any

    __ror__ = __or__
    __getitem__ = __or__

    def __repr__(self) -> str:
        return f"<devtensor has no {self.__name__}: {self._reason}>"


class _Module(types.ModuleType):
    """A module of which nothing is there."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        full = self.__name__.partition(".")[2]
        inner = f"{full}.{name}"
        return modules().get(inner) or Refused(f"devtensor.{inner}", _MODULES[full])


_made: dict[str, types.ModuleType] = {}


def modules() -> dict[str, types.ModuleType]:
    """The modules by their names below torch."""
    if not _made:
        _made.update((name, _new(name)) for name in _MODULES)
    return _made


def module(name: str) -> types.ModuleType | None:
    """The module of this name below torch, where it is refused or inside of one that is."""
    parent = name.rpartition(".")[0]
    if name not in modules() and (parent in _INSIDE or (parent and module(parent) is not None)):
        _MODULES[name] = _INSIDE.get(parent) or _MODULES[parent]
        _made[name] = _new(name)
    return _made.get(name)


def _new(name: str) -> types.ModuleType:
    made = _Module(f"devtensor.{name}", f"Not there: {_MODULES[name]}.")
    spec = importlib.machinery.ModuleSpec(f"torch.{name}", None, is_package=True)
    vars(made).update(ANSWERS.get(name, {}), __path__=[], __spec__=spec)
    return made


def names() -> tuple[str, ...]:
    """What is refused of the functions."""
    return tuple(_FUNCTIONS)


def reason(name: str) -> str | None:
    """Why a name below torch is refused, and what to do; None where it is not."""
    if name in _FUNCTIONS:
        return _FUNCTIONS[name]
    module, _, last = name.rpartition(".")
    if name in _MODULES:
        return _MODULES[name]
    return _MODULES.get(module) if last not in ANSWERS.get(module, {}) else None


def find(name: str) -> Any:
    """What stands for a name of PyTorch that is refused. Raises AttributeError for any other."""
    if name in _MODULES:
        return modules()[name]
    if name in _FUNCTIONS:
        return Refused(f"devtensor.{name}", _FUNCTIONS[name])
    raise AttributeError(f"module 'devtensor' has no attribute {name!r}")


def methods() -> dict[str, Any]:
    """Methods of DeviceArray that raise."""

    def refusing(name: str, reason: str) -> Any:
        def method(self: Any, *args: Any, **options: Any) -> NoReturn:
            raise NotImplementedError(f"{name}(): {reason}")

        method.__name__ = method.__qualname__ = name
        method.__doc__ = f"Raises NotImplementedError: {reason}."
        return method

    return {name: refusing(name, reason) for name, reason in METHODS.items()}
