"""Storages: the memory that an array and its views lie in, as PyTorch's programs look into it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.arguments import need_array

if TYPE_CHECKING:
    from typing import Self


class _Storage:
    """The elements of a memory, one after the other. It is shared, and no gradient flows through it."""

    def __init__(self, x: DeviceArray) -> None:
        need_array(type(self).__name__, "x", x)
        _, nbytes, _ = _C._storage(x)
        self._elements: DeviceArray = x.detach().as_strided((nbytes // x.itemsize,), (1,), 0)

    @property
    def device(self) -> _C.device:
        """Where the memory is."""
        return self._elements.device

    @property
    def is_cuda(self) -> bool:
        """Whether that is a GPU."""
        return self._elements.is_cuda

    def size(self) -> int:
        """The number of elements."""
        return self._elements.numel()

    def __len__(self) -> int:
        return self.size()

    def nbytes(self) -> int:
        """The number of bytes."""
        return self._elements.nbytes

    def element_size(self) -> int:
        """Bytes of an element."""
        return self._elements.itemsize

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._elements.data_ptr()

    def tolist(self) -> list[Any]:
        """The elements as numbers, which are read from their device."""
        numbers: list[Any] = self._elements.tolist()
        return numbers

    def __getitem__(self, index: int | slice) -> Any:
        found = self._elements[index]
        return found.tolist() if isinstance(index, slice) else found.item()

    def __setitem__(self, index: int | slice, value: float) -> None:
        self._elements[index] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def cpu(self) -> Self:
        """A copy on the cpu; the storage itself where it is there."""
        return type(self)(self._elements.cpu()) if self.is_cuda else self

    def clone(self) -> Self:
        """A copy of the memory."""
        return type(self)(self._elements.clone())

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        return UntypedStorage(self._elements)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Storage) and type(self) is type(other) and self._place() == other._place()

    def __hash__(self) -> int:
        return hash(self._place())

    def _place(self) -> tuple[int, int, str]:
        return self.data_ptr(), self.nbytes(), str(self.device)

    def fill_(self, value: float) -> Self:
        """Write value to all elements."""
        self._elements.fill_(value)
        return self

    def copy_(self, source: _Storage) -> Self:
        """Write the elements of another storage of this size."""
        self._elements.copy_(source._elements)
        return self

    def __repr__(self) -> str:
        if not _C._as_torch():
            return f"<{type(self).__name__} of {self.size()} elements, {self.nbytes()} bytes on {self.device}>"
        lines = [f" {number}" for number in self.tolist()]
        return "\n".join([*lines, f"[torch.storage.{type(self).__name__}({self._facts()}) of size {self.size()}]"])

    def _facts(self) -> str:
        return f"device={self.device}"


class TypedStorage(_Storage):
    """The memory of an array as elements of its dtype, whatever part of it the array is: what x.storage() gives.

    >>> memory = dt.tensor([[1.0, 2.0], [3.0, 4.0]])[1].storage()
    >>> memory.tolist(), len(memory)
    ([1.0, 2.0, 3.0, 4.0], 4)
    """

    @property
    def dtype(self) -> _C.dtype:
        """That of the elements."""
        return self._elements.dtype

    def _facts(self) -> str:
        return f"dtype={self.dtype}, {super()._facts()}"


class UntypedStorage(_Storage):
    """The memory of an array as bytes: what x.untyped_storage() gives.

    >>> dt.ones(2, 3).untyped_storage().nbytes()
    24
    """

    def __init__(self, x: DeviceArray) -> None:
        super().__init__(x)
        self._elements = self._elements.view(_C.uint8)


def storage(input: DeviceArray) -> TypedStorage:
    """The memory of input, as elements of its dtype."""
    return TypedStorage(input)


def untyped_storage(input: DeviceArray) -> UntypedStorage:
    """The memory of input, as bytes."""
    return UntypedStorage(input)


def is_storage(obj: object) -> bool:
    """Whether obj is what storage() or untyped_storage() of an array gives.

    >>> dt.is_storage(dt.ones(2)), dt.is_storage(dt.ones(2).storage())
    (False, True)
    """
    return isinstance(obj, _Storage)


METHODS = (storage, untyped_storage)
__all__ = ["TypedStorage", "UntypedStorage", "is_storage"]
