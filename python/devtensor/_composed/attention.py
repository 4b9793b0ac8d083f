"""Attention: means of values by how well their keys fit queries."""

from __future__ import annotations

import math
from typing import TypeAlias

from devtensor import _C
from devtensor._autocast import autocasts
from devtensor._C import DeviceArray, _need_bool, _need_number
from devtensor._composed.arguments import need_array, widened
from devtensor._composed.layers import dropout, need_probability

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
    for name, array in zip(_NAMES[1:3], arrays[1:3], strict=True):
        need_array(_SDPA, name, array)
    lead, length = _check(arrays, enable_gqa)
    if is_causal:
        if attn_mask is not None:
            raise RuntimeError(f"{_SDPA}: Explicit attn_mask should not be set when is_causal=True")
        attn_mask = _C.ones(length, key.shape[-2], dtype=_C.bool, device=query.device).tril()
    scale = 1 / math.sqrt(max(query.shape[-1], 1)) if scale is None else scale
    grouped = (*key.shape[:-2], -1 if key.numel() else 0, query.shape[-1])  # the heads that share a key lie in a row
    scores = (widened(query) * scale).reshape(grouped if enable_gqa else query.shape) @ widened(key).mT
    weights, kept = attention_weights(scores.reshape(*lead, length, key.shape[-2]), attn_mask)
    weights = dropout(weights, dropout_p)
    result = (weights.reshape(scores.shape) @ widened(value)).reshape(*lead, length, value.shape[-1])
    return (result if kept is None else _C.where(kept, result, 0.0)).to(query.dtype)


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
