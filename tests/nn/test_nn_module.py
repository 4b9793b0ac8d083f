"""Modules: registration, state, moves, hooks, text; Parameter and Buffer."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import no_transfers, synchronize

import devtensor as dt
from devtensor import nn


class Block(nn.Module):
    def __init__(self, width: int = 3, device: Any = None) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=False, device=device)
        self.bn1 = nn.BatchNorm2d(width, device=device)
        self.register_buffer("scale", dt.ones(1, device=device), persistent=False)

    def forward(self, x: dt.DeviceArray) -> dt.DeviceArray:
        return dt.relu(self.bn1(self.conv1(x)) * self.scale) + x


class Net(nn.Module):
    def __init__(self, device: Any = None) -> None:
        super().__init__()
        self.layer = nn.Sequential(Block(device=device), Block(device=device))
        self.head = nn.Linear(3, 2, device=device)
        self.offset = nn.Parameter(dt.zeros(2, device=device))

    def forward(self, x: dt.DeviceArray) -> dt.DeviceArray:
        return self.head(self.layer(x).mean((2, 3))) + self.offset


KEYS = [
    "offset",
    *[
        f"layer.{i}.{name}"
        for i in range(2)
        for name in (
            "conv1.weight",
            "bn1.weight",
            "bn1.bias",
            "bn1.running_mean",
            "bn1.running_var",
            "bn1.num_batches_tracked",
        )
    ],
    "head.weight",
    "head.bias",
]

# ---------------------------------------------------------------- Parameter and Buffer


def test_a_parameter_is_an_array(device: str) -> None:
    data = dt.ones(2, 3, device=device)
    p = nn.Parameter(data)
    assert isinstance(p, dt.DeviceArray) and isinstance(p, nn.Parameter)
    assert type(p).__module__ == "devtensor.nn" and type(p).__name__ == "Parameter"
    assert p.data_ptr() == data.data_ptr()
    assert type(p.data) is dt.DeviceArray and p.data.data_ptr() == p.data_ptr()
    assert not isinstance(data, nn.Parameter)
    assert p.requires_grad is True and not nn.Parameter(data, requires_grad=False).requires_grad
    assert nn.Parameter(data, requires_grad=True).shape == nn.Parameter(data, False).shape == (2, 3)
    assert repr(p).startswith("Parameter([[1., 1., 1.],\n           [1., 1., 1.]], device=")
    assert hash(p) == hash(p) and p in [p]


@pytest.mark.filterwarnings("ignore:array.*no gradient flows back from the copy")
def test_what_ops_make_of_a_parameter_is_plain(device: str) -> None:
    p = nn.Parameter(dt.ones(2, 3, device=device))
    x = dt.ones(2, 3, device=device)
    made: list[Any] = [
        *(p + x, x + p, p + 1, 1 - p, -p, p @ p.T, x @ p.mT, p == x, x < p, p**2, p[0], p[:, 1:], *p),
        *(
            p.T,
            p.mT,
            p.reshape(6),
            p.view(3, 2),
            p.detach(),
            p.clone(),
            p.sum(),
            p.double(),
            p.exp(),
            p.expand(4, 2, 3),
        ),
        *(p.flatten(), p.to("cpu", dt.float16), p.new_zeros(2), dt.zeros_like(p), dt.relu(p), dt.linear(x, p)),
        *(dt.where(p > 0, p, x), dt.cat([p, p]), p.split(1)[0], p.contiguous().abs(), p.softmax(1), dt.array(p)),
    ]
    assert {type(y) for y in made} == {dt.DeviceArray}
    assert p.to(device) is p and p.float() is p and p.contiguous() is p
    before = p
    with dt.no_grad():
        p += 1
        assert p is before and type(p) is nn.Parameter and p.sum().item() == 12
        assert p.add_(1) is p


def test_values_of_a_parameter_beside_a_plain_array() -> None:
    x, p = dt.array([1.0, 2.0, 3.0]), nn.Parameter(dt.array([2.0, 2.0, 2.0]))
    assert (x < p).tolist() == [True, False, False]
    assert (p < x).tolist() == [False, False, True]
    assert (x - p).tolist() == [-1, 0, 1]
    assert (x**p).tolist() == [1, 4, 9]
    np.testing.assert_array_equal(np.asarray(p.detach()), [2, 2, 2])


def test_parameters_take_only_arrays() -> None:
    for wrong in (1.0, [1.0], np.ones(2), None):
        with pytest.raises(TypeError, match="must be DeviceArray"):
            nn.Parameter(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        nn.Parameter(dt.ones(1), True, True)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        nn.Parameter.anything = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "again",
    [lambda x: pickle.loads(pickle.dumps(x)), lambda x: pickle.loads(pickle.dumps(x, 2)), copy.deepcopy],
)
def test_copies_of_parameters(again: Callable[[Any], Any], device: str) -> None:
    p = nn.Parameter(dt.randn(2, 3, device=device))
    for kept in (p, nn.Buffer(p), nn.Buffer(p, persistent=False)):
        new = again(kept)
        assert type(new) is type(kept)
        assert new.tolist() == kept.tolist() and new.device == kept.device
        assert new.data_ptr() != kept.data_ptr()
        if isinstance(kept, nn.Buffer):
            assert new.persistent is kept.persistent
    first, second = again([p, p])
    assert first is second
    assert type(copy.copy(p)) is nn.Parameter and copy.copy(p).data_ptr() == p.data_ptr()


def test_parameters_come_and_go(device: str) -> None:
    x = dt.ones(3, device=device)
    p = nn.Parameter(x)
    kept, gone = [p], weakref.ref(p)
    del p

    def use() -> None:
        made = (nn.Parameter(x), nn.Buffer(x), nn.Parameter(x).data, copy.copy(kept[0]), nn.Parameter(x) + 1)
        assert len(made) == 5

    use()
    synchronize()
    blocks = dt._C._test.live_blocks()
    for _ in range(300):
        use()
    synchronize()
    assert dt._C._test.live_blocks() == blocks
    kept.clear()
    assert gone() is None
    assert type(dt.ones(3)) is dt.DeviceArray


# ---------------------------------------------------------------- registration


def test_names_are_pytorchs() -> None:
    net = Net()
    assert list(net.state_dict()) == KEYS
    assert [name for name, _ in net.named_parameters()] == [k for k in KEYS if "running" not in k and "num_b" not in k]
    assert [name for name, _ in net.named_buffers()][:4] == [
        "layer.0.scale",
        "layer.0.bn1.running_mean",
        "layer.0.bn1.running_var",
        "layer.0.bn1.num_batches_tracked",
    ]
    assert [name for name, _ in net.named_modules()][:4] == ["", "layer", "layer.0", "layer.0.conv1"]
    assert [name for name, _ in net.named_children()] == ["layer", "head"]
    assert len(list(net.modules())) == 9 and len(list(net.children())) == 2
    assert sum(p.numel() for p in net.parameters()) == 2 * (81 + 6) + 8 + 2
    assert net.get_submodule("layer.0.conv1") is net.layer[0].conv1
    assert net.get_parameter("head.bias") is net.head.bias
    assert net.get_buffer("layer.1.scale") is net.layer[1].scale
    assert list(net._modules) == ["layer", "head"] and net._parameters["offset"] is net.offset
    net._modules["more"] = nn.Identity()
    assert isinstance(net.more, nn.Identity) and [name for name, _ in net.named_children()] == ["layer", "head", "more"]


def test_shared_parts_count_once() -> None:
    shared = nn.Linear(2, 2)
    net = nn.Sequential(shared, nn.ReLU(), shared)
    assert len(list(net.parameters())) == 2 and len(list(net.modules())) == 3
    assert list(net.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    tied = nn.Linear(2, 2, bias=False)
    tied.weight = shared.weight
    both = nn.ModuleList([shared, tied]).double()
    assert both[0].weight is both[1].weight and len(list(both.parameters())) == 2


def test_attributes_are_registered_by_what_they_are() -> None:
    m = nn.Module()
    m.w, m.plain, m.child, m.b = (
        nn.Parameter(dt.ones(1)),
        dt.ones(1),
        nn.ReLU(),
        nn.Buffer(dt.ones(1), persistent=False),
    )
    assert list(m.state_dict()) == ["w"]
    assert [n for n, _ in m.named_buffers()] == ["b"]
    m.w = None
    assert m.w is None and list(m.parameters()) == []
    m.w = nn.Parameter(dt.zeros(2))
    assert list(m.state_dict()) == ["w"]
    m.b = dt.zeros(3)
    assert [x.shape for x in m.buffers()] == [(3,)]
    m.child = nn.Parameter(dt.ones(1))
    assert list(m.children()) == [] and list(m.state_dict()) == ["w", "child"]
    del m.w
    assert not hasattr(m, "w") and list(m.state_dict()) == ["child"]
    m.plain = nn.Parameter(m.plain)
    assert list(m.state_dict()) == ["child", "plain"]


@pytest.mark.parametrize(
    ("action", "error", "text"),
    [
        (
            lambda m: setattr(m, "weight", dt.ones(2, 2)),
            TypeError,
            "cannot assign 'devtensor.DeviceArray' as parameter",
        ),
        (lambda m: setattr(m, "weight", 3), TypeError, "cannot assign 'int' as parameter 'weight'"),
        (lambda m: setattr(m, "child", 3), TypeError, "cannot assign 'int' as child module 'child'"),
        (lambda m: setattr(m, "buf", "x"), TypeError, "cannot assign 'str' as buffer 'buf'"),
        (lambda m: m.register_parameter("a.b", None), KeyError, '"." or be empty'),
        (lambda m: m.register_buffer("", None), KeyError, "or be empty"),
        (lambda m: m.register_buffer("weight", None), KeyError, "attribute 'weight' already exists"),
        (lambda m: m.register_parameter("forward", None), KeyError, "attribute 'forward' already exists"),
        (lambda m: m.register_parameter("x", dt.ones(1)), TypeError, "Parameter or None required"),
        (lambda m: m.register_buffer("x", 1), TypeError, "DeviceArray or None required"),
        (lambda m: m.register_module("x", 1), TypeError, "int is not a Module subclass"),
        (lambda m: m.register_module(1, nn.ReLU()), TypeError, "name should be a string"),
        (lambda m: m.nothing, AttributeError, "'Linear' object has no attribute 'nothing'"),
        (lambda m: m.get_submodule("child.x"), AttributeError, "'ReLU' object has no attribute 'x'"),
        (lambda m: m.get_parameter("child"), AttributeError, "'child' is not a Parameter"),
        (lambda m: m.train("yes"), ValueError, "expected to be boolean"),
        (lambda m: nn.Module(3), TypeError, "takes none"),
        (lambda m: nn.Module()(1), NotImplementedError, 'missing the required "forward"'),
    ],
)
def test_mistakes_in_registration(action: Callable[[Any], Any], error: type[Exception], text: str) -> None:
    m = nn.Linear(2, 2)
    m.child, m.buf = nn.ReLU(), nn.Buffer(dt.ones(1))
    with pytest.raises(error) as caught:
        action(m)
    assert text in str(caught.value)
    assert list(m.state_dict()) == ["weight", "bias", "buf"]
    assert m.requires_grad_(False) is m
    m.zero_grad()


def test_a_forgotten_super_init_is_said() -> None:
    class Bad(nn.Module):
        def __init__(self) -> None:
            self.fc = nn.Linear(2, 2)

    with pytest.raises(AttributeError, match=r"before Module.__init__\(\) call: super\(\).__init__\(\) comes first"):
        Bad()

    class Empty(nn.Module):
        def __init__(self) -> None:
            pass

    with pytest.raises(AttributeError, match=r"has not called super\(\).__init__\(\)"):
        Empty()(1)


# ---------------------------------------------------------------- containers


def test_sequential() -> None:
    net = nn.Sequential(OrderedDict(first=nn.Linear(2, 3), act=nn.ReLU()))
    assert list(net.state_dict()) == ["first.weight", "first.bias"]
    assert net.first is net[0] and net[-1] is net.act and len(net) == 2
    assert isinstance(net[:1], nn.Sequential) and list(net[:1].state_dict()) == ["first.weight", "first.bias"]
    net = nn.Sequential(nn.ReLU())
    net.append(nn.Tanh()).extend([nn.Sigmoid()])
    net.insert(1, nn.GELU())
    assert [type(m).__name__ for m in net] == ["ReLU", "GELU", "Tanh", "Sigmoid"]
    del net[0]
    assert [name for name, _ in net.named_children()] == ["0", "1", "2"]
    net[0] = nn.Identity()
    assert type(net.pop(-1)).__name__ == "Sigmoid" and len(net) == 2
    with pytest.raises(IndexError):
        net[2]
    x = dt.array([1.0])
    assert nn.Sequential()(x) is x


def test_lists_and_dictionaries() -> None:
    layers = nn.ModuleList(nn.Linear(2, 2) for _ in range(3))
    layers += [nn.ReLU()]
    assert len(layers + [nn.Tanh()]) == 5 and len(layers[1:]) == 3
    assert list(layers.state_dict())[:3] == ["0.weight", "0.bias", "1.weight"]
    heads = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
    heads["c"] = nn.Identity()
    assert list(heads) == list(heads.keys()) == ["a", "b", "c"] and "a" in heads and len(heads.items()) == 3
    heads["a"] = nn.GELU()
    assert type(heads.pop("a")) is nn.GELU and "a" not in heads
    heads.clear()
    assert len(heads) == 0
    with pytest.raises(KeyError):
        heads["a"]
    with pytest.raises(KeyError, match="already exists"):
        heads["keys"] = nn.ReLU()
    numbers = nn.ParameterList([dt.ones(1), nn.Parameter(dt.ones(2))])
    numbers.append(dt.ones(3))
    assert [p.shape for p in numbers] == [(1,), (2,), (3,)] and list(numbers.state_dict()) == ["0", "1", "2"]
    numbers[0] = dt.zeros(4)
    assert numbers[-3].shape == (4,) and len(numbers[:2]) == 2
    named = nn.ParameterDict({"x": dt.ones(1)})
    named["y"] = dt.ones(2)
    assert list(named.state_dict()) == ["x", "y"] and type(named["y"]) is nn.Parameter
    del named["x"]
    assert list(named) == ["y"]


# ---------------------------------------------------------------- to, train, apply


def placement(module: nn.Module) -> set[tuple[str, str]]:
    return {(str(x.device), str(x.dtype)) for x in [*module.parameters(), *module.buffers()]}


def test_to_moves_and_casts_everything(cuda: str) -> None:
    net = Net()
    before = {k: v.tolist() for k, v in net.state_dict().items()}
    assert net.to(cuda) is net
    assert placement(net) == {(cuda, "devtensor.float32"), (cuda, "devtensor.int64")}
    assert {k: v.tolist() for k, v in net.state_dict().items()} == before
    assert type(net.head.weight) is nn.Parameter and type(net.layer[0].scale) is dt.DeviceArray
    assert net(dt.ones(1, 3, 4, 4, device=cuda)).device == cuda
    net.to("cpu", dt.float64)
    assert placement(net) == {("cpu", "devtensor.float64"), ("cpu", "devtensor.int64")}
    net.to(dt.ones(1, dtype=dt.float16, device=cuda))
    assert placement(net) == {(cuda, "devtensor.float16"), (cuda, "devtensor.int64")}
    net.to(device="cpu", dtype="float32", non_blocking=True).to(dt.float64).to(torch_style := dt.float32)
    assert torch_style in {p.dtype for p in net.parameters()}
    assert placement(net.cuda(cuda[-1:] and int(cuda[-1]))) >= {(cuda, "devtensor.float32")}
    kept = net.head.weight
    with no_transfers():
        assert net.to(cuda).head.weight is kept
    assert placement(net.cpu().half().bfloat16().double().float()) == placement(Net())
    assert next(net.to(0).parameters()).device == "cuda:0"
    assert next(net.type(dt.float16).buffers()).dtype == dt.float16


def test_to_is_all_or_nothing() -> None:
    net = Net()
    weight = net.head.weight
    for wrong in (lambda: net.to("cuda:77"), lambda: net.to(dt.int32), lambda: net.to("cpu", "nonsense")):
        with pytest.raises((RuntimeError, TypeError)):
            wrong()
    for wrong in (lambda: net.to(1, 2, 3, 4), lambda: net.to(colour=1), lambda: net.to("cpu", device="cpu")):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(TypeError, match="only accepts floating point dtypes, but got desired dtype=devtensor.int32"):
        net.to(dtype=dt.int32)
    assert net.head.weight is weight


def test_construction_on_a_device(device: str) -> None:
    with no_transfers():
        net = Net(device=device)
    assert {d for d, _ in placement(net)} == {device}
    layers = [
        nn.Linear(2, 2, device=device, dtype=dt.float16),
        nn.Conv2d(2, 2, 1, device=device, dtype=dt.float16),
        nn.Conv1d(2, 2, 1, device=device, dtype=dt.float16),
        nn.BatchNorm2d(2, device=device, dtype=dt.float16),
        nn.LayerNorm(2, device=device, dtype=dt.float16),
        nn.Embedding(2, 2, device=device, dtype=dt.float16),
    ]
    for layer in layers:
        assert {(p.device, p.dtype) for p in layer.parameters()} == {(dt.device(device), dt.float16)}


def test_train_and_apply() -> None:
    net, seen = Net(), []
    assert net.training and net.eval() is net
    assert not any(m.training for m in net.modules())
    net.layer.train()
    assert net.layer[0].bn1.training and not net.training
    assert net.apply(lambda m: seen.append(type(m).__name__)) is net
    assert seen[0] == "Conv2d" and seen[-1] == "Net" and len(seen) == 9


# ---------------------------------------------------------------- state


def test_state_dictionaries(device: str) -> None:
    net, other = Net(device=device), Net()
    state = net.state_dict()
    assert {type(v) for v in state.values()} == {dt.DeviceArray}
    assert state["offset"].data_ptr() == net.offset.data_ptr()
    assert type(net.state_dict(keep_vars=True)["offset"]) is nn.Parameter
    kept = other.head.weight
    result = other.load_state_dict(state)
    assert result.missing_keys == result.unexpected_keys == []
    assert repr(result) == "<All keys matched successfully>"
    assert other.head.weight is kept and str(kept.device) == "cpu"
    assert {k: v.tolist() for k, v in other.state_dict().items()} == {k: v.tolist() for k, v in state.items()}
    x = dt.randn(1, 3, 4, 4)
    net.eval(), other.eval()
    np.testing.assert_allclose(other(x).tolist(), net(x.to(device)).tolist(), rtol=1e-5, atol=1e-5)


def test_loading_is_strict_unless_told() -> None:
    net = Net()
    state = dict(net.state_dict())
    offset = net.offset.tolist()
    del state["head.bias"]
    state["more"] = dt.ones(1)
    state["head.weight"] = dt.ones(5, 3, dtype=dt.float64)
    state["layer.0.conv1.weight"] = np.ones((3, 3, 3, 3))  # type: ignore[assignment]
    state["offset"] = dt.ones(2)
    with pytest.raises(RuntimeError) as caught:
        net.load_state_dict(state)
    lines = str(caught.value).splitlines()
    assert lines[0] == "Error(s) in loading state_dict for Net:"
    assert lines[1] == '\tMissing key(s) in state_dict: "head.bias".'
    assert lines[2] == '\tUnexpected key(s) in state_dict: "more".'
    assert 'the parameter named "layer.0.conv1.weight"' in lines[3]
    assert lines[4] == (
        "\tsize mismatch for head.weight: copying a param with shape (5, 3) (devtensor.float64) from checkpoint, "
        "the shape in current model is (2, 3) (devtensor.float32)."
    )
    assert net.offset.tolist() == offset
    with pytest.raises(RuntimeError, match="size mismatch for head.weight"):
        net.load_state_dict(state, strict=False)
    state["head.weight"], state["layer.0.conv1.weight"] = dt.ones(2, 3, dtype=dt.float64), dt.ones(3, 3, 3, 3)
    missing, unexpected = net.load_state_dict(state, strict=False)
    assert (missing, unexpected) == (["head.bias"], ["more"])
    assert net.offset.tolist() == [1, 1] and net.head.weight.dtype == dt.float32
    with pytest.raises(TypeError, match="dict-like"):
        net.load_state_dict([1])  # type: ignore[arg-type]


def test_assigning_a_state(device: str) -> None:
    net, state = Net(), Net(device=device).double().state_dict()
    net.load_state_dict(state, assign=True)
    assert str(net.head.weight.device) == device and net.head.weight.dtype == dt.float64
    assert type(net.head.weight) is nn.Parameter and net.head.weight.data_ptr() == state["head.weight"].data_ptr()


@pytest.mark.parametrize("again", [lambda x: pickle.loads(pickle.dumps(x)), copy.deepcopy])
def test_copies_of_modules(again: Callable[[Any], Any], device: str) -> None:
    net = Net(device=device).eval()
    new = again(net)
    x = dt.ones(1, 3, 2, 2, device=device)
    assert new(x).tolist() == net(x).tolist()
    assert list(new.state_dict()) == KEYS and not new.training
    with dt.no_grad():
        new.head.bias.fill_(7)
    assert net.head.bias.amax().item() != 7


def test_modules_do_not_stay_alive() -> None:
    net = Net()
    gone = weakref.ref(net)
    with pytest.raises(RuntimeError):
        net(dt.ones(1, 3, 4, 4, device="cuda"))
    del net
    gc.collect()
    assert gone() is None


# ---------------------------------------------------------------- hooks


def test_hooks() -> None:
    m, log = nn.Linear(2, 2), []

    def before(module: nn.Module, args: tuple[Any, ...]) -> Any:
        log.append("before")
        return args[0] * 0

    def after(module: nn.Module, args: tuple[Any, ...], output: dt.DeviceArray) -> Any:
        log.append("after")
        assert module is m and args[0].tolist() == [0, 0]
        return output + 1

    first, second = m.register_forward_pre_hook(before), m.register_forward_hook(after)
    third = m.register_forward_hook(lambda *_: log.append("first"), prepend=True)
    assert m(dt.ones(2)).tolist() == (m.bias + 1).tolist()  # type: ignore[operator]
    assert log == ["before", "first", "after"]
    third.remove(), third.remove()
    first.remove()
    with second:
        pass
    log.clear()
    m(dt.ones(2))
    assert log == []


def test_hooks_with_keywords() -> None:
    class Two(nn.Module):
        def forward(self, x: int, y: int = 1) -> int:
            return x + y

    m = Two()
    m.register_forward_pre_hook(lambda m, args, kwargs: (args, {"y": 10}), with_kwargs=True)
    m.register_forward_hook(lambda m, args, kwargs, out: out + kwargs["y"], with_kwargs=True)
    assert m(1, y=5) == 21


# ---------------------------------------------------------------- text


def test_repr_is_pytorchs() -> None:
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding="same", dilation=2, bias=False),
        nn.Sequential(nn.BatchNorm2d(8), nn.ReLU(inplace=True)),
        nn.Linear(8, 2),
    )
    assert repr(net) == (
        "Sequential(\n"
        "  (0): Conv2d(1, 8, kernel_size=(3, 3), stride=(1, 1), padding=same, dilation=(2, 2), bias=False)\n"
        "  (1): Sequential(\n"
        "    (0): BatchNorm2d(8, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)\n"
        "    (1): ReLU(inplace=True)\n"
        "  )\n"
        "  (2): Linear(in_features=8, out_features=2, bias=True)\n"
        ")"
    )
    assert repr(nn.ReLU()) == "ReLU()" and repr(nn.Sequential()) == "Sequential()"


def test_code_written_for_pytorch() -> None:
    @dt.no_grad()
    def run(x: dt.DeviceArray) -> dt.DeviceArray:
        return x + 1

    @dt.inference_mode
    def other(x: dt.DeviceArray) -> dt.DeviceArray:
        return x + 1

    with dt.inference_mode(), dt.set_grad_enabled(False), dt.enable_grad():
        assert run(dt.ones(1)).item() == other(dt.ones(1)).item() == 2
    x = nn.Parameter(dt.ones(2), requires_grad=True)
    assert x.requires_grad is True and x.detach().data_ptr() == x.data_ptr() and not x.detach().requires_grad
    assert dt.is_tensor(x) and not dt.is_tensor(1)
    x.requires_grad_(True)
    x.sum().backward()
    assert x.grad.tolist() == [1, 1]
