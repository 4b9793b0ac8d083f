"""A pickle of protocol 2 of the data that checkpoints hold, in the words that torch.load knows.

Objects of other classes are in it as pickle has them.
"""

from __future__ import annotations

import argparse
import copyreg
import importlib
import pickle
import struct
import types
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

import devtensor
from devtensor import _C
from devtensor._C import DeviceArray, _Buffer, _Parameter
from devtensor._checkpoints import trusted
from devtensor._checkpoints.names import STORAGES

Keep = Callable[[DeviceArray], tuple[str, int]]

_BATCH = 1000


class Refused(TypeError):
    """Something that a checkpoint cannot hold."""


def _memo(short: bytes, long: bytes, number: int) -> bytes:
    return short + bytes([number]) if number < 256 else long + struct.pack("<I", number)


class Writer:
    """Writes one object. keep takes an array and gives the key of its storage and the storage's number of elements."""

    def __init__(self, keep: Keep) -> None:
        self.keep = keep
        self.out = bytearray(pickle.PROTO + b"\2")
        self.memo: dict[Any, int] = {}
        self.alive: list[Any] = []  # whose ids are in the memo

    def whole(self, obj: Any) -> bytes:
        """The pickle. Raises Refused with the place for what cannot be in it."""
        try:
            self.write(obj, "obj")
        except RecursionError:
            raise Refused("obj is nested too deep") from None
        return bytes(self.out + pickle.STOP)

    # ------------------------------------------------------------ opcodes

    def put(self, *parts: bytes) -> None:
        for part in parts:
            self.out += part

    def remembered(self, key: Any) -> bool:
        number = self.memo.get(key)
        if number is not None:
            self.put(
                pickle.BINGET + bytes([number]) if number < 256 else pickle.LONG_BINGET + struct.pack("<I", number)
            )
        return number is not None

    def remember(self, key: Any, kept: Any = None) -> None:
        number = self.memo[key] = len(self.memo)
        self.alive.append(kept)
        self.put(_memo(pickle.BINPUT, pickle.LONG_BINPUT, number))

    def text(self, value: str, shared: bool = True) -> None:
        if not (shared and self.remembered(("text", value))):
            data = value.encode("utf-8", "surrogatepass")
            if len(data) >= 2**32:
                raise Refused("a text has more than 4 GiB")
            self.put(pickle.BINUNICODE, struct.pack("<I", len(data)), data)
            if shared:
                self.remember(("text", value))

    def name(self, module: str, name: str) -> None:
        if not self.remembered(("name", module, name)):
            self.put(pickle.GLOBAL, f"{module}\n{name}\n".encode())
            self.remember(("name", module, name))

    def integer(self, value: int) -> None:
        if 0 <= value < 256:
            self.put(pickle.BININT1, bytes([value]))
        elif -(2**31) <= value < 2**31:
            self.put(pickle.BININT, struct.pack("<i", value))
        else:
            data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
            if len(data) >= 256:
                raise Refused(f"an integer has {len(data)} bytes, and torch.load reads at most 255")
            self.put(pickle.LONG1, bytes([len(data)]), data)

    def numbers(self, values: tuple[int, ...]) -> None:
        self.put(pickle.MARK)
        for value in values:
            self.integer(value)
        self.put(pickle.TUPLE)

    def called(self, module: str, name: str, *arguments: Any) -> None:
        """A call of a name; each argument is data, or a function that writes it."""
        self.name(module, name)
        self.put(pickle.MARK)
        for argument in arguments:
            if callable(argument):
                argument()
            else:
                self.write(argument, "obj")
        self.put(pickle.TUPLE, pickle.REDUCE)

    # ------------------------------------------------------------ data

    def write(self, obj: Any, path: str) -> None:
        kind = type(obj)
        if obj is None:
            self.put(pickle.NONE)
        elif kind is bool:
            self.put(pickle.NEWTRUE if obj else pickle.NEWFALSE)
        elif kind is int:
            self.integer(obj)
        elif kind is float:
            self.put(pickle.BINFLOAT, struct.pack(">d", obj))
        elif kind is str:
            self.text(obj)
        elif not self.remembered(id(obj)):
            self.object_(obj, path)

    def object_(self, obj: Any, path: str) -> None:
        run = _KINDS.get(type(obj))
        if run is not None:
            run(self, obj, path)
        elif isinstance(obj, (np.generic, np.ndarray)):
            self.numpy(obj, path)
        elif isinstance(obj, _NAMED):
            self.global_(obj, path)
        else:
            self.reduced(obj, path)

    def tuple_(self, obj: Any, path: str) -> None:
        if type(obj) is not tuple:  # a Size
            self.called("torch", "Size", lambda: self.numbers(tuple(obj)))
            return
        self.put(pickle.MARK)
        for i, item in enumerate(obj):
            self.write(item, f"{path}[{i}]")
        if self.memo.get(id(obj)) is not None:  # it holds itself, and was written on the way
            self.put(pickle.POP_MARK)
            self.remembered(id(obj))
            return
        self.put(pickle.TUPLE)
        self.remember(id(obj), obj)

    def list_(self, obj: Any, path: str) -> None:
        self.put(pickle.EMPTY_LIST)
        self.remember(id(obj), obj)
        for start in range(0, len(obj), _BATCH):
            self.put(pickle.MARK)
            for i, item in enumerate(obj[start : start + _BATCH], start):
                self.write(item, f"{path}[{i}]")
            self.put(pickle.APPENDS)

    def dict_(self, obj: Any, path: str) -> None:
        kind = type(obj)
        if kind is dict:
            self.put(pickle.EMPTY_DICT)
        elif kind is defaultdict:
            factory = obj.default_factory
            make = () if factory is None else (lambda: self.write(factory, f"{path}.default_factory"),)
            self.called("collections", "defaultdict", *make)
        else:
            self.called("collections", kind.__name__)
        self.remember(id(obj), obj)
        if obj:
            self.put(pickle.MARK)
            for key, value in list(obj.items()):
                self.write(key, f"{path}.keys()")
                self.write(value, f"{path}[{_C._shown(key)}]")
            self.put(pickle.SETITEMS)
        if getattr(obj, "__dict__", None):  # such as the _metadata of a state dictionary
            self.write(vars(obj), f"vars({path})")
            self.put(pickle.BUILD)

    def set_(self, obj: Any, path: str) -> None:
        items = sorted(obj, key=repr)  # the same file each time
        self.called("__builtin__", type(obj).__name__, lambda: self.list_(items, path))
        if id(obj) in self.memo:  # an item holds it, and it was written on the way
            self.put(pickle.POP)
            self.remembered(id(obj))
            return
        self.remember(id(obj), obj)

    def bytes_(self, obj: Any, path: str) -> None:
        def text() -> None:  # of each copy, as load() makes no large number of copies of one
            self.text(bytes(obj).decode("latin1"), shared=False)

        if type(obj) is bytes:
            self.called("_codecs", "encode", text, "latin1")
        else:
            self.called("__builtin__", "bytearray", text, "latin-1")
        self.remember(id(obj), obj)

    def complex_(self, obj: complex, path: str) -> None:
        self.called("__builtin__", "complex", obj.real, obj.imag)

    def namespace(self, obj: Any, path: str) -> None:
        self.name(*_NAMESPACES[type(obj)])
        self.put(pickle.EMPTY_TUPLE, pickle.NEWOBJ)
        self.remember(id(obj), obj)
        self.write(vars(obj), f"vars({path})")
        self.put(pickle.BUILD)

    # ------------------------------------------------------------ objects of classes, which load() refuses by default

    def global_(self, obj: Any, path: str, name: str | None = None) -> None:
        """A class or a function, by the name under which a program finds it."""
        other = trusted.other_name(obj)
        if other is not None:
            self.name(*other)
            return
        if type(obj) is type and obj in _UNNAMED:
            self.called("__builtin__", "type", _UNNAMED[obj])
            return
        name = obj.__qualname__ if name is None else name
        module = getattr(obj, "__module__", None) or "builtins"
        outer, _, last = name.rpartition(".")
        try:
            found = importlib.import_module(module)
            for part in name.split("."):
                parent, found = found, getattr(found, part)
        except (ImportError, AttributeError):
            found = None
        if found is not obj:
            raise Refused(
                f"{path} is {name}, which no program that reads the file finds as {module}.{name}: what stands at the "
                "top of a module can be saved"
            )
        if outer:
            self.called("__builtin__", "getattr", lambda: self.write(parent, path), last)
        else:
            self.name(_OLD_MODULES.get(module, module), name)

    def reduced(self, obj: Any, path: str) -> None:
        """An object as pickle writes it: what makes it, with which arguments, and what is put into it."""
        try:
            reduce = copyreg.dispatch_table.get(type(obj))
            how = obj.__reduce_ex__(2) if reduce is None else reduce(obj)
        except TypeError as error:
            raise Refused(f"{path} is {type(obj).__name__}: {error}") from error
        except KeyError as error:
            if not isinstance(obj, devtensor.nn.Module) or error.args[0] not in ("_modules", "_parameters", "_buffers"):
                raise
            raise Refused(
                f"{path} is {type(obj).__name__}, whose __getstate__ wants {error} of its __dict__, where modules of "
                f"devtensor do not keep it: self.{error.args[0]} has it"
            ) from error
        if isinstance(how, str):
            self.global_(obj, path, how)
            return
        make, arguments, state, items, pairs, setter = (*how, *[None] * 4)[:6]
        new = getattr(make, "__name__", "") == "__newobj__"
        self.write(arguments[0] if new else make, f"type({path})")
        self.write(arguments[new:], f"{path}.args")
        self.put(pickle.NEWOBJ if new else pickle.REDUCE)
        if id(obj) in self.memo:  # its arguments hold it, and it was written on the way
            self.put(pickle.POP)
            self.remembered(id(obj))
            return
        self.remember(id(obj), obj)
        if items is not None:
            self.fill([(item,) for item in items], pickle.APPENDS, path)
        if pairs is not None:
            self.fill(list(pairs), pickle.SETITEMS, path)
        if state is not None and setter is not None:
            self.write(setter, f"type({path})")
            self.write((obj, state), f"vars({path})")
            self.put(pickle.REDUCE, pickle.POP)
        elif state is not None:
            self.write(state, f"vars({path})")
            self.put(pickle.BUILD)

    def fill(self, entries: list[tuple[Any, ...]], opcode: bytes, path: str) -> None:
        if entries:
            self.put(pickle.MARK)
            for i, entry in enumerate(entries):
                for part in entry:
                    self.write(part, f"{path}[{i if len(entry) == 1 else _C._shown(entry[0])}]")
            self.put(opcode)

    # ------------------------------------------------------------ dtypes and devices

    def dtype_(self, obj: _C.dtype, path: str) -> None:
        self.name("torch", str(obj).rpartition(".")[2])

    def device_(self, obj: _C.device, path: str) -> None:
        index = () if obj.index is None else (obj.index,)
        self.called("torch", "device", obj.type, *index)

    # ------------------------------------------------------------ arrays

    def array(self, obj: DeviceArray, path: str) -> None:
        if type(obj) is _Parameter:
            plain = lambda: self.plain(obj, False)  # noqa: E731
            state = (lambda: self.write(vars(obj), f"vars({path})"),) if vars(obj) else ()
            name = "_rebuild_parameter_with_state" if state else "_rebuild_parameter"
            self.called("torch._utils", name, plain, obj.requires_grad, OrderedDict(), *state)
        elif type(obj) is _Buffer:
            self.buffer(obj)
        else:
            self.plain(obj, obj.requires_grad)
        self.remember(id(obj), obj)

    def plain(self, obj: DeviceArray, requires_grad: bool) -> None:
        x = obj.detach()
        if any(part % x.itemsize for part in _C._storage(x)[1:]):  # another library's memory, in which it stands askew
            x = x.clone()
        self.called("torch._utils", "_rebuild_tensor_v2", *self.layout(x), requires_grad, OrderedDict())

    def layout(self, x: DeviceArray) -> tuple[Any, ...]:
        key, numel = self.keep(x)

        def storage() -> None:
            self.put(pickle.MARK)
            self.text("storage")
            self.name("torch", STORAGES[x.dtype])
            self.text(key)
            self.text(str(x.device))
            self.integer(numel)
            self.put(pickle.TUPLE, pickle.BINPERSID)

        shape, strides = tuple(x.shape), tuple(x.stride())
        return (
            storage,
            _C._storage(x)[2] // x.itemsize,
            lambda: self.numbers(shape),
            lambda: self.numbers(strides),
        )

    def buffer(self, obj: _Buffer) -> None:
        def arguments() -> None:
            self.put(pickle.MARK)
            for part in (*self.layout(obj.detach()), obj.requires_grad, OrderedDict()):
                part() if callable(part) else self.write(part, "obj")
            self.put(pickle.TUPLE)

        self.called(
            "torch._tensor",
            "_rebuild_from_type_v2",
            lambda: self.name("torch._utils", "_rebuild_tensor_v2"),
            lambda: self.name("torch", "Tensor"),
            arguments,
            {"persistent": obj.persistent, "_is_buffer": True},
        )

    def numpy(self, obj: Any, path: str) -> None:
        """As NumPy has itself pickled, for numbers."""
        x = np.asarray(obj)
        if x.dtype.kind not in "biufc" or type(obj) not in (np.ndarray, x.dtype.type):
            self.reduced(obj, path)
            return
        if type(obj) is np.ndarray:
            shape, data = x.shape, x.tobytes()
            self.called("numpy.core.multiarray", "_reconstruct", lambda: self.name("numpy", "ndarray"), (0,), b"b")
            self.remember(id(obj), obj)
            self.put(pickle.MARK)
            self.integer(1)
            self.numbers(shape)
            self.numpy_dtype(x.dtype)
            self.put(pickle.NEWFALSE)
            self.write(data, path)
            self.put(pickle.TUPLE, pickle.BUILD)
        else:
            self.called("numpy.core.multiarray", "scalar", lambda: self.numpy_dtype(x.dtype), x.tobytes())
            self.remember(id(obj), obj)

    def numpy_dtype(self, dtype: np.dtype[Any]) -> None:
        self.called("numpy", "dtype", dtype.str[1:], False, True)
        order = "|" if dtype.itemsize == 1 else "<" if dtype.newbyteorder("<") == dtype else ">"
        self.write((3, order, None, None, None, -1, -1, 0), "dtype")
        self.put(pickle.BUILD)


_NAMESPACES = {argparse.Namespace: ("argparse", "Namespace"), types.SimpleNamespace: ("types", "SimpleNamespace")}

_NAMED = (type, types.FunctionType)
_UNNAMED: dict[Any, Any] = {type(value): value for value in (None, ..., NotImplemented)}
_OLD_MODULES = {"builtins": "__builtin__", "copyreg": "copy_reg"}  # protocol 2 is that of Python 2

_KINDS: dict[type, Callable[[Writer, Any, str], None]] = {
    tuple: Writer.tuple_,
    getattr(devtensor, "Size", tuple): Writer.tuple_,
    list: Writer.list_,
    **dict.fromkeys((dict, OrderedDict, defaultdict, Counter), Writer.dict_),
    **dict.fromkeys((set, frozenset), Writer.set_),
    **dict.fromkeys((bytes, bytearray), Writer.bytes_),
    complex: Writer.complex_,
    **dict.fromkeys(_NAMESPACES, Writer.namespace),
    _C.dtype: Writer.dtype_,
    _C.device: Writer.device_,
    **dict.fromkeys((DeviceArray, _Parameter, _Buffer), Writer.array),
}
