"""Objects whose own code runs in the middle of a call, and takes away what the call still needs. Each call gives the
right result or a clear error; the sanitized build sees every byte that is read after its end."""

from __future__ import annotations

import contextlib
import copy
import ctypes
import gc
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from dlpack_capsules import KEPT, NAMES, Producer, _new
from support import CUDA_DEVICES, name_of

import devtensor as dt
from devtensor import nn


class Int:
    """An int that runs code when it is read."""

    def __init__(self, value: int, action: Callable[[], Any]) -> None:
        self.value, self.action = value, action

    def __index__(self) -> int:
        self.action()
        gc.collect()
        return self.value

    def __bool__(self) -> bool:
        return bool(self.__index__())


def clearing(*values: int) -> list[Any]:
    """A list that is empty after its first entry was read."""
    numbers: list[Any] = []
    numbers += [Int(value, numbers.clear) for value in values]
    return numbers


# ---------------------------------------------------------------- lists that shrink while they are read

x = dt.arange(24, dtype=dt.float32).reshape(2, 3, 4)
image, weight = dt.ones(1, 1, 4, 4), dt.ones(1, 1, 3, 3)

LISTS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "zeros": (lambda: dt.zeros(clearing(2, 3)), lambda: dt.zeros(2, 3)),
    "full": (lambda: dt.full(clearing(2, 3), 1.0), lambda: dt.ones(2, 3)),
    "reshape": (lambda: x.reshape(clearing(4, 6)), lambda: x.reshape(4, 6)),
    "permute": (lambda: x.permute(clearing(2, 0, 1)), lambda: x.permute(2, 0, 1)),
    "expand": (lambda: dt.ones(1, 1).expand(clearing(2, 3)), lambda: dt.ones(2, 3)),
    "unflatten": (lambda: x.unflatten(2, clearing(2, 2)), lambda: x.unflatten(2, (2, 2))),
    "movedim": (lambda: x.movedim(clearing(0, 1), clearing(1, 2)), lambda: x.movedim((0, 1), (1, 2))),
    "sum": (lambda: x.sum(clearing(0, 2)), lambda: x.sum((0, 2))),
    "squeeze": (lambda: dt.ones(1, 1, 2).squeeze(clearing(0, 1)), lambda: dt.ones(2)),
    "split": (lambda: x.split(clearing(1, 2), 1), lambda: x.split([1, 2], 1)),
    "randint": (lambda: dt.randint(0, 1, clearing(2, 3)), lambda: dt.zeros(2, 3, dtype=dt.int64)),
    "conv2d": (lambda: dt.conv2d(image, weight, stride=clearing(1, 1)), lambda: dt.conv2d(image, weight)),
    "pool": (lambda: dt.max_pool2d(image, clearing(2, 2)), lambda: dt.max_pool2d(image, 2)),
    "adaptive": (lambda: dt.adaptive_avg_pool2d(image, clearing(2, 2)), lambda: dt.adaptive_avg_pool2d(image, 2)),
    "array": (lambda: dt.array(clearing(1, 2)), lambda: dt.array([1, 2])),
    "nested": (lambda: dt.array([clearing(1, 2), [3, 4]]), lambda: dt.array([[1, 2], [3, 4]])),
    "index": (lambda: x[clearing(1, 0)], lambda: x[[1, 0]]),
    "index of two": (lambda: x[clearing(1, 0), clearing(2, 1)], lambda: x[[1, 0], [2, 1]]),
}


def plain(result: Any) -> Any:
    return [r.tolist() for r in result] if isinstance(result, tuple) else result.tolist()


@pytest.mark.parametrize("name", LISTS)
def test_a_list_that_its_entries_clear(name: str) -> None:
    hostile, honest = LISTS[name]
    try:
        result = hostile()
    except ValueError as error:
        assert "expected sequence of length" in str(error)  # what was there at first is not there any more
    else:
        assert plain(result) == plain(honest())


# ---------------------------------------------------------------- operands that nobody else holds

GONE: dict[str, Callable[[list[Any], Int], Any]] = {
    "narrow": lambda held, n: held.pop().narrow(0, n, 1),
    "sum": lambda held, n: dt.sum(held.pop(), n),
    "index": lambda held, n: held.pop()[n],
    "slice": lambda held, n: held.pop()[n:],
    "two indices": lambda held, n: held.pop()[..., n, n],
    "add": lambda held, n: held.pop() + n,
    "alpha": lambda held, n: dt.add(held.pop(), 1, alpha=n),
    "where": lambda held, n: dt.where(held.pop() > 0, n, n),
    "clamp": lambda held, n: dt.clamp(held.pop(), n, n),
    "cat": lambda held, n: dt.cat([held.pop()], n),
    "masked_fill": lambda held, n: dt.masked_fill(held[0], held.pop() > 0, n),
    "fill_": lambda held, n: held.pop().fill_(n),
    "to": lambda held, n: held.pop().to("cpu", copy=n),
    "flatten": lambda held, n: held.pop().flatten(n, -1),
    "setitem": lambda held, n: held.pop().__setitem__((n, 0), n),
    "setitem of an array": lambda held, n: held[0].__setitem__((n,), held.pop()[0]),
}


@pytest.mark.parametrize("name", GONE)
def test_operands_that_nobody_else_holds(name: str, device: str) -> None:
    held = [dt.ones(3, 2, device=device)]
    GONE[name](held, Int(0, held.clear))


# ---------------------------------------------------------------- the CUDA array interface


class Other:
    """An array of another library, whose interface is made for one question."""

    def __init__(self, interface: dict[str, Any]) -> None:
        self.__cuda_array_interface__ = interface


@pytest.mark.parametrize("where", ["shape", "strides", "data", "stream"])
@pytest.mark.parametrize("device", CUDA_DEVICES)
def test_an_interface_that_its_entries_clear(where: str, device: str) -> None:
    x = dt.arange(6, dtype=dt.float32, device=device).reshape(2, 3)
    interface: dict[str, Any] = {}
    n = Int({"shape": 2, "strides": 12, "data": 0, "stream": 1}[where], interface.clear)
    interface |= {
        "version": 3,
        "typestr": "".join(["<", "f4"]),
        "shape": (n if where == "shape" else 2, 3),
        "strides": (n if where == "strides" else 12, 4),
        "data": (x.data_ptr(), n if where == "data" else False),
        "stream": n if where == "stream" else Int(1, int),
    }
    y = dt.from_cuda_array_interface(Other(interface))
    assert interface == {}
    assert (y.shape, name_of(y.dtype), y.tolist()) == ((2, 3), "float32", [[0, 1, 2], [3, 4, 5]])


@pytest.mark.parametrize("typestr", [None, 5, b"<f4", "<c8", "\udcff", dt.ones(2)])
def test_a_typestr_that_is_none(typestr: Any) -> None:
    with pytest.raises((TypeError, UnicodeEncodeError)) as caught:
        dt.from_cuda_array_interface(Other({"shape": (2,), "typestr": typestr, "data": (0, False), "version": 3}))
    assert "1., 1." not in str(caught.value)


# ---------------------------------------------------------------- copies


def foreign(memo: dict[Any, Any], value: Any) -> dict[Any, Any]:
    """The memo of a copy with value in place of what devtensor keeps there."""
    for key in [key for key in memo if isinstance(key, tuple)]:
        memo[key] = value
    return memo


@pytest.mark.parametrize(
    "value",
    [
        None,
        1,
        (),
        ("copy", None),
        (None, None),
        [dt.ones(2), None],
        (dt.zeros(1, dtype=dt.uint8), None),
        (dt.zeros(1), None),
    ],
    ids=str,
)
def test_deepcopy_does_not_trust_its_memo(value: Any, device: str) -> None:
    x = dt.arange(1000, dtype=dt.float32, device=device)
    memo: dict[Any, Any] = {}
    x.__deepcopy__(memo)
    assert any(isinstance(key, tuple) for key in memo)
    y = x[10:].__deepcopy__(foreign(memo, value))
    assert y.tolist() == x[10:].tolist()
    y.zero_()
    assert x[10:].sum().item() != 0


def test_a_deep_copy_of_views_shares_what_they_shared(device: str) -> None:
    x = dt.zeros(4, device=device)
    a, b = copy.deepcopy((x, x[2:]))
    b.fill_(1)
    assert a.tolist() == [0, 0, 1, 1] and x.tolist() == [0] * 4


# ---------------------------------------------------------------- producers whose end fails


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def destroy(capsule: int) -> None:
    raise ValueError("the end of this capsule fails")


class Raises(Producer):
    def _delete(self, managed: int) -> None:
        super()._delete(managed)
        raise ValueError("the end of this array fails")

    def capsule(self) -> Any:
        end = ctypes.cast(destroy, ctypes.c_void_p)
        return _new(ctypes.addressof(self._managed), NAMES[self._name], end)


def failing(device: tuple[int, int] = (1, 0), dtype: tuple[str, int] = ("float", 32)) -> Raises:
    stored = np.arange(4, dtype=np.float32)
    producer = Raises(stored.ctypes.data, (4,), [1], dtype, device=device, flags=0)
    KEPT.append(stored)
    return producer


FAILING: dict[str, tuple[Callable[[], Any], type[Exception]]] = {
    "no such device for the copy": (lambda: dt.from_dlpack(failing(), device="cuda:99"), dt.DeviceNotAvailableError),
    "no copy": (lambda: dt.from_dlpack(failing(), device="cuda:0", copy=False), ValueError),
    "no such device": (lambda: dt.from_dlpack(failing((2, 99))), dt.DeviceNotAvailableError),
    "another dtype": (lambda: dt.from_dlpack(failing(dtype=("complex", 32))), BufferError),
    "asarray": (lambda: dt.asarray(failing(), device="cuda:99"), dt.DeviceNotAvailableError),
}


@pytest.mark.parametrize("name", FAILING)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_end_that_fails_hides_no_error(name: str) -> None:
    call, error = FAILING[name]
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error and "fails" not in str(caught.value)


def test_a_capsule_that_was_refused_can_be_given_again(device: str) -> None:
    """It is marked as consumed while it is looked at, and no longer."""
    stored = np.arange(4, dtype=np.float32)
    producer = Producer(stored.ctypes.data, (4,), [1], device=(2, 0), flags=0)
    capsule = producer.capsule()
    for _ in range(2):
        with pytest.raises((dt.CudaError, dt.DeviceNotAvailableError)):  # memory of the host
            dt.from_dlpack(capsule)
    assert producer.deleted == 0


@pytest.mark.parametrize("device", CUDA_DEVICES)
def test_a_capsule_is_consumed_once(device: str) -> None:
    """Also by two threads that ask for it at once, where the first waits for a device."""
    x = dt.arange(4, dtype=dt.float32, device=device)
    index = int(device.partition(":")[2])
    for _ in range(200):
        producer = Producer(x.data_ptr(), (4,), [1], device=(2, index), flags=0)
        capsule, start, got = producer.capsule(), threading.Barrier(2), list[Any]()

        def consume(capsule: Any = capsule, start: threading.Barrier = start, got: list[Any] = got) -> None:
            start.wait()
            with contextlib.suppress(ValueError):  # consumed already
                got.append(dt.from_dlpack(capsule))

        threads = [threading.Thread(target=consume) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(got) == 1 and got[0].tolist() == [0, 1, 2, 3]
        got.clear()
        assert producer.deleted == 1


# ---------------------------------------------------------------- what an error shows of an object


class Told:
    """Says when somebody writes it out."""

    def __repr__(self) -> str:
        raise AssertionError("an error message runs the code of an object")

    __str__ = __repr__


QUOTES: dict[str, Callable[[Any], Any]] = {
    "zeros": lambda bad: dt.zeros(2, dtype=bad),
    "to": lambda bad: dt.ones(2).to(dtype=bad),
    "astype": lambda bad: dt.ones(2).astype(bad),
    "sum": lambda bad: dt.ones(2).sum(dtype=bad),
    "set_default_dtype": dt.set_default_dtype,
    "device": lambda bad: dt.ones(2, device=bad),
    "precision": dt.set_float32_precision,
    "activation": lambda bad: dt.linear(dt.ones(2, 2), dt.ones(2, 2), activation=bad),
    "rounding_mode": lambda bad: dt.div(dt.ones(2), 2, rounding_mode=bad),
    "approximate": lambda bad: dt.gelu(dt.ones(2), approximate=bad),
    "padding": lambda bad: dt.conv2d(image, weight, padding=bad),
    "pad": lambda bad: dt.pad(dt.ones(2), (1, 1), mode=bad),
    "conv1d": lambda bad: dt.conv1d(dt.ones(1, 1, 4), dt.ones(1, 1, 2), padding=bad),
    "conv1d dilation": lambda bad: dt.conv1d(dt.ones(1, 1, 4), dt.ones(1, 1, 2), dilation=bad),
    "generator": lambda bad: dt.rand(2, generator=bad),
    "padding_mode": lambda bad: dt.nn.Conv2d(1, 1, 1, padding_mode=bad),
    "reduction": lambda bad: dt.nn.functional.mse_loss(dt.ones(2), dt.ones(2), reduction=bad),
    "norm": lambda bad: dt.norm(dt.ones(2), bad),
    "error detail": dt.set_error_detail,
    "forbid": lambda bad: dt.forbid_transfers(bad),
    "allow": lambda bad: dt.allow_transfers(bad),
    "compute capability": lambda bad: dt.cuda.get_device_name(bad),
    "typestr": lambda bad: dt.from_cuda_array_interface(Other({"shape": (), "typestr": bad})),
}


EXPECTED = (TypeError, ValueError, RuntimeError, AttributeError)


@pytest.mark.parametrize("name", QUOTES)
def test_an_error_reads_no_array(name: str, device: str) -> None:
    """What stands where it should not is named by its type: to write an array out would be a transfer."""
    bad = dt.full((3, 3), 12345.0, device=device)
    with dt.record_transfers() as log, pytest.raises(EXPECTED) as caught:
        QUOTES[name](bad)
    assert "12345" not in str(caught.value)
    assert len(log) == 0


@pytest.mark.parametrize("name", QUOTES)
def test_an_error_runs_no_code_of_what_it_names(name: str) -> None:
    with pytest.raises(EXPECTED):
        QUOTES[name](Told())


# ---------------------------------------------------------------- clear errors

CLEAR: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "format": (lambda: dt.tensor(1.0).__format__(5), TypeError, "must be str, not int"),
    "format of many": (lambda: dt.ones(2).__format__(None), TypeError, "must be str, not NoneType"),
    "dilation": (lambda: dt.conv1d(dt.ones(1, 1, 4), dt.ones(1, 1, 2), dilation={1: 2}), TypeError, "'dilation'"),
    "long device": (lambda: dt.device("x" + "\xe9" * 2000), RuntimeError, "device"),
    "long device 2": (lambda: dt.device("\xe9" * 2000), RuntimeError, "device"),
    "explained": (lambda: dt._C._explained("op", (), (), 5, None), TypeError, "'code' must be str"),
    "checks of nothing": (lambda: dt._C._check("op", (), ()), TypeError, "as many arrays"),
    "checks of one": (
        lambda: dt._C._check_conv1d("op", ("x",), (dt.ones(2, 2),), 1, 1, 1),
        ValueError,
        "checked ranks",
    ),
    "a kernel's parameter": (
        lambda: dt._C._kernel_new("k", "", (5,), (), (), (), False),
        TypeError,
        "a parameter is a tuple, not int",
    ),
    "lone surrogates": (lambda: dt.device("\udcff"), UnicodeEncodeError, "surrogates"),
}


@pytest.mark.parametrize("name", CLEAR)
def test_clear_errors(name: str) -> None:
    call, error, text = CLEAR[name]
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("device", CUDA_DEVICES)
def test_a_notebook_shows_why_it_cannot_show_values(device: str) -> None:
    x = dt.take(dt.ones(3, device=device), dt.tensor([7], device=device))
    with pytest.raises(IndexError, match="index 7 is out of bounds"):
        x._repr_html_()


# ---------------------------------------------------------------- an error holds what it tells of

ones, mask = dt.ones(2, 3), dt.zeros(2, 3, dtype=dt.bool)

TEMPORARIES: dict[str, tuple[Callable[[], Any], set[tuple[int, ...]]]] = {
    "clamp": (lambda: dt.clamp(ones, 1, dt.ones(4)), {(2, 3), (4,)}),
    "clamp of arrays": (lambda: dt.clamp(ones, dt.ones(3), dt.ones(4)), {(2, 3), (3,), (4,)}),
    "clamp in place": (lambda: dt.ones(3).clamp_(dt.ones(2, 1), dt.ones(1)), {(3,), (2, 1), (1,)}),
    "unflatten": (lambda: ones.unflatten(1, (2, 2)), {(2, 3)}),
    "index": (lambda: ones[dt.zeros(3, dtype=dt.int64), dt.zeros(2, dtype=dt.int64)], {(3,), (2,)}),
    "index by a mask": (lambda: ones[mask[0], dt.zeros(2, dtype=dt.int64)], {(2,), (3,), (2, 3)}),
    "setitem": (lambda: ones.__setitem__((slice(None), [0, 1]), dt.ones(5)), {(2, 3), (2, 2), (5,), (2,)}),
    "setitem of a view": (lambda: ones.__setitem__(slice(0, 1), dt.ones(5)), {(2, 3), (1, 3), (5,)}),
    "isclose": (lambda: dt.isclose(ones, dt.ones(4)), {(2, 3), (4,)}),
    "batch_norm": (lambda: dt.batch_norm(ones, dt.ones(4), dt.ones(4)), {(2, 3), (4,)}),
    "masked_fill": (lambda: ones.masked_fill(dt.zeros(4, dtype=dt.bool), 1.0), {(2, 3), (4,)}),
}


@pytest.mark.parametrize("name", TEMPORARIES)
def test_an_error_holds_what_it_tells_of(name: str) -> None:
    """Whatever the arrays were that it was made from, temporaries among them: they have ended when it is raised."""
    call, shapes = TEMPORARIES[name]
    with pytest.raises((dt.ShapeMismatchError, IndexError)) as caught:
        call()
    told = {operand.shape for operand in caught.value.operands}  # type: ignore[union-attr]
    assert told and told <= shapes
    assert {str(operand.device) for operand in caught.value.operands} == {"cpu"}  # type: ignore[union-attr]


class Size:
    """An int that is sometimes a sequence: its length is 0 so many times, then it has none."""

    def __init__(self, times: int, error: type[BaseException] = TypeError) -> None:
        self.times, self.error = times, error

    def __index__(self) -> int:
        return 3

    def __len__(self) -> int:
        self.times -= 1
        if self.times < 0:
            raise self.error
        return 0

    def __getitem__(self, i: int) -> int:
        raise IndexError


SIZED: dict[str, Callable[[Any], Any]] = {
    "a layer": nn.MaxPool2d,
    "zeros": dt.zeros,
    "flip": lambda dim: dt.flip(dt.ones(2, 2, 2, 2), dim),
    "sum": lambda dim: dt.ones(2, 2, 2, 2).sum(dim),
    "view": lambda size: dt.ones(3).view(size),
}


@pytest.mark.parametrize("name", SIZED)
def test_a_size_that_changes_its_mind(name: str) -> None:
    for times in range(5):
        with contextlib.suppress(TypeError, ValueError, RuntimeError, IndexError):
            SIZED[name](Size(times))


@pytest.mark.parametrize("name", SIZED)
def test_errors_of_a_size_are_the_users(name: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        SIZED[name](Size(0, KeyboardInterrupt))
