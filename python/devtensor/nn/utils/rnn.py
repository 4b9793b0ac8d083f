"""Sequences of several lengths: one behind the other, or side by side with padding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_int, _need_ints, _need_number
from devtensor._composed.arguments import need_array
from devtensor._errors import ShapeMismatchError

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]

Self = TypeVar("Self", bound="PackedSequence")


def __dir__() -> list[str]:
    return __all__


class _Packed(NamedTuple):
    data: DeviceArray
    batch_sizes: DeviceArray
    sorted_indices: DeviceArray | None
    unsorted_indices: DeviceArray | None


class PackedSequence(_Packed):
    """Sequences without padding: data holds the first entries of all, then the second ones of those that have one.

    batch_sizes, on the cpu, says how many sequences reach each step. sorted_indices is the order that
    enforce_sorted=False gave them, unsorted_indices leads back. The functions of this module make and read it.
    """

    __slots__ = ()

    def __new__(
        cls: type[Self],
        data: Any,
        batch_sizes: DeviceArray | None = None,
        sorted_indices: DeviceArray | None = None,
        unsorted_indices: DeviceArray | None = None,
    ) -> Self:
        data, sizes = data if batch_sizes is None else (data, batch_sizes)
        need_array("PackedSequence", "data", data)
        need_array("PackedSequence", "batch_sizes", sizes)
        if sizes.is_cuda:
            raise ValueError("batch_sizes should always be on CPU. pack_sequence and pack_padded_sequence make them")
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, sizes, sorted_indices, unsorted_indices)

    def to(self: Self, *args: Any, **kwargs: Any) -> Self:
        """data.to(...), and both orders on its device; batch_sizes stays on the cpu."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        orders = [None if order is None else order.to(data.device) for order in self[2:]]
        return type(self)(data, self.batch_sizes, *orders)

    def cuda(self: Self, device: Any = None, non_blocking: bool = False) -> Self:
        """to(device), which is the current CUDA device by default."""
        return self.to("cuda" if device is None else device, non_blocking=non_blocking)

    def cpu(self: Self) -> Self:
        """to("cpu")."""
        return self.to("cpu")

    def double(self: Self) -> Self:
        """to(float64)."""
        return self.to(_C.float64)

    def float(self: Self) -> Self:
        """to(float32)."""
        return self.to(_C.float32)

    def half(self: Self) -> Self:
        """to(float16)."""
        return self.to(_C.float16)

    def long(self: Self) -> Self:
        """to(int64)."""
        return self.to(_C.int64)

    def int(self: Self) -> Self:
        """to(int32)."""
        return self.to(_C.int32)

    def pin_memory(self: Self) -> Self:
        """With data and both orders in page-locked memory."""
        orders = [None if order is None else order.pin_memory() for order in self[2:]]
        return type(self)(self.data.pin_memory(), self.batch_sizes, *orders)

    @property
    def is_cuda(self) -> bool:
        """Whether data is on a CUDA device."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Whether data is in page-locked memory."""
        return self.data.is_pinned()


def invert_permutation(permutation: DeviceArray | None) -> DeviceArray | None:
    """The order that undoes permutation; None of None.

    >>> nn.utils.rnn.invert_permutation(dt.tensor([2, 0, 1]))
    DeviceArray([1, 2, 0], device='cpu', dtype=int64)
    """
    if permutation is None:
        return None
    need_array("invert_permutation", "permutation", permutation)
    result = _C.empty_like(permutation)
    result[permutation] = _C.arange(permutation.numel(), dtype=permutation.dtype, device=permutation.device)
    return result


def runs(batch_sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """(steps, batch) for steps in a row that have one size of batch."""
    first = 0
    for t in range(1, len(batch_sizes) + 1):
        if t == len(batch_sizes) or batch_sizes[t] != batch_sizes[first]:
            yield t - first, batch_sizes[first]
            first = t


def _lengths(op: str, lengths: Any) -> list[int]:
    if not isinstance(lengths, DeviceArray):
        return list(_need_ints(op, "lengths", lengths))
    if lengths.is_cuda or lengths.ndim != 1 or lengths.dtype.is_floating_point:
        text = (
            f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.ndim}D {lengths.device} "
            f"{lengths.dtype} tensor"
        )
        raise _C._explained(op, ("lengths",), (lengths,), "invalid-argument", RuntimeError(text), 0)
    found: list[int] = lengths.tolist()
    return found


def pack_padded_sequence(
    input: DeviceArray, lengths: DeviceArray | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """The first lengths[i] entries of each sequence, without padding: input (T, N, ...), or (N, T, ...) batch_first.

    lengths, on the cpu, fall, unless enforce_sorted=False: then the sequences are sorted and sorted_indices says how.
    Raises RuntimeError for lengths that do not fit.

    >>> packed = nn.utils.rnn.pack_padded_sequence(dt.tensor([[1, 4], [2, 0], [3, 0]]), [3, 1])
    >>> packed.data.tolist(), packed.batch_sizes.tolist()
    ([1, 4, 2, 3], [2, 1, 1])
    """
    op = "pack_padded_sequence"
    need_array(op, "input", input)
    batch_first, enforce_sorted = (
        _need_bool(op, "batch_first", batch_first),
        _need_bool(op, "enforce_sorted", enforce_sorted),
    )
    wanted = _lengths(op, lengths)
    _C._check_rank(op, ("input",), (input,), 0, 2, 64)
    steps, batch = (input.shape[1], input.shape[0]) if batch_first else input.shape[:2]
    if len(wanted) != batch:
        raise _bad(
            op, input, f"Expected `len(lengths)` to be equal to batch_size, but got {len(wanted)} (batch_size={batch})"
        )
    if not wanted or min(wanted) <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    order = sorted(range(batch), key=lambda i: -wanted[i])
    indices = None
    if not enforce_sorted:
        indices = _C.tensor(order, device=input.device)
        input, wanted = input.index_select(0 if batch_first else 1, indices), [wanted[i] for i in order]
    elif any(wanted[i] < wanted[i + 1] for i in range(batch - 1)):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
            "do not need ONNX exportability."
        )
    if wanted[0] > steps:
        raise _bad(op, input, f"Expected lengths of at most {steps}, as input has so many steps, but got {wanted[0]}")
    by_step = input.transpose(0, 1) if batch_first else input
    sizes, reach = [], batch
    for t in range(wanted[0]):
        while wanted[reach - 1] <= t:
            reach -= 1
        sizes.append(reach)
    parts, start = [], 0
    for count, n in runs(sizes):
        parts.append(by_step[start : start + count, :n].flatten(0, 1))
        start += count
    return PackedSequence(_C.cat(parts), _C.tensor(sizes, device="cpu"), indices)


def _bad(op: str, input: DeviceArray, text: str) -> Exception:
    return _C._explained(op, ("input",), (input,), "shape-mismatch", ShapeMismatchError(text), 0)


def _need_packed(op: str, name: str, value: Any) -> None:
    if not isinstance(value, PackedSequence):
        raise TypeError(f"{op}(): argument '{name}' must be PackedSequence, not {type(value).__name__}")


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[DeviceArray, DeviceArray]:
    """What pack_padded_sequence packed, with padding_value behind the end of each sequence, and the lengths.

    (T, N, ...), or (N, T, ...) with batch_first, where T is the greatest length or total_length. Raises ValueError for
    a total_length below it.

    >>> packed = nn.utils.rnn.pack_padded_sequence(dt.tensor([[1, 4], [2, 0], [3, 0]]), [3, 1])
    >>> nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)[0].tolist()
    [[1, 2, 3], [4, 0, 0]]
    """
    op = "pad_packed_sequence"
    _need_packed(op, "sequence", sequence)
    batch_first = _need_bool(op, "batch_first", batch_first)
    padding_value = _need_number(op, "padding_value", padding_value)
    sizes = sequence.batch_sizes.tolist()
    if total_length is not None:
        total_length = _need_int(op, "total_length", total_length)
        if total_length < len(sizes):
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {len(sizes)}"
            )
    data, batch = sequence.data, sizes[0]
    rest = list(data.shape[1:])
    parts, start = [], 0
    more = [(total_length - len(sizes), 0)] if total_length is not None and total_length > len(sizes) else []
    for count, n in (*runs(sizes), *more):
        part = data.narrow(0, start, count * n).reshape([count, n, *rest])
        parts.append(_padded(part, 1, batch, padding_value))
        start += count * n
    padded = _C.cat(parts)
    lengths, reached = [0] * batch, 0
    for count, n in runs(sizes):
        reached += count
        lengths[:n] = [reached] * n
    padded = padded.transpose(0, 1) if batch_first else padded
    found = _C.tensor(lengths, device="cpu")
    if sequence.unsorted_indices is None:
        return padded, found
    back = sequence.unsorted_indices
    return padded.index_select(0 if batch_first else 1, back), found[back.cpu()]


def _padded(x: DeviceArray, d: int, size: int, value: float, left: bool = False) -> DeviceArray:
    """x with `value` up to size along d."""
    if x.shape[d] == size:
        return x
    shape = list(x.shape)
    shape[d] = size - x.shape[d]
    more = _C.full(shape, value, dtype=x.dtype, device=x.device)
    return _C.cat([more, x] if left else [x, more], d)


def _sequences(op: str, sequences: Any) -> list[DeviceArray]:
    if not isinstance(sequences, Iterable):
        raise RuntimeError(f"{op}: Expected iterable for input sequences, but got arg of type: {type(sequences)}")
    found = list(sequences)
    for i, sequence in enumerate(found):
        need_array(op, f"sequences[{i}]", sequence)
        _C._check_rank(op, (f"sequences[{i}]",), (sequence,), 0, 1, 64)
    if not found:
        raise RuntimeError(f"{op}: received an empty list of sequences")
    first = found[0]
    for i, sequence in enumerate(found[1:], 1):
        names, arrays = ("sequences[0]", f"sequences[{i}]"), (first, sequence)
        if (sequence.device, sequence.dtype) != (first.device, first.dtype):
            _C._check(op, names, arrays)
        _C._check_shape(op, names, arrays, 1, [-1, *first.shape[1:]])
    return found


def pad_sequence(
    sequences: Iterable[DeviceArray],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: Literal["right", "left"] = "right",
) -> DeviceArray:
    """Sequences (L, ...) side by side: (T, N, ...), or (N, T, ...) with batch_first, with padding_value at the end.

    padding_side="left" pads at the beginning. Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError for
    entries of several shapes, RuntimeError for no sequence or another side.

    >>> nn.utils.rnn.pad_sequence([dt.tensor([1, 2, 3]), dt.tensor([4])], batch_first=True).tolist()
    [[1, 2, 3], [4, 0, 0]]
    """
    op = "pad_sequence"
    batch_first = _need_bool(op, "batch_first", batch_first)
    padding_value = _need_number(op, "padding_value", padding_value)
    if not isinstance(padding_side, str) or padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {_C._shown(padding_side)}")
    found = _sequences(op, sequences)
    longest = max(sequence.shape[0] for sequence in found)
    parts = [_padded(sequence, 0, longest, padding_value, padding_side == "left") for sequence in found]
    return _C.stack(parts, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: DeviceArray, lengths: DeviceArray, batch_first: bool = False) -> list[DeviceArray]:
    """The first lengths[i] entries of each sequence of (T, N, ...), or of (N, T, ...) with batch_first: views.

    >>> [x.tolist() for x in nn.utils.rnn.unpad_sequence(dt.tensor([[1, 2, 3], [4, 0, 0]]), dt.tensor([3, 1]), True)]
    [[1, 2, 3], [4]]
    """
    op = "unpad_sequence"
    need_array(op, "padded_sequences", padded_sequences)
    need_array(op, "lengths", lengths)
    _C._check_rank(op, ("padded_sequences",), (padded_sequences,), 0, 2, 64)
    d = 0 if _need_bool(op, "batch_first", batch_first) else 1
    _C._check_shape(op, ("padded_sequences", "lengths"), (padded_sequences, lengths), 1, [padded_sequences.shape[d]])
    pairs = zip(padded_sequences.unbind(d), lengths.tolist(), strict=True)
    return [sequence[:length] for sequence, length in pairs]


def pack_sequence(sequences: Sequence[DeviceArray], enforce_sorted: bool = True) -> PackedSequence:
    """Sequences (L, ...) as a PackedSequence; see pack_padded_sequence.

    >>> nn.utils.rnn.pack_sequence([dt.tensor([1, 2, 3]), dt.tensor([4])]).data.tolist()
    [1, 4, 2, 3]
    """
    found = _sequences("pack_sequence", sequences)
    lengths = [sequence.shape[0] for sequence in found]
    return pack_padded_sequence(pad_sequence(found), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[DeviceArray]:
    """The sequences (L, ...) of a PackedSequence, in the order in which they were packed.

    >>> packed = nn.utils.rnn.pack_sequence([dt.tensor([1, 2, 3]), dt.tensor([4])])
    >>> [x.tolist() for x in nn.utils.rnn.unpack_sequence(packed)]
    [[1, 2, 3], [4]]
    """
    _need_packed("unpack_sequence", "packed_sequences", packed_sequences)
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
