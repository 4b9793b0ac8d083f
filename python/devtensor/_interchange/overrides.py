"""Classes that derive from DeviceArray: what their __torch_function__ makes of ops, and how instances are copied and
pickled. PyTorch's torch.overrides is this module."""

from __future__ import annotations

import contextlib
import functools
import threading
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray

# Operators that mean the same with their operands exchanged; of the others Python has a second name.
_EXCHANGED = {
    "sub": "__rsub__",
    "div": "__rtruediv__",
    "floor_divide": "__rfloordiv__",
    "remainder": "__rmod__",
    "pow": "__rpow__",
}


class _Here(threading.local):
    """The state of a thread."""

    asked = 0  # how many ops are being asked about


_here = _Here()


def disabled(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """The __torch_function__ of a class whose instances are taken for plain arrays, as Parameter's are."""
    return _answer_torch(func, types)


def _answer_torch(func: Any, types: Any) -> Any:
    """NotImplemented; where PyTorch would ask nobody else, its sentence is about classes, and here is a better one."""
    if _is_foreign(func) and types and all(issubclass(one, DeviceArray) for one in types):
        name = getattr(func, "__name__", "a function")
        raise TypeError(
            f"torch's {name}() takes no DeviceArray; torch.from_dlpack(x) makes a tensor that shares the memory of x"
        )
    return NotImplemented


class DisableTorchFunctionSubclass(contextlib.ContextDecorator):
    """A block in which no class is asked: ops take its instances for plain arrays."""

    def __enter__(self) -> None:
        self._before = _C._overrides_on(False)

    def __exit__(self, *_: object) -> None:
        _C._overrides_on(self._before)


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """The same: devtensor has no modes that could go on being asked."""


def _values(args: Iterable[Any]) -> Iterator[Any]:
    for value in args:
        if type(value) in (tuple, list):
            yield from value
        else:
            yield value


def _wants(kind: type) -> bool:
    """Whether a class is asked about ops."""
    function = getattr(kind, "__torch_function__", None)
    return function is not None and function is not disabled and kind is not DeviceArray


def _classes(values: Iterable[Any]) -> list[type]:
    """The classes that are asked, a derived one before what it derives from."""
    found: list[type] = []
    for value in values:
        kind = type(value)
        if kind not in found and _wants(kind):
            place = next((i for i, other in enumerate(found) if issubclass(kind, other)), len(found))
            found.insert(place, kind)
    return found


def _call(function: Callable[..., Any], asked: list[type], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the first of the classes answers that has an answer."""
    _here.asked += 1
    try:
        for kind in asked:
            answer = kind.__torch_function__(function, tuple(asked), args, kwargs)  # type: ignore[attr-defined]
            if answer is not NotImplemented:
                return answer
    finally:
        _here.asked -= 1
    name = f"{getattr(function, '__module__', None) or 'devtensor'}.{getattr(function, '__name__', function)}"
    raise TypeError(f"no implementation found for '{name}' on types that implement __torch_function__: {asked}")


def converted(result: Any, kind: type) -> Any:
    """result with its arrays as instances of kind, also those in tuples and lists."""
    if isinstance(result, DeviceArray):
        return result if isinstance(result, kind) else result.as_subclass(kind)
    if isinstance(result, (tuple, list)) and not isinstance(result, _C.Size):
        return type(result)([converted(one, kind) for one in result])
    return result


def _default(cls: type, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """func(*args, **kwargs) with its results as instances of this class.

    NotImplemented where types has one that this class does not derive from, and for functions of PyTorch itself.
    """
    asked, _here.asked = _here.asked, 0
    try:
        if not all(issubclass(cls, one) for one in types) or (not asked and _is_foreign(func)):
            return _answer_torch(func, types) if cls is DeviceArray else NotImplemented
        with DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
        return result if cls is DeviceArray or func in get_default_nowrap_functions() else converted(result, cls)
    finally:
        _here.asked = asked


def _is_foreign(func: Any) -> bool:
    """Whether func is PyTorch's, which asks every class that has the hook: a function, a method, an attribute."""
    owner = getattr(getattr(func, "__self__", func), "__objclass__", None)
    home = getattr(func, "__module__", None) or getattr(owner, "__module__", None) or ""
    return str(home).partition(".")[0] == "torch"


def _ask(kind: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Asked by compiled ops, of which an operand's class wants that."""
    if kind == "first":
        return _watch_composed_ops()
    owner: Any = _C if kind == "function" else DeviceArray
    function = getattr(owner, _EXCHANGED.get(name, name) if kind == "reflected" else name)
    if kind == "attribute":
        function = function.__get__
    return _call(function, _classes(_values((*args, *kwargs.values()))), args, kwargs)


# ---------------------------------------------------------------- composed ops


def _asking(function: Callable[..., Any]) -> Callable[..., Any]:
    """function, about which classes of operands are asked."""

    @functools.wraps(function)
    def _asked(*args: Any, **kwargs: Any) -> Any:
        if _C._overrides_on():
            asked = _classes(_values((*args, *kwargs.values())))
            if asked:
                return _call(_asked, asked, args, kwargs)
        return function(*args, **kwargs)

    return _asked


def _watch_composed_ops() -> None:
    """From the first class on that wants to be asked, the public ops that are Python ask, too."""
    import devtensor

    made: dict[Any, Any] = {}

    def watched(function: Any) -> Any:
        if not isinstance(function, types.FunctionType):
            return None
        home = function.__module__
        if not home.startswith(("devtensor._composed", "devtensor.linalg", "devtensor.nn.functional")):
            return None
        return made.setdefault(function, _asking(function))

    for module in (devtensor, devtensor.nn.functional, devtensor.linalg, devtensor.special):
        for name in module.__all__:
            function = watched(vars(module).get(name))
            if function is not None:
                setattr(module, name, function)
    for name, method in list(vars(DeviceArray).items()):
        function = None if name.startswith("__") else watched(method)
        if function is not None:
            _C._add_method(name, function)


# ---------------------------------------------------------------- copies and pickles


def _plain(x: DeviceArray) -> DeviceArray:
    """The same memory as a plain array, without a history."""
    made: DeviceArray = _C._make_subclass(DeviceArray, x)
    return made


def restored(kind: type, plain: DeviceArray, requires_grad: bool, state: dict[str, Any] | None) -> Any:
    """What a pickled instance calls."""
    made = _C._make_subclass(kind, plain, requires_grad)
    if state:
        vars(made).update(state)
    return made


def copied(x: Any) -> Any:
    """What copy.copy gives: the memory is shared."""
    return restored(type(x), _plain(x), x.requires_grad, getattr(x, "__dict__", None))


def deeply_copied(x: Any, memo: Any) -> Any:
    """What copy.deepcopy gives, with the attributes and the gradient."""
    import copy

    with DisableTorchFunctionSubclass():
        if not x.is_leaf:
            return DeviceArray.__deepcopy__(x.view(x.shape), memo)  # raises
        made = restored(type(x), copy.deepcopy(_plain(x), memo), x.requires_grad, None)
        if x.grad is not None:
            made.grad = copy.deepcopy(x.grad, memo)
    if isinstance(memo, dict):
        memo[id(x)] = made
    vars(made).update(copy.deepcopy(getattr(x, "__dict__", {}), memo))
    return made


def reduced(x: Any) -> Any:
    """What pickle asks for."""
    return restored, (type(x), _plain(x), x.requires_grad, getattr(x, "__dict__", None) or None)


# ---------------------------------------------------------------- torch.overrides


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether one of the values is of a class that has a __torch_function__ of its own."""
    return _C._overrides_on() and any(_wants(type(value)) for value in relevant_args)


def has_torch_function_unary(obj: Any) -> bool:
    """has_torch_function for one value."""
    return has_torch_function((obj,))


def has_torch_function_variadic(*args: Any) -> bool:
    """has_torch_function for the values."""
    return has_torch_function(args)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """What the classes of relevant_args make of public_api(*args, **kwargs). TypeError where none has an answer."""
    return _call(public_api, _classes(relevant_args), args, kwargs)


def is_tensor_like(inp: Any) -> bool:
    """Whether it is an array, or of a class that has a __torch_function__."""
    return isinstance(inp, DeviceArray) or hasattr(type(inp), "__torch_function__")


@functools.cache
def get_default_nowrap_functions() -> frozenset[Any]:
    """Functions whose results the default __torch_function__ leaves as they are."""
    return frozenset({DeviceArray.grad.__get__})


def resolve_name(f: Any) -> str | None:
    """The name of a function as it is written."""
    name = getattr(f, "__qualname__", None) or getattr(f, "__name__", None)
    return None if name is None else f"torch.{name.replace('DeviceArray', 'Tensor')}"


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether func is a method of arrays, or what reads one of their attributes."""
    return getattr(func, "__name__", "") == "__get__" or func in vars(DeviceArray).values()


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the classes of what dispatcher(*args, **kwargs) gives are asked about calls of the function."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def _call(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(_call, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return _call

    return decorate


_C._add_method("_make_subclass", _C._make_subclass)
_C._set_overrides(_ask, classmethod(_default), disabled, _C._Parameter, _C._Buffer)
