"""Files with whole modules, optimizers and objects of the program's classes, as torch.save(model, f) makes them."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import enum
import functools
import io
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from checkpoint_files import loaded, of_torch, plant, saved
from support import DEVICES, python_path

import devtensor as dt
from devtensor import nn


class Color(enum.Enum):
    RED = 1


@dataclasses.dataclass
class Options:
    lr: float = 0.1
    color: Color = Color.RED


class Slotted:
    __slots__ = ("a",)


class Several(list[Any]):
    pass


class Named(dict[str, Any]):
    pass


class Reduced:
    def __reduce__(self) -> Any:
        return _made, (3,), {"b": 4}, iter(()), iter(()), _put


class Evil:
    ran = False

    def __reduce__(self) -> Any:
        return setattr, (Evil, "ran", True)


def _made(a: int) -> Any:
    made = Reduced.__new__(Reduced)
    made.__dict__["a"] = a
    return made


def _put(obj: Any, state: Any) -> None:
    obj.__dict__.update(state)


class Net(nn.Module):
    class Inner(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(3, 3)

        def forward(self, x: Any) -> Any:
            return self.fc(x)

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.fc, self.inner = nn.Linear(2, 3), Net.Inner()
        self.tied, self.act, self.options = self.fc.weight, nn.functional.relu, Options(0.5)
        self.register_buffer("fleeting", dt.ones(1), persistent=False)
        self.register_forward_hook(passes)
        self.parameters = nn.ParameterList([nn.Parameter(dt.ones(1))])  # hidden by the method

    def forward(self, x: Any) -> Any:
        return self.inner(self.act(self.fc(self.convs(x)))) * self.fleeting


def passes(module: Any, args: Any, output: Any) -> None:
    module.options.lr += 1


def trained(device: str) -> tuple[Net, Any, Any, Any]:
    net = Net().to(device)
    optimizer = dt.optim.Adam(net.parameters(), lr=0.1)
    scheduler = dt.optim.lr_scheduler.StepLR(optimizer, 1)
    x = dt.ones(2, 1, 5, 5, device=device)
    net(x).sum().backward()
    optimizer.step()
    scheduler.step()
    return net.eval(), optimizer, scheduler, x


@pytest.mark.parametrize("device", DEVICES)
def test_a_whole_module_comes_back(device: str, tmp_path: Path) -> None:
    net, optimizer, scheduler, x = trained(device)
    path = tmp_path / "net.pt"
    dt.save({"net": net, "parts": [net, net.fc], "optimizer": optimizer, "scheduler": scheduler}, path)
    got = dt.load(path, weights_only=False)
    copy = got["net"]
    assert type(copy) is Net and got["parts"][0] is copy and got["parts"][1] is copy.fc and copy.tied is copy.fc.weight
    assert not copy.training and copy.options == net.options and copy.act is nn.functional.relu
    assert dt.equal(copy(x), net(x)) and list(copy.state_dict()) == list(net.state_dict())
    assert {str(p.device) for p in copy.parameters()} == {str(x.device)} and "fleeting" not in copy.state_dict()
    held = got["optimizer"]
    assert all(p is q for p, q in zip(held.param_groups[0]["params"], copy.parameters(), strict=True))
    assert {id(p) for p in held.state} <= {id(p) for p in copy.parameters()} and got["scheduler"].optimizer is held
    for one, updates in ((net, optimizer), (copy, held)):
        updates.zero_grad()
        one.train()(x).sum().backward()
        updates.step()
    assert all(dt.equal(a, b) for a, b in zip(net.state_dict().values(), copy.state_dict().values(), strict=True))
    on_host = dt.load(path, map_location="cpu", weights_only=False, mmap=True)["net"]
    assert {str(value.device) for value in on_host.state_dict().values()} == {"cpu"}
    dt.save(net.fc, path)
    assert repr(dt.load(path, weights_only=False)) == repr(net.fc)


def test_it_is_refused_unless_its_writer_is_trusted() -> None:
    for thing, name in (
        (Net(), "a whole module of class .*test_whole_modules.Net"),
        ([{"a": nn.Linear(1, 1)}], r"a whole module of class devtensor\.nn\.layers\.Linear"),
        (nn.Linear, r"a whole module of class devtensor\.nn\.layers\.Linear"),
        (dt.optim.SGD(nn.Linear(1, 1).parameters(), lr=0.1), "an object of devtensor.optim.sgd.SGD"),
        (Options(), "an object of .*Options"),
        (Evil(), "an object of builtins.setattr"),
    ):
        data = saved(thing)
        for how in ({}, {"weights_only": True}, {"weights_only": None}):
            with pytest.raises(pickle.UnpicklingError, match=f"{name}; load.*weights_only=False.*state_dict"):
                loaded(data, **how)
    assert not Evil.ran
    loaded(saved(Evil()), weights_only=False)
    assert Evil.ran
    Evil.ran = False


def test_objects_of_classes_of_the_program() -> None:
    slotted, several, named = Slotted(), Several([1, 2]), Named(a=3)
    slotted.a, several.more, named.me = dt.ones(2), {"x": 1}, named
    default: Any = collections.defaultdict(Options)
    default["a"].lr = 3.0
    net = Net()
    things = {
        "options": Options(2.0), "slotted": slotted, "several": several, "named": named, "reduced": Reduced(),
        "function": passes, "class": Net.Inner, "method": net.forward, "builtin": len, "path": Path("/a"),
        "part": functools.partial(max, 3), "date": datetime.date(2020, 1, 2), "default": default, "plain": object(),
        "net": net, "ordered": collections.OrderedDict(a=1), "point": dt.nn._state.IncompatibleKeys([], ["a"]),
    }  # fmt: skip
    got = loaded(saved(things), weights_only=False)
    assert list(got) == list(things)
    for same in ("options", "date", "path", "default", "ordered", "point", "several", "function", "class", "builtin"):
        assert got[same] == things[same] and type(got[same]) is type(things[same]), same
    assert got["slotted"].a.tolist() == [1, 1] and got["several"].more == {"x": 1} and got["named"].me is got["named"]
    assert vars(got["reduced"]) == {"a": 3, "b": 4} and got["part"](2) == 3 and type(got["plain"]) is object
    assert got["method"].__self__ is got["net"]
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    for known in ("options", "several", "date", "default", "class", "part"):  # which PyTorch reads as well
        data = saved([things[known], dt.ones(2)])
        there = torch.load(io.BytesIO(data), weights_only=False)
        assert repr(there[0]) == repr(things[known]) and there[1].tolist() == [1, 1]
        assert repr(loaded(of_torch(things[known]), weights_only=False)) == repr(things[known])


def test_a_program_without_the_class(tmp_path: Path) -> None:
    for name, kind in (("__main__\nMissing", AttributeError), ("nowhere_at_all\nMissing", ModuleNotFoundError)):
        data = plant(b"c" + name.encode() + b"\n.")
        with pytest.raises(kind, match="the file has an object of .*Missing.*must have Missing there"):
            loaded(data, weights_only=False)
    with pytest.raises(RuntimeError, match="is damaged: its pickle ends too early"):
        loaded(plant(b"]"), weights_only=False)
    with pytest.raises(
        pickle.UnpicklingError, match="the file: it names torch.nowhere.Thing, which devtensor has noth"
    ):
        loaded(plant(b"ctorch.nowhere\nThing\n."), weights_only=False)


LAYERS: dict[str, tuple[Any, ...]] = {
    "Linear": (2, 3), "Conv2d": (2, 3, 3), "ConvTranspose2d": (2, 3, 3), "BatchNorm2d": (2,), "LayerNorm": (3,),
    "GroupNorm": (1, 2), "Embedding": (4, 2), "LSTM": (2, 3), "GRU": (2, 3), "LSTMCell": (2, 3),
    "MultiheadAttention": (4, 2), "TransformerEncoderLayer": (4, 2, 8), "TransformerDecoderLayer": (4, 2, 8),
    "ReLU": (), "GELU": (), "Softmax": (1,), "Dropout": (), "MaxPool2d": (2,), "AdaptiveAvgPool2d": (1,),
    "Flatten": (), "Upsample": (None, 2), "PReLU": (), "CrossEntropyLoss": (), "Bilinear": (2, 2, 2),
    "InstanceNorm2d": (2,), "ZeroPad2d": (1,), "ModuleDict": ({},), "ParameterList": ([],), "ReLU6": (),
}  # fmt: skip


def test_layers_of_pytorch() -> None:
    """Their attributes have the same names here."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    for name, arguments in LAYERS.items():
        theirs, ours = (getattr(lib.nn, name)(*arguments) for lib in (torch, dt))
        for new in (True, False):
            data = of_torch(theirs.eval(), _use_new_zipfile_serialization=new)
            got = loaded(data, weights_only=False)
            assert type(got) is type(ours) and vars(ours).keys() <= vars(got).keys() and not got.training, name
            assert repr(got) == repr(ours) and list(got.state_dict()) == list(theirs.state_dict()), name
            for value, want in zip(got.state_dict().values(), theirs.state_dict().values(), strict=True):
                assert value.tolist() == want.tolist()
        again = loaded(saved(ours), weights_only=False)
        assert repr(again) == repr(ours) and vars(again).keys() == vars(ours).keys()
    layer = torch.nn.LSTM(2, 3)
    x = [[[1.0, 2.0]], [[-1.0, 0.5]]]
    got = loaded(of_torch(layer), weights_only=False)(dt.tensor(x))[0]
    assert dt.allclose(got, dt.tensor(layer(torch.tensor(x))[0].tolist()), atol=1e-6)


def test_modules_of_pytorch_with_hooks_and_buffers() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    theirs = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Tanh())
    theirs.register_buffer("kept", torch.ones(1))
    theirs.register_buffer("fleeting", torch.zeros(1), persistent=False)
    theirs.options, theirs.act = Options(0.0), torch.sigmoid
    theirs.register_forward_hook(passes)
    got = loaded(
        of_torch({"model": theirs, "optimizer": torch.optim.SGD(theirs.parameters(), 0.1)}), weights_only=False
    )
    model = got["model"]
    assert [name for name, _ in model.named_buffers()] == ["kept", "fleeting"] and "kept" in model.state_dict()
    x = dt.ones(1, 1)
    model(x).sum().backward()
    got["optimizer"].step()
    assert model.options.lr == 1.0 and got["optimizer"].param_groups[0]["params"][0] is model[0].weight
    assert model.act(x).tolist() == dt.sigmoid(x).tolist() and model[0].weight.grad is not None


PROGRAM = """
import sys, torch, torch.nn as nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 1)
    def forward(self, x):
        return torch.tanh(self.fc(x))
x = torch.ones(1, 2)
if sys.argv[1] == "write":
    torch.manual_seed(0)
    torch.save([Net(), nn.Sequential(nn.Linear(2, 1), nn.ReLU())], sys.argv[2])
try:
    torch.load(sys.argv[2])
except Exception as error:
    print(type(error).__name__, "Net" in str(error) and "weights_only" in str(error))
net, layers = torch.load(sys.argv[2], weights_only=False)
print(type(net).__name__, isinstance(net, Net), [round(v, 4) for v in [*net(x)[0].tolist(), *layers(x)[0].tolist()]])
"""


def test_programs_of_pytorch_as_they_are(tmp_path: Path) -> None:
    """What one program writes another reads, also what PyTorch has written."""
    pytest.importorskip("torch", reason="PyTorch is not installed")
    program = tmp_path / "prog.py"
    program.write_text(PROGRAM)
    env = os.environ | {"PYTHONPATH": python_path()}

    def out(*command: str) -> list[str]:
        done = subprocess.run([sys.executable, *command], env=env, capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    ours = ("-m", "devtensor", "run", "--as-torch", str(program))
    theirs = out(str(program), "write", str(tmp_path / "a.pt"))
    assert theirs[0] == "UnpicklingError True" and out(*ours, "read", str(tmp_path / "a.pt"))[:2] == theirs
    written = out(*ours, "write", str(tmp_path / "b.pt"))
    assert out(*ours, "read", str(tmp_path / "b.pt"))[:2] == written[:2] and written[0] == theirs[0]
