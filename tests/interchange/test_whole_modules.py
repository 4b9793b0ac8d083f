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
from typing import Any, ClassVar

import pytest
from checkpoint_files import in_torch, loaded, of_torch, plant, saved
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


# ---------------------------------------------------------------- what else programs do


class Wrong:
    """Raises an error of its own where it is made again."""

    error: Exception

    def __getstate__(self) -> Any:
        return {"a": 1}

    def __setstate__(self, state: Any) -> None:
        raise type(self).error


def test_errors_of_the_program_come_out_as_they_are() -> None:
    for error in (ValueError("lr must be positive"), EOFError("mine"), TypeError("it has no wheels"), KeyError("a")):
        Wrong.error = error
        with pytest.raises(type(error)) as found:
            loaded(saved([Wrong()]), weights_only=False)
        assert found.value is error
    for data in (b")Q.", b"(tQ."):
        with pytest.raises(pickle.UnpicklingError, match="refers to something that is no storage"):
            loaded(plant(data), weights_only=False)
    with pytest.raises(TypeError, match="the file: it has an array of complex64"):
        loaded(plant(b"ctorch\ncomplex64\n."), weights_only=False)


class Held:
    held: Any


def test_a_set_that_is_reached_from_inside_itself() -> None:
    for kind in (set, frozenset):
        one = Held()
        one.held = kind([one])
        for start in (one, one.held):
            got = loaded(saved(start), weights_only=False)
            item = got if start is one else next(iter(got))
            assert next(iter(item.held)) is item and (start is one or item.held is got)


def test_types_that_have_no_name() -> None:
    want = [type(None), type(...), type(NotImplemented), ..., NotImplemented]
    assert loaded(saved(want), weights_only=False) == want == pickle.loads(pickle.dumps(want, 2))


class Seen:
    seen: ClassVar[list[Any]] = []

    def __init__(self, x: Any) -> None:
        self.x = x

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)
        Seen.seen.append(self.x.tolist())

    class Inner(dict[str, Any]):
        pass


def test_files_of_before_1_6_run_code_once() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    thing = [Seen(torch.tensor([1.0, 2.0])), Seen.Inner(a=3), {Color.RED}, Several([1]), torch.nn.Linear(1, 1).forward]
    Seen.seen.clear()
    got = loaded(of_torch(thing, _use_new_zipfile_serialization=False), weights_only=False)
    assert Seen.seen == [[1.0, 2.0]] and got[1:4] == thing[1:4] and got[4](dt.ones(1, 1)).shape == (1, 1)


ANEW = """
import io, sys, torch
import torch.optim.swa_utils
import torch.utils.data as data
o, m = torch.ones, torch.nn.Linear(1, 1)
things = [
    torch.optim.Adam(m.parameters()), torch.optim.lr_scheduler.StepLR(torch.optim.SGD(m.parameters(), 0.1), 1),
    torch.distributions.Normal(0.0, 1.0), torch.optim.swa_utils.AveragedModel(m), data.TensorDataset(o(2)),
    torch.nn.utils.rnn.pack_padded_sequence(o(3, 2, 1), [3, 2]), torch.nn.init.xavier_uniform_,
]
for thing in things:
    file = io.BytesIO()
    torch.save(thing, file)
    sys.stdout.write(file.getvalue().hex() + "\\n")
"""
READ = "import sys, io, devtensor as dt; print(type(dt.load(io.BytesIO(sys.stdin.buffer.read()), weights_only=False)))"


def test_packages_that_the_program_has_not_used() -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    env = os.environ | {"PYTHONPATH": python_path()}
    files = subprocess.run([sys.executable, "-c", ANEW], capture_output=True, text=True, check=True, timeout=100)
    wanted = ("Adam", "StepLR", "Normal", "AveragedModel", "TensorDataset", "PackedSequence", "function")
    for line, want in zip(files.stdout.split(), wanted, strict=True):
        got = subprocess.run([sys.executable, "-c", READ], input=bytes.fromhex(line), env=env, capture_output=True)
        assert want in got.stdout.decode(), got.stderr.decode()


def test_what_agrees_with_pytorch_and_what_is_refused() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    d, o = torch.distributions, torch.ones
    for agrees in (
        *(d.Normal(0.0, o(2)), d.Categorical(o(2)), d.Independent(d.Gamma(o(2), o(2)), 1), d.HalfCauchy(1.0)),
        *(d.LogNormal(0.0, 1.0), d.VonMises(o(1), o(1)), d.LowRankMultivariateNormal(o(2), o(2, 1), o(2))),
    ):
        x = agrees.sample()
        got = loaded(of_torch(agrees), weights_only=False)
        assert dt.allclose(got.log_prob(dt.tensor(x.tolist())), dt.tensor(agrees.log_prob(x).tolist()), atol=1e-4)
    keys = torch.nn.Linear(1, 1).load_state_dict({}, strict=False)
    assert loaded(of_torch(keys), weights_only=False).missing_keys == ["weight", "bias"]
    assert loaded(of_torch(torch.Tensor.relu), weights_only=False)(dt.tensor(-1.0)).item() == 0
    for other in (
        *(d.Beta(o(1), o(1)), d.InverseGamma(1.0, 2.0), d.MultivariateNormal(o(2), torch.eye(2)), torch.no_grad()),
        *(torch.utils.data.DataLoader([1]), torch.autocast("cpu"), torch.Generator()),
        torch.optim.lr_scheduler.CyclicLR(torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), 0.1), 0.1, 0.2),
        d.Wishart(o(1) * 3, torch.eye(2)),
    ):
        with pytest.raises(
            pickle.UnpicklingError, match=f"has an object of torch.*{type(other).__name__}, whose attrib"
        ):
            loaded(of_torch(other), weights_only=False)
    for name in ("quantized.dynamic.modules.linear", "qat.modules.conv", "quantizable.modules.rnn", "intrinsic"):
        for kind in (b"Linear", b"Conv2d", b"LSTM"):
            with pytest.raises(
                pickle.UnpicklingError, match=f"names torch.nn.{name}.*, which devtensor has nothing for"
            ):
                loaded(plant(b"ctorch.nn." + name.encode() + b"\n" + kind + b"\n."), weights_only=False)


def test_data_parallel_of_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    theirs = torch.nn.DataParallel(torch.nn.Linear(2, 3))
    got = loaded(of_torch([theirs]), weights_only=False)[0]
    assert dt.allclose(got(dt.ones(4, 2)), dt.tensor(theirs(torch.ones(4, 2)).tolist()), atol=1e-6)
    assert vars(got).keys() == vars(nn.DataParallel(nn.Linear(2, 3), [])).keys()
    assert list(loaded(saved(got), weights_only=False).state_dict()) == list(theirs.state_dict())


@pytest.mark.parametrize("device", DEVICES)
def test_data_parallel_of_a_machine_with_more_gpus(device: str) -> None:
    state = {"_modules": {"module": nn.Linear(2, 3).to(device)}, "training": True, "dim": 0}
    state |= {"device_ids": [*range(64)], "output_device": 63, "src_device_obj": dt.device("cpu")}
    got = nn.DataParallel.__new__(nn.DataParallel)
    got.__setstate__(state)
    here = dt.cuda.device_count() if device.startswith("cuda") else 0
    assert got.device_ids == [*range(here)] and got(dt.ones(4, 2, device=device)).shape == (4, 3)


STATES = """
import sys, torch
class Updates(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.old = torch.nn.Linear(2, 1), 3
        self.parameters = torch.nn.ReLU()  # hidden by the method
        self.register_buffer("b", torch.ones(1), persistent=False)
    def __setstate__(self, state):
        assert "fc" in state["_modules"] or "fc" in state
        self.__dict__.update(state)
        self.__dict__.setdefault("new", 1)
class Calls(Updates):
    def __setstate__(self, state):
        super().__setstate__(state)
        self.calls = 1
if sys.argv[1] == "write":
    torch.save([Updates(), Calls()], sys.argv[2])
one, other = torch.load(sys.argv[2], weights_only=False)
for m in (one, other):
    print(m.fc(torch.ones(1, 2)).shape, m.new, m.old, list(m.state_dict()), m.b.tolist(), len([*m.modules()]))
print(other.calls)
"""


def test_modules_with_a_setstate_of_their_own(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    program = tmp_path / "prog.py"
    program.write_text(STATES)
    env = os.environ | {"PYTHONPATH": python_path()}
    outs = []
    for how, ours in (("write", False), ("read", True), ("write", True), ("read", True)):
        command = [sys.executable, *(("-m", "devtensor", "run", "--as-torch") if ours else ()), str(program), how]
        done = subprocess.run([*command, str(tmp_path / "a.pt")], env=env, capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, done.stderr
        outs.append(done.stdout.replace("torch.Size([1, 1])", "(1, 1)").splitlines()[:3])
    assert all(out == outs[0] for out in outs), outs


def test_attributes_of_a_parameter() -> None:
    p, plain = nn.Parameter(dt.ones(2), False), nn.Parameter(dt.ones(2))
    p.tag, p.more = "x", {"a": [1]}  # type: ignore[attr-defined]
    for how in ({}, {"weights_only": False}):
        got = loaded(saved([p, p, plain]), **how)
        assert vars(got[0]) == vars(p) and got[1] is got[0] and vars(got[2]) == {} and not got[0].requires_grad
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    assert in_torch(saved(p)).tag == "x"
    theirs = torch.nn.Parameter(torch.ones(2))
    theirs.tag, theirs.nbytes_ = "y", 3
    for how in ({}, {"weights_only": False}):
        assert vars(loaded(of_torch(theirs), **how)) == {"tag": "y", "nbytes_": 3}


class Touches(nn.Linear):
    def __getstate__(self) -> Any:
        state = self.__dict__.copy()
        state["_modules"] = dict(state["_modules"])
        return state


def test_attributes_in_the_place_of_the_books() -> None:
    with pytest.raises(TypeError, match="Touches, whose __getstate__ wants '_modules' of its __dict__.*self._modules"):
        saved(Touches(1, 1))
    for name in ("_parameter_names", "_buffer_names", "_module_names", "_hooks_of_module", "_child", "_hold"):
        with pytest.raises(
            AttributeError, match=f"class Linear cannot have an attribute '{name}': devtensor keeps its"
        ):
            setattr(nn.Linear(1, 1), name, ["x"])
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    for name in ("_module_names", "_child"):
        theirs = torch.nn.Sequential(torch.nn.Linear(1, 1))
        setattr(theirs, name, ["x"])
        with pytest.raises(
            AttributeError, match=f"class Sequential cannot have an attribute '{name}': devtensor keeps"
        ):
            loaded(of_torch(theirs), weights_only=False)
