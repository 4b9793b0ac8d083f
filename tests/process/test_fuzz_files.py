"""Mutated safetensors files through load: each is read as the safetensors library reads it, or refused as documented.

A case is made from its seed and number alone. `python tests/process/test_fuzz_files.py SEED COUNT` runs others than the
suite does, and prints what it found; with `SEED N N` it shows the bytes of case N and what load says.
"""

from __future__ import annotations

import io
import json
import random
import struct
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from safetensors import SafetensorError, deserialize

import devtensor as dt
from devtensor._files import safetensors, save_load

COUNT = 20_000  # of a run of the suite
DTYPES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
OTHERS = ["U16", "U32", "U64", "C64", "F8_E4M3", "F8_E5M2", "F4", "F31", "f32", "", "F32\0", "ключ"]
NUMBERS = [
    0,
    1,
    2,
    3,
    4,
    8,
    255,
    2**31,
    2**32 - 1,
    2**61,
    2**62,
    2**63 - 1,
    2**63,
    2**64 - 1,
    2**64,
    10**30,
    -1,
    -(2**63),
]
THINGS: list[Any] = [None, True, 1.0, 1e400, -0.0, "1", [], {}, [[1]], {"a": 1}, float("nan"), float("-inf"), "\ud800"]
LENGTHS = [0, 1, 7, 8, 2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 1, 100_000_001]

# ---------------------------------------------------------------- making files


def sound(rng: random.Random) -> tuple[dict[str, Any], bytes]:
    """Header and bytes of a file that is right."""
    header: dict[str, Any] = {}
    data = b""
    for i in range(rng.randrange(5)):
        dtype = rng.choice(list(DTYPES))
        shape = [rng.randrange(4) for _ in range(rng.randrange(4))]
        nbytes = DTYPES[dtype]
        for size in shape:
            nbytes *= size
        header[rng.choice(["weight", "bias", "0", "ä\n", "__metadata_", ""]) + str(i)] = {
            "dtype": dtype,
            "shape": shape,
            "data_offsets": [len(data), len(data) + nbytes],
        }
        data += rng.randbytes(nbytes)
    if rng.random() < 0.3:
        header["__metadata__"] = {"format": "pt", "devtensor": rng.choice(["array", "x"])}
    return header, data


def change_header(rng: random.Random, header: dict[str, Any]) -> None:
    """Moves arrays, adds and drops some, gives metadata that are no texts."""
    names = [name for name in header if name != "__metadata__"]
    how = rng.randrange(6) if names else 2
    if how == 0:  # two in one place
        header[rng.choice(names)]["data_offsets"] = header[rng.choice(names)]["data_offsets"]
    elif how == 1:  # with a hole, or over another
        shift = rng.choice([-8, -1, 1, 8, 2**32])
        places = header[rng.choice(names)]["data_offsets"]
        header[rng.choice(names)]["data_offsets"] = [place + shift for place in places]
    elif how == 2:
        header["__metadata__"] = rng.choice([*THINGS, {"a": None}, {"a": {}}, {"\ud800": "a"}, {"a": "\udfff"}])
    elif how == 3:
        header[rng.choice(["new", "\ud800", "\0"])] = rng.choice(THINGS)
    elif how == 4:
        del header[rng.choice(names)]
    else:  # sizes whose product is the same, or wraps around
        shape = header[rng.choice(names)]["shape"]
        shape += rng.choice([[1], [1] * 9, [0], [2**32, 2**32], [2**63, 2], [2**62, 0], [0, 2**63 - 1]])


def change_entry(rng: random.Random, header: dict[str, Any]) -> None:
    """Puts something else into one field of one array."""
    entries = [entry for entry in header.values() if isinstance(entry, dict) and "dtype" in entry]
    if not entries:
        return
    entry = rng.choice(entries)
    key = rng.choice(list(entry))
    how = rng.randrange(7)
    if how == 6:
        entry["more"] = rng.choice(THINGS)
    elif how == 5:
        del entry[key]
    elif isinstance(entry[key], list) and how < 4:
        at = rng.randrange(len(entry[key]) + 1)
        new = [rng.choice([*NUMBERS, *NUMBERS, *THINGS])]
        entry[key] = entry[key][:at] + new[: rng.randrange(3)] + entry[key][at + rng.randrange(2) :]
    elif key == "dtype" and how < 4:
        entry[key] = rng.choice([*DTYPES, *OTHERS])
    else:
        entry[key] = rng.choice(THINGS)


def change_bytes(rng: random.Random, whole: bytearray) -> None:
    """Flips, drops, repeats and puts in bytes."""
    for _ in range(rng.choice([1, 1, 2, 5])):
        at = rng.randrange(len(whole) + 1)
        how = rng.randrange(5)
        if how == 0 and at < len(whole):
            whole[at] ^= 1 << rng.randrange(8)
        elif how == 1:
            del whole[at : at + rng.choice([1, 4, 100])]
        elif how == 2:
            whole[at:at] = rng.choice(
                [b"\0", b"{", b'"', b"[" * 2000, b"\xff\xfe", b"1e9", b"9" * 30, b'{"a":', b"NaN", b" "]
            )
        elif how == 3:
            whole[at:at] = whole[max(0, at - rng.randrange(60)) : at]
        elif len(whole) >= 8:
            old = struct.unpack("<Q", whole[:8])[0]
            new = rng.choice([*LENGTHS, (old + rng.choice([-9, -1, 1, 8])) % 2**64])
            whole[:8] = struct.pack("<Q", new)


def written(rng: random.Random, header: dict[str, Any]) -> bytes:
    """The header in JSON, now and then with a name or a field twice, or with space around."""
    text = json.dumps(header, ensure_ascii=rng.random() < 0.5)
    if rng.random() < 0.05 and len(text) > 2:
        text = f"{text[:-1]}, {text[1:]}"
    if rng.random() < 0.05:
        text = text.replace('"dtype"', '"dtype": "F32", "dtype"', 1)
    return (
        rng.choice([b""] * 40 + [b" ", b"\xef\xbb\xbf"]) + text.encode(errors="surrogatepass") + b" " * rng.randrange(9)
    )


def case(seed: int, number: int) -> bytes:
    """The bytes of a file."""
    rng = random.Random(f"{seed} {number}")
    header, data = sound(rng)
    if rng.random() < 0.4:
        change_header(rng, header)
    if rng.random() < 0.4:
        change_entry(rng, header)
    text = written(rng, header)
    whole = bytearray(struct.pack("<Q", len(text)) + text + data)
    if rng.random() < 0.5:
        change_bytes(rng, whole)
    return bytes(whole)


# ---------------------------------------------------------------- judging them

REFUSED = (
    "the file is not a safetensors file, or is damaged: ",
    "the file is not a file of torch.save, or is damaged: ",
)
# What the library takes, and load does not: the format forbids it, or no array can be like that.
STRICTER = (
    "twice",
    "does not begin with {",
    "no memory has room for",
    "dimensions",
    "lacks a dtype, a shape or data_offsets",  # numbers from 2**63, and entries that are lists
    "nested too deep",
)


def library(data: bytes) -> dict[str, Any] | None:
    """The arrays as the library reads them; None where it refuses the file."""
    try:
        return dict(deserialize(data))
    except (SafetensorError, ValueError):
        return None


def judged(data: bytes) -> str:
    """ "read" or "refused", or what is wrong with how load takes the file."""
    theirs = library(data)
    try:
        found = dt.load(io.BytesIO(data))
    except RuntimeError as error:
        text = str(error)
        if theirs is not None and not any(reason in text for reason in STRICTER):
            return f"the library reads it, but load says {text!r}"
        return "refused" if text.startswith(REFUSED) or "at most 8 dimensions" in text else f"RuntimeError: {text}"
    except TypeError as error:
        known = theirs is not None and "which devtensor does not have" in str(error)
        return "refused" if known else f"TypeError: {error}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    if theirs is None:
        return "load reads it, but the library does not"
    return "read" if same({"array": found} if isinstance(found, dt.DeviceArray) else found, theirs) else "other values"


def same(found: dict[str, dt.DeviceArray], theirs: dict[str, Any]) -> bool:
    if found.keys() != theirs.keys():
        return False
    for name, x in found.items():
        data = bytes(theirs[name]["data"])
        if x.dtype == dt.bool:
            data = bytes(map(bool, data))
        if save_load._CODES[x.dtype] != theirs[name]["dtype"] or list(x.shape) != theirs[name]["shape"]:
            return False
        if x.__reduce__()[1][2] != data:
            return False
    return True


def fuzz(seed: int, count: int) -> tuple[Counter[str], list[str]]:
    """How many files were read and refused, and the findings with the line that shows each again."""
    verdicts: Counter[str] = Counter()
    findings = []
    for number in range(count):
        verdict = judged(case(seed, number))
        verdicts[verdict] += 1
        if verdict not in ("read", "refused"):
            findings.append(f"python tests/process/test_fuzz_files.py {seed} {number} {number}: {verdict}")
    return verdicts, findings


# ---------------------------------------------------------------- tests


def test_mutated_files() -> None:
    verdicts, findings = fuzz(1, COUNT)
    assert findings == []
    assert verdicts["read"] > COUNT / 10 and verdicts["refused"] > COUNT / 2


def test_by_path_as_from_memory(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for number in range(300):
        data = case(2, number)
        path.write_bytes(data)
        outcomes = []
        for f in (path, io.BytesIO(data)):
            try:
                outcomes.append(str(dt.load(f)))
            except (RuntimeError, TypeError) as error:
                outcomes.append(str(error).replace(str(path), "the file"))
        assert outcomes[0] == outcomes[1]


# A check is taken away, or something is done wrongly, and the fuzzer must see it.
PLANTED: dict[str, tuple[Any, str, Any]] = {
    "arrays may overlap, leave holes and end anywhere": (safetensors, "_check_places", lambda entries, nbytes: None),
    "any number is a size": (safetensors, "_LIMIT", 2**70),
    "true is a size": (safetensors, "_sizes", lambda found: tuple(map(int, found)) if type(found) is list else None),
    "names may come twice": (safetensors, "_once", dict),
    "NaN is a number": (safetensors, "_no_number", float),
    "metadata may be anything": (safetensors, "_texts", lambda notes: notes or {}),
    "I16 has eight bits": (safetensors, "_BITS", safetensors._BITS | {"I16": 8}),
    "UTF-8 is not looked at": (safetensors, "_parse", lambda text: json.loads(text.decode(errors="replace"))),
    "one dtype is taken for another": (save_load, "_NAMES", save_load._NAMES | {"F16": dt.bfloat16}),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*PLANTED[bug])
    _, findings = fuzz(1, COUNT // 10)
    assert findings


def main(seed: int, first: int, number: int | None = None) -> None:
    if number is not None:
        print(case(seed, number))
        print(judged(case(seed, number)))
        return
    verdicts, findings = fuzz(seed, first)
    print(*findings, sep="\n")
    print({name: verdicts[name] for name in ("read", "refused")}, len(findings), "findings")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
