"""Operands without elements: every row of the case table and more, on every device, against the reference."""

from __future__ import annotations

import functools
import itertools
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import cases
import formats
import images
import numpy as np
import pytest
import reference
from cases import CASES, Case, Operand
from support import Built, assert_close, bits_of, call, for_each, lay_out, name_of, no_transfers, question, wide_of
from test_ops import can_replace, in_place, rows
from zero_size_rows import without_elements

import devtensor as dt

pytestmark = pytest.mark.usefixtures("unexplained")
ERRORS = (RuntimeError, ValueError, IndexError, TypeError)
# Ops some of whose rows have no answer without elements: the largest of nothing, shapes given by number.
REFUSE = {"amax", "amin", "argmax", "argmin", "reshape", "broadcast_to", "index_select", "index_add"}


@functools.cache
def is_refused(case: Case, dtype: str, expanded: bool) -> bool:
    """Whether the reference has no answer."""
    try:
        _ = question(case, dtype, expanded).answers
    except (ValueError, IndexError):
        return True
    return False


def failure(function: Callable[[], Any], device: str) -> str:
    """How a call fails: class and text, without the device's name."""
    with pytest.raises(ERRORS) as caught:
        function()
    return f"{caught.type.__name__}: {caught.value}".replace(device, "DEVICE")


# ---------------------------------------------------------------- rows of the table


def zero_cases(case: Case) -> Iterator[Case]:
    """The variants of a row at one of its dtypes: no element is computed, and the rows take all dtypes in turn."""
    dtype = case.dtypes[zlib.crc32(str(case).encode()) % len(case.dtypes)]
    for zero in without_elements(case):
        yield Case(zero.op, zero.operands, zero.parameters, (dtype,), zero.layouts, zero.ulps, zero.slack)


def answers(case: Case) -> list[Case]:
    return [zero for zero in zero_cases(case) if not is_refused(zero, zero.dtypes[0], False)]


def test_every_row_has_a_variant_with_an_answer() -> None:
    for case in CASES:
        variants = without_elements(case)
        assert variants, case
        assert all(any(0 in o.shape for o in zero.arrays) for zero in variants)
    missing = {case.op for case in CASES if not answers(case)}
    assert missing == REFUSE
    assert {case.op for case in CASES if answers(case)} == {case.op for case in CASES}


@pytest.mark.parametrize("case", rows())
def test_function(case: Case, device: str) -> None:
    def body(built: Built) -> None:
        if is_refused(built.case, built.dtype, built.layout == "expanded"):
            on_cpu = Built(built.case, built.dtype, "cpu", built.layout)
            assert failure(built.call, device) == failure(on_cpu.call, "cpu")
            return
        with no_transfers():
            got = built.call()
        built.check(got)

    for zero in zero_cases(case):
        for_each(zero, device, body)


@pytest.mark.parametrize("case", rows(cases.OUT))
def test_out(case: Case, device: str) -> None:
    def body(built: Built) -> None:
        want = built.answer
        filled = np.full(want.values.shape, 1, dtype=formats.STORAGE[want.dtype])
        out = lay_out(filled, want.dtype, device, built.layout)
        with no_transfers():
            assert built.call(out=out) is out
        built.check(out)

    for zero in answers(case):
        for_each(zero, device, body, ["contiguous", "transposed"])


@pytest.mark.parametrize("case", rows(cases.IN_PLACE, lambda case: isinstance(case.operands[0], Operand)))
def test_in_place(case: Case, device: str) -> None:
    def body(built: Built) -> None:
        in_place(built, getattr(dt.DeviceArray, case.op + "_"), **built.parameters)

    for zero in answers(case):
        for_each(zero, device, body, ["contiguous", "sliced"], can_replace)


def compare(
    function: Callable[..., Any], want: Callable[[], Any], shapes: Sequence[Any], device: str, layout: str
) -> str:
    """Nothing where function does with ones what the reference does: the same values, or a refusal as on the cpu."""
    ones, on_cpu = ([lay_out(np.ones(s, np.float32), "float32", d, layout) for s in shapes] for d in (device, "cpu"))
    try:
        values = want()
    except ValueError:
        found, expected = failure(lambda: function(*ones), device), failure(lambda: function(*on_cpu), "cpu")
        return "" if found == expected else f"{found}, on the cpu {expected}"
    try:
        assert_close(wide_of(function(*ones)), values)
    except (AssertionError, *ERRORS) as error:
        return f"{type(error).__name__}: {error}"
    return ""


# ---------------------------------------------------------------- reductions of every shape and dim

SHAPES = [shape for n in (1, 2, 3) for shape in itertools.product((0, 1, 3), repeat=n) if 0 in shape]
VIEWS = ("contiguous", "transposed", "sliced", "expanded")


def dims_of(op: str, ndim: int) -> list[Any]:
    single: list[Any] = [*range(ndim), -1]
    if op in ("argmax", "argmin"):
        return [None, *single]
    many = [dims for n in range(2, ndim + 1) for dims in itertools.combinations(range(ndim), n)]
    return [*([] if op == "logsumexp" else [None]), *single, *many]


def reductions(op: str) -> Iterator[tuple[tuple[int, ...], str, dict[str, Any]]]:
    for shape in SHAPES:
        for layout in VIEWS:
            for dim in dims_of(op, len(shape)):
                for keepdim in (False, True):
                    if dim is not None or not keepdim:
                        yield shape, layout, {} if dim is None else {"dim": dim, "keepdim": keepdim}


@pytest.mark.parametrize("op", [*(op for op in cases.REDUCTIONS if "softmax" not in op), "var", "std", "logsumexp"])
def test_reductions(op: str, device: str) -> None:
    wrong = []
    for shape, layout, parameters in reductions(op):
        complaint = compare(
            lambda x, p=parameters: call(op, [x], **p),
            lambda shape=shape, p=parameters: reference.expected(op, [np.ones(shape)], ["float32"], **p)[0],
            [shape],
            device,
            layout,
        )
        wrong += [f"{shape} {layout} {parameters}: {complaint}"] if complaint else []
    assert not wrong, "\n".join(wrong)


# ---------------------------------------------------------------- convolutions and pools

IMAGES = [(0, 4, 3, 5), (2, 4, 0, 5), (2, 4, 3, 0), (2, 4, 0, 0), (2, 0, 3, 5), (0, 0, 0, 0), (2, 4, 3, 5)]
WEIGHTS = [(6, 4, 2, 2), (0, 4, 2, 2), (6, 0, 2, 2), (6, 4, 0, 2), (6, 4, 1, 1)]
SETTINGS: list[dict[str, Any]] = [
    {"padding": padding, "dilation": dilation, "stride": stride, "groups": groups}
    for padding, dilation, stride, groups in itertools.product((0, 2), (1, 2), (1, 3), (1, 2))
]


def convolutions() -> Iterator[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]]:
    for image, weight, settings in itertools.product(IMAGES, WEIGHTS, SETTINGS):
        if 0 in image or 0 in weight:
            yield image, (weight[0], weight[1] // settings["groups"], *weight[2:]), settings


@pytest.mark.parametrize("layout", ["contiguous", "sliced", "channels_last"])
@pytest.mark.parametrize("bias", [False, True])
def test_conv2d(layout: str, bias: bool, device: str) -> None:
    wrong = []
    for image, weight, settings in convolutions():
        shapes = [image, weight] + [(weight[0],)] * bias
        complaint = compare(
            lambda *x, s=settings: dt.conv2d(*x, **s),
            lambda shapes=shapes, s=settings: images.conv2d(*map(np.ones, shapes), **s),
            shapes,
            device,
            layout,
        )
        wrong += [f"{shapes} {settings}: {complaint}"] if complaint else []
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("bias", [False, True])
def test_conv1d(bias: bool, device: str) -> None:
    wrong = []
    for image, weight, settings in convolutions():
        shapes = [(*image[:2], image[3]), (*weight[:2], weight[3])] + [(weight[0],)] * bias

        def want(shapes: Any = shapes, settings: Any = settings) -> Any:
            x, w, *b = map(np.ones, shapes)
            wide = {name: (0 if name == "padding" else 1, n) for name, n in settings.items() if name != "groups"}
            return images.conv2d(x[:, :, None], w[:, :, None], *b, **wide, groups=settings["groups"])[:, :, 0]

        complaint = compare(lambda *x, s=settings: dt.conv1d(*x, **s), want, shapes, device, "contiguous")
        wrong += [f"{shapes} {settings}: {complaint}"] if complaint else []
    assert not wrong, "\n".join(wrong)


def pool(op: str, x: np.ndarray, kernel_size: Any, padding: int, **parameters: Any) -> np.ndarray:
    """The reference, which knows no largest padding."""
    if padding > min(images.pair(kernel_size)) // 2:
        raise ValueError("padding of more than half a window")
    return reference.OPS[op].function(x, kernel_size, padding=padding, **parameters)


@pytest.mark.parametrize("op", ["max_pool2d", "avg_pool2d"])
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "channels_last"])
def test_pools(op: str, layout: str, device: str) -> None:
    wrong = []
    numbers = itertools.product(IMAGES[:-1], (1, 2, (3, 2)), (1, 3), (0, 1), (False, True))
    for image, kernel, stride, padding, ceil_mode in numbers:
        s = {"kernel_size": kernel, "stride": stride, "padding": padding, "ceil_mode": ceil_mode}
        complaint = compare(
            lambda x, s=s: getattr(dt, op)(x, **s),
            lambda image=image, s=s: pool(op, np.ones(image), **s),
            [image],
            device,
            layout,
        )
        wrong += [f"{image} {s}: {complaint}"] if complaint else []
    assert not wrong, "\n".join(wrong)


# ---------------------------------------------------------------- what the table has no rows for

OTHERS: dict[str, Callable[[dt.DeviceArray], Any]] = {
    "clone": lambda x: x.clone(),
    "contiguous": lambda x: x.contiguous(),
    "to float64": lambda x: x.to(dt.float64),
    "copy_": lambda x: dt.ones_like(x).copy_(x),
    "fill_": lambda x: x.clone().fill_(2),
    "flip": lambda x: x.flip(0),
    "roll": lambda x: dt.roll(x, 1, -1),
    "pad": lambda x: dt.pad(x, (1, 2)),
    "pad all": lambda x: dt.pad(x, (1, 1) * x.ndim, value=3.0),
    "pad nothing": lambda x: dt.pad(x, (0, 0)),
    "repeat_interleave": lambda x: dt.repeat_interleave(x, 2, 0),
    "norm": lambda x: dt.norm(x),
    "norm over -1": lambda x: dt.norm(x, dim=-1),
    "max": lambda x: dt.max(x, -1),
    "min": lambda x: dt.min(x, 0),
    "equal": lambda x: dt.equal(x, x),
    "allclose": lambda x: dt.allclose(x, x),
    "isclose": lambda x: dt.isclose(x, x),
    "nonzero": lambda x: dt.nonzero(x),
    "masked_select": lambda x: dt.masked_select(x, x > 0),
    "x[mask]": lambda x: x[x > 0],
    "x[mask] = 1": lambda x: x.clone().__setitem__(x > 0, 1),
    "x[mask] = x[mask]": lambda x: x.clone().__setitem__(x > 0, x[x > 0]),
    "x[0]": lambda x: x[0],
    "x[-1, ...]": lambda x: x[-1, ...],
    "x[:, None]": lambda x: x[:, None],
    "x[1:]": lambda x: x[1:],
    "x[...] = 1": lambda x: x.clone().__setitem__(..., 1),
    "x[[0]]": lambda x: x[[0]],
    "x[[]]": lambda x: x[[]],
    "x[..., [0, 0]]": lambda x: x[..., [0, 0]],
    "x[-1, ..., [0, 0]]": lambda x: x[-1, ..., [0, 0]],
    "x[[0], ..., [0, 0]]": lambda x: x[[0], ..., [0, 0]],
    "x[[]] = 1": lambda x: x.clone().__setitem__([], 1),
    "x[[0]] = 1": lambda x: x.clone().__setitem__([0], 1),
    "x[..., [0]] = row": lambda x: x.clone().__setitem__((..., [0]), x[..., :1]),
    "take": lambda x: dt.take(x, dt.zeros(2, dtype=dt.int64, device=x.device)),
    "take nothing": lambda x: dt.take(x, dt.zeros(0, 2, dtype=dt.int64, device=x.device)),
    "take_along_dim": lambda x: dt.take_along_dim(x, dt.zeros((1,) * x.ndim, dtype=dt.int64, device=x.device), 0),
    "gather": lambda x: dt.gather(x, 0, dt.zeros((1,) * x.ndim, dtype=dt.int64, device=x.device)),
    "index_select": lambda x: dt.index_select(x, 0, dt.zeros(2, dtype=dt.int64, device=x.device)),
    "embedding": lambda x: dt.embedding(dt.zeros(2, dtype=dt.int64, device=x.device), x),
    "embedding of no index": lambda x: dt.embedding(dt.zeros(0, dtype=dt.int64, device=x.device), x),
    "cross_entropy": lambda x: dt.cross_entropy(x, dt.zeros(x.shape[0], dtype=dt.int64, device=x.device)),
    "cross_entropy, sum": lambda x: dt.cross_entropy(
        x, dt.zeros(x.shape[0], dtype=dt.int64, device=x.device), reduction="sum"
    ),
    "mse_loss": lambda x: dt.mse_loss(x, x),
    "layer_norm": lambda x: dt.layer_norm(x, x.shape[-1:]),
    "batch_norm": lambda x: dt.batch_norm(x, *(dt.ones(x.shape[1], device=x.device) for _ in range(2))),
    "batch_norm, training": lambda x: dt.batch_norm(x, training=True),
    "dropout": lambda x: dt.dropout(x, 0.5),
    "tolist": lambda x: x.tolist(),
    "repr": lambda x: repr(x).replace(f", device='{x.device}'", ""),
    "bool": bool,
    "item": lambda x: x.item(),
    "unfold by views": lambda x: dt.stack([x[..., :0], x[..., :0]]),
    "zeros_like": lambda x: dt.zeros_like(x),
    "rand_like": lambda x: dt.rand_like(x),
    "randn_like": lambda x: dt.randn_like(x),
    "x @ x.T": lambda x: x @ x.swapaxes(-1, -2),
    "x.T @ x": lambda x: x.swapaxes(-1, -2) @ x,
    "cat": lambda x: dt.cat([x, x.flip(0), x[:0]]),
    "numpy": lambda x: x.cpu().numpy().shape,
}
OTHER_SHAPES = [(0,), (0, 3), (3, 0), (0, 0), (2, 0, 3), (0, 2, 3), (2, 3, 0)]


def parts(x: dt.DeviceArray) -> dict[str, dt.DeviceArray]:
    """Views of x without elements: whole, and at the end and beyond the beginning of memory."""
    views = {"whole": x, "reversed": x.permute(tuple(reversed(range(x.ndim)))), "expanded": x[None].expand(4, *x.shape)}
    larger = dt.ones([n + 2 for n in x.shape], device=x.device)
    views["end of an array"] = larger[tuple(slice(2, None) if n else slice(2, 2) for n in x.shape)]
    return views


def stored(x: dt.DeviceArray) -> bytes:
    """The stored elements; a NaN has other bits from device to device."""
    if x.dtype.is_floating_point:
        return formats.wide_to_bits(wide_of(x), name_of(x.dtype)).tobytes()
    return bits_of(x).tobytes()


def outcome(function: Callable[[dt.DeviceArray], Any], x: dt.DeviceArray) -> Any:
    """What comes of a call, so that two devices can be compared."""
    device = str(x.device)
    try:
        got = function(x)
        many = got if isinstance(got, tuple | list) else [got]
        shown = [(str(a.dtype), a.shape, stored(a)) if isinstance(a, dt.DeviceArray) else a for a in many]
        dt.cuda.synchronize()
    except ERRORS as error:
        return f"{type(error).__name__}: {error}".replace(device, "DEVICE")
    return shown


@pytest.mark.parametrize("name", OTHERS)
def test_others_are_the_same_on_every_device(name: str, cuda: str) -> None:
    wrong = []
    with dt.cuda.device(cuda):
        for shape in OTHER_SHAPES:
            here, there = (parts(dt.ones(shape, device=device)) for device in ("cpu", cuda))
            for view in here:
                want, got = outcome(OTHERS[name], here[view]), outcome(OTHERS[name], there[view])
                if repr(got) != repr(want):
                    wrong.append(f"{shape} {view}: {got}, on the cpu {want}")
    assert not wrong, "\n".join(wrong)
