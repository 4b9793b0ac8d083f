"""devtensor.nn beside torch.nn, where PyTorch is installed: the same numbers, names, text and files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from torch_version import assert_same_text

import devtensor as dt

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


def both(x: np.ndarray, device: str) -> tuple[Any, Any]:
    return dt.from_numpy(x.copy()).to(device), torch.from_numpy(x.copy())


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def close(got: Any, want: Any) -> None:
    assert got.shape == tuple(want.shape)
    assert str(got.dtype).split(".")[1] == str(want.dtype).split(".")[1]
    np.testing.assert_allclose(got.cpu().float().tolist(), want.detach().float().numpy(), rtol=1e-4, atol=1e-5)


LAYERS: list[tuple[str, tuple[Any, ...], dict[str, Any], tuple[int, ...]]] = [
    ("Linear", (4, 3), {}, (2, 4)),
    ("Linear", (4, 3), {"bias": False}, (4,)),
    ("Conv1d", (4, 6, 3), {"stride": 2, "padding": 1, "groups": 2}, (2, 4, 9)),
    ("Conv1d", (4, 6, 4), {"padding": "same", "padding_mode": "circular"}, (2, 4, 9)),
    ("Conv2d", (3, 4, 3), {"padding": "same", "dilation": 2}, (2, 3, 8, 8)),
    ("Conv2d", (3, 4, (3, 2)), {"stride": 2, "padding": (1, 0), "bias": False}, (3, 8, 8)),
    ("Conv2d", (3, 4, 3), {"padding": 2, "padding_mode": "reflect"}, (2, 3, 8, 8)),
    ("BatchNorm1d", (4,), {}, (5, 4)),
    ("BatchNorm1d", (4,), {"momentum": None}, (5, 4, 3)),
    ("BatchNorm2d", (3,), {"eps": 0.1, "affine": False}, (2, 3, 4, 4)),
    ("BatchNorm2d", (3,), {"track_running_stats": False}, (2, 3, 4, 4)),
    ("LayerNorm", ((3, 4),), {}, (2, 3, 4)),
    ("LayerNorm", (4,), {"elementwise_affine": False}, (2, 3, 4)),
    ("MaxPool2d", (3,), {"stride": 2, "padding": 1, "ceil_mode": True}, (2, 3, 8, 8)),
    ("AvgPool2d", (3, 2), {"padding": 1, "count_include_pad": False}, (2, 3, 8, 8)),
    ("AdaptiveAvgPool2d", ((2, None),), {}, (2, 3, 8, 7)),
    ("Flatten", (), {}, (2, 3, 4)),
    ("Unflatten", (1, (1, 3)), {}, (2, 3, 4)),
    ("ReLU6", (), {}, (50,)),
    ("LeakyReLU", (0.3,), {}, (50,)),
    ("ELU", (0.3,), {}, (50,)),
    ("GELU", (), {}, (50,)),
    ("GELU", ("tanh",), {}, (50,)),
    ("SiLU", (), {}, (50,)),
    ("Softplus", (2.0, 1.0), {}, (50,)),
    ("Hardtanh", (-0.5, 0.25), {}, (50,)),
    ("Softmax", (1,), {}, (5, 10)),
    ("LogSoftmax", (), {"dim": 0}, (5, 10)),
    ("Tanh", (), {}, (50,)),
    ("Sigmoid", (), {}, (50,)),
    ("Dropout", (0.0,), {}, (5,)),
    ("Identity", (), {}, (5,)),
]


@pytest.mark.parametrize(("name", "args", "options", "shape"), LAYERS, ids=lambda v: str(v)[:40])
def test_layers(name: str, args: Any, options: Any, shape: tuple[int, ...], device: str) -> None:
    ours, theirs = getattr(dt.nn, name)(*args, **options), getattr(torch.nn, name)(*args, **options)
    assert_same_text(ours, theirs)
    state = theirs.state_dict()
    assert list(ours.state_dict()) == list(state)
    ours.load_state_dict({k: dt.from_numpy(v.numpy().copy()) for k, v in state.items()})
    ours.to(device)
    for x in (random(*shape), random(*shape) * 2):
        a, b = both(x, device)
        close(ours(a), theirs(b))
    for key, value in theirs.state_dict().items():
        close(ours.state_dict()[key], value)
    ours.eval(), theirs.eval()
    a, b = both(random(*shape), device)
    close(ours(a), theirs(b))


@pytest.mark.parametrize("shape", [(4, 2, 3), (2, 4, 3, 4), (6, 3, 1, 2, 3)])
@pytest.mark.parametrize("groups", [1, 2])
def test_dirac(shape: tuple[int, ...], groups: int, device: str) -> None:
    a, b = both(random(*shape), device)
    close(dt.nn.init.dirac_(a, groups), torch.nn.init.dirac_(b, groups))


def test_dirac_refuses(device: str) -> None:
    assert dt.nn.init.dirac_(dt.zeros(0, 2, 3, device=device)).shape == (0, 2, 3)
    with pytest.raises(ValueError, match="3, 4, or 5 dimensions"):
        dt.nn.init.dirac_(dt.zeros(2, 2, device=device))
    for groups in (0, 3):
        with pytest.raises(ValueError, match="divisible by groups"):
            dt.nn.init.dirac_(dt.zeros(4, 2, 3, device=device), groups)


FUNCTIONS: list[tuple[str, dict[str, Any]]] = [
    ("var", {}),
    ("var", {"dim": 1, "keepdim": True}),
    ("std", {"dim": (0, 1), "correction": 0}),
    ("logsumexp", {"dim": 0}),
    ("norm", {}),
    ("norm", {"p": 3, "dim": 1}),
    ("flip", {"dims": (0, 1)}),
]


@pytest.mark.parametrize(("name", "options"), FUNCTIONS)
def test_functions(name: str, options: dict[str, Any], device: str) -> None:
    a, b = both(random(4, 5), device)
    close(getattr(dt, name)(a, **options), getattr(torch, name)(b, **options))
    close(getattr(a, name)(**options), getattr(b, name)(**options))


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_losses(smoothing: float, reduction: Any, device: str) -> None:
    x, target, weight = random(6, 4, 3), np.random.default_rng(1).integers(0, 4, (6, 3)), np.abs(random(4))
    target[0, 0] = 3
    a, b = both(x, device)
    t, u = both(target, device)
    v, w = both(weight, device)
    options = {"reduction": reduction, "ignore_index": 3, "label_smoothing": smoothing}
    close(dt.nn.CrossEntropyLoss(v, **options)(a, t), torch.nn.CrossEntropyLoss(w, **options)(b, u))
    shares, other = both(np.abs(x) / 3, device)
    options.pop("ignore_index")
    close(dt.nn.CrossEntropyLoss(v, **options)(a, shares), torch.nn.CrossEntropyLoss(w, **options)(b, other))
    close(
        dt.nn.functional.mse_loss(a, shares, reduction=reduction),
        torch.nn.functional.mse_loss(b, other, reduction=reduction),
    )
    close(dt.nn.NLLLoss(v, reduction=reduction)(a, t), torch.nn.NLLLoss(w, reduction=reduction)(b, u))


LOSSES: list[tuple[str, Any]] = [
    ("weights", lambda f, x, y, w, t: f.mse_loss(x, y, weight=w)),
    ("weights", lambda f, x, y, w, t: f.l1_loss(x, y, reduction="sum", weight=w)),
    ("weights", lambda f, x, y, w, t: f.huber_loss(x, y, weight=w)),
    ("weights", lambda f, x, y, w, t: f.binary_cross_entropy(x.sigmoid(), y.tanh(), w)),
    ("weights of columns", lambda f, x, y, w, t: f.binary_cross_entropy(x.sigmoid(), y.tanh(), w[0], reduction="sum")),
    ("weights of rows", lambda f, x, y, w, t: f.binary_cross_entropy_with_logits(x, y, w[:, :1], pos_weight=w[0])),
    ("certain", lambda f, x, y, w, t: f.binary_cross_entropy((x > 0) * 1.0, (y > 1) * 1.0, reduction="none")),
    ("far", lambda f, x, y, w, t: f.binary_cross_entropy_with_logits(x * 1000, (y > 1) * 1.0, reduction="none")),
    ("no smooth part", lambda f, x, y, w, t: f.smooth_l1_loss(x, y, beta=0)),
    ("smooth", lambda f, x, y, w, t: f.smooth_l1_loss(x, y, reduction="none", beta=0.5)),
    ("huber", lambda f, x, y, w, t: f.huber_loss(x, y, reduction="none", delta=0.5)),
    ("batch", lambda f, x, y, w, t: f.kl_div(x.log_softmax(1), y.softmax(1), reduction="batchmean")),
    ("no share", lambda f, x, y, w, t: f.kl_div(x, (y - 1).relu(), reduction="none")),
    ("logarithms", lambda f, x, y, w, t: f.kl_div(x, y, reduction="none", log_target=True)),
    ("one number", lambda f, x, y, w, t: f.kl_div(x[0, 0], y[0, 0], reduction="batchmean")),
    ("first years", lambda f, x, y, w, t: f.mse_loss(x, y, None, False)),
    ("first years", lambda f, x, y, w, t: f.smooth_l1_loss(x, y, None, False)),
    ("first years", lambda f, x, y, w, t: f.l1_loss(x, y, False)),
    ("first years", lambda f, x, y, w, t: f.cross_entropy(x, t, w[0], False, 2)),
    ("positions", lambda f, x, y, w, t: f.cross_entropy(x, t, w[0], None, 2, None, "none", 0.1)),
    ("all ignored", lambda f, x, y, w, t: f.cross_entropy(x, t * 0 + 1, ignore_index=1)),
    ("no rows", lambda f, x, y, w, t: f.nll_loss(x[:0], t[:0], reduction="sum")),
    ("one row", lambda f, x, y, w, t: f.cross_entropy(x[0], t[0], w[0], label_smoothing=0.5)),
    ("logarithms of rates", lambda f, x, y, w, t: f.poisson_nll_loss(x, y)),
    ("rates", lambda f, x, y, w, t: f.poisson_nll_loss(w, y * 4, False, True, reduction="none")),
    ("variances", lambda f, x, y, w, t: f.gaussian_nll_loss(x, y, w, reduction="none")),
    ("variance of a row", lambda f, x, y, w, t: f.gaussian_nll_loss(x, y, w[:, 0], True)),
    ("variance of a column", lambda f, x, y, w, t: f.gaussian_nll_loss(x, y, w[:1], reduction="sum")),
    ("one variance", lambda f, x, y, w, t: f.gaussian_nll_loss(x, y, 1e-9, reduction="none")),
    ("signs", lambda f, x, y, w, t: f.soft_margin_loss(x, (y - 1).sign(), reduction="none")),
    ("whole signs", lambda f, x, y, w, t: f.hinge_embedding_loss(x, t % 2 * 2 - 1 if x.ndim < 2 else (y - 1).sign())),
    ("no sign", lambda f, x, y, w, t: f.hinge_embedding_loss(x, (y - 1).sign() * (x > 0), 0.3, reduction="none")),
    ("pairs", lambda f, x, y, w, t: f.margin_ranking_loss(x[:, 0], y[:, 0], t % 2 * 2 - 1, 0.5, reduction="none")),
    ("broadcast", lambda f, x, y, w, t: f.margin_ranking_loss(x, y[:1], w[:, :1].sign(), 0.5, reduction="none")),
    ("vectors", lambda f, x, y, w, t: f.cosine_embedding_loss(x, y, t % 2 * 2 - 1, -0.5, reduction="none")),
    ("one vector", lambda f, x, y, w, t: f.cosine_embedding_loss(x[0], y[0], w[0, 0].sign())),
    ("one for all", lambda f, x, y, w, t: f.cosine_embedding_loss(x, y[:1], w[0, :1].sign(), reduction="none")),
    ("triplets", lambda f, x, y, w, t: f.triplet_margin_loss(x, y, w, reduction="none")),
    ("swapped triplets", lambda f, x, y, w, t: f.triplet_margin_loss(x, y, w, 3.0, 1, 1e-3, True, reduction="none")),
    ("one triplet", lambda f, x, y, w, t: f.triplet_margin_loss(x[0], y[0], w[0])),
    ("other classes", lambda f, x, y, w, t: f.multi_margin_loss(x, t, reduction="none")),
    ("other classes", lambda f, x, y, w, t: f.multi_margin_loss(x, t, 2, 0.5, w[0])),
    ("other classes of one", lambda f, x, y, w, t: f.multi_margin_loss(x[0], t[0])),
    ("likeness", lambda f, x, y, w, t: f.cosine_similarity(x, y)),
    ("likeness", lambda f, x, y, w, t: f.cosine_similarity(x * 0, y[0], dim=-1)),
    ("likeness", lambda f, x, y, w, t: f.cosine_similarity(x[:, None], y[None], dim=2)),
    ("likeness", lambda f, x, y, w, t: f.cosine_similarity(x, y[0], dim=0)),
    ("distance", lambda f, x, y, w, t: f.pairwise_distance(x, y)),
    ("distance", lambda f, x, y, w, t: f.pairwise_distance(x, y[0], 1, 0.0, True)),
    ("distance", lambda f, x, y, w, t: f.pairwise_distance(x[0], y, float("inf"))),
    ("first years", lambda f, x, y, w, t: f.soft_margin_loss(x, y, False)),
    ("weights of 0", lambda f, x, y, w, t: f.nll_loss(x / 0.0, t, w[0] * 0, reduction="none")),
]


@pytest.mark.filterwarnings("ignore:size_average and reduce")
@pytest.mark.parametrize(("name", "call"), LOSSES)
def test_rare_losses(name: str, call: Any, device: str) -> None:
    (x, u), (y, v) = both(random(6, 4), device), both(random(6, 4) ** 2, device)
    (w, z), (t, k) = both(np.abs(random(6, 4)), device), both(np.array([0, 3, 2, 1, 1, 2]), device)
    close(call(dt.nn.functional, x, y, w, t), call(torch.nn.functional, u, v, z, k))


# Each class with options that matter, and what it is called with.
LOSS_MODULES: dict[str, list[tuple[dict[str, Any], Any]]] = {
    "BCELoss": [({}, lambda x, y, w, t: (x.sigmoid(), y.tanh()))],
    "BCEWithLogitsLoss": [({}, lambda x, y, w, t: (x, y))],
    "CTCLoss": [({"blank": 1}, lambda x, y, w, t: (x[:, None].log_softmax(2), t[None, :2] // 2 * 2, (6,), (2,)))],
    "CosineEmbeddingLoss": [({"margin": -0.5}, lambda x, y, w, t: (x, y, t % 2 * 2 - 1))],
    "CrossEntropyLoss": [({"ignore_index": 2, "label_smoothing": 0.1}, lambda x, y, w, t: (x, t))],
    "GaussianNLLLoss": [({"full": True}, lambda x, y, w, t: (x, y, w)), ({"eps": 0.5}, lambda x, y, w, t: (x, y, w))],
    "HingeEmbeddingLoss": [({"margin": 0.3}, lambda x, y, w, t: (x, (y - 1).sign()))],
    "HuberLoss": [({"delta": 0.5}, lambda x, y, w, t: (x, y))],
    "KLDivLoss": [({}, lambda x, y, w, t: (x, y.tanh())), ({"log_target": True}, lambda x, y, w, t: (x, y))],
    "L1Loss": [({}, lambda x, y, w, t: (x, y))],
    "MSELoss": [({}, lambda x, y, w, t: (x, y))],
    "MarginRankingLoss": [({"margin": 0.5}, lambda x, y, w, t: (x[:, 0], y[:, 0], t % 2 * 2 - 1))],
    "MultiLabelMarginLoss": [({}, lambda x, y, w, t: (x, (t[:, None] - 1).expand(6, 4)))],
    "MultiLabelSoftMarginLoss": [({}, lambda x, y, w, t: (x, (y > 1) * 1.0))],
    "MultiMarginLoss": [({"p": 2, "margin": 0.5}, lambda x, y, w, t: (x, t))],
    "NLLLoss": [({"ignore_index": 2}, lambda x, y, w, t: (x, t))],
    "PoissonNLLLoss": [
        ({"full": True}, lambda x, y, w, t: (x, y * 4)),
        ({"log_input": False, "eps": 0.1}, lambda x, y, w, t: (w, y)),
    ],
    "SmoothL1Loss": [({"beta": 0.5}, lambda x, y, w, t: (x, y))],
    "SoftMarginLoss": [({}, lambda x, y, w, t: (x, (y - 1).sign()))],
    "TripletMarginLoss": [
        ({"margin": 3.0, "swap": True}, lambda x, y, w, t: (x, y, w)),
        ({"margin": 2.0, "p": 1, "eps": 0.1}, lambda x, y, w, t: (x, y, w)),
    ],
    "TripletMarginWithDistanceLoss": [({"margin": 3.0, "swap": True}, lambda x, y, w, t: (x, y, w))],
}


@pytest.mark.filterwarnings("ignore:reduction")
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize(
    "name", sorted(name for name in dir(dt.nn) if name.endswith("Loss") and "Adaptive" not in name)
)
def test_every_loss_as_a_module(name: str, reduction: str, device: str) -> None:
    (x, u), (y, v) = both(random(6, 4), device), both(random(6, 4) ** 2, device)
    (w, z), (t, k) = both(np.abs(random(6, 4)) + 0.1, device), both(np.array([0, 3, 2, 1, 1, 2]), device)
    for options, arguments in LOSS_MODULES[name]:
        found, wanted = (
            getattr(nn, name)(**options, reduction=reduction)(*arguments(*given))
            for nn, given in ((dt.nn, (x, y, w, t)), (torch.nn, (u, v, z, k)))
        )
        close(found, wanted)


CONTAINERS: list[Any] = [
    lambda nn, one: nn.ModuleList([nn.Linear(2, 3), nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.Linear(1, 1))]),
    lambda nn, one: nn.ModuleList() + [nn.ReLU()],
    lambda nn, one: nn.Sequential(nn.Linear(2, 2), nn.ReLU()) * 2 + nn.Sequential(nn.Tanh()),
    lambda nn, one: 2 * nn.Sequential(nn.Linear(2, 2)),
    lambda nn, one: nn.ModuleDict({"b": nn.ReLU(), "a": nn.Linear(1, 2)}),
    lambda nn, one: nn.ParameterList([one(2, 3), one(1)]),
    lambda nn, one: nn.Sequential(nn.Linear(1, 1), nn.ModuleDict({"x": nn.ModuleList([nn.Linear(1, 1)])})),
]


@pytest.mark.parametrize("make", CONTAINERS)
def test_containers(make: Any) -> None:
    ours, theirs = make(dt.nn, dt.ones), make(torch.nn, torch.ones)
    assert repr(ours).replace("devtensor.", "torch.") == repr(theirs)
    for names in ("named_parameters", "named_modules", "named_children", "named_buffers"):
        found, wanted = getattr(ours, names)(), getattr(theirs, names)()
        assert [name for name, _ in found] == [name for name, _ in wanted]
    assert list(ours.state_dict()) == list(theirs.state_dict())


def test_parameter_dictionaries() -> None:
    for make in (
        lambda lib: {"b": lib.ones(1), "a": lib.ones(2)},
        lambda lib: [("b", lib.ones(1)), ("a", lib.ones(2))],
    ):
        ours, theirs = dt.nn.ParameterDict(make(dt)), torch.nn.ParameterDict(make(torch))
        ours |= {"c": dt.ones(3)}
        theirs |= {"c": torch.ones(3)}
        assert list(ours) == list(theirs) and list(reversed(ours)) == list(reversed(theirs))
        assert ours.get("d") is theirs.get("d") is None and ours.popitem()[0] == theirs.popitem()[0]
        assert ours.setdefault("e", dt.ones(1)) is ours["e"] and list(ours.copy()) == [*list(theirs), "e"]
        ours.pop("b"), ours.clear()
        assert len(ours) == 0


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_pad(mode: str, device: str) -> None:
    a, b = both(random(2, 3, 4, 5), device)
    for amounts in ((1, 2, 2, 0), (-1, 2, 0, 1)):
        if mode == "constant" or min(amounts) >= 0:
            close(dt.nn.functional.pad(a, amounts, mode), torch.nn.functional.pad(b, amounts, mode))


def test_gather_and_embedding(device: str) -> None:
    a, b = both(random(4, 5), device)
    i, j = both(np.array([[0, 3, 1], [2, 2, 0]]), device)
    close(dt.gather(a, 0, i), torch.gather(b, 0, j))
    close(dt.take(a, i - 2), torch.take(b, j - 2))
    close(dt.nn.functional.embedding(i, a), torch.nn.functional.embedding(j, b))
    close(dt.index_select(a, 1, i[0]), torch.index_select(b, 1, j[0]))
    close(dt.scatter_add(a, 0, i, a), torch.scatter_add(b, 0, j, b))
    close(dt.index_add(a, 0, i[0], a[:3], alpha=0.5), torch.index_add(b, 0, j[0], b[:3], alpha=0.5))


def test_initial_values_have_the_same_bounds() -> None:
    torch.manual_seed(0)
    for name, args in (("Linear", (50, 40)), ("Conv2d", (8, 16, 3)), ("Embedding", (300, 30)), ("Conv1d", (8, 16, 3))):
        ours, theirs = getattr(dt.nn, name)(*args).state_dict(), getattr(torch.nn, name)(*args).state_dict()
        for key, value in theirs.items():
            assert ours[key].std().item() == pytest.approx(value.std().item(), rel=0.35)
            assert ours[key].shape == tuple(value.shape)
