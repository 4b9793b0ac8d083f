"""Attention: means of values by how well their keys fit queries."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_number
from devtensor._composed.arguments import need_array, widened
from devtensor._composed.layers.basic import dropout, need_probability
from devtensor._composed.shapes.joining import broadcast_shapes
from devtensor._dtypes.autocast import autocasts

_Arrays: TypeAlias = tuple[DeviceArray, DeviceArray, DeviceArray, DeviceArray | None]
_SDPA = "scaled_dot_product_attention"
_NAMES = ("query", "key", "value", "attn_mask")


@autocasts
def scaled_dot_product_attention(
    query: DeviceArray,
    key: DeviceArray,
    value: DeviceArray,
    attn_mask: DeviceArray | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> DeviceArray:
    """softmax(query @ key.mT * scale + attn_mask) @ value: (*, L, E), (*, S, E), (*, S, V) give (*, L, V).

    scale is 1 / sqrt(E) where it is None. attn_mask broadcasts to (*, L, S): floats are added, False keeps a query from
    a key; a query that is kept from all keys gets zeros. is_causal keeps query i from the keys after i. dropout_p holds
    in every call. enable_gqa: several heads of query, at -3, share a head of key and value. Floats of one dtype on one
    device, computed in float32 for the half types. Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError.

    >>> q = dt.tensor([[1.0, 0.0]])
    >>> F.scaled_dot_product_attention(q, dt.eye(2), dt.tensor([[1.0], [3.0]]))
    DeviceArray([[1.6605]], device='cpu', dtype=float32)
    """
    arrays = (query, key, value, attn_mask)
    is_causal, enable_gqa = _need_bool(_SDPA, "is_causal", is_causal), _need_bool(_SDPA, "enable_gqa", enable_gqa)
    dropout_p = need_probability(_SDPA, dropout_p, "dropout_p")
    scale = None if scale is None else _need_number(_SDPA, "scale", scale)
    for name, array in zip(_NAMES[:3], arrays[:3], strict=True):
        need_array(_SDPA, name, array)
    if not enable_gqa:
        query, key, value = _broadcast(query, key, value)
        arrays = (query, key, value, attn_mask)
    lead, length = _check(arrays, enable_gqa)
    if is_causal and attn_mask is not None:
        raise RuntimeError(f"{_SDPA}: Explicit attn_mask should not be set when is_causal=True")
    scale = 1 / math.sqrt(max(query.shape[-1], 1)) if scale is None else scale
    if not dropout_p:
        result = _in_one_pass(arrays, scale, is_causal)
        if result is not None:
            return result
    whole = _parts(arrays, scale, is_causal, dropout_p)
    result = whole.result().reshape(*lead, length, value.shape[-1]).to(query.dtype)
    return result if dropout_p else _laid_out_as(query, result)


def _laid_out_as(query: DeviceArray, result: DeviceArray) -> DeviceArray:
    """result in the order of memory that the device's own op gives it: heads side by side where those of query are."""
    if query.ndim != 4 or query.is_contiguous() or not query.transpose(1, 2).is_contiguous():
        return result
    return result.transpose(1, 2).contiguous().transpose(1, 2)


def _parts(arrays: _Arrays, scale: float, causal: bool, dropout_p: float = 0.0) -> _Attention:
    query, key, value, mask = arrays
    lead, length, heads, keys = query.shape[:-2], query.shape[-2], math.prod(key.shape[:-2]), key.shape[-2]
    group = math.prod(lead) // heads if heads else 1
    return _Attention(
        (widened(query) * scale).reshape(heads, group, length, query.shape[-1]),
        widened(key).reshape(heads, keys, key.shape[-1]),
        widened(value).reshape(heads, keys, value.shape[-1]),
        None if mask is None else _Mask(mask, lead, group),
        causal,
        dropout_p,
    )


def _in_one_pass(arrays: _Arrays, scale: float, causal: bool) -> DeviceArray | None:
    """By the device's own op, where it has one: few of the scores are in memory at a time."""
    if not _C.is_grad_enabled() or not any(x is not None and x.requires_grad for x in arrays):
        return _C._attention(*arrays, scale, causal)
    if arrays[3] is not None and arrays[3].requires_grad:
        return None  # parts know where the gradient of a mask goes
    from devtensor._composed.layers.attention_gradient import OnePass  # with the functions that are loaded late

    found: DeviceArray | None = OnePass.apply(*arrays, scale, causal)
    return found


# Bytes of scores that are in memory at a time: what a cache of the host holds, and what keeps a GPU busy. Dropout draws
# its numbers part by part, so that there the parts are the same on every device.
_CACHED, _BUSY, _DRAWN = 1 << 20, 1 << 26, 1 << 24
_RECORDED = 1 << 24  # as many bytes of scores may stay for the gradient; beyond, it computes them again


class _Mask:
    """attn_mask as (masks, 1 or queries, 1 or keys), and which of the masks is for each head."""

    def __init__(self, mask: DeviceArray, lead: tuple[int, ...], group: int) -> None:
        rows, columns = mask.shape[-2] if mask.ndim > 1 else 1, mask.shape[-1] if mask.ndim else 1
        own = mask.shape[:-2]
        count = math.prod(own)
        self.values = mask.reshape(count, rows, columns)
        self.which: DeviceArray | None = None
        if count != 1:
            places = _C.arange(count, device=mask.device).reshape(own)
            self.which = places.expand(lead).reshape(math.prod(lead) // max(group, 1), group)

    def part(self, heads: slice, queries: slice) -> DeviceArray:
        """That of some heads (heads, group or 1, queries, keys), or of all."""
        values = self.values if self.values.shape[1] == 1 else self.values[:, queries]
        if self.which is None:
            return values.unsqueeze(0)
        which = self.which[heads]
        return values.index_select(0, which.reshape(-1)).reshape(*which.shape, *values.shape[1:])


@dataclass
class _Attention:
    """query (heads, group, queries, E), scaled; key (heads, keys, E); value (heads, keys, V)."""

    query: DeviceArray
    key: DeviceArray
    value: DeviceArray
    mask: _Mask | None
    causal: bool
    dropout_p: float
    _later: tuple[slice, DeviceArray] | None = None  # what hides later keys from the queries that were last

    def result(self) -> DeviceArray:
        """(heads, group, queries, V), part by part where the scores would take much memory."""
        heads, group, queries, _ = self.query.shape
        arrays = (self.query, self.key, self.value, *([] if self.mask is None else [self.mask.values]))
        recorded = _C.is_grad_enabled() and any(array.requires_grad for array in arrays)
        parts = self.cut(recorded)
        if len(parts) == 1 and len(parts[0]) == 1:
            return self.part(slice(0, heads), slice(0, queries))
        if recorded:
            from devtensor.utils.checkpoint import checkpoint  # with the modules that are loaded late

            return _C.cat([_C.cat([checkpoint(self.part, *one) for one in line]) for line in parts], 2)
        result = _C.empty(
            (heads, group, queries, self.value.shape[2]), dtype=self.query.dtype, device=self.query.device
        )
        for line in parts:
            for one in line:
                result[one[0], :, one[1]] = self.part(*one)
        return result

    def cut(self, recorded: bool) -> list[list[tuple[slice, slice]]]:
        """Lines of parts, (heads, queries), whose scores fit in memory."""
        heads, group, queries, _ = self.query.shape
        row = group * self.key.shape[1] * self.query.itemsize  # bytes of the scores of one query
        limit = _DRAWN if self.dropout_p else _BUSY if self.query.is_cuda else _CACHED
        limit = max(limit, _RECORDED) if recorded else limit
        if heads * queries * row <= limit or not row:
            return [[(slice(0, heads), slice(0, queries))]]
        step = min(queries, max(limit // row, 16))  # queries of one head, then heads with all of theirs
        together = max(limit // (step * row), 1)
        return [
            [(slice(h, min(h + together, heads)), slice(q, min(q + step, queries))) for h in range(0, heads, together)]
            for q in range(0, queries, step)
        ]

    def later(self, queries: slice, rows: int, keys: int) -> DeviceArray:
        """0 for the keys up to each query, minus infinity for those after it."""
        if self._later is None or self._later[0] != queries:
            later = _C.full((rows, keys), -math.inf, dtype=self.query.dtype, device=self.query.device)
            self._later = (queries, later.triu(queries.start + 1))
        return self._later[1]

    def weights(self, heads: slice, queries: slice) -> tuple[DeviceArray, DeviceArray | None]:
        """Those of some queries of some heads, and which of the queries see a key, None where all do."""
        query, key = self.query[heads, :, queries], self.key[heads]
        count, group, rows, size = query.shape
        if self.causal:  # later keys have no part in it
            key = key[:, : queries.start + rows]
        keys = key.shape[1]
        scores = (query.reshape(count, group * rows, size) @ key.mT).reshape(count, group, rows, keys)
        if self.causal:
            return _C.softmax(scores + self.later(queries, rows, keys), -1), None
        return attention_weights(scores, None if self.mask is None else self.mask.part(heads, queries))

    def part(self, heads: slice, queries: slice) -> DeviceArray:
        """The result of some queries of some heads."""
        weights, kept = self.weights(heads, queries)
        weights = dropout(weights, self.dropout_p)
        count, group, rows, keys = weights.shape
        value = self.value[heads, :keys]
        result = (weights.reshape(count, group * rows, keys) @ value).reshape(count, group, rows, value.shape[2])
        return result if kept is None else _C.where(kept, result, 0.0)

    def gradients(self, gradient: DeviceArray, result: DeviceArray) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
        """Those of query, key and value, part by part, where no weight is dropped; result is the sum of all parts.

        With weights p and scores s, dv = p.T @ g, dp = g @ v.T, ds = p * (dp - sum(g * result)), dq = ds @ k and
        dk = ds.T @ q.
        """
        query, key, value = (_C.zeros_like(array) for array in (self.query, self.key, self.value))
        gradient, result = (array.reshape(*self.query.shape[:3], value.shape[2]) for array in (gradient, result))
        for heads, queries in (part for line in self.cut(False) for part in line):
            weights, kept = self.weights(heads, queries)
            count, group, rows, keys = weights.shape
            grad, own = gradient[heads, :, queries], result[heads, :, queries]
            grad = grad if kept is None else _C.where(kept, grad, 0.0)
            total = (grad * own).sum(-1).reshape(count, group * rows, 1)
            weights, grad = (
                weights.reshape(count, group * rows, keys),
                grad.reshape(count, group * rows, grad.shape[-1]),
            )
            value[heads, :keys] += weights.mT @ grad
            scores = weights * (grad @ self.value[heads, :keys].mT - total)
            query[heads, :, queries] = (scores @ self.key[heads, :keys]).reshape(own.shape[:3] + (self.key.shape[-1],))
            key[heads, :keys] += scores.mT @ self.query[heads, :, queries].reshape(
                count, group * rows, self.key.shape[-1]
            )
        return query, key, value


def _broadcast(
    query: DeviceArray, key: DeviceArray, value: DeviceArray
) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
    """The three with one lead of dimensions, where theirs broadcast."""
    leads = query.shape[:-2], key.shape[:-2], value.shape[:-2]
    if leads[0] == leads[1] == leads[2]:
        return query, key, value
    try:
        lead = broadcast_shapes(*leads)
    except RuntimeError:
        return query, key, value  # which the check says
    query, key, value = (array.expand(*lead, *array.shape[-2:]) for array in (query, key, value))
    return query, key, value


def _check(arrays: _Arrays, grouped: bool) -> tuple[tuple[int, ...], int]:
    """The leading dimensions of the result, and the number of queries."""
    query, key, value, mask = arrays
    choice = mask is not None and mask.dtype is _C.bool and mask.device == query.device
    _C._check(_SDPA, _NAMES, (query, key, value, None) if choice else arrays)
    for which in range(3):
        _C._check_rank(_SDPA, _NAMES, arrays, which, 3 if grouped else 2, 8)
    lead, length = query.shape[:-2], query.shape[-2]
    heads = list(lead)
    if grouped:
        heads[-1] = key.shape[-3]
        if heads[-1] == 0 or lead[-1] % heads[-1]:
            text = f"{_SDPA}: with enable_gqa the heads of query must be a multiple of those of key, but got {lead[-1]}"
            raise _C._explained(_SDPA, _NAMES, arrays, "invalid-argument", RuntimeError(f"{text} and {heads[-1]}"))
    _C._check_shape(_SDPA, _NAMES, arrays, 1, [*heads, -1, query.shape[-1]])
    _C._check_shape(_SDPA, _NAMES, arrays, 2, [*heads, key.shape[-2], -1])
    if mask is not None:
        whole = (*lead, length, key.shape[-2])
        fits = all(m in (1, n) for m, n in zip(reversed(mask.shape), reversed(whole), strict=False))
        if mask.ndim > len(whole) or not fits:
            _C._check_shape(_SDPA, _NAMES, arrays, 3, whole)
    return lead, length


def attention_weights(scores: DeviceArray, mask: DeviceArray | None) -> tuple[DeviceArray, DeviceArray | None]:
    """softmax(scores + mask) over keys, and which queries are kept from some keys only, None where all are."""
    if mask is None:
        return _C.softmax(scores, -1), None
    if mask.dtype is _C.bool:
        mask = _C.where(mask, 0.0, -math.inf).to(scores.dtype)
    mask = widened(mask)
    kept = (mask != -math.inf).any(-1, keepdim=True)
    return _C.softmax(scores + _C.where(kept, mask, 0.0), -1), kept
