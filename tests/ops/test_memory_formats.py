"""memory_format=, layout= and pin_memory= of what makes arrays, beside PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

import devtensor as dt

LIKES: dict[str, tuple[Any, ...]] = {
    "zeros_like": (), "ones_like": (), "empty_like": (), "full_like": (2,), "rand_like": (), "randn_like": (),
    "randint_like": (5,),
}  # fmt: skip
SOURCES = {
    "row-major": "ones(2, 3, 4, 5)",
    "permuted": "ones(2, 3, 4, 5).permute(3, 1, 0, 2)",
    "channels last": "ones(2, 3, 4, 5).contiguous(memory_format=channels_last)",
    "expanded": "ones(2, 1, 4, 5).expand(2, 3, 4, 5)",
    "five": "ones(2, 3, 4, 5, 6)",
    "matrix": "ones(2, 3).t()",
    "scalar": "ones(())",
}
FORMATS = ("preserve_format", "contiguous_format", "channels_last", "channels_last_3d", None)
CREATORS: dict[str, tuple[Any, ...]] = {
    "zeros": (2, 3), "ones": (2, 3), "empty": (2, 3), "full": ((2, 3), 1.0), "rand": (2, 3), "randn": (2, 3),
    "randint": (5, (2, 3)), "randperm": (4,), "arange": (4,), "linspace": (0, 1, 3), "logspace": (0, 1, 3), "eye": (2,),
    "scalar_tensor": (1.0,), "empty_strided": ((2, 3), (1, 2)), "normal": (0.0, 1.0, (2,)), "tril_indices": (2, 2),
    "triu_indices": (2, 2), "hann_window": (3,), "hamming_window": (3,), "blackman_window": (3,),
    "bartlett_window": (3,), "kaiser_window": (3,), "tensor": ([1.0],), "new_zeros": (2, 3), "new_ones": (2, 3),
    "new_empty": (2, 3), "new_full": ((2, 3), 1.0), "new_tensor": ([1.0],), "new_empty_strided": ((2, 3), (1, 2)),
}  # fmt: skip
NO_LAYOUT = {"tensor", "new_tensor"}  # in PyTorch too


def source(library: Any, name: str, device: str) -> Any:
    return eval(SOURCES[name], {key: getattr(library, key) for key in ("ones", "channels_last")}).to(device)


def strides(library: Any, op: str, name: str, text: str | None, device: str = "cpu") -> Any:
    x = source(library, name, device)
    options = {} if text is None else {"memory_format": getattr(library, text)}
    try:
        made = getattr(library, op)(x, *LIKES[op], layout=library.strided, **options)
    except RuntimeError as error:
        return str(error).partition(" (")[0]
    assert (made.shape, made.dtype, made.device) == (x.shape, x.dtype, x.device)
    return made.stride()


@pytest.mark.parametrize("op", LIKES)
def test_orders_of_memory_are_pytorchs(op: str, device: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    rows = [(name, text) for name in SOURCES for text in FORMATS]
    ours = {row: strides(dt, op, *row, device) for row in rows}
    assert ours == {row: strides(torch, op, *row) for row in rows}


@pytest.mark.parametrize("op", LIKES)
def test_an_order_of_memory_changes_no_value(op: str, device: str) -> None:
    if op == "empty_like":
        return
    x = dt.ones(2, 3, 4, 5, device=device)
    found = []
    for like in (x, x.contiguous(memory_format=dt.channels_last)):
        for words in ({}, {"memory_format": dt.channels_last}, {"memory_format": dt.contiguous_format}):
            dt.manual_seed(3)
            made = getattr(dt, op)(like, *LIKES[op], requires_grad=op != "randint_like", **words)
            assert made.is_leaf and made.requires_grad == (op != "randint_like")
            found.append(made.tolist())
    assert all(values == found[0] for values in found)


def test_empty_in_an_order(device: str) -> None:
    made = dt.empty(2, 3, 4, 5, device=device, memory_format=dt.channels_last, requires_grad=True)
    assert made.stride() == (60, 1, 15, 3) and made.requires_grad and made.is_leaf
    assert dt.empty(2, 3, memory_format=dt.contiguous_format).stride() == (3, 1)
    with pytest.raises(RuntimeError, match="unsupported memory format Preserve"):
        dt.empty(2, memory_format=dt.preserve_format)
    with pytest.raises(RuntimeError, match="required rank 4 tensor to use channels_last format"):
        dt.empty(2, memory_format=dt.channels_last)


@pytest.mark.parametrize("op", CREATORS)
def test_layout_and_pin_memory(op: str, cuda: str) -> None:
    make = getattr(dt.ones(2) if op.startswith("new_") else dt, op)
    plain = {} if op in NO_LAYOUT else {"layout": dt.strided}
    made = make(*CREATORS[op], pin_memory=False, **plain)
    assert not made.is_pinned() and made.stride() == make(*CREATORS[op]).stride()
    pinned = make(*CREATORS[op], pin_memory=True, **plain)
    assert pinned.is_pinned() and pinned.shape == made.shape and pinned.dtype == made.dtype
    assert make(*CREATORS[op], pin_memory=None).shape == made.shape
    if "randint" not in op and made.is_floating_point():
        assert make(*CREATORS[op], pin_memory=True, requires_grad=True).requires_grad
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        make(*CREATORS[op], pin_memory=True, device=cuda)
    if op not in NO_LAYOUT:
        with pytest.raises(TypeError, match=rf"{op}\(\): argument 'layout' must be devtensor.strided"):
            make(*CREATORS[op], layout="sparse")
