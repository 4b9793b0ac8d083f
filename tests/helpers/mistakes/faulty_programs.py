"""Small programs as people write them, each with one mistake.

A line `# origin` is where the variable became what is wrong with it, `# here` where the error comes up; a program of
several files has them one after the other, below `## name.py`, the main one last.
"""

from __future__ import annotations

from typing import NamedTuple


class Script(NamedTuple):
    name: str
    culprit: str  # as the caller writes it
    text: str
    fixed: bool = True  # a fix is proposed


FAULTY = [
    Script("straight", "x", """
x = dt.randn(4, 3)  # origin
w = dt.randn(2, 3, device="cuda")
y = dt.linear(x, w)  # here
"""),
    Script("training loop", "target", """
w = dt.zeros(1, 3, device="cuda")
inputs = dt.randn(8, 3).to("cuda")
target = dt.randn(8, 1)  # origin
for step in range(3):
    prediction = inputs @ w.T
    error = prediction - target  # here
    w -= 0.1 * (error.T @ inputs) / 8
"""),
    Script("batches of a list", "batch", """
weight = dt.randn(2, 3, device="cuda")
data = [dt.randn(4, 3) for _ in range(3)]  # origin
total = 0.0
for batch in data:
    total += dt.linear(batch, weight).sum().item()  # here
"""),
    Script("enumerate and zip", "label", """
xs = [dt.ones(2, device="cuda") for _ in range(2)]
ys = [dt.ones(2) for _ in range(2)]  # origin
for i, (image, label) in enumerate(zip(xs, ys)):
    loss = (image - label).abs().sum()  # here
"""),
    Script("attribute of a class", "self.scale", """
class Scaler:
    def __init__(self, n):
        self.scale = dt.ones(n)  # origin

    def apply(self, x):
        return x * self.scale  # here

Scaler(3).apply(dt.ones(2, 3, device="cuda"))
"""),
    Script("class with slots", "self.mean", """
class Stats:
    __slots__ = ("mean",)
    def __init__(self, mean):
        self.mean = mean
    def centre(self, x):
        return x - self.mean  # here

Stats(dt.zeros(3)).centre(dt.ones(3, device="cuda"))  # origin
"""),
    Script("inherited method", "self.bias", """
class Base:
    def run(self, x):
        return self.shift(x)
    def shift(self, x):
        return x + self.bias  # here

class Child(Base):
    def __init__(self):
        self.bias = dt.arange(3)  # origin

Child().run(dt.ones(3, device="cuda"))
"""),
    Script("property", "self._w", """
class Layer:
    def __init__(self):
        self._w = dt.eye(3)  # origin
    @property
    def product(self):
        return dt.ones(2, 3, device="cuda") @ self._w  # here

Layer().product
"""),
    Script("closure", "offset", """
def make(offset):
    def add(x):
        return x + offset  # here
    return add

add = make(dt.ones(3))  # origin
add(dt.zeros(3, device="cuda"))
"""),
    Script("global in a function", "MEAN", """
MEAN = dt.full((3,), 0.5)  # origin

def normalise(x):
    return x - MEAN  # here

normalise(dt.ones(2, 3, device="cuda"))
"""),
    Script("comprehension", "w", """
weights = [dt.randn(2, 3), dt.randn(2, 3)]  # origin
x = dt.ones(4, 3, device="cuda")
outs = [dt.linear(x, w) for w in weights]  # here
"""),
    Script("dict comprehension", "v", """
params = {"a": dt.ones(3), "b": dt.zeros(3)}  # origin
g = dt.ones(3, device="cuda")
new = {k: v + g for k, v in params.items()}  # here
"""),
    Script("lambda", "x", """
g = dt.ones(3, device="cuda")
scale = lambda x: x * g  # here
scale(dt.ones(3))  # origin
"""),
    Script("generator", "frame", """
def frames():
    for i in range(2):
        yield dt.full((3,), i, dtype=dt.float32)  # origin

g = dt.ones(3, device="cuda")
for frame in frames():
    g = g + frame  # here
"""),
    Script("generator that computes", "row", """
def scaled(rows, factor):
    for row in rows:
        yield row * factor  # here

sum(part.sum().item() for part in scaled([dt.ones(2)], dt.ones(2, device="cuda")))  # origin
"""),
    Script("coroutine", "data", """
import asyncio

async def fetch():
    await asyncio.sleep(0)
    return dt.ones(3)  # origin

async def main():
    data = await fetch()
    return data + dt.ones(3, device="cuda")  # here

asyncio.run(main())
"""),
    Script("thread", "piece", """
from concurrent.futures import ThreadPoolExecutor

table = dt.ones(3, device="cuda")

def work(piece):
    return (piece * table).sum().item()  # here

with ThreadPoolExecutor(2) as pool:
    list(pool.map(work, [dt.ones(3)]))  # origin
"""),
    Script("decorator", "x", """
import functools

def logged(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper

@logged
def forward(x, w):
    return x @ w  # here

forward(dt.ones(2, 3), dt.ones(3, 2, device="cuda"))  # origin
"""),
    Script("*args of a function", "args[1]", """
def blend(*args):
    return dt.add(*args)  # here

blend(dt.ones(3, device="cuda"), dt.ones(3))  # origin
"""),
    Script("**kwargs", "options['weight']", """
options = {"weight": dt.ones(2, 3), "bias": None}  # origin
x = dt.ones(4, 3, device="cuda")
dt.linear(x, **options)  # here
"""),
    Script("keyword arguments", "b", """
x, w = dt.ones(4, 3, device="cuda"), dt.ones(2, 3, device="cuda")
b = dt.zeros(2)  # origin
dt.linear(bias=b, input=x, weight=w)  # here
"""),
    Script("config dict", 'config["mean"]', """
config = {"size": 3, "mean": dt.zeros(3)}  # origin
x = dt.ones(2, 3, device="cuda")
x = x - config["mean"]  # here
"""),
    Script("nested dict and list", 'state["layers"][0]', """
state = {"layers": [dt.ones(3), 5]}  # origin
x = dt.ones(3, device="cuda") * state["layers"][0]  # here
"""),
    Script("dataclass", "batch.target", """
from dataclasses import dataclass
from typing import Any

@dataclass
class Batch:
    data: Any
    target: Any

batch = Batch(dt.ones(3, device="cuda"), dt.ones(3))  # origin
loss = (batch.data - batch.target).square().mean()  # here
"""),
    Script("frozen dataclass", "batch.target", """
from dataclasses import dataclass
from typing import Any

@dataclass(frozen=True)
class Batch:
    data: Any
    target: Any

batch = Batch(dt.ones(3, device="cuda"), dt.ones(3))  # origin
loss = (batch.data - batch.target).square().mean()  # here
"""),
    Script("named tuple", "pair.second", """
from collections import namedtuple

Pair = namedtuple("Pair", "first second")
pair = Pair(dt.ones(3, device="cuda"), dt.zeros(3))  # origin
dt.maximum(pair.first, pair.second)  # here
"""),
    Script("augmented assignment", "grad", """
velocity = dt.zeros(3, device="cuda")
grad = dt.ones(3)  # origin
velocity *= 0.9
velocity += grad  # here
"""),
    Script("optimiser", "g", """
class SGD:
    def __init__(self, params, lr):
        self.params, self.lr = list(params), lr
    def step(self, grads):
        for p, g in zip(self.params, grads):
            p -= g  # here

SGD([dt.ones(3, device="cuda")], 0.1).step([dt.ones(3)])  # origin
"""),
    Script("running mean in place", "value", """
class Mean:
    def __init__(self):
        self.total = dt.zeros((), device="cuda")
    def update(self, value):
        self.total.add_(value)  # here

Mean().update(dt.ones(()))  # origin
"""),
    Script("assignment to a part", "row", """
table = dt.zeros(4, 3, device="cuda")
row = dt.ones(3)  # origin
table[1] = row  # here
"""),
    Script("float64 from NumPy", "x", """
import numpy as np
w = dt.randn(2, 3)
x = dt.from_numpy(np.random.rand(4, 3))  # origin
y = dt.linear(x, w)  # here
"""),
    Script("float64 from another module", "hidden", """
## scripts_data.py
import numpy as np
import devtensor as dt
def load():
    return dt.from_numpy(np.arange(12.0).reshape(4, 3))  # origin
## main.py
from scripts_data import load
w = dt.randn(2, 3)
hidden = load() / 255 - 0.5
y = dt.linear(hidden, w)  # here
"""),
    Script("two modules and a class", "images", """
## scripts_model.py
import devtensor as dt
class Model:
    def __init__(self):
        self.kernel = dt.randn(4, 1, 3, 3, device="cuda")
    def __call__(self, images):
        return dt.conv2d(images, self.kernel, padding=1)  # here
## scripts_input.py
import devtensor as dt
def images(n):
    return dt.rand(n, 1, 8, 8)  # origin
## main.py
from scripts_model import Model
from scripts_input import images
Model()(images(2))
"""),
    Script("model never moved", "model.weight", """
from devtensor import nn
model = nn.Linear(3, 2)  # origin
x = dt.ones(4, 3, device="cuda")
model(x)  # here
"""),
    Script("batch forgotten", "x", """
from devtensor import nn
model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2)).to("cuda")
x = dt.ones(4, 3)  # origin
model(x)  # here
"""),
    Script("three deep Sequential", "net.0.0.0.weight", """
from devtensor import nn
net = nn.Sequential(nn.Sequential(nn.Sequential(nn.Linear(3, 3)), nn.ReLU()), nn.Linear(3, 2))  # origin
net(dt.ones(1, 3, device="cuda"))  # here
"""),
    Script("one layer replaced later", "net.head.weight", """
from devtensor import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(3, 3), nn.Linear(3, 2)
    def forward(self, x):
        return self.head(self.body(x))

net = Net().to("cuda")
net.head = nn.Linear(3, 5)  # origin
net(dt.ones(4, 3, device="cuda"))  # here
"""),
    Script("helper array in a Module", "self.mask", """
from devtensor import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.mask = dt.ones(3)  # origin
    def forward(self, x):
        return self.fc(x) * self.mask  # here

net = Net().to("cuda")
net(dt.ones(4, 3, device="cuda"))
"""),
    Script("array made in forward", "noise", """
from devtensor import nn
class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
    def forward(self, x):
        noise = dt.randn(x.shape)  # origin
        return self.fc(x + noise)  # here

Noisy().to("cuda")(dt.ones(4, 3, device="cuda"))
"""),
    Script("functional with parameters", "net.weight", """
from devtensor import nn
import devtensor.nn.functional as F
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(dt.randn(2, 3))  # origin
    def forward(self, x):
        return F.linear(x, self.weight)

net = Net()
net(dt.ones(4, 3, device="cuda"))  # here
"""),
    Script("two models", "decoder.weight", """
from devtensor import nn
encoder = nn.Linear(3, 2).to("cuda")
decoder = nn.Linear(2, 3)  # origin
code = encoder(dt.ones(1, 3, device="cuda"))
out = decoder(code)  # here
"""),
    Script("DataLoader batch", "x", """
from devtensor import nn
from devtensor.data import DataLoader, TensorDataset
data = TensorDataset(dt.ones(8, 3), dt.zeros(8))  # origin
model = nn.Linear(3, 1).to("cuda")
for x, y in DataLoader(data, batch_size=4):
    out = model(x)  # here
"""),
    Script("DataLoader labels in a loss", "y", """
from devtensor import nn
import devtensor.nn.functional as F
from devtensor.data import DataLoader, TensorDataset
data = TensorDataset(dt.ones(8, 3), dt.zeros(8, 1))  # origin
model = nn.Linear(3, 1).to("cuda")
for x, y in DataLoader(data, batch_size=4):
    out = model(x.to("cuda"))
    loss = F.mse_loss(out, y)  # here
"""),
    Script("concatenation", "parts[1]", """
parts = [dt.ones(1, 3, device="cuda"), dt.ones(2, 3)]  # origin
whole = dt.cat(parts)  # here
"""),
    Script("where", "fallback", """
x = dt.randn(3, device="cuda")
fallback = dt.zeros(3)  # origin
y = dt.where(x > 0, x, fallback)  # here
"""),
    Script("moved back and forgotten", "features", """
x = dt.ones(2, 3, device="cuda")
w = dt.ones(4, 3, device="cuda")
features = (x * 2).cpu()  # origin
scores = dt.linear(features, w)  # here
"""),
    Script("two GPUs", "b", """
a = dt.ones(3, device="cuda:0")
b = dt.ones(3, device="cuda:1")  # origin
bias = dt.zeros(2, device="cuda:0")
dt.where(a > 0, a, b)  # here
"""),
    Script("half and float", "x", """
w = dt.randn(2, 3).half()
x = dt.randn(4, 3)  # origin
y = dt.linear(x, w)  # here
"""),
    Script("integers in a product", "counts", """
counts = dt.arange(6).reshape(2, 3)  # origin
w = dt.ones(3, 2)
y = counts @ w  # here
"""),
    Script("numpy() of the GPU", "result", """
result = dt.ones(3, device="cuda") * 2  # origin
values = result.numpy()  # here
"""),
    Script("several calls on one line", "b", """
a, g = dt.ones(3), dt.ones(3, device="cuda")
b = dt.zeros(3)  # origin
p, q = (a + a).sum(), (g + b).sum()  # here
"""),
    Script("walrus and if", "y", """
g = dt.ones(3, device="cuda")
y = dt.zeros(3)  # origin
if (n := 3) and (g * y).sum().item() > n:  # here
    pass
"""),
    Script("try and with", "x", """
import contextlib
g = dt.ones(3, device="cuda")
x = dt.ones(3)  # origin
with contextlib.suppress(KeyError):
    try:
        g + x  # here
    finally:
        pass
"""),
    Script("match", "point", """
g = dt.ones(2, device="cuda")
def move(command):
    match command:
        case ("go", point):
            return g + point  # here
move(("go", dt.ones(2)))  # origin
"""),
    Script("functools.partial", "g", """
import functools
g = dt.ones(3)  # origin
double = functools.partial(dt.mul, dt.ones(3, device="cuda"))
double(g)  # here
"""),
    Script("recursion", "acc", """
def total(rows, acc):
    if not rows:
        return acc
    return total(rows[1:], acc + rows[0])  # here

total([dt.ones(3, device="cuda")], dt.zeros(3))  # origin
"""),
    Script("weight the wrong way round", "weight", """
weight = dt.randn(3, 5)  # origin
y = dt.linear(dt.ones(2, 3), weight)  # here
"""),
    Script("NumPy data into a layer", "x", """
import numpy as np
from devtensor import nn
model = nn.Linear(3, 2)
x = dt.from_numpy(np.zeros((4, 3)))  # origin
model(x)  # here
"""),
    Script("one double layer", "model.1.weight", """
from devtensor import nn
model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2).double())  # origin
model(dt.zeros(4, 3))  # here
"""),
    Script("a float32 input of a double model", "x", """
from devtensor import nn
model = nn.Linear(3, 2).double()
x = dt.zeros(4, 3)  # origin
model(x)  # here
"""),
    Script("an int accumulator", "count", """
count = dt.zeros(3, dtype=dt.int64)  # origin
for part in (dt.ones(3) / 2, dt.ones(3)):
    count += part  # here
"""),
    Script("flatten forgotten", "maps", """
from devtensor import nn
head = nn.Linear(4 * 6 * 6, 10)
maps = dt.randn(2, 4, 6, 6)  # origin
head(maps)  # here
""", False),
    Script("sizes that do not broadcast", "mask", """
x = dt.ones(4, 3)
mask = dt.ones(4)  # origin
y = x * mask  # here
"""),
    Script("inner sizes", "b", """
a = dt.ones(2, 3)
b = dt.ones(4, 5)  # origin
c = a @ b  # here
""", False),
    Script("view of a transposed array", "x", """
x = dt.ones(2, 3).T  # origin
flat = x.view(6)  # here
"""),
    Script("softmax of integers", "scores", """
scores = dt.arange(6).reshape(2, 3)  # origin
p = dt.softmax(scores, dim=1)  # here
"""),
    Script("rows of different lengths", "rows[1]", """
rows = [dt.ones(3), dt.ones(4)]  # origin
table = dt.stack(rows)  # here
""", False),
    Script("wrong number of channels", "image", """
from devtensor import nn
layer = nn.Conv2d(3, 8, 3)
image = dt.rand(1, 1, 8, 8)  # origin
layer(image)  # here
""", False),
    Script("images with channels last", "images", """
images = dt.rand(2, 8, 8, 3)  # origin
kernel = dt.randn(4, 3, 3, 3)
maps = dt.conv2d(images, kernel)  # here
"""),
    Script("a photograph as it was read", "picture", """
import numpy as np
photo = np.zeros((8, 9, 3), dtype=np.uint8)
picture = dt.from_numpy(photo).permute(2, 0, 1)[None]  # origin
edges = dt.conv2d(picture, dt.ones(1, 3, 3, 3))  # here
"""),
    Script("a mask in a convolution", "alive", """
alive = dt.rand(1, 1, 8, 8) > 0.5  # origin
neighbours = dt.conv2d(alive, dt.ones(1, 1, 3, 3), padding=1)  # here
"""),
    Script("the mean of a mask", "right", """
labels = dt.arange(4)
right = dt.eye(4).argmax(1) == labels  # origin
accuracy = right.mean()  # here
"""),
]  # fmt: skip
