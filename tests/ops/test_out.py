"""out= of ops that are formulas of others, or whose result is copied into it: one way for all."""

from __future__ import annotations

import operator
from typing import Any

import pytest
from support import DEVICES

import devtensor as dt

# Name, arguments after x, options.
ONE: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    *((name, (), {}) for name in "deg2rad digamma exp2 frac lgamma logit rad2deg sinc nan_to_num msort".split()),
    *((name, (), {}) for name in "isneginf isposinf signbit std var nansum nanmean diag".split()),
    *((name, ("x",), {}) for name in "copysign float_power heaviside ldexp xlogy nextafter kron inner".split()),
    *((name, ("x", "x"), {"value": 0.5}) for name in ("addcmul", "addcdiv")),
    ("clamp_min", (0.2,), {}),
    ("clamp_max", (0.2,), {}),
    ("cross", ("x",), {}),
    ("logsumexp", (1,), {}),
    ("quantile", (0.5,), {}),
    ("nanquantile", (0.5, 0), {}),
    ("renorm", (2.0, 0, 1.0), {}),
    ("diff", (), {"dim": 1}),
    ("narrow_copy", (0, 1, 2), {}),
    ("histc", (4,), {}),
    ("isin", ("x",), {}),
    ("scatter", (1, "index", 5.0), {}),
    ("scatter_reduce", (1, "index", "x", "sum"), {}),
    ("index_copy", (0, "row", "x"), {}),
    ("index_reduce", (0, "row", "x", "mean"), {}),
    ("addr", ("v", "v"), {"alpha": 0.5}),
    ("addmv", ("x", "v"), {}),
    ("vdot", ("v",), {}),
    ("angle", (), {}),
    ("conj_physical", (), {}),
    ("i0", (), {}),
    ("tril", (1,), {}),
    ("triu", (), {}),
    ("argsort", (0,), {}),
    ("gather", (1, "index"), {}),
    ("index_select", (0, "row"), {}),
    ("take", ("index",), {}),
    ("take_along_dim", ("index", 1), {}),
    ("masked_select", ("mask",), {}),
    ("max", (), {}),
    ("min", (), {"other": "x"}),
    *((f"special.{name}", (), {}) for name in ("entr", "ndtr", "ndtri")),
    *((name, ("x",), {}) for name in ("igamma", "igammac")),
    ("mvlgamma", (1,), {}),
    *((f"linalg.{name}", (), {}) for name in "vector_norm matrix_norm norm".split()),
    ("linalg.cross", ("x",), {}),
    ("linalg.vecdot", ("x",), {}),
    ("linalg.matrix_power", (3,), {}),
]
HOST: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [  # by LAPACK
    *((f"linalg.{name}", (), {}) for name in "det inv pinv svdvals eigvalsh matrix_rank cond".split()),
    *((name, (), {}) for name in ("cholesky", "cholesky_inverse", "inverse", "linalg.cholesky")),
    ("linalg.solve", ("x",), {}),
    ("linalg.solve_triangular", ("x",), {"upper": False}),
    ("linalg.tensorinv", (1,), {}),
    ("linalg.tensorsolve", ("v",), {}),
    ("cholesky_solve", ("x",), {}),
]
HOST_PAIRS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    *((f"linalg.{name}", (), {}) for name in "qr svd eigh slogdet cholesky_ex inv_ex".split()),
    ("linalg.solve_ex", ("x",), {}),
    *((f"linalg.{name}", (), {}) for name in ("lu", "lu_factor", "lu_factor_ex")),
    ("qr", (), {}),
    ("svd", (), {}),
]
LISTS = ("cat", "stack", "hstack", "vstack", "dstack", "column_stack", "concat", "row_stack")
PAIRS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("sort", (1,), {"stable": True}),
    ("topk", (2,), {}),
    ("cummax", (0,), {}),
    ("cummin", (1,), {}),
    ("kthvalue", (2, 0), {}),
    ("mode", (1,), {}),
    ("aminmax", (), {"dim": 0}),
    ("max", (1,), {}),
    ("min", (0, True), {}),
    ("std_mean", (1,), {}),
    ("frexp", (), {}),
    ("histogram", (3,), {}),
    ("var_mean", (), {}),
]


def operands(device: str) -> dict[str, Any]:
    x = dt.tensor([[0.3, 0.9, 0.1], [0.7, 0.2, 0.4], [0.8, 0.6, 0.5]], device=device)
    row = dt.tensor([2, 0, 1], device=device)
    return {"x": x, "v": x[0], "row": row, "index": row.expand(3, 3), "mask": x > 0.4}


def named(name: str) -> Any:
    return operator.attrgetter(name)(dt)


def test_results_are_written_into_out(device: str) -> None:
    given = operands(device)
    x = given["x"]
    definite = x @ x.mT + dt.eye(3, device=device)
    for name, arguments, options in ONE + HOST * (device == "cpu"):
        function = named(name)
        x = given["x"] = definite if (name, arguments, options) in HOST else operands(device)["x"]
        options = {key: given.get(a, a) if isinstance(a, str) else a for key, a in options.items()}
        first = given["v"] if name in ("addmv", "vdot") else x
        rest = [given.get(a, a) if isinstance(a, str) else a for a in arguments]
        want = function(first, *rest, **options)
        kinds = {want.dtype, dt.float64} if want.dtype.is_floating_point else {want.dtype, dt.float32}
        kinds = {want.dtype} if name in ("max", "min") else kinds
        for dtype in kinds:
            out = dt.full_like(want, 7, dtype=dtype)
            with dt.allow_transfers() if name == "masked_select" else dt.forbid_transfers():  # whose shape is read
                assert function(first, *rest, **options, out=out) is out, name
            assert out.tolist() == want.to(dtype).tolist(), name
    for name in LISTS:
        want = getattr(dt, name)([x, x])
        out = dt.empty_like(want)
        assert getattr(dt, name)([x, x], out=out) is out and out.tolist() == want.tolist(), name
    for name, arguments, options in PAIRS + HOST_PAIRS * (device == "cpu"):
        x = given["x"] = definite
        rest = [given.get(a, a) if isinstance(a, str) else a for a in arguments]
        want = named(name)(x, *rest, **options)
        outs = tuple(dt.empty_like(part) for part in want)
        found = named(name)(x, *rest, **options, out=outs)
        assert type(found) is type(want) and all(a is b for a, b in zip(found, outs, strict=True)), name
        assert [part.tolist() for part in outs] == [part.tolist() for part in want], name


def test_an_out_that_does_not_fit_is_refused_and_stays(device: str) -> None:
    given = operands(device)
    x = given["x"]
    for call in (
        lambda out: dt.addcmul(x, x, x, out=out),
        lambda out: dt.cat([x], out=out),
        lambda out: dt.gather(x, 1, given["index"], out=out),
        lambda out: dt.xlogy(x, x, out=out),
    ):
        for out, error, text in (
            (dt.ones(3, device=device), dt.ShapeMismatchError, "out"),
            (dt.ones(3, 3, dtype=dt.int64, device=device), dt.DTypeMismatchError, "can't be cast to the desired"),
        ):
            with pytest.raises(error, match=text):
                call(out)
            assert out.tolist() == dt.ones_like(out).tolist()
        with pytest.raises(TypeError, match="'out' must be DeviceArray"):
            call(3)
    for wrong in (x, (x,), (x, 3)):
        with pytest.raises(TypeError, match="'out' must be"):
            dt.topk(x, 2, out=wrong)
        with pytest.raises(TypeError, match="'out' must be"):
            dt.kthvalue(x, 2, out=wrong)


def test_an_out_of_another_device_is_refused(cuda: str) -> None:
    x = operands("cpu")["x"]
    out = dt.ones(3, 3, device=cuda)
    for call in (lambda: dt.addcmul(x, x, x, out=out), lambda: dt.tril(x, out=out)):
        with pytest.raises(dt.DeviceMismatchError):
            call()


def test_a_gradient_is_not_recorded_into_out() -> None:
    w = operands("cpu")["x"].requires_grad_()
    for call in (lambda out: dt.addcmul(w, w, w, out=out), lambda out: dt.cat([w], out=out)):
        out = dt.zeros(3, 3)
        with pytest.raises(dt.GradientError, match="out=... arguments don't support automatic differentiation"):
            call(out)
        with dt.no_grad():
            call(out)
        assert out.abs().sum().item() > 0 and not out.requires_grad
    with pytest.raises(dt.GradientError):
        dt.deg2rad(dt.ones(3, 3), out=w)


def test_methods_have_no_out() -> None:
    x = dt.ones(2)
    for call in (lambda: x.deg2rad(out=x), lambda: x.sort(out=(x, x)), lambda: x.deg2rad_(out=x)):  # type: ignore
        with pytest.raises(TypeError, match="unexpected keyword argument 'out'"):
            call()


def test_out_may_be_an_operand(device: str) -> None:
    x = dt.tensor([3.0, 1.0, 2.0], device=device)
    places = dt.empty(3, dtype=dt.int64, device=device)
    dt.sort(x, out=(x, places))
    assert x.tolist() == [1, 2, 3] and places.tolist() == [1, 2, 0]
    assert dt.diff(x, out=x[:2]).tolist() == [1, 1] and x.tolist() == [1, 1, 3]


MADE: dict[str, tuple[tuple[Any, ...], str]] = {
    "zeros": (((2, 3),), "float64 int64 bool float16"),
    "ones": ((2, 3), "float64 int64 bool float16"),
    "full": (((2, 3), 2), "float64 int64 float16"),
    "arange": ((1, 7, 2), "float64 int64 float16"),
    "linspace": ((0, 5, 6), "float64 int64 float16"),
    "logspace": ((0, 2, 3), "float64 int64 float16"),
    "range": ((0, 5), "float64 int64 float16"),
    "eye": ((2, 3), "float64 int64 bool float16"),
    "rand": ((2, 3), "float64 float16"),
    "randn": ((2, 3), "float64 float16"),
    "randint": ((1, 9, (2, 3)), "float64 int64 float16"),
    "randperm": ((6,), "float64 int64 float16"),
    "normal": ((1.0, 2.0, (2, 3)), "float64 float16"),
}


def test_what_is_made_from_nothing_is_written_into_out(device: str) -> None:
    for name, (arguments, dtypes) in MADE.items():
        function = getattr(dt, name)
        for dtype in (getattr(dt, one) for one in dtypes.split()):
            dt.manual_seed(3)
            want = function(*arguments, dtype=dtype, device=device)
            turned = (
                dt.empty(want.shape[::-1], dtype=dtype, device=device).t()
                if want.ndim == 2
                else want.new_empty(12)[::2]
            )
            turned = turned if turned.shape == want.shape else dt.empty_like(want)
            for out in (dt.empty_like(want), turned):
                dt.manual_seed(3)
                with dt.forbid_transfers():
                    assert function(*arguments, out=out) is out, name
                assert out.tolist() == want.tolist() and out.dtype is dtype, (name, dtype)
        assert function(*arguments, out=None).device.type == "cpu"
    out = dt.ones(2, 3, device=device)
    assert dt.empty(2, 3, out=out) is out
    assert dt.normal(out.zero_(), 0.0, out=out) is out and out.tolist() == [[0.0] * 3] * 2
    assert dt.normal(out, dt.zeros(3, device=device), out=out) is out


def test_an_out_of_another_kind_is_refused_by_what_is_made_from_nothing(device: str) -> None:
    other = next(one for one in (*DEVICES, "cpu") if one != device)
    for name, (arguments, _) in MADE.items():
        function = getattr(dt, name)
        want = function(*arguments, device=device)
        out = dt.zeros(want.shape, device=device)
        for options, error in (
            ({"dtype": dt.float64}, dt.DTypeMismatchError),
            ({"device": other}, dt.DeviceMismatchError),
        ):
            with pytest.raises(error, match=name):
                function(*arguments, out=out, **options)
        with pytest.raises(dt.ShapeMismatchError, match=name):
            function(*arguments, out=dt.zeros(9, 9, device=device))
        with pytest.raises(TypeError, match="'out' must be DeviceArray, not int"):
            function(*arguments, out=3)
        with pytest.raises(dt.GradientError):
            function(*arguments, out=dt.zeros(want.shape, device=device, requires_grad=True))
        assert out.tolist() == dt.zeros(want.shape).tolist(), name
