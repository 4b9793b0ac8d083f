"""Layers: the values they compute with their own parameters, and how these begin."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import images
import nn_reference as slow
import numpy as np
import pytest
from support import wide_of

import devtensor as dt
from devtensor import nn


def close(got: dt.DeviceArray, want: np.ndarray, device: str) -> None:
    assert str(got.device) == device and got.dtype == dt.float32
    np.testing.assert_allclose(wide_of(got).astype(float), want, rtol=1e-5, atol=1e-5)


def weights(layer: nn.Module) -> list[np.ndarray]:
    return [wide_of(p).astype(float) for p in layer.parameters()]


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32).astype(float)


def put(x: np.ndarray, device: str) -> dt.DeviceArray:
    return dt.array(x, dtype=dt.float32).to(device)


def test_linear(device: str) -> None:
    layer, x = nn.Linear(4, 3, device=device), random(2, 5, 4)
    w, b = weights(layer)
    close(layer(put(x, device)), x @ w.T + b, device)
    layer = nn.Linear(4, 3, bias=False, device=device)
    close(layer(put(x, device)), x @ weights(layer)[0].T, device)
    assert layer.bias is None


@pytest.mark.parametrize("options", [{}, {"stride": 2, "padding": 1}, {"groups": 2}, {"dilation": (2, 1)}], ids=str)
def test_conv2d(options: dict[str, Any], device: str) -> None:
    layer, x = nn.Conv2d(4, 6, (3, 2), device=device, **options), random(2, 4, 7, 6)
    w, b = weights(layer)
    close(layer(put(x, device)), images.conv2d(x, w, b, **options), device)


@pytest.mark.parametrize("padding", [2, "same", "valid"])
@pytest.mark.parametrize("mode", ["zeros", "reflect", "replicate", "circular"])
def test_padding_modes(mode: Any, padding: Any, device: str) -> None:
    rows = nn.Conv1d(2, 3, 4, padding=padding, padding_mode=mode, device=device)
    pictures = nn.Conv2d(2, 3, 4, padding=padding, padding_mode=mode, device=device)
    around = {"same": [1, 2], "valid": [0, 0]}.get(padding, [2, 2])
    name = "constant" if mode == "zeros" else mode
    x, y = random(2, 2, 9), random(1, 2, 6, 7)
    close(rows(put(x, device)), slow.conv1d(slow.pad(x, around, name), *weights(rows)), device)
    close(pictures(put(y, device)), images.conv2d(slow.pad(y, around * 2, name), *weights(pictures)), device)


def test_batch_norm(device: str) -> None:
    layer, x = nn.BatchNorm2d(3, eps=1e-3, momentum=0.2, device=device), random(2, 3, 4, 5) * 2 + 1
    with dt.no_grad():
        layer.weight.copy_(dt.array([1.0, 2.0, 3.0]))
        layer.bias.copy_(dt.array([0.0, 1.0, -1.0]))
    w, b = weights(layer)
    mean, var, unbiased = slow.batch_statistics(x)
    close(layer(put(x, device)), slow.batch_norm(x, mean, var, w, b, 1e-3), device)
    close(layer.running_mean, 0.2 * mean, device)
    close(layer.running_var, 0.8 + 0.2 * unbiased, device)
    assert layer.num_batches_tracked.item() == 1
    layer.eval()
    close(layer(put(x, device)), slow.batch_norm(x, 0.2 * mean, 0.8 + 0.2 * unbiased, w, b, 1e-3), device)
    assert layer.num_batches_tracked.item() == 1
    layer.reset_parameters()
    assert layer.running_mean.tolist() == [0, 0, 0] and layer.weight.tolist() == [1, 1, 1]
    assert layer.num_batches_tracked.item() == 0


def test_batch_norm_without_its_parts(device: str) -> None:
    x = random(4, 3)
    mean, var, unbiased = slow.batch_statistics(x)
    plain = nn.BatchNorm1d(3, affine=False, track_running_stats=False, device=device)
    assert list(plain.state_dict()) == []
    close(plain.eval()(put(x, device)), slow.batch_norm(x, mean, var), device)
    average = nn.BatchNorm1d(3, momentum=None, device=device)
    average(put(x, device)), average(put(x * 3, device))
    close(average.running_mean, 2 * mean, device)
    close(average.running_var, 5 * unbiased, device)


def test_layer_norm(device: str) -> None:
    x = random(2, 3, 4)
    layer = nn.LayerNorm((3, 4), device=device)
    with dt.no_grad():
        layer.weight.fill_(2)
        layer.bias.fill_(1)
    close(layer(put(x, device)), slow.layer_norm(x, (3, 4)) * 2 + 1, device)
    assert nn.LayerNorm(4, bias=False).bias is None
    assert list(nn.LayerNorm(4, elementwise_affine=False).parameters()) == []
    close(nn.LayerNorm(4, eps=0.1, device=device)(put(x, device)), slow.layer_norm(x, (4,), eps=0.1), device)


def test_embedding(device: str) -> None:
    layer = nn.Embedding(5, 3, padding_idx=-2, device=device)
    (w,) = weights(layer)
    assert layer.padding_idx == 3 and not w[3].any() and w[2].all()
    ids = np.array([[0, 3], [4, 4]])
    close(layer(dt.from_numpy(ids).to(device)), w[ids], device)
    table = dt.ones(2, 3, device=device)
    assert nn.Embedding.from_pretrained(table).weight.data_ptr() == table.data_ptr()
    with pytest.raises(ValueError, match="Shape of weight"):
        nn.Embedding(5, 3, _weight=table)


def test_dropout_follows_the_mode(device: str) -> None:
    layer, x = nn.Dropout(0.5), dt.ones(1000, device=device)
    assert 350 < layer(x).sum().item() / 2 < 650
    assert layer.eval()(x) is x
    layer = nn.Dropout(0.9, inplace=True)
    assert layer(x) is x and x.sum().item() < 5000


def test_shapes_and_pooling(device: str) -> None:
    x = dt.arange(2 * 3 * 4 * 4, device=device, dtype=dt.float32).reshape(2, 3, 4, 4)
    assert nn.Flatten()(x).shape == (2, 48) and nn.Flatten(0, 1)(x).shape == (6, 4, 4)
    assert nn.Unflatten(1, (1, 3))(x).shape == (2, 1, 3, 4, 4)
    assert nn.Identity(1, a=2)(x) is x
    assert dt.equal(nn.MaxPool2d(2)(x), dt.max_pool2d(x, 2))
    assert dt.equal(nn.MaxPool2d(3, 1, 1, 1, ceil_mode=True)(x), dt.max_pool2d(x, 3, 1, 1, 1, True))
    values, indices = nn.MaxPool2d(2, return_indices=True)(x)
    assert dt.equal(values, dt.max_pool2d(x, 2)) and indices.dtype == dt.int64
    assert dt.equal(nn.AvgPool2d(3, 2, 1, count_include_pad=False)(x), dt.avg_pool2d(x, 3, 2, 1, False, False))
    assert dt.equal(nn.AdaptiveAvgPool2d((1, None))(x), dt.adaptive_avg_pool2d(x, (1, None)))


SIZED: dict[str, Callable[[Any], nn.Module]] = {
    "kernel of MaxPool2d": lambda size: nn.MaxPool2d(size),
    "stride of MaxPool2d": lambda size: nn.MaxPool2d(4, size),
    "dilation of MaxPool2d": lambda size: nn.MaxPool2d(2, 1, 0, size),
    "kernel of AvgPool2d": lambda size: nn.AvgPool2d(size),
    "stride of AvgPool2d": lambda size: nn.AvgPool2d(4, size),
    "size of AdaptiveAvgPool2d": lambda size: nn.AdaptiveAvgPool2d(size),
    "kernel of Conv2d": lambda size: nn.Conv2d(2, 3, size),
    "stride of Conv2d": lambda size: nn.Conv2d(2, 3, 2, size),
    "padding of Conv2d": lambda size: nn.Conv2d(2, 3, 4, 1, size),
    "dilation of Conv2d": lambda size: nn.Conv2d(2, 3, 2, dilation=size),
}


@pytest.mark.parametrize("name", SIZED)
def test_sizes_of_any_kind(name: str) -> None:
    """An int is for both directions; two of them are, as list, tuple, range or NumPy array, for one each."""
    x = dt.arange(2 * 9 * 9, dtype=dt.float32).reshape(1, 2, 9, 9)

    def result(size: Any) -> tuple[str, dt.DeviceArray]:
        dt.manual_seed(5)
        layer = SIZED[name](size)
        return repr(layer), layer(x)

    for same, others in (
        ((3, 1), ([3, 1], np.array([3, 1]), np.array([3, 1], np.uint8), range(3, 0, -2))),
        (2, (np.int64(2), np.array(2))),
    ):
        shown, want = result(same)
        for size in others:
            again, got = result(size)
            assert again == shown and dt.equal(got, want), size
    for wrong in ((), (1, 2, 3), np.array([1, 2, 3])):
        with pytest.raises((ValueError, RuntimeError)):
            result(wrong)


ACTIVATIONS: list[tuple[nn.Module, Callable[[dt.DeviceArray], dt.DeviceArray]]] = [
    (nn.ReLU(), dt.relu),
    (nn.ReLU6(), dt.relu6),
    (nn.SiLU(), dt.silu),
    (nn.LeakyReLU(0.2), lambda x: dt.leaky_relu(x, 0.2)),
    (nn.ELU(0.5), lambda x: dt.elu(x, 0.5)),
    (nn.GELU(), dt.gelu),
    (nn.GELU("tanh"), lambda x: dt.gelu(x, approximate="tanh")),
    (nn.Hardtanh(-2, 1), lambda x: dt.hardtanh(x, -2, 1)),
    (nn.Sigmoid(), dt.sigmoid),
    (nn.Tanh(), dt.tanh),
    (nn.Softplus(2, 3), lambda x: dt.softplus(x, 2, 3)),
    (nn.Softmax(1), lambda x: dt.softmax(x, 1)),
    (nn.LogSoftmax(dim=-1), lambda x: dt.log_softmax(x, -1)),
]


@pytest.mark.parametrize(("layer", "op"), ACTIVATIONS, ids=lambda v: repr(v) if isinstance(v, nn.Module) else "")
def test_activations(layer: nn.Module, op: Any, device: str) -> None:
    x = dt.randn(4, 50, device=device) * 5
    assert dt.equal(layer(x), op(x))


@pytest.mark.parametrize("kind", [nn.ReLU, nn.ReLU6, nn.SiLU, nn.LeakyReLU, nn.ELU, nn.Hardtanh])
def test_activations_in_place(kind: Any, device: str) -> None:
    x = dt.randn(20, device=device)
    want = kind()(x)
    layer = kind(inplace=True)
    assert "inplace=True" in repr(layer)
    assert layer(x) is x and dt.equal(x, want)


def test_losses(device: str) -> None:
    x, target = random(4, 3), np.array([0, 2, 1, -1])
    a, t = put(x, device), dt.from_numpy(target).to(device)
    w = put(np.array([1.0, 2.0, 0.5]), device)
    loss = nn.CrossEntropyLoss(w, ignore_index=-1, label_smoothing=0.1)
    options: dict[str, Any] = {"weight": np.array([1.0, 2.0, 0.5]), "ignore_index": -1}
    close(loss(a, t), slow.cross_entropy(x, target, label_smoothing=0.1, **options), device)
    assert [n for n, _ in loss.named_buffers()] == ["weight"]
    total = nn.NLLLoss(w, ignore_index=-1, reduction="sum")
    close(total(a, t), slow.nll_loss(x, target, reduction="sum", **options), device)
    close(nn.MSELoss()(a, a * 0), (x**2).mean(), device)
    close(nn.L1Loss(reduction="none")(a, a * 0), np.abs(x), device)
    huber = np.where(np.abs(x) < 0.5, x * x / 2, 0.5 * (np.abs(x) - 0.25))
    close(nn.HuberLoss("none", 0.5)(a, a * 0), huber, device)
    close(nn.SmoothL1Loss(reduction="sum", beta=0.5)(a, a * 0), huber.sum() / 0.5, device)
    shares = 1 / (1 + np.exp(-x))
    s = put(shares, device)
    close(nn.KLDivLoss(reduction="none")(a, s), shares * (np.log(shares) - x), device)
    entropy = -(shares * np.log(shares) + (1 - shares) * np.log(1 - shares)) * np.array([1.0, 2.0, 0.5])
    close(nn.BCELoss(w)(s, s), entropy.mean(), device)
    logits = nn.BCEWithLogitsLoss(w, pos_weight=w * 0 + 1)
    close(logits(a, s), entropy.mean(), device)
    assert [n for n, _ in logits.named_buffers()] == ["weight", "pos_weight"]


def test_mean_of_kl_div_warns() -> None:
    with pytest.warns(UserWarning, match="'batchmean' divides only by the batch size"):
        nn.KLDivLoss()(dt.zeros(2), dt.ones(2))


def test_certain_answers_give_finite_gradients(device: str) -> None:
    x = dt.tensor([0.0, 1.0, 0.0, 1.0], device=device, requires_grad=True)
    nn.BCELoss()(x, dt.tensor([0.0, 1.0, 1.0, 0.0], device=device)).backward()
    assert x.grad is not None and dt.isfinite(x.grad).all()


# ---------------------------------------------------------------- how parameters begin


def moments(x: dt.DeviceArray) -> tuple[float, float, float]:
    values = wide_of(x).astype(float)
    return values.mean(), values.std(), np.abs(values).max()


@pytest.mark.parametrize(
    ("layer", "fan"),
    [
        (lambda d: nn.Linear(100, 300, device=d), 100),
        (lambda d: nn.Conv2d(32, 64, 3, groups=2, device=d), 16 * 9),
        (lambda d: nn.Conv1d(32, 300, 5, device=d), 32 * 5),
        (lambda d: nn.Linear(1, 30000, device=d), 1),
    ],
)
def test_layers_begin_as_in_pytorch(layer: Any, fan: int, device: str) -> None:
    made, bound = layer(device), 1 / math.sqrt(fan)
    for p, slack in ((made.weight, 0.02), (made.bias, 0.3)):
        mean, std, most = moments(p)
        assert abs(mean) < slack * bound
        assert std == pytest.approx(bound / math.sqrt(3), rel=slack)
        assert 0.9 * bound < most <= bound * (1 + 1e-6)
    old = made.weight.tolist()
    made.reset_parameters()
    assert made.weight.tolist() != old


INITS: list[tuple[str, dict[str, Any], float, float | None]] = [
    ("uniform_", {"a": 1.0, "b": 3.0}, 2 / math.sqrt(12), 3.0),
    ("normal_", {"mean": 1.0, "std": 2.0}, 2.0, None),
    ("xavier_uniform_", {"gain": 2.0}, 2 * math.sqrt(2 / 500), 2 * math.sqrt(6 / 500)),
    ("xavier_normal_", {}, math.sqrt(2 / 500), None),
    ("kaiming_uniform_", {"nonlinearity": "relu"}, math.sqrt(2 / 200), math.sqrt(6 / 200)),
    ("kaiming_normal_", {"mode": "fan_out"}, math.sqrt(2 / 300), None),
    ("kaiming_normal_", {"a": 1.0}, math.sqrt(1 / 200), None),
]


@pytest.mark.parametrize("dtype", [dt.float16, dt.bfloat16, dt.float32, dt.float64])
@pytest.mark.parametrize(("name", "options", "std", "most"), INITS)
def test_distributions(name: str, options: Any, std: float, most: float | None, dtype: dt.dtype, device: str) -> None:
    x = dt.empty(300, 200, device=device, dtype=dtype)
    assert getattr(nn.init, name)(x, **options) is x
    got = moments(x)
    centre = {"uniform_": 2.0, "normal_": 1.0}.get(name, 0.0)
    assert got[0] == pytest.approx(centre, abs=0.03)
    assert got[1] == pytest.approx(std, rel=0.03)
    assert most is None or 0.98 * most < got[2] <= most * 1.01


OPTIONS: dict[str, tuple[Any, ...]] = {"constant_": (1.0,), "sparse_": (0.5,)}


@pytest.mark.parametrize("name", [name for name in nn.init.__all__ if name.endswith("_")])
def test_a_parameter_is_filled_without_a_record(name: str) -> None:
    dims = (3, 4, 3) if name == "dirac_" else (3, 4)
    weight = nn.Parameter(dt.full(dims, 7.0))
    assert getattr(nn.init, name)(weight, *OPTIONS.get(name, ())) is weight
    assert weight.requires_grad and weight.is_leaf and not (weight == 7).any()
    weight.sum().backward()
    assert weight.grad is not None


def test_other_fillings(device: str) -> None:
    x = dt.empty(2, 3, device=device)
    assert nn.init.constant_(x, 2.5).tolist() == [[2.5] * 3] * 2
    assert nn.init.ones_(x).tolist() == [[1] * 3] * 2 and nn.init.zeros_(x).tolist() == [[0] * 3] * 2
    assert nn.init.eye_(x).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert nn.init.calculate_gain("leaky_relu", 3.0) == pytest.approx(math.sqrt(0.2))
    assert nn.init.kaiming_uniform_(dt.empty(0, 3)).shape == (0, 3)
    with pytest.raises(ValueError, match="fewer than 2 dimensions"):
        nn.init.xavier_uniform_(dt.empty(3))
    with pytest.raises(ValueError, match="Unsupported nonlinearity"):
        nn.init.calculate_gain("nothing")
    with pytest.raises(ValueError, match="not supported"):
        nn.init.kaiming_normal_(x, mode="fan")  # type: ignore[arg-type]


def test_the_same_seed_begins_alike_on_every_device(cuda: str) -> None:
    dt.manual_seed(5)
    host = nn.Linear(7, 5).state_dict()
    dt.manual_seed(5)
    made = nn.Linear(7, 5, device=cuda).state_dict()
    assert {k: v.tolist() for k, v in made.items()} == {k: v.tolist() for k, v in host.items()}
    generator = dt.Generator().manual_seed(1)
    x = nn.init.uniform_(dt.empty(5, device=cuda), generator=generator)
    assert x.tolist() == nn.init.uniform_(dt.empty(5), generator=dt.Generator().manual_seed(1)).tolist()
