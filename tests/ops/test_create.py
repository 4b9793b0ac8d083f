"""Creation on any device, from shapes, ranges and Python's own objects."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import formats
import numpy as np
import pytest
from formats import DTYPES, FLOATS, INTS
from support import DEVICES, bits_of, counted, name_of, no_transfers, wide_of

import devtensor as dt


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 4), (1,) * 8])
def test_constant_arrays(dtype: str, shape: tuple[int, ...], device: str) -> None:
    kind = getattr(dt, dtype)
    with no_transfers():
        made = {
            0: dt.zeros(shape, dtype=kind, device=device),
            1: dt.ones(shape, dtype=kind, device=device),
            3: dt.full(shape, 3, dtype=kind, device=device),
        }
    for value, x in made.items():
        assert x.shape == shape
        assert name_of(x.dtype) == dtype
        assert str(x.device) == device
        assert x.is_contiguous()
        want = np.full(shape, value != 0 if dtype == "bool" else value)
        np.testing.assert_array_equal(wide_of(x).astype(float), want)
    assert dt.empty(shape, dtype=kind, device=device).shape == shape


def test_defaults() -> None:
    for x in (dt.zeros(2), dt.ones(2), dt.empty(2), dt.rand(2), dt.randn(2), dt.eye(2)):
        assert x.dtype == dt.float32
        assert str(x.device) == "cpu"
    assert dt.arange(3).dtype == dt.int64
    assert dt.arange(3.0).dtype == dt.float32
    assert dt.full((2,), 1).dtype == dt.int64
    assert dt.full((2,), 1.0).dtype == dt.float32
    assert dt.full((2,), True).dtype == dt.bool
    assert dt.linspace(0, 1, 3).dtype == dt.float32


def test_shapes_are_given_in_any_form() -> None:
    for x in (dt.zeros(2, 3), dt.zeros((2, 3)), dt.zeros([2, 3]), dt.zeros(np.int64(2), 3)):
        assert x.shape == (2, 3)
    assert dt.zeros(()).shape == dt.zeros(size=()).shape == ()
    assert dt.zeros(4).shape == (4,)


@pytest.mark.parametrize("dtype", DTYPES[1:])
@pytest.mark.parametrize(
    "arguments",
    [(5,), (2, 7), (0, 10, 3), (10, 0, -3), (5, 5), (5, 0), (0, 1, 0.25), (1, -1, -0.5), (0, 7, 2)],
)
def test_arange(dtype: str, arguments: tuple[float, ...], device: str) -> None:
    if arguments == (5, 0):
        with pytest.raises(RuntimeError):
            dt.arange(*arguments, device=device)
        return
    low = min(arguments[:2])
    fractions = any(isinstance(a, float) for a in arguments)
    if ((low < 0 or arguments[-1] < 0) and dtype == "uint8") or (fractions and dtype not in FLOATS):
        return
    with no_transfers():
        x = dt.arange(*arguments, dtype=getattr(dt, dtype), device=device)
    want = np.arange(*arguments)
    assert x.shape == want.shape
    np.testing.assert_array_equal(wide_of(x).astype(float), want)


def test_arange_is_exact_when_long(device: str) -> None:
    """Each element is start + i * step, not a running sum."""
    x = dt.arange(0, 1000, 0.1, dtype=dt.float64, device=device)
    np.testing.assert_array_equal(wide_of(x), np.arange(10000) * 0.1)
    assert dt.arange(2**62, 2**62 + 3, device=device).tolist() == [2**62 + i for i in range(3)]


@pytest.mark.parametrize(
    ("dtype", "arguments", "want"),
    [
        ("int64", (0, 5, 2.5), [0, 2, 4]),
        ("int64", (0.0, -8.000001, -4.0), [0, -4]),
        ("int64", (0.9, 2.1, 1.9), [0, 1]),
        ("int64", (0, 0.5), []),
        ("int64", (-2.5, 1), [-2, -1, 0]),
        ("int32", (0, 5, 2.5), [0, 2]),
        ("int32", (0.0, -8.000001, -4.0), [0, -4, -8]),
        ("uint8", (0.9, 4.5, 1.5), [0, 1, 2]),
        ("int8", (1.5, -1.5, -1.0), [1, 0, -1]),
    ],
)
def test_arange_of_fractions(dtype: str, arguments: Any, want: list[int], device: str) -> None:
    """int64 counts with truncated numbers, the other integers with the numbers as they are: PyTorch's rule."""
    x = dt.arange(*arguments, dtype=getattr(dt, dtype), device=device)
    assert (str(x.dtype), x.tolist()) == (f"devtensor.{dtype}", want)


@pytest.mark.parametrize(
    ("dtype", "arguments", "want"),
    [
        ("uint8", (4.3, 0, 6), [4, 3, 2, 1, 0, 0]),
        ("int64", (-2.7, 2.7, 5), [-2, -1, 0, 1, 2]),
        ("int8", (0, -3, 4), [0, -1, -2, -3]),
        ("int32", (0, 10, 4), [0, 3, 6, 10]),
        ("int16", (1.9, 5, 1), [1]),
        ("bool", (0, 1, 3), [False, True, True]),
    ],
)
def test_linspace_of_integers(dtype: str, arguments: Any, want: list[int], device: str) -> None:
    x = dt.linspace(*arguments, dtype=getattr(dt, dtype), device=device)
    assert (str(x.dtype), x.tolist()) == (f"devtensor.{dtype}", want)


@pytest.mark.parametrize(("dtype", "start", "end"), [("uint8", -1, 5), ("int8", 0, 200.5), ("int16", 1e30, 0)])
def test_linspace_refuses_ends_that_do_not_fit(dtype: str, start: float, end: float, device: str) -> None:
    with pytest.raises(RuntimeError, match=f"value cannot be converted to type {dtype} without overflow"):
        dt.linspace(start, end, 3, dtype=getattr(dt, dtype), device=device)


@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "int8", "uint8"])
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 1e300, -1e300, 2.0**63])
def test_linspace_of_integers_has_ends_that_are_integers(dtype: str, wrong: float, device: str) -> None:
    for ends in ((wrong, 1), (1, wrong)):
        for steps in (0, 1, 3):
            with pytest.raises(RuntimeError, match=f"value cannot be converted to type {dtype} without overflow"):
                dt.linspace(*ends, steps, dtype=getattr(dt, dtype), device=device)


def test_linspace_takes_the_largest_integers(device: str) -> None:
    top = 2**63 - 1
    assert dt.linspace(-top - 1, top, 2, dtype=dt.int64, device=device)[0].item() == -top - 1
    assert dt.linspace(np.nan, 1, 3, device=device).isnan().tolist() == [True] * 3


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("steps", [0, 1, 2, 5, 101])
def test_linspace(dtype: str, steps: int, device: str) -> None:
    x = dt.linspace(-1.0, 3.0, steps, dtype=getattr(dt, dtype), device=device)
    want = np.linspace(-1.0, 3.0, steps)
    assert x.shape == (steps,)
    np.testing.assert_allclose(wide_of(x), want, atol=4 * formats.FORMATS[dtype].eps)
    if steps > 1:
        assert (x[0].item(), x[-1].item()) == (-1, 3)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [(3,), (2, 4), (4, 2), (0,), (0, 3), (1,)])
def test_eye(dtype: str, size: tuple[int, ...], device: str) -> None:
    x = dt.eye(*size, dtype=getattr(dt, dtype), device=device)
    np.testing.assert_array_equal(wide_of(x).astype(float), np.eye(*size))


def test_like(device: str) -> None:
    x = dt.zeros((2, 3), dtype=dt.float16, device=device)
    for y in (
        dt.empty_like(x), dt.zeros_like(x), dt.ones_like(x), dt.full_like(x, 2), dt.rand_like(x),
        dt.randn_like(x), x.new_zeros((2, 3)), x.new_ones((2, 3)), x.new_empty((2, 3)),
        x.new_full((2, 3), 5),
    ):  # fmt: skip
        assert (y.shape, y.dtype, y.device) == (x.shape, x.dtype, x.device)
    assert dt.ones_like(x, dtype=dt.int8, device="cpu").tolist() == [[1, 1, 1]] * 2
    assert dt.zeros_like(dt.zeros((4, 3), device=device).T).stride() == (1, 3)
    assert x.new_full((2,), 5).tolist() == [5, 5]


# ---------------------------------------------------------------- from Python objects


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (1, "int64", ()),
        (1.5, "float32", ()),
        (True, "bool", ()),
        ([], "float32", (0,)),
        ([[], []], "float32", (2, 0)),
        ([1, 2, 3], "int64", (3,)),
        ([1, 2.5], "float32", (2,)),
        ([True, False], "bool", (2,)),
        ([True, 2], "int64", (2,)),
        ([[1, 2], [3, 4]], "int64", (2, 2)),
        ((1.0, 2.0), "float32", (2,)),
        (range(4), "int64", (4,)),
        (np.float64(2.5), "float64", ()),
        (np.arange(3, dtype=np.int16), "int16", (3,)),
        (np.zeros((2, 3)), "float64", (2, 3)),
    ],
)
def test_array(data: Any, dtype: str, shape: tuple[int, ...], device: str) -> None:
    x = dt.array(data, device=device)
    assert (name_of(x.dtype), x.shape, str(x.device)) == (dtype, shape, device)
    assert x.tolist() == np.asarray(data).tolist()
    assert dt.tensor(data, device=device).tolist() == x.tolist()
    y = dt.array(data, dtype=dt.float64, device=device)
    assert y.tolist() == np.asarray(data, dtype=float).tolist()


def test_array_of_arrays(device: str) -> None:
    x = dt.arange(3, device=device)
    y = dt.array(x)
    assert y is not x
    assert y.device == x.device
    y.zero_()
    assert x.tolist() == [0, 1, 2]
    assert dt.asarray(x) is x
    assert dt.asarray(x, dtype=dt.float32).dtype == dt.float32


def test_asarray_shares_when_it_can() -> None:
    values = np.arange(4.0)
    x = dt.asarray(values)
    values[0] = 9
    assert x[0].item() == 9
    copy = dt.array(values)
    values[1] = 9
    assert copy[1].item() == 1


def test_frombuffer() -> None:
    raw = bytearray(np.arange(4, dtype=np.float32).tobytes())
    x = dt.frombuffer(raw, dtype=dt.float32)
    assert x.tolist() == [0, 1, 2, 3]
    raw[:4] = np.float32(7).tobytes()
    assert x[0].item() == 7
    fixed = dt.frombuffer(bytes(raw), dtype=dt.float32)
    assert fixed.tolist() == [7, 1, 2, 3]
    with pytest.raises(RuntimeError, match="read-only"):
        fixed.zero_()
    with pytest.raises(ValueError, match="multiple|size"):
        dt.frombuffer(b"12345", dtype=dt.float32)


@pytest.mark.parametrize("dtype", DTYPES)
def test_item_and_tolist(dtype: str, device: str) -> None:
    x = dt.ones((2, 1), dtype=getattr(dt, dtype), device=device)
    one = x[0, 0].item()
    kind = bool if dtype == "bool" else float if dtype in FLOATS else int
    assert type(one) is kind
    assert one == 1
    assert x.tolist() == [[1], [1]]
    assert type(x.tolist()[0][0]) is kind
    assert dt.ones((), dtype=getattr(dt, dtype), device=device).tolist() == 1
    with pytest.raises((RuntimeError, ValueError)):
        x.item()


def test_numbers_of_python(device: str) -> None:
    x = dt.array([2.5], device=device)
    assert (float(x), int(x), bool(x)) == (2.5, 2, True)
    assert float(x[0]) == 2.5
    n = dt.array(3, device=device)
    assert list(range(5))[n] == 3
    assert f"{dt.array(1.25, device=device):.1f}" == "1.2"
    many = dt.zeros(2, device=device)
    with pytest.raises(RuntimeError, match="ambiguous"):
        bool(many)
    with pytest.raises((TypeError, ValueError)):
        float(many)
    with pytest.raises(TypeError):
        list(range(5))[x]
    with pytest.raises(TypeError):
        len(n)
    with pytest.raises(TypeError):
        iter(n)


def test_containers(device: str) -> None:
    x = dt.arange(6, device=device).reshape(3, 2)
    assert len(x) == 3
    assert [row.tolist() for row in x] == [[0, 1], [2, 3], [4, 5]]
    assert 4 in x
    assert 7 not in x
    assert len({x, x, x.clone()}) == 2
    a, b, c = x
    assert c.tolist() == [4, 5]
    assert a.device == x.device
    assert b.shape == (2,)


def test_copies_and_pickles(device: str) -> None:
    import copy
    import pickle

    x = dt.arange(6, dtype=dt.bfloat16, device=device).reshape(2, 3)
    for y in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert (y.dtype, y.device, y.shape) == (x.dtype, x.device, x.shape)
        assert y.tolist() == x.tolist()
    assert pickle.loads(pickle.dumps(x.T)).tolist() == x.T.tolist()
    assert pickle.loads(pickle.dumps(dt.float16)) is dt.float16
    assert pickle.loads(pickle.dumps(dt.device(device))) == dt.device(device)
    before = x.tolist()
    copy.deepcopy(x).zero_()
    assert x.tolist() == before


def test_default_device_and_dtype() -> None:
    try:
        dt.set_default_device("cuda:0")
        assert dt.get_default_device() == "cuda:0"
        assert str(dt.zeros(2).device) == "cuda:0"
        assert str(dt.array([1, 2]).device) == "cuda:0"
        dt.set_default_dtype(dt.float64)
        assert dt.get_default_dtype() == dt.float64
        assert dt.zeros(2).dtype == dt.float64
        assert (dt.arange(2, device="cpu") / 2).dtype == dt.float64
    finally:
        dt.set_default_device("cpu")
        dt.set_default_dtype(dt.float32)
    with pytest.raises((TypeError, RuntimeError)):
        dt.set_default_dtype(dt.int32)
    with pytest.raises(dt.DeviceNotAvailableError):
        dt.set_default_device("cuda:99")
    assert dt.get_default_device() == "cpu"


# ---------------------------------------------------------------- devices and dtypes


@pytest.mark.parametrize("text", ["cpu", "cuda:0", "cuda:1", "cuda:255"])
def test_device_objects(text: str) -> None:
    device = dt.device(text)
    assert str(device) == text
    assert device == text
    assert device == dt.device(device)
    assert hash(device) == hash(dt.device(text))
    assert device.type == text.partition(":")[0]
    assert device.index == (int(text.partition(":")[2]) if ":" in text else None)
    assert device != "cpu:0" or text == "cpu"
    assert repr(device.type) in repr(device)


def test_device_forms() -> None:
    assert dt.device(1) == "cuda:1"
    assert dt.device("cuda", 1) == "cuda:1"
    assert dt.device("cuda") == "cuda:0"
    assert dt.device("cpu") != dt.device("cuda:0")
    assert dt.device(type="cuda", index=1) == "cuda:1"


@pytest.mark.parametrize("name", DTYPES)
def test_dtype_objects(name: str) -> None:
    dtype = getattr(dt, name)
    assert repr(dtype) == f"devtensor.{name}"
    assert dtype.name == name
    assert dtype.itemsize == formats.ITEMSIZE[name]
    assert dtype.is_floating_point == (name in FLOATS)
    assert dt.zeros(1, dtype=name).dtype is dtype
    if name != "bfloat16":
        assert dt.zeros(1, dtype=np.dtype(name)).dtype is dtype
    assert len({getattr(dt, other) for other in DTYPES}) == len(DTYPES)


@pytest.mark.parametrize("bad", ["float128", "complex64", "", "str", np.dtype("complex64"), 3, object()])
def test_unknown_dtypes(bad: Any) -> None:
    with pytest.raises(TypeError):
        dt.zeros(1, dtype=bad)


def test_current_device(cuda: str) -> None:
    index = dt.device(cuda).index
    with dt.cuda.device(index):
        assert dt.cuda.current_device() == index
        with dt.cuda.device(0):
            assert dt.cuda.current_device() == 0
        assert dt.cuda.current_device() == index
    before = dt.cuda.current_device()
    with pytest.raises(KeyError), dt.cuda.device(index):
        raise KeyError
    assert dt.cuda.current_device() == before
    with pytest.raises(dt.DeviceNotAvailableError):
        dt.cuda.set_device(99)


def test_device_facts(cuda: str) -> None:
    facts = dt.cuda.get_device_properties(cuda)
    assert facts.name == dt.cuda.get_device_name(cuda)
    assert facts.total_memory > 0
    assert len(dt.cuda.get_device_capability(cuda)) == 2
    assert facts.is_simulated == ("simulated" in facts.name.lower()) == dt.cuda.is_simulated()
    free, total = dt.cuda.mem_get_info(cuda)
    assert 0 < free <= total


def test_memory_figures(cuda: str) -> None:
    dt.cuda.synchronize(cuda)
    before = dt.cuda.memory_allocated(cuda)
    x = dt.zeros(1 << 20, dtype=dt.uint8, device=cuda)
    assert dt.cuda.memory_allocated(cuda) >= before + (1 << 20)
    assert dt.cuda.max_memory_allocated(cuda) >= before + (1 << 20)
    assert dt.cuda.memory_reserved(cuda) >= dt.cuda.memory_allocated(cuda)
    del x
    assert dt.cuda.memory_allocated(cuda) == before
    dt.cuda.empty_cache()
    dt.cuda.reset_peak_memory_stats(cuda)
    assert dt.cuda.max_memory_allocated(cuda) == before


def test_out_of_device_memory(cuda: str) -> None:
    total = dt.cuda.mem_get_info(cuda)[1]
    before, asked = dt.cuda.memory_allocated(cuda), counted("cuMemAllocAsync")
    with pytest.raises(dt.OutOfMemoryError) as caught:
        dt.empty(2 * total, dtype=dt.uint8, device=cuda)
    assert isinstance(caught.value, MemoryError)
    assert cuda in str(caught.value)
    assert counted("cuMemAllocAsync") == asked  # the driver would take all that is free from other processes first
    assert dt.cuda.memory_allocated(cuda) == before
    assert dt.ones(3, device=cuda).sum().item() == 3


def test_bits_survive_every_device() -> None:
    x = dt.rand(100)
    for device in DEVICES:
        assert bits_of(x.to(device)).tobytes() == bits_of(x).tobytes()
    assert math.isclose(x.mean().item(), np.mean(wide_of(x)), rel_tol=1e-6)


def test_an_integer_array_without_dimensions_is_an_int(device: str) -> None:
    """As in range() and in slices: the transfer of a GPU's is recorded, and stopped where transfers are forbidden."""
    two = dt.tensor(2, device=device)
    with dt.record_transfers() as log:
        assert dt.zeros(two, 3).shape == dt.arange(6).view(two, 3).shape == (2, 3)
    assert len(log) == (2 if two.is_cuda else 0)
    with pytest.raises(TypeError, match="argument 'size' must be int"):
        dt.zeros(two.float())
    with pytest.raises(TypeError, match="argument 'size' must be int"):
        dt.zeros(two.reshape(1), 3)
    if two.is_cuda:
        with dt.forbid_transfers(), pytest.raises(dt.TransferForbiddenError):
            dt.zeros(two)


def test_numbers_of_the_host_in_a_list(device: str) -> None:
    number = dt.tensor(1.5, device=device)
    if number.is_cuda:
        with pytest.raises(TypeError, match="joined by devtensor.stack"):
            dt.tensor([number, 2])
        return
    assert dt.tensor([number, 2]).tolist() == [1.5, 2.0]
    assert dt.tensor([[dt.tensor(3)], [4]]).dtype is dt.int64
    wide = dt.tensor(1e300, dtype=dt.float64)  # which the default dtype would make infinite
    assert dt.tensor([wide]).tolist() == dt.tensor([wide], dtype=dt.float64).tolist() == [1e300]
    loss = number.clone().requires_grad_() * 2
    with pytest.warns(UserWarning, match=r"tensor\(\): arrays became numbers, so that no gradient flows back"):
        assert dt.tensor([loss, 1]).tolist() == [3.0, 1.0] and not dt.tensor([loss]).requires_grad
    assert dt.tensor([loss.detach()]).tolist() == [3.0]
    with pytest.raises(TypeError, match=r"tensor\(\): an array of float32 is not cast to int64: write .to\("):
        dt.tensor([number], dtype=dt.int64)


@pytest.mark.parametrize("make", [dt.tensor, dt.array, lambda x, **kw: dt.ones(1, device=x.device).new_tensor(x, **kw)])
def test_a_copy_of_an_array_has_no_history(make: Callable[..., dt.DeviceArray], device: str) -> None:
    w = dt.ones(2, device=device, requires_grad=True)
    for x in (w, w * 2):
        with pytest.warns(UserWarning, match=r"no gradient flows back from the copy. x.clone\(\) keeps the gradient"):
            copy = make(x, requires_grad=True)
        assert copy.is_leaf and copy.requires_grad and copy.data_ptr() != x.data_ptr() and copy.device == x.device
        (copy * 3).sum().backward()
        assert copy.grad is not None and copy.grad.tolist() == [3.0, 3.0] and w.grad is None
    with dt.no_grad():
        assert not make(w).requires_grad
    assert make(w.detach()).tolist() == [1.0, 1.0]
    assert dt.as_tensor(w) is w and dt.asarray(w) is w


def test_the_first_spellings_keep_the_history(device: str) -> None:
    w = dt.ones(2, requires_grad=True)
    (dt.Tensor(w * 2) + dt.FloatTensor(w)).sum().backward()
    assert w.grad is not None and w.grad.tolist() == [3.0, 3.0]


# In PyTorch's words; the expected values are what PyTorch 2.13 gives.
NESTED: list[tuple[str, str, list[Any]]] = [
    ("[[ones(1)], [zeros(1)]]", "float32", [[1.0], [0.0]]),
    ("[ones(1), ones(1)]", "float32", [1.0, 1.0]),
    ("[ones(1, 1), tensor(2)]", "float32", [1.0, 2.0]),
    ("[2, ones(1)]", "float32", [2.0, 1.0]),
    ("[ones(1, dtype=float64), 2]", "float64", [1.0, 2.0]),
    ("[ones((), dtype=float16), 2.0]", "float32", [1.0, 2.0]),
    ("[ones(1, dtype=float16), ones(1, dtype=int32)]", "float16", [1.0, 1.0]),
    ("[ones((), dtype=int32), True]", "int32", [1, 1]),
    ("[ones((), dtype=int32), ones((), dtype=int8)]", "int32", [1, 1]),
    ("[[2, 3], ones(2)]", "float32", [[2.0, 3.0], [1.0, 1.0]]),
    ("[[[2, 3]], ones(1, 2)]", "float32", [[[2.0, 3.0]], [[1.0, 1.0]]]),
    ("[ones(2), ones(2)]", "TypeError", []),
    ("[[2, 3], ones(3)]", "ValueError", []),
    ("[ones(1), [2]]", "ValueError", []),
]


@pytest.mark.parametrize("text, dtype, wanted", NESTED, ids=[row[0] for row in NESTED])
def test_arrays_of_one_element_in_lists(text: str, dtype: str, wanted: list[Any]) -> None:
    for make in (dt.tensor, dt.as_tensor):
        given = eval(text, {name: getattr(dt, name) for name in dt.__all__})
        if dtype.endswith("Error"):
            with pytest.raises({"TypeError": TypeError, "ValueError": ValueError}[dtype]):
                make(given)
        else:
            assert ((made := make(given)).dtype.name, made.tolist()) == (dtype, wanted)


def test_arrays_of_one_element_in_lists_are_what_pytorch_makes() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    for text, dtype, wanted in NESTED:
        given = eval(text, vars(torch))
        if dtype.endswith("Error"):
            with pytest.raises((TypeError, ValueError)):
                torch.tensor(given)
        else:
            assert (str(torch.tensor(given).dtype), torch.tensor(given).tolist()) == (f"torch.{dtype}", wanted), text


# Each way in which a number of Python becomes an element of an array of the dtype.
WAYS: dict[str, Any] = {
    "array": lambda v, dtype, device: dt.array(v, dtype=dtype, device=device),
    "a list": lambda v, dtype, device: dt.tensor([v], dtype=dtype, device=device),
    "a nested list": lambda v, dtype, device: dt.asarray([[0], [v]], dtype=dtype, device=device),
    "new_tensor": lambda v, dtype, device: dt.zeros(1, dtype=dtype, device=device).new_tensor([v]),
    "full": lambda v, dtype, device: dt.full((2,), v, dtype=dtype, device=device),
    "fill_": lambda v, dtype, device: dt.zeros(2, dtype=dtype, device=device).fill_(v),
    "x[0] = v": lambda v, dtype, device: operator.setitem(dt.zeros(2, dtype=dtype, device=device), 0, v),
}


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("way", WAYS)
def test_numbers_at_the_ends_of_an_integer_dtype(way: str, dtype: str, device: str) -> None:
    info = np.iinfo(dtype)
    for value in (int(info.min), int(info.max)):
        made = WAYS[way](value, getattr(dt, dtype), device)
        assert made is None or made.flatten()[-1].item() == value
    for value in (int(info.min) - 1, int(info.max) + 1):
        with pytest.raises((OverflowError, RuntimeError), match="does not fit in|without overflow|too large") as caught:
            WAYS[way](value, getattr(dt, dtype), device)
        assert type(caught.value) in (OverflowError, RuntimeError)
