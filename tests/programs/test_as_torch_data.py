"""In a program that runs --as-torch: writes through .data are no changes, and lists stand for tuples of indices."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import devtensor as dt


@pytest.fixture(autouse=True)
def as_torch() -> Iterator[None]:
    dt._C._as_torch(True)
    yield
    dt._C._as_torch(False)


WRITES: dict[str, Callable[[dt.DeviceArray], object]] = {
    "element": lambda x: x.__setitem__((0, 0), 5.0),
    "rows": lambda x: x[1:].fill_(2.0),
    "transposed": lambda x: x.t()[1].add_(1.0),
    "flat": lambda x: x.view(-1).__setitem__(slice(1, 3), dt.tensor([7.0, 8.0], device=x.device)),
    "indices": lambda x: x.__setitem__(dt.tensor([1], device=x.device), 3.0),
    "mask": lambda x: x.__setitem__(x > 0, 4.0),
    "in place": lambda x: x.mul_(3.0),
    "copy_": lambda x: x.copy_(dt.full((2, 2), 6.0, device=x.device)),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_writes_through_data_are_not_counted(write: Callable[[dt.DeviceArray], object], device: str) -> None:
    """PyTorch computes the gradient with what is there at that time, and raises for the same write without .data."""
    x = dt.ones(2, 2, device=device, requires_grad=True)
    scale = dt.ones(2, 2, device=device)
    y = scale * x
    write(scale.data)
    y.sum().backward()
    assert x.grad is not None and dt.equal(x.grad, scale) and not dt.equal(scale, dt.ones_like(scale))
    y = scale * x
    write(scale.detach())
    with pytest.raises(dt.GradientError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_parameter_written_through_data_between_forward_and_backward(device: str) -> None:
    w = dt.nn.Parameter(dt.ones(2, device=device))
    loss = (w * w).sum()
    w.data.clamp_(0.0, 0.5)
    loss.backward()
    assert w.grad is not None and w.grad.tolist() == [1.0, 1.0]  # 2 * 0.5


def kept_from_data(device: str) -> None:
    v, q = dt.ones(2, device=device, requires_grad=True), dt.ones(2, device=device).data
    y = (v * q).sum()
    q += 1
    y.backward()


def made_a_leaf(device: str) -> None:
    d = dt.ones(2, device=device).data
    y = (d.requires_grad_() * d).sum()
    with dt.no_grad():
        d.fill_(3.0)
    y.backward()


def recorded_in_place(device: str) -> None:
    d = dt.ones(2, device=device).data
    d.mul_(dt.ones(2, device=device, requires_grad=True))
    d.exp_()
    d.mul_(2.0)
    d.sum().backward()


def cut_between_layers(device: str) -> None:
    layer = dt.nn.Linear(2, 2).to(device)
    h = layer(dt.ones(1, 2, device=device)).data
    y = layer(h).sum()
    h.zero_()
    y.backward()


@pytest.mark.parametrize("program", [kept_from_data, made_a_leaf, recorded_in_place, cut_between_layers])
def test_of_what_was_kept_by_data_itself_they_are_changes(program: Callable[[str], None], device: str) -> None:
    """As in PyTorch, where x.data counts the writes to itself."""
    with pytest.raises(dt.GradientError, match="modified by an inplace operation"):
        program(device)


def test_elsewhere_they_are(device: str) -> None:
    dt._C._as_torch(False)
    x, scale = dt.ones(2, device=device, requires_grad=True), dt.ones(2, device=device)
    y = scale * x
    scale.data[0] = 5.0
    with pytest.raises(dt.GradientError, match="modified by an inplace operation"):
        y.sum().backward()


LISTS: dict[str, tuple[Callable[[Callable[..., dt.DeviceArray]], list[object]], object]] = {
    "arrays without dimensions": (lambda t: [t(1), t(0)], 4),
    "a number and an array": (lambda t: [0, t(1)], 1),
    "vectors": (lambda t: [t([0, 1]), t([1, 2])], [1, 6]),
    "lists": (lambda t: [[0, 1], [1, 2]], [1, 6]),
    "a slice": (lambda t: [slice(0, 1)], [[0, 1, 2, 3]]),
    "ellipsis": (lambda t: [..., 0], [0, 4, 8]),
    "None": (lambda t: [None, 0], [[0, 1, 2, 3]]),
}


@pytest.mark.parametrize("case", LISTS.values(), ids=LISTS)
def test_a_list_stands_for_the_tuple_of_its_entries(
    case: tuple[Callable[[Callable[..., dt.DeviceArray]], list[object]], object], device: str
) -> None:
    """With anything but numbers in it, as in PyTorch."""
    make, wanted = case
    x = dt.arange(12, device=device).reshape(3, 4)
    index = make(lambda value: dt.tensor(value, device=device))
    with pytest.warns(UserWarning, match="Using a non-tuple sequence for multidimensional indexing is deprecated"):
        assert x[index].tolist() == wanted  # type: ignore[index]
    with pytest.warns(UserWarning, match="Using a non-tuple sequence"):
        x[index] = -1  # type: ignore[index]
    assert int(x.min()) == -1


def test_a_list_of_numbers_does_not(device: str) -> None:
    x = dt.arange(12, device=device).reshape(3, 4)
    assert x[[0, 1]].tolist() == x[:2].tolist() and x[[True, False, True]].tolist() == x[::2].tolist()
    assert x[[[0, 1] * 1] * 32].shape == (32, 2, 4)
