"""A softmax of many classes of which most are rare, and the normalization of AlexNet's second version."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_int, _need_number
from devtensor._errors import ShapeMismatchError
from devtensor._types import Device, DType
from devtensor.nn import functional as F
from devtensor.nn.container import ModuleList, Sequential
from devtensor.nn.layers import Linear, _float_options
from devtensor.nn.module import Module

_OP = "AdaptiveLogSoftmaxWithLoss"


class ASMoutput(NamedTuple):
    """What AdaptiveLogSoftmaxWithLoss gives."""

    output: DeviceArray
    loss: DeviceArray


class AdaptiveLogSoftmaxWithLoss(Module):
    """The logarithm of a softmax over n_classes, the most frequent first, and its mean loss (Grave and others 2017).

    cutoffs: where clusters of classes begin. The classes before the first one and the clusters are the head; each later
    cluster has a projection to in_features // div_value ** i and a layer of its own, which computes for those inputs
    alone whose target is in it: on a device a call waits for how many there are. input (N, in_features) with int64
    targets (N), or (in_features) with (). Gives (output, loss): the log-probability of each target, and the mean of the
    negatives. Raises ValueError for cutoffs that cannot be, ShapeMismatchError, RuntimeError for a target that is no
    class.

    >>> layer = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10])
    >>> layer(dt.ones(3, 8), dt.tensor([0, 5, 19])).output.shape
    (3,)
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.in_features: int = _need_int(_OP, "in_features", in_features)
        self.n_classes: int = _need_int(_OP, "n_classes", n_classes)
        if isinstance(cutoffs, (str, DeviceArray)) or not isinstance(cutoffs, Sequence):
            raise TypeError(f"{_OP}(): argument 'cutoffs' must be a sequence of ints, not {type(cutoffs).__name__}")
        begins = [_need_int(_OP, "cutoffs", cutoff) for cutoff in cutoffs]
        if not begins:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if any(a >= b for a, b in pairwise([0, *begins, self.n_classes])):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
                "value is between 1 and n_classes-1"
            )
        self.cutoffs: list[int] = [*begins, self.n_classes]
        self.div_value: float = _need_number(_OP, "div_value", div_value)
        self.head_bias: bool = _need_bool(_OP, "head_bias", head_bias)
        self.shortlist_size: int = begins[0]
        self.n_clusters: int = len(begins)
        self.head_size: int = self.shortlist_size + self.n_clusters
        options = _float_options(_OP, device, dtype)
        self.head: Linear = Linear(self.in_features, self.head_size, self.head_bias, **options)
        self.tail: ModuleList = ModuleList()
        for i, (first, last) in enumerate(pairwise(self.cutoffs), 1):
            size = int(self.in_features // self.div_value**i)
            self.tail.append(
                Sequential(
                    Linear(self.in_features, size, False, **options),
                    Linear(size, last - first, False, **options),
                )
            )

    def reset_parameters(self) -> None:
        """New random numbers in all weights."""
        for layer in (self.head, *(part for projection in self.tail for part in projection.children())):
            layer.reset_parameters()

    def forward(self, input_: DeviceArray, target_: DeviceArray) -> ASMoutput:
        names, arrays = ("input", "target"), (input_, target_)
        _C._check_devices(_OP, names, arrays)
        if target_.dtype not in (_C.int64, _C.int32):
            _C._fail_dtype(_OP, names, arrays, 1, "int64 or int32")
        _C._check_rank(_OP, names, arrays, 1, 0, 1)
        _C._check_rank(_OP, names, arrays, 0, target_.ndim + 1, target_.ndim + 1)
        if target_.ndim and input_.shape[0] != target_.shape[0]:
            text = "Input and target should have the same size in the batch dimension."
            raise _C._explained(_OP, names, arrays, "shape-mismatch", ShapeMismatchError(text), 1)
        input, target = (input_, target_.long()) if target_.ndim else (input_.unsqueeze(0), target_.long().unsqueeze(0))
        head = F.log_softmax(self.head(input), 1)
        place, found = target, _C.zeros_like(head[:, 0])
        used = int((target >= 0).logical_and(target < self.shortlist_size).sum())
        for i, (first, last) in enumerate(pairwise(self.cutoffs)):
            inside = (target >= first).logical_and(target < last)
            rows = inside.nonzero().squeeze(1)
            place = _C.where(inside, self.shortlist_size + i, place)
            used += rows.shape[0]
            if rows.shape[0]:
                of_cluster = F.log_softmax(self.tail[i](input.index_select(0, rows)), 1)
                wanted = target.index_select(0, rows) - first
                found = found.index_add(0, rows, of_cluster.gather(1, wanted.unsqueeze(1)).squeeze(1).to(found.dtype))
        if used != target.shape[0]:
            low, high = int(target.min()), int(target.max())
            text = f"Target values should be in [0, {self.n_classes - 1}], but values in [{low}, {high}] were found."
            raise _C._explained(_OP, names, arrays, "index-out-of-range", RuntimeError(text), 1)
        output = head.gather(1, place.unsqueeze(1)).squeeze(1) + found
        loss = -output.mean()
        return ASMoutput(output if target_.ndim else output.squeeze(0), loss)

    def log_prob(self, input: DeviceArray) -> DeviceArray:
        """The log-probabilities of all classes: (N, in_features) gives (N, n_classes)."""
        return self._all(input, self.head(input))

    def _all(self, input: DeviceArray, head: DeviceArray) -> DeviceArray:
        head = F.log_softmax(head, 1)
        parts = [head[:, : self.shortlist_size]]
        for i, projection in enumerate(self.tail):
            cluster = head[:, self.shortlist_size + i].unsqueeze(1)
            parts.append(F.log_softmax(projection(input), 1) + cluster)
        return _C.cat(parts, 1)

    def predict(self, input: DeviceArray) -> DeviceArray:
        """The most probable class of each input: (N, in_features) gives int64 (N).

        As in PyTorch it is the best of the head where that is a class, and else the best of all.
        """
        head = self.head(input)
        best = head.argmax(1)
        rare = best >= self.shortlist_size
        if not bool(rare.any()):
            return best
        rows = rare.nonzero().squeeze(1)
        chosen = self._all(input.index_select(0, rows), head.index_select(0, rows)).argmax(1)
        return best.index_copy(0, rows, chosen)


class CrossMapLRN2d(Module):
    """x / (k + alpha / size * the sum of x ** 2 over neighbouring channels) ** beta, for (N, C, H, W).

    As many neighbours on both sides as make size channels together, or one less of an even size. Raises
    ShapeMismatchError for another rank, RuntimeError for a size below 1.

    >>> nn.CrossMapLRN2d(3)(dt.ones(2, 4, 5, 5)).shape
    (2, 4, 5, 5)
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__()
        self.size: int = _need_int("CrossMapLRN2d", "size", size)
        self.alpha: float = _need_number("CrossMapLRN2d", "alpha", alpha)
        self.beta: float = _need_number("CrossMapLRN2d", "beta", beta)
        self.k: float = _need_number("CrossMapLRN2d", "k", k)

    def forward(self, input: DeviceArray) -> DeviceArray:
        _C._check_rank("CrossMapLRN2d", ("input",), (input,), 0, 4, 4)
        if self.size < 1:
            raise RuntimeError(f"CrossMapLRN2d: size must be at least 1, but got {self.size}")
        wide = (self.size - 1) // 2 * 2 + 1
        return F.local_response_norm(input, wide, self.alpha * wide / self.size, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
