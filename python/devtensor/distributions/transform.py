"""What all transforms have."""

from __future__ import annotations

from typing import Any, ClassVar

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor.distributions import constraints
from devtensor.distributions.constraints import Constraint

Shape = tuple[int, ...]


class Transform:
    """The base of transforms: t(x), t.inv(y), and log_abs_det_jacobian(x, y), which is log(abs(dy / dx)).

    A subclass defines _call, _inverse and log_abs_det_jacobian. With cache_size=1 a transform keeps its last pair, so
    that the inverse of what it gave is what it was given.
    """

    bijective: bool = False
    domain: Constraint = constraints.real
    codomain: Constraint = constraints.real
    _inv: Transform | None = None
    _kept: tuple[Any, Any] = (None, None)

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size: int = cache_size

    @property
    def event_dim(self) -> int:
        """How many dimensions one value has, before and after."""
        if self.domain.event_dim != self.codomain.event_dim:
            raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")
        return self.domain.event_dim

    @property
    def inv(self) -> Transform:
        """The transform back."""
        if self._inv is None:
            self._inv = _InverseTransform(self)
        return self._inv

    @property
    def sign(self) -> Any:
        """1 for one that grows, -1 for one that falls."""
        raise NotImplementedError

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The same transform with this cache_size."""
        if self._cache_size == cache_size:
            return self
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__, _inv=None, _kept=(None, None))
        Transform.__init__(made, cache_size)
        return made

    def __eq__(self, other: object) -> bool:
        """Whether other is the same transform."""
        own = type(self).__init__ is Transform.__init__  # it has no parameters
        return self is other or (own and type(self) is type(other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__: ClassVar[None]  # type: ignore[assignment]

    def __call__(self, x: DeviceArray) -> DeviceArray:
        """The transformed x."""
        if self._cache_size == 0:
            return self._call(x)
        if self._kept[0] is not x:
            self._kept = (x, self._call(x))
        result: DeviceArray = self._kept[1]
        return result

    def _inv_call(self, y: DeviceArray) -> DeviceArray:
        if self._cache_size == 0:
            return self._inverse(y)
        if self._kept[1] is not y:
            self._kept = (self._inverse(y), y)
        result: DeviceArray = self._kept[0]
        return result

    def _call(self, x: DeviceArray) -> DeviceArray:
        raise NotImplementedError

    def _inverse(self, y: DeviceArray) -> DeviceArray:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: DeviceArray, y: DeviceArray) -> DeviceArray:
        """log(abs(det(dy / dx))), for each value."""
        raise NotImplementedError

    def forward_shape(self, shape: Shape) -> Shape:
        """The shape of what is made of an array of this shape."""
        return _C.Size(shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        """The shape of what makes an array of this shape."""
        return _C.Size(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _InverseTransform(Transform):
    """The inverse of a transform."""

    _inv: Transform

    def __init__(self, transform: Transform) -> None:
        super().__init__(transform._cache_size)
        self._inv = transform

    @property
    def domain(self) -> Constraint:  # type: ignore[override]
        return self._inv.codomain

    @property
    def codomain(self) -> Constraint:  # type: ignore[override]
        return self._inv.domain

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return self._inv.bijective

    @property
    def sign(self) -> Any:
        return self._inv.sign

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self._inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inv!r})"

    def __call__(self, x: DeviceArray) -> DeviceArray:
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x: DeviceArray, y: DeviceArray) -> DeviceArray:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Shape) -> Shape:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        return self._inv.forward_shape(shape)
