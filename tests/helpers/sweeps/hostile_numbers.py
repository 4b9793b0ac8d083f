"""Every op whose work might grow with a number, given hostile numbers: run by test_hostile_parameters in a process.

python hostile_numbers.py DEVICE    prints one JSON list a call: its name, the number, and what came of it.

Work goes with the arrays and not with the number: a loop of 2**62 steps never ends. The process has little memory, of
the device too, so that a large result is refused before anybody fills it. The libraries of a real device cannot go on
without memory of the host: they are loaded first, and have more.
"""

from __future__ import annotations

import gc
import json
import resource
import sys
from collections.abc import Callable
from typing import Any

import devtensor as dt
import devtensor.nn.functional as F

NUMBERS = [0, 1, 2, 3, 2**15, 2**31 - 1, 2**31, 2**32, 2**61, 2**62, 2**63 - 1, 2**63, 2**64]
NUMBERS += [-n for n in NUMBERS if n]
MEMORY, REAL_MEMORY = 1 << 30, 16 << 30

Array = dt.DeviceArray

IMAGE: dict[str, Callable[[Array, int], Any]] = {
    "max_pool2d": lambda x, n: dt.max_pool2d(x, n),
    "max_pool2d, ceil": lambda x, n: dt.max_pool2d(x, n, ceil_mode=True),
    "max_pool2d, indices": lambda x, n: dt.max_pool2d(x, n, ceil_mode=True, return_indices=True),
    "max_pool2d, padding": lambda x, n: dt.max_pool2d(x, n, padding=n // 2),
    "max_pool2d, padding, ceil": lambda x, n: dt.max_pool2d(x, n, 1, n // 2 - 1, ceil_mode=True),
    "max_pool2d, padding, step": lambda x, n: dt.max_pool2d(x, n, n // 4, n // 2 - 3, ceil_mode=True),
    "max_pool2d, a column": lambda x, n: dt.max_pool2d(x, (1, n), stride=1, padding=(0, n // 2)),
    "max_pool2d, a row": lambda x, n: dt.max_pool2d(x, (n, 1), stride=1, padding=(n // 2, 0), return_indices=True),
    "max_pool2d, stride": lambda x, n: dt.max_pool2d(x, 2, n),
    "max_pool2d, stride, ceil": lambda x, n: dt.max_pool2d(x, 2, n, 1, ceil_mode=True),
    "max_pool2d, only padding": lambda x, n: dt.max_pool2d(x, 1, padding=n),
    "max_pool2d, dilation": lambda x, n: dt.max_pool2d(x, 2, dilation=n),
    "max_pool2d, dilation of one": lambda x, n: dt.max_pool2d(x, 1, dilation=n),
    "max_pool2d, dilation, ceil": lambda x, n: dt.max_pool2d(x, 2, 2**62, 1, n, ceil_mode=True, return_indices=True),
    "max_pool2d, dilation and rows": lambda x, n: dt.max_pool2d(x, (2, 1), (2**61, 1), (1, 0), (n, n), True),
    "avg_pool2d": lambda x, n: dt.avg_pool2d(x, n),
    "avg_pool2d, ceil": lambda x, n: dt.avg_pool2d(x, n, ceil_mode=True),
    "avg_pool2d, padding": lambda x, n: dt.avg_pool2d(x, n, padding=n // 2),
    "avg_pool2d, padding, ceil": lambda x, n: dt.avg_pool2d(x, n, 1, n // 2 - 1, ceil_mode=True),
    "avg_pool2d, without padding": lambda x, n: dt.avg_pool2d(x, n, 1, n // 2 - 1, True, False),
    "avg_pool2d, stride": lambda x, n: dt.avg_pool2d(x, 2, n, ceil_mode=True),
    "avg_pool2d, divisor": lambda x, n: dt.avg_pool2d(x, 2, divisor_override=n),
    "adaptive_avg_pool2d": lambda x, n: dt.adaptive_avg_pool2d(x, n),
    "adaptive_avg_pool2d, a row": lambda x, n: dt.adaptive_avg_pool2d(x, (1, n)),
    "conv2d, stride": lambda x, n: dt.conv2d(x, weight(x), stride=n),
    "conv2d, padding": lambda x, n: dt.conv2d(x, weight(x), padding=n),
    "conv2d, padding and stride": lambda x, n: dt.conv2d(x, weight(x), padding=n, stride=n),
    "conv2d, padding and more stride": lambda x, n: dt.conv2d(x, weight(x), padding=n, stride=3 * n),
    "conv2d, padding and dilation": lambda x, n: dt.conv2d(x, weight(x), padding=n, dilation=n),
    "conv2d, dilation": lambda x, n: dt.conv2d(x, weight(x), dilation=n),
    "conv2d, dilation, same": lambda x, n: dt.conv2d(x, weight(x), dilation=n, padding="same"),
    "conv2d, groups": lambda x, n: dt.conv2d(x, weight(x), groups=n),
    "conv_transpose2d, stride": lambda x, n: F.conv_transpose2d(x, weight(x), stride=n),
    "conv_transpose2d, padding": lambda x, n: F.conv_transpose2d(x, weight(x), padding=n),
    "conv_transpose2d, padding and dilation": lambda x, n: F.conv_transpose2d(x, weight(x), padding=n, dilation=n),
    "conv_transpose2d, all": lambda x, n: F.conv_transpose2d(x, weight(x), None, n, n, n - 1, 1, n),
    "conv_transpose2d of one pixel": lambda x, n: F.conv_transpose2d(x[:, :, :1, :1], weight(x), None, n, 1, n - 1),
    "conv_transpose2d, groups": lambda x, n: F.conv_transpose2d(x, weight(x), groups=n),
    "conv_transpose3d, padding and dilation": lambda x, n: F.conv_transpose3d(
        x.unsqueeze(2), weight(x).unsqueeze(2), None, 1, n, 0, 1, n
    ),
    "conv3d, all": lambda x, n: F.conv3d(x.unsqueeze(2), weight(x).unsqueeze(2), None, n, n, n),
    "conv3d, dilation": lambda x, n: F.conv3d(x.unsqueeze(2), weight(x).unsqueeze(2), dilation=n),
    "max_pool3d": lambda x, n: F.max_pool3d(x.unsqueeze(2), (1, 1, n), n),
    "avg_pool1d": lambda x, n: F.avg_pool1d(x[0], n, n, n // 2, True),
    "adaptive_max_pool2d": lambda x, n: F.adaptive_max_pool2d(x, (n, 1)),
    "interpolate, size": lambda x, n: F.interpolate(x, (n, 1), mode="bilinear"),
    "interpolate, scale_factor": lambda x, n: F.interpolate(x, scale_factor=n),
    "unfold": lambda x, n: F.unfold(x, 2, n, n, n),
    "fold": lambda x, n: F.fold(x[0, 0], (n, n), 1, n, n, n),
    "pixel_shuffle": lambda x, n: F.pixel_shuffle(x, n),
    "pixel_unshuffle": lambda x, n: F.pixel_unshuffle(x, n),
    "channel_shuffle": lambda x, n: F.channel_shuffle(x, n),
    "conv2d, depthwise": lambda x, n: dt.conv2d(deep(x), deep(weight(x)), padding=n, stride=n, groups=8),
    "conv2d, depthwise, dilation": lambda x, n: dt.conv2d(deep(x), deep(weight(x)), padding=n, dilation=n, groups=8),
    "conv1d": lambda x, n: dt.conv1d(x[0], weight(x)[0], padding=n, stride=n),
    "conv1d, dilation": lambda x, n: dt.conv1d(x[0], weight(x)[0], padding=n, dilation=n),
}
OTHERS: dict[str, Callable[[Array, int], Any]] = {
    "arange": lambda x, n: dt.arange(n, device=x.device),
    "arange from": lambda x, n: dt.arange(n, n + 3, device=x.device),
    "arange by": lambda x, n: dt.arange(0, 7, n, device=x.device),
    "arange of floats": lambda x, n: dt.arange(0.0, 1.0, 1 / n if n else 0.0, device=x.device),
    "arange down": lambda x, n: dt.arange(n, -n, -max(n, 1), device=x.device),
    "linspace": lambda x, n: dt.linspace(0, 1, n, device=x.device),
    "linspace to": lambda x, n: dt.linspace(-n, n, 3, device=x.device),
    "linspace of integers": lambda x, n: dt.linspace(-n, n, 3, dtype=dt.int64, device=x.device),
    "eye": lambda x, n: dt.eye(n, device=x.device),
    "eye of columns": lambda x, n: dt.eye(0, n, device=x.device),
    "eye of rows": lambda x, n: dt.eye(n, 0, device=x.device),
    "zeros": lambda x, n: dt.zeros(n, device=x.device),
    "zeros of nothing": lambda x, n: dt.zeros(n, 0, device=x.device).sum(0),
    "ones twice": lambda x, n: dt.ones(n, n, device=x.device),
    "full": lambda x, n: dt.full((0, n), 1, device=x.device).sum(1),
    "rand": lambda x, n: dt.rand(n, 0, device=x.device),
    "randperm": lambda x, n: shape(dt.randperm(n, device=x.device)),
    "randint": lambda x, n: shape(dt.randint(0, n, (3,), device=x.device)),
    "tril": lambda x, n: dt.tril(x, n),
    "triu": lambda x, n: dt.triu(x, n),
    "roll": lambda x, n: dt.roll(x, n, -1),
    "roll, flat": lambda x, n: dt.roll(x, n),
    "roll twice": lambda x, n: dt.roll(x, (n, -n), (2, 3)),
    "pad": lambda x, n: dt.pad(x, (n, 0)),
    "pad and cut": lambda x, n: dt.pad(x, (n, -n)),
    "cut and pad": lambda x, n: dt.pad(x, (-n, n, 0, 0)),
    "repeat": lambda x, n: x.repeat(n, 1, 1, 1),
    "repeat nothing": lambda x, n: x[:0].repeat(1, 1, 1, n),
    "repeat_interleave": lambda x, n: dt.repeat_interleave(x, n),
    "repeat_interleave of nothing": lambda x, n: dt.repeat_interleave(x[:0], n),
    "expand": lambda x, n: x[:, :, :1].expand(-1, -1, n, -1)[:, :, 0],
    "expand and reduce nothing": lambda x, n: x[:0, :, :1].expand(-1, -1, n, -1).sum(),
    "broadcast_to": lambda x, n: dt.broadcast_to(x, (n, 1, 1, 3, 3))[0],
    "split": lambda x, n: dt.split(x, n, 2),
    "split nothing": lambda x, n: dt.split(x[:0], n, 0),
    "split into": lambda x, n: dt.split(x, [n, 3 - n], 2),
    "chunk": lambda x, n: dt.chunk(x, n, 2),
    "chunk nothing": lambda x, n: dt.chunk(x[:0], n, 0),
    "unflatten": lambda x, n: x.unflatten(2, (n, -1)),
    "reshape": lambda x, n: x.reshape(n, -1),
    "reshape nothing": lambda x, n: x[:0].reshape(n, 0),
    "flatten": lambda x, n: x.flatten(n),
    "transpose": lambda x, n: x.transpose(n, 0),
    "movedim": lambda x, n: x.movedim(n, 0),
    "unsqueeze": lambda x, n: x.unsqueeze(n),
    "narrow": lambda x, n: x.narrow(2, n, 1),
    "narrow to": lambda x, n: x.narrow(2, 0, n),
    "select": lambda x, n: x.select(2, n),
    "diagonal": lambda x, n: x.diagonal(n),
    "diagonal dim": lambda x, n: x.diagonal(0, n, 0),
    "x[n]": lambda x, n: x[0, 0, n],
    "x[n:]": lambda x, n: x[0, 0, n:],
    "x[:n]": lambda x, n: x[0, 0, :n],
    "x[::n]": lambda x, n: x[0, 0, ::n],
    "x[n::n]": lambda x, n: x[0, 0, n::n],
    "x[::n] = 1": lambda x, n: x.clone().__setitem__((0, 0, slice(None, None, n)), 1),
    "sum": lambda x, n: x.sum(n),
    "var": lambda x, n: dt.var(x, correction=n),
    "norm": lambda x, n: dt.norm(x, p=n),
    "pow": lambda x, n: x.to(dt.int64) ** n,
    "pow of a number": lambda x, n: n**x,
    "x // n": lambda x, n: x.to(dt.int64) // n,
    "x + n": lambda x, n: x + n,
    "clamp": lambda x, n: dt.clamp(x, -n, n),
    "embedding": lambda x, n: dt.embedding(dt.zeros(2, dtype=dt.int64, device=x.device), x[0, 0], padding_idx=n),
    "softmax": lambda x, n: dt.softmax(x, n),
    "layer_norm": lambda x, n: dt.layer_norm(x, n),
    "frombuffer": lambda x, n: dt.frombuffer(bytes(16), dtype=dt.int8, count=n).to(x.device),
    "frombuffer from": lambda x, n: dt.frombuffer(bytes(16), dtype=dt.int8, offset=n).to(x.device),
}


def weight(x: Array) -> Array:
    return dt.ones(1, 1, 2, 2, device=x.device)


def deep(x: Array) -> Array:
    return dt.cat([x] * 8, dim=1 if x.shape[2] == 3 else 0)


def shape(x: Array) -> Any:
    return tuple(x.shape)


def shown(result: Any) -> Any:
    """A result, of an array the first elements, to five digits."""
    if isinstance(result, list | tuple):
        return [shown(one) for one in result]
    if isinstance(result, dt.DeviceArray):
        return [list(result.shape), str(result.dtype), [f"{v:.5g}" for v in result.flatten()[:20].tolist()]]
    return result


def outcome(function: Callable[[Array, int], Any], x: Array, n: int) -> Any:
    try:
        return shown(function(x, n))
    except MemoryError:  # by the device or the host
        return "no memory"
    except Exception as error:
        return f"{type(error).__name__}: {error}".replace(str(x.device), "DEVICE")


def limit_memory(device: str) -> None:
    x = dt.ones(1, 1, 3, 3, device=device)
    dt.conv2d(x @ x, weight(x)).tolist()
    most = MEMORY
    if x.is_cuda:
        dt.cuda.set_per_process_memory_fraction(min(1.0, MEMORY / dt.cuda.mem_get_info(device)[1]), device)
        most = MEMORY if dt.cuda.is_simulated() else REAL_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most + used(), resource.RLIM_INFINITY))


def main(device: str) -> None:
    limit_memory(device)
    gc.freeze()  # an error of memory looks at all objects, and those that are imported have no arrays
    x = dt.arange(9, dtype=dt.float32, device=device).reshape(1, 1, 3, 3)
    for name, function in (IMAGE | OTHERS).items():
        for n in NUMBERS:
            print(json.dumps([name, n]), flush=True)
            print(json.dumps([name, n, outcome(function, x, n)]), flush=True)


def used() -> int:
    """Address space in use, in bytes."""
    with open("/proc/self/statm") as pages:
        return int(pages.read().split()[0]) * resource.getpagesize()


if __name__ == "__main__":
    main(*sys.argv[1:])
