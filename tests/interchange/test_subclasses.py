"""Classes that derive from Tensor and Parameter, beside PyTorch's.

Each in a process of its own: such a class is told to all ops of a process.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from support import python_path

# What both print. The first line gives the library: torch or devtensor.
ALIKE = """
import copy, gc, pickle
asked = []

class Asking(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        asked.append(getattr(func, "__name__", "?"))
        return super().__torch_function__(func, types, args, kwargs)

class Image(torch.Tensor):
    def __new__(cls, data, size=None):
        image = torch.Tensor._make_subclass(cls, data)
        image.size_before = size
        return image

class Small(Image):
    pass

class Odd(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return getattr(func, "__name__", "?")

class Other(torch.Tensor):
    pass

class Weight(torch.nn.Parameter):
    def __new__(cls, data=None, requires_grad=True, tag=None):
        weight = super().__new__(cls, data, requires_grad)
        weight.tag = tag
        return weight

class Made(torch.nn.Parameter):
    def __new__(cls, data, requires_grad=True):
        return torch.Tensor._make_subclass(cls, data, requires_grad)

def kind(value):
    if isinstance(value, (tuple, list)) and type(value) is not torch.Size:
        return [kind(one) for one in value]
    return "Tensor" if type(value) is torch.Tensor else type(value).__name__

x, y = Image(torch.ones(2, 3), size=(4, 5)), torch.full((2, 3), 2.0)
for text in '''x + y; y + x; x + 1; 1 + x; 1 - x; x / y; 2 / x; x ** 2; 2 ** x; -x; abs(x); x == y; y < x; x @ y.T
    x[0]; x[0, 1]
    list(x); x.T; x.mT; x.data; x.shape; x.grad; len(x); x.clone(); x.double(); x.to(torch.float64); x.cpu(); x.detach()
    x.sum(); x.max(1); x.mean(0, keepdim=True); x.reshape(3, 2); x.flip(0); x.softmax(1); torch.add(x, y)
    torch.cat([x, y])
    torch.stack((y, x)); torch.where(x > 0, x, y); torch.zeros_like(x); torch.split(x, 1); torch.flip(x, (0,))
    torch.var(x)
    torch.nn.functional.relu(x); torch.nn.functional.softmax(x, 0); torch.nn.functional.linear(y, x); x.add_(1)
    torch.nn.functional.layer_norm(x, (3,)); y.clone().add_(x); x.new_zeros(2); x.unbind(0); x.numpy(); x.tolist()
    x.item
    x.requires_grad; torch.numel(x); torch.linalg.norm(x); x.contiguous(); torch.sort(x, 1); x.long() // 2; ~x.bool()
    x.as_subclass(torch.Tensor); x.as_subclass(Small); torch.max(x, y); torch.einsum("ij,kj->ik", x, y); x.repeat(2, 1)
    torch.nn.Linear(3, 2)(x); torch.nn.LayerNorm(3)(x); torch.nn.functional.dropout(x, 0.5); x.type(torch.float64)
    x + Small(y); Small(y) + x'''.replace("\\n", ";").split(";"):
    print(text.strip(), kind(eval(text)))
print(x.size_before, isinstance(x, torch.Tensor), issubclass(Small, torch.Tensor), hasattr(x + 1, "size_before"))
try:
    x + y.as_subclass(Other)
except TypeError as error:
    print(type(error).__name__)
with torch._C.DisableTorchFunctionSubclass():
    print(kind(x + 1), kind(torch.cat([x, y])), kind(x.T), kind(x[0]), kind(x.flip(0)))
print(kind(Image.__torch_function__(torch.add, (Image,), (x, 1))))
print(kind(torch.Tensor.__torch_function__(torch.mul, (), (y, 2))))
print(Image.__torch_function__(torch.add, (Image, Other), (x, 1)), list(y.as_subclass(Odd)), y.as_subclass(Odd) + 1)
asked.clear()
print(kind(list(y.as_subclass(Asking))), "unbind" in asked, "__getitem__" in asked)

a = y.as_subclass(Asking)
for text in '''a + 1; a.add_(1); a.sub(1); torch.mul(a, 2); a.sum(0); 1 - a; a[0]; a.T; torch.cat([y, a])
    a.clamp_(0, 1)
    a.pow_(2)
    a.float(); a.to(torch.float64); torch.nn.functional.relu(a); a.flip(0); torch.flip(a, (0,)); torch.mean(a); a.exp_()
    y[a.long()[0] * 0]; a.cumsum_(0); a.lerp_(y, 0.5); a.where(a > 0, a)'''.replace("\\n", ";").split(";"):
    asked.clear()
    eval(text)
    print(text.strip(), asked)
a += 1
print(asked[-1], kind(a))

w = Weight(torch.ones(3), tag="w")
model = torch.nn.Module()
model.w, model.v = w, Made(torch.ones(2))
print([(name, kind(p), p.requires_grad, p.is_leaf) for name, p in model.named_parameters()], model.w.tag)
print(kind(w * 2), kind(w.data), kind(w.detach()), kind(w[0]), kind(torch.cat([w, w])))
(w * 3).sum().backward()
print(w.grad.tolist(), kind(w.grad))
model.double()
print(kind(model.w), model.w is w, w.tag)
torch.optim.SGD(model.parameters(), 0.5).step()
print(w.tolist(), kind(w))
q = Image(torch.tensor([1.0, 2.0]))
q.requires_grad_()
print(kind(q), kind(q * q), kind((q * q).sum()))
(q * q).sum().backward()
print(q.grad.tolist())
h = torch.tensor([1.0, 2.0], requires_grad=True)
(h.as_subclass(Image) * 3).sum().backward()
print(h.grad.tolist())

@torch.overrides.wrap_torch_function(lambda first, second: (first, second))
def summed(first, second):
    return first + second

print(kind(summed(x, y)), torch.overrides.has_torch_function((x,)), torch.overrides.has_torch_function((y, w)))
print(torch.overrides.has_torch_function_unary(x), torch.overrides.has_torch_function_variadic(y, x))
print(torch.overrides.is_tensor_like(x), torch.overrides.is_tensor_like(3))

class Answer:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func.__name__, [one.__name__ for one in types], len(args), kwargs

def mine(value, more=None):
    if torch.overrides.has_torch_function_variadic(value):
        return torch.overrides.handle_torch_function(mine, (value,), value, more=more)
    return value

print(mine(Answer(), 3), mine(4))
copied, pickled = copy.copy(x), pickle.loads(pickle.dumps(x))
print([kind(copied), copied.size_before, copied.data_ptr() == x.data_ptr()], [kind(pickled), pickled.size_before])
print(pickled.tolist() == x.tolist(), kind(copy.deepcopy(w)))
before = len(gc.get_objects())
for _ in range(100):
    made = Image(torch.ones(2))
    made.me = made
del made
gc.collect()
print(len(gc.get_objects()) - before < 50)
"""

# What devtensor alone has to show: copies of every class, its own words, another device, PyTorch beside it.
OWN = """
import copy, gc, pickle, weakref
import numpy as np
import torch as theirs
import devtensor as dt

class Image(dt.Tensor):
    pass

class Weight(dt.nn.Parameter):
    pass

class Count(dt.nn.Buffer):
    pass

dt.testing.simulate_cuda(1)
for device in ("cpu", "cuda:0"):
    x = dt.ones(2, 3, device=device).as_subclass(Image)
    x.words = ["a"]
    deep = copy.deepcopy(x)
    assert type(deep) is Image and deep.words == ["a"] and deep.words is not x.words and deep.data_ptr() != x.data_ptr()
    assert type(pickle.loads(pickle.dumps(x))) is Image and (x @ x.T).device == x.device
    assert type(x.cpu()) is Image and type(x.to("cpu")) is Image and repr(x).startswith("Image([[1., 1., 1.],")
    try:
        x + dt.ones(4, device=device)
    except dt.ShapeMismatchError as error:
        assert error.op == "add", error.op
for kind in (Weight, Count):
    p = kind(dt.ones(2))
    p.tag = 3
    for twin in (copy.copy(p), copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
        assert type(twin) is kind and twin.tag == 3 and twin.requires_grad == p.requires_grad
module = dt.nn.Module()
module.count, module.weight = Count(dt.ones(2)), Weight(dt.ones(2))
assert list(module.state_dict()) == ["weight", "count"]
for wrong in (int, 3, theirs.Tensor):
    try:
        dt.ones(2).as_subclass(wrong)
    except TypeError as error:
        assert "must be a class derived from DeviceArray" in str(error), error
assert type(Image([1.0, 2.0])) is Image and Image(2, 3).shape == (2, 3)
leaf = dt.ones(2).as_subclass(Image).requires_grad_()
(leaf * 2).sum().backward()
twin = copy.deepcopy(leaf)
assert twin.requires_grad and twin.grad.tolist() == [2.0, 2.0]
try:
    copy.deepcopy(leaf * 2)
except RuntimeError as error:
    assert "graph leaves" in str(error)
gone = weakref.ref(x)
del x, deep
gc.collect()
assert gone() is None
for func in (theirs.add, theirs.Tensor.add, theirs.Tensor.grad.__get__, theirs.nn.functional.relu):
    assert Image.__torch_function__(func, (Image,), (dt.ones(2),)) is NotImplemented, func
    within = lambda: Image.__torch_function__(func, (Image,), (dt.ones(2),))  # as much from within a call of ours
    assert Image.__torch_function__(within, (Image,)) is NotImplemented, func
for call in (lambda v: theirs.add(theirs.ones(2), v), lambda v: theirs.ones(2) + v):
    for value in (dt.ones(2), dt.ones(2).as_subclass(Image)):
        try:
            call(value)
        except TypeError:
            pass
assert np.asarray(dt.ones(2).as_subclass(Image)).tolist() == [1.0, 1.0]
assert dt.from_dlpack(dt.ones(2).as_subclass(Image)).tolist() == [1.0, 1.0]
with dt.autocast("cpu"):
    assert (dt.ones(2, 2).as_subclass(Image) @ dt.ones(2, 2)).dtype == dt.bfloat16
assert type(dt.nn.Linear(3, 2)(dt.ones(2, 3).as_subclass(Image))) is Image
class Slots(dt.Tensor):
    __slots__ = ()
class Named(dt.Tensor):
    __slots__ = ("name",)
for kind in (Slots, Named):
    many = [dt.ones(2).as_subclass(kind) for _ in range(200)]
    assert all(type(one + 1) is kind for one in many)
named = many[0]
named.name = "n"
class Mixed:
    def hello(self):
        return type(self).__name__
class Third(Mixed, Image):
    pass
third = dt.ones(2).as_subclass(Third)
assert type(third * 2) is Third and third.hello() == "Third" and type(third + dt.ones(2).as_subclass(Image)) is Third
seen = []
class Told(Mixed, dt.Tensor):
    def __init_subclass__(cls, word="", **rest):
        super().__init_subclass__(**rest)
        seen.append(word)
class Below(Told, word="w"):
    pass
assert seen == ["w"]
print("ok")
"""


def output(program: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": python_path()},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


def test_results_types_and_names_are_pytorchs() -> None:
    pytest.importorskip("torch")
    ours, theirs = (output(f"import {name} as torch\n{more}{ALIKE}") for name, more in LIBRARIES)
    assert len(theirs) > 100
    assert [(a, b) for a, b in zip(ours, theirs, strict=True) if a != b] == []


LIBRARIES = (
    (
        "devtensor",
        "from devtensor._interchange import overrides as _overrides\n"
        "from devtensor._as_torch.install import install_torch\ninstall_torch()\n",
    ),
    ("torch", "import torch.overrides\n"),
)


def test_copies_devices_and_other_libraries() -> None:
    pytest.importorskip("torch")
    assert output(OWN) == ["ok"]
