"""Multi-head attention as a module."""

from __future__ import annotations

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_int, _Parameter
from devtensor._composed.layers.basic import need_probability
from devtensor._composed.layers.multihead import Options, Projections, attend
from devtensor._types import Device, DType
from devtensor.nn import init
from devtensor.nn.layers import Linear, _float_options
from devtensor.nn.module import Module

_MHA = "MultiheadAttention"


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
        made = Projections(
            self.in_proj_weight,
            (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight),
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.out_proj.weight,
            self.out_proj.bias,
        )
        options = Options(
            self.num_heads,
            self.add_zero_attn,
            self.dropout if self.training else 0.0,
            self.batch_first,
            need_weights,
            average_attn_weights,
            is_causal,
        )
        return attend(_MHA, (query, key, value), key_padding_mask, attn_mask, made, options)
