"""Attention of several heads, with the projections of its arguments and of its result."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_int
from devtensor._composed.arguments import need_array, widened
from devtensor._composed.layers.attention import attention_weights, scaled_dot_product_attention
from devtensor._composed.layers.basic import dropout, need_probability
from devtensor._composed.shapes.arrange import pad
from devtensor._dtypes.autocast import lowered

_OP = "multi_head_attention_forward"


class Projections(NamedTuple):
    """The weights of attention: those of query, key and value as one array or as three, and of the result."""

    whole: DeviceArray | None
    parts: tuple[DeviceArray | None, DeviceArray | None, DeviceArray | None]
    bias: DeviceArray | None
    key_row: DeviceArray | None  # (1, 1, E), behind the last key
    value_row: DeviceArray | None
    out_weight: DeviceArray
    out_bias: DeviceArray | None

    def lowered(self, *operands: Any) -> tuple[Any, ...]:
        """These and operands in the dtype of an autocast block: the projections, then the operands."""
        plain = (self.whole, *self.parts, self.bias, self.key_row, self.value_row, self.out_weight, self.out_bias)
        whole, a, b, c, *others = lowered("MultiheadAttention", (*plain, *operands))
        return Projections(whole, (a, b, c), *others[:5]), *others[5:]

    def three(self) -> Any:
        return self.parts if self.whole is None else self.whole.chunk(3)

    def of(self, query: DeviceArray, key: DeviceArray, value: DeviceArray) -> list[DeviceArray]:
        """The three projections; those of one array are one product."""
        if self.whole is not None and query is key and key is value:
            return list(_C.linear(query, self.whole, self.bias).chunk(3, -1))
        biases: Any = (None,) * 3 if self.bias is None else self.bias.chunk(3)
        return [_C.linear(x, w, b) for x, w, b in zip((query, key, value), self.three(), biases, strict=True)]


class Options(NamedTuple):
    """How attention is computed, beside its weights."""

    heads: int
    zero_row: bool  # a key and a value of zeros, behind the last
    dropout: float
    batch_first: bool
    need_weights: bool
    average: bool
    causal: bool


def attend(
    op: str,
    arrays: tuple[DeviceArray, DeviceArray, DeviceArray],
    padding: DeviceArray | None,
    mask: DeviceArray | None,
    made: Projections,
    options: Options,
    static: tuple[DeviceArray | None, DeviceArray | None] = (None, None),
) -> tuple[DeviceArray, DeviceArray | None]:
    """The result, and with need_weights the weights. static: keys and values that are projected already."""
    made, query, key, value, padding, mask = made.lowered(*arrays, padding, mask)
    given = {"query": query, "key": key, "value": value}
    _check(op, given, [w.shape[1] for w in made.three()], options.batch_first)
    if options.causal and mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
    single, heads = query.ndim == 2, options.heads
    batch = [
        x.unsqueeze(0) if single else x if options.batch_first else x.transpose(0, 1)
        for x in made.of(query, key, value)
    ]
    n, length, width = batch[0].shape
    fixed = [x is not None for x in static]
    keys = batch[1].shape[1] if static[0] is None else static[0].shape[1]
    added = _mask(op, query, padding, mask, (n, heads, length, keys))
    if made.key_row is not None and made.value_row is not None and not any(fixed):
        for i, row in enumerate((made.key_row, made.value_row), 1):
            batch[i] = _C.cat([batch[i], row.expand(n, 1, -1)], 1)
    q, k, v = (x.unflatten(2, (heads, width // heads)).transpose(1, 2) for x in batch)
    k = k if static[0] is None else static[0].unflatten(0, (n, heads))
    v = v if static[1] is None else static[1].unflatten(0, (n, heads))
    if options.zero_row:
        k, v = (pad(x, (0, 0, 0, 1)) for x in (k, v))
    if added is not None:
        added = pad(added, (0, k.shape[2] - added.shape[-1]))
    weights = None
    if options.need_weights:
        weights, kept = attention_weights(widened(q) / math.sqrt(q.shape[-1]) @ widened(k).mT, added)
        if kept is not None:
            weights = _C.where(kept, weights, 0.0)
        weights = dropout(weights, options.dropout).to(q.dtype)
        result = weights @ v
        weights = weights.mean(1) if options.average else weights
        weights = weights.squeeze(0) if single else weights
    else:
        result = scaled_dot_product_attention(q, k, v, added, options.dropout)
    result = _C.linear(result.transpose(1, 2).flatten(2), made.out_weight, made.out_bias)
    return (result.squeeze(0) if single else result if options.batch_first else result.transpose(0, 1)), weights


def _check(op: str, given: dict[str, Any], columns: list[int], batch_first: bool) -> None:
    """The shapes of the first three arrays, which are query, key and value."""
    names, arrays = tuple(given), tuple(given.values())
    for name, array in given.items():
        need_array(op, name, array)
    _C._check(op, names, arrays)
    rank = arrays[0].ndim
    _C._check_rank(op, names, arrays, 0, 2, 3)
    for which, size in enumerate(columns):
        _C._check_rank(op, names, arrays, which, rank, rank)
        shape = [-1] * rank if which == 0 else list(arrays[which - 1].shape)
        if which == 1:  # other lengths than query, and the same batch
            shape[0 if rank == 2 else int(batch_first)] = -1
        shape[-1] = size
        _C._check_shape(op, names, arrays, which, shape)


def _mask(
    op: str,
    query: DeviceArray,
    padding: DeviceArray | None,
    mask: DeviceArray | None,
    scores: tuple[int, int, int, int],
) -> DeviceArray | None:
    """What is added to the scores (n, heads, length, keys)."""
    n, heads, length, keys = scores
    added: DeviceArray | None = None
    if padding is not None:
        added = _added(op, query, "key_padding_mask", padding, (keys,) if query.ndim == 2 else (n, keys))
        added = added.reshape(n, 1, 1, keys)
    if mask is not None:
        each = mask.ndim == 3
        other = _added(op, query, "attn_mask", mask, (n * heads, length, keys) if each else (length, keys))
        other = other.reshape(scores) if each else other
        added = other if added is None else added + other
    return added


def _added(op: str, query: DeviceArray, name: str, mask: DeviceArray, shape: tuple[int, ...]) -> DeviceArray:
    """mask as numbers to add: -inf for True."""
    need_array(op, name, mask)
    names, arrays, hides = ("query", name), (query, mask), mask.dtype is _C.bool
    if not hides or mask.device != query.device:
        _C._check(op, names, arrays)
    _C._check_shape(op, names, arrays, 1, shape)
    return _C.where(mask, -math.inf, 0.0).to(query.dtype) if hides else mask


def _check_weights(given: dict[str, Any], shapes: Mapping[str, tuple[int, ...]], size: int) -> None:
    """Of arrays by name, of which the first is query (..., size)."""
    names, arrays = tuple(given), tuple(given.values())
    for name, array in given.items():
        need_array(_OP, name, array)
    _C._check(_OP, names, arrays)
    _C._check_rank(_OP, names, arrays, 0, 2, 3)
    _C._check_shape(_OP, names, arrays, 0, [*(-1,) * (arrays[0].ndim - 1), size])
    for which, name in enumerate(names):
        if name in shapes:
            _C._check_rank(_OP, names, arrays, which, len(shapes[name]), len(shapes[name]))
            _C._check_shape(_OP, names, arrays, which, list(shapes[name]))


def multi_head_attention_forward(
    query: DeviceArray,
    key: DeviceArray,
    value: DeviceArray,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: DeviceArray | None,
    in_proj_bias: DeviceArray | None,
    bias_k: DeviceArray | None,
    bias_v: DeviceArray | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: DeviceArray,
    out_proj_bias: DeviceArray | None,
    training: bool = True,
    key_padding_mask: DeviceArray | None = None,
    need_weights: bool = True,
    attn_mask: DeviceArray | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: DeviceArray | None = None,
    k_proj_weight: DeviceArray | None = None,
    v_proj_weight: DeviceArray | None = None,
    static_k: DeviceArray | None = None,
    static_v: DeviceArray | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[DeviceArray, DeviceArray | None]:
    """What MultiheadAttention computes, of weights that are given: (result, weights or None).

    query (L, N, E), key and value (S, N, E), or without N. use_separate_proj_weight: the three weights in the place of
    in_proj_weight. static_k, static_v: (N * num_heads, S, E / num_heads), projected already. In masks True hides a
    key; floats are added. Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError.

    >>> x, w = dt.ones(3, 1, 4), dt.ones(12, 4)
    >>> result, _ = nn.functional.multi_head_attention_forward(
    ...     x, x, x, 4, 2, w, None, None, None, False, 0.0, dt.eye(4), None)
    >>> result.shape
    (3, 1, 4)
    """
    size, heads = _need_int(_OP, "embed_dim_to_check", embed_dim_to_check), _need_int(_OP, "num_heads", num_heads)
    if heads < 1 or size % heads:
        raise ValueError(f"embed_dim {size} must be divisible by num_heads {heads}")
    separate = _need_bool(_OP, "use_separate_proj_weight", use_separate_proj_weight)
    parts = (q_proj_weight, k_proj_weight, v_proj_weight)
    whole = {f"{x}_proj_weight": w for x, w in zip("qkv", parts, strict=True)} if separate else {}
    whole = whole or {"in_proj_weight": in_proj_weight}
    needed = {"query": query, "key": key, "value": value, **whole, "out_proj_weight": out_proj_weight}
    optional = {"in_proj_bias": in_proj_bias, "bias_k": bias_k, "bias_v": bias_v, "out_proj_bias": out_proj_bias}
    given = {name: array for name, array in optional.items() if array is not None}
    width = size if separate else 3 * size
    shapes: dict[str, tuple[int, ...]] = {
        **dict.fromkeys(whole, (width, -1 if separate else size)),
        "out_proj_weight": (-1, size),
        "in_proj_bias": (3 * size,),
        "bias_k": (1, 1, size),
        "bias_v": (1, 1, size),
    }
    _check_weights(needed, shapes, size)
    shapes["out_proj_bias"] = (out_proj_weight.shape[0],)
    _check(_OP, needed, [w.shape[1] for w in whole.values() if w is not None] if separate else [size] * 3, False)
    _check_weights({"query": query, **given}, shapes, size)
    chance = need_probability(_OP, dropout_p, "dropout_p")
    options = Options(
        heads,
        _need_bool(_OP, "add_zero_attn", add_zero_attn),
        chance if _need_bool(_OP, "training", training) else 0.0,
        False,
        _need_bool(_OP, "need_weights", need_weights),
        _need_bool(_OP, "average_attn_weights", average_attn_weights),
        _need_bool(_OP, "is_causal", is_causal),
    )
    one = None if separate else in_proj_weight
    made = Projections(one, parts, in_proj_bias, bias_k, bias_v, out_proj_weight, out_proj_bias)
    return attend(_OP, (query, key, value), key_padding_mask, attn_mask, made, options, (static_k, static_v))
