"""Recurrent layers as modules."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_int, _need_number, _Parameter
from devtensor._composed.arguments import need_array
from devtensor._composed.layers import recurrent
from devtensor._composed.layers.recurrent import State, Weights
from devtensor._dtypes.autocast import lowered
from devtensor._errors import ShapeMismatchError
from devtensor._types import Device, DType
from devtensor.nn import functional as F
from devtensor.nn import init
from devtensor.nn.layers import _float_options
from devtensor.nn.module import Module
from devtensor.nn.utils.rnn import PackedSequence

Nonlinearity: TypeAlias = Literal["tanh", "relu"]
_Pair: TypeAlias = tuple[DeviceArray, DeviceArray]  # (h, c)

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _reset(module: Module, hidden_size: int) -> None:
    bound = 1.0 / math.sqrt(hidden_size) if hidden_size > 0 else 0.0
    for weight in module.parameters():
        init.uniform_(weight, -bound, bound)


def _mode(op: str, nonlinearity: str) -> str:
    if not isinstance(nonlinearity, str) or nonlinearity not in ("tanh", "relu"):
        shown = nonlinearity if isinstance(nonlinearity, str) else _C._shown(nonlinearity)
        raise ValueError(f"{op}(): Unknown nonlinearity '{shown}'. Select from 'tanh' or 'relu'.")
    return f"RNN_{nonlinearity.upper()}"


def _mismatch(op: str, names: Sequence[str], arrays: Sequence[DeviceArray], which: int, text: str) -> Exception:
    return _C._explained(op, tuple(names), tuple(arrays), "shape-mismatch", ShapeMismatchError(text), which)


def _probability(op: str, p: float) -> float:
    p = p if isinstance(p, bool) else _need_number(op, "dropout", p)
    if isinstance(p, bool) or not 0 <= p <= 1:
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
        )
    return float(p)


def _keeps_state(op: str, input: DeviceArray) -> bool:
    """Whether an autocast block leaves the state as it is, as PyTorch's loops on the CPU do."""
    return op in ("GRU", "GRUCell", "LSTMCell") and not input.is_cuda


class RNNBase(Module):
    """What RNN, LSTM and GRU have in common: weights weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0 and so on.

    All are initialised uniformly in ±1 / sqrt(hidden_size).
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        op = type(self).__name__
        if not isinstance(mode, str) or mode not in _GATES:
            raise ValueError(f"{op}(): Unrecognized RNN mode: {mode if isinstance(mode, str) else _C._shown(mode)}")
        self.mode = mode
        self.input_size: int = _need_int(op, "input_size", input_size)
        self.hidden_size: int = _need_int(op, "hidden_size", hidden_size)
        self.num_layers: int = _need_int(op, "num_layers", num_layers)
        self.bias: bool = _need_bool(op, "bias", bias)
        self.batch_first: bool = _need_bool(op, "batch_first", batch_first)
        self.dropout: float = _probability(op, dropout)
        self.bidirectional: bool = _need_bool(op, "bidirectional", bidirectional)
        self.proj_size: int = _need_int(op, "proj_size", proj_size)
        for name in ("input_size", "hidden_size", "num_layers"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if self.proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if self.dropout > 0 and self.num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
                stacklevel=3,
            )
        options = _float_options(op, device, dtype)
        rows, out = _GATES[mode] * self.hidden_size, self._output_size()
        self._all_weights: list[list[str]] = []
        for layer in range(self.num_layers):
            columns = self.input_size if layer == 0 else out * self._directions()
            shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, columns), "weight_hh": (rows, out)}
            if self.bias:
                shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
            if self.proj_size:
                shapes["weight_hr"] = (self.proj_size, self.hidden_size)
            for suffix in ("", "_reverse")[: self._directions()]:
                names = []
                for kind, shape in shapes.items():
                    names.append(f"{kind}_l{layer}{suffix}")
                    self.register_parameter(names[-1], _Parameter(_C.empty(shape, **options)))
                self._all_weights.append(names)
        self.reset_parameters()

    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    def _output_size(self) -> int:
        return self.proj_size or self.hidden_size

    def reset_parameters(self) -> None:
        """New random numbers in all weights."""
        _reset(self, self.hidden_size)

    def flatten_parameters(self) -> None:
        """Does nothing: the weights are used as they lie. PyTorch's programs call it."""

    @property
    def all_weights(self) -> list[list[DeviceArray]]:
        """The weights of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def _weights(self, which: int) -> Weights:
        found = list(lowered(self._rule, [getattr(self, name) for name in self._all_weights[which]]))
        hr = found.pop() if self.proj_size else None
        ih, hh, bias_ih, bias_hh = found if self.bias else (*found, None, None)
        return Weights(ih, hh, bias_ih, bias_hh, hr)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        for name, plain in (("proj_size", 0), ("num_layers", 1), ("bias", True), ("batch_first", False)):
            if getattr(self, name) != plain:
                text += f", {name}={getattr(self, name)}"
        text += f", dropout={self.dropout}" if self.dropout else ""
        return text + (", bidirectional=True" if self.bidirectional else "")

    # ------------------------------------------------------------ the call

    def _states(self) -> tuple[tuple[str, int], ...]:
        """The name and last size of each array of hx."""
        return (("hx", self.hidden_size),)

    def _names(self) -> tuple[str, ...]:
        return ("input", *(name for name, _ in self._states()))

    def _run(self, input: Any, hx: State | None) -> tuple[Any, State]:
        op = type(self).__name__
        if isinstance(input, PackedSequence):
            output, state = self._run_packed(op, input, hx)
            return input._replace(data=output), state
        need_array(op, "input", input)
        input, hx, dtype = self._lowered(op, input, hx)
        _C._check_rank(op, ("input",), (input,), 0, 2, 3)
        alone = input.ndim == 2
        d = 1 if self.batch_first else 0  # of the steps
        x = input.unsqueeze(1 - d) if alone else input
        if hx is not None:
            for which in range(1, len(hx) + 1):
                _C._check_rank(op, self._names(), (input, *hx), which, input.ndim, input.ndim)
            hx = tuple(array.unsqueeze(1) for array in hx) if alone else hx
        if x.shape[d] == 0:
            raise _mismatch(op, ("input",), (input,), 0, "Expected sequence length to be larger than 0 in RNN")
        output, state = self._through(op, x, None, d, x.shape[1 - d], hx, dtype)
        if alone:
            return output.squeeze(1 - d), tuple(array.squeeze(1) for array in state)
        return output, state

    def _run_packed(self, op: str, input: PackedSequence, hx: State | None) -> tuple[DeviceArray, State]:
        data, _, order, back = input
        data, hx, dtype = self._lowered(op, data, hx)
        _C._check_rank(op, ("input",), (data,), 0, 2, 2)
        if hx is not None:
            for which in range(1, len(hx) + 1):
                _C._check_rank(op, self._names(), (data, *hx), which, 3, 3)
            hx = hx if order is None else tuple(array.index_select(1, order) for array in hx)
        sizes = input.batch_sizes.tolist()
        output, state = self._through(op, data, sizes, 0, sizes[0], hx, dtype)
        return output, state if back is None else tuple(array.index_select(1, back) for array in state)

    def _check(self, op: str, input: DeviceArray, hx: State | None) -> None:
        """Devices and dtypes."""
        given = (input,) if hx is None else (input, *hx)
        names = self._names()[: len(given)]
        for name, array in zip(names, given, strict=True):
            need_array(op, name, array)
        weight = self._all_weights[0][0]
        _C._check(op, (*names, weight), (*given, *lowered(self._rule, (getattr(self, weight),))))

    def _lowered(self, op: str, input: DeviceArray, hx: State | None) -> tuple[DeviceArray, State | None, _C.dtype]:
        """What an autocast block makes of the operands, checked; and the dtype of a state that begins with zeros."""
        low, *states = lowered(self._rule, (input, *(hx or ())))
        self._check(op, low, None if hx is None else tuple(states))
        if _keeps_state(op, input):
            return low, hx, input.dtype
        return low, None if hx is None else tuple(states), low.dtype

    @property
    def _rule(self) -> str:
        return self.mode.partition("_")[0]

    def _through(
        self,
        op: str,
        x: DeviceArray,
        sizes: list[int] | None,
        d: int,
        batch: int,
        hx: State | None,
        dtype: _C.dtype,
    ) -> tuple[DeviceArray, State]:
        """All layers: the output, and the last states of all layers and directions."""
        if x.shape[-1] != self.input_size:
            text = f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {x.shape[-1]}"
            raise _mismatch(op, ("input",), (x,), 0, text)
        count = self.num_layers * self._directions()
        if hx is None:
            wanted = [(count, batch, size) for _, size in self._states()]
            hx = tuple(_C.zeros(shape, dtype=dtype, device=x.device) for shape in wanted)
        for which, ((name, size), array) in enumerate(zip(self._states(), hx, strict=True)):
            if array.shape != (count, batch, size):
                called = "hidden" if name == "hx" else f"hidden[{which}]"
                text = f"Expected {called} size {(count, batch, size)}, got {list(array.shape)}"
                raise _mismatch(op, self._names(), (x, *hx), which + 1, text)
        begins = list(zip(*(array.unbind(0) for array in hx), strict=True))
        ends: list[State] = []
        for layer in range(self.num_layers):
            if layer and self.dropout:
                x = F.dropout(x, self.dropout, self.training)
            outputs = []
            for direction in range(self._directions()):
                which = len(ends)
                output, end = recurrent.run(self.mode, x, sizes, d, begins[which], self._weights(which), direction == 1)
                outputs.append(output)
                ends.append(end)
            x = outputs[0] if len(outputs) == 1 else _C.cat(outputs, -1)
        return x, tuple(_C.stack(parts) for parts in zip(*ends, strict=True))


class _OneState(RNNBase):
    def forward(self, input: Any, hx: DeviceArray | None = None) -> tuple[Any, DeviceArray]:
        output, (state,) = self._run(input, None if hx is None else (hx,))
        return output, state

    if TYPE_CHECKING:  # the output is what the input is

        @overload
        def __call__(
            self, input: PackedSequence, hx: DeviceArray | None = None
        ) -> tuple[PackedSequence, DeviceArray]: ...
        @overload
        def __call__(self, input: DeviceArray, hx: DeviceArray | None = None) -> tuple[DeviceArray, DeviceArray]: ...
        def __call__(self, input: Any, hx: DeviceArray | None = None) -> tuple[Any, DeviceArray]: ...


class RNN(_OneState):
    """h = tanh(x @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh) for each step; nonlinearity="relu" takes relu.

    input (T, N, input_size), (N, T, input_size) with batch_first, (T, input_size), or a PackedSequence; hx
    (num_layers * directions, N, hidden_size), zeros by default. Gives all outputs of the last layer and the last h of
    each layer and direction.

    >>> output, h = nn.RNN(4, 3)(dt.zeros(5, 2, 4))
    >>> output.shape, h.shape
    ((5, 2, 3), (1, 2, 3))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: Nonlinearity = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        mode = _mode("RNN", nonlinearity)
        super().__init__(
            mode, input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype
        )
        self.nonlinearity: Nonlinearity = nonlinearity


class GRU(_OneState):
    """The gated unit: r, z = sigmoid(...), n = tanh(x' + r * h'), h = (1 - z) * n + z * h for each step.

    input (T, N, input_size), (N, T, input_size) with batch_first, (T, input_size), or a PackedSequence; hx
    (num_layers * directions, N, hidden_size), zeros by default. Gives all outputs of the last layer and the last h of
    each layer and direction.

    >>> output, h = nn.GRU(4, 3, num_layers=2)(dt.zeros(5, 2, 4))
    >>> output.shape, h.shape
    ((5, 2, 3), (2, 2, 3))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(
            "GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype
        )


class LSTM(RNNBase):
    """i, f, o = sigmoid(...), g = tanh(...), c = f * c + i * g, h = o * tanh(c) for each step.

    input (T, N, input_size), (N, T, input_size) with batch_first, (T, input_size), or a PackedSequence; hx is (h, c)
    with h (num_layers * directions, N, proj_size or hidden_size) and c (..., hidden_size), zeros by default. Gives all
    outputs of the last layer, and the last (h, c) of each layer and direction.

    >>> output, (h, c) = nn.LSTM(4, 3, bidirectional=True)(dt.zeros(5, 2, 4))
    >>> output.shape, h.shape, c.shape
    ((5, 2, 6), (2, 2, 3), (2, 2, 3))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(
            "LSTM",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            proj_size,
            device,
            dtype,
        )

    def _states(self) -> tuple[tuple[str, int], ...]:
        return (("hx[0]", self._output_size()), ("hx[1]", self.hidden_size))

    def forward(self, input: Any, hx: _Pair | None = None) -> tuple[Any, _Pair]:
        output, (h, c) = self._run(input, _pair("LSTM", hx))
        return output, (h, c)

    if TYPE_CHECKING:  # the output is what the input is

        @overload
        def __call__(self, input: PackedSequence, hx: _Pair | None = None) -> tuple[PackedSequence, _Pair]: ...
        @overload
        def __call__(self, input: DeviceArray, hx: _Pair | None = None) -> tuple[DeviceArray, _Pair]: ...
        def __call__(self, input: Any, hx: _Pair | None = None) -> tuple[Any, _Pair]: ...


def _pair(op: str, hx: Any) -> State | None:
    if hx is not None and not (isinstance(hx, tuple | list) and len(hx) == 2):
        raise TypeError(f"{op}(): argument 'hx' must be a tuple (h, c), not {_C._shown(hx)}")
    return None if hx is None else tuple(hx)


# ---------------------------------------------------------------- cells


class RNNCellBase(Module):
    """What RNNCell, LSTMCell and GRUCell have in common: weight_ih, weight_hh, bias_ih and bias_hh."""

    weight_ih: _Parameter
    weight_hh: _Parameter
    bias_ih: _Parameter | None
    bias_hh: _Parameter | None

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        op = type(self).__name__
        self.input_size: int = _need_int(op, "input_size", input_size)
        self.hidden_size: int = _need_int(op, "hidden_size", hidden_size)
        self.bias: bool = _need_bool(op, "bias", bias)
        rows = _need_int(op, "num_chunks", num_chunks) * self.hidden_size
        options = _float_options(op, device, dtype)
        self.weight_ih = _Parameter(_C.empty((rows, self.input_size), **options))
        self.weight_hh = _Parameter(_C.empty((rows, self.hidden_size), **options))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, _Parameter(_C.empty(rows, **options)) if self.bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """New random numbers in all weights."""
        _reset(self, self.hidden_size)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")

    def _run(self, mode: str, input: DeviceArray, hx: State | None, names: tuple[str, ...]) -> State:
        op = type(self).__name__
        need_array(op, "input", input)
        for name, array in zip(names, hx or (), strict=False):
            need_array(op, name, array)
        rule, given = mode.partition("_")[0], (input, *(hx or ()))
        input, *states = lowered(rule, given)
        hx = None if hx is None else tuple(states)
        parameters = lowered(rule, (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh))
        arrays = (input, *(hx if hx is not None else (None,) * len(names)))
        names = ("input", *names)
        _C._check(op, (*names, "weight_ih"), (*arrays, parameters[0]))
        _C._check_rank(op, names, arrays, 0, 1, 2)
        if input.shape[-1] != self.input_size:
            text = f"input has inconsistent input_size: got {input.shape[-1]} expected {self.input_size}"
            raise _mismatch(op, ("input",), (input,), 0, text)
        alone = input.ndim == 1
        if hx is None:
            dtype = given[0].dtype if _keeps_state(op, input) else input.dtype
            zeros = _C.zeros((1 if alone else input.shape[0], self.hidden_size), dtype=dtype, device=input.device)
            hx = (zeros,) * (len(names) - 1)
        else:
            for which in range(1, len(names)):
                _C._check_rank(op, names, arrays, which, input.ndim, input.ndim)
                _C._check_shape(op, names, arrays, which, [*input.shape[:-1], self.hidden_size])
            hx = given[1:] if _keeps_state(op, input) else hx
            hx = tuple(array.unsqueeze(0) for array in hx) if alone else hx
        weights = Weights(*parameters)
        product = recurrent.input_product(mode, input.unsqueeze(0) if alone else input, weights)
        state = recurrent.STEPS[mode](product, hx, weights)
        return tuple(array.squeeze(0) for array in state) if alone else state


class RNNCell(RNNCellBase):
    """One step of RNN: input (N, input_size) or (input_size), hx (N, hidden_size) or (hidden_size), zeros by default.

    >>> nn.RNNCell(4, 3)(dt.zeros(2, 4)).shape
    (2, 3)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: Nonlinearity = "tanh",
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        _mode("RNNCell", nonlinearity)
        self.nonlinearity: Nonlinearity = nonlinearity

    def forward(self, input: DeviceArray, hx: DeviceArray | None = None) -> DeviceArray:
        mode = _mode("RNNCell", self.nonlinearity)
        (h,) = self._run(mode, input, None if hx is None else (hx,), ("hx",))
        return h

    def extra_repr(self) -> str:
        return super().extra_repr() + ("" if self.nonlinearity == "tanh" else f", nonlinearity={self.nonlinearity}")


class GRUCell(RNNCellBase):
    """One step of GRU: input (N, input_size) or (input_size), hx (N, hidden_size) or (hidden_size), zeros by default.

    >>> nn.GRUCell(4, 3)(dt.zeros(2, 4)).shape
    (2, 3)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: DeviceArray, hx: DeviceArray | None = None) -> DeviceArray:
        (h,) = self._run("GRU", input, None if hx is None else (hx,), ("hx",))
        return h


class LSTMCell(RNNCellBase):
    """One step of LSTM: input (N, input_size) or (input_size), hx is (h, c) of (N, hidden_size), zeros by default.

    >>> h, c = nn.LSTMCell(4, 3)(dt.zeros(2, 4))
    >>> h.shape, c.shape
    ((2, 3), (2, 3))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: DeviceArray, hx: _Pair | None = None) -> _Pair:
        h, c = self._run("LSTM", input, _pair("LSTMCell", hx), ("hx[0]", "hx[1]"))
        return h, c
