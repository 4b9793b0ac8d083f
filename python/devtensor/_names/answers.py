"""What PyTorch's own modules answer here where nothing has to be done: marks for compilers and profilers, choices of
kernels, questions about tensors that are no arrays. Programs and libraries import them and go on."""

from __future__ import annotations

import contextlib
import enum
import functools
import types
import typing
import warnings
from typing import Any, NoReturn

from devtensor import _C
from devtensor._interchange import overrides
from devtensor._names.frequencies import fftfreq, fftshift, ifftshift, rfftfreq


def same(function: Any = None, *args: Any, **options: Any) -> Any:
    """function itself, or a decorator that gives back what it decorates."""
    return function if callable(function) else lambda decorated: decorated


def decorator(*args: Any, **options: Any) -> Any:
    return same


def no(*args: Any, **options: Any) -> bool:
    return False


def nothing(*args: Any, **options: Any) -> None:
    pass


def _not_loaded(path: Any) -> NoReturn:
    raise OSError(f"{path} has ops for PyTorch, which is not here")


@functools.cache
def _say_that_it_is_python(name: str) -> None:
    warnings.warn(f"jit.{name}(): devtensor compiles nothing; the function or module runs as it is", stacklevel=3)


def _script(obj: Any = None, *args: Any, **options: Any) -> Any:
    """obj itself: what a script computes is what the Python code computes."""
    _say_that_it_is_python("script")
    return obj


def _trace(func: Any, *args: Any, **options: Any) -> Any:
    """func itself, which computes for any input what a trace computes for those like its example."""
    _say_that_it_is_python("trace")
    return func


class _Block(contextlib.ContextDecorator):
    """A block, or a function, around which nothing is done."""

    def __init__(self, *args: Any, **options: Any) -> None:
        pass

    def __enter__(self) -> _Block:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class _Mark:
    """How an array would be split over processes, which none is."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.args, self.options = args, options


class SDPBackend(enum.Enum):
    """PyTorch's ways to compute attention; there is one here."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


def _assert(condition: Any, message: Any) -> None:
    assert condition, message


def _check(cond: Any, message: Any = None) -> None:
    if not cond:
        raise RuntimeError("Expected cond to be True" if message is None else message())


def _named(name: str, text: str) -> type:
    return type(name, (), {"__doc__": text})


# By modules below torch.
ANSWERS: dict[str, dict[str, Any]] = {
    "_dynamo": {
        **dict.fromkeys(("allow_in_graph", "assume_constant_result", "disable"), same),
        "is_compiling": no,
        "reset": nothing,
    },
    "_dynamo.utils": {"is_compile_supported": no},
    "autograd.profiler": {"record_function": _Block},
    "compiler": {
        **dict.fromkeys(("allow_in_graph", "assume_constant_result", "disable"), same),
        **dict.fromkeys(("is_compiling", "is_dynamo_compiling", "is_exporting"), no),
        "reset": nothing,
    },
    "cuda.nvtx": {**dict.fromkeys(("mark", "range_pop", "range_push"), nothing), "range": _Block},
    "distributed.tensor": dict.fromkeys(("Partial", "Replicate", "Shard"), _Mark),
    "distributed.tensor.placement_types": dict.fromkeys(("Partial", "Replicate", "Shard", "_StridedShard"), _Mark),
    "fft": {function.__name__: function for function in (fftfreq, fftshift, ifftshift, rfftfreq)},
    "fx": {"wrap": same},
    "jit": {
        **dict.fromkeys(
            ("_overload", "_overload_method", "_script_if_tracing", "export", "ignore", "script_if_tracing", "unused"),
            same,
        ),
        **dict.fromkeys(("is_scripting", "is_tracing"), no),
        "script": _script,
        "trace": _trace,
        "Final": typing.Final,
        "annotate": lambda the_type, the_value: the_value,
        "ScriptModule": _named("ScriptModule", "The class of nothing here."),
        "ScriptFunction": _named("ScriptFunction", "The class of nothing here."),
    },
    # Registrations are of ops that nothing here calls.
    "library": dict.fromkeys(("custom_op", "impl", "register_autograd", "register_fake", "register_kernel"), decorator),
    "nn.attention": {"SDPBackend": SDPBackend, "sdpa_kernel": _Block},
    "onnx": {"is_in_onnx_export": no, "register_custom_op_symbolic": nothing},
    "onnx.symbolic_helper": {"parse_args": decorator},
    "ops": {"load_library": _not_loaded},
    "profiler": {"kineto_available": no, "record_function": _Block},
}


def _parse_to(*args: Any, **options: Any) -> tuple[Any, Any, bool, Any]:
    """What stands in a call of to(): device, dtype, non_blocking, memory_format."""
    device, dtype = options.get("device"), options.get("dtype")
    for one in args:
        if isinstance(one, _C.DeviceArray):
            device, dtype = one.device, one.dtype
        elif isinstance(one, _C.dtype):
            dtype = one
        elif not isinstance(one, bool):
            device = one
    device = device if device is None else _C._need_device("to", "device", device)
    return device, dtype, bool(options.get("non_blocking", False)), options.get("memory_format")


def _sample_dirichlet(input: _C.DeviceArray, generator: Any = None) -> Any:
    if generator is not None:
        raise NotImplementedError("_sample_dirichlet(): draws of distributions take no generator: use manual_seed")
    from devtensor.distributions import Dirichlet

    return Dirichlet(input).sample()


# Of torch itself, where libraries assert and draw.
TORCH: dict[str, Any] = {
    "_sample_dirichlet": _sample_dirichlet,
    "ScriptModule": ANSWERS["jit"]["ScriptModule"],
    "_assert": _assert,
    "_check": _check,
}
# Of torch._C, for libraries that look into it.
PRIVATE: dict[str, Any] = {
    "DisableTorchFunction": overrides.DisableTorchFunction,
    "DisableTorchFunctionSubclass": overrides.DisableTorchFunctionSubclass,
    "_disabled_torch_function_impl": overrides.disabled,
    "_is_torch_function_enabled": _C._overrides_on,
    "_TensorMeta": type(_C.DeviceArray),
    "_nn": types.SimpleNamespace(_parse_to=_parse_to),
    "_get_tracing_state": nothing,
    "_log_api_usage_once": nothing,  # they count their users
    **{name: type(name, (), {}) for name in ("Graph", "NoneType", "Value")},  # of graphs, in annotations
}
