"""Arrays that never change device or dtype behind your back, on the CPU, on CUDA and on a simulated GPU."""

from __future__ import annotations

import inspect
from importlib import import_module as _import_module
from math import e, inf, nan, pi
from typing import TYPE_CHECKING

import devtensor._environment  # first: where warnings are errors, it ends the import before it has begun
import devtensor._interchange.overrides  # noqa: F401 (what classes derived from DeviceArray are asked)
from devtensor import _C
from devtensor import _memory_formats as _formats
from devtensor._C import *
from devtensor._C import DeviceArray as Tensor
from devtensor._C import float16 as half
from devtensor._C import float32 as float
from devtensor._C import float64 as double
from devtensor._C import int16 as short
from devtensor._C import int32 as int
from devtensor._C import int64 as long
from devtensor._composed import public as _public
from devtensor._composed.creating.creation import *
from devtensor._composed.creating.ranges import *
from devtensor._composed.creating.ranges import linspace as linspace  # the compiled one takes numbers alone
from devtensor._composed.creating.sampling import *
from devtensor._composed.creating.windows import *
from devtensor._composed.elementwise.activations import *
from devtensor._composed.elementwise.bessel import *
from devtensor._composed.elementwise.bits import *
from devtensor._composed.elementwise.extremes import *
from devtensor._composed.elementwise.gamma_functions import *
from devtensor._composed.elementwise.in_place import *
from devtensor._composed.elementwise.neighbours import *
from devtensor._composed.elementwise.parts import *
from devtensor._composed.elementwise.pointwise import *
from devtensor._composed.elementwise.pointwise import round as round  # the compiled one has no decimals=
from devtensor._composed.elementwise.reals import *
from devtensor._composed.elementwise.whole_numbers import *
from devtensor._composed.images.convolutions import *
from devtensor._composed.images.pooling import *
from devtensor._composed.images.shuffles import *
from devtensor._composed.layers.basic import *
from devtensor._composed.layers.noise import *
from devtensor._composed.layers.norms import *
from devtensor._composed.losses.basic import *
from devtensor._composed.matrices.contraction import *
from devtensor._composed.matrices.distances import *
from devtensor._composed.matrices.forms import *
from devtensor._composed.matrices.products import *
from devtensor._composed.reductions.covariance import *
from devtensor._composed.reductions.groups import *
from devtensor._composed.reductions.histograms import *
from devtensor._composed.reductions.moments import *
from devtensor._composed.reductions.order import *
from devtensor._composed.reductions.summaries import *
from devtensor._composed.shapes.arrange import *
from devtensor._composed.shapes.diagonals import *
from devtensor._composed.shapes.exchanged import *
from devtensor._composed.shapes.joining import *
from devtensor._composed.shapes.places import *
from devtensor._composed.shapes.questions import *
from devtensor._composed.shapes.scattered_views import *
from devtensor._composed.shapes.sizes import *
from devtensor._composed.shapes.slopes import *
from devtensor._composed.shapes.strided import *
from devtensor._composed.shapes.turning import *
from devtensor._composed.written import method_of as _method_of
from devtensor._diagnosis import get_error_detail, set_error_detail
from devtensor._dtypes.info import finfo, iinfo
from devtensor._dtypes.rules import can_cast, is_nonzero, promote_types, result_type
from devtensor._errors import (
    CudaError,
    DeviceMismatchError,
    DeviceNotAvailableError,
    DTypeMismatchError,
    GradientError,
    GradientWarning,
    HostAccessError,
    KernelArgumentError,
    KernelCompileError,
    OutOfMemoryError,
    ShapeMismatchError,
    TransferForbiddenError,
)
from devtensor._files.save_load import load, save
from devtensor._interchange import einops as _einops
from devtensor._interchange import numpy as _of_numpy
from devtensor._memory_formats import *
from devtensor._names import refusals as _refusals
from devtensor._names import second_names as _second
from devtensor._names import tensor_names as _attributes
from devtensor._names.old_names import type_of as _type_of
from devtensor._names.old_names import typed_classes as _typed_classes
from devtensor._names.second_names import *
from devtensor._names.switches import (
    are_deterministic_algorithms_enabled,
    compile,
    get_float32_matmul_precision,
    is_inference_mode_enabled,
    set_float32_matmul_precision,
    use_deterministic_algorithms,
)
from devtensor._names.tensor_names import *
from devtensor._torch_errors import Explanation, explain_torch, explanation
from devtensor._transfers import Transfer, TransferLog, allow_transfers, forbid_transfers, record_transfers
from devtensor._version import __version__ as __version__

from devtensor import autograd, cpu, cuda, nn, testing  # isort: skip
from devtensor import accelerator, amp, backends, linalg, random, special, serialization  # isort: skip
from devtensor.cuda import amp as _cuda_amp  # isort: skip
from devtensor.amp import autocast, get_autocast_dtype, is_autocast_enabled
from devtensor.autograd import _hooks as _array_hooks
from devtensor.autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from devtensor.linalg import _second_names as _linalg_names
from devtensor.linalg._second_names import (
    cholesky,
    cholesky_inverse,
    cholesky_solve,
    det,
    inverse,
    logdet,
    lu,
    lu_solve,
    lu_unpack,
    matrix_exp,
    matrix_power,
    pinverse,
    qr,
    slogdet,
    svd,
)
from devtensor.random import default_generator, get_rng_state, set_rng_state
from devtensor.storage import METHODS as _of_storage
from devtensor.storage import TypedStorage, UntypedStorage, is_storage

if TYPE_CHECKING:
    from devtensor import array_api as array_api
    from devtensor import data, distributed, distributions, func, hub, multiprocessing, optim, utils
    from devtensor.func import vmap

del _cuda_amp  # dt.cuda.amp
# Loaded when they are asked for: they would make a fifth of the time of the import.
_LATER = {"array_api", "data", "distributed", "distributions", "func", "hub", "multiprocessing", "optim", "utils"}
_OF_LATER = {"vmap": "func"}  # functions of theirs
newaxis = None  # as an index it adds a dimension
globals().update(_typed_classes("cpu", "devtensor"))  # FloatTensor and the others

for _function in (
    *_public.METHODS,
    *_linalg_names.METHODS,
    *_attributes.METHODS,
    *_of_numpy.METHODS,
    *_of_storage,
    _type_of,
    is_nonzero,
    *(inspect.unwrap(nn.init.normal_), inspect.unwrap(nn.init.uniform_)),  # what these two do is recorded
    *(_array_hooks.register_hook, _array_hooks.register_post_accumulate_grad_hook),
):
    _C._add_method(_function.__name__, _method_of(_function))

for _name, _method in (_second.methods() | _attributes.ATTRIBUTES | _of_numpy.ATTRIBUTES | _refusals.methods()).items():
    _C._add_method(_name, _method)
_einops.register()

__all__ = [
    "CudaError",
    "DTypeMismatchError",
    "DeviceMismatchError",
    "DeviceNotAvailableError",
    "Explanation",
    "GradientError",
    "GradientWarning",
    "HostAccessError",
    "KernelArgumentError",
    "KernelCompileError",
    "OutOfMemoryError",
    "ShapeMismatchError",
    "Tensor",
    "Transfer",
    "TransferForbiddenError",
    "TransferLog",
    "TypedStorage",
    "UntypedStorage",
    "accelerator",
    "allow_transfers",
    "amp",
    "are_deterministic_algorithms_enabled",
    "autocast",
    "autograd",
    "backends",
    "can_cast",
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "compile",
    "cpu",
    "cuda",
    "data",
    "default_generator",
    "det",
    "distributed",
    "distributions",
    "double",
    "e",
    "enable_grad",
    "explain_torch",
    "explanation",
    "finfo",
    "float",
    "forbid_transfers",
    "func",
    "get_autocast_dtype",
    "get_error_detail",
    "get_float32_matmul_precision",
    "get_rng_state",
    "half",
    "hub",
    "iinfo",
    "inf",
    "inference_mode",
    "int",
    "inverse",
    "is_autocast_enabled",
    "is_inference_mode_enabled",
    "is_nonzero",
    "is_storage",
    "linalg",
    "load",
    "logdet",
    "long",
    "lu",
    "lu_solve",
    "lu_unpack",
    "matrix_exp",
    "matrix_power",
    "multiprocessing",
    "nan",
    "newaxis",
    "nn",
    "no_grad",
    "optim",
    "pi",
    "pinverse",
    "promote_types",
    "qr",
    "random",
    "record_transfers",
    "result_type",
    "save",
    "serialization",
    "set_error_detail",
    "set_float32_matmul_precision",
    "set_grad_enabled",
    "set_rng_state",
    "short",
    "slogdet",
    "special",
    "svd",
    "testing",
    "use_deterministic_algorithms",
    "utils",
    "vmap",
]
__all__ += _formats.__all__
__all__ += _attributes.__all__
__all__ += _public.__all__
__all__ += _second.__all__
# What is compiled: written by tools/package/make_stubs.py.
__all__ += [
    "DeviceArray",
    "Event",
    "Generator",
    "Node",
    "Size",
    "Stream",
    "abs",
    "acos",
    "acosh",
    "adaptive_avg_pool2d",
    "add",
    "addmm",
    "all",
    "allclose",
    "amax",
    "amin",
    "any",
    "arange",
    "argmax",
    "argmin",
    "argsort",
    "array",
    "array_equal",
    "as_tensor",
    "asarray",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "avg_pool2d",
    "baddbmm",
    "bfloat16",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "bmm",
    "bool",
    "broadcast_to",
    "cat",
    "ceil",
    "chunk",
    "clamp",
    "clone",
    "conv2d",
    "cos",
    "cosh",
    "counters",
    "cummax",
    "cummax_result",
    "cummin",
    "cummin_result",
    "cumprod",
    "cumsum",
    "detach",
    "device",
    "diagonal",
    "div",
    "dot",
    "dtype",
    "elu",
    "embedding",
    "empty",
    "empty_like",
    "eq",
    "equal",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "expand",
    "expm1",
    "eye",
    "flatten",
    "float16",
    "float32",
    "float64",
    "floor",
    "floor_divide",
    "fmod",
    "from_cuda_array_interface",
    "from_dlpack",
    "from_numpy",
    "frombuffer",
    "full",
    "full_like",
    "gather",
    "ge",
    "gelu",
    "get_default_device",
    "get_default_dtype",
    "get_float32_precision",
    "get_num_threads",
    "get_printoptions",
    "gt",
    "hardswish",
    "hardtanh",
    "hypot",
    "index_add",
    "index_select",
    "initial_seed",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_grad_enabled",
    "isclose",
    "isfinite",
    "isinf",
    "isnan",
    "kthvalue_result",
    "le",
    "leaky_relu",
    "lerp",
    "linear",
    "linspace",
    "log",
    "log1p",
    "log2",
    "log10",
    "log_softmax",
    "logaddexp",
    "logcumsumexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "lt",
    "manual_seed",
    "masked_fill",
    "masked_select",
    "matmul",
    "max",
    "max_pool2d",
    "max_result",
    "maximum",
    "mean",
    "median_result",
    "min",
    "min_result",
    "minimum",
    "mm",
    "mode_result",
    "movedim",
    "mul",
    "mv",
    "nanmedian_result",
    "narrow",
    "ne",
    "neg",
    "nonzero",
    "numel",
    "ones",
    "ones_like",
    "outer",
    "permute",
    "pow",
    "prod",
    "rand",
    "rand_like",
    "randint",
    "randn",
    "randn_like",
    "randperm",
    "reciprocal",
    "relu",
    "relu6",
    "remainder",
    "reshape",
    "round",
    "rsqrt",
    "scatter_add",
    "seed",
    "select",
    "set_default_device",
    "set_default_dtype",
    "set_float32_precision",
    "set_num_threads",
    "set_printoptions",
    "sigmoid",
    "sign",
    "silu",
    "sin",
    "sinh",
    "softmax",
    "softplus",
    "sort",
    "sort_result",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "sub",
    "sum",
    "t",
    "take",
    "take_along_dim",
    "tan",
    "tanh",
    "tensor",
    "topk",
    "topk_result",
    "transpose",
    "tril",
    "triu",
    "trunc",
    "uint8",
    "unbind",
    "unflatten",
    "unsqueeze",
    "view",
    "where",
    "zeros",
    "zeros_like",
]


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def load_ipython_extension(shell: object) -> None:
    """%load_ext devtensor: errors of PyTorch in cells are explained."""
    explain_torch()


def unload_ipython_extension(shell: object) -> None:
    """%unload_ext devtensor."""
    from devtensor._torch_errors import hooks

    hooks.turn_off()


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """A module that is loaded at its first use. What devtensor does not have on purpose says so when it is used."""
        if name in _LATER:
            return _import_module(f"devtensor.{name}")
        if name in _OF_LATER:
            return getattr(_import_module(f"devtensor.{_OF_LATER[name]}"), name)
        found = _import_module("devtensor._names.torch_names").find(name)
        return _refusals.find(name) if found is None else found
