"""The tensor of the stand-in."""

from __future__ import annotations

from typing import Any


class dtype:
    def __init__(self, name: str) -> None:
        self.name = name
        self.is_floating_point = True

    def __str__(self) -> str:
        return f"torch.{self.name}"


class device:
    def __init__(self, name: Any) -> None:
        self.type, self.name = str(name).partition(":")[0], str(name)

    def __str__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other)

    def __hash__(self) -> int:
        return hash(self.name)


float32, float64, strided = dtype("float32"), dtype("float64"), "strided"
_WORDS = {"float32": "float", "float64": "double"}


class Tensor:
    layout = strided
    grad_fn = None
    requires_grad = False

    def __init__(self, shape: tuple[int, ...], kind: dtype, place: str) -> None:
        self.shape, self.dtype, self.device = shape, kind, device(place)

    def dim(self) -> int:
        return len(self.shape)

    def double(self) -> Tensor:
        return Tensor(self.shape, float64, str(self.device))

    def float(self) -> Tensor:
        return Tensor(self.shape, float32, str(self.device))

    def to(self, place: str) -> Tensor:
        return Tensor(self.shape, self.dtype, place)

    def __matmul__(self, other: Tensor) -> Tensor:
        if self.device != other.device:
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"{self.device} and {other.device}! (when checking argument mat2 in method wrapper_CUDA_mm)"
            )
        if self.dtype is not other.dtype:
            words = (_WORDS[self.dtype.name], _WORDS[other.dtype.name])
            raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {words[0]} != {words[1]}")
        if self.shape[1] != other.shape[0]:
            a, b = ("x".join(map(str, one.shape)) for one in (self, other))
            raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({a} and {b})")
        return Tensor((self.shape[0], other.shape[1]), self.dtype, str(self.device))


def ones(*shape: int, device: str = "cpu") -> Tensor:
    return Tensor(shape, float32, device)
