"""Recurrent layers beside PyTorch's, where it is installed: text, keys, values and gradients from its checkpoints."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import devtensor as dt

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

T, N, F, H = 4, 3, 3, 5
LENGTHS = [2, 4, 3]
KINDS: list[tuple[str, dict[str, Any]]] = [
    ("RNN", {}),
    ("RNN", {"nonlinearity": "relu"}),
    ("LSTM", {}),
    ("LSTM", {"proj_size": 2}),
    ("GRU", {}),
]
FLAGS = [dict(zip(("bias", "batch_first", "bidirectional"), flags, strict=True))
         for flags in itertools.product((True, False), repeat=3)]  # fmt: skip


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def same(kind: str, options: dict[str, Any]) -> tuple[Any, Any]:
    theirs = getattr(torch.nn, kind)(F, H, **options)
    ours = getattr(dt.nn, kind)(F, H, **options)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict({k: dt.from_numpy(v.numpy().copy()) for k, v in theirs.state_dict().items()})
    return ours, theirs


def arrays_of(lib: Any, device: str, *values: np.ndarray) -> list[Any]:
    made = [lib.from_numpy(v.copy()).to(device) if lib is dt else lib.from_numpy(v.copy()) for v in values]
    return [x.requires_grad_() for x in made]


def outcome(lib: Any, module: Any, kind: str, mode: str, device: str) -> list[Any]:
    """What a call gives and the gradients of a sum over it."""
    first = module.batch_first
    states = module.num_layers * (1 + module.bidirectional)
    x, h, c = arrays_of(
        lib, device, random(N, T, F) if first else random(T, N, F), random(states, N, module.proj_size or H),
        random(states, N, H),
    )  # fmt: skip
    hx: Any = (h, c) if kind == "LSTM" else h
    module.zero_grad()
    if mode == "plain":
        output, state = module(x)
    elif mode == "state":
        output, state = module(x, hx)
    elif mode == "alone":
        one = tuple(a[:, 0] for a in hx) if kind == "LSTM" else hx[:, 0]
        output, state = module(x[0] if first else x[:, 0], one)
    else:
        utils = lib.nn.utils.rnn
        packed, state = module(utils.pack_padded_sequence(x, LENGTHS, first, enforce_sorted=False), hx)
        output, lengths = utils.pad_packed_sequence(packed, first, 0.5, T + 1)
        assert lengths.tolist() == LENGTHS
    state = state if isinstance(state, tuple) else (state,)
    (output * output.detach().cos()).sum().add(sum((a * a).sum() for a in state)).backward()
    leaves = [x, *module.parameters(), *(() if mode == "plain" else (h, *(() if kind != "LSTM" else (c,))))]
    return [output, *state, *(leaf.grad for leaf in leaves)]


@pytest.mark.filterwarnings("ignore:LSTM with projections")  # PyTorch's
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize(("kind", "more"), KINDS, ids=lambda v: v if isinstance(v, str) else "".join(v))
def test_layers(kind: str, more: dict[str, Any], layers: int, device: str) -> None:
    for flags in FLAGS if device == "cpu" else FLAGS[-3:-1]:
        ours, theirs = same(kind, {**flags, **more, "num_layers": layers})
        ours.to(device)
        for mode in ("plain", "state", "alone", "packed"):
            pairs = zip(outcome(dt, ours, kind, mode, device), outcome(torch, theirs, kind, mode, device), strict=True)
            for got, want in pairs:
                assert got.shape == tuple(want.shape)
                np.testing.assert_allclose(got.tolist(), want.tolist(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("RNNCell", {}),
        ("RNNCell", {"nonlinearity": "relu", "bias": False}),
        ("LSTMCell", {}),
        ("LSTMCell", {"bias": False}),
        ("GRUCell", {}),
        ("GRUCell", {"bias": False}),
    ],
)
def test_cells(kind: str, options: dict[str, Any], device: str) -> None:
    ours, theirs = same(kind, options)
    ours.to(device)
    results = []
    for lib, module in ((dt, ours), (torch, theirs)):
        x, h, c = arrays_of(lib, device, random(N, F), random(N, H), random(N, H) + 1)
        found = module(x, (h, c)) if kind == "LSTMCell" else module(x, h)
        found = found if isinstance(found, tuple) else (found,)
        sum((a * a).sum() for a in found).backward()
        results.append([*found, x.grad, h.grad, *(p.grad for p in module.parameters())])
    for got, want in zip(*results, strict=True):
        np.testing.assert_allclose(got.tolist(), want.tolist(), rtol=1e-4, atol=1e-5)


def test_sequences(device: str) -> None:
    sequences = [random(n, 2) for n in (3, 1, 2)]
    ours, theirs = dt.nn.utils.rnn, torch.nn.utils.rnn
    a, b = [dt.from_numpy(x.copy()).to(device) for x in sequences], [torch.from_numpy(x) for x in sequences]
    for options in ({}, {"batch_first": True, "padding_value": 2.5}, {"padding_side": "left"}):
        assert ours.pad_sequence(a, **options).tolist() == theirs.pad_sequence(b, **options).tolist()
    packed, want = ours.pack_sequence(a, False), theirs.pack_sequence(b, False)
    for got, expected in zip(packed, want, strict=True):
        assert got.tolist() == expected.tolist()
    assert [x.tolist() for x in ours.unpack_sequence(packed)] == [x.tolist() for x in theirs.unpack_sequence(want)]
