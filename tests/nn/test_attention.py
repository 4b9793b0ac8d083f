"""Attention and transformers beside PyTorch's: the same numbers, gradients, names and order of weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import devtensor as dt
from devtensor import nn
from devtensor.nn import functional as F

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def both(x: np.ndarray | None, device: str, gradient: bool = False) -> tuple[Any, Any]:
    if x is None:
        return None, None
    ours, theirs = dt.from_numpy(x.copy()).to(device), torch.from_numpy(x.copy())
    return (ours.requires_grad_(), theirs.requires_grad_()) if gradient else (ours, theirs)


def close(got: Any, want: Any, tolerance: float = 1e-5) -> None:
    assert got.shape == tuple(want.shape) and str(got.dtype).split(".")[1] == str(want.dtype).split(".")[1]
    got, want = got.detach().cpu().float().numpy(), want.detach().float().numpy()
    np.testing.assert_allclose(got, want, rtol=tolerance * 10, atol=tolerance)


CHOICE = np.random.default_rng(4).random((5, 6)) > 0.4
CHOICE[2] = False
FLOATS = np.where(CHOICE, random(5, 6), -np.inf).astype(np.float32)
MASKS = {"none": None, "bool": CHOICE, "float": FLOATS, "each": np.broadcast_to(CHOICE, (2, 1, 5, 6)).copy()}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("options", [{}, {"scale": 0.3}, {"is_causal": True}, {"enable_gqa": True}], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_attention(options: dict[str, Any], mask: str, dtype: str, device: str) -> None:
    if "is_causal" in options and mask != "none":
        pytest.skip("refused, below")
    heads = 2 if "enable_gqa" in options else 4
    shapes = ((2, 4, 5, 3), (2, heads, 6, 3), (2, heads, 6, 7))
    if (dtype, mask) in {("float16", "bool"), ("bfloat16", "none")} or dtype == "float32":
        pairs = [both(random(*s, seed=i), device, True) for i, s in enumerate(shapes)]
        a, b = ([p[k].to(getattr(lib, dtype)) for p in pairs] for k, lib in enumerate((dt, torch)))
        m, n = both(MASKS[mask], device)
        got = F.scaled_dot_product_attention(*a, attn_mask=m, **options)
        want = torch.nn.functional.scaled_dot_product_attention(*b, attn_mask=n, **options)
        tolerance = 1e-5 if dtype == "float32" else 1e-2
        close(got, want, tolerance)
        weights = random(*got.shape, seed=9)
        ours, theirs = both(weights, device)
        (got.float() * ours).sum().backward()
        (want.float() * theirs).sum().backward()
        for x, y in pairs:
            close(x.grad, y.grad, tolerance)


def test_a_mask_learns(device: str) -> None:
    q, p = both(random(2, 5, 3), device)
    m, n = both(random(5, 5), device, True)
    F.scaled_dot_product_attention(q, q, q, m).square().sum().backward()
    torch.nn.functional.scaled_dot_product_attention(p, p, p, n).square().sum().backward()
    close(m.grad, n.grad)


def test_attention_of_nothing(device: str) -> None:
    q, k = dt.ones(2, 0, 3, device=device), dt.ones(2, 0, 4, device=device)
    assert F.scaled_dot_product_attention(q, q, k).shape == (2, 0, 4)
    queries = dt.ones(2, 5, 3, device=device)
    nothing = F.scaled_dot_product_attention(queries, q, k, dt.ones(5, 0, dtype=dt.bool, device=device))
    assert nothing.tolist() == dt.zeros(2, 5, 4).tolist()


def test_dropout(device: str) -> None:
    dt.manual_seed(0)
    x, eye = dt.zeros(1, 64, 8, device=device), dt.eye(64, device=device).unsqueeze(0)
    weights = F.scaled_dot_product_attention(x, x, eye, dropout_p=0.25)
    assert set(weights.flatten().tolist()) == {0.0, np.float32(1 / 64 / 0.75).item()}
    assert 0.2 < (weights == 0).float().mean().item() < 0.3


SHAPES = dt.ShapeMismatchError
REFUSED: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (
        lambda a: (a(2, 3), a(4, 5), a(4, 3)),
        dt.ShapeMismatchError,
        "Expected key to have shape (*, 3), but got (4, 5)",
    ),
    (
        lambda a: (a(2, 3), a(4, 3), a(5, 3)),
        dt.ShapeMismatchError,
        "Expected value to have shape (4, *), but got (5, 3)",
    ),
    (lambda a: (a(2, 3), a(4, 3), a(4, 3), a(3, 4)), SHAPES, "Expected attn_mask to have shape (2, 4)"),
    (lambda a: (a(2, 3), a(4, 3), a(4, 3).double()), dt.DTypeMismatchError, "value"),
    (lambda a: (a(2, 3), a(4, 3), None), TypeError, "argument 'value' must be DeviceArray, not NoneType"),
    (lambda a: (a(2, 3), a(4, 3), a(4, 3), a(2, 4), 0.0, True), RuntimeError, "Explicit attn_mask should not be set"),
    (lambda a: (a(2, 3), a(4, 3), a(4, 3), None, 2.0), ValueError, "probability has to be between 0 and 1"),
    (
        lambda a: (a(3, 2, 3), a(2, 4, 3), a(2, 4, 3), None, 0.0, False, None, True),
        RuntimeError,
        "must be a multiple of those of key, but got 3 and 2",
    ),
]


@pytest.mark.parametrize(("arguments", "kind", "text"), REFUSED, ids=range(len(REFUSED)))
def test_refused(arguments: Callable[[Any], Any], kind: type[Exception], text: str, device: str) -> None:
    with pytest.raises(kind) as raised:
        F.scaled_dot_product_attention(*arguments(lambda *s: dt.ones(*s, device=device)))
    assert text in str(raised.value)


def test_a_mask_elsewhere() -> None:
    if not dt.cuda.is_available():
        pytest.skip("one device")
    x = dt.ones(2, 3)
    for kind in (dt.bool, dt.float32):
        with pytest.raises(dt.DeviceMismatchError, match="attn_mask"):
            F.scaled_dot_product_attention(x, x, x, dt.ones(2, 2, dtype=kind, device="cuda"))


# ---------------------------------------------------------------- modules


def alike(name: str, args: tuple[Any, ...], options: dict[str, Any], device: str) -> tuple[Any, Any]:
    """The same module of both, with PyTorch's weights, none of them 0 or 1."""
    torch.manual_seed(0)
    theirs = getattr(torch.nn, name)(*args, **options)
    with torch.no_grad():
        for p in theirs.parameters():
            p += torch.randn_like(p) * 0.1
    ours = getattr(nn, name)(*args, **options)
    state = theirs.state_dict()
    assert list(ours.state_dict()) == list(state)
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    ours.load_state_dict({k: dt.from_numpy(v.numpy().copy()) for k, v in state.items()})
    return ours.to(device), theirs


def same_gradients(ours: Any, theirs: Any) -> None:
    for (name, p), q in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        assert (p.grad is None) == (q.grad is None), name
        if p.grad is not None:
            close(p.grad, q.grad, 1e-4)


HEADS: list[dict[str, Any]] = [
    {},
    {"batch_first": True},
    {"bias": False},
    {"kdim": 5, "vdim": 7},
    {"add_bias_kv": True, "add_zero_attn": True},
]


@pytest.mark.parametrize("options", HEADS, ids=str)
@pytest.mark.parametrize("masks", ["none", "bool", "float", "heads"])
@pytest.mark.parametrize("weights", [{}, {"need_weights": False}, {"average_attn_weights": False}], ids=str)
def test_multihead(weights: dict[str, Any], masks: str, options: dict[str, Any], device: str) -> None:
    ours, theirs = alike("MultiheadAttention", (8, 2), options, device)
    first = options.get("batch_first", False)
    sizes = ((5, 8), (6, options.get("kdim", 8)), (6, options.get("vdim", 8)))
    arrays = [both(random(*((3, n) if first else (n, 3)), e, seed=n * e), device, True) for n, e in sizes]
    hidden = np.triu(np.ones((5, 6), dtype=bool), 2)
    padding = np.zeros((3, 6), dtype=bool)
    padding[1, 4:] = True
    chosen = {
        "none": (None, None),
        "bool": (hidden, padding),
        "float": (random(5, 6), np.where(padding, -np.inf, 0).astype(np.float32)),
        "heads": (random(6, 5, 6) > 1.5, None),
    }[masks]
    (m, n), (k, j) = (both(x, device) for x in chosen)
    got, probabilities = ours(*(a for a, _ in arrays), attn_mask=m, key_padding_mask=k, **weights)
    want, expected = theirs(*(b for _, b in arrays), attn_mask=n, key_padding_mask=j, **weights)
    close(got, want)
    assert (probabilities is None) == (expected is None)
    if expected is not None:
        close(probabilities, expected)
    got.square().sum().backward()
    want.square().sum().backward()
    same_gradients(ours, theirs)


def test_multihead_of_one_sequence(device: str) -> None:
    ours, theirs = alike("MultiheadAttention", (8, 2), {}, device)
    a, b = both(random(5, 8), device)
    m, n = both(np.arange(5) > 3, device)
    for got, want in zip(ours(a, a, a, m), theirs(b, b, b, n), strict=True):
        close(got, want)


def test_multihead_refuses(device: str) -> None:
    layer, x = nn.MultiheadAttention(8, 2, device=device), dt.ones(5, 3, 8, device=device)
    with pytest.raises(dt.ShapeMismatchError, match="Expected key to have shape"):
        layer(x, x[:, :2], x)
    with pytest.raises(dt.ShapeMismatchError, match="Expected key_padding_mask to have shape"):
        layer(x, x, x, dt.zeros(5, 3, dtype=dt.bool, device=device))
    with pytest.raises(dt.ShapeMismatchError, match="Expected attn_mask to have shape"):
        layer(x, x, x, attn_mask=dt.zeros(3, 3, device=device))
    with pytest.raises(RuntimeError, match="Need attn_mask"):
        layer(x, x, x, is_causal=True)
    with pytest.raises(ValueError, match="divisible by num_heads"):
        nn.MultiheadAttention(8, 3)
    with pytest.raises(ValueError, match="greater than 0"):
        nn.MultiheadAttention(0, 1)
    with pytest.raises(RuntimeError, match="activation should be relu/gelu, not tanh"):
        nn.TransformerEncoderLayer(8, 2, activation="tanh")


LAYERS: list[dict[str, Any]] = [
    {},
    {"norm_first": True, "activation": "gelu"},
    {"batch_first": True, "bias": False},
]


@pytest.mark.parametrize("options", LAYERS, ids=str)
def test_layers(options: dict[str, Any], device: str) -> None:
    settings = {"dim_feedforward": 16, "dropout": 0.0, **options}
    first = options.get("batch_first", False)
    a, b = both(random(*((3, 5) if first else (5, 3)), 8), device)
    c, d = both(random(*((3, 7) if first else (7, 3)), 8, seed=1), device)
    masks = nn.Transformer.generate_square_subsequent_mask(5, device=device)
    others = torch.nn.Transformer.generate_square_subsequent_mask(5)
    assert masks.tolist() == others.tolist()
    padding, lengths = both(np.arange(5)[None] > np.array([[4], [2], [5]]), device)
    ours, theirs = alike("TransformerEncoderLayer", (8, 2), settings, device)
    for training in (True, False):
        ours.train(training), theirs.train(training)
        close(ours(a), theirs(b))
        other = torch.where(lengths, -math.inf, 0.0)
        close(ours(a, masks, padding), theirs(b, others, other))
    ours, theirs = alike("TransformerDecoderLayer", (8, 2), settings, device)
    close(ours(a, c, masks), theirs(b, d, others))
    ours(a, c).square().sum().backward()
    theirs(b, d).square().sum().backward()
    same_gradients(ours, theirs)


def test_a_whole_transformer(device: str) -> None:
    ours, theirs = alike("Transformer", (8, 2, 2, 2, 16, 0.0), {}, device)
    a, b = both(random(7, 3, 8), device)
    c, d = both(random(5, 3, 8, seed=1), device)
    masks, others = (m.Transformer.generate_square_subsequent_mask(5) for m in (nn, torch.nn))
    got, want = ours(a, c, tgt_mask=masks.to(device)), theirs(b, d, tgt_mask=others)
    close(got, want)
    got.square().mean().backward()
    want.square().mean().backward()
    same_gradients(ours, theirs)


def test_repr() -> None:
    for name, args in (("MultiheadAttention", (8, 2)), ("Transformer", (8, 2, 1, 1, 16))):
        text = repr(getattr(torch.nn, name)(*args)).replace("NonDynamicallyQuantizableLinear", "Linear")
        assert repr(getattr(nn, name)(*args)) == text


def test_how_weights_begin() -> None:
    dt.manual_seed(0)
    layer = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 2, 32), 2)
    first, second = (layer.layers[i].self_attn.in_proj_weight for i in range(2))
    assert first is not second and first.tolist() == second.tolist()  # copies, as in PyTorch
    bound = math.sqrt(6 / (4 * 64))
    assert 0.9 * bound < first.abs().max().item() <= bound
    assert not layer.layers[0].self_attn.out_proj.bias.any().item()


@pytest.mark.parametrize("separate", [False, True])
def test_attention_of_given_weights(separate: bool, device: str) -> None:
    """What CLIP's pooling does: attention whose weights are passed one by one."""
    shapes: dict[str, tuple[int, ...]] = {
        "query": (5, 2, 8),
        "key": (6, 2, 8),
        "value": (6, 2, 8),
        "in_proj_bias": (24,),
        "out_proj_weight": (8, 8),
        "out_proj_bias": (8,),
    }
    shapes |= {f"{x}_proj_weight": (8, 8) for x in "qkv"} if separate else {"in_proj_weight": (24, 8)}
    pairs = {name: both(random(*shape, seed=i), device, True) for i, (name, shape) in enumerate(shapes.items())}
    options = {"embed_dim_to_check": 8, "num_heads": 2, "bias_k": None, "bias_v": None, "dropout_p": 0.0}
    options |= {"add_zero_attn": True, "use_separate_proj_weight": separate}
    options |= {"in_proj_weight": None} if separate else {}
    got, weights = F.multi_head_attention_forward(**{n: p[0] for n, p in pairs.items()}, **options)
    want, theirs = torch.nn.functional.multi_head_attention_forward(**{n: p[1] for n, p in pairs.items()}, **options)
    close(got, want)
    close(weights, theirs)
    got.square().sum().backward()
    want.square().sum().backward()
    for ours, reference in pairs.values():
        close(ours.grad, reference.grad, 1e-4)


def test_static_keys(device: str) -> None:
    x, w, o = (both(random(*s, seed=3), device) for s in ((5, 2, 8), (24, 8), (8, 8)))
    fixed = both(random(4, 6, 4), device)
    got, want = (
        lib.multi_head_attention_forward(
            x[k], x[k], x[k], 8, 2, w[k], None, None, None, False, 0.0, o[k], None, static_k=fixed[k], static_v=fixed[k]
        )
        for k, lib in enumerate((F, torch.nn.functional))
    )
    close(got[0], want[0])
    close(got[1], want[1])


@pytest.mark.parametrize("width", [8, 16, 64])
@pytest.mark.parametrize("recorded", [False, True])
def test_the_result_lies_in_memory_as_the_query_does(width: int, recorded: bool, device: str) -> None:
    """Whichever way it is computed: programs take heads together by transpose(1, 2).view(...)."""
    for size in ((2, 8, 2), (1, 5, 4), (3, 70, 2)):
        q, k, v = (dt.rand(*size, width, device=device).transpose(1, 2) for _ in range(3))
        q.requires_grad_(recorded)
        result = F.scaled_dot_product_attention(q, k, v)
        assert result.transpose(1, 2).is_contiguous() and result.transpose(1, 2).view(*size[:2], -1).ndim == 3
        whole = F.scaled_dot_product_attention(q.contiguous(), k, v)
        assert whole.is_contiguous()
        np.testing.assert_allclose(result.detach().cpu().numpy(), whole.detach().cpu().numpy(), rtol=1e-5, atol=1e-6)
