"""x.storage() and x.untyped_storage(): the memory under views, as PyTorch's programs look into it."""

from __future__ import annotations

import pytest

import devtensor as dt


def test_all_elements_under_a_view(device: str) -> None:
    x = dt.arange(6, device=device, dtype=dt.int32).reshape(2, 3)
    memory, raw = x[1].storage(), x[1].untyped_storage()
    assert (memory.tolist(), len(memory), memory.size()) == ([0, 1, 2, 3, 4, 5], 6, 6)
    assert (memory[4], memory[1:3], list(memory)) == (4, [1, 2], [0, 1, 2, 3, 4, 5])
    assert (memory.dtype, str(memory.device), memory.is_cuda) == (dt.int32, device, device != "cpu")
    assert (memory.nbytes(), memory.element_size(), raw.nbytes(), raw.size(), raw.element_size()) == (24, 4, 24, 24, 1)
    assert memory.data_ptr() == raw.data_ptr() == memory.untyped().data_ptr() == x.data_ptr()
    assert isinstance(memory, dt.TypedStorage) and isinstance(raw, dt.UntypedStorage)
    assert dt.is_storage(memory) and dt.is_storage(raw) and not dt.is_storage(x)
    assert dt.zeros(0, device=device).storage().tolist() == []


def test_writes_reach_the_array_and_no_gradient_flows(device: str) -> None:
    x = dt.ones(4, device=device, requires_grad=True)
    y = x * 2
    memory = y.storage()
    memory[0] = 7
    assert y.tolist() == [7, 2, 2, 2]
    other = dt.zeros(4, device=device).storage()
    assert other.fill_(3).copy_(memory) is other and other.tolist() == [7, 2, 2, 2]
    y.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [2, 2, 2, 2]
    with pytest.raises(TypeError, match=r"TypedStorage\(\): argument 'x' must be DeviceArray"):
        dt.TypedStorage(3)  # type: ignore[arg-type]


def test_copies_and_comparisons(device: str) -> None:
    x = dt.arange(4, device=device)
    assert x.storage() == x[2:].storage() and x.storage() != x.clone().storage()
    assert x.storage() != x.untyped_storage() and len({x.storage(), x[1:].storage()}) == 1
    copy = x.storage().clone()
    copy[0] = 9
    assert x.tolist() == [0, 1, 2, 3] and copy.cpu().tolist() == [9, 1, 2, 3] and str(copy.cpu().device) == "cpu"
    assert x.untyped_storage().untyped() == x.untyped_storage()
