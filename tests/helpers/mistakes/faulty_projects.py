"""Longer programs with one mistake each, as in scripts.py: several files, classes, loops that train and evaluate."""

from __future__ import annotations

from faulty_programs import Script

PROJECTS = [
    Script("class weights of a loss", "self.class_weights", """
## scripts_config.py
import numpy as np
COUNTS = np.array([10, 30, 60], dtype=np.float32)
## scripts_loss.py
import devtensor as dt
import devtensor.nn.functional as F
from scripts_config import COUNTS
class Loss:
    def __init__(self):
        self.class_weights = 1 / dt.from_numpy(COUNTS)  # origin
    def __call__(self, logits, target):
        return F.cross_entropy(logits, target, weight=self.class_weights)  # here
## main.py
from devtensor import nn
from scripts_loss import Loss
device = dt.device("cuda")
model, loss = nn.Linear(4, 3).to(device), Loss()
for epoch in range(2):
    x, y = dt.randn(8, 4).to(device), dt.arange(8).to(device) % 3
    print(epoch, loss(model(x), y).item())
"""),
    Script("a table of sines in float64", "h", """
## scripts_table.py
import numpy as np
import devtensor as dt
def table(n, width):
    angle = np.arange(n)[:, None] / 10000 ** (np.arange(width) / width)
    return dt.from_numpy(np.sin(angle))  # origin
## scripts_block.py
from devtensor import nn
from scripts_table import table
class Block(nn.Module):
    def __init__(self, n, width):
        super().__init__()
        self.position = table(n, width)
        self.proj = nn.Linear(width, width)
    def forward(self, x):
        h = x + self.position
        return self.proj(h)  # here
## main.py
from devtensor import nn
from scripts_block import Block
net = nn.Sequential(Block(5, 8), nn.ReLU())
net(dt.randn(2, 5, 8))
"""),
    Script("averaged weights left behind", "average[name]", """
from devtensor import nn
model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
average = {name: p.data.clone() for name, p in model.named_parameters()}  # origin
model.to("cuda")
for step in range(3):
    for name, p in model.named_parameters():
        average[name].mul_(0.9)
        average[name].add_(p.data)  # here
"""),
    Script("velocity of an optimiser", "self.velocity[i]", """
## scripts_optim.py
import devtensor as dt
class Momentum:
    def __init__(self, params, lr):
        self.params, self.lr = params, lr
        self.velocity = [dt.zeros(p.shape) for p in params]  # origin
    def step(self, grads):
        for i, p in enumerate(self.params):
            self.velocity[i] += grads[i]  # here
            p -= self.lr * self.velocity[i]
## main.py
from scripts_optim import Momentum
x, y = dt.randn(16, 3, device="cuda"), dt.randn(16, 1, device="cuda")
w = dt.zeros(3, 1, device="cuda")
optimiser = Momentum([w], 0.1)
for _ in range(3):
    error = x @ w - y
    optimiser.step([x.T @ error / 16])
"""),
    Script("the first hidden state", "h", """
from devtensor import nn
class Cell(nn.Module):
    def __init__(self, n, m):
        super().__init__()
        self.inner, self.outer = nn.Linear(n, m), nn.Linear(m, m)
    def forward(self, x, h):
        return dt.tanh(self.inner(x) + self.outer(h))  # here

class Recurrent(nn.Module):
    def __init__(self, n, m):
        super().__init__()
        self.m, self.cell = m, Cell(n, m)
    def forward(self, steps):
        h = dt.zeros(steps.shape[1], self.m)  # origin
        for x in steps:
            h = self.cell(x, h)
        return h

net = Recurrent(3, 4).to("cuda")
net(dt.randn(5, 2, 3, device="cuda"))
"""),
    Script("a collate function", "rows", """
## scripts_rows.py
import numpy as np
import devtensor as dt
class Rows:
    def __init__(self, n):
        self.data = np.random.default_rng(0).random((n, 3))
    def __len__(self):
        return len(self.data)
    def __getitem__(self, i):
        return self.data[i]
def collate(rows):
    return dt.from_numpy(np.stack(rows))  # origin
## main.py
from devtensor import nn
from devtensor.data import DataLoader
from scripts_rows import Rows, collate
model = nn.Linear(3, 2)
for rows in DataLoader(Rows(8), batch_size=4, collate_fn=collate):
    model(rows)  # here
"""),
    Script("a confusion matrix", "confusion", """
from devtensor import nn
import devtensor.nn.functional as F
model = nn.Linear(4, 3).to("cuda")
confusion = dt.zeros(3, 3)  # origin
for batch in range(3):
    x, y = dt.randn(8, 4, device="cuda"), dt.arange(8, device="cuda") % 3
    found = model(x).argmax(dim=1)
    confusion += F.one_hot(y, 3).float().T @ F.one_hot(found, 3).float()  # here
"""),
    Script("layers in a plain list", "layer.weight", """
from devtensor import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.rest = [nn.Linear(4, 4) for _ in range(2)]  # origin
    def forward(self, x):
        x = self.first(x)
        for layer in self.rest:
            x = layer(x).relu()  # here
        return x

Net().to("cuda")(dt.ones(2, 3, device="cuda"))
"""),
    Script("stages of a pipeline", "image", """
## scripts_stages.py
import numpy as np
import devtensor as dt
def load(n):
    for i in range(n):
        yield np.full((4, 4), i, dtype=np.uint8)
def arrays(images):
    for image in images:
        yield dt.from_numpy(image).float() / 255  # origin
def centred(images, mean):
    for image in images:
        yield image - mean  # here
## main.py
from scripts_stages import arrays, centred, load
mean = dt.full((4, 4), 0.5, device="cuda")
total = sum(image.sum().item() for image in centred(arrays(load(3)), mean))
"""),
    Script("mean and deviation of channels", "MEAN", """
## scripts_transforms.py
import devtensor as dt
MEAN = dt.tensor([0.4, 0.5, 0.6]).reshape(3, 1, 1)  # origin
def normalise(images):
    return (images - MEAN) / 0.2  # here
## main.py
from devtensor import nn
from scripts_transforms import normalise
model = nn.Conv2d(3, 4, 3).to("cuda")
for images in [dt.rand(2, 3, 8, 8) for _ in range(2)]:
    model(normalise(images.to("cuda")))
"""),
    Script("a cached table", "mask(n)", """
import functools

@functools.lru_cache
def mask(n):
    return dt.ones(n, n).tril()  # origin

def attend(q, k):
    n = q.shape[0]
    return dt.softmax(q @ k.T * mask(n), dim=1)  # here

attend(dt.randn(4, 8, device="cuda"), dt.randn(4, 8, device="cuda"))
"""),
    Script("power iteration", "v", """
def largest(a, steps):
    v = dt.ones(a.shape[0], 1)  # origin
    for _ in range(steps):
        v = a @ v  # here
        v = v / v.square().sum().sqrt()
    return (v.T @ a @ v).item()

def main():
    a = dt.randn(5, 5, device="cuda")
    print(largest(a @ a.T, 10))

if __name__ == "__main__":
    main()
"""),
    Script("centres of k-means", "centres", """
class KMeans:
    def __init__(self, k):
        self.k = k
    def fit(self, x, steps=3):
        centres = x[: self.k].cpu()  # origin
        for _ in range(steps):
            far = (x.unsqueeze(1) - centres).square().sum(dim=2)  # here
            near = far.argmin(dim=1)
            centres = dt.stack([x[i] for i in range(self.k)])
        return near

KMeans(2).fit(dt.randn(10, 3, device="cuda"))
"""),
    Script("a callback that keeps the best", "self.best", """
## scripts_callbacks.py
import devtensor as dt
class KeepBest:
    def __init__(self):
        self.best = dt.tensor(1e9)  # origin
    def __call__(self, losses):
        self.best = dt.minimum(losses.min(), self.best)  # here
class Trainer:
    def __init__(self, *callbacks):
        self.callbacks = callbacks
    def run(self, batches, weight):
        for x in batches:
            losses = (x @ weight).square().mean(dim=1)
            for callback in self.callbacks:
                callback(losses)
## main.py
from scripts_callbacks import KeepBest, Trainer
batches = [dt.randn(4, 3).to("cuda") for _ in range(3)]
Trainer(KeepBest()).run(batches, dt.randn(3, 2, device="cuda"))
"""),
    Script("half weights and a float batch", "x", """
from dataclasses import dataclass
from devtensor import nn

@dataclass
class Config:
    width: int = 4
    dtype: object = dt.float16

def build(config):
    return nn.Sequential(nn.Linear(3, config.width), nn.ReLU(), nn.Linear(config.width, 1)).to(config.dtype)

config = Config()
model = build(config)
for step in range(2):
    x = dt.randn(4, 3)  # origin
    model(x)  # here
"""),
    Script("the sum of the parts", "parts[2]", """
def parts_of(batch):
    yield batch.square().mean()
    yield batch.abs().mean()
    yield batch.cpu().max()  # origin

parts = list(parts_of(dt.randn(8, device="cuda")))
loss = dt.stack(parts).sum()  # here
"""),
    Script("a student and its teacher", "teacher_scores", """
from devtensor import nn
import devtensor.nn.functional as F

def teach(student, teacher, batches):
    for x in batches:
        teacher_scores = teacher(x)
        scores = student(x.to("cuda"))
        yield F.mse_loss(scores, teacher_scores).item()  # here

student, teacher = nn.Linear(3, 2).to("cuda"), nn.Linear(3, 2)
list(teach(student, teacher, [dt.randn(4, 3)]))  # origin
"""),
    Script("a state from another process", "restored['mean']", """
import pickle
kept = pickle.dumps({"mean": dt.ones(3), "step": 7})
restored = pickle.loads(kept)  # origin
x = dt.randn(4, 3, device="cuda")
for step in range(restored["step"], 9):
    x = x - restored['mean']  # here
"""),
    Script("features of two towers", "image_features.T", """
## scripts_towers.py
from devtensor import nn
class Tower(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(n, 8), nn.ReLU(), nn.Linear(8, 4))
    def forward(self, x):
        h = self.layers(x)
        return h / h.square().sum(dim=1, keepdim=True).sqrt()
## main.py
from scripts_towers import Tower
text, image = Tower(5).to("cuda:0"), Tower(6).to("cuda:1")
def scores(words, pixels):
    text_features = text(words)
    image_features = image(pixels)
    return text_features @ image_features.T  # here
for _ in range(2):
    scores(dt.randn(2, 5, device="cuda:0"), dt.randn(2, 6, device="cuda:1"))  # origin
"""),
]  # fmt: skip
