"""RNN, LSTM, GRU and their cells against loops in NumPy; sequences of several lengths."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import devtensor as dt
from devtensor import nn

rnn = nn.utils.rnn
T, N, F, H = 5, 4, 3, 6


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def put(x: np.ndarray, device: str) -> dt.DeviceArray:
    return dt.from_numpy(x.copy()).to(device)


def close(got: dt.DeviceArray, want: np.ndarray) -> None:
    np.testing.assert_allclose(got.cpu().tolist(), want, rtol=1e-4, atol=1e-5)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def slow_step(kind: str, x: np.ndarray, h: np.ndarray, c: np.ndarray, w: dict[str, np.ndarray]) -> Any:
    """One step of one sequence: h and c."""
    own, given = w["hh"] @ h + w["bhh"], w["ih"] @ x + w["bih"]
    if kind == "LSTM":
        i, f, g, o = np.split(own + given, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c
    if kind == "GRU":
        (r, z, n), (p, q, m) = np.split(own, 3), np.split(given, 3)
        new = np.tanh(m + sigmoid(r + p) * n)
        return (1 - sigmoid(z + q)) * new + sigmoid(z + q) * h, c
    return np.tanh(own + given), c


def weights_of(module: nn.Module, suffix: str) -> dict[str, np.ndarray]:
    short = {"ih": "weight_ih", "hh": "weight_hh", "bih": "bias_ih", "bhh": "bias_hh"}
    return {key: np.array(getattr(module, name + suffix).tolist()) for key, name in short.items()}


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_layers_are_loops_over_steps(kind: str, device: str) -> None:
    module = getattr(nn, kind)(F, H, num_layers=2, bidirectional=True).to(device)
    x, h0, c0 = random(T, N, F), random(4, N, H, seed=1), random(4, N, H, seed=2)
    hx = put(h0, device)
    output, state = module(put(x, device), (hx, put(c0, device)) if kind == "LSTM" else hx)
    values = x
    for layer in range(2):
        columns = []
        for direction, suffix in enumerate(("", "_reverse")):
            w, which = weights_of(module, f"_l{layer}{suffix}"), 2 * layer + direction
            found = np.zeros((T, N, H))
            for n in range(N):
                h, c = h0[which, n], c0[which, n]
                for t in reversed(range(T)) if direction else range(T):
                    h, c = slow_step(kind, values[t, n], h, c, w)
                    found[t, n] = h
                ends = state if kind == "LSTM" else (state,)
                for end, want in zip(ends, (h, c), strict=False):
                    close(end[which, n], want)
            columns.append(found)
        values = np.concatenate(columns, -1)
    close(output, values)


@pytest.mark.parametrize("kind", ["RNNCell", "LSTMCell", "GRUCell"])
def test_cells(kind: str, device: str) -> None:
    module = getattr(nn, kind)(F, H).to(device)
    x, h, c = random(N, F), random(N, H, seed=1), random(N, H, seed=2)
    pairs = [slow_step(kind[:-4], x[n], h[n], c[n], weights_of(module, "")) for n in range(N)]
    hx: Any = (put(h, device), put(c, device)) if kind == "LSTMCell" else put(h, device)
    found = module(put(x, device), hx)
    for got, want in zip(found if kind == "LSTMCell" else (found,), zip(*pairs, strict=True), strict=False):
        close(got, np.stack(want))
    alone = module(put(x[0], device), tuple(a[0] for a in hx) if kind == "LSTMCell" else hx[0])
    close(alone[0] if kind == "LSTMCell" else alone, pairs[0][0])
    zeros = module(put(x, device))
    assert zeros[0].shape == ((N, H) if kind == "LSTMCell" else (H,))


def test_begin(device: str) -> None:
    module = nn.LSTM(8, 16, num_layers=2, proj_size=4, device=device)
    for weight in module.parameters():
        assert float(weight.abs().max()) <= 0.25 and weight.device == dt.device(device)
    names = ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "weight_hr_l0"]
    assert list(module.state_dict())[:5] == names
    assert [len(weights) for weights in module.all_weights] == [5, 5]
    assert module.flatten_parameters() is None
    assert repr(module) == "LSTM(8, 16, proj_size=4, num_layers=2)"
    assert pickle.loads(pickle.dumps(module)).weight_hr_l1.shape == (4, 16)


def test_dropout_between_layers() -> None:
    module = nn.GRU(4, 8, num_layers=2, dropout=0.5)
    x = dt.randn(3, 2, 4)
    assert not dt.equal(module(x)[0], module(x)[0])
    module.eval()
    assert dt.equal(module(x)[0], module(x)[0])
    with pytest.warns(UserWarning, match="num_layers greater than 1"):
        nn.GRU(4, 8, dropout=0.5)


def test_no_sequence_and_no_step(device: str) -> None:
    module = nn.LSTM(F, H, device=device)
    output, (h, c) = module(dt.zeros(T, 0, F, device=device))
    assert output.shape == (T, 0, H) and h.shape == c.shape == (1, 0, H)
    with pytest.raises(RuntimeError, match="Expected sequence length to be larger than 0 in RNN"):
        module(dt.zeros(0, N, F, device=device))


ERRORS: list[tuple[Any, type[Exception], str]] = [
    (lambda: nn.LSTM(0, 3), ValueError, "input_size must be greater than zero"),
    (lambda: nn.LSTM(3, 0), ValueError, "hidden_size must be greater than zero"),
    (lambda: nn.LSTM(3, 3, 0), ValueError, "num_layers must be greater than zero"),
    (lambda: nn.LSTM(3, 3, proj_size=-1), ValueError, "proj_size should be a positive integer or zero"),
    (lambda: nn.LSTM(3, 3, proj_size=3), ValueError, "proj_size has to be smaller than hidden_size"),
    (lambda: nn.GRU(3, 3, dropout=2), ValueError, "dropout should be a number in range"),
    (lambda: nn.RNN(3, 3, nonlinearity="x"), ValueError, "Unknown nonlinearity 'x'. Select from 'tanh' or 'relu'."),
    (lambda: nn.RNNCell(3, 3, nonlinearity="x"), ValueError, "Unknown nonlinearity 'x'"),
    (lambda: nn.RNNBase("x", 3, 3), ValueError, "Unrecognized RNN mode: x"),
    (lambda: nn.GRU(F, H)(dt.zeros(T, N, 2)), dt.ShapeMismatchError, "equal to input_size. Expected 3, got 2"),
    (lambda: nn.GRU(F, H)(dt.zeros(1, T, N, F)), dt.ShapeMismatchError, "Expected input to be 2D to 3D, but got 4D"),
    (
        lambda: nn.GRU(F, H, 2)(dt.zeros(T, N, F), dt.zeros(1, N, H)),
        dt.ShapeMismatchError,
        r"Expected hidden size \(2, 4, 6\), got \[1, 4, 6\]",
    ),
    (
        lambda: nn.LSTM(F, H)(dt.zeros(T, N, F), (dt.zeros(1, N, H), dt.zeros(1, 1, H))),
        dt.ShapeMismatchError,
        r"Expected hidden\[1\] size \(1, 4, 6\), got \[1, 1, 6\]",
    ),
    (
        lambda: nn.LSTM(F, H)(dt.zeros(T, N, F), (dt.zeros(N, H), dt.zeros(1, N, H))),
        dt.ShapeMismatchError,
        r"Expected hx\[0\] to be 3D, but got 2D",
    ),
    (lambda: nn.LSTM(F, H)(dt.zeros(T, N, F), dt.zeros(1, N, H)), TypeError, r"must be a tuple \(h, c\)"),
    (lambda: nn.GRU(F, H)(dt.zeros(T, N, F), (0, 1)), TypeError, "argument 'hx' must be DeviceArray, not tuple"),
    (lambda: nn.GRU(F, H)([1.0]), TypeError, "argument 'input' must be DeviceArray, not list"),
    (lambda: nn.GRU(F, H)(dt.zeros(T, N, F).double()), dt.DTypeMismatchError, "input and weight_ih_l0"),
    (lambda: nn.GRUCell(F, H)(dt.zeros(N, 2)), dt.ShapeMismatchError, "inconsistent input_size: got 2 expected 3"),
    (lambda: nn.GRUCell(F, H)(dt.zeros(N, F), dt.zeros(1, H)), dt.ShapeMismatchError, r"hx to have shape \(4, 6\)"),
    (lambda: nn.LSTMCell(F, H)(dt.zeros(N, F), dt.zeros(N, H)), TypeError, r"must be a tuple \(h, c\)"),
    (lambda: rnn.pack_padded_sequence(dt.zeros(T, 2), [1, 2]), RuntimeError, "must be sorted in decreasing order"),
    (lambda: rnn.pack_padded_sequence(dt.zeros(T, 2), [1]), RuntimeError, "Expected `len.lengths.` to be equal"),
    (lambda: rnn.pack_padded_sequence(dt.zeros(T, 2), [1, 0]), RuntimeError, "has to be greater than 0"),
    (lambda: rnn.pack_padded_sequence(dt.zeros(T, 2), [6, 1]), RuntimeError, "lengths of at most 5"),
    (lambda: rnn.pack_padded_sequence(dt.zeros(T, 1), dt.ones(1)), RuntimeError, "should be a 1D CPU int64 tensor"),
    (lambda: rnn.pad_packed_sequence(dt.zeros(T, 2)), TypeError, "must be PackedSequence, not"),
    (
        lambda: rnn.pad_packed_sequence(rnn.pack_sequence([dt.zeros(2)]), total_length=1),
        ValueError,
        "Expected total_length to be at least",
    ),
    (lambda: rnn.pad_sequence([]), RuntimeError, "received an empty list"),
    (lambda: rnn.pad_sequence(3), RuntimeError, "Expected iterable for input sequences"),
    (lambda: rnn.pad_sequence([dt.zeros(2)], padding_side="up"), RuntimeError, "padding_side to be one of left or"),
    (lambda: rnn.pad_sequence([dt.zeros(2, 3), dt.zeros(2, 4)]), dt.ShapeMismatchError, r"sequences\[1\] to have"),
    (lambda: rnn.pad_sequence([dt.zeros(2), dt.zeros(2).double()]), dt.DTypeMismatchError, r"sequences\[1\] must"),
    (lambda: rnn.unpad_sequence(dt.zeros(T, 2), dt.array([1])), dt.ShapeMismatchError, r"lengths to have shape \(2,\)"),
]


@pytest.mark.parametrize(("call", "kind", "text"), ERRORS)
def test_what_does_not_fit(call: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call()


def test_devices_are_told_of_by_the_names_of_the_call() -> None:
    words = dt.zeros(T, N, F, device="cuda:0")
    with pytest.raises(dt.DeviceMismatchError) as caught:
        nn.LSTM(F, H)(words)
    assert [operand.name for operand in caught.value.operands] == ["input", "weight_ih_l0"]
    assert caught.value.operands[0].expression == "words"
    with pytest.raises(dt.DeviceMismatchError, match=r"pad_sequence: sequences\[0\] on cuda:0"):
        rnn.pad_sequence([words, dt.zeros(T, N, F)])


# ---------------------------------------------------------------- several lengths


def test_packing_and_back(device: str) -> None:
    sequences = [put(random(n, 2, seed=n), device) for n in (2, 5, 3, 3)]
    packed = rnn.pack_sequence(sequences, enforce_sorted=False)
    assert packed.batch_sizes.tolist() == [4, 4, 3, 1, 1] and packed.batch_sizes.device.type == "cpu"
    assert packed.sorted_indices.tolist() == [1, 2, 3, 0] and packed.unsorted_indices.tolist() == [3, 0, 1, 2]
    assert packed.data.shape == (13, 2) and packed.is_cuda == device.startswith("cuda")
    for sequence, back in zip(sequences, rnn.unpack_sequence(packed), strict=True):
        assert dt.equal(sequence, back)
    padded, lengths = rnn.pad_packed_sequence(packed, True, padding_value=7, total_length=6)
    assert padded.shape == (4, 6, 2) and lengths.tolist() == [2, 5, 3, 3]
    assert dt.equal(padded[:, :5], rnn.pad_sequence(sequences, True, 7)) and (padded[:, 5] == 7).all()
    left = rnn.pad_sequence(sequences, padding_side="left")
    assert left.shape == (5, 4, 2) and dt.equal(left[3:, 0], sequences[0]) and (left[:3, 0] == 0).all()


def test_a_packed_sequence_moves_as_a_whole(device: str) -> None:
    packed = rnn.pack_sequence([dt.ones(1), dt.ones(3)], enforce_sorted=False)
    moved = packed.to(device)
    assert packed.to("cpu") is packed and moved.cpu().sorted_indices.tolist() == [1, 0]
    assert {moved.data.device, moved.sorted_indices.device, moved.unsorted_indices.device} == {dt.device(device)}
    assert moved.batch_sizes.device.type == "cpu"
    assert [getattr(moved, name)().data.dtype for name in ("double", "float", "half", "long", "int")] == [
        dt.float64, dt.float32, dt.float16, dt.int64, dt.int32,
    ]  # fmt: skip
    again = rnn.PackedSequence((moved.data, moved.batch_sizes), sorted_indices=moved.sorted_indices)
    assert again.unsorted_indices.tolist() == [1, 0]
    with pytest.raises(ValueError, match="batch_sizes should always be on CPU"):
        rnn.PackedSequence(dt.ones(1), dt.ones(1, device="cuda:0"))


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_packed_sequences_end_where_they_end(kind: str, device: str) -> None:
    module = getattr(nn, kind)(F, H, num_layers=2, bidirectional=True).to(device)
    sequences = [put(random(n, F, seed=n), device) for n in (2, 5, 3, 3)]
    output, state = module(rnn.pack_sequence(sequences, enforce_sorted=False))
    for i, (sequence, got) in enumerate(zip(sequences, rnn.unpack_sequence(output), strict=True)):
        alone, end = module(sequence)
        dt.testing.assert_close(got, alone, rtol=1e-5, atol=1e-5)
        for a, b in zip(state, end, strict=True) if kind == "LSTM" else [(state, end)]:
            dt.testing.assert_close(a[:, i], b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "options", [{}, {"batch_first": True, "bias": False}, {"bidirectional": True, "num_layers": 2}]
)
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_steps_that_are_one_call_have_the_bits_of_those_that_are_recorded(
    kind: str, options: dict[str, Any], device: str
) -> None:
    before = dt.get_num_threads()
    try:
        for sizes, dtype in (
            ((3, 5), dt.float32),
            ((40, 128), dt.float32),
            ((33, 9), dt.float64),
            ((2, 200), dt.float32),
        ):
            n, size = sizes
            module = getattr(nn, kind)(F, size, dtype=dtype, **options).to(device)
            shape = (n, T, F) if options.get("batch_first") else (T, n, F)
            x = dt.randn(shape, dtype=dtype, device=device)
            want, ends = module(x)
            for threads in (1, 2, 3):
                dt.set_num_threads(threads)
                with dt.no_grad():
                    got, found = module(x)
                assert dt.equal(got, want) and got.is_contiguous()
                for a, b in zip(found, ends, strict=True) if kind == "LSTM" else [(found, ends)]:
                    assert dt.equal(a, b)
    finally:
        dt.set_num_threads(before)


def test_steps_that_are_one_call_leave_no_result_behind(device: str) -> None:
    """c of all steps stands where h comes to stand."""
    module, x = nn.LSTM(F, H).to(device).requires_grad_(False), put(random(T, N, F), device)
    output, (h, c) = module(x)
    kept = [a.clone() for a in (h, c)]
    output.zero_()
    assert dt.equal(h, kept[0]) and dt.equal(c, kept[1])
    one, (h, c) = module(x[:1])
    assert one.shape == (1, N, H) and dt.equal(one[0], h[0])


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_steps_of_a_frozen_layer_pass_gradients_on(kind: str, device: str) -> None:
    """One operand that wants a gradient, whichever it is, and the steps are recorded."""
    module = getattr(nn, kind)(F, H).to(device).requires_grad_(False)
    x = put(random(T, N, F), device)
    state = [put(random(1, N, H, seed=k), device) for k in range(1 if kind == "GRU" else 2)]
    for wanted in (x, *state, module.weight_hh_l0, module.bias_hh_l0):
        wanted.requires_grad_()
        output, _ = module(x, tuple(state) if kind == "LSTM" else state[0])
        assert output.requires_grad
        (grad,) = dt.autograd.grad(output.sum(), wanted)
        assert grad.abs().sum().item() > 0
        wanted.requires_grad_(False)


@pytest.mark.parametrize("n", [2, 20])
def test_a_bias_that_does_not_fit_is_seen_by_every_way(n: int, device: str) -> None:
    x = dt.randn(3, n, F, device=device)
    for bias in (dt.zeros(1), dt.zeros(3 * H + 1), dt.zeros(3, H), dt.zeros(3 * H, dtype=dt.float64)):
        for recorded in (True, False):
            module = nn.GRU(F, H).to(device)
            module.bias_hh_l0 = nn.Parameter(bias.to(device))
            with dt.set_grad_enabled(recorded), pytest.raises(RuntimeError):
                module(x)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_what_steps_in_one_call_came_from(kind: str, device: str) -> None:
    module, x = getattr(nn, kind)(F, H).to(device).requires_grad_(False), dt.randn(T, N, F, device=device)
    output, _ = module(x)
    with pytest.raises(dt.ShapeMismatchError) as caught:
        output + dt.ones(7, 5, device=device)
    actions = [origin.action for origin in caught.value.operands[0].history]
    assert actions == [kind.lower(), "linear", "randn"]


@pytest.mark.parametrize("dtype", [dt.float16, dt.bfloat16])
def test_the_cpu_has_no_steps_in_one_call_for_half_types(dtype: dt.dtype) -> None:
    """The layers do not ask for them."""
    product, weight, h = dt.zeros(2, 20, 32, dtype=dtype), dt.zeros(32, 8, dtype=dtype), dt.zeros(20, 8, dtype=dtype)
    with pytest.raises(RuntimeError, match="no kernel"):
        dt._C._lstm_steps(product, weight, h, h)
    with pytest.raises(RuntimeError, match="no kernel"):
        dt._C._lstm_cell(product[0], product[1], h)


def test_no_steps(device: str) -> None:
    product, weight, h = (dt.ones(shape, device=device) for shape in ((0, N, 4 * H), (4 * H, H), (N, H)))
    outputs, c = dt._C._lstm_steps(product, weight, h, 2 * h)
    assert outputs.shape == (0, N, H) and dt.equal(c, 2 * h)
