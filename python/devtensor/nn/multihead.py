"""Multi-head attention as a module."""

from __future__ import annotations

import math
from typing import Any

from devtensor import _C
from devtensor._autocast import lowered
from devtensor._C import DeviceArray, _need_bool, _need_int, _Parameter
from devtensor._composed.arguments import need_array, widened
from devtensor._composed.layers.attention import attention_weights
from devtensor._composed.layers.basic import need_probability
from devtensor._types import Device, DType
from devtensor.nn import functional as F
from devtensor.nn import init
from devtensor.nn.layers import Linear, _float_options
from devtensor.nn.module import Module

_MHA = "MultiheadAttention"
_NAMES = ("query", "key", "value")


class MultiheadAttention(Module):
    """Attention of num_heads heads, each over its own embed_dim / num_heads columns of projections of its arguments.

    Gives the result and, with need_weights, the weights. In masks True hides a key, as in PyTorch; floats are added.

    >>> attention = nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = dt.zeros(3, 5, 8)
    >>> result, weights = attention(x, x, x)
    >>> result.shape, weights.shape
    ((3, 5, 8), (3, 5, 5))
    """

    in_proj_weight: _Parameter | None
    q_proj_weight: _Parameter | None
    k_proj_weight: _Parameter | None
    v_proj_weight: _Parameter | None
    in_proj_bias: _Parameter | None
    bias_k: _Parameter | None
    bias_v: _Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        embed_dim, num_heads = _need_int(_MHA, "embed_dim", embed_dim), _need_int(_MHA, "num_heads", num_heads)
        if embed_dim <= 0 or num_heads <= 0:
            found = f"embed_dim={embed_dim} and num_heads={num_heads}"
            raise ValueError(f"embed_dim and num_heads must be greater than 0, got {found} instead")
        if embed_dim % num_heads:
            raise ValueError(f"embed_dim {embed_dim} must be divisible by num_heads {num_heads}")
        self.embed_dim: int = embed_dim
        self.num_heads: int = num_heads
        self.head_dim: int = embed_dim // num_heads
        self.dropout: float = need_probability(_MHA, dropout, "dropout")
        self.batch_first: bool = _need_bool(_MHA, "batch_first", batch_first)
        self.add_zero_attn: bool = _need_bool(_MHA, "add_zero_attn", add_zero_attn)
        self.kdim: int = embed_dim if kdim is None else _need_int(_MHA, "kdim", kdim)
        self.vdim: int = embed_dim if vdim is None else _need_int(_MHA, "vdim", vdim)
        bias, add_bias_kv = _need_bool(_MHA, "bias", bias), _need_bool(_MHA, "add_bias_kv", add_bias_kv)
        options = _float_options(_MHA, device, dtype)

        def made(wanted: bool, *shape: int) -> _Parameter | None:
            return _Parameter(_C.empty(shape, **options)) if wanted else None

        alike = self.kdim == self.vdim == embed_dim
        self.register_parameter("in_proj_weight", made(alike, 3 * embed_dim, embed_dim))
        self.register_parameter("q_proj_weight", made(not alike, embed_dim, embed_dim))
        self.register_parameter("k_proj_weight", made(not alike, embed_dim, self.kdim))
        self.register_parameter("v_proj_weight", made(not alike, embed_dim, self.vdim))
        self.register_parameter("in_proj_bias", made(bias, 3 * embed_dim))
        self.out_proj: Linear = Linear(embed_dim, embed_dim, bias, **options)
        self.register_parameter("bias_k", made(add_bias_kv, 1, 1, embed_dim))
        self.register_parameter("bias_v", made(add_bias_kv, 1, 1, embed_dim))
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        for bias in (self.in_proj_bias, self.out_proj.bias):
            if bias is not None:
                init.zeros_(bias)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(
        self,
        query: DeviceArray,
        key: DeviceArray,
        value: DeviceArray,
        key_padding_mask: DeviceArray | None = None,
        need_weights: bool = True,
        attn_mask: DeviceArray | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[DeviceArray, DeviceArray | None]:
        query, key, value, key_padding_mask, attn_mask = lowered(_MHA, (query, key, value, key_padding_mask, attn_mask))
        self._check(query, key, value)
        if is_causal and attn_mask is None:
            raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
        single = query.ndim == 2
        batch = [self._batched(x) for x in self._project(query, key, value)]
        mask = self._mask(query, key_padding_mask, attn_mask, len(batch[0]), batch[1].shape[1], batch[0].shape[1])
        if self.bias_k is not None and self.bias_v is not None:
            for i, row in enumerate(lowered(_MHA, (self.bias_k, self.bias_v)), 1):
                batch[i] = _C.cat([batch[i], row.expand(len(batch[i]), 1, -1)], 1)
        if self.add_zero_attn:
            batch[1:] = [F.pad(x, (0, 0, 0, 1)) for x in batch[1:]]
        q, k, v = (x.unflatten(2, (self.num_heads, self.head_dim)).transpose(1, 2) for x in batch)
        if mask is not None:
            mask = F.pad(mask, (0, k.shape[2] - mask.shape[-1]))
        dropout = self.dropout if self.training else 0.0
        weights = None
        if need_weights:
            weights, kept = attention_weights(widened(q) / math.sqrt(self.head_dim) @ widened(k).mT, mask)
            if kept is not None:
                weights = _C.where(kept, weights, 0.0)
            weights = F.dropout(weights, dropout).to(q.dtype)
            result = weights @ v
            weights = weights.mean(1) if average_attn_weights else weights
            weights = weights.squeeze(0) if single else weights
        else:
            result = F.scaled_dot_product_attention(q, k, v, mask, dropout)
        result = self.out_proj(result.transpose(1, 2).flatten(2))
        return (result.squeeze(0) if single else result if self.batch_first else result.transpose(0, 1)), weights

    def _batched(self, x: DeviceArray) -> DeviceArray:
        """x (L, E), (L, N, E) or with batch_first (N, L, E) as (N, L, E)."""
        return x.unsqueeze(0) if x.ndim == 2 else x if self.batch_first else x.transpose(0, 1)

    def _check(self, *arrays: DeviceArray) -> None:
        for name, array in zip(_NAMES, arrays, strict=True):
            need_array(_MHA, name, array)
        _C._check(_MHA, _NAMES, arrays)
        rank = arrays[0].ndim
        _C._check_rank(_MHA, _NAMES, arrays, 0, 2, 3)
        for which, size in enumerate((self.embed_dim, self.kdim, self.vdim)):
            _C._check_rank(_MHA, _NAMES, arrays, which, rank, rank)
            shape = [-1] * rank if which == 0 else list(arrays[which - 1].shape)
            if which == 1:  # other lengths than query, and the same batch
                shape[0 if rank == 2 else int(self.batch_first)] = -1
            shape[-1] = size
            _C._check_shape(_MHA, _NAMES, arrays, which, shape)

    def _project(self, query: DeviceArray, key: DeviceArray, value: DeviceArray) -> list[DeviceArray]:
        """The three projections; those of one array are one product."""
        bias = self.in_proj_bias
        if self.in_proj_weight is not None and query is key and key is value:
            return list(_C.linear(query, self.in_proj_weight, bias).chunk(3, -1))
        weights: Any = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        if self.in_proj_weight is not None:
            weights = self.in_proj_weight.chunk(3)
        biases = (None,) * 3 if bias is None else bias.chunk(3)
        return [_C.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True)]

    def _mask(
        self, query: DeviceArray, padding: DeviceArray | None, mask: DeviceArray | None, n: int, keys: int, length: int
    ) -> DeviceArray | None:
        """What is added to the scores (n, heads, length, keys)."""
        added: DeviceArray | None = None
        if padding is not None:
            added = _added(query, "key_padding_mask", padding, (keys,) if query.ndim == 2 else (n, keys))
            added = added.reshape(n, 1, 1, keys)
        if mask is not None:
            each = mask.ndim == 3
            other = _added(query, "attn_mask", mask, (n * self.num_heads, length, keys) if each else (length, keys))
            other = other.reshape(n, self.num_heads, length, keys) if each else other
            added = other if added is None else added + other
        return added


def _added(query: DeviceArray, name: str, mask: DeviceArray, shape: tuple[int, ...]) -> DeviceArray:
    """mask as numbers to add: -inf for True."""
    need_array(_MHA, name, mask)
    names, arrays, hides = ("query", name), (query, mask), mask.dtype is _C.bool
    if not hides or mask.device != query.device:
        _C._check(_MHA, names, arrays)
    _C._check_shape(_MHA, names, arrays, 1, shape)
    return _C.where(mask, -math.inf, 0.0).to(query.dtype) if hides else mask
