"""Checkpoints in PyTorch's files: both ways with PyTorch, shared memory, places, mistakes."""

from __future__ import annotations

import argparse
import dataclasses
import enum
import io
import os
import pickle
import subprocess
import sys
import zipfile
from collections import Counter, OrderedDict, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkpoint_files import in_torch, loaded, of_torch, plant, saved, storage
from formats import DTYPES
from support import bits_of, name_of, no_transfers, python_path

import devtensor as dt
from devtensor import nn, testing
from devtensor._checkpoints import names

# ---------------------------------------------------------------- what a file holds


def data_of(library: Any) -> dict[str, Any]:
    """All kinds of data, without arrays."""
    shared = [1, 2]
    return {
        "none": None,
        "bools": (True, False),
        "ints": [0, 1, 255, 256, 65535, 65536, -1, 2**31, -(2**31), 2**63, -(2**70), 2**500],
        "floats": [0.0, -0.0, 1.5, 1e300, float("inf")],
        "texts": ["", "a", "ключ\n'", "\ud800", "x" * 300],
        "bytes": [b"", b"abc\xff", bytearray(b""), bytearray(b"xy\0")],
        "tuples": ((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)),
        "nested": {"a": [{"b": ({"c": None},)}]},
        "keys": {1: 2, "1": 3, (1, "a"): 4, None: 5, 1.5: 6},
        "ordered": OrderedDict(b=1, a=2),
        "counted": Counter("abba"),
        "sets": [set(), {1, 2, 3}],
        "many": list(range(3000)),
        "wide": {str(i): i for i in range(3000)},
        "shared": [shared, shared],
        "complex": 1 - 2j,
        "dtype": library.float32,
        "device": [library.device("cpu"), library.device("cuda:1")],
    }


def test_data_come_back() -> None:
    want = data_of(dt)
    got = loaded(saved(want))
    assert repr(got) == repr(want)
    assert got["shared"][0] is got["shared"][1]
    more = {"set": frozenset([1]), "default": defaultdict(list, {1: [2]}), "space": argparse.Namespace(lr=0.1, x=[1])}
    assert loaded(saved(more)) == more


def test_data_from_and_for_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    ours, theirs = data_of(dt), data_of(torch)
    plain = {key for key in ours if key not in ("dtype", "device")}
    got = in_torch(saved(ours))
    assert all(repr(got[key]) == repr(ours[key]) for key in plain)
    assert got["dtype"] is torch.float32 and got["device"] == theirs["device"]
    for new in (True, False):
        for protocol in (2, 3, 4, 5):
            back = loaded(of_torch(theirs, pickle_protocol=protocol, _use_new_zipfile_serialization=new))
            assert repr(back) == repr(ours)


def test_lists_and_dictionaries_may_hold_themselves() -> None:
    items: list[Any] = [1]
    items.append({"again": items})
    for got in (loaded(saved(items)), in_torch(saved(items))):
        assert got[0] == 1 and got[1]["again"] is got
    inner: list[Any] = []
    inner.append((inner,))
    got = loaded(saved(inner[0]))
    assert type(got) is tuple and got[0][0] is got


def arrays(device: str = "cpu") -> dict[str, dt.DeviceArray]:
    return {
        f"{name}.{len(shape)}": testing.make_array(*shape, dtype=getattr(dt, name), device=device)
        for name in DTYPES
        for shape in ((), (3,), (2, 3, 5), (0, 4))
    }


def test_arrays_come_back(device: str, tmp_path: Path) -> None:
    want = arrays(device)
    dt.save(want, tmp_path / "a.pt")
    for got in (dt.load(tmp_path / "a.pt"), dt.load(tmp_path / "a.pt", mmap=True)):
        for key, x in want.items():
            assert type(got[key]) is dt.DeviceArray and str(got[key].device) == device and got[key].dtype == x.dtype
            np.testing.assert_array_equal(bits_of(got[key]), bits_of(x), err_msg=key)
    assert all(x.device.type == "cpu" for x in dt.load(tmp_path / "a.pt", "cpu").values())
    got["float32.1"].zero_()  # the file stays as it is
    assert dt.equal(dt.load(tmp_path / "a.pt")["float32.1"], want["float32.1"])
    assert os.listdir(tmp_path) == ["a.pt"]


def test_arrays_from_and_for_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    want = arrays()
    theirs = in_torch(saved(want))
    assert list(theirs) == list(want)
    for key, x in want.items():
        assert str(theirs[key].dtype).split(".")[1] == name_of(x.dtype) and tuple(theirs[key].shape) == x.shape
        assert str(theirs[key].tolist()) == str(x.tolist())
    for data in (of_torch(theirs), of_torch(theirs, _use_new_zipfile_serialization=False)):
        got = loaded(data)
        for key, x in want.items():
            assert got[key].dtype == x.dtype and got[key].stride() == tuple(theirs[key].stride())
            np.testing.assert_array_equal(bits_of(got[key]), bits_of(x), err_msg=key)
    assert loaded(of_torch(torch.ones(2, 3).T)).stride() == (1, 3)


def views(library: Any) -> dict[str, Any]:
    whole = library.arange(24, dtype=library.float32).reshape(4, 6)
    return {
        "whole": whole,
        "turned": whole.T,
        "rows": whole[1:3],
        "column": whole[:, 2],
        "steps": whole[::2, ::3],
        "one": whole[2, 2],
        "expanded": whole[:1].expand(5, 6),
        "none": whole[4:],
    }


def assert_shared(got: dict[str, Any], want: dict[str, Any]) -> None:
    start, first = got["whole"].data_ptr(), want["whole"].data_ptr()
    for key, x in want.items():
        assert got[key].tolist() == x.tolist() and tuple(got[key].stride()) == tuple(x.stride()), key
        assert x.numel() == 0 or got[key].data_ptr() - start == x.data_ptr() - first, key


def test_views_share_their_memory(device: str) -> None:
    ours = views(dt)
    data = saved(ours)
    assert len(data) < 5000  # the memory is there once
    assert_shared(loaded(data), ours)
    on_device = views(dt)["whole"].to(device)
    got = loaded(saved([on_device, on_device[1:]]))
    got[0].zero_()
    assert got[1].sum().item() == 0 and str(got[1].device) == device


def test_views_from_and_for_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    assert_shared(in_torch(saved(views(dt))), views(dt))
    for new in (True, False):
        assert_shared(loaded(of_torch(views(torch), _use_new_zipfile_serialization=new)), views(dt))


def test_parameters_and_buffers() -> None:
    weight = nn.Parameter(dt.ones(3))
    frozen = nn.Parameter(dt.ones(3), requires_grad=False)
    buffer = nn.Buffer(dt.ones(2), persistent=False)
    want = [weight, weight, frozen, buffer, dt.ones(2, requires_grad=True)]
    got = loaded(saved(want))
    assert [type(x) for x in got] == [type(x) for x in want] and got[0] is got[1]
    assert [x.requires_grad for x in got] == [True, True, False, False, True] and got[3].persistent is False
    theirs = in_torch(saved(want))
    assert [x.requires_grad for x in theirs] == [True, True, False, False, True] and theirs[0] is theirs[1]
    again = loaded(of_torch(theirs))
    assert [type(x) for x in again] == [type(x) for x in want]


def test_numbers_and_arrays_of_numpy() -> None:
    dtype = np.dtype("<f4")
    want = {
        "scalars": [np.float64(0.5), np.float32(1), np.int64(-3), np.bool_(True), np.uint8(3)],
        "arrays": [np.arange(3.0), np.arange(6, dtype=np.int16).reshape(2, 3).T, np.zeros((0, 2)), np.array(2.0)],
        "same": [np.ones(2, dtype), np.ones(3, dtype)],
    }
    assert repr(loaded(saved(want))) == repr(want)
    swapped = loaded(saved(np.ones(2, ">f4")))
    assert swapped.dtype == ">f4" and swapped.tolist() == [1, 1]
    for other in (np.array([None, "x"]), np.array(["cat", "dog"]), np.zeros(2, [("a", "f4")]), np.datetime64("2020")):
        data = saved({"a": other})
        assert repr(loaded(data, weights_only=False)) == repr({"a": other})
        with pytest.raises((RuntimeError, pickle.UnpicklingError)):
            loaded(data)
    assert repr(in_torch(saved(want), weights_only=False)) == repr(want)
    for protocol in (2, 4, 5):
        assert repr(loaded(of_torch(want, pickle_protocol=protocol))) == repr(want)


# ---------------------------------------------------------------- checkpoints of training


def training(library: Any) -> tuple[Any, Any, Any]:
    model = library.nn.Sequential(library.nn.Linear(4, 8), library.nn.BatchNorm1d(8), library.nn.Linear(8, 2))
    optimizer = library.optim.Adam(model.parameters(), lr=0.1)
    schedule = library.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 3], gamma=0.5)
    return model, optimizer, schedule


def step(library: Any, model: Any, optimizer: Any, schedule: Any, device: str = "cpu") -> float:
    x = library.arange(12, dtype=library.float32, device=device).reshape(3, 4) / 10
    loss = (model(x) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    return float(loss.item())


def states(parts: tuple[Any, Any, Any]) -> dict[str, Any]:
    return {"epoch": 2, "best": 0.5, "parts": [part.state_dict() for part in parts]}


def take(parts: tuple[Any, Any, Any], checkpoint: dict[str, Any]) -> None:
    for part, state in zip(parts, checkpoint["parts"], strict=True):
        part.load_state_dict(state)


def test_training_goes_on_from_a_checkpoint(device: str, tmp_path: Path) -> None:
    first = training(dt)
    first[0].to(device)
    losses = [step(dt, *first, device) for _ in range(2)]
    path = tmp_path / "last.ckpt"
    dt.save(states(first), path)
    second = training(dt)
    second[0].to(device)
    take(second, dt.load(path, map_location=device))
    assert step(dt, *second, device) == step(dt, *first, device) < losses[0]


def test_training_goes_on_in_the_other_library() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    theirs, ours = training(torch), training(dt)
    for _ in range(2):
        step(torch, *theirs)
    take(ours, loaded(of_torch(states(theirs))))
    for _ in range(2):
        assert step(dt, *ours) == pytest.approx(step(torch, *theirs), rel=1e-4)
    again = training(torch)
    take(again, in_torch(saved(states(ours))))
    assert step(torch, *again) == pytest.approx(step(dt, *ours), rel=1e-4)


class Causal:
    """Models of both libraries; built on each one's nn."""

    def __init__(self, library: Any) -> None:
        nn_, self.library = library.nn, library
        torch_like = library

        class GPT(nn_.Module):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.wte, self.wpe = nn_.Embedding(17, 8), nn_.Embedding(6, 8)
                self.h = nn_.ModuleList(
                    [nn_.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True) for _ in range(2)]
                )
                self.ln_f = nn_.LayerNorm(8)
                self.lm_head = nn_.Linear(8, 17, bias=False)
                self.lm_head.weight = self.wte.weight

            def forward(self, index: Any) -> Any:
                x = self.wte(index) + self.wpe(torch_like.arange(index.shape[1]))
                for block in self.h:
                    x = block(x)
                return self.lm_head(self.ln_f(x))

        class Tagger(nn_.Module):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.embed = nn_.Embedding(17, 5)
                self.lstm = nn_.LSTM(5, 6, num_layers=2, bidirectional=True, batch_first=True)
                self.out = nn_.Linear(12, 3)

            def forward(self, index: Any) -> Any:
                return self.out(self.lstm(self.embed(index))[0])

        def double(into: int, out: int) -> Any:
            return nn_.Sequential(nn_.Conv2d(into, out, 3, padding=1), nn_.BatchNorm2d(out), nn_.ReLU())

        class UNet(nn_.Module):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.down, self.middle, self.pool = double(1, 4), double(4, 8), nn_.MaxPool2d(2)
                self.up, self.last = double(12, 4), nn_.Conv2d(4, 2, 1)

            def forward(self, x: Any) -> Any:
                a = self.down(x)
                b = self.middle(self.pool(a))
                b = b.unsqueeze(-1).unsqueeze(3).expand(*b.shape[:3], 2, b.shape[3], 2)
                b = b.reshape(b.shape[0], b.shape[1], 8, 8)
                return self.last(self.up(torch_like.cat([a, b], dim=1)))

        self.models = {"gpt": GPT, "lstm": Tagger, "unet": UNet}


@pytest.mark.parametrize("name", ["gpt", "lstm", "unet"])
def test_models_of_pytorch(name: str, device: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    theirs, ours = Causal(torch).models[name]().eval(), Causal(dt).models[name]().eval()
    path = tmp_path / f"{name}.pth"
    torch.save({"model": theirs.state_dict(), "config": {"n_layer": 2}}, path)
    ours.load_state_dict(dt.load(path, map_location=device)["model"])
    index = np.array([[1, 2, 3], [4, 5, 16]])
    x: Any = np.random.default_rng(0).standard_normal((2, 1, 8, 8)).astype(np.float32) if name == "unet" else index
    want = theirs(torch.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(ours(dt.from_numpy(x)).tolist(), want, rtol=1e-4, atol=1e-5)
    dt.save(ours.state_dict(), path)
    again = Causal(torch).models[name]().eval()
    again.load_state_dict(torch.load(path, weights_only=True))
    np.testing.assert_allclose(again(torch.from_numpy(x)).detach().numpy(), want, rtol=1e-5, atol=1e-6)
    if name == "gpt":
        kept = dt.load(path)
        assert kept["wte.weight"].data_ptr() == kept["lm_head.weight"].data_ptr()


def test_state_is_assigned() -> None:
    net = nn.Linear(2, 3)
    state = loaded(saved(OrderedDict(weight=dt.ones(3, 2, dtype=dt.float64), extra=dt.ones(1))))
    keys = net.load_state_dict(state, strict=False, assign=True)
    assert keys.missing_keys == ["bias"] and keys.unexpected_keys == ["extra"]
    assert net.weight.dtype == dt.float64 and net.weight.data_ptr() == state["weight"].data_ptr()


# ---------------------------------------------------------------- places


def test_places(cuda: str, tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    dt.save({"a": dt.ones(2, device=cuda), "b": dt.zeros(3)}, path)
    seen: list[tuple[int, str]] = []

    def stay(storage: Any, location: str) -> Any:
        seen.append((storage.numel(), location))
        return storage

    def move(storage: Any, location: str) -> Any:
        return storage.cuda(cuda)

    def devices(*args: Any, **kwargs: Any) -> list[str]:
        found = dt.load(path, *args, **kwargs)
        assert found["a"].tolist() == [1, 1] and found["b"].tolist() == [0, 0, 0]
        return [str(found[key].device) for key in "ab"]

    assert devices() == devices(None) == devices(lambda storage, location: None) == [cuda, "cpu"]
    assert devices("cpu") == devices(dt.device("cpu")) == devices(device="cpu") == ["cpu", "cpu"]
    assert devices(cuda) == devices(device=cuda) == devices(move) == [cuda, cuda]
    assert devices({cuda: "cpu"}) == devices(stay) == ["cpu", "cpu"] and seen == [(8, cuda), (12, "cpu")]
    assert devices({"cpu": cuda}) == [cuda, cuda]
    assert devices({cuda: dt.device("cpu")}, mmap=True) == ["cpu", "cpu"]
    with no_transfers():
        dt.load(path, "cpu")
    for wrong in (1.5, [cuda], b"cpu"):
        with pytest.raises((TypeError, RuntimeError), match="map_location"):
            dt.load(path, wrong)
    with pytest.raises(TypeError, match="map_location must return the storage that it is given"):
        dt.load(path, lambda storage, location: 3)
    with pytest.raises(TypeError, match="not both"):
        dt.load(path, cuda, device=cuda)


NO_GPU = """
import io, sys
import devtensor as dt
for name in sys.argv[1:]:
    try:
        dt.load(name)
    except RuntimeError as error:
        print(error)
    print(dt.load(name, map_location="cpu"), dt.load(name, map_location=lambda storage, location: storage))
"""


def test_a_file_of_a_gpu_on_a_machine_without_one(cuda: str, tmp_path: Path) -> None:
    dt.save(dt.ones(2, device=cuda), tmp_path / "a.pt")
    env = os.environ | {"PYTHONPATH": python_path(), "DEVTENSOR_CUDA": "off"}
    command = [sys.executable, "-c", NO_GPU, str(tmp_path / "a.pt")]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=100)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("Attempting to deserialize object on a CUDA device but"), done.stderr
    assert "map_location='cpu'" in lines[0]
    assert lines[1] == " ".join(2 * ["DeviceArray([1., 1.], device='cpu', dtype=float32)"])


def test_devices_that_are_not_there(cuda: str) -> None:
    count = dt.cuda.device_count()
    for place, text in (
        (f"cuda:{count}", f"CUDA device {count} but cuda.device_count.. is {count}"),
        ("mps", "tagged with 'mps'.*map_location=\"cpu\""),
        ("meta", "tagged with 'meta'"),
        ("cuda:x", "tagged with 'cuda:x'"),
    ):
        data = plant(storage(location=place))
        with pytest.raises(RuntimeError, match=text):
            loaded(data)
        assert loaded(data, "cpu").tolist() == [0, 1]


# ---------------------------------------------------------------- mistakes


def test_what_cannot_be_saved(tmp_path: Path) -> None:
    model = nn.Linear(1, 1)
    model.act = lambda x: x
    for thing, text in (
        ({"f": lambda: 1}, r"obj\['f'\] is .*<lambda>, which no program that reads the file finds as "),
        ([[], (i for i in ())], r"obj\[1\] is generator: cannot pickle 'generator' object"),
        ({"m": [model]}, r"vars\(obj\['m'\]\[0\]\)\['act'\] is .*<lambda>, which no program"),
        (2**5000, "an integer has 626 bytes"),
        (defaultdict(lambda: 1), r"obj\.default_factory is .*<lambda>, which no program"),
    ):
        (tmp_path / "x.pt").write_bytes(b"as it was")
        with pytest.raises(TypeError, match=r"^save\(\): .*" + text):
            dt.save(thing, tmp_path / "x.pt")
        assert (tmp_path / "x.pt").read_bytes() == b"as it was"
    deep: list[Any] = []
    for _ in range(100000):
        deep = [deep]
    with pytest.raises(TypeError, match="nested too deep"):
        saved(deep)


def test_the_name_says_what_is_written(tmp_path: Path) -> None:
    state = {"a": dt.ones(2)}
    for name in ("a.pt", "a.pth", "a.ckpt", "a.bin", "a.tar", "a", "a.PT"):
        dt.save(state, tmp_path / name)
        assert zipfile.is_zipfile(tmp_path / name) and list(dt.load(tmp_path / name)) == ["a"]
    for name in ("a.safetensors", "A.SAFETENSORS"):
        dt.save(state, tmp_path / name)
        assert (tmp_path / name).read_bytes()[8:9] == b"{" and list(dt.load(tmp_path / name)) == ["a"]
    with open(tmp_path / "b.safetensors", "wb") as file:
        dt.save(state, file)
    assert (tmp_path / "b.safetensors").read_bytes()[8:9] == b"{"
    dt.save(state, tmp_path / "c", metadata={"made": "today"})
    assert b"made" in (tmp_path / "c").read_bytes()[:100]
    (tmp_path / "a.pt").rename(tmp_path / "z.safetensors")
    assert list(dt.load(tmp_path / "z.safetensors")) == ["a"]


def test_options_of_pytorch(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    for protocol in (2, 4, pickle.HIGHEST_PROTOCOL):
        dt.save([1], path, pickle, protocol)
    assert dt.load(path, None, pickle, weights_only=False, mmap=False) == dt.load(path, weights_only=None) == [1]
    with pytest.raises(TypeError, match=r"load\(\): argument 'pickle_module' must be pickle or None, not 'json'"):
        dt.load(path, pickle_module=__import__("json"))
    with pytest.raises(NotImplementedError, match="_use_new_zipfile_serialization=False"):
        dt.save([1], path, _use_new_zipfile_serialization=False)
    with pytest.raises(ValueError, match="f must be a file name in order to use the mmap argument"):
        dt.load(io.BytesIO(path.read_bytes()), mmap=True)
    dt.save([1], path)
    first = path.read_bytes()
    dt.save([1], path)
    assert path.read_bytes() == first  # nothing of the day or the process


def test_other_files_in_the_place_of_a_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    array, archive = io.BytesIO(), io.BytesIO()
    np.save(array, np.ones(2))
    np.savez(archive, a=np.ones(2), b=np.ones(3))
    for data, text in (
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "a pointer of Git LFS: `git lfs pull` fetches"),
        (b"\n<!DOCTYPE html><html>", "an HTML page: what was downloaded is not the file"),
        (array.getvalue(), r"a file of NumPy: from_numpy\(numpy.load"),
        (archive.getvalue(), "an archive of NumPy: numpy.load reads it"),
        (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    ):
        path.write_bytes(data)
        with pytest.raises(RuntimeError, match=text):
            dt.load(path)


def test_open_files_are_read_in_place(tmp_path: Path) -> None:
    for name in ("a.pt", "a.safetensors"):
        dt.save({"a": dt.ones(2)}, tmp_path / name)
        with open(tmp_path / name, "rb") as file:
            for _ in range(2):
                assert dt.load(file)["a"].tolist() == [1, 1]
        with open(tmp_path / name, "r+b") as file:
            assert dt.load(file)["a"].tolist() == [1, 1]
        with open(tmp_path / name, "rb", buffering=0) as raw:
            assert dt.load(raw)["a"].tolist() == [1, 1]
        (tmp_path / "shifted").write_bytes(b"head" + (tmp_path / name).read_bytes())
        with open(tmp_path / "shifted", "rb") as file:
            file.seek(4)
            assert dt.load(file)["a"].tolist() == [1, 1]


def test_two_dtypes_over_one_memory() -> None:
    x = dt.zeros(4)
    other = dt._C._strided(x, dt.int32, (4,), (1,), 0)
    with pytest.raises(RuntimeError, match="Cannot save multiple tensors or storages that view the same data as diff"):
        saved([x, other])


def test_memory_in_which_an_array_stands_askew() -> None:
    x = dt.frombuffer(bytearray(9), dtype=dt.uint8)
    y = dt._C._strided(x, dt.int32, (2,), (1,), 0)  # 9 bytes are no number of int32
    assert loaded(saved(y)).tolist() == in_torch(saved(y)).tolist() == [0, 0]


def test_what_does_not_lie_in_the_memory() -> None:
    """Of an empty array too; sizes that overflow are no way round."""
    x = dt.zeros(4)
    for shape, strides, offset in (
        *(((0,), (1,), 17), ((0, 2**40), (2**40, 2**40), 10**6), ((0,), (1,), 2), ((2**40, 0), (2**40, 1), -4)),
        *(((5,), (1,), 0), ((2,), (2**62,), 0)),
    ):
        with pytest.raises(ValueError, match="do not lie in the memory"):
            dt._C._strided(x, dt.float32, shape, strides, offset)
    assert dt._C._strided(x, dt.float32, (0, 2**40), (2**40, 2**40), 16).shape == (0, 2**40)


def test_bools_of_other_bytes() -> None:
    for numbers, right in (([0, 1, 1], True), ([0, 2, 1], False)):
        memory = names.Memory(dt.tensor(numbers, dtype=dt.uint8), dt.uint8)
        if right:
            assert names._strided(memory, 0, (3,), (1,), dt.bool).tolist() == [False, True, True]
        else:
            with pytest.raises(ValueError, match="neither 0 nor 1"):
                names._strided(memory, 0, (3,), (1,), dt.bool)


@dataclasses.dataclass
class Options:
    lr: float
    layers: list[int]


class Mode(enum.Enum):
    FAST = 1


class Slotted:
    __slots__ = ("a",)

    class Inner:
        def __init__(self, x: Any) -> None:
            self.x = x


class Several(list[Any]):
    pass


def test_one_name_of_a_class_with_and_without_trust() -> None:
    inner = Slotted.Inner([1])
    plain = saved([inner, Slotted.Inner])
    with pytest.raises(pickle.UnpicklingError, match=r"object of .*\.Slotted\.Inner; .*add_safe_globals\(\[Inner\]\)"):
        loaded(plain)
    for given in ([Slotted.Inner], [Slotted, Slotted.Inner]):
        with dt.serialization.safe_globals(given):
            assert saved([inner, Slotted.Inner]) == plain
            got = loaded(plain)
            assert got[0].x == [1] and got[1] is Slotted.Inner and type(got[0]) is Slotted.Inner
    assert loaded(plain, weights_only=False)[1] is Slotted.Inner
    with dt.serialization.safe_globals([Several]):
        assert loaded(saved(Several([1, 2])), weights_only=False) == [1, 2]
    with dt.serialization.safe_globals([(Slotted.Inner, "elsewhere.Thing")]):
        data = saved(inner)
        assert loaded(data).x == [1] and b"celsewhere\nThing\n" in data


def test_classes_that_the_program_trusts() -> None:
    slotted = Slotted()
    slotted.a = dt.ones(2)
    held = {"options": Options(0.1, [1, 2]), "mode": Mode.FAST, "slotted": slotted}
    with dt.serialization.safe_globals([Options, Mode, Slotted]):
        data = saved(held)
        got = loaded(data)
        assert got["options"] == held["options"] and got["mode"] is Mode.FAST and got["slotted"].a.tolist() == [1, 1]
        assert set(dt.serialization.get_safe_globals()) == {Options, Mode, Slotted}
    with pytest.raises(pickle.UnpicklingError, match=r"object of .*test_checkpoints.Options; .*globals\(\[Options\]\)"):
        loaded(data)
    assert dt.serialization.get_safe_globals() == []
    for wrong, kind in ((3, TypeError), (os.system, ValueError), (("a", "b"), TypeError)):
        with pytest.raises(kind, match="add_safe_globals"):
            dt.serialization.add_safe_globals([wrong])
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    with torch.serialization.safe_globals([Options]):
        assert in_torch(of_torch(Options(0.5, []))) == Options(0.5, [])
    with dt.serialization.safe_globals([(Options, f"{__name__}.Options"), Mode]):
        assert loaded(of_torch([Options(0.5, []), Mode.FAST])) == [Options(0.5, []), Mode.FAST]
