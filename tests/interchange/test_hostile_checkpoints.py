"""Checkpoints from strangers: what they name is not run, and what is damaged or hostile is refused."""

from __future__ import annotations

import argparse
import io
import os
import pickle
import random
import re
import struct
import sys
import time
import tracemalloc
import types
import zipfile
from collections import Counter, OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from checkpoint_files import DATA, SOUND, in_torch, loaded, of_torch, persistent, plant, rebuilt, saved, storage, whole
from support import bits_of

import devtensor as dt
from devtensor import nn
from devtensor._checkpoints import archive, names, numpy_objects, pickle_reader, reading, sources


class Evil:
    ran = False

    def __reduce__(self) -> Any:
        return setattr, (Evil, "ran", True)


def test_nothing_is_run() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    for thing, text in (
        (Evil(), "holds an object of builtins.setattr"),
        ({"a": [Evil()]}, "builtins.setattr"),
        (nn.Linear, "whole module of class devtensor.nn"),
        (torch.nn.Linear(1, 1), r"a whole module of class torch\.nn\.modules\.linear\.Linear.*model\.state_dict\(\)"),
        (torch.ones(2).to_sparse(), r"names torch\._utils\._rebuild_sparse_tensor, which devtensor has nothing for"),
        (os.system, "holds an object of posix.system"),
        (Path("/"), "holds an object of pathlib.PosixPath"),
    ):
        for new in (True, False):
            for weights_only in (True, None):
                with pytest.raises(pickle.UnpicklingError, match=text):
                    loaded(of_torch(thing, _use_new_zipfile_serialization=new), weights_only=weights_only)
    assert not Evil.ran
    for name in ("complex64", "uint16", "float8_e5m2"):
        with pytest.raises(TypeError, match=f"an array of {name}, a dtype that devtensor lacks"):
            loaded(of_torch(torch.zeros(2, dtype=getattr(torch, name))))


def test_what_is_called_is_a_short_list() -> None:
    modules = {name.partition(".")[0] for name in names._CALLED}
    assert modules <= {"torch", "collections", "_codecs", "builtins", "copyreg", "argparse", "types", "numpy"}
    assert {name for name in names._CALLED if name.startswith("builtins.")} == {
        f"builtins.{name}" for name in "bytes bytearray set frozenset complex int float list dict slice".split()
    }
    for module, name in (("os", "system"), ("builtins", "eval"), ("torch.hub", "load"), ("torch._utils", "x")):
        with pytest.raises(pickle.UnpicklingError):
            names.find(module, name)


# ---------------------------------------------------------------- hostile files


def nested(depth: int) -> bytes:
    """Tuples of tuples, of which each holds the one before twice: a key takes for ever to hash."""
    return b")q\0" + b"0h\0h\0\x86q\0" * depth


def copies(name: str, text: bytes, arguments: bytes, times: int = 600) -> bytes:
    """One text, list or array of zeros is named again and again, and a copy of it made each time."""
    return text + b"q\0" + b"0c" + name.replace(" ", "\n").encode() + b"\nq\1" + b"0]" + (
        b"h\1" + arguments + b"Ra"
    ) * times  # fmt: skip


TEXT = b"X\x00\x00\x01\x00" + b"x" * 65536
NUMBERS = b"](" + b"".join(b"M" + struct.pack("<H", i) for i in range(20000)) + b"e"
PAIRS = b"](" + b"".join(b"M" + struct.pack("<H", i) + b"N\x86" for i in range(20000)) + b"e"
ZEROS = b"B\x00\x00\x01\x00" + bytes(65536)
BYTES = b"cnumpy\ndtype\n" + whole("u1") + b"\x85R(K\3" + whole("|") + b"NNNtbq\2"
ATTRIBUTES = b"}(" + b"".join(b"X\5\0\0\0%05dN" % i for i in range(10000)) + b"u"
LONG_KEYS = b"](" + b"(" + b"K\1" * 20000 + b"t" + b"e"
LISTS = b"]q\0" + b"0](h\0h\0eq\0" * 20  # a list holds the one before twice: it is a million when it is shown
UNMADE = b"cnumpy\ndtype\n" + whole("f8") + b"\x85R"

HOSTILE: dict[str, tuple[bytes, str]] = {
    "outside": (plant(rebuilt(persistent(), 1)), "do not lie in the memory"),
    "far outside": (plant(rebuilt(persistent(), 2**62)), ""),
    "beyond all numbers": (plant(rebuilt(persistent(), 2**80)), ""),
    "negative offset": (plant(rebuilt(persistent(), -1)), "no numbers from 0"),
    "negative stride": (plant(rebuilt(persistent(), 1, (2,), (-1,))), "no numbers from 0"),
    "negative size": (plant(rebuilt(persistent(), 0, (-2,), (1,))), "no numbers from 0"),
    "huge size": (plant(rebuilt(persistent(), 0, (2**62,), (1,))), ""),
    "huge sizes": (plant(rebuilt(persistent(), 0, (2**40, 2**40), (0, 0))), ""),
    "huge stride": (plant(rebuilt(persistent(), 0, (2,), (2**63 - 1,))), "do not lie in the memory"),
    "overflowing stride": (plant(rebuilt(persistent(), 0, (5,), (2**62,))), "do not lie in the memory"),
    "strides of others": (plant(rebuilt(persistent(), 0, (2,), (1, 1))), "do not lie in the memory"),
    "a size that is true": (plant(rebuilt(persistent(), 0, (True,), (1,))), "no numbers from 0"),
    "a size that is a float": (plant(rebuilt(persistent(), 0, (1.0,), (1,))), "no numbers from 0"),
    "a size that is a list": (plant(rebuilt(persistent(), 0, [2], (1,))), "no numbers from 0"),
    "too many dimensions": (plant(rebuilt(persistent(), 0, (1,) * 20, (1,) * 20)), "at most 8 dimensions"),
    "a storage too large": (plant(storage(3)), "should have 12 bytes and has 8"),
    "a storage too small": (plant(storage(1)), "should have 4 bytes and has 8"),
    "a huge storage": (plant(storage(2**61)), "should have"),
    "a negative storage": (plant(storage(-1)), "a storage with wrong parts"),
    "no storage": (plant(storage(key="1")), "has no record 'archive/data/1'"),
    "a storage of another folder": (plant(storage(key="../version")), "has no record"),
    "a storage that is a number": (plant(storage(key=0)), "a storage with wrong parts"),
    "two kinds": (
        plant(b"(" + storage()[:-1] + storage(kind="IntStorage")[:-1] + b"t."),
        "'0' is described in two ways",
    ),
    "no persistent tuple": (plant(whole("storage") + b"Q."), "refers to something that is no storage"),
    "no call": (plant(whole("x") + b")R."), ""),
    "wrong arguments": (plant(b"ccollections\nOrderedDict\n(K\1K\2tR."), "wrong arguments"),
    "no end": (plant(b"]"), "ends too early"),
    "nothing on the stack": (plant(b"."), "damaged at byte"),
    "no mark": (plant(b"t."), "damaged at byte"),
    "nothing remembered": (plant(b"h\5."), "damaged at byte"),
    "a text too long": (plant(b"X\xff\xff\xff\xffabc."), "ends too early"),
    "a number too long": (plant(b"\x8b\xff\xff\xff\x7fabc."), "ends too early"),
    "a negative length": (plant(b"\x8b\xff\xff\xff\xffabc."), "ends too early"),
    "a text that is none": (plant(b"X\2\0\0\0\xff\xff."), "damaged at byte"),
    "an opcode of code": (plant(b"cos\nsystem\n"), "os.system"),
    "instances": (plant(b"(ios\nsystem\n"), "opcode b'i'"),
    "registered extensions": (plant(b"\x82\1."), "opcode b'\\x82'"),
    "a key that is a list": (plant(b"}]K\1s."), "a key of list"),
    "a key that takes for ever": (plant(b"}" + nested(60) + b"K\1s."), "a key of tuple"),
    "an item that takes for ever": (plant(b"c__builtin__\nset\n]" + nested(60) + b"a\x85R."), ""),
    "state of a list": (plant(b"]}b."), "sets the state of a list"),
    "state of an array": (plant(storage()[:-1] + b"}b."), "sets the state of a DeviceArray"),
    "appended to a dictionary": (plant(b"}K\1a."), "appends to a dict"),
    "an odd dictionary": (plant(b"}(K\1u."), "puts 1 keys and values"),
    "pairs that are none": (plant(b"ccollections\nOrderedDict\n]K\1a\x85R."), "makes a dictionary of what is none"),
    "pairs with a list": (plant(b"ccollections\nOrderedDict\n]](]K\1ea\x85R."), "a key of list"),
    "a bytearray of a number": (plant(b"c__builtin__\nbytearray\nM\xff\xff\x85R."), "bytes in a way that load"),
    "a name without an end": (plant(b"c" + b"x" * 5000), "ends too early"),
    "copies of a text": (plant(copies("_codecs encode", TEXT, b"h\0\x85") + b"."), "far more memory than the file"),
    "copies of bytes": (plant(copies("builtins bytearray", TEXT, b"h\0\x85") + b"."), "far more memory"),
    "copies of a set": (plant(copies("builtins frozenset", NUMBERS, b"h\0\x85") + b"."), "far more memory"),
    "copies of a dictionary": (plant(copies("collections OrderedDict", PAIRS, b"h\0\x85") + b"."), "far more memory"),
    "copies of an array": (
        plant(
            BYTES + b"0" + copies("numpy.core.numeric _frombuffer", ZEROS, b"(h\0h\2J\0\0\1\0\x85X\1\0\0\0Ct") + b"."
        ),
        "far more memory",
    ),
    "copies of attributes": (
        plant(ATTRIBUTES + b"q\0](" + b"cargparse\nNamespace\n)Rh\0b" * 300 + b"e."),
        "far more memory",
    ),
    "a long key again and again": (plant(b"(" + b"N" * 20000 + b"tq\0}" + b"h\0Ns" * 300 + b"."), "far more memory"),
    "a long key in sets": (plant(copies("builtins set", LONG_KEYS, b"h\0\x85") + b"."), "far more memory"),
    "many arguments": (
        plant(b"(" + whole("u1") + b"N" * 20000 + b"tq\0](" + b"cnumpy\ndtype\nh\0R" * 300 + b"e."),
        "far more memory",
    ),
    "a call of what takes for ever to show": (plant(LISTS + b")R."), "would call an object of list, which"),
    "a class that takes for ever to show": (
        plant(b"ccopyreg\n_reconstructor\n" + LISTS + b"\x85R."),
        "makes an object of list",
    ),
    "a dtype that takes for ever to show": (plant(b"cnumpy\ndtype\n" + LISTS + b"\x85R."), "an object of list"),
    "integers that want a gradient": (
        plant(rebuilt(persistent(1, kind="LongStorage"), 0, (1,), (1,)).replace(b"\x89", b"\x88")),
        "in vain: only Tensors of floating point dtype can require gradients",
    ),
    "an array that shows methods": (
        plant(b"ccollections\nOrderedDict\n)R}" + whole("items") + b"Nsb."),
        "puts something in the place of OrderedDict.items",
    ),
    "no state": (plant(UNMADE + b"."), "never gets its state"),
    "no state in a list": (plant(b"]" + UNMADE + b"a."), "never gets its state"),
    "used before its state": (plant(UNMADE + b"q\0h\0\x86."), "uses an object before it has its state"),
    "a frozen list": (plant(b"(]\x91."), "a key of list"),
    "another machine": (plant(b"N.", byteorder=b"big"), "byte order of another machine"),
    "objects of numpy": (plant(b"cnumpy\ndtype\n" + whole("O8") + b"\x85R."), "none of numbers"),
    "bytes of numpy": (
        plant(b"cnumpy.core.multiarray\nscalar\ncnumpy\ndtype\n" + whole("f8") + b"\x85R" + b"C\3abc\x86R."),
        "whose bytes do not make it",
    ),
}


def rezipped(change: Callable[[zipfile.ZipFile], None], compression: int = zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as made:
        change(made)
    return out.getvalue()


def bomb(made: zipfile.ZipFile) -> None:
    made.writestr("archive/data.pkl", b"\x80\2" + storage(2**20))
    made.writestr("archive/data/0", bytes(4 << 20))


def program(made: zipfile.ZipFile) -> None:
    made.writestr("archive/data.pkl", b"\x80\2N.")
    made.writestr("archive/constants.pkl", b"\x80\2).")


def overlapping() -> bytes:
    """A directory whose hundred records are all the first one."""
    data = bytearray(SOUND)
    start = data.index(archive.CENTRAL)
    end = data.index(archive.END)
    first = bytes(data[start : data.index(archive.CENTRAL, start + 4)])
    many = b"".join(first.replace(b"data.pkl", f"data.{i:03}".encode()) for i in range(100))
    tail = bytearray(data[end:])
    struct.pack_into("<2H2I", tail, 8, 100, 100, len(many), start)
    return bytes(data[:start]) + many + bytes(tail)


def twice() -> bytes:
    data = bytearray(SOUND)
    at = data.index(b"archive/version", data.index(archive.CENTRAL))
    data[at : at + 15] = b"archive/data/0\0"
    return bytes(data).replace(b"archive/data/0\0", b"archive/version", 0)


def flipped(at: bytes) -> bytes:
    data = bytearray(SOUND)
    data[data.index(at)] ^= 1
    return bytes(data)


HOSTILE |= {
    "a bomb": (rezipped(bomb, zipfile.ZIP_DEFLATED), "is compressed or encrypted, and PyTorch writes none"),
    "a program": (rezipped(program), "a program of TorchScript"),
    "an empty archive": (rezipped(lambda made: None), ""),
    "another archive": (rezipped(lambda made: made.writestr("a/b", b"c")), "without a record data.pkl"),
    "overlapping records": (overlapping(), "more bytes than the file"),
    "changed bytes": (flipped(DATA), "have changed since they were written"),
    "a plain pickle": (pickle.dumps({"a": 1}), "a pickle, and not one of torch.save"),
    "an old file's beginning": (pickle.dumps(reading._MAGIC, 2), "ends too early"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files(name: str, tmp_path: Path) -> None:
    data, text = HOSTILE[name]
    for weights_only in (True, None):
        with pytest.raises((RuntimeError, pickle.UnpicklingError)) as caught:
            loaded(data, weights_only=weights_only)
        assert text in str(caught.value) and str(caught.value).startswith("the file"), caught.value
    (tmp_path / "a.pt").write_bytes(data)
    with pytest.raises((RuntimeError, pickle.UnpicklingError)):
        dt.load(tmp_path / "a.pt", mmap=name != "changed bytes")


def test_what_is_copied_at_most() -> None:
    """Memory follows the size of the file, whatever it names again and again."""
    for name in ("copies of a text", "copies of a set", "copies of a dictionary", "copies of an array"):
        data = HOSTILE[name][0]
        tracemalloc.start()
        with pytest.raises(RuntimeError):
            loaded(data)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 64 * len(data), (name, peak, len(data))
    assert isinstance(loaded(plant(BYTES + b"0h\2.")), np.dtype)
    begin = time.process_time()
    put = b"".join(b"r" + struct.pack("<I", i) for i in range(100_000))  # each remembers the same object
    with pytest.raises(RuntimeError):
        loaded(plant(UNMADE + put + b"."))
    assert time.process_time() - begin < 3


def test_storages_without_a_dtype(tmp_path: Path) -> None:
    """Their bytes may begin anywhere in a file that is mapped."""
    parts = whole(0) + whole((2,)) + whole((1,)) + b"\x89)ctorch\nfloat32\ntR."
    data = plant(b"ctorch._utils\n_rebuild_tensor_v3\n(" + persistent(8, kind="UntypedStorage") + parts)
    at = data.index(archive.LOCAL, data.index(b"archive/data/0") - 40)
    extra = struct.unpack_from("<H", data, at + 28)[0]
    start = at + 30 + len("archive/data/0") + extra
    for shift in (1, 2, 4):  # the record begins so much later
        moved = bytearray(data)
        struct.pack_into("<H", moved, at + 28, extra + shift)
        path = tmp_path / f"{shift}.pt"
        path.write_bytes(relocated(bytes(moved[:start]) + bytes(shift) + bytes(moved[start:]), at, shift))
        for mapped in (False, True):
            x = dt.load(path, mmap=mapped)
            assert x.tolist() == [0, 1] and x.data_ptr() % 4 == 0


def relocated(data: bytes, after: int, shift: int) -> bytes:
    """A directory whose records lie so much later, where they began after a place."""
    out = bytearray(data)
    at = out.index(archive.CENTRAL)
    while out[at : at + 4] == archive.CENTRAL:
        (header,) = struct.unpack_from("<I", out, at + 42)
        struct.pack_into("<I", out, at + 42, header + shift * (header > after))
        at += 46 + sum(struct.unpack_from("<3H", out, at + 28))
    (start,) = struct.unpack_from("<I", out, at + 16)
    struct.pack_into("<I", out, at + 16, start + shift)
    return bytes(out)


def test_equal_bytes_are_written_each() -> None:
    """What load() takes for copies of one text is in no file of save()."""
    many = [np.zeros(1000) for _ in range(300)] + [bytes(8000) for _ in range(300)] + [bytearray(99)] * 2
    data = saved(many)
    for got in (loaded(data), in_torch(data, weights_only=False)):
        assert len({id(one) for one in got}) == 601 and not any(one.any() for one in got[:300])
        assert got[300:] == many[300:]


def test_names_of_gpus() -> None:
    for location in ("cuda:\u00b2", "cuda:" + "9" * 5000, "cuda:", "cuda: 0", "CUDA:0"):
        with pytest.raises(RuntimeError, match="don't know how to restore data location") as caught:
            loaded(plant(storage(location=location)))
        assert len(str(caught.value)) < 300


def test_honest_pickles_are_no_copies() -> None:
    """Files whose parts are many and small stay below what may be copied."""
    bits = {tuple(bool(i >> k & 1) for k in range(12)) for i in range(4096)}
    for value in (
        bits,
        dict.fromkeys(bits),
        [set(range(i, i + 50)) for i in range(2000)],
        [dict.fromkeys(((1, 2, 3), "a")) for _ in range(2000)],
        [argparse.Namespace(a=1, b=None, c="x", d=()) for _ in range(5000)],
        OrderedDict((i, None) for i in range(20000)),
        Counter(range(20000)),
        [np.float64(i) for i in range(2000)] + [complex(i) for i in range(2000)] + [bytes(3)] * 2000,
        [(bytes(i % 5), frozenset((i, None))) for i in range(5000)],
    ):
        assert loaded(saved(value)) == value
        for protocol in (2, 4):
            assert loaded(of_torch(value, pickle_protocol=protocol)) == value


def test_frozen_sets_and_attributes() -> None:
    assert loaded(plant(pickle.dumps(frozenset({1, "a"}), 4)[11:])) == frozenset({1, "a"})
    found = loaded(plant(b"ccollections\nOrderedDict\n)R}" + whole("_metadata") + b"Nsb."))
    assert found._metadata is None and found == {}


def test_sound_files() -> None:
    assert loaded(SOUND).tolist() == [0, 1]
    assert loaded(plant(storage(kind="BoolStorage", numel=8))).tolist() == [False, False]
    assert loaded(plant(rebuilt(persistent(), 0, (2**40,), (0,)))).shape == (2**40,)  # takes no memory
    assert loaded(plant(rebuilt(persistent(), 0, (0, 7), (99, 99)))).shape == (0, 7)
    assert bits_of(loaded(plant(storage(4, kind="BoolStorage"), data_0=b"\0\1\2\xff"))).tolist() == [0, 1]


@pytest.mark.parametrize("new", [True, False])
def test_every_cut_of_a_file_is_noticed(new: bool) -> None:
    obj = {"a": dt.ones(3), "b": [1, "x"]}
    data = saved(obj) if new else of_torch(in_torch(saved(obj)), _use_new_zipfile_serialization=False)
    for length in range(0, len(data), 1 if len(data) < 3000 else 7):
        with pytest.raises(RuntimeError):
            loaded(data[:length])


def test_a_file_of_more_than_4_gib() -> None:
    """The fields of 64 bits, with limits set low."""
    full32, full16 = archive._FULL32, archive._FULL16
    try:
        archive._FULL32, archive._FULL16 = 5000, 3
        out = bytearray()
        records = [("a/1", bytes(6000)), ("a/2", b"xyz"), ("a/3", b""), ("a/4", bytes(range(200)))]
        archive.write(out.extend, records)
    finally:
        archive._FULL32, archive._FULL16 = full32, full16
    assert archive.END in out and b"PK\6\6" in out and b"PK\6\7" in out


@pytest.mark.parametrize("new", [True, False])
def test_mutated_files(new: bool) -> None:
    """Each is read, or refused in a documented way."""
    if new:
        data = saved({"a": dt.ones(3), "b": nn.Parameter(dt.ones(2, 2)), "c": [1, 2.0, "x"], "n": np.ones(2)})
    else:
        torch = pytest.importorskip("torch", reason="PyTorch is not installed")
        data = of_torch({"a": torch.ones(3), "c": [1, 2.0, "x"]}, _use_new_zipfile_serialization=False)
    rng = random.Random(7)
    outcomes: Counter[str] = Counter()
    for number in range(4000):
        changed = bytearray(data)
        for _ in range(rng.choice([1, 1, 2, 6])):
            at, how = rng.randrange(len(changed)), rng.randrange(4)
            if how == 0:
                changed[at] ^= 1 << rng.randrange(8)
            elif how == 1:
                del changed[at : at + rng.choice([1, 4, 50])]
            elif how == 2:
                changed[at:at] = rng.choice([b"\0", b"\xff" * 8, b"Q", b"R", b"(", b"t", b"h\0", changed[at : at + 40]])
            else:
                changed[at] = rng.randrange(256)
        outcome = judged(sealed(bytes(changed)) if rng.random() < 0.7 else bytes(changed))
        assert outcome in ("read", "refused"), (number, outcome)
        outcomes[outcome] += 1
    assert outcomes["refused"] > 1000


def sealed(data: bytes) -> bytes:
    """With checksums that are right, so that what is inside is looked at."""
    out = bytearray(data)
    try:
        records = archive.directory(sources.Read(io.BytesIO(data), len(data)))
    except ValueError:
        return data
    at = out.index(archive.CENTRAL)
    for record in records.values():
        head = data[record.header : record.header + 30]
        if len(head) == 30 and out[at : at + 4] == archive.CENTRAL:
            start = record.header + 30 + sum(struct.unpack_from("<2H", head, 26))
            struct.pack_into("<I", out, at + 16, archive.zlib.crc32(data[start : start + record.nbytes]))
            at += 46 + sum(struct.unpack_from("<3H", out, at + 28))
    return bytes(out)


def judged(data: bytes) -> str:
    try:
        found = loaded(data)
        repr(found)
    except (RuntimeError, pickle.UnpicklingError):
        return "refused"
    except TypeError as error:
        return "refused" if "a dtype that devtensor lacks" in str(error) else f"TypeError: {error}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return "read"


# A check is taken away, and the planted files must show it.
PLANTED: dict[str, tuple[Any, str, Any, str]] = {
    "keys may be anything": (pickle_reader, "check_key", hash, "a key that is a list"),
    "dtypes of numpy may be anything": (numpy_objects, "_FORM", re.compile(".*"), "objects of numpy"),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module, name, value, file = PLANTED[bug]
    monkeypatch.setattr(module, name, value)
    with pytest.raises(BaseException):  # noqa: B017
        test_hostile_files(file, tmp_path)


class Asked:
    """Notes when something is asked of it."""

    asked: ClassVar[list[str]] = []

    def __getattribute__(self, name: str) -> Any:
        Asked.asked.append(name)
        return object.__getattribute__(self, name)


class Lazy(types.ModuleType):
    def __getattribute__(self, name: str) -> Any:
        Asked.asked.append(name)
        return object.__getattribute__(self, name)


def test_a_refusal_asks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = types.ModuleType("usual")
    usual.x = Asked()  # type: ignore[attr-defined]
    for name, module in (("lazy", Lazy("lazy")), ("blocked", None), ("odd", Asked()), ("usual", usual)):
        monkeypatch.setitem(sys.modules, name, module)  # type: ignore[arg-type]
        Asked.asked.clear()
        with pytest.raises(pickle.UnpicklingError, match=f"an object of {name}.x; load"):
            loaded(plant(f"c{name}\nx\n.".encode()))
        assert not Asked.asked, name


REFUSED = (  # names, what the refusal says, and whether it may name add_safe_globals
    ("builtins\neval", "builtins.eval", False),
    ("os\nsystem", "os.system", False),
    ("os.path\njoin", "os.path.join", False),
    ("json\ndumps", "json.dumps", False),  # which is no class
    ("torch.optim.adam\nAdam", "an object of torch.optim.adam.Adam", False),
    ("torch._C\nGenerator", "an object of torch._C.Generator", False),
    ("torch.nn.modules.module\n_IncompatibleKeys", "an object of torch.nn.modules.module._IncompatibleKeys", False),
    ("torchvision.transforms.transforms\nCompose", "an object of torchvision.*Compose", True),
    ("torchmetrics.x\nAccuracy", "an object of torchmetrics.x.Accuracy", True),
    ("torchvision.models.resnet\nResNet", "a whole module of class torchvision.models.resnet.ResNet", False),
    ("fractions\nFraction", "an object of fractions.Fraction", True),
)


def test_a_refusal_gives_ways_out() -> None:
    for name, text, trust in REFUSED:
        with pytest.raises(pickle.UnpicklingError, match=f"{text}; .*weights_only=False.*state_dict") as found:
            loaded(plant(b"c" + name.encode() + b"\n."))
        assert ("add_safe_globals" in str(found.value)) == trust, name


def colliding(key: Callable[[int], bytes], count: int) -> bytes:
    return b"}(" + b"".join(key(i) + b"N" for i in range(1, count)) + b"u."


def number(value: int) -> bytes:
    return pickle.dumps(value, 2)[2:-1]


SLOW_KEYS = {
    "sizes": b"ctorch\nSize\n((" + b"K\1" * 100_000 + b"ttRq\0}(" + b"h\0K\1" * 20_000 + b"u.",
    "sizes in a set": b"c__builtin__\nset\n(](ctorch\nSize\n(("
    + b"K\1" * 60_000
    + b"ttRq\0"
    + b"h\0" * 9_000
    + b"etR.",
    "ints": b"\x8b" + struct.pack("<i", 200_000) + b"\1" * 200_000 + b"q\0}(" + b"h\0K\1" * 20_000 + b"u.",
    "ints of one hash": colliding(lambda i: number(i * (2**61 - 1)), 20_000),
    "tuples of one hash": colliding(lambda i: number(i * (2**61 - 1)) + b"\x85", 20_000),
    "a set of one hash": b"c__builtin__\nset\n(](" + b"".join(number(i * (2**61 - 1)) for i in range(20_000)) + b"etR.",
    "pairs of one hash": b"ccollections\nOrderedDict\n(]("
    + b"".join(number(i * (2**61 - 1)) + b"N\x86" for i in range(18_000))
    + b"etR.",
}


@pytest.mark.parametrize("name", SLOW_KEYS)
def test_keys_that_take_long(name: str) -> None:
    start = time.process_time()
    with pytest.raises(
        RuntimeError, match="is damaged: its pickle has (a key of .* too large|too many keys that have)"
    ):
        loaded(plant(SLOW_KEYS[name]))
    assert time.process_time() - start < 1


def test_keys_of_numbers_that_are_no_attack() -> None:
    keys = [*(random.Random(0).getrandbits(64) for _ in range(2000)), *range(-3, 3), 2**61, 2**2000, -(2**61)]
    pairs = [(x, y) for x in range(-9, 9) for y in range(-9, 9)]
    want = [dict.fromkeys([*keys, *pairs, dt.Size([1, 2])], 0) for _ in range(3)]
    assert loaded(saved(want)) == want and loaded(saved(set(pairs))) == set(pairs)


INNER = {
    "a maker": b"cbuiltins\nint\n.",
    "in a list": b"](cbuiltins\nint\ne.",
    "as a value": b"}X\1\0\0\0actorch\nTensor\ns.",
    "in tuples in a list": b"](cbuiltins\nint\n\x85\x85e.",
    "in tuples": b"cbuiltins\nint\n\x85q\0\x85.",
    "in a slice": b"cbuiltins\nslice\n(cbuiltins\nint\ntR.",
    "in a set": b"cbuiltins\nset\n(cbuiltins\nint\n\x85tR.",
    "in pairs": b"ccollections\nOrderedDict\n(K\1cbuiltins\nint\n\x86\x85tR.",
    "the class of a storage": b"](ctorch\nFloatStorage\ne.",
    "getattr": b"](cbuiltins\ngetattr\ne.",
}


def test_what_stands_for_names_does_not_come_out() -> None:
    for name, data in INNER.items():
        with pytest.raises(pickle.UnpicklingError, match="by itself, which is no data|an object of"):
            print(name, loaded(plant(data)))
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    for how in ({}, {"weights_only": False}):
        with pytest.raises(pickle.UnpicklingError, match="holds a Memory by itself"):
            loaded(of_torch(torch.ones(2).untyped_storage()), **how)


def test_nested_names_are_not_a_way_round() -> None:
    for outer, name in (("os", "system"), ("builtins", "eval"), ("a", "b.c"), ("torch._utils", "x")):
        text = f"X{struct.pack('<I', len(name)).decode('latin1')}{name}".encode("latin1")
        for end in (b"\x86R.", b"\x86R)R.", b"\x86R)\x81."):
            with pytest.raises(pickle.UnpicklingError):
                loaded(plant(b"c__builtin__\ngetattr\nc" + outer.encode() + b"\nA\n" + text + end))
    with pytest.raises(pickle.UnpicklingError, match="an object of os.A"):
        loaded(plant(b"c__builtin__\ngetattr\ncos\nA\nq\0h\0)R."))
