"""Names of PyTorch that devtensor has on purpose not: they are there, and what uses them is told so and what to do.

`from torch.fft import rfft` and `torch.fft.rfft` go through; the call raises NotImplementedError.
"""

from __future__ import annotations

import types
from typing import Any, NoReturn

_SPARSE = "there are no sparse arrays: make a dense one, or use index_select, scatter_add and embedding"
_COMPLEX = "there are no complex numbers: keep the real and the imaginary part as two arrays"
_FOURIER = "there are no Fourier transforms: use numpy.fft on x.cpu().numpy()"
_SCRIPT = "nothing is compiled to TorchScript: call the Python function or module itself"
_ONNX = "nothing is exported: save the weights with dt.save(model.state_dict(), path)"
_VMAP = "functions are not transformed: write the batch dimension out, or use a loop and dt.stack"
_QUANTIZED = "there are no quantised arrays: use float16 or bfloat16"
_STORAGE = "memory is not handed out as a storage: use x.data_ptr(), x.numpy() or dt.from_dlpack(x)"
_MEMORY = "an array is not set on the memory of another: use x.data = y, or as_strided"

_FUNCTIONS = {
    **dict.fromkeys(
        """sparse_coo_tensor sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor
        sparse_compressed_tensor sparse_coo sparse_csr sparse_csc hspmm smm sspaddmm""".split(),
        _SPARSE,
    ),
    **dict.fromkeys(
        """complex complex32 complex64 complex128 cfloat cdouble chalf view_as_complex view_as_real polar angle
        real imag conj conj_physical resolve_conj""".split(),
        _COMPLEX,
    ),
    **dict.fromkeys(("stft", "istft"), _FOURIER),
    **dict.fromkeys(("vmap",), _VMAP),
    **dict.fromkeys(
        """quantize_per_tensor quantize_per_channel quantize_per_tensor_dynamic dequantize qint8 quint8 qint32
        fake_quantize_per_tensor_affine fake_quantize_per_channel_affine""".split(),
        _QUANTIZED,
    ),
}
_MODULES = {
    "ao": _QUANTIZED,
    "ao.quantization": _QUANTIZED,
    "fft": _FOURIER,
    "func": _VMAP,
    "fx": _SCRIPT,
    "jit": _SCRIPT,
    "onnx": _ONNX,
    "quantization": _QUANTIZED,
    "sparse": _SPARSE,
}
METHODS = {
    **dict.fromkeys(("storage", "untyped_storage"), _STORAGE),
    "set_": _MEMORY,
    **dict.fromkeys(("to_sparse", "to_sparse_csr", "coalesce"), _SPARSE),
    **dict.fromkeys(("stft", "istft"), _FOURIER),
    "share_memory_": "memory is not shared between processes so: a DataLoader sends batches by itself",
}


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
        raise NotImplementedError(f"{self.__name__}: {self._reason}")

    def __repr__(self) -> str:
        return f"<devtensor has no {self.__name__}: {self._reason}>"


def _same(function: Any = None, *args: Any, **options: Any) -> Any:
    """function itself, or a decorator that gives back what it decorates."""
    return function if callable(function) else lambda decorated: decorated


def _no(*args: Any) -> bool:
    return False


# What asks about scripts, or marks a function for one, has an answer without them.
_ANSWERS: dict[str, dict[str, Any]] = {
    "jit": {
        **dict.fromkeys(("export", "ignore", "unused", "script_if_tracing"), _same),
        **dict.fromkeys(("is_scripting", "is_tracing"), _no),
        "annotate": lambda the_type, the_value: the_value,
        "ScriptModule": type("ScriptModule", (), {"__doc__": "The class of nothing here."}),
        "ScriptFunction": type("ScriptFunction", (), {"__doc__": "The class of nothing here."}),
    },
    "onnx": {"is_in_onnx_export": _no},
}


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
        for name, reason in _MODULES.items():
            module = _made[name] = _Module(f"devtensor.{name}", f"Not there: {reason}.")
            vars(module).update(_ANSWERS.get(name, {}), __path__=[])
    return _made


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
    return _MODULES.get(module) if last not in _ANSWERS.get(module, {}) else None


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
