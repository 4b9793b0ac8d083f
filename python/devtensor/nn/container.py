"""Modules that hold other modules or parameters in order."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias, TypeVar, overload

from devtensor._C import DeviceArray, _Parameter
from devtensor.nn.module import Module

# What a ParameterDict is filled from.
_Arrays: TypeAlias = "Mapping[str, DeviceArray] | ParameterDict | Iterable[tuple[str, DeviceArray]]"


def _position(index: Any, size: int) -> int:
    place: int = index.__index__()
    if not -size <= place < size:
        raise IndexError(f"index {place} is out of range")
    return place % size


_L = TypeVar("_L", bound="_List")
_D = TypeVar("_D")


class _List(Module):
    """Modules under the names "0", "1", ..."""

    def _names(self) -> list[str]:
        return list(self._module_names)

    def _refill(self, modules: Iterable[Module]) -> None:
        modules = list(modules)
        for name in self._names():
            delattr(self, name)
        for i, module in enumerate(modules):
            self.register_module(str(i), module)

    def __len__(self) -> int:
        return len(self._module_names)

    def __iter__(self) -> Iterator[Module]:
        return iter([self._child(name) for name in self._module_names])

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._names()[_position(index, len(self))], module)

    def __delitem__(self, index: int | slice) -> None:
        modules = list(self)
        if not isinstance(index, slice):
            index = slice(_position(index, len(self)), _position(index, len(self)) + 1)
        del modules[index]
        names = self._names()
        del names[index]
        for name in self._names():
            delattr(self, name)
        if all(name.isdigit() for name in names):
            names = [str(i) for i in range(len(modules))]
        for name, module in zip(names, modules, strict=True):
            self.register_module(name, module)

    def append(self: _L, module: Module) -> _L:
        """Put a module at the end. Returns self."""
        self.register_module(str(len(self)), module)
        return self

    def extend(self: _L, modules: Iterable[Module]) -> _L:
        """Put modules at the end. Returns self."""
        for module in list(modules):
            self.append(module)
        return self

    def insert(self: _L, index: int, module: Module) -> _L:
        """Put a module before the one at index. Returns self."""
        modules = list(self)
        modules.insert(index, module)
        self._refill(modules)
        return self

    def pop(self, index: int | slice = -1) -> Module:
        """Take a module out and return it. Raises IndexError."""
        module: Module = self[index]  # type: ignore[index]
        del self[index]
        return module


class Sequential(_List):
    """Modules that are called one after another: Sequential(a, b), or Sequential(OrderedDict(name=a, other=b)).

    >>> model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    >>> model(dt.zeros(2, 8)).shape
    (2, 3)
    """

    @overload
    def __init__(self, *args: Module) -> None: ...
    @overload
    def __init__(self, arg: Mapping[str, Module], /) -> None: ...
    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], Mapping):
            named: Iterable[tuple[str, Module]] = args[0].items()
        else:
            named = ((str(i), module) for i, module in enumerate(args))
        for name, module in named:
            self.register_module(name, module)

    @overload
    def __getitem__(self, index: int) -> Module: ...
    @overload
    def __getitem__(self, index: slice) -> Sequential: ...
    def __getitem__(self, index: int | slice) -> Module:
        if isinstance(index, slice):
            chosen = Sequential()
            for name in self._names()[index]:
                chosen._hold(name, self._child(name))
            return chosen
        module: Module = self._child(self._names()[_position(index, len(self))])
        return module

    def forward(self, input: Any) -> DeviceArray:
        own = self.__dict__
        for name, hidden in own["_module_names"].items():
            input = (own[name] if hidden is None else hidden)(input)
        output: DeviceArray = input
        return output

    def __add__(self, other: Sequential) -> Sequential:
        return Sequential(*self, *other) if isinstance(other, Sequential) else NotImplemented

    def __iadd__(self, other: Sequential) -> Sequential:
        return self.extend(other) if isinstance(other, Sequential) else NotImplemented

    def __mul__(self, times: int) -> Sequential:
        return Sequential(*list(self) * _times(times)) if isinstance(times, int) else NotImplemented

    __rmul__ = __mul__

    def __imul__(self, times: int) -> Sequential:
        if not isinstance(times, int):
            return NotImplemented
        return self.extend(list(self) * (_times(times) - 1))


def _times(times: int) -> int:
    if times <= 0:
        raise ValueError(f"Non-positive multiplication factor {times} for {Sequential}")
    return times


class ModuleList(_List):
    """A list whose modules are registered.

    >>> len(nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 3)]))
    2
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    @overload
    def __getitem__(self, index: int) -> Module: ...
    @overload
    def __getitem__(self, index: slice) -> ModuleList: ...
    def __getitem__(self, index: int | slice) -> Module:
        if isinstance(index, slice):
            return ModuleList(list(self)[index])
        module: Module = self.__dict__[str(_position(index, len(self)))]
        return module

    def __iadd__(self, modules: Iterable[Module]) -> ModuleList:
        self.extend(modules)
        return self

    def __add__(self, modules: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *modules])

    def __repr__(self) -> str:
        """Neighbours that look alike are shown once."""
        lines, first = [], 0
        for text, alike in itertools.groupby(map(repr, self)):
            n = len(list(alike))
            place = f"({first})" if n == 1 else f"({first}-{first + n - 1})"
            lines.append(f"{place}: {text}" if n == 1 else f"{place}: {n} x {text}")
            first += n
        return self._lay_out(lines)


class ModuleDict(Module):
    """A dictionary whose modules are registered.

    >>> nn.ModuleDict({"head": nn.Linear(8, 3)})["head"]
    Linear(in_features=8, out_features=3, bias=True)
    """

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        if key not in self._module_names:
            raise KeyError(key)
        module: Module = self._child(key)
        return module

    def __setitem__(self, key: str, module: Module) -> None:
        self.register_module(key, module)

    def __delitem__(self, key: str) -> None:
        self[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._module_names)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._module_names))

    def __contains__(self, key: object) -> bool:
        return key in self._module_names

    def keys(self) -> Iterable[str]:
        """The names."""
        return list(self._module_names)

    def values(self) -> Iterable[Module]:
        """The modules."""
        return [self[key] for key in self]

    def items(self) -> Iterable[tuple[str, Module]]:
        """Names and modules."""
        return [(key, self[key]) for key in self]

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Register the modules of a dictionary or of (name, module) pairs."""
        for key, module in modules.items() if isinstance(modules, Mapping) else modules:
            self[key] = module

    def pop(self, key: str) -> Module:
        """Take a module out and return it. Raises KeyError."""
        module = self[key]
        del self[key]
        return module

    def clear(self) -> None:
        """Take all modules out."""
        for key in self:
            del self[key]


class ParameterList(Module):
    """A list whose arrays are registered as parameters.

    >>> len(nn.ParameterList([dt.ones(1), dt.ones(2)]))
    2
    """

    def __init__(self, values: Iterable[DeviceArray] | None = None) -> None:
        super().__init__()
        if values is not None:
            self.extend(values)

    def __len__(self) -> int:
        return len(_held(self))

    def __iter__(self) -> Iterator[_Parameter]:
        return iter([self.__dict__[name] for name in _held(self)])

    @overload
    def __getitem__(self, index: int) -> _Parameter: ...
    @overload
    def __getitem__(self, index: slice) -> ParameterList: ...
    def __getitem__(self, index: int | slice) -> _Parameter | ParameterList:
        if isinstance(index, slice):
            return ParameterList(list(self)[index])
        parameter: _Parameter = self.__dict__[str(_position(index, len(self)))]
        return parameter

    def __iadd__(self, values: Iterable[DeviceArray]) -> ParameterList:
        return self.extend(values)

    def __setitem__(self, index: int, value: DeviceArray) -> None:
        setattr(self, str(_position(index, len(self))), _parameter(value))

    def append(self, value: DeviceArray) -> ParameterList:
        """Put an array at the end. Returns self."""
        self.register_parameter(str(len(self)), _parameter(value))
        return self

    def extend(self, values: Iterable[DeviceArray]) -> ParameterList:
        """Put arrays at the end. Returns self."""
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join(f"  ({i}): {_summary(p)}" for i, p in enumerate(self))


class ParameterDict(Module):
    """A dictionary whose arrays are registered as parameters.

    >>> list(nn.ParameterDict({"scale": nn.Parameter(dt.ones(1))}))
    ['scale']
    """

    def __init__(self, parameters: _Arrays | None = None) -> None:
        super().__init__()
        if isinstance(parameters, (str, DeviceArray)):
            wanted = "a dictionary or pairs of names and arrays"
            raise TypeError(f"ParameterDict(): argument 'parameters' must be {wanted}, not {type(parameters).__name__}")
        if parameters is not None:
            self.update(parameters)

    def __len__(self) -> int:
        return len(_held(self))

    def __iter__(self) -> Iterator[str]:
        return iter(list(_held(self)))

    def __contains__(self, key: object) -> bool:
        return key in _held(self)

    def __getitem__(self, key: str) -> _Parameter:
        if key not in _held(self):
            raise KeyError(key)
        parameter: _Parameter = self.__dict__[key]
        return parameter

    def __setitem__(self, key: str, value: DeviceArray) -> None:
        self.register_parameter(key, _parameter(value))

    def __delitem__(self, key: str) -> None:
        self[key]
        delattr(self, key)

    def keys(self) -> Iterable[str]:
        """The names."""
        return list(_held(self))

    def values(self) -> Iterable[_Parameter]:
        """The parameters."""
        return [self[key] for key in self]

    def items(self) -> Iterable[tuple[str, _Parameter]]:
        """Names and parameters."""
        return [(key, self[key]) for key in self]

    def get(self, key: str, default: _D | None = None) -> _Parameter | _D | None:
        """The parameter of a name, else default."""
        return self[key] if key in self else default

    def setdefault(self, key: str, default: DeviceArray) -> _Parameter:
        """The parameter of a name, which becomes default if there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str) -> _Parameter:
        """Take a parameter out and return it. Raises KeyError."""
        parameter = self[key]
        del self[key]
        return parameter

    def popitem(self) -> tuple[str, _Parameter]:
        """Take the last parameter out; its name and itself. Raises KeyError if there is none."""
        if not len(self):
            raise KeyError("popitem(): dictionary is empty")
        key = list(self)[-1]
        return key, self.pop(key)

    def clear(self) -> None:
        """Take all parameters out."""
        for key in self:
            del self[key]

    def copy(self) -> ParameterDict:
        """Another ParameterDict with the same parameters."""
        return ParameterDict(self.items())

    def update(self, parameters: _Arrays) -> None:
        """Register the arrays of a dictionary, in the order of its keys, or of (name, array) pairs, in theirs."""
        if isinstance(parameters, (OrderedDict, ParameterDict)) or not isinstance(parameters, Mapping):
            pairs = parameters.items() if hasattr(parameters, "items") else parameters
        else:
            pairs = sorted(parameters.items())
        for key, value in pairs:
            self[key] = value

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self))

    def __or__(self, other: ParameterDict) -> ParameterDict:
        return self.copy().__ior__(other)

    def __ior__(self, other: ParameterDict) -> ParameterDict:
        self.update(other)
        return self

    def extra_repr(self) -> str:
        return "\n".join(f"  ({key}): {_summary(p)}" for key, p in self.items())


def _held(module: Module) -> Mapping[str, Any]:
    """The names of the arrays; a copy by nn.parallel.replicate has them as plain attributes."""
    former: Mapping[str, Any] = module.__dict__.get("_former_names", {})
    return module._parameter_names or former


def _parameter(value: DeviceArray) -> _Parameter:
    return value if isinstance(value, _Parameter) else _Parameter(value)


def _summary(p: DeviceArray) -> str:
    where = "" if not p.is_cuda else f" ({p.device})"
    return f"Parameter containing: [{p.dtype} of size {'x'.join(map(str, p.shape))}{where}]"
