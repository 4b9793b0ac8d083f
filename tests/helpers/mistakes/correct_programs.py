"""Programs without a mistake, of which nothing must be said."""

from __future__ import annotations

CORRECT = {
    "training loop": """
w = dt.zeros(1, 3, device="cuda")
x, y = dt.randn(8, 3).to("cuda"), dt.randn(8, 1).to("cuda")
for _ in range(3):
    e = x @ w.T - y
    w -= 0.1 * (e.T @ x) / 8
""",
    "model": """
from devtensor import nn
model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2)).to("cuda")
assert model(dt.ones(4, 3, device="cuda")).device == dt.device("cuda")
""",
    "loader": """
from devtensor import nn
from devtensor.data import DataLoader, TensorDataset
model = nn.Linear(3, 1).to("cuda")
for x, y in DataLoader(TensorDataset(dt.ones(8, 3), dt.zeros(8, 1)), batch_size=4):
    loss = (model(x.to("cuda")) - y.to("cuda")).square().mean().item()
""",
    "buffer moves": """
from devtensor import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mask", dt.ones(3))
    def forward(self, x):
        return x * self.mask
Net().to("cuda")(dt.ones(2, 3, device="cuda"))
""",
    "numpy round trip": """
import numpy as np
x = dt.from_numpy(np.ones((2, 3), dtype=np.float32)).to("cuda")
assert (x * 2).cpu().numpy().sum() == 12
""",
    "scalars": 'x = dt.ones(3, device="cuda")\nassert ((2 * x + 1) / 3 - 1 == 0).all().item()\n',
    "promotion": 'x = dt.ones(3, device="cuda")\nassert (x + dt.arange(3, device="cuda")).dtype is dt.float32\n',
    "broadcasting": 'a = dt.ones(2, 1, 3, device="cuda") + dt.ones(4, 1, device="cuda")\nassert a.shape == (2, 4, 3)\n',
    "in place": 'x = dt.zeros(3, device="cuda")\nx += 1\nx[0] = 5\nassert x.sum().item() == 7\n',
    "like": 'x = dt.ones(2, 3, device="cuda")\nx + dt.randn_like(x) + dt.zeros(x.shape, device=x.device)\n',
    "default device": 'dt.set_default_device("cuda")\nx = dt.ones(3)\nx + dt.ones(3)\ndt.set_default_device("cpu")\n',
    "context of a device": 'with dt.cuda.device(0):\n    x = dt.ones(3, device="cuda")\nx + x\n',
    "state": """
from devtensor import nn
a, b = nn.Linear(3, 2).to("cuda"), nn.Linear(3, 2)
b.load_state_dict(a.state_dict())
assert dt.equal(a.weight.cpu(), b.weight) and dt.equal(a.bias.cpu(), b.bias) and not b.weight.is_cuda
""",
    "threads": """
from concurrent.futures import ThreadPoolExecutor
table = dt.ones(3, device="cuda")
with ThreadPoolExecutor(2) as pool:
    assert list(pool.map(lambda n: (table * n).sum().item(), range(3))) == [0, 3, 6]
""",
    "half": 'w = dt.randn(2, 3).half().to("cuda")\ndt.linear(dt.ones(4, 3, device="cuda", dtype=dt.float16), w)\n',
    "conv": 'dt.conv2d(dt.ones(1, 3, 8, 8, device="cuda"), dt.ones(4, 3, 3, 3, device="cuda"), padding="same")\n',
    "guarded loop": """
x = dt.ones(3, device="cuda")
with dt.forbid_transfers():
    for _ in range(3):
        x = x * 2
assert x.cpu().tolist() == [8.0] * 3
""",
    "caught": """
try:
    dt.ones(3) + dt.ones(3, device="cuda")
except RuntimeError as error:
    assert error.fix
""",
    "momentum": """
import devtensor.nn.functional as F
x, y = dt.randn(16, 3, device="cuda"), dt.randn(16, 1, device="cuda")
w = dt.zeros(3, 1, device="cuda")
velocity = dt.zeros_like(w)
for _ in range(3):
    error = x @ w - y
    velocity.mul_(0.9).add_(x.T @ error / 16)
    w -= 0.1 * velocity
assert F.mse_loss(x @ w, y).item() >= 0
""",
    "recurrent": """
from devtensor import nn
class Cell(nn.Module):
    def __init__(self, n, m):
        super().__init__()
        self.inner, self.outer = nn.Linear(n, m), nn.Linear(m, m)
    def forward(self, x, h=None):
        h = dt.zeros(x.shape[0], self.outer.in_features, device=x.device) if h is None else h
        return dt.tanh(self.inner(x) + self.outer(h))
cell, h = Cell(3, 4).to("cuda"), None
for x in dt.randn(5, 2, 3, device="cuda"):
    h = cell(x, h)
""",
    "evaluation": """
from devtensor import nn
from devtensor.data import DataLoader, TensorDataset
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)).to("cuda").eval()
right = 0
for x, y in DataLoader(TensorDataset(dt.randn(12, 4), dt.arange(12) % 3), batch_size=5):
    right += (model(x.to("cuda")).argmax(dim=1).cpu() == y).sum().item()
assert 0 <= right <= 12
""",
    "errors as control flow": """
rows = dt.ones(3, 2)
count = 0
while True:
    try:
        rows[count]
    except IndexError:
        break
    count += 1
try:
    iter(dt.ones(()))
except TypeError:
    pass
assert count == 3 and len(list(rows)) == 3
""",
    "averaged weights": """
from devtensor import nn
model = nn.Linear(3, 2).to("cuda")
average = {name: p.data.clone() for name, p in model.named_parameters()}
for _ in range(2):
    for name, p in model.named_parameters():
        average[name].mul_(0.9).add_(p.data * 0.1)
model.load_state_dict(average)
""",
}
