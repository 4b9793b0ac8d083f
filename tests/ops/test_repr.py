"""What arrays look like: the frameworks' style, with device and dtype where they are not default."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import devtensor as dt

inf, nan = math.inf, math.nan

ROWS: list[tuple[Any, str, str]] = [
    ([1.0, 2.0], "float32", "[1., 2.]"),
    ([1, 2], "int64", "[1, 2]"),
    ([True, False], "bool", "[ True, False]"),
    ([1.5, -2.25], "float32", "[ 1.5000, -2.2500]"),
    ([], "float32", "[]"),
    (2.5, "float32", "2.5000"),
    (3, "int64", "3"),
    ([[1, 2], [3, 4]], "int64", "[[1, 2],\n             [3, 4]]"),
    ([[[1], [2]], [[3], [4]]], "int8", "[[[1],\n              [2]],\n\n             [[3],\n              [4]]]"),
    ([nan, inf, -inf], "float32", "[ nan,  inf, -inf]"),
]


@pytest.mark.parametrize(("values", "dtype", "want"), ROWS)
def test_repr(values: Any, dtype: str, want: str, device: str) -> None:
    x = dt.array(values, dtype=getattr(dt, dtype), device=device)
    assert repr(x) == str(x) == f"DeviceArray({want}, device='{device}', dtype={dtype})"


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "int8", "bool"]
)
def test_device_and_dtype_are_always_shown(dtype: str, device: str) -> None:
    for size in (0, 2, 5000):
        text = repr(dt.ones(size, dtype=getattr(dt, dtype), device=device))
        assert re.search(rf",\s+device='{device}',\s+dtype={dtype}\)$", text)


@pytest.mark.parametrize("kind", [dt.nn.Parameter, dt.nn.Buffer])
def test_the_arrays_of_a_module_are_called_by_their_names(kind: Any, device: str) -> None:
    name = kind.__name__.lstrip("_")
    text = repr(kind(dt.ones(2, 2, device=device)))
    facts = f"device='{device}', dtype=float32" + ", requires_grad=True" * (name == "Parameter")
    assert text == f"{name}([[1., 1.],\n{'':{len(name) + 2}}[1., 1.]], {facts})"


def test_whether_gradients_flow_is_told(device: str) -> None:
    w = dt.ones(2, device=device, requires_grad=True)
    assert repr(w).endswith("dtype=float32, requires_grad=True)")
    assert repr(w * 2).endswith("dtype=float32, grad_fn=<MulBackward0>)")
    assert repr(w.detach()).endswith("dtype=float32)") and repr(w.requires_grad_(False)).endswith("dtype=float32)")


class Doubled(dt.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2


def test_a_function_of_the_users_is_told_by_its_name(device: str) -> None:
    assert repr(Doubled.apply(dt.ones(2, device=device, requires_grad=True))).endswith("grad_fn=<DoubledBackward>)")


@pytest.mark.parametrize("name", ["", "a."])
def test_a_class_may_have_no_name(name: str) -> None:
    kind = type(name, (dt.DeviceArray,), {})
    assert repr(dt.ones(0).as_subclass(kind)).startswith("([], device=")


def test_facts_without_room_get_a_line() -> None:
    text = repr(dt.ones(12, dtype=dt.float64))
    assert text.endswith("1.], device='cpu',\n            dtype=float64)")
    assert max(len(line) for line in repr(dt.randn(100, 3)).splitlines()) <= 80


def test_format_of_one_number(device: str) -> None:
    """A format, an empty one too, writes the number of a 0-dim array, as in PyTorch; str() writes the array."""
    x = dt.tensor(2.5, device=device)
    assert (f"{x}", f"{x:.3f}", f"{x!s}") == ("2.5", "2.500", repr(x))
    assert f"{dt.ones(2, device=device)}" == repr(dt.ones(2, device=device))


def test_large_arrays_are_shortened(device: str) -> None:
    text = repr(dt.zeros((1000, 1000), device=device))
    assert len(text) < 1200
    assert "..." in text
    assert len(repr(dt.zeros(10_001, device=device))) < 200
    assert "..., 0., 0., 0.], size=(10001,), " in repr(dt.zeros(10_001, device=device))


def test_a_shortened_array_moves_few_bytes(cuda: str) -> None:
    x = dt.zeros((1000, 1000), device=cuda)
    before = dt._C.counters()["bytes_to_host"]
    repr(x)
    assert dt._C.counters()["bytes_to_host"] - before < 2000


def test_empty_shapes_are_shown() -> None:
    assert "size=(0, 3)" in repr(dt.zeros((0, 3)))


def test_views_show_their_own_values(device: str) -> None:
    x = dt.arange(6, device=device).reshape(2, 3)
    assert repr(x.T[1:]).startswith("DeviceArray([[1, 4],\n             [2, 5]],")
    assert repr(x[:1].expand(2, 3)).startswith("DeviceArray([[0, 1, 2],\n             [0, 1, 2]],")


def test_extreme_values() -> None:
    assert "1.0000e+10" in repr(dt.array([1e10, 1.0]))
    assert "1.0000e-10" in repr(dt.array([1e-10]))
    assert repr(dt.array([2**62])).startswith(f"DeviceArray([{2**62}],")
    assert repr(dt.array([-0.0])).startswith("DeviceArray([-0.],")


def test_html(device: str) -> None:
    """The text, the shape and the line that made it."""
    x = dt.array([1.0, 2.0], device=device)
    line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
    html = x._repr_html_()
    begin = '<pre style="font-family:var(--jp-code-font-family,monospace)">'
    begin += f"DeviceArray([1., 2.], device=&#x27;{device}&#x27;, dtype=float32)</pre>"
    begin += "<small>shape (2,), created by array at "
    assert html.startswith(begin) and html.endswith(f"test_repr.py:{line}</small>")
    assert "result of mul at " in (x * 2)._repr_html_()
    moved = x.cpu().to(device, copy=True)._repr_html_()
    assert device == "cpu" or f"moved by .to(&quot;{device}&quot;) at " in moved


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool", "float16"])
def test_values_read_back(dtype: str) -> None:
    values = np.array([1, 0, 1, 1]).astype(dtype)
    text = repr(dt.array(values)).partition("(")[2].partition("]")[0] + "]"
    assert eval(text) == values.tolist()


# ---------------------------------------------------------------- set_printoptions

DEFAULT = {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}


@pytest.fixture
def options() -> Iterator[None]:
    yield
    dt.set_printoptions(profile="default")


SET: list[tuple[dict[str, Any], Any, str]] = [
    ({"precision": 2}, [1.25, 2.0], "[1.25, 2.00]"),
    ({"precision": 0}, [1.6, 2.0], "[2., 2.]"),
    ({"sci_mode": True}, [1.5, 2.0], "[1.5000e+00, 2.0000e+00]"),
    ({"sci_mode": False}, [1.0, 5000.5], "[   1.0000, 5000.5000]"),
    ({"precision": 1, "sci_mode": True}, [1.0], "[1.0e+00]"),
    ({"threshold": 4}, [1, 2, 3, 4, 5, 6, 7], "[1, 2, 3,  ..., 5, 6, 7]"),
    ({"threshold": 4, "edgeitems": 1}, [1, 2, 3, 4, 5], "[1,  ..., 5]"),
    ({"threshold": 4, "edgeitems": 0}, [1, 2, 3, 4, 5], "[...]"),
    (
        {"threshold": 0, "edgeitems": 1},
        [[1, 2, 3]] * 3,
        "[[1,  ..., 3],\n             ...,\n             [1,  ..., 3]]",
    ),
    ({"linewidth": 22}, [1, 2, 3, 4], "[1, 2, 3,\n             4]"),
    ({"linewidth": 0}, [1, 2], "[1,\n             2]"),
    ({"profile": "short"}, [1.25], "[1.25]"),
    ({"profile": "short", "precision": 3}, [1.25], "[1.250]"),
]


@pytest.mark.parametrize(("chosen", "values", "want"), SET)
def test_set_printoptions(chosen: dict[str, Any], values: Any, want: str, device: str, options: None) -> None:
    dt.set_printoptions(**chosen)
    text = repr(dt.array(values, device=device))
    assert text[: text.rindex("]") + 1] == f"DeviceArray({want}"


def test_options_are_those_of_pytorch(options: None) -> None:
    assert dt.get_printoptions() == DEFAULT
    dt.set_printoptions(precision=2, sci_mode=True)
    assert dt.get_printoptions() == {**DEFAULT, "precision": 2, "sci_mode": True}
    dt.set_printoptions()  # as in PyTorch: only sci_mode does not stay
    assert dt.get_printoptions() == {**DEFAULT, "precision": 2}
    dt.set_printoptions(profile="full")
    assert dt.get_printoptions() == {**DEFAULT, "threshold": inf}
    dt.set_printoptions(**dt.get_printoptions())
    assert "..." not in repr(dt.zeros(2000))


@pytest.mark.parametrize("chosen", [{}, {"precision": 1}, {"sci_mode": True}, {"edgeitems": 1, "threshold": 3}])
@pytest.mark.parametrize("scale", [0.001, 1.0, 12345.0])
def test_values_are_written_as_by_pytorch(chosen: dict[str, Any], scale: float, options: None) -> None:
    torch = pytest.importorskip("torch")
    before = torch._tensor_str.get_printoptions()
    wider = len("DeviceArray(") - len("tensor(")
    try:
        torch.set_printoptions(**chosen)
        dt.set_printoptions(**chosen, linewidth=80 + wider)
        for values in (np.linspace(-1, 2, 60), np.arange(60), np.arange(8), np.array([0.5, np.inf, -np.nan, 0.0])):
            array = (values * scale).astype("float32")
            for view in (array, array.reshape(-1, 2, 2)):
                want = re.sub(r"\n(?!\n)", "\n" + " " * wider, str(torch.from_numpy(view)).removeprefix("tensor("))
                got = repr(dt.from_numpy(view)).removeprefix("DeviceArray(")
                assert got[: got.rindex("]")] == want[: want.rindex("]")]
    finally:
        torch.set_printoptions(**before)


REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"precision": -1}, RuntimeError, "set_printoptions expects precision from 0 to 100, but got -1"),
    ({"precision": 101}, RuntimeError, "set_printoptions expects precision from 0 to 100, but got 101"),
    ({"precision": "4"}, TypeError, "set_printoptions(): argument 'precision' must be int, not str"),
    ({"threshold": -1}, RuntimeError, f"set_printoptions expects threshold from 0 to {2**63 - 1}, but got -1"),
    ({"threshold": nan}, RuntimeError, "set_printoptions expects threshold to be a number that is not negative"),
    ({"edgeitems": -1}, RuntimeError, "set_printoptions expects edgeitems from 0 to 2147483647, but got -1"),
    ({"linewidth": 2**31}, RuntimeError, "set_printoptions expects linewidth from 0 to 2147483647, but got 2147483648"),
    ({"profile": "long"}, ValueError, 'set_printoptions(): profile is "default", "short" or "full", not \'long\''),
    ({"sci_mode": "on"}, TypeError, "set_printoptions(): argument 'sci_mode' must be bool, not str"),
]


@pytest.mark.parametrize(("chosen", "kind", "text"), REFUSED)
def test_refused_options_change_nothing(chosen: dict[str, Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as caught:
        dt.set_printoptions(**{"precision": 7, "linewidth": 99} | chosen)
    assert str(caught.value) == text
    assert dt.get_printoptions() == DEFAULT


def test_sizes_of_many_digits() -> None:
    """Nothing of a large size is lost."""
    text = repr(dt.zeros(1, dtype=dt.bool).expand(10**18, 2, 1))
    assert f"size=({10**18}, 2, 1)," in text


def test_a_profile_is_not_asked_what_it_is() -> None:
    class Loud:
        def __repr__(self) -> str:
            raise AssertionError

    with pytest.raises(ValueError, match="not a Loud"):
        dt.set_printoptions(profile=Loud())  # type: ignore[arg-type]
