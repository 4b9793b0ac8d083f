"""As much of PyTorch's shape as devtensor.explain_torch looks at, for tests where PyTorch is not installed.

Its sentences are PyTorch's; what it computes is nothing. No count of the tests of real errors comes from here.
"""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

from torch._tensor import Tensor, device, dtype, float32, float64, ones, strided  # type: ignore[import-not-found]

__all__ = ["Tensor", "device", "dtype", "float32", "float64", "no_grad", "ones", "strided"]

no_grad = contextlib.nullcontext
_C: Any = SimpleNamespace(
    DisableTorchFunction=contextlib.nullcontext, _len_torch_dispatch_stack=lambda: 0, TensorBase=Tensor,
    _VariableFunctions=None,
)  # fmt: skip
