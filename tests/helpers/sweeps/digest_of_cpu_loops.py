"""What every loop of the host backend answers, as one digest for each op: the same for every instruction set.

Run as a script with DEVTENSOR_CPU naming the set. Operands and results end at the last byte of a page that nobody may
touch the next of, at every length from 0 to 70, and start at odd places before.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import mmap
import sys

import numpy as np

import devtensor as dt
from devtensor import _C, _diagnosis

PAGE = mmap.PAGESIZE
LENGTHS = (*range(71), 300, 1500)
NUMPY = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")

libc = ctypes.CDLL(None, use_errno=True)


class Guarded:
    """Memory whose last byte is followed by a page that must not be touched."""

    def __init__(self, nbytes: int) -> None:
        self.size = (nbytes + PAGE - 1) // PAGE * PAGE + PAGE
        self.map = mmap.mmap(-1, self.size)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        if libc.mprotect(ctypes.c_void_p(start + self.size - PAGE), PAGE, 0):
            raise OSError(ctypes.get_errno())

    def last(self, n: int, dtype: str, back: int = 0) -> np.ndarray:
        """n elements that end `back` elements before the guard."""
        itemsize = np.dtype(dtype).itemsize
        return np.frombuffer(self.map, dtype, n, self.size - PAGE - (n + back) * itemsize)


def values(n: int, dtype: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, n).astype(bool)
    if dtype.startswith(("int", "uint")):
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, n, dtype, endpoint=True)
    found = (rng.standard_normal(n) * 10 ** rng.uniform(-3, 2, n)).astype(dtype)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 65504, 1e-7, -6e-8], dtype)
    at = rng.integers(0, max(n, 1), n // 4)
    found[at] = special[rng.integers(0, len(special), n // 4)]
    return found


def unary(name: str):
    return lambda a, b: getattr(dt, name)(a)


def binary(name: str):
    return lambda a, b: getattr(dt, name)(a, b)


def gradient(name: str):
    return lambda a, b: _C._test.binary(name, a, b, 0.5, 1.5)


def rows(a: dt.DeviceArray, n: int = 7) -> dt.DeviceArray:
    """The same elements in rows of n."""
    return a[: a.numel() // n * n].reshape(-1, n)


def normalized(x: dt.DeviceArray, b: dt.DeviceArray) -> dt.DeviceArray:
    """By statistics out of b."""
    mean, var, weight, bias = (b[i : i + x.shape[1]] for i in range(4))
    return dt.batch_norm(x, mean, var.abs(), weight, bias)


def trained(x: dt.DeviceArray, weight: dt.DeviceArray, bias: dt.DeviceArray) -> dt.DeviceArray:
    """The gradient of x through batch_norm, then those of weight and bias."""
    leaves = [each.detach().requires_grad_(True) for each in (x, weight, bias)]
    y = dt.batch_norm(leaves[0], None, None, *leaves[1:], True)
    return dt.cat([g.flatten() for g in dt.autograd.grad(y, leaves, x * 0.5 + 1)])


def pooled_gradient(x: dt.DeviceArray, *parameters: int) -> dt.DeviceArray:
    """Of planes (C, H, W): the gradient of max_pool2d, for what came a part of x itself."""
    leaf = x.detach().requires_grad_(True)
    y = dt.max_pool2d(leaf, *parameters)
    given = x.flatten()[-y.numel() :].reshape(y.shape)
    return dt.autograd.grad(y, leaf, given)[0]


def resampled(x: dt.DeviceArray, factor: float, mode: str = "bilinear") -> dt.DeviceArray:
    """Of a plane in rows: another size of it, and what a part of x itself gives it as a gradient."""
    leaf = x.detach().requires_grad_(True)
    y = dt.nn.functional.interpolate(leaf[None, None], scale_factor=(1.0, factor), mode=mode)
    wide = dt.nn.functional.interpolate(y, scale_factor=(factor, 1.0), mode=mode)
    given = dt.cat([x.flatten()] * (wide.numel() // x.numel() + 1))[: wide.numel()].reshape(wide.shape)
    return dt.cat([wide.flatten(), dt.autograd.grad(wide, leaf, given)[0].flatten()])


def group_normed(x: dt.DeviceArray, numbers: dt.DeviceArray) -> dt.DeviceArray:
    """Of 37 channels, one group: the result and its gradients."""
    n = x.shape[1]
    weight = dt.cat([numbers] * (n // max(len(numbers), 1) + 1))[:n]
    leaves = [leaf.detach().contiguous().requires_grad_(True) for leaf in (x, weight)]
    result = dt.nn.functional.group_norm(leaves[0], 1, leaves[1], weight)
    return dt.cat([part.flatten() for part in (result, *dt.autograd.grad(result, leaves, x.contiguous()))])


EXACT = ("neg", "abs", "sign", "square", "sqrt", "rsqrt", "reciprocal", "floor", "ceil", "round", "trunc", "isnan")
EXACT += ("isinf", "isfinite", "logical_not", "bitwise_not", "relu", "relu6", "leaky_relu", "hardtanh")
SMOOTH = ("exp", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "tanh", "sigmoid", "erf")
SMOOTH += ("silu", "softplus", "elu", "gelu", "hardswish")
BINARY = ("add", "sub", "mul", "div", "maximum", "minimum", "eq", "ne", "lt", "le", "gt", "ge", "floor_divide")
BINARY += ("pow", "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "remainder")
REDUCTIONS = ("sum", "prod", "mean", "amax", "amin", "argmax", "argmin", "any", "all")

GRADIENTS = ("abs", "rsqrt", "erf", "tanh", "sigmoid", "relu", "hardtanh", "leaky_relu", "elu", "silu", "softplus")
GRADIENTS += ("gelu_erf", "gelu_tanh", "hardswish", "huber")

OPS = {name: unary(name) for name in (*EXACT, *SMOOTH)}
OPS |= {name: binary(name) for name in BINARY}
OPS |= {f"{name}_grad": gradient(f"{name}_grad") for name in GRADIENTS}
OPS |= {name: unary(name) for name in REDUCTIONS}
OPS |= {f"{name} of rows": lambda a, b, name=name: getattr(dt, name)(rows(a), dim=1) for name in REDUCTIONS}
OPS |= {f"{name} of long rows": lambda a, b, name=name: getattr(dt, name)(rows(a, 19), dim=1) for name in REDUCTIONS}
OPS |= {f"{name} of columns": lambda a, b, name=name: getattr(dt, name)(rows(a), dim=0) for name in REDUCTIONS}
OPS |= {
    "huber": lambda a, b: _C._huber(a, b, 0.5),
    "affine": lambda a, b: dt.addcmul(a, b, a),
    "sum of squares": lambda a, b: _C._sum_squares(a),
    "sum of squares of rows": lambda a, b: _C._sum_squares(rows(a), 1),
    "sum of squares of long rows": lambda a, b: _C._sum_squares(rows(a, 37), 1),
    "sum of squares of columns": lambda a, b: _C._sum_squares(rows(a, 37), 0),
    "root of squares": lambda a, b: _C._root_squares(a),
    "root of squares of columns": lambda a, b: _C._root_squares(rows(a, 37), 0),
}
OPS |= {f"to {name}": lambda a, b, name=name: a.to(getattr(dt, name)) for name in (*NUMPY, "bfloat16")}
OPS |= {
    "add a number": lambda a, b: a + 3,
    "subtract from a number": lambda a, b: 3 - a,
    "every second": lambda a, b: a[::2] + b[::2],
    "backwards": lambda a, b: dt.where(a[::2] > b[::2], a[::2], 0),
    "where": lambda a, b: dt.where(a > b, a, b),
    "where a number": lambda a, b: dt.where(a > b, a, 1),
    "lerp": lambda a, b: dt.lerp(a, b, 0.25),
    "batch_norm": lambda a, b: normalized(rows(a)[None], b),
    "batch_norm of columns": lambda a, b: normalized(rows(a), b),
    "batch_norm in training": lambda a, b: dt.batch_norm(dt.stack([a, b])[None], None, None, b[:2], a[:2], True),
    "batch_norm in training, gradient": lambda a, b: trained(dt.stack([a, b])[None], a[:2], b[:2]),
    "group_norm": lambda a, b: group_normed(rows(a, 37).T[None], b),
    "cumsum of rows": lambda a, b: rows(a, 19).cumsum(1),
    "cumsum of long rows": lambda a, b: dt.cat([a] * (80000 // max(len(a), 40))).cumsum(0)[-2000:],
    "median": lambda a, b: dt.median(a, 0).indices,
    "randperm": lambda a, b: dt.randperm(2 * len(a) + 1, generator=dt.Generator().manual_seed(5)),
    "transposed": lambda a, b: rows(a).T.contiguous(),
    "softmax": lambda a, b: dt.softmax(a, 0),
    "softmax of columns": lambda a, b: dt.softmax(rows(a).T, 0),
    "log_softmax": lambda a, b: dt.log_softmax(rows(a), 1),
    "softmax of long rows": lambda a, b: dt.softmax(rows(a, 19), 1),
    "softmax_grad": lambda a, b: _C._test.softmax_grad(rows(b, 19), rows(a, 19), 1, False),
    "softmax_grad of columns": lambda a, b: _C._test.softmax_grad(rows(b).T, rows(a).T, 0, False),
    "log_softmax_grad": lambda a, b: _C._test.softmax_grad(rows(b, 19), rows(a, 19), 1, True),
    "log_softmax_grad of columns": lambda a, b: _C._test.softmax_grad(rows(b), rows(a), 0, True),
    "max_pool2d": lambda a, b: dt.max_pool2d(rows(a)[None], 3, 2, 1),
    "max_pool2d of pairs": lambda a, b: dt.max_pool2d(rows(a)[None], 2),
    "max_pool2d, gradient": lambda a, b: pooled_gradient(rows(a)[None], 3, 2, 1),
    "max_pool2d, gradient of long rows": lambda a, b: pooled_gradient(rows(a, 37)[None], 3, 2, 1),
    "max_pool2d, gradient of pairs": lambda a, b: pooled_gradient(rows(a, 35)[None], 2),
    "max_pool2d, gradient of channels": lambda a, b: pooled_gradient(rows(a, 19).T[:, None], (1, 3), 2, (0, 1)),
    "avg_pool2d": lambda a, b: dt.avg_pool2d(rows(a)[None], 3, 1, 1, count_include_pad=False),
    "resampled, larger": lambda a, b: resampled(rows(a), 2.0),
    "resampled, smaller": lambda a, b: resampled(rows(a, 37), 0.5),
    "resampled, few of many": lambda a, b: resampled(rows(a, 19), 0.3),
    "resampled, by cubes": lambda a, b: resampled(rows(a, 19), 1.7, "bicubic"),
    "pooled channels": lambda a, b: dt.avg_pool2d(dt.stack([rows(a)] * 9, 2).permute(2, 0, 1)[None], 2),
}


def bytes_of(x: dt.DeviceArray) -> bytes:
    """The elements; whatever NaN is counts as NaN."""
    x = x.contiguous()
    if x.dtype in (dt.float16, dt.bfloat16, dt.float32, dt.float64):
        x = dt.where(dt.isnan(x), float("nan"), x)
    return ctypes.string_at(x.data_ptr(), x.nbytes) if x.nbytes else b""


def digests(dtype: str) -> dict[str, str]:
    """Op to digest, for one dtype; ops that refuse the dtype or the length say so in the digest."""
    stored = "float32" if dtype == "bfloat16" else dtype
    memory = [Guarded(max(LENGTHS) * 8 + 64) for _ in range(2)]
    found = {name: hashlib.sha256() for name in OPS}
    for n in LENGTHS:
        for back in (0, 1, 3) if n < 20 else (0,):
            operands = []
            for i, block in enumerate(memory):
                view = block.last(n, stored, back)
                view[:] = values(n, stored, 2 * n + i)
                x = dt.from_numpy(view)
                operands.append(x.to(dt.bfloat16) if dtype == "bfloat16" else x)
            for name, op in OPS.items():
                try:
                    found[name].update(bytes_of(op(*operands)))
                except (RuntimeError, IndexError, ValueError) as error:
                    found[name].update(type(error).__name__.encode())
    return {name: digest.hexdigest() for name, digest in found.items()}


if __name__ == "__main__":
    _diagnosis._busy.now = True  # of an error the class is asked for: to explain it takes longer than all loops
    json.dump({dtype: digests(dtype) for dtype in sys.argv[1:]}, sys.stdout)
