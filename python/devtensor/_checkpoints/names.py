"""What a checkpoint of PyTorch may name, and what it stands for here. Nothing else is looked up or called."""

from __future__ import annotations

import argparse
import codecs
import pickle
import sys
import types
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import devtensor
from devtensor import _C
from devtensor._C import DeviceArray, _Buffer, _Parameter
from devtensor._checkpoints import numpy_objects, trusted
from devtensor._checkpoints.pickle_reader import INNER, NESTED, Maker, check_key

WORDS = {
    "Float": _C.float32, "Double": _C.float64, "Half": _C.float16, "BFloat16": _C.bfloat16, "Long": _C.int64,
    "Int": _C.int32, "Short": _C.int16, "Char": _C.int8, "Byte": _C.uint8, "Bool": _C.bool,
}  # fmt: skip
STORAGES = {dtype: f"{word}Storage" for word, dtype in WORDS.items()}
_DTYPES = {str(dtype).rpartition(".")[2]: dtype for dtype in WORDS.values()}
_OTHER_DTYPES = frozenset(
    """complex32 complex64 complex128 uint16 uint32 uint64 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz
    float8_e8m0fnu float4_e2m1fn_x2 quint8 qint8 qint32 quint4x2 quint2x4 bits8 bits16""".split()
)
_OTHER_STORAGES = {
    "ComplexFloatStorage": "complex64", "ComplexDoubleStorage": "complex128", "QUInt8Storage": "quint8",
    "QInt8Storage": "qint8", "QInt32Storage": "qint32", "QUInt4x2Storage": "quint4x2", "QUInt2x4Storage": "quint2x4",
}  # fmt: skip


class Kind(NamedTuple):
    """The class of a storage: of a dtype, or of bytes."""

    dtype: _C.dtype | None


class Memory(NamedTuple):
    """The bytes of a storage on their device, and the dtype that the file gives them."""

    array: DeviceArray
    dtype: _C.dtype | None


INNER.update((Kind, Memory))


# ---------------------------------------------------------------- arrays


def _strided(memory: Any, offset: Any, size: Any, stride: Any, dtype: Any) -> DeviceArray:
    if not isinstance(memory, Memory) or dtype is None:
        raise ValueError("its pickle makes an array of what is no storage")
    numbers = (offset, *size, *stride) if isinstance(size, tuple) and isinstance(stride, tuple) else (None,)
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise ValueError("its pickle has an array whose offset, size or stride are no numbers from 0")
    if dtype is _C.bool and memory.dtype is not _C.bool and memory.array.numel() and bool((memory.array > 1).any()):
        raise ValueError("its pickle has bools of bytes that are neither 0 nor 1")
    try:
        return _C._strided(memory.array, dtype, tuple(size), tuple(stride), offset * dtype.itemsize)
    except OverflowError as error:
        raise ValueError(str(error)) from None


def _wanting(array: DeviceArray, requires_grad: Any) -> DeviceArray:
    return array.requires_grad_() if requires_grad is True else array


def _rebuild_tensor(storage: Any, offset: Any, size: Any, stride: Any) -> DeviceArray:
    return _strided(storage, offset, size, stride, getattr(storage, "dtype", None))


def _rebuild_tensor_v2(
    storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, hooks: Any, metadata: Any = None
) -> DeviceArray:
    return _wanting(_rebuild_tensor(storage, offset, size, stride), requires_grad)


def _rebuild_tensor_v3(
    storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, hooks: Any, dtype: Any, metadata: Any = None
) -> DeviceArray:
    return _wanting(
        _strided(storage, offset, size, stride, dtype if isinstance(dtype, _C.dtype) else None), requires_grad
    )


def _rebuild_parameter(data: Any, requires_grad: Any, hooks: Any, state: Any = None) -> _Parameter:
    made = _Parameter(data.detach() if isinstance(data, DeviceArray) else data, requires_grad is True)
    if type(state) is dict:
        made.__dict__.update((key, state[key]) for key in state if type(key) is str and not hasattr(_Parameter, key))
    return made


def _parameter(data: Any, requires_grad: Any = True) -> _Parameter:
    return _rebuild_parameter(data, requires_grad, None)


def _rebuild_from_type_v2(make: Any, kind: Any, arguments: Any, state: Any) -> DeviceArray:
    """An array with attributes: a Buffer, or an array whose attributes are left out."""
    if not isinstance(make, Maker) or not make.name.startswith("torch._utils.") or not isinstance(arguments, tuple):
        raise ValueError("its pickle makes an array in a way that load() does not know")
    if not isinstance(kind, Maker) or kind.name not in ("torch.Tensor", "torch.nn.parameter.Parameter"):
        raise pickle.UnpicklingError(f"it has an array of class {_name(kind)}")
    array: DeviceArray = make.make(*arguments)
    if isinstance(state, dict) and state.get("_is_buffer") is True:
        return _Buffer(array, persistent=state.get("persistent") is True)
    return array


def _no_tensor(*given: Any) -> Any:
    raise ValueError("its pickle makes an array without a storage")


# ---------------------------------------------------------------- other data


def _encoded(text: Any, encoding: Any = "latin1") -> bytes:
    if type(text) is not str or encoding not in ("latin1", "latin-1"):
        raise ValueError("its pickle has bytes in a way that load() does not know")
    return codecs.encode(text, "latin1")


def _as_bytes(*given: Any) -> bytes:
    return _encoded(*given) if given else b""


def _as_bytearray(*given: Any) -> bytearray:
    if len(given) == 1 and type(given[0]) is bytes:
        return bytearray(given[0])
    return bytearray(_as_bytes(*given))


def _collected(kind: Callable[..., Any]) -> Callable[..., Any]:
    """A set of items in a list."""

    def make(items: Any = ()) -> Any:
        if type(items) not in (list, tuple):
            raise ValueError("its pickle makes a set of what is no list")
        for item in items:
            check_key(item)
        return kind(items)

    return make


def _ordered(pairs: Any = ()) -> Any:
    """An OrderedDict or a Counter comes empty, or with a dictionary or pairs."""
    if type(pairs) is dict:
        return OrderedDict(pairs)
    if type(pairs) in (list, tuple) and all(type(pair) in (list, tuple) and len(pair) == 2 for pair in pairs):
        for key, _ in pairs:
            check_key(key)
        return OrderedDict(map(tuple, pairs))
    raise ValueError("its pickle makes a dictionary of what is none")


def _counted(counts: Any = ()) -> Counter[Any]:
    found: Counter[Any] = Counter()
    found.update(_ordered(counts))
    return found


_FACTORIES: dict[str, Callable[[], Any]] = {"dict": dict, "list": list, "set": set, "int": int, "float": float}


def _default(factory: Any = None) -> defaultdict[Any, Any]:
    known = _FACTORIES.get(factory.name.rpartition(".")[2]) if isinstance(factory, Maker) else None
    if known is None and factory is not None:
        raise pickle.UnpicklingError("it has a defaultdict whose values are made in a way that load() does not know")
    return defaultdict(known)


def _number(kind: type) -> Callable[..., Any]:
    def make(*given: Any) -> Any:
        if not all(type(part) in (int, float, bool) for part in given):
            raise ValueError("its pickle makes a number of what is none")
        return kind(*given)

    return make


def _size(items: Any = ()) -> tuple[int, ...]:
    if not isinstance(items, tuple) or not all(type(item) is int for item in items):
        raise ValueError("its pickle makes a Size of what is no tuple of ints")
    made: tuple[int, ...] = getattr(devtensor, "Size", tuple)(items)
    return made


def _device(*given: Any) -> _C.device:
    if not 1 <= len(given) <= 2 or type(given[0]) is not str or not all(type(part) is int for part in given[1:]):
        raise ValueError("its pickle makes a device of what is none")
    try:
        return _C.device(":".join(map(str, given)))
    except RuntimeError as error:
        raise ValueError(str(error)) from None


def _reconstructed(kind: Any, base: Any = None, state: Any = None) -> Any:
    """What protocol 0 and 1 write for an object without state."""
    if isinstance(kind, Maker) and kind.name in trusted.given:
        return trusted.new(kind.make)
    if not isinstance(kind, Maker) or kind.name not in _NAMESPACES:
        raise pickle.UnpicklingError(f"it makes an object of {_name(kind)}")
    return kind.make()


def _name(kind: Any) -> str:
    return kind.name if isinstance(kind, Maker) else type(kind).__name__


def _nested(*given: Any) -> Any:
    raise pickle.UnpicklingError(_refusal("builtins", "builtins.getattr"))


def _nothing(kind: type) -> Callable[..., Any]:
    def make() -> Any:
        return kind()

    return make


_NAMESPACES = {"argparse.Namespace": argparse.Namespace, "types.SimpleNamespace": types.SimpleNamespace}

_CALLED: dict[str, Callable[..., Any]] = {
    "torch._utils._rebuild_tensor": _rebuild_tensor,
    "torch._utils._rebuild_tensor_v2": _rebuild_tensor_v2,
    "torch._utils._rebuild_tensor_v3": _rebuild_tensor_v3,
    "torch._utils._rebuild_parameter": _rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": _rebuild_parameter,
    "torch._tensor._rebuild_from_type_v2": _rebuild_from_type_v2,
    "torch.nn.parameter.Parameter": _parameter,
    "torch.Tensor": _no_tensor,
    "torch.Size": _size,
    "torch.device": _device,
    "collections.OrderedDict": _ordered,
    "collections.Counter": _counted,
    "collections.defaultdict": _default,
    "_codecs.encode": _encoded,
    "builtins.bytes": _as_bytes,
    "builtins.bytearray": _as_bytearray,
    "builtins.set": _collected(set),
    "builtins.frozenset": _collected(frozenset),
    "builtins.complex": _number(complex),
    "builtins.int": _number(int),
    "builtins.float": _number(float),
    "builtins.list": _nothing(list),
    "builtins.dict": _nothing(dict),
    "builtins.slice": slice,
    "copyreg._reconstructor": _reconstructed,
    **{name: _nothing(kind) for name, kind in _NAMESPACES.items()},
    **numpy_objects.CALLED,
}
_OLD_MODULES = {"__builtin__": "builtins", "copy_reg": "copyreg"}


def find(module: str, name: str) -> Any:
    """What a name in a pickle stands for. Raises UnpicklingError for one that is not on the list."""
    module = _OLD_MODULES.get(module, module)
    full = f"{module}.{name}"
    called = _CALLED.get(full) or trusted.given.get(full)
    if called is not None:
        return Maker(full, called)
    if full == NESTED:  # of a class inside of another one, which the reader looks up as one name
        return Maker(full, _nested)
    if module in ("torch", "torch.storage", "torch.cuda"):
        if name in ("UntypedStorage", "_UntypedStorage"):
            return Kind(None)
        if name in _OTHER_DTYPES or name in _OTHER_STORAGES:
            raise TypeError(f"it has an array of {_OTHER_STORAGES.get(name, name)}, a dtype that devtensor lacks")
        if name in _DTYPES:
            return _DTYPES[name]
        if name.endswith("Storage") and name[:-7] in WORDS:
            return Kind(WORDS[name[:-7]])
    raise pickle.UnpicklingError(_refusal(module, full))


def _imported(module: str, name: str) -> Any:
    """What a module that is already there has under a name. Nothing is imported or run, also by modules of a kind of
    their own, which may import themselves when something asks for them."""
    found = sys.modules.get(module)
    if type(found) is not types.ModuleType:
        return None
    outer, _, last = name.partition(".")
    known = object.__getattribute__(found, "__dict__").get(outer)
    while last and _is_class(known):
        outer, _, last = last.partition(".")
        known = type.__dict__["__dict__"].__get__(known).get(outer)
    return None if last else known


def _is_class(thing: Any) -> bool:
    return issubclass(type(thing), type)


def _refusal(module: str, full: str) -> str:
    rule = "load() makes no objects of classes that a file names, as that can run any code"
    trust = "Where you trust its writer, load(path, weights_only=False) imports and runs what it names"
    known = _imported(module, full[len(module) + 1 :])
    last = full.rpartition(".")[2]
    whole = _is_class(known) and issubclass(known, devtensor.nn.Module)
    if whole or (full.startswith(_OF_MODULES) and last[:1].isupper()):
        return (
            f"it holds a whole module of class {full}; {rule}. {trust}. Better is a file of what the module has "
            "learned, model.state_dict(), which asks for no class"
        )
    if full.startswith(("torch._utils.", "torch._tensor.")):
        return f"it names {full}, which devtensor has nothing for; {rule}"
    text = (
        f"it holds an object of {full}; {rule}. {trust}. If it is a model or an optimizer saved as a whole, better is "
        "a file of its state_dict(); of another object save its fields, such as vars(object)"
    )
    if module.partition(".")[0] in _NOT_TO_TRUST or not (known is None or _is_class(known)):
        return text
    return f"{text}, or trust its class alone: serialization.add_safe_globals([{last}])"


_OF_MODULES = ("torch.nn.modules.", "torch.nn.parallel.", "torchvision.models.", "devtensor.nn.")
_NOT_TO_TRUST = ("builtins", "torch", "sys", "os", "posix", "nt", "subprocess", "shutil")
