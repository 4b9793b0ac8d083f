"""What optimizers refuse: errors that name the option, or the parameter by its place."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from optimizer_cases import CASES, in_devtensor
from support import CUDA_DEVICES

import devtensor as dt


def one(*shape: int, device: str = "cpu", dtype: Any = dt.float32) -> dt.nn.Parameter:
    return dt.nn.Parameter(dt.ones(shape, device=device, dtype=dtype))


def used_up() -> Any:
    found = dt.nn.Linear(2, 2).parameters()
    list(found)
    return found


shared = one(2)
optim = dt.optim
WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "nothing": (lambda: optim.SGD([]), ValueError, r"optimizer got an empty parameter list$"),
    "used up": (
        lambda: optim.SGD(used_up()),
        ValueError,
        r"the generator is used up .* call model.parameters\(\) again",
    ),
    "one array": (
        lambda: optim.SGD(one(2)),
        TypeError,
        r"but got devtensor.nn.Parameter, float32 \(2,\): .* is \[param\]",
    ),
    "a number": (lambda: optim.SGD(3), TypeError, "iterable of Tensors or dicts, but got int"),  # type: ignore[arg-type]
    "no array": (lambda: optim.SGD([one(2), 3]), TypeError, r"one of the params is int \(index 1\)"),  # type: ignore[list-item]
    "a set": (lambda: optim.SGD([{"params": {one(2)}}]), TypeError, "ordered collections"),
    "no params": (lambda: optim.SGD([{"lr": 1.0}]), KeyError, "under 'params'"),
    "two groups": (
        lambda: optim.SGD([{"params": [shared]}, {"params": [one(3), shared]}]),
        ValueError,
        r"more than one parameter group: parameter 1, float32 \(2,\), is in group 0 already",
    ),
    "a result": (
        lambda: optim.SGD([one(2), dt.ones(2, requires_grad=True) * 2]),
        ValueError,
        r"can't optimize a non-leaf Tensor: parameter 1, float32 \(2,\), is the result of mul at .*errors.py:",
    ),
    "names of some": (lambda: optim.SGD([("a", one(2)), one(2)]), ValueError, "Some param names are missing"),  # type: ignore[list-item]
    "names of a group": (
        lambda: optim.SGD([{"params": [("a", one(2))]}, {"params": [one(2)]}]),
        ValueError,
        "the new one has none, group 0 names",
    ),
    "lr text": (lambda: optim.SGD([one(2)], lr="1e-3"), TypeError, r"'lr' must be a number, not str: '1e-3' \(float"),  # type: ignore[arg-type]
    "lr tuple": (lambda: optim.Adam([one(2)], lr=(0.1,)), TypeError, "'lr' must be a number, not tuple"),  # type: ignore[arg-type]
    "lr of a group": (
        lambda: optim.Adam([{"params": [one(2)], "lr": "x"}]),
        TypeError,
        "'lr' must be a number, not str",
    ),
    "lr array": (lambda: optim.Adam([one(2)], lr=dt.ones(2)), ValueError, "Tensor lr must be 1-element"),
    "lr negative": (lambda: optim.Adam([one(2)], lr=-1.0), ValueError, "Invalid learning rate: -1.0"),
    "lr NaN": (lambda: optim.Adagrad([one(2)], lr=float("nan")), ValueError, "Invalid learning rate: nan"),
    "momentum": (lambda: optim.SGD([one(2)], momentum=-1), ValueError, "Invalid momentum value: -1"),
    "weight_decay": (lambda: optim.RMSprop([one(2)], weight_decay=-1), ValueError, "Invalid weight_decay value: -1"),
    "eps": (lambda: optim.AdamW([one(2)], eps=-1), ValueError, "Invalid epsilon value: -1"),
    "alpha": (lambda: optim.RMSprop([one(2)], alpha=-1), ValueError, "Invalid alpha value: -1"),
    "lr_decay": (lambda: optim.Adagrad([one(2)], lr_decay=-1), ValueError, "Invalid lr_decay value: -1"),
    "betas": (lambda: optim.Adam([one(2)], betas=0.9), TypeError, "'betas' must be two numbers, not 0.9"),  # type: ignore[arg-type]
    "beta": (lambda: optim.Adam([one(2)], betas=(0.9, 1.0)), ValueError, "beta parameter at index 1: 1.0"),
    "nesterov": (lambda: optim.SGD([one(2)], nesterov=True), ValueError, "requires a momentum and zero dampening"),
    "maximize": (lambda: optim.SGD([one(2)], maximize="no"), TypeError, "'maximize' must be"),  # type: ignore[arg-type]
    "differentiable": (lambda: optim.SGD([one(2)], differentiable=True), NotImplementedError, "leaves no graph"),
    "fused and foreach": (lambda: optim.Adam([one(2)], fused=True, foreach=True), RuntimeError, "cannot be `True`"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_is_refused(name: str) -> None:
    call, kind, text = WRONG[name]
    with pytest.raises(kind, match=text):
        call()


def test_a_refused_group_leaves_the_optimizer() -> None:
    optimizer = dt.optim.SGD([one(2)])
    group = {"params": [one(2)], "lr": "fast"}
    with pytest.raises(TypeError):
        optimizer.add_param_group(group)
    assert len(optimizer.param_groups) == 1 and [*group] == ["params", "lr"]


def mismatched(change: Callable[[dt.nn.Parameter, dict[str, Any]], None]) -> tuple[dt.optim.Optimizer, Any]:
    """Two parameters after a step, of which the second is changed."""
    params = [one(2), one(3)]
    optimizer = dt.optim.Adam(params)
    for p in params:
        p.grad = dt.ones_like(p)
    optimizer.step()
    change(params[1], optimizer.state[params[1]])
    return optimizer, params


def moved(p: dt.nn.Parameter, state: dict[str, Any]) -> None:
    state["exp_avg"] = state["exp_avg"].to(CUDA_DEVICES[0])


def cast(p: dt.nn.Parameter, state: dict[str, Any]) -> None:
    state["exp_avg_sq"] = state["exp_avg_sq"].double()


def cut(p: dt.nn.Parameter, state: dict[str, Any]) -> None:
    (key,) = [key for key in state if key in ("exp_avg", "momentum_buffer")]
    state[key] = state[key][:1]


def tied(p: dt.nn.Parameter, state: dict[str, Any]) -> None:
    state["exp_avg"] = state["exp_avg_sq"]


def read_only(p: dt.nn.Parameter, state: dict[str, Any]) -> None:
    numbers = np.zeros(3, np.float32)
    numbers.flags.writeable = False
    state["exp_avg"] = dt.from_numpy(numbers)


MISMATCHES: list[tuple[Callable[..., None], type[Exception], str, str | None]] = [
    (moved, dt.DeviceMismatchError, "params[1] on cpu, grads[1] on cpu, exp_avg[1] on cuda:0", "exp_avg"),
    (cast, dt.DTypeMismatchError, "exp_avg[1] and exp_avg_sq[1] must have the same dtype", "exp_avg_sq"),
    (cut, dt.ShapeMismatchError, "Expected exp_avg[1] to have shape (3,), but got (1,) instead", "exp_avg"),
    (tied, RuntimeError, "exp_avg[1] and exp_avg_sq[1] are both written, and share memory", None),
    (read_only, RuntimeError, "exp_avg is read-only", None),
]


@pytest.mark.parametrize(("change", "kind", "text", "culprit"), MISMATCHES, ids=lambda x: getattr(x, "__name__", None))
def test_mismatches_name_the_parameter(
    change: Callable[..., None], kind: type[Exception], text: str, culprit: str | None
) -> None:
    """And nothing of the group has changed."""
    optimizer, params = mismatched(change)
    before = [p.tolist() for p in params]
    with pytest.raises(kind, match=re.escape(text)) as caught:
        optimizer.step()
    assert [p.tolist() for p in params] == before
    assert [optimizer.state[p]["step"].item() for p in params] == [1.0, 1.0]
    error: Any = caught.value
    if culprit is not None:
        assert error.culprit.name.startswith(culprit) and error.culprit.origin.filename == __file__
        assert error.op == "step"


def test_an_option_that_became_text() -> None:
    """Groups are read at every step."""
    p = one(2)
    p.grad = dt.ones(2)
    optimizer = dt.optim.SGD([p], lr=0.1)
    optimizer.param_groups[0]["weight_decay"] = "0.1"
    with pytest.raises(TypeError, match=re.escape("step(): the option 'weight_decay' must be a number, not str")):
        optimizer.step()
    optimizer.param_groups[0].update(weight_decay=0.5, lr="0.1")
    with pytest.raises(TypeError, match="'lr' must be a number, not str"):
        optimizer.step()
    assert p.tolist() == [1, 1]


HIDDEN: list[tuple[Any, ...]] = [
    ("newton", (), (), (), {}, ()),
    ("sgd", [], (), (), {}, ()),
    ("sgd", (3,), (3,), (), {}, (0,)),
    ("sgd", (dt.ones(1),), (), (), {}, (0,)),
    ("sgd", (dt.ones(1),), (dt.ones(1),), ((dt.ones(1),),), {}, (0,)),
    ("sgd", (dt.ones(1),), (dt.ones(1),), (), {"speed": 1.0}, (0,)),
    ("sgd", (dt.ones(1),), (dt.ones(1),), (), None, (0,)),
    ("sgd", (dt.ones(1),), (dt.ones(1),), (), {}, ()),
    ("sgd", (dt.ones(1),), (dt.ones(1),), (), {}, ("a",)),
    ("adam", (dt.ones(1),), (dt.ones(1),), ((dt.ones(1),), ()), {}, (0,)),
]


@pytest.mark.parametrize("arguments", HIDDEN, ids=range(len(HIDDEN)))
def test_the_seam_refuses_what_no_optimizer_gives(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        dt._C._update(*arguments)


def test_places_count_over_the_groups() -> None:
    params = [one(2), one(2), one(2)]
    optimizer = dt.optim.SGD([{"params": params[:2]}, {"params": params[2:]}], momentum=0.9)
    for p in (params[0], params[2]):
        p.grad = dt.ones_like(p)
    optimizer.step()
    cut(params[2], optimizer.state[params[2]])
    with pytest.raises(dt.ShapeMismatchError, match=re.escape("Expected momentum_buffer[2] to have shape (2,)")):
        optimizer.step()


def test_a_model_may_move_before_the_first_step() -> None:
    """And not after it: its state stays where it was made."""
    model = dt.nn.Linear(2, 1)
    optimizer = dt.optim.Adam(model.parameters())
    model.to(CUDA_DEVICES[0])
    for p in model.parameters():
        p.grad = dt.ones_like(p)
    before = model.weight.tolist()
    optimizer.step()
    assert model.weight.tolist() != before
    assert str(optimizer.state[model.weight]["exp_avg"].device) == CUDA_DEVICES[0]
    model.to("cpu")
    with pytest.raises(dt.DeviceMismatchError, match=re.escape("exp_avg[0] on cuda:0")) as caught:
        optimizer.step()
    assert {operand.name for operand in caught.value.operands} >= {"params[0]", "exp_avg[0]"}


WRONG_STATES: dict[str, tuple[Any, type[Exception], str]] = {
    "no dict": (3, TypeError, "to be dict-like, got int"),
    "groups": ({"state": {}, "param_groups": []}, ValueError, "number of parameter groups: 0, here 1"),
    "sizes": ({"state": {}, "param_groups": [{"params": [0, 1]}]}, ValueError, "group 0 has 2 parameters, here 1"),
    "another library": (
        {"state": {0: {"exp_avg": np.zeros(2)}}, "param_groups": [{"params": [0]}]},
        TypeError,
        "state of parameter 0, 'exp_avg': expected a devtensor.DeviceArray, but got numpy.ndarray",
    ),
}


@pytest.mark.parametrize("name", WRONG_STATES)
def test_wrong_state_is_refused(name: str) -> None:
    state, kind, text = WRONG_STATES[name]
    optimizer = dt.optim.Adam([one(2)], lr=0.5)
    with pytest.raises(kind, match=text):
        optimizer.load_state_dict(state)
    assert optimizer.param_groups[0]["lr"] == 0.5 and not optimizer.state


def test_constructors_are_silent() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in CASES:
            in_devtensor(name, [one(2)])
