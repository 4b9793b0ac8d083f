"""save and load: every dtype, every device, files of other writers, files that are damaged or hostile."""

from __future__ import annotations

import io
import json
import os
import pickle
import re
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from formats import DTYPES
from support import bits_of, name_of, no_transfers

import devtensor as dt
from devtensor import nn, testing


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.safetensors"


def everything(device: str) -> dict[str, dt.DeviceArray]:
    found = {
        f"{name}.{len(shape)}": testing.make_array(*shape, dtype=getattr(dt, name), device=device)
        for name in DTYPES
        for shape in ((), (3,), (2, 3, 5), (0, 4))
    }
    found["turned"] = dt.randn(4, 3, device=device).T
    found["parameter"] = nn.Parameter(dt.randn(5, device=device))
    found["ключ с \"'\n"] = dt.ones(1, device=device)
    return found


def assert_same(got: Any, want: dict[str, dt.DeviceArray], device: str) -> None:
    assert list(got) == list(want)
    for key, x in want.items():
        y = got[key]
        assert type(y) is dt.DeviceArray and y.dtype == x.dtype and y.shape == x.shape and str(y.device) == device
        np.testing.assert_array_equal(bits_of(y), bits_of(x), err_msg=key)


def test_round_trip(path: Path, device: str) -> None:
    want = everything(device)
    dt.save(want, path)
    assert_same(dt.load(path), want, "cpu")
    assert_same(dt.load(str(path), device=device), want, device)
    assert_same(dt.load(path, map_location=dt.device(device)), want, device)
    assert_same(dt.load(path, device), want, device)
    assert os.listdir(path.parent) == [path.name]


def test_what_is_loaded_can_be_written(path: Path) -> None:
    dt.save({"a": dt.ones(3), "b": dt.ones(3, dtype=dt.bool)}, path)
    first = dt.load(path)
    first["a"] += 1
    first["b"].zero_()
    assert first["a"].tolist() == [2, 2, 2]
    assert dt.load(path)["a"].tolist() == [1, 1, 1]


def test_one_array(path: Path, device: str) -> None:
    x = dt.randn(2, 3, device=device)
    dt.save(x, path)
    got = dt.load(path, device=device)
    assert isinstance(got, dt.DeviceArray) and dt.equal(got, x)
    dt.save({"array": x}, path)
    assert list(dt.load(path)) == ["array"]
    dt.save({}, path)
    assert dt.load(path) == {}


def test_open_files(path: Path) -> None:
    want = everything("cpu")
    want["parameter"] = want["parameter"].detach()  # a file in memory is one for torch.load, which keeps what it is
    memory = io.BytesIO()
    dt.save(want, memory)
    memory.seek(0)
    assert_same(dt.load(memory), want, "cpu")
    with open(path, "wb") as file:
        dt.save(want, file)
    with open(path, "rb") as file:
        assert_same(dt.load(file), want, "cpu")
    with pytest.raises(RuntimeError, match="the file is not a safetensors file, or is damaged"):
        dt.load(io.BytesIO(b"nothing of the kind"))


def test_a_model(path: Path, device: str) -> None:
    net = nn.Sequential(nn.Conv2d(1, 2, 3, device=device), nn.BatchNorm2d(2, device=device), nn.Flatten())
    dt.save(net.state_dict(), path)
    other = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten()).to(device)
    assert other.load_state_dict(dt.load(path, device=device)).missing_keys == []
    x = dt.randn(1, 1, 5, 5, device=device)
    assert dt.equal(net.eval()(x), other.eval()(x))


def test_transfers_are_those_that_were_asked_for(path: Path, cuda: str) -> None:
    dt.save({"a": dt.ones(5)}, path)
    with no_transfers():
        dt.load(path)
    before = dt._C.counters()
    dt.load(path, device=cuda)
    dt.save({"a": dt.ones(5, device=cuda)}, path)
    after = dt._C.counters()
    assert after["bytes_to_device"] - before["bytes_to_device"] == 20
    assert after["bytes_to_host"] - before["bytes_to_host"] == 20


def test_metadata_and_alignment(path: Path) -> None:
    dt.save({"a": dt.ones(3, dtype=dt.uint8), "b": dt.ones(2, dtype=dt.float64)}, path, metadata={"made": "heute"})
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    assert length % 8 == 0 and header["__metadata__"] == {"made": "heute"}
    assert header["b"]["data_offsets"] == [0, 16] and header["a"]["data_offsets"] == [16, 19]
    assert list(dt.load(path)) == ["a", "b"]


# ---------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("thing", "text"),
    [
        ([dt.ones(1)], "argument 'obj' must be an array or a dictionary of arrays, not list"),
        (nn.ReLU(), r"not ReLU: its state_dict\(\) can be saved"),
        ({"epoch": 3}, "'epoch' is int, and a safetensors file holds arrays only"),
        ({"a": {"b": dt.ones(1)}}, "'a' is dict"),
        ({"x": np.ones(1)}, "'x' is ndarray"),
        ({1: dt.ones(1)}, "keys must be strings"),
        ({"__metadata__": dt.ones(1)}, "keys must be strings"),
    ],
)
def test_what_cannot_be_saved(thing: Any, text: str, path: Path) -> None:
    path.write_bytes(b"as it was")
    with pytest.raises(TypeError, match=text):
        dt.save(thing, path)
    assert path.read_bytes() == b"as it was" and os.listdir(path.parent) == [path.name]


def test_wrong_metadata_and_places(path: Path) -> None:
    with pytest.raises(TypeError, match="metadata must be a dictionary of strings, not 'a': 1"):
        dt.save({}, path, metadata={"a": 1})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="metadata must be a dictionary of strings, not int"):
        dt.save({}, path, metadata=3)  # type: ignore[arg-type]
    for arrays, notes in (({"\ud800": dt.ones(1)}, {}), ({}, {"a": "\ud800"}), ({}, {"\ud800": "a"})):
        with pytest.raises(ValueError, match=r"^save\(\): .*surrogates not allowed"):
            dt.save(arrays, path, metadata=notes)
    assert not path.exists()
    with pytest.raises(FileNotFoundError):
        dt.save({}, path.parent / "no" / "folder")
    with pytest.raises(FileNotFoundError):
        dt.load(path)
    dt.save({}, path)
    with pytest.raises(TypeError, match="not both"):
        dt.load(path, "cpu", device="cpu")
    for wrong in ({"cuda:0": "cpu"}, lambda storage, location: storage):
        with pytest.raises(TypeError, match="map_location must be a device"):
            dt.load(path, wrong)
    dt.save({"a": dt.ones(1)}, path)
    with pytest.raises(dt.DeviceNotAvailableError):
        dt.load(path, "cuda:9")


def test_a_failing_write_leaves_the_old_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dt.save({"a": dt.ones(2)}, path)

    def full(*args: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr("devtensor._files.save_load._write", full)
    with pytest.raises(OSError, match="No space left"):
        dt.save({"a": dt.zeros(2)}, path)
    assert dt.load(path)["a"].tolist() == [1, 1] and os.listdir(path.parent) == [path.name]


def test_other_pickles_are_refused(path: Path) -> None:
    path.write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(RuntimeError, match="is not a file of torch.save, or is damaged: it is a pickle"):
        dt.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", b"")
    with pytest.raises(RuntimeError, match="is not a file of torch.save, or is damaged: its pickle ends too early"):
        dt.load(path)


def packed(header: Any, data: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(dtype: str = "F32", shape: Any = (1,), offsets: Any = (0, 4)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


DAMAGED = {
    "empty": b"",
    "short": b"\x10\0\0",
    "no header": packed(b"", length=100),
    "huge header": packed(b"{}", length=2**63),
    "no json": packed(b"{nothing"),
    "list": packed(b"[1, 2]"),
    "no utf-8": packed(b'{"\xff": 1}'),
    "deep": packed(b"[" * 100000),
    "missing fields": packed({"a": {"dtype": "F32"}}),
    "wrong types": packed({"a": entry(shape=["x"])}, b"1234"),
    "negative shape": packed({"a": entry(shape=[-1])}, b"1234"),
    "truncated": packed({"a": entry()}, b"12"),
    "too long": packed({"a": entry()}, b"123456"),
    "size differs": packed({"a": entry(shape=[2])}, b"1234"),
    "overflow": packed({"a": entry(shape=[2**62, 4, 4])}, b"1234"),
    "backwards": packed({"a": entry(offsets=[4, 0])}, b"1234"),
    "outside": packed({"a": entry(offsets=[2**40, 2**40 + 4])}, b"1234"),
    "overlap": packed({"a": entry(), "b": entry(offsets=[2, 6])}, b"123456"),
    "hole": packed({"a": entry(), "b": entry(offsets=[8, 12])}, b"123456789012"),
    "unknown dtype": packed({"a": entry("F31")}, b"1234"),
    "metadata": packed({"__metadata__": {"a": 1}}),
    "metadata list": packed({"__metadata__": ["a"]}),
    "huge and empty": packed({"a": entry(shape=[2**63, 0], offsets=[0, 0])}),
    "largest and empty": packed({"a": entry(shape=[2**63 - 1, 0], offsets=[0, 0])}),
    "empty first": packed({"a": entry(shape=[0, 2**62, 4], offsets=[0, 0])}),
    "a number too long to read": packed(
        b'{"a":{"dtype":"F32","shape":[0,1' + b"0" * 5000 + b'],"data_offsets":[0,0]}}'
    ),
    "huge offsets": packed({"a": entry(offsets=[2**64, 2**64 + 4])}, b"1234"),
    "negative offsets": packed({"a": entry(offsets=[-4, 0])}, b"1234"),
    "three offsets": packed({"a": entry(offsets=[0, 4, 8])}, b"1234"),
    "a size with a point": packed({"a": entry(shape=[1.0])}, b"1234"),
    "a size that is true": packed({"a": entry(shape=[True])}, b"1234"),
    "a size that is no number": packed(b'{"a":{"dtype":"F32","shape":[NaN],"data_offsets":[0,4]}}', b"1234"),
    "infinite": packed(b'{"a":{"dtype":"F32","shape":[Infinity],"data_offsets":[0,4]}}', b"1234"),
    "no number elsewhere": packed(b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":NaN}}', b"1234"),
    "a name twice": packed(
        b'{"a":' + json.dumps(entry()).encode() + b',"a":' + json.dumps(entry()).encode() + b"}", b"1234"
    ),
    "a field twice": packed(b'{"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}}', b"1234"),
    "half a character": packed(rb'{"\ud800":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', b"1234"),
    "half a character of metadata": packed(rb'{"__metadata__":{"a":"\ud800"}}'),
    "deep inside": packed(b'{"a":' * 100000),
    "utf-16": packed(json.dumps({"a": entry()}).encode("utf-16"), b"1234"),
    "utf-8 with a mark": packed(b"\xef\xbb\xbf{}"),
    "space first": packed(b" {}"),
    "more after it": packed(b"{} {}"),
    "a dtype that is no text": packed({"a": entry() | {"dtype": 32}}, b"1234"),
    "an entry that is no dictionary": packed({"a": 3}),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_files(name: str, path: Path) -> None:
    path.write_bytes(DAMAGED[name])
    with pytest.raises(RuntimeError) as caught:
        dt.load(path)
    assert str(caught.value).startswith(f"{path} is not a safetensors file, or is damaged: ")
    with pytest.raises(RuntimeError):
        dt.load(io.BytesIO(DAMAGED[name]))


def test_a_header_whose_length_looks_like_a_pickle(path: Path) -> None:
    text = json.dumps({"a": entry()}).encode()
    path.write_bytes(packed(text + b" " * (0x280 - len(text)), b"\0\0\x80\x3f"))
    assert path.read_bytes()[:2] == b"\x80\2" and dt.load(path)["a"].tolist() == [1]


def test_every_cut_of_a_file_is_noticed(path: Path) -> None:
    dt.save({"a": dt.ones(2), "b": dt.zeros(3, dtype=dt.int16)}, path)
    raw = path.read_bytes()
    for length in range(len(raw)):
        path.write_bytes(raw[:length])
        with pytest.raises(RuntimeError, match="damaged"):
            dt.load(path)


def test_dtypes_that_are_not_there(path: Path) -> None:
    path.write_bytes(packed({"fine": entry(), "odd": entry("U32", offsets=[4, 8])}, b"12345678"))
    with pytest.raises(TypeError, match="'odd' has dtype U32, which devtensor does not have"):
        dt.load(path)


def test_bytes_of_a_bool(path: Path) -> None:
    path.write_bytes(packed({"a": entry("BOOL", [4], [0, 4])}, bytes([0, 1, 2, 255])))
    assert bits_of(dt.load(path)["a"]).tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize("size", [0, 1])
def test_too_many_dimensions(size: int, path: Path) -> None:
    path.write_bytes(packed({"a": entry(shape=[size] * 30, offsets=[0, 4 * size])}, b"1234" * size))
    with pytest.raises(RuntimeError, match=f"{re.escape(str(path))}: 'a': .*at most 8 dimensions, but got 30"):
        dt.load(path)


def test_a_file_of_another_model_changes_nothing(path: Path) -> None:
    dt.save({"weight": dt.ones(5, 2, dtype=dt.float64), "extra": dt.ones(1)}, path)
    net = nn.Linear(2, 3)
    before = net.weight.tolist()
    with pytest.raises(RuntimeError) as caught:
        net.load_state_dict(dt.load(path))
    for part in ('"extra"', '"bias"', "weight", "(5, 2)", "devtensor.float64", "(3, 2)", "devtensor.float32"):
        assert part in str(caught.value)
    assert net.weight.tolist() == before


# ---------------------------------------------------------------- PyTorch


def test_files_from_and_for_pytorch(path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from safetensors.torch import load_file, save_file

    want = {key: x for key, x in everything("cpu").items() if key != "turned"}
    dt.save(want, path)
    theirs = load_file(path)
    assert sorted(theirs) == sorted(want)
    for key, x in want.items():
        assert str(theirs[key].dtype).split(".")[1] == name_of(x.dtype) and tuple(theirs[key].shape) == x.shape
        assert str(theirs[key].tolist()) == str(x.tolist())
    save_file(theirs, path)
    got = dt.load(path)
    for key, x in want.items():
        np.testing.assert_array_equal(bits_of(got[key]), bits_of(x))
    for new in (True, False):
        torch.save({"a": torch.ones(1)}, path, _use_new_zipfile_serialization=new)
        assert dt.load(path)["a"].tolist() == [1]


def test_a_model_of_pytorch(path: Path, device: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from safetensors.torch import load_file, save_file

    def build(lib: Any) -> Any:
        return lib.Sequential(
            lib.Conv2d(3, 8, 3, stride=2, padding=1, bias=False),
            lib.BatchNorm2d(8),
            lib.ReLU(),
            lib.Sequential(lib.Conv2d(8, 8, 3, groups=8), lib.BatchNorm2d(8), lib.ReLU6()),
            lib.AdaptiveAvgPool2d(1),
            lib.Flatten(),
            lib.Linear(8, 4),
        )

    theirs = build(torch.nn)
    theirs(torch.randn(4, 3, 16, 16))
    save_file(theirs.state_dict(), path)
    ours = build(nn).to(device).eval()
    ours.load_state_dict(dt.load(path))
    x = np.random.default_rng(0).standard_normal((2, 3, 16, 16)).astype(np.float32)
    want = theirs.eval()(torch.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(ours(dt.from_numpy(x).to(device)).tolist(), want, rtol=1e-4, atol=1e-5)
    dt.save(ours.state_dict(), path)
    again = build(torch.nn).eval()
    again.load_state_dict(load_file(path))
    np.testing.assert_allclose(again(torch.from_numpy(x)).detach().numpy(), want, rtol=1e-5, atol=1e-6)
