"""Transformers: layers of attention and of two products, with PyTorch's names and order."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any, TypeAlias

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_int, _need_number
from devtensor._composed.layers.basic import need_probability
from devtensor._types import Device, DType
from devtensor.nn import functional as F
from devtensor.nn import init
from devtensor.nn.container import ModuleList
from devtensor.nn.dropout import Dropout
from devtensor.nn.layers import Linear, _float_options
from devtensor.nn.module import Module
from devtensor.nn.multihead import MultiheadAttention
from devtensor.nn.norm import LayerNorm

_Activation: TypeAlias = str | Callable[[DeviceArray], DeviceArray]
_Array: TypeAlias = DeviceArray | None


def _activation(op: str, value: _Activation) -> Callable[[DeviceArray], DeviceArray]:
    if isinstance(value, str):
        if value not in ("relu", "gelu"):
            raise RuntimeError(f"{op}: activation should be relu/gelu, not {value}")
        return F.relu if value == "relu" else F.gelu
    if not callable(value):
        raise TypeError(f"{op}(): argument 'activation' must be str or a function, not {type(value).__name__}")
    return value


def _need_module(op: str, name: str, value: Module | None, optional: bool = True) -> None:
    if not (isinstance(value, Module) or (optional and value is None)):
        raise TypeError(f"{op}(): argument '{name}' must be Module, not {type(value).__name__}")


def _need_settings(op: str, settings: dict[str, Any]) -> None:
    """Raises TypeError for a value that is of another type than its parameter."""
    for name in ("d_model", "nhead", "dim_feedforward"):
        _need_int(op, name, settings[name])
    need_probability(op, settings["dropout"], "dropout")
    _need_number(op, "layer_norm_eps", settings["layer_norm_eps"])
    for name in ("batch_first", "norm_first", "bias"):
        _need_bool(op, name, settings[name])


class _Layer(Module):
    """What layers of encoders and decoders share: after attention, two products with an activation between them."""

    def __init__(
        self,
        attentions: tuple[str, ...],
        d_model: int,
        nhead: int,
        dim_feedforward: int,
        dropout: float,
        activation: _Activation,
        layer_norm_eps: float,
        batch_first: bool,
        norm_first: bool,
        bias: bool,
        device: Device | None,
        dtype: DType | None,
    ) -> None:
        super().__init__()
        op = type(self).__name__
        _need_settings(op, locals())
        options = _float_options(op, device, dtype)
        for name in attentions:
            attention = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **options)
            self.add_module(name, attention)
        self.linear1: Linear = Linear(d_model, dim_feedforward, bias, **options)
        self.dropout: Dropout = Dropout(dropout)
        self.linear2: Linear = Linear(dim_feedforward, d_model, bias, **options)
        self.norm_first: bool = norm_first
        parts = range(1, len(attentions) + 2)
        for i in parts:
            self.add_module(f"norm{i}", LayerNorm(d_model, layer_norm_eps, bias=bias, **options))
        for i in parts:
            self.add_module(f"dropout{i}", Dropout(dropout))
        self.activation: Callable[[DeviceArray], DeviceArray] = _activation(op, activation)

    def _joined(self, x: DeviceArray, i: int, part: Callable[[DeviceArray], DeviceArray]) -> DeviceArray:
        """x + part(x), with the normalisation and the dropout number i."""
        norm, dropout = getattr(self, f"norm{i}"), getattr(self, f"dropout{i}")
        added: DeviceArray = x + dropout(part(norm(x) if self.norm_first else x))
        return added if self.norm_first else norm(added)

    def _feed_forward(self, x: DeviceArray) -> DeviceArray:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
    """Attention of a sequence to itself, then two products; each with a sum around it and a LayerNorm.

    >>> nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)(dt.zeros(3, 5, 8)).shape
    (3, 5, 8)
    """

    self_attn: MultiheadAttention

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: _Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(
            ("self_attn",),
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            layer_norm_eps,
            batch_first,
            norm_first,
            bias,
            device,
            dtype,
        )

    def forward(
        self, src: DeviceArray, src_mask: _Array = None, src_key_padding_mask: _Array = None, is_causal: bool = False
    ) -> DeviceArray:
        def attend(x: DeviceArray) -> DeviceArray:
            return self.self_attn(x, x, x, src_key_padding_mask, False, src_mask, is_causal=is_causal)[0]

        return self._joined(self._joined(src, 1, attend), 2, self._feed_forward)


class TransformerDecoderLayer(_Layer):
    """Attention of a sequence to itself, attention to memory, then two products.

    >>> nn.TransformerDecoderLayer(8, 2, 16)(dt.zeros(5, 3, 8), dt.zeros(7, 3, 8)).shape
    (5, 3, 8)
    """

    self_attn: MultiheadAttention
    multihead_attn: MultiheadAttention

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: _Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(
            ("self_attn", "multihead_attn"),
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            layer_norm_eps,
            batch_first,
            norm_first,
            bias,
            device,
            dtype,
        )

    def forward(
        self,
        tgt: DeviceArray,
        memory: DeviceArray,
        tgt_mask: _Array = None,
        memory_mask: _Array = None,
        tgt_key_padding_mask: _Array = None,
        memory_key_padding_mask: _Array = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> DeviceArray:
        def attend(x: DeviceArray) -> DeviceArray:
            return self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask, is_causal=tgt_is_causal)[0]

        def look(x: DeviceArray) -> DeviceArray:
            return self.multihead_attn(
                x, memory, memory, memory_key_padding_mask, False, memory_mask, is_causal=memory_is_causal
            )[0]

        return self._joined(self._joined(self._joined(tgt, 1, attend), 2, look), 3, self._feed_forward)


class _Stack(Module):
    def __init__(self, layer: Module, num_layers: int, norm: Module | None) -> None:
        super().__init__()
        num_layers = _need_int(type(self).__name__, "num_layers", num_layers)
        _need_module(type(self).__name__, "norm", norm)
        self.layers: ModuleList = ModuleList([copy.deepcopy(layer) for _ in range(num_layers)])
        self.num_layers: int = num_layers
        self.norm: Module | None = norm


class TransformerEncoder(_Stack):
    """num_layers copies of a layer, one after another, and norm. enable_nested_tensor and mask_check change nothing.

    >>> layer = nn.TransformerEncoderLayer(8, 2, 16)
    >>> nn.TransformerEncoder(layer, 2)(dt.zeros(5, 3, 8)).shape
    (5, 3, 8)
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        _need_bool("TransformerEncoder", "enable_nested_tensor", enable_nested_tensor)
        _need_bool("TransformerEncoder", "mask_check", mask_check)
        _need_module("TransformerEncoder", "encoder_layer", encoder_layer, optional=False)
        super().__init__(encoder_layer, num_layers, norm)

    def forward(
        self,
        src: DeviceArray,
        mask: _Array = None,
        src_key_padding_mask: _Array = None,
        is_causal: bool | None = None,
    ) -> DeviceArray:
        for layer in self.layers:
            src = layer(src, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=bool(is_causal))
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(_Stack):
    """num_layers copies of a layer, each of which looks at memory, and norm.

    >>> layer = nn.TransformerDecoderLayer(8, 2, 16)
    >>> nn.TransformerDecoder(layer, 2)(dt.zeros(5, 3, 8), dt.zeros(7, 3, 8)).shape
    (5, 3, 8)
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        _need_module("TransformerDecoder", "decoder_layer", decoder_layer, optional=False)
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt: DeviceArray,
        memory: DeviceArray,
        tgt_mask: _Array = None,
        memory_mask: _Array = None,
        tgt_key_padding_mask: _Array = None,
        memory_key_padding_mask: _Array = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> DeviceArray:
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=bool(tgt_is_causal),
                memory_is_causal=memory_is_causal,
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder of src and a decoder of tgt, which looks at what the encoder has made.

    >>> model = nn.Transformer(8, 2, 1, 1, 16)
    >>> model(dt.zeros(7, 3, 8), dt.zeros(5, 3, 8)).shape
    (5, 3, 8)
    """

    encoder: Module
    decoder: Module

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: _Activation = F.relu,
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        _need_settings("Transformer", locals())
        activation = _activation("Transformer", activation)
        for name, number in (("num_encoder_layers", num_encoder_layers), ("num_decoder_layers", num_decoder_layers)):
            _need_int("Transformer", name, number)
        for name, custom in (("custom_encoder", custom_encoder), ("custom_decoder", custom_decoder)):
            _need_module("Transformer", name, custom)
        options = _float_options("Transformer", device, dtype)
        shared = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)
        if custom_encoder is None:
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias, **options)
            custom_encoder = TransformerEncoder(TransformerEncoderLayer(*shared, **options), num_encoder_layers, norm)
        self.encoder = custom_encoder
        if custom_decoder is None:
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias, **options)
            custom_decoder = TransformerDecoder(TransformerDecoderLayer(*shared, **options), num_decoder_layers, norm)
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model: int = d_model
        self.nhead: int = nhead
        self.batch_first: bool = batch_first

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    @staticmethod
    def generate_square_subsequent_mask(
        sz: int, device: Device | None = None, dtype: DType | None = None
    ) -> DeviceArray:
        """(sz, sz) of -inf above the diagonal and 0 elsewhere: no place looks at those after it."""
        return _C.full((sz, sz), -math.inf, device=device, dtype=dtype).triu(1)

    def forward(
        self,
        src: DeviceArray,
        tgt: DeviceArray,
        src_mask: _Array = None,
        tgt_mask: _Array = None,
        memory_mask: _Array = None,
        src_key_padding_mask: _Array = None,
        tgt_key_padding_mask: _Array = None,
        memory_key_padding_mask: _Array = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> DeviceArray:
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        result: DeviceArray = self.decoder(
            tgt,
            memory,
            tgt_mask,
            memory_mask,
            tgt_key_padding_mask,
            memory_key_padding_mask,
            tgt_is_causal,
            memory_is_causal,
        )
        return result
