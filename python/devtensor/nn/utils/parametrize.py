"""Parameters that are functions of what is learned: torch.nn.utils.parametrize."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Sequence
from typing import Any

from devtensor._C import DeviceArray, _need_bool, _need_str, _Parameter
from devtensor.autograd.grad_mode import no_grad
from devtensor.nn.container import ModuleDict, ModuleList
from devtensor.nn.module import Module

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "type_before_parametrizations",
]


def __dir__() -> list[str]:
    return __all__


_cache: dict[tuple[int, str], Any] = {}
_caching = 0


@contextlib.contextmanager
def cached() -> Iterator[None]:
    """Within it each parametrized array is computed once, when it is first asked for.

    >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
    >>> with nn.utils.parametrize.cached():
    ...     layer.weight is layer.weight
    True
    """
    global _caching
    _caching += 1
    try:
        yield
    finally:
        _caching -= 1
        if not _caching:
            _cache.clear()


def _need_module(op: str, name: str, module: object) -> None:
    if not isinstance(module, Module):
        raise TypeError(f"{op}(): argument '{name}' must be Module, not {type(module).__name__}")


def _keep(module: Module, name: str, array: DeviceArray) -> None:
    if isinstance(array, _Parameter):
        module.register_parameter(name, array)
    else:
        module.register_buffer(name, array)


def _put(place: DeviceArray, value: DeviceArray) -> None:
    """value into the array that optimizers know."""
    if place is not value:
        place.data = value.detach()


class ParametrizationList(ModuleList):
    """The parametrizations of one array, and what is learned: original, or original0, original1 and so on.

    Its call gives what the array is. register_parametrization makes it.

    >>> layer = nn.utils.parametrize.register_parametrization(nn.Linear(2, 2), "weight", nn.Identity())
    >>> type(layer.parametrizations.weight).__name__
    'ParametrizationList'
    """

    def __init__(self, modules: Sequence[Module], original: DeviceArray, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe: bool = _need_bool("ParametrizationList", "unsafe", unsafe)
        shape, dtype = original.shape, original.dtype
        new: Any = original
        with no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    with contextlib.suppress(NotImplementedError):
                        new = module.right_inverse(new)
        if not isinstance(new, (DeviceArray, list, tuple)):
            raise ValueError(
                "'right_inverse' must return a DeviceArray or a sequence of them (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        self.is_tensor: bool = isinstance(new, DeviceArray)
        self.ntensors: int = 1 if isinstance(new, DeviceArray) else len(new)
        if isinstance(new, DeviceArray):
            if new.dtype != dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {dtype}\nright_inverse(original).dtype: {new.dtype}"
                )
            _put(original, new)
            _keep(self, "original", original)
        else:
            self._keep_parts(new, original)
        if not self.unsafe:
            _check_same(self(), shape, dtype, "ParametrizationList")

    def _keep_parts(self, parts: Sequence[Any], original: DeviceArray) -> None:
        for i, part in enumerate(parts):
            if not isinstance(part, DeviceArray):
                raise ValueError(
                    "'right_inverse' must return a DeviceArray or a sequence of them (list, tuple...). "
                    f"Got element {i} of the sequence with type {type(part).__name__}."
                )
            if isinstance(original, _Parameter):
                part = _Parameter(part.detach(), original.requires_grad)
            _keep(self, f"original{i}", part)

    def right_inverse(self, value: DeviceArray) -> None:
        """Write what value comes of, by the right_inverse of each parametrization in reverse."""
        found: Any = value
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse. "
                        "What it gives cannot be assigned"
                    )
                found = module.right_inverse(found)
            if self.is_tensor:
                if not isinstance(found, DeviceArray):
                    raise ValueError(f"`right_inverse` should return a tensor, got {type(found).__name__}")
                if found.dtype != self.original.dtype:
                    raise ValueError(f"right_inverse gives {found.dtype}, and what is learned is {self.original.dtype}")
                _put(self.original, found)
                return
            if not isinstance(found, (list, tuple)) or len(found) != self.ntensors:
                raise ValueError(f"'right_inverse' must return a sequence of {self.ntensors} tensors")
            for i, part in enumerate(found):
                _put(getattr(self, f"original{i}"), part)

    def forward(self) -> Any:
        """What the array is."""
        first, *others = list(self)
        if self.is_tensor:
            x = first(self.original)
        else:
            x = first(*(getattr(self, f"original{i}") for i in range(self.ntensors)))
        for module in others:
            x = module(x)
        return x


def _check_same(found: Any, shape: tuple[int, ...], dtype: Any, what: str) -> None:
    if not isinstance(found, DeviceArray):
        raise ValueError(f"A parametrization must return a tensor. Got {type(found).__name__}.")
    if found.dtype != dtype or found.shape != shape:
        raise ValueError(
            "Registering a parametrization may not change the dtype or the shape of the tensor, unless `unsafe` flag "
            f"is enabled.\nunparametrized: {dtype}, {tuple(shape)}\nparametrized: {found.dtype}, {tuple(found.shape)}"
        )


def _refuse_state(self: Module) -> Any:
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(). See: "
        "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
    )


def _copied(self: Module, memo: dict[int, Any]) -> Module:
    replica = type(self).__new__(type(self))
    memo[id(self)] = replica
    replica.__dict__.update(copy.deepcopy(self.__dict__, memo))
    return replica


def _of_a_class_of_its_own(module: Module) -> None:
    kind = type(module)
    body: dict[str, Any] = {"__getstate__": _refuse_state, "__module__": kind.__module__}
    if not hasattr(kind, "__deepcopy__"):
        body["__deepcopy__"] = _copied
    module.__class__ = type(f"Parametrized{kind.__name__}", (kind,), body)


def _property_of(name: str) -> property:
    def read(self: Module) -> Any:
        parametrization = self.parametrizations[name]
        if not _caching:
            return parametrization()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = parametrization()
        return _cache[key]

    def write(self: Module, value: DeviceArray) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(read, write)


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Make a parameter or buffer of module what parametrization gives of it.

    What is learned becomes module.parametrizations[tensor_name].original; where parametrization has a right_inverse,
    that decides what it is. A second one is applied to the result of the first. unsafe: the shape and the dtype may
    change. Raises ValueError for an array that is not there, and for a parametrization that changes shape or dtype.

    >>> class Symmetric(nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).t()
    >>> layer = nn.utils.parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
    >>> bool((layer.weight == layer.weight.t()).all()), list(layer.state_dict())
    (True, ['bias', 'parametrizations.weight.original'])
    """
    op = "register_parametrization"
    _need_module(op, "module", module)
    _need_str(op, "tensor_name", tensor_name)
    _need_module(op, "parametrization", parametrization)
    unsafe = _need_bool(op, "unsafe", unsafe)
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            now = getattr(module, tensor_name)
            _check_same(parametrization(now), now.shape, now.dtype, op)
            if hasattr(parametrization, "right_inverse"):
                with contextlib.suppress(NotImplementedError):
                    back = parametrization.right_inverse(now)
                    _check_same(back, now.shape, now.dtype, op)
        found = module.parametrizations[tensor_name]
        found.append(parametrization)
        found.unsafe |= unsafe
    elif tensor_name in module._parameter_names or tensor_name in module._buffer_names:
        original = getattr(module, tensor_name)
        made = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _of_a_class_of_its_own(module)
            module.parametrizations = ModuleDict()
        setattr(type(module), tensor_name, _property_of(tensor_name))
        module.parametrizations[tensor_name] = made
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether an array of module, or any, is parametrized.

    >>> nn.utils.parametrize.is_parametrized(nn.Linear(2, 2))
    False
    """
    _need_module("is_parametrized", "module", module)
    found = module.__dict__.get("parametrizations")
    if not isinstance(found, ModuleDict):
        return False
    if tensor_name is None:
        return len(found) > 0
    return _need_str("is_parametrized", "tensor_name", tensor_name) in found


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make the array of that name an ordinary one: its current value or, without leave_parametrized, the learned one.

    Raises ValueError for an array that is not parametrized, or that comes of several where they should be left.

    >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
    >>> list(nn.utils.parametrize.remove_parametrizations(layer, "weight").state_dict())
    ['bias', 'weight']
    """
    op = "remove_parametrizations"
    _need_module(op, "module", module)
    _need_str(op, "tensor_name", tensor_name)
    leave_parametrized = _need_bool(op, "leave_parametrized", leave_parametrized)
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    found = module.parametrizations[tensor_name]
    if found.is_tensor:
        original = found.original
        if leave_parametrized:
            with no_grad():
                _put(original, getattr(module, tensor_name))
    elif leave_parametrized:
        now = getattr(module, tensor_name)
        original = _Parameter(now.detach()) if now.requires_grad else now
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _keep(module, tensor_name, original)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class that module had.

    >>> nn.utils.parametrize.type_before_parametrizations(nn.Linear(2, 2)).__name__
    'Linear'
    """
    return type(module).__bases__[0] if is_parametrized(module) else type(module)
