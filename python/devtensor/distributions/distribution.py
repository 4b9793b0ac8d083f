"""What all distributions have."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_int, _need_ints, _need_number
from devtensor.autograd.grad_mode import no_grad
from devtensor.distributions.constraints import Constraint
from devtensor.distributions.utils import common_shape, lazy_property

Self = TypeVar("Self", bound="Distribution")
Shape = Sequence[int]


class Distribution:
    """The base of all distributions: batch_shape many of them, each of values of event_shape.

    A subclass names its parameters in arg_constraints and defines what it can of sample, rsample, log_prob, entropy,
    cdf, icdf, expand, mean, mode and variance.
    """

    has_rsample: bool = False
    has_enumerate_support: bool = False
    _validate_args: bool = __debug__
    _names: tuple[str, ...] = ()  # the parameters that expand() expands
    _numbers: Mapping[str, Any] = MappingProxyType({})  # the parameters, where all are numbers of Python

    def __init__(self, batch_shape: Shape = (), event_shape: Shape = (), validate_args: bool | None = None) -> None:
        op = type(self).__name__
        self._batch_shape: _C.Size = _C.Size(_need_ints(op, "batch_shape", batch_shape))
        self._event_shape: _C.Size = _C.Size(_need_ints(op, "event_shape", event_shape))
        if validate_args is not None:
            self._validate_args = _need_bool(op, "validate_args", validate_args)
        if self._validate_args:
            self._validate_parameters()

    def _validate_parameters(self) -> None:
        try:
            wanted = self.arg_constraints
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or initialize "
                "the distribution with `validate_args=False` to turn off validation.",
                stacklevel=4,
            )
            return
        for name, constraint in wanted.items():
            if name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property):
                continue
            value = getattr(self, name)
            if not _holds(constraint, value):
                text = (
                    f"Expected parameter {name} (Tensor of shape {value.shape}) of distribution {self!r} to satisfy "
                    f"the constraint {constraint!r}, but found invalid values:\n{value}"
                )
                raise _C._explained(type(self).__name__, (name,), (value,), "invalid-argument", ValueError(text), 0)

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions look at their parameters and values, unless validate_args says it.

        >>> dt.distributions.Distribution.set_default_validate_args(True)
        """
        Distribution._validate_args = _need_bool("set_default_validate_args", "value", value)

    @property
    def arg_constraints(self) -> dict[str, Constraint]:
        """What each parameter must be, by name."""
        raise NotImplementedError

    @property
    def support(self) -> Constraint:
        """What a value is."""
        raise NotImplementedError

    @property
    def batch_shape(self) -> _C.Size:
        """The shape of the parameters."""
        return self._batch_shape

    @property
    def event_shape(self) -> _C.Size:
        """The shape of one value."""
        return self._event_shape

    @property
    def mean(self) -> DeviceArray:
        """The mean."""
        raise NotImplementedError(f"{type(self).__name__} does not implement mean")

    @property
    def mode(self) -> DeviceArray:
        """The value of the highest density."""
        raise NotImplementedError(f"{type(self).__name__} does not implement mode")

    @property
    def variance(self) -> DeviceArray:
        """The variance."""
        raise NotImplementedError(f"{type(self).__name__} does not implement variance")

    @property
    def stddev(self) -> DeviceArray:
        """The standard deviation."""
        return self.variance.sqrt()

    def expand(self: Self, batch_shape: Shape) -> Self:
        """The same distribution with its parameters expanded to batch_shape."""
        if not self._names:
            raise NotImplementedError(f"{type(self).__name__} does not implement expand")
        return self._expanded(batch_shape, *self._names)

    def sample(self, sample_shape: Shape = ()) -> DeviceArray:
        """Values (*sample_shape, *batch_shape, *event_shape), through which no gradient flows."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Shape = ()) -> DeviceArray:
        """Values as those of sample, through which gradients flow to the parameters."""
        raise NotImplementedError(f"{type(self).__name__} does not implement rsample")

    def sample_n(self, n: int) -> DeviceArray:
        """sample((n,))."""
        return self.sample((_need_int("sample_n", "n", n),))

    def log_prob(self, value: DeviceArray) -> DeviceArray:
        """The logarithm of the density, or of the probability, at value."""
        raise NotImplementedError(f"{type(self).__name__} does not implement log_prob")

    def cdf(self, value: DeviceArray) -> DeviceArray:
        """The probability of at most value."""
        raise NotImplementedError(f"{type(self).__name__} does not implement cdf")

    def icdf(self, value: DeviceArray) -> DeviceArray:
        """The number that is exceeded with probability 1 - value."""
        raise NotImplementedError(f"{type(self).__name__} does not implement icdf")

    def enumerate_support(self, expand: bool = True) -> DeviceArray:
        """All values, along a new first dimension."""
        raise NotImplementedError(f"{type(self).__name__} does not implement enumerate_support")

    def entropy(self) -> DeviceArray:
        """The entropy, in nats."""
        raise NotImplementedError(f"{type(self).__name__} does not implement entropy")

    def perplexity(self) -> DeviceArray:
        """exp(entropy())."""
        return self.entropy().exp()

    def _broadcast(self, **values: Any) -> tuple[DeviceArray, ...]:
        """Parameters, numbers or arrays, as arrays of one shape, after all checks."""
        op = type(self).__name__
        given = {name: value for name, value in values.items() if isinstance(value, DeviceArray)}
        options: dict[str, Any] = {"dtype": _C.get_default_dtype()}
        if given:
            names, arrays = tuple(given), tuple(given.values())
            _C._check(op, names, arrays)
            _C._check_broadcast(op, names, arrays)
            options = {"dtype": arrays[0].dtype, "device": arrays[0].device}
        self._numbers = {} if given else values
        made = tuple(
            value if name in given else _C.tensor(_need_number(op, name, value), **options)
            for name, value in values.items()
        )
        shape = common_shape(made)
        return tuple(array if list(array.shape) == shape else array.expand(shape) for array in made)

    def _extended_shape(self, sample_shape: Shape = ()) -> tuple[int, ...]:
        return _need_ints("sample", "sample_shape", sample_shape) + self._batch_shape + self._event_shape

    def _expanded(self: Self, batch_shape: Shape, *names: str, rest: Shape = ()) -> Self:
        """A copy whose parameters, but for their dimensions of rest, have batch_shape."""
        shape = _need_ints("expand", "batch_shape", batch_shape)
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made._batch_shape = _C.Size(shape)
        for name in names:
            if name in self.__dict__:
                made.__dict__[name] = self.__dict__[name].expand((*shape, *rest))
        return made

    def _of_numbers(self: Self, device: _C.device) -> Self:
        """The same distribution on another device, where all its parameters were given as numbers."""
        made = self._expanded(self._batch_shape)
        for name, value in self.__dict__.items():
            if isinstance(value, DeviceArray):
                del made.__dict__[name]
                if name in self._numbers:
                    number, shape = self._numbers[name], self._batch_shape
                    made.__dict__[name] = _C.full(shape, number, dtype=value.dtype, device=device)
        return made

    def _beside(self: Self, op: str, value: DeviceArray, parameter: str, of_support: bool = True) -> Self:
        """The distribution whose parameters are on the device of value, after all checks of value.

        That is this one: only parameters that are numbers of Python are on any device.
        """
        if not isinstance(value, DeviceArray):
            raise ValueError(f"The value argument to {op} must be a Tensor")
        if self._numbers and getattr(self, parameter).device != value.device:
            self = self._of_numbers(value.device)
        own = getattr(self, parameter)
        names, arrays = (parameter, "value"), (own, value)
        _C._check(op, names, arrays, apart=1)
        self._check_value(op, names, arrays, of_support)
        return self

    def _check_value(
        self, op: str, names: tuple[str, ...], arrays: tuple[DeviceArray, ...], of_support: bool = True
    ) -> None:
        """Raises ValueError where the last of arrays has no shape or is no value of this distribution."""
        if not self._validate_args:
            return
        value, last = arrays[-1], len(arrays) - 1
        wanted = self._batch_shape + self._event_shape
        if any(i != j and 1 not in (i, j) for i, j in zip(reversed(value.shape), reversed(wanted), strict=False)):
            text = f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs {wanted}."
            raise _C._explained(op, names, arrays, "shape-mismatch", ValueError(text), last)
        if of_support and not _holds(self.support, value):
            text = (
                f"Expected value argument (Tensor of shape {value.shape}) to be within the support ({self.support!r}) "
                f"of the distribution {self!r}, but found invalid values:\n{value}"
            )
            raise _C._explained(op, names, arrays, "invalid-argument", ValueError(text), last)

    def __repr__(self) -> str:
        shown = []
        for name in self.arg_constraints:
            value = self.__dict__.get(name)
            if value is not None:
                shown.append(f"{name}: {value.item() if value.numel() == 1 else value.shape}")
        return f"{type(self).__name__}({', '.join(shown)})"


def _holds(constraint: Constraint, value: DeviceArray) -> bool:
    """Whether value is right, as far as it is known without waiting for a device."""
    return value.is_cuda or bool(constraint.check(value.detach()).all())
