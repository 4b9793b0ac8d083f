"""What arrays do in a program that runs --as-torch, and else not: follow others to a GPU, and keep attributes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import devtensor as dt

pytestmark = pytest.mark.skipif(os.environ.get("DEVTENSOR_TEST_DEVICES") == "real", reason="starts simulated devices")


def run(path: Path, text: str, *flags: str) -> subprocess.CompletedProcess[str]:
    (path / "script.py").write_text("import torch\n" + text)
    env = {k: v for k, v in os.environ.items() if k != "DEVTENSOR_CUDA"}
    env["PYTHONPATH"] = str(Path(dt.__file__).parent.parent)
    command = [sys.executable, "-m", "devtensor", "run", "--simulate", "1", "--as-torch", *flags, "script.py"]
    return subprocess.run(command, cwd=path, env=env, capture_output=True, text=True, timeout=120)


FOLLOWING = """
x = torch.arange(6.0).reshape(2, 3).to("cuda")
i, m, s = torch.tensor([1, 0]), torch.tensor([True, False]), torch.tensor(2.0)
assert x[i].tolist() == [[3, 4, 5], [0, 1, 2]] and x[m].tolist() == [[0, 1, 2]] and x[i, i].tolist() == [4, 0]
y = x.clone()
y[m] = 5.0
y[i, i] = torch.tensor(9.0)
assert y.tolist() == [[9, 5, 5], [3, 9, 5]]
y[0] = torch.ones(3)
c = torch.zeros(3)
c[:] = y[0]
assert y[0].tolist() == c.tolist() == [1, 1, 1]
for z in (x / s, s / (x + 1), x == s, x ** s, torch.mul(x, s), torch.mul(s, x), torch.where(x > s, x, s),
          x.clamp(min=s), torch.maximum(x, s), torch.lerp(x, x, s), torch.addcmul(x, x, s),
          x.masked_fill(x > s, s), torch.fmod(s, x)):
    assert z.is_cuda and z.shape == (2, 3)
y = x.clone()
y += s
y.mul_(s)
y.sub_(s, alpha=0.5)
y.masked_fill_(y > 10, s)
assert y.tolist() == [[3, 5, 7], [9, 2, 2]] and s.device.type == "cpu" and s.item() == 2
w = torch.tensor(3.0, requires_grad=True)
(x * w).sum().backward()
assert w.grad.device.type == "cpu" and w.grad.item() == 15
"""


def test_numbers_and_indices_follow_as_in_pytorch(tmp_path: Path) -> None:
    done = run(tmp_path, FOLLOWING)
    assert done.returncode == 0, done.stderr
    assert "script.py:5" in done.stderr and ".to()" in done.stderr  # each copy is reported


# What PyTorch refuses, too.
REFUSED = ["x + torch.ones(3)", "s.add_(x)", "torch.zeros(2, 3)[i.to('cuda')]", "torch.cat([x, torch.ones(2, 3)])",
           "torch.gather(x, 0, torch.zeros(2, 3).long())", "x.index_select(0, i)",
           "torch.add(x, s, out=torch.zeros(2, 3))", "x.__setitem__((i, i), torch.ones(2))",
           "x @ torch.ones(3, 2)", "torch.stack([x[0, 0], s])"]  # fmt: skip


def test_what_pytorch_refuses_is_refused(tmp_path: Path) -> None:
    calls = "".join(f"    lambda: {call},\n" for call in REFUSED)
    text = f"""x = torch.ones(2, 3, device="cuda")
i, s = torch.tensor([1, 0]), torch.tensor(2.0)
for f in [
{calls}]:
    try:
        f()
    except RuntimeError as error:
        assert "device" in str(error), error
    else:
        raise SystemExit(f"passes: {{f.__code__.co_firstlineno}}")
"""
    done = run(tmp_path, text, "--no-report")
    assert done.returncode == 0, done.stderr


MARKED = """
import copy, gc, pickle, warnings
x = torch.zeros(3)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    x.require_grad = True
    x.tag = "a"
assert [str(one.message) for one in caught] == [
    "require_grad is no attribute of arrays, and setting it changes nothing; did you mean requires_grad?"]
assert (x.require_grad, x.tag, x.requires_grad, getattr(x, "other", 5)) == (True, "a", False, 5)
assert not hasattr(x + 1, "tag")
del x.tag
assert not hasattr(x, "tag")
for change in (lambda: setattr(x, "shape", 3), lambda: x.nothing, lambda: delattr(x, "tag"),
               lambda: setattr(x, "T", 1)):
    try:
        change()
    except AttributeError:
        continue
    raise SystemExit("changed")
x.requires_grad = True
assert x.requires_grad
for _ in range(1000):
    y = torch.zeros(1)
    assert not hasattr(y, "n")
    y.n = 1
"""


def test_plain_arrays_keep_attributes(tmp_path: Path) -> None:
    done = run(tmp_path, MARKED, "--no-report")
    assert done.returncode == 0, done.stderr


def test_elsewhere_they_do_not() -> None:
    with pytest.raises(AttributeError):
        dt.zeros(3).require_grad = True  # type: ignore[attr-defined]


MASKS = """
import numpy as np
x = torch.arange(6.0, device="cuda").reshape(2, 3)
assert x[np.array([1, 0])].tolist() == [[3, 4, 5], [0, 1, 2]] and x[:, np.array([True, False, True])].shape == (2, 2)
x[np.array([0]), np.array([2])] = 7
assert x[0].tolist() == [0, 1, 7]
for device in ("cpu", "cuda"):
    x, m = torch.arange(6.0, device=device).reshape(2, 3), torch.tensor([1, 0], dtype=torch.uint8)
    assert x[m].tolist() == [[0, 1, 2]] and x[:, torch.tensor([1, 0, 1]).byte()].tolist() == [[0, 2], [3, 5]]
    x[m] = 9
    x[x.gt(4).byte()] = 1
    assert x.tolist() == [[1, 1, 1], [3, 4, 1]]
"""


def test_indices_of_numpy_and_masks_of_uint8(tmp_path: Path) -> None:
    done = run(tmp_path, MASKS, "--no-report")
    assert done.returncode == 0, done.stderr
    assert "indexing with dtype torch.uint8 is now deprecated" in done.stderr
    with pytest.raises(dt.DTypeMismatchError):
        dt.zeros(2)[dt.tensor([1, 0], dtype=dt.uint8)]


PARALLEL = """
from torch.nn.parallel._functions import Broadcast, Gather, ReduceAddCoalesced, Scatter
from torch.utils.checkpoint import get_device_states, set_device_states
x = torch.ones(2, 3, device="cuda:0", requires_grad=True)
copies = Broadcast.apply([0, 1], x, x * 2)
assert [str(y.device) for y in copies] == ["cuda:0", "cuda:0", "cuda:1", "cuda:1"]
a, b = ReduceAddCoalesced.apply(0, 2, *copies)
(a.sum() + b.sum()).backward()
assert a[0, 0].item() == 2 and b[0, 0].item() == 4 and x.grad[0, 0].item() == 6
parts = Scatter.apply([0, 1], None, 0, x)
assert [str(y.device) for y in parts] == ["cuda:0", "cuda:1"] and Gather.apply(0, 0, *parts).tolist() == x.tolist()
assert [y.shape[1] for y in Scatter.apply([0, 1], [1, 2], 1, x)] == [1, 2]
devices, states = get_device_states(x, [{"x": copies[2]}])
assert devices == [0, 1]
drawn = torch.rand(2, device="cuda").tolist()
set_device_states(devices, states)
assert torch.rand(2, device="cuda").tolist() == drawn
"""


def test_what_synchronised_and_reversible_layers_import(tmp_path: Path) -> None:
    done = run(tmp_path, PARALLEL, "--no-report", "--simulate", "2")
    assert done.returncode == 0, done.stderr


HABITS = """
assert isinstance(torch.zeros(2), torch.autograd.Variable) and not isinstance(3, torch.autograd.Variable)
assert torch.autograd.Variable(torch.ones(2), requires_grad=True).requires_grad
scores = torch.randn(5, 2, 4, device="cuda").log_softmax(2)
labels = torch.IntTensor([1, 2, 3]), torch.IntTensor([5, 5]), torch.IntTensor([1, 2])
assert torch.nn.CTCLoss()(scores, *labels).is_cuda
torch.manual_seed(0)
first = torch.rand(1)
torch.manual_seed(0)
layer = torch.nn.LazyLinear(4)
assert torch.rand(1) == first and layer(torch.ones(1, 3)).shape == (1, 4) and layer.bias.abs().sum() > 0
assert torch.cuda._initialized is True and torch.randint(high=5, size=(2,)).shape == (2,)
from torch._C import NoneType, Size, Value
assert torch._C.Value is Value and torch._C.Size is torch.Size
memory = torch.tensor([[1.0, 2.5]]).storage()
assert str(memory) == " 1.0\\n 2.5\\n[torch.storage.TypedStorage(dtype=torch.float32, device=cpu) of size 2]"
assert str(memory.untyped()).endswith("[torch.storage.UntypedStorage(device=cpu) of size 8]")
class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 2
    @staticmethod
    def backward(ctx, gradient): return gradient * 2
x = torch.ones(2, requires_grad=True)
Doubled().apply(x).sum().backward()
assert x.grad.tolist() == [2, 2]
three = torch.tensor(3, device="cuda")
assert torch.LongTensor([[three]]).tolist() == [[3]] and torch.tensor([three, three]).device.type == "cpu"
assert torch.einsum("i,j->ij", torch.arange(3), torch.ones(2)).dtype is torch.float32
assert torch.einsum(",i->i", torch.tensor(2.0).double(), torch.ones(2)).dtype is torch.float64
assert torch.einsum("ij,ij->ij", torch.ones(2, 2), torch.ones(2, 2).double()).dtype is torch.float64
try:
    torch.einsum("ij,jk->ik", torch.ones(2, 2), torch.ones(2, 2).double())
except RuntimeError:
    pass  # a product of matrices does not promote
else:
    raise AssertionError
torch.set_default_tensor_type("torch.cuda.FloatTensor")
assert torch.Tensor([1e10]).is_cuda and torch.Tensor(2, 3).is_cuda and not torch.FloatTensor([1]).is_cuda
"""


def test_habits_of_older_programs(tmp_path: Path) -> None:
    done = run(tmp_path, HABITS, "--no-report")
    assert done.returncode == 0, done.stderr
