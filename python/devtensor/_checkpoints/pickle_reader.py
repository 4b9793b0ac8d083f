"""A pickle read without running what it names: a machine for the opcodes, and a fixed list of what may be called.

Protocols 2 to 5 as far as data need them. What is read here comes from strangers.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from devtensor._checkpoints import trusted

Storage = Callable[[Any], Any]
Names = Callable[[str, str], Any]


class Maker(NamedTuple):
    """A name in a pickle that may be called: what that gives, and what sets its state afterwards."""

    name: str
    make: Callable[..., Any]


def load(data: bytes, at: int, names: Names, storage: Storage, encoding: str) -> tuple[Any, int]:
    """What the pickle that begins at a byte of data holds, and where it ends.

    names gives what a module and a name stand for, storage what a persistent id stands for. Raises ValueError for a
    pickle that is damaged, and what names and storage raise.
    """
    machine = _Machine(data, at, names, storage, encoding)
    try:
        while True:
            machine.step()
    except _Stop as end:
        return end.value, machine.at
    except (IndexError, KeyError, struct.error, UnicodeDecodeError, OverflowError, LookupError):
        raise ValueError(f"its pickle is damaged at byte {machine.at}") from None


class Outer(NamedTuple):
    """The class that a nested one is in, which is not looked up."""

    module: str
    name: str


INNER: set[type] = {Maker, Outer}  # what stands for something in a pickle, and is no data
NESTED = "builtins.getattr"


class Unfinished:
    """What becomes something else with its state."""

    def __init__(self) -> None:
        self.numbers: list[int] = []  # in the memo

    def finished(self, state: Any) -> Any:
        """Raises ValueError for a state that is none."""
        raise NotImplementedError


class _Stop(Exception):
    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


def shown(value: Any) -> str:
    """A value in an error. Texts and numbers alone are written out: lists of lists can be made that take for ever."""
    return f"{value!r:.50}" if type(value) in (str, bytes, float, bool) else f"an object of {type(value).__name__}"


_SIMPLE = (str, int, float, complex, bool, bytes, type(None))


def check_key(key: Any) -> None:
    """A key takes no long time to hash: tuples of tuples can be made that take for ever."""
    for part in key if type(key) is tuple else (key,):
        if not isinstance(part, _SIMPLE) and not type(part).__module__.startswith("devtensor"):
            raise ValueError(f"its pickle has a key of {type(key).__name__}")
        large = len(part) > _SIZE if isinstance(part, tuple) else type(part) is int and part.bit_length() > _BITS
        if large:
            raise ValueError(f"its pickle has a key of {type(part).__name__} that is too large for one")
    hash(key)


_SIZE, _BITS = 64, 2040  # of keys: the dimensions of a Size, and what torch.load reads of an int
_ALIKE = 256


def set_attributes(target: Any, state: dict[str, Any]) -> None:
    """Attributes beside those of the class. Raises ValueError for others."""
    for key in state:
        if hasattr(type(target), key):
            raise ValueError(f"its pickle puts something in the place of {type(target).__name__}.{key}")
    target.__dict__.update(state)


_COPIED, _SPARE = 8, 1 << 16  # bytes that calls may copy: so many for each of the pickle, and some more


_ITEM = (1, 16, 1, 1)  # of the arguments, of what they hold, and of the keys in that, which are looked at


def _weight(given: Any, level: int = 0) -> int:
    """About what a copy of arguments takes, without what is in them, and of the keys what it takes to hash them."""
    if type(given) in _TEXTS:
        return len(given)
    total = _ITEM[level] * len(given)
    if level + 1 < len(_ITEM):
        wanted = _HOLDERS if level else _COPIES
        for part in given:
            if type(part) in wanted:
                total += _weight(part, level + 1)
    return total


_TEXTS, _HOLDERS = frozenset((str, bytes, bytearray)), frozenset((list, tuple, dict, set, frozenset))
_COPIES = _TEXTS | _HOLDERS


class _Machine:
    def __init__(self, data: bytes, at: int, names: Names, storage: Storage, encoding: str) -> None:
        self.data, self.at, self.names, self.storage, self.encoding = data, at, names, storage, encoding
        self.stack: list[Any] = []
        self.marks: list[list[Any]] = []
        self.memo: dict[int, Any] = {}
        self.unfinished = 0
        self.inner: dict[int, Any] = {}  # tuples that hold what is no data, by id
        self.hashed: dict[int, Any] = {}  # the first key with a hash
        self.alike: dict[int, set[Any]] = {}  # those with one hash, of more than one
        self.copied, self.may_copy = 0, _COPIED * (len(data) - at) + _SPARE

    def step(self) -> None:
        code = self.take(1)[0]
        run = _CODES.get(code)
        if run is None:
            raise ValueError(f"its pickle has opcode {bytes([code])!r}, which data do not need")
        run(self)

    def take(self, count: int) -> bytes:
        if count < 0 or self.at + count > len(self.data):
            raise ValueError("its pickle ends too early")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, form: str) -> Any:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def line(self) -> str:
        end = self.data.index(b"\n", self.at) if b"\n" in self.data[self.at : self.at + 1000] else -1
        return self.take(end + 1 - self.at)[:-1].decode()

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def above_mark(self) -> list[Any]:
        items, self.stack = self.stack, self.marks.pop()
        return items

    # ------------------------------------------------------------ what makes something

    def text(self, form: str) -> None:
        self.push(self.take(self.number(form)).decode("utf-8", "surrogatepass"))

    def old_text(self, form: str) -> None:
        text = self.take(self.number(form))
        self.push(text if self.encoding == "bytes" else text.decode(self.encoding))

    def long(self, form: str) -> None:
        self.push(int.from_bytes(self.take(self.number(form)), "little", signed=True))

    def last(self, count: int) -> None:
        if count > len(self.stack):
            raise IndexError
        self.stack[-count:] = [self.together(self.stack[-count:])]

    def together(self, items: list[Any]) -> tuple[Any, ...]:
        made = tuple(items)
        if not self.are_data(items):
            self.inner[id(made)] = made
        return made

    def are_data(self, items: list[Any]) -> bool:
        return INNER.isdisjoint(map(type, items)) and self.inner.keys().isdisjoint(map(id, items))

    def data_alone(self, items: list[Any]) -> list[Any]:
        """Items as the program gets them, which has no use for what stands for a name or a storage."""
        return items if self.are_data(items) else [self.datum(item) for item in items]

    def datum(self, item: Any) -> Any:
        item = self.named(item)
        if type(item) is Maker and item.name in trusted.given:
            return item.make
        if type(item) in INNER or id(item) in self.inner:
            what = getattr(item, "name", f"a {type(item).__name__}")
            raise pickle.UnpicklingError(f"it holds {what} by itself, which is no data for load()")
        return item

    def name(self, module: str, name: str) -> None:
        under = self.stack if self.stack else self.marks[-1] if self.marks else []
        if under and isinstance(under[-1], Maker) and under[-1].name == NESTED:
            self.push(Outer(module, name))
        else:
            self.push(self.names(module, name))

    def named(self, thing: Any) -> Any:
        return self.names(*thing) if type(thing) is Outer else thing

    def nested(self, arguments: tuple[Any, ...]) -> bool:
        """getattr(Outer, "Inner") is how protocol 2 names a class inside of another one."""
        if len(arguments) != 2 or type(arguments[0]) not in (Outer, Maker) or type(arguments[1]) is not str:
            return False
        outer, name = arguments
        self.copy(len(outer.name) + len(name))
        if isinstance(outer, Maker):
            self.name(outer.name, name)
        else:
            self.name(outer.module, f"{outer.name}.{name}")
        return True

    def stack_name(self) -> None:
        name, module = self.stack.pop(), self.stack.pop()
        if type(name) is not str or type(module) is not str:
            raise ValueError("its pickle has a name that is no text")
        self.name(module, name)

    def new(self) -> None:
        """An object of a class that the program trusts; of another one, what its name gives."""
        maker = self.stack[-2] = self.named(self.stack[-2])
        if isinstance(maker, Maker) and maker.name in trusted.given and isinstance(maker.make, type):
            arguments = self.stack.pop()
            self.stack[-1] = trusted.new(maker.make, *self.data_alone(list(arguments)))
        else:
            self.call()

    def call(self) -> None:
        arguments, maker = self.stack.pop(), self.named(self.stack.pop())
        if not isinstance(maker, Maker):
            raise pickle.UnpicklingError(f"it would call {shown(maker)}, which load() does not")
        if type(arguments) is not tuple:
            raise ValueError("its pickle has arguments that are no tuple")
        if maker.name == NESTED and self.nested(arguments):
            return
        if maker.name in trusted.given:
            arguments = tuple(self.data_alone(list(arguments)))
        else:
            self.copy(_weight(arguments))
            if maker.name in _KEEPING:
                arguments = tuple(self.data_alone(list(arguments)))
            if maker.name in _HASHING and len(arguments) == 1 and type(arguments[0]) in (list, tuple):
                pairs = maker.name.startswith("collections.")
                keys = [pair[0] for pair in arguments[0] if type(pair) in (list, tuple) and pair]
                self.check_keys(keys if pairs else arguments[0])
        try:
            self.push(maker.make(*arguments))
        except TypeError as error:
            raise ValueError(f"its pickle calls {maker.name} with wrong arguments: {error}") from None
        except RuntimeError as error:
            if maker.name in trusted.given:
                raise
            raise ValueError(f"its pickle calls {maker.name} in vain: {error}") from None
        self.unfinished += isinstance(self.stack[-1], Unfinished)

    def copy(self, count: int) -> None:
        """A pickle may name the same long text again and again: what is made of it must not outgrow the file."""
        self.copied += count
        if self.copied > self.may_copy:
            raise ValueError("its pickle copies its data so often that they would take far more memory than the file")

    def get(self, number: int) -> None:
        value = self.memo[number]
        if isinstance(value, Unfinished):
            raise ValueError("its pickle uses an object before it has its state")
        self.push(value)

    def build(self) -> None:
        state, target = self.stack.pop(), self.stack[-1]
        if isinstance(target, Unfinished):
            self.copy(_weight(state) if type(state) is tuple else 0)
            self.stack[-1] = target.finished(state)
            self.unfinished -= 1
            self.memo.update(dict.fromkeys(target.numbers, self.stack[-1]))
        elif type(target) in trusted.given.values():
            trusted.set_state(target, self.datum(state))
        elif hasattr(target, "__dict__") and type(state) is dict and all(type(key) is str for key in state):
            self.copy(_weight(state, 1))
            set_attributes(target, state)
        else:
            raise ValueError(f"its pickle sets the state of a {type(target).__name__}")

    # ------------------------------------------------------------ what fills something

    def append(self, items: list[Any]) -> None:
        target, items = self.stack[-1], self.data_alone(items)
        if type(target) is list:
            target.extend(items)
        elif type(target) is set:
            self.add(items)
        else:
            raise ValueError(f"its pickle appends to a {type(target).__name__}")

    def add(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not set:
            raise ValueError(f"its pickle adds to a {type(target).__name__}")
        self.check_keys(items)
        target.update(items)

    def put(self, items: list[Any]) -> None:
        target, items = self.stack[-1], self.data_alone(items)
        if not isinstance(target, dict) or len(items) % 2:
            raise ValueError(f"its pickle puts {len(items)} keys and values into a {type(target).__name__}")
        self.check_keys(items[::2])
        for key, value in zip(items[::2], items[1::2], strict=True):
            target[key] = value

    def mark(self) -> None:
        self.marks.append(self.stack)
        self.stack = []

    def frozen(self) -> None:
        items = self.above_mark()
        self.check_keys(items)
        self.push(frozenset(items))

    def check_keys(self, keys: list[Any]) -> None:
        for key in keys:
            if type(key) is tuple:
                self.copy(len(key))
            if type(key) is not str:
                check_key(key)
                if type(key) not in _PLAIN or (type(key) is int and not -_ALONE < key < _ALONE):
                    self.meet(key)

    def meet(self, key: Any) -> None:
        """Keys of one hash make a dictionary slow, and for numbers and tuples of them anybody finds such keys."""
        number = hash(key)
        first = self.hashed.setdefault(number, key)
        if first is not key and first != key:
            alike = self.alike.setdefault(number, {first})
            alike.add(key)
            if len(alike) > _ALIKE:
                raise ValueError("its pickle has too many keys that have the same hash")

    def stop(self) -> None:
        if self.unfinished:
            raise ValueError("its pickle has an object that never gets its state")
        raise _Stop(self.datum(self.stack.pop()))

    def remember(self, number: int) -> None:
        value = self.memo[number] = self.stack[-1]
        if isinstance(value, Unfinished):
            value.numbers.append(number)


_HASHING = ("builtins.set", "builtins.frozenset", "collections.OrderedDict", "collections.Counter")
_KEEPING = (*_HASHING, "builtins.slice")  # what their arguments are made of
_PLAIN = frozenset((bytes, int, float, bool, type(None)))
_ALONE = 2**61 - 1  # int below have hashes of their own

_CODES: dict[int, Callable[[_Machine], Any]] = {
    code[0]: run
    for code, run in {
        pickle.PROTO: lambda m: m.take(1),
        pickle.FRAME: lambda m: m.take(8),
        pickle.STOP: _Machine.stop,
        pickle.MARK: _Machine.mark,
        pickle.POP: lambda m: m.stack.pop(),
        pickle.POP_MARK: _Machine.above_mark,
        pickle.NONE: lambda m: m.push(None),
        pickle.NEWTRUE: lambda m: m.push(True),
        pickle.NEWFALSE: lambda m: m.push(False),
        pickle.BININT: lambda m: m.push(m.number("<i")),
        pickle.BININT1: lambda m: m.push(m.number("<B")),
        pickle.BININT2: lambda m: m.push(m.number("<H")),
        pickle.LONG1: lambda m: m.long("<B"),
        pickle.LONG4: lambda m: m.long("<i"),
        pickle.BINFLOAT: lambda m: m.push(m.number(">d")),
        pickle.BINUNICODE: lambda m: m.text("<I"),
        pickle.SHORT_BINUNICODE: lambda m: m.text("<B"),
        pickle.BINUNICODE8: lambda m: m.text("<Q"),
        pickle.BINSTRING: lambda m: m.old_text("<i"),
        pickle.SHORT_BINSTRING: lambda m: m.old_text("<B"),
        pickle.BINBYTES: lambda m: m.push(m.take(m.number("<I"))),
        pickle.SHORT_BINBYTES: lambda m: m.push(m.take(m.number("<B"))),
        pickle.BINBYTES8: lambda m: m.push(m.take(m.number("<Q"))),
        pickle.BYTEARRAY8: lambda m: m.push(bytearray(m.take(m.number("<Q")))),
        pickle.EMPTY_TUPLE: lambda m: m.push(()),
        pickle.EMPTY_LIST: lambda m: m.push([]),
        pickle.EMPTY_DICT: lambda m: m.push({}),
        pickle.EMPTY_SET: lambda m: m.push(set()),
        pickle.FROZENSET: _Machine.frozen,
        pickle.TUPLE: lambda m: m.push(m.together(m.above_mark())),
        pickle.TUPLE1: lambda m: m.last(1),
        pickle.TUPLE2: lambda m: m.last(2),
        pickle.TUPLE3: lambda m: m.last(3),
        pickle.APPEND: lambda m: m.append([m.stack.pop()]),
        pickle.APPENDS: lambda m: m.append(m.above_mark()),
        pickle.ADDITEMS: lambda m: m.add(m.above_mark()),
        pickle.SETITEM: lambda m: m.put([m.stack.pop(-2), m.stack.pop()]),
        pickle.SETITEMS: lambda m: m.put(m.above_mark()),
        pickle.GLOBAL: lambda m: m.name(m.line(), m.line()),
        pickle.STACK_GLOBAL: _Machine.stack_name,
        pickle.REDUCE: _Machine.call,
        pickle.NEWOBJ: _Machine.new,
        pickle.BUILD: _Machine.build,
        pickle.BINPERSID: lambda m: m.push(m.storage(m.stack.pop())),
        pickle.BINGET: lambda m: m.get(m.number("<B")),
        pickle.LONG_BINGET: lambda m: m.get(m.number("<I")),
        pickle.BINPUT: lambda m: m.remember(m.number("<B")),
        pickle.LONG_BINPUT: lambda m: m.remember(m.number("<I")),
        pickle.MEMOIZE: lambda m: m.remember(len(m.memo)),
    }.items()
}
