"""Mistakes with modules and composed ops: the class, the text, the module path; alike on every device."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import source_files

import devtensor as dt
from devtensor import nn
from devtensor.nn import functional as F

Row = tuple[Callable[[Callable[..., Any]], Any], type[Exception], str]


def ints(a: Callable[..., Any]) -> Any:
    return a(2).to(dt.int64)


# Each op with arrays of given shapes from a(); what is raised, and how it begins.
SHAPES: list[Row] = [
    (lambda a: F.conv1d(a(4), a(1, 1, 1)), dt.ShapeMismatchError, "Expected input to be 2D to 3D, but got 1D instead"),
    (lambda a: F.conv1d(a(1, 4), a(1, 1)), dt.ShapeMismatchError, "Expected weight to be 3D, but got 2D instead"),
    (
        lambda a: F.conv1d(a(3, 4), a(2, 4, 1)),
        dt.ShapeMismatchError,
        "Given groups=1, weight of size (2, 4, 1), expected input (3, 4) to have 4 channels, but got 3 channels "
        "instead (conv1d: input (3, 4), weight (2, 4, 1))",
    ),
    (lambda a: F.conv1d(a(2, 4), a(3, 1, 1), groups=2), dt.ShapeMismatchError, "Given groups=2, expected weight"),
    (lambda a: F.conv1d(a(1, 4), a(1, 1, 1), a(2)), dt.ShapeMismatchError, "Given weight of size (1, 1, 1), expected"),
    (
        lambda a: F.conv1d(a(1, 4), a(1, 1, 7)),
        dt.ShapeMismatchError,
        "Calculated padded input size per channel",
    ),
    (lambda a: F.conv1d(a(1, 4), a(1, 1, 1), stride=0), RuntimeError, "conv1d: stride and dilation must be positive"),
    (lambda a: F.conv1d(a(1, 4), a(1, 1, 1), padding=-1), RuntimeError, "negative padding is not supported"),
    (lambda a: F.conv1d(a(1, 4), a(1, 1, 1), groups=0), RuntimeError, "expected groups to be greater than 0"),
    (lambda a: F.batch_norm(a(3), a(3), a(3)), dt.ShapeMismatchError, "Expected input to be at least 2D, but got 1D"),
    (
        lambda a: F.batch_norm(None, a(3), a(3)),  # type: ignore[arg-type]
        TypeError,
        "batch_norm(): argument 'input' must be DeviceArray, not NoneType",
    ),
    (
        lambda a: F.layer_norm(None, (3,)),  # type: ignore[arg-type]
        TypeError,
        "layer_norm(): argument 'input' must be DeviceArray, not NoneType",
    ),
    (lambda a: F.batch_norm(a(3), None, None), dt.ShapeMismatchError, "Expected input to be at least 2D, but got 1D"),
    (
        lambda a: F.batch_norm(a(2, 3), a(4), a(3)),
        dt.ShapeMismatchError,
        "Expected running_mean to have shape (3,), but got (4,) instead (batch_norm: input (2, 3), running_mean (4,), "
        "running_var (3,))",
    ),
    (lambda a: F.batch_norm(a(2, 3), None, None), RuntimeError, "batch_norm: running_mean and running_var must be"),
    (lambda a: F.batch_norm(a(1, 3), None, None, training=True), ValueError, "Expected more than 1 value per channel"),
    (
        lambda a: F.batch_norm(a(2, 3), None, None, training=True, eps=0.0),
        ValueError,
        "batch_norm eps must be positive",
    ),
    (lambda a: F.batch_norm(a(2, 3), a(3), a(3), eps=-1e-5), ValueError, "batch_norm eps must be non-negative, but"),
    (
        lambda a: F.batch_norm(a(2, 3), a(3), None, training=True),
        ValueError,
        "running_mean and running_var must either",
    ),
    (lambda a: F.instance_norm(a(2, 3, 4), None, a(3)), ValueError, "running_mean and running_var must either both be"),
    (
        lambda a: F.layer_norm(a(2, 3), (4,)),
        dt.ShapeMismatchError,
        "Expected input to have shape (*, 4), but got (2, 3) instead (layer_norm: input (2, 3))",
    ),
    (lambda a: F.layer_norm(a(2, 3), (3,), a(2)), dt.ShapeMismatchError, "Expected weight to have shape (3,), but got"),
    (lambda a: F.hardtanh(a(3), 1, 0), ValueError, "min_val cannot be greater than max_val"),
    (lambda a: F.hardtanh(a(3), 1.0, 0.5, inplace=True), ValueError, "min_val cannot be greater than max_val"),
    (lambda a: dt.hardtanh(ints(a), 2, 1), ValueError, "min_val cannot be greater than max_val"),
    (lambda a: F.normalize(ints(a)), dt.DTypeMismatchError, "\"normalize\" not implemented for 'int64'"),
    (lambda a: F.normalize(a(3)), IndexError, "Dimension out of range"),
    (lambda a: dt.lerp(a(3), a(3).double(), 0.5), dt.DTypeMismatchError, "input and end must have the same dtype"),
    (lambda a: dt.lerp(a(3), 2.0, 0.5), TypeError, "lerp(): argument 'end' must be DeviceArray"),  # type: ignore[arg-type]
    (lambda a: dt.lerp(ints(a), ints(a), 0.5), dt.DTypeMismatchError, "\"lerp\" not implemented for 'int64'"),
    (lambda a: a(3).lerp_(a(3).half(), 0.5), dt.DTypeMismatchError, "input and end must have the same dtype"),
    (lambda a: ints(a) & 1.5, dt.DTypeMismatchError, "\"bitwise_and\" not implemented for 'float32'"),
    (lambda a: dt.cat([a(3), a()]), dt.ShapeMismatchError, "Tensors must have same number of dimensions: got 1 and 0"),
    (
        lambda a: dt.cat([a(), a(3)]),
        dt.ShapeMismatchError,
        "zero-dimensional tensor (at position 0) cannot be concatenated (cat: tensors[0] (), tensors[1] (3,))",
    ),
    (lambda a: F.layer_norm(a(2, 3), ()), RuntimeError, "Expected normalized_shape to be at least 1-dimensional"),
    (
        lambda a: F.cross_entropy(a(2, 3), a(3).to(dt.int64)),
        dt.ShapeMismatchError,
        "Expected target to have shape (2,), but got (3,) instead (cross_entropy: input (2, 3), target (3,))",
    ),
    (lambda a: F.cross_entropy(a(2, 3), a(2, 2)), dt.ShapeMismatchError, "Expected target to have shape (2, 3)"),
    (lambda a: F.nll_loss(a(2, 3), ints(a), a(2)), dt.ShapeMismatchError, "Expected weight to have shape (3,)"),
    (lambda a: F.nll_loss(a(2, 3), ints(a), reduction="x"), ValueError, "nll_loss(): 'x' is not a valid value"),  # type: ignore[arg-type]
    (lambda a: F.kl_div(a(2), a(2), reduction="x"), ValueError, "kl_div(): 'x' is not a valid value"),  # type: ignore[arg-type]
    (lambda a: F.huber_loss(a(2), a(2), delta=0), RuntimeError, "huber_loss does not support non-positive values"),
    (lambda a: F.smooth_l1_loss(a(2), a(2), beta=-1), RuntimeError, "smooth_l1_loss does not support negative values"),
    (
        lambda a: F.binary_cross_entropy(a(2), a(3)),
        dt.ShapeMismatchError,
        "Expected target to have shape (2,), but got (3,) instead (binary_cross_entropy: input (2,), target (3,))",
    ),
    (
        lambda a: F.binary_cross_entropy(a(2), a(2), a(1, 2)),
        dt.ShapeMismatchError,
        "Expected weight to have shape (2,)",
    ),
    (
        lambda a: F.binary_cross_entropy_with_logits(a(2, 3), a(2, 3), pos_weight=a(2)),
        dt.ShapeMismatchError,
        "Expected pos_weight to have shape (3,), but got (2,)",
    ),
    (lambda a: F.cross_entropy(a(2, 3), ints(a), label_smoothing=2), ValueError, "label_smoothing must be between"),
    (lambda a: F.embedding(ints(a), a(3)), dt.ShapeMismatchError, "Expected weight to be 2D, but got 1D"),
    (lambda a: dt.index_select(a(3), 0, a(2, 2).to(dt.int64)), dt.ShapeMismatchError, "Expected index to be 0D to 1D"),
    (lambda a: dt.index_select(a(3), 1, ints(a)), IndexError, "Dimension out of range"),
    (lambda a: dt.gather(a(3, 3), 0, ints(a)), dt.ShapeMismatchError, "Expected index to be 2D, but got 1D"),
    (
        lambda a: dt.gather(a(3, 3), 0, a(2, 4).to(dt.int64)),
        dt.ShapeMismatchError,
        "Expected index to have shape",
    ),
    (lambda a: dt.pad(a(3), (1,)), RuntimeError, "Padding length must be divisible by 2, but got 1"),
    (lambda a: dt.pad(a(3), (1, 1, 1, 1)), dt.ShapeMismatchError, "Expected input to be at least 2D, but got 1D"),
    (
        lambda a: dt.pad(a(3), (3, 0), "reflect"),
        dt.ShapeMismatchError,
        "Expected input to have shape (4,)",
    ),
    (lambda a: dt.pad(a(3), (-2, -2)), dt.ShapeMismatchError, "Expected input to have shape (4,)"),
    (lambda a: dt.pad(a(3), (1, 1), "mirror"), NotImplementedError, "Unrecognised padding mode 'mirror'"),
    (
        lambda a: dt.var(a(3), dim=2),
        IndexError,
        "Dimension out of range (expected to be in",
    ),
    (lambda a: dt.masked_fill(a(3), a(2) > 0, 1), dt.ShapeMismatchError, "The size of tensor a (2) must match"),
    (lambda a: dt.masked_fill(a(3), a(3) > 0, a(3)), dt.ShapeMismatchError, "Expected value to be 0D, but got 1D"),
    (
        lambda a: dt.masked_fill(ints(a), a(2) > 0, 1e30),
        RuntimeError,
        "value cannot be converted to type",
    ),
]


@pytest.mark.parametrize(("call", "error", "text"), SHAPES, ids=[row[2][:50] for row in SHAPES])
def test_shapes_and_parameters(call: Callable[..., Any], error: type[Exception], text: str, device: str) -> None:
    with pytest.raises(error) as caught:
        call(lambda *shape: dt.ones(shape, device=device))
    assert str(caught.value).startswith(text)
    if issubclass(error, dt.ShapeMismatchError):
        assert caught.value.op and caught.value.code and caught.value.culprit  # type: ignore[attr-defined]


# (op, names, how to call it with as many arrays): what each array of ones must be is in its shape and dtype.
F32, I64, BOOL = "float32", "int64", "bool"
OPS: list[tuple[str, list[str], list[tuple[tuple[int, ...], str]], Callable[..., Any]]] = [
    ("conv1d", ["input", "weight", "bias"], [((1, 4), F32), ((1, 1, 1), F32), ((1,), F32)], F.conv1d),
    (
        "batch_norm",
        ["input", "running_mean", "running_var", "weight", "bias"],
        [((2, 3), F32), *[((3,), F32)] * 4],
        F.batch_norm,
    ),
    (
        "layer_norm",
        ["input", "weight", "bias"],
        [((2, 3), F32), ((3,), F32), ((3,), F32)],
        lambda x, w, b: F.layer_norm(x, 3, w, b),
    ),
    ("nll_loss", ["input", "target", "weight"], [((2, 3), F32), ((2,), I64), ((3,), F32)], F.nll_loss),
    ("cross_entropy", ["input", "target", "weight"], [((2, 3), F32), ((2,), I64), ((3,), F32)], F.cross_entropy),
    ("cross_entropy", ["input", "target"], [((2, 3), F32), ((2, 3), F32)], F.cross_entropy),
    ("mse_loss", ["input", "target"], [((2, 3), F32), ((2, 3), F32)], F.mse_loss),
    ("l1_loss", ["input", "target"], [((2, 3), F32), ((2, 3), F32)], F.l1_loss),
    ("huber_loss", ["input", "target"], [((2, 3), F32), ((2, 3), F32)], F.huber_loss),
    ("smooth_l1_loss", ["input", "target"], [((2, 3), F32), ((2, 3), F32)], F.smooth_l1_loss),
    (
        "kl_div",
        ["input", "target"],
        [((2, 3), F32), ((2, 3), F32)],
        lambda x, y: F.kl_div(x, y, reduction="batchmean"),
    ),
    ("binary_cross_entropy", ["input", "target", "weight"], [((2, 3), F32)] * 3, F.binary_cross_entropy),
    (
        "binary_cross_entropy_with_logits",
        ["input", "target", "weight", "pos_weight"],
        [((2, 3), F32)] * 4,
        lambda x, y, w, p: F.binary_cross_entropy_with_logits(x, y, w, pos_weight=p),
    ),
    ("embedding", ["input", "weight"], [((2,), I64), ((3, 3), F32)], F.embedding),
    ("index_select", ["input", "index"], [((3, 3), F32), ((2,), I64)], lambda x, i: dt.index_select(x, 0, i)),
    ("gather", ["input", "index"], [((3, 3), F32), ((3, 3), I64)], lambda x, i: x.gather(0, i)),
    (
        "scatter_add",
        ["input", "index", "src"],
        [((3, 3), F32), ((3, 3), I64), ((3, 3), F32)],
        lambda x, i, s: x.scatter_add(0, i, s),
    ),
    (
        "index_add",
        ["input", "index", "source"],
        [((3, 3), F32), ((2,), I64), ((2, 3), F32)],
        lambda x, i, s: dt.index_add(x, 0, i, s),
    ),
    ("take", ["input", "index"], [((3, 3), F32), ((2,), I64)], lambda x, i: x.take(i)),
    ("masked_fill", ["input", "mask"], [((3,), F32), ((3,), BOOL)], lambda x, m: x.masked_fill(m, 0)),
]
IDS = [f"{op} {len(names)}" for op, names, _, _ in OPS]


@pytest.mark.parametrize(("op", "names", "operands", "call"), OPS, ids=IDS)
def test_one_operand_on_another_device(op: str, names: Any, operands: Any, call: Any, cuda: str) -> None:
    for odd in range(len(names)):
        for home, away in ((cuda, "cpu"), ("cpu", cuda)):
            places = [away if i == odd else home for i in range(len(names))]
            arrays = [dt.zeros(s, dtype=d, device=p) for (s, d), p in zip(operands, places, strict=True)]
            with pytest.raises(dt.DeviceMismatchError) as caught:
                call(*arrays)
            listed = ", ".join(f"{n} on {p}" for n, p in zip(names, places, strict=True))
            first, second = places[0], next(p for p in places if p != places[0])
            assert str(caught.value) == (
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"{first} and {second}! ({op}: {listed})"
            )
            if len(names) > 2:
                assert caught.value.culprit is not None and caught.value.culprit.name == names[odd]
    with pytest.raises(dt.DeviceMismatchError):  # of empty inputs too
        call(*[dt.zeros((0, *s[1:]), dtype=d, device=p) for (s, d), p in zip(operands, places, strict=True)])


@pytest.mark.parametrize(("op", "names", "operands", "call"), OPS, ids=IDS)
def test_one_operand_of_another_dtype(op: str, names: Any, operands: Any, call: Any, device: str) -> None:
    wrong = {F32: dt.float64, I64: dt.float32, BOOL: dt.uint8}
    for odd, (_, own) in enumerate(operands):
        if op in ("index_select", "gather", "take", "embedding", "masked_fill") and own == F32:
            continue
        if op == "cross_entropy" and len(names) == 3 and odd == 1:
            continue  # floats are probabilities there: another mistake
        arrays = [dt.zeros(s, dtype=wrong[d] if i == odd else d, device=device) for i, (s, d) in enumerate(operands)]
        with pytest.raises(dt.DTypeMismatchError) as caught:
            call(*arrays)
        assert caught.value.op == op
        assert f"({op}: " in str(caught.value)
        assert {o.name for o in caught.value.operands} <= set(names)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: dt.var(x),
        lambda x: x.std(),
        lambda x: x.logsumexp(0),
        lambda x: x.norm(),
        lambda x: F.dropout(x),
        lambda x: F.layer_norm(x, 3),
        lambda x: F.mse_loss(x, x),
        lambda x: F.batch_norm(x.reshape(1, 3), None, None),
    ],
)
def test_integers_are_refused(call: Callable[[dt.DeviceArray], Any], device: str) -> None:
    with pytest.raises(dt.DTypeMismatchError, match="not implemented for 'int64': it takes float16, bfloat16"):
        call(dt.ones(3, dtype=dt.int64, device=device))


def test_what_is_no_array() -> None:
    for call in (lambda: F.mse_loss(dt.ones(1), 1.0), lambda: F.layer_norm([1.0], 1), lambda: dt.var(3)):
        with pytest.raises(TypeError, match="must be DeviceArray, not"):
            call()


# ---------------------------------------------------------------- modules


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 1, 1)

    def forward(self, x: dt.DeviceArray) -> dt.DeviceArray:
        return self.conv1(x)


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([nn.Identity(), Inner()])
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(5, 1))

    def forward(self, x: dt.DeviceArray, extra: dt.DeviceArray | None = None) -> dt.DeviceArray:
        for block in self.blocks:
            x = block(x)
        if extra is not None:
            x = x + extra
        return self.head(x)


def failure(call: Callable[[], Any]) -> Any:
    with pytest.raises(RuntimeError) as caught:
        call()
    return caught.value


def test_the_path_of_the_module(cuda: str) -> None:
    net = Outer().to(cuda)
    error = failure(lambda: net(dt.ones(1, 1, 2, 2)))
    assert error.module_path == "Outer.blocks.1.conv1"
    assert [type(m).__name__ for m in error.modules] == ["Conv2d", "Inner", "Outer"]
    assert error.modules[-1] is net and error.modules[0] is net.blocks[1].conv1
    assert error.__notes__[-1] == "In module: Outer.blocks.1.conv1"
    assert len([note for note in error.__notes__ if note.startswith("In module")]) == 1
    x = dt.ones(1, 1, 2, 2, device=cuda)
    assert failure(lambda: net(x)).module_path == "Outer.head.1"
    assert failure(lambda: net(x, dt.ones(1))).module_path == "Outer"
    assert failure(lambda: nn.Linear(2, 2)(x)).module_path == "Linear"
    assert failure(lambda: dt.linear(x, net.head[1].weight)).module_path is None


def test_a_value_error_has_the_path_too() -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.BatchNorm1d(3)))
    with pytest.raises(ValueError, match="more than 1 value per channel") as caught:
        net(dt.ones(1, 2))
    assert caught.value.__notes__[-1] == "In module: Sequential.1.0"
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.module_path == "Sequential.1.0" and again.modules == ()


def test_hooks_and_strange_nesting_keep_the_path() -> None:
    loose = nn.Linear(2, 2)

    class Odd(nn.Module):
        def forward(self, x: Any) -> Any:
            return loose(x)

    net = nn.Sequential(Odd())
    net[0].register_forward_pre_hook(lambda m, args: None)
    assert failure(lambda: net(dt.ones(3))).module_path == "Sequential.0.Linear"


def test_an_error_of_a_module_travels(cuda: str) -> None:
    error = failure(lambda: Outer().to(cuda)(dt.ones(1, 1, 2, 2)))
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and type(again) is type(error)
    assert again.module_path == "Outer.blocks.1.conv1" and again.modules == () and again.op == "conv2d"
    assert again.__notes__ == error.__notes__


def test_other_exceptions_pass_untouched() -> None:
    class Fails(nn.Module):
        def forward(self) -> None:
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine") as caught:
        Fails()()
    assert not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: nn.Conv2d(3, 4, 3, groups=2), ValueError, "in_channels must be divisible by groups"),
        (lambda: nn.Conv2d(4, 3, 3, groups=2), ValueError, "out_channels must be divisible by groups"),
        (lambda: nn.Conv2d(4, 4, 3, groups=0), ValueError, "groups must be a positive integer"),
        (lambda: nn.Conv2d(1, 1, 3, padding="half"), ValueError, "Invalid padding string 'half'"),  # type: ignore[arg-type]
        (lambda: nn.Conv2d(1, 1, 3, stride=2, padding="same"), ValueError, "not supported for strided"),
        (lambda: nn.Conv2d(1, 1, (3, 3, 3)), ValueError, "kernel_size must be an int or 2 of them, not 3"),
        (lambda: nn.Conv2d(1, 1, 3, padding_mode="mirror"), ValueError, "padding_mode must be one of"),  # type: ignore[arg-type]
        (lambda: nn.Dropout(2), ValueError, "dropout probability has to be between 0 and 1, but got 2"),
        (lambda: nn.Hardtanh(1, 0), ValueError, "max_val must be larger than min_val"),
        (lambda: nn.Embedding(3, 2, padding_idx=3), ValueError, "padding_idx must be within num_embeddings"),
        (lambda: nn.BatchNorm2d(3)(dt.ones(2, 3)), dt.ShapeMismatchError, "Expected input to be 4D, but got 2D"),
        (lambda: nn.BatchNorm1d(3)(dt.ones(3)), dt.ShapeMismatchError, "Expected input to be 2D to 3D, but got 1D"),
    ],
)
def test_mistakes_in_construction(make: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        make()
    assert text in str(caught.value)


# ---------------------------------------------------------------- checkpoints

CHECKPOINT = """\
net = dt.nn.Sequential(dt.nn.Linear(3, 2))
state = dt.load(path)
net.load_state_dict(state)
"""


def test_a_checkpoint_of_another_size_is_a_mismatch_of_shapes(tmp_path: Path, device: str) -> None:
    path = tmp_path / "theirs.safetensors"
    dt.save(dt.nn.Sequential(dt.nn.Linear(5, 2)).state_dict(), path)
    text = CHECKPOINT.replace("3, 2", f"3, 2, device={device!r}")
    error = source_files.run(text, {"dt": dt, "path": path}, filename="<resume.py>")
    assert type(error) is dt.ShapeMismatchError
    assert str(error) == (
        "Error(s) in loading state_dict for Sequential:\n"
        "\tsize mismatch for 0.weight: copying a param with shape (2, 5) (devtensor.float32) from checkpoint, "
        "the shape in current model is (2, 3) (devtensor.float32)."
    )
    assert (error.op, error.code, error.fix) == ("load_state_dict", "shape-mismatch", None)
    ours, theirs = error.operands
    assert error.culprit is theirs
    assert (ours.name, ours.expression, ours.shape) == ("0.weight", "net.0.weight", (2, 3))
    assert (theirs.name, theirs.expression, theirs.shape) == ('state_dict["0.weight"]', "state['0.weight']", (2, 5))
    assert (ours.origin.filename, ours.origin.lineno) == ("<resume.py>", 1)
    assert theirs.origin == ("load", "<resume.py>", 2)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.operands) == (str(error), error.operands)


def test_a_checkpoint_of_many_other_sizes_shows_the_first() -> None:
    sizes = [3, 4, 5, 6, 7, 8]
    net, other = (dt.nn.Sequential(*[dt.nn.Linear(n + k, 1, bias=False) for n in sizes]) for k in (0, 1))
    with pytest.raises(dt.ShapeMismatchError) as caught:
        net.load_state_dict(other.state_dict())
    assert str(caught.value).count("size mismatch for") == len(sizes)
    assert [o.shape for o in caught.value.operands] == [s for n in sizes[:4] for s in ((1, n), (1, n + 1))]


def test_what_is_no_probability(device: str) -> None:
    inside = dt.tensor([0.0, 1.0], device=device)
    for wrong in (-0.1, 1.1, float("nan")):
        outside = dt.tensor([0.5, wrong], device=device)
        for name, args in {"input": (outside, inside), "target": (inside, outside)}.items():
            with pytest.raises(RuntimeError, match=f"all elements of {name} should be between 0 and 1") as caught:
                F.binary_cross_entropy(*args)
                dt.cuda.synchronize() if inside.is_cuda else None  # a device says so late
            assert caught.value.code == "not-probabilities"  # type: ignore[attr-defined]
    assert F.binary_cross_entropy(inside, inside).item() == 0
    assert F.binary_cross_entropy(inside[:0], inside[:0], reduction="sum").item() == 0
