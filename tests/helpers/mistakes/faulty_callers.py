"""Programs whose mistake comes to light in a layer of a library, by the name x, and belongs to whoever called it.

As in faulty_programs.py; `# here` is the line that fails and `# fix` the one that the fix belongs to.
"""

from __future__ import annotations

from typing import NamedTuple


class Called(NamedTuple):
    name: str
    fix: str | None
    said: str | None  # in the notes
    text: str


NET = """
## scripts_model.py
import devtensor as dt
from devtensor import nn
import devtensor.nn.functional as F
class Block(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.norm, self.proj = nn.LayerNorm(n), nn.Linear(n, n)
    def forward(self, x):
        return x + self.proj(self.norm(x))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.act, self.head = nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Linear(4 * 6 * 6, 2)
        self.position = nn.Embedding(8, 4)
        self.gain = dt.ones(1)
        self.tril = dt.ones(8, 8).tril()
        self.mean = dt.zeros(1)"""

PROGRAMS = [
    Called("the batch of a loop", 'images = images.to("cuda:0")', "x is `images` at main.py:8", NET + """
    def forward(self, x):
        x = self.conv(x)  # here
        return self.head(x.flatten(1))
## main.py
from scripts_model import Net
from devtensor.data import DataLoader, TensorDataset
data = TensorDataset(dt.rand(4, 1, 8, 8), dt.arange(4) % 2)
net = Net().to("cuda")
for epoch in range(2):
    for images, labels in DataLoader(data, batch_size=2):
        out = net(images)  # fix
"""),
    Called("an attribute, two modules deep", 'batch.image = batch.image.to("cuda:0")', "x is `batch.image`", NET + """
    def forward(self, x):
        return self.conv(x)  # here
class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()
    def forward(self, inputs):
        if inputs.ndim == 3:
            inputs = inputs[None]
        return self.net(inputs)
## main.py
class Batch:
    def __init__(self, image):
        self.image = image
from scripts_model import Outer
net = Outer().to("cuda")
batch = Batch(dt.rand(4, 1, 8, 8))
net(batch.image)  # fix
"""),
    Called("a dictionary", "batch['image'] = batch['image'].to(\"cuda:0\")", "is `batch['image']`", NET + """
    def forward(self, batch):
        return self.conv(batch["image"])  # here
## main.py
from scripts_model import Net
batch = {"image": dt.rand(4, 1, 8, 8), "label": dt.arange(4)}
Net().to("cuda")(batch)  # fix
"""),
    Called("an entry", 'batch["image"] = batch["image"].to("cuda:0")', 'x is made of `batch["image"]`', NET + """
    def forward(self, x):
        n = x.shape[0]
        x = x.reshape(n, 1, 8, 8)
        return self.conv(x)  # here
## main.py
from scripts_model import Net
batch = {"image": dt.rand(4, 64)}
Net().to("cuda")(batch["image"])  # fix
"""),
    Called("an expression", 'loaded().to("cuda:0")', "x is `loaded()` at main.py:5", NET + """
    def forward(self, x):
        return self.conv(x)  # here
## main.py
from scripts_model import Net
def loaded():
    return dt.rand(4, 1, 8, 8)
Net().to("cuda")(loaded())  # fix
"""),
    Called("made in the call", 'dt.rand(4, 1, 8, 8, device="cuda:0")', None, NET + """
    def forward(self, x):
        return self.conv(x)  # here
## main.py
from scripts_model import Net
net = Net().to("cuda")
net(dt.rand(4, 1, 8, 8))  # fix
"""),
    Called("in a training function", 'x = x.to("cuda:0")', "input is `x`", NET + """
    def forward(self, input):
        return self.conv(input)  # here
## main.py
from scripts_model import Net
def step(model, x):
    return model(x).sum()  # fix
step(Net().to("cuda"), dt.rand(4, 1, 8, 8))
"""),
    Called("through a function of the layer", 'images = images.to("cuda:0")', "a is `images`", NET + """
    def embed(self, a):
        return self.conv(a)  # here
    def forward(self, x):
        return self.embed(x / 255.0).relu()
## main.py
from scripts_model import Net
images = dt.rand(4, 1, 8, 8)
Net().to("cuda")(images)  # fix
""".replace("(x / 255.0)", "(x)")),
    Called("what was made of it", 'images = images.to("cuda:0")', "h is made of `images`", NET + """
    def forward(self, x):
        h = x / 255.0
        h = self.act(h - 0.5)
        return self.conv(h)  # here
## main.py
from scripts_model import Net
images = dt.rand(4, 1, 8, 8)
Net().to("cuda")(images)  # fix
"""),
    Called("a Sequential", 'images = images.to("cuda:0")', "input is made of `images` at main.py:6", """
from devtensor import nn
net = nn.Sequential(nn.Flatten(), nn.ReLU(), nn.Linear(16, 2)).to("cuda")
images = dt.rand(3, 4, 4)
net(images)  # here # fix
"""),
    Called("a Sequential with layers of the user's", 'pixels = pixels.to("cuda:0")', "x is made of `pixels`", NET + """
    def forward(self, x):
        return self.head(x)  # here
## main.py
from devtensor import nn
from scripts_model import Net
net = nn.Sequential(nn.Flatten(), nn.ReLU(), Net()).to("cuda")
pixels = dt.rand(3, 12, 12)
net(pixels)  # fix
"""),
    Called("float64 from NumPy", "rows = rows.float()", "x is `rows`", NET + """
    def forward(self, x):
        b, n = x.shape
        return self.proj(x)  # here
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(3, 2)
    def forward(self, x):
        return self.proj(x.reshape(-1, 3))
## main.py
import numpy as np
from devtensor import nn
from scripts_model import Block
rows = dt.from_numpy(np.ones((4, 3)))
Block(3)(rows)  # fix
""".replace("        return x + self.proj(self.norm(x))", "        return self.norm(x)  # here")),
    Called("bytes of a photograph", "photo = photo.float()", "x is `photo`", NET + """
    def forward(self, x):
        return self.conv(x)  # here
## main.py
import numpy as np
from scripts_model import Net
photo = dt.from_numpy(np.zeros((1, 1, 8, 8), dtype=np.uint8))
Net()(photo)  # fix
"""),
    Called("channels last", "photo = photo.permute(0, 3, 1, 2)", "x is `photo`", NET + """
    def forward(self, x):
        return F.conv2d(x, self.conv.weight.expand(-1, 3, -1, -1))  # here
## main.py
from scripts_model import Net
photo = dt.rand(1, 8, 9, 3)
Net()(photo)  # fix
"""),
    Called("places made in forward", "dt.arange(x.shape[1], device=x.device)", None, NET + """
    def forward(self, x):
        return self.position(x) + self.position(dt.arange(x.shape[1]))  # here # fix
## main.py
from scripts_model import Net
Net().to("cuda")(dt.zeros(2, 8, dtype=dt.int64, device="cuda"))
"""),
    Called("places made before", "dt.arange(0, t, dtype=dt.long, device=idx.device)", None, NET + """
    def forward(self, idx):
        b, t = idx.size()
        pos = dt.arange(0, t, dtype=dt.long)  # fix
        pos = pos.unsqueeze(0)
        return self.position(idx) + self.position(pos)  # here
## main.py
from scripts_model import Net
Net().to("cuda")(dt.zeros(2, 8, dtype=dt.int64, device="cuda"))
"""),
    Called("a state made by the caller", "dt.zeros(x.shape[0], 4, device=x.device)", "h is `h`", NET + """
    def forward(self, x):
        h = dt.zeros(x.shape[0], 4)  # fix
        for i in range(2):
            h = self.cell(x, h)
        return h
class Cell(nn.Module):
    def forward(self, x, h):
        return x * 2 + h  # here
## main.py
from scripts_model import Cell, Net
net = Net()
net.cell = Cell()
net.to("cuda")(dt.ones(2, 4, device="cuda"))
"""),
    Called("a mask", '(self.tril[:4, :4] == 0).to("cuda:0")', 'self.register_buffer("tril", ...)', NET + """
    def forward(self, x):
        return x.masked_fill(self.tril[:4, :4] == 0, 0.0)  # here # fix
## main.py
from scripts_model import Net
Net().to("cuda")(dt.ones(4, 4, device="cuda"))
"""),
    Called("labels of the same line as the inputs", 'y = y.to("cuda:0")', "y.view(-1) is made of `y`", NET + """
    def forward(self, x, y=None):
        h = self.head(self.conv(x).flatten(1))
        return F.cross_entropy(h, y.view(-1)) if y is not None else h  # here
## main.py
from scripts_model import Net
net = Net().to("cuda")
x, y = [part for part in (dt.rand(2, 1, 8, 8), dt.zeros(2, 1, dtype=dt.int64))]
x = x.to("cuda")
net(x, y)  # fix
"""),
    # where the caller's variable is also what other arrays of the cpu met, the fix stays before the failing line
    Called("met another array before", 'x = x.to("cuda:0")', "x is `images`", NET + """
    def forward(self, x):
        low = (x * self.gain).mean()
        return self.conv(x)  # here # fix
## main.py
from scripts_model import Net
images = dt.rand(4, 1, 8, 8)
Net().to("cuda")(images)
"""),
    Called("made of two arrays", 'x = x.to("cuda:0")', None, NET + """
    def forward(self, x):
        x = x - self.mean
        return self.conv(x)  # here # fix
## main.py
from scripts_model import Net
images = dt.rand(4, 1, 8, 8)
Net().to("cuda")(images)
"""),
    Called("in a layer that was left behind", 'h = h.to("cuda:0")', None, NET + """
    def forward(self, x):
        h = self.conv(x)
        h = h.flatten(1)
        return self.head(h)  # here # fix
## main.py
from scripts_model import Net
net = Net()
net.head.to("cuda")
images = dt.rand(4, 1, 8, 8)
net(images)
"""),
    Called("changed in place before", 'x = x.to("cuda:0")', "x is `images`", NET + """
    def forward(self, x):
        x.add_(self.mean)
        return self.conv(x)  # here # fix
## main.py
from scripts_model import Net
images = dt.rand(4, 1, 8, 8)
Net().to("cuda")(images)
"""),
    Called("moved back in forward", 'x = x.to("cuda:0")', None, NET + """
    def forward(self, x):
        x = x.cpu()
        return self.conv(x)  # here # fix
## main.py
from scripts_model import Net
images = dt.rand(4, 1, 8, 8, device="cuda")
Net().to("cuda")(images)
"""),
    # other lines would run if it was elsewhere
    Called("a branch by its device", 'x = x.to("cuda:0")', "x is made of `images`", NET + """
    def forward(self, x):
        kind = x.device.type
        if kind == "cpu":
            x = x * 2
        return self.conv(x)  # here # fix
## main.py
from scripts_model import Net
images = dt.rand(4, 1, 8, 8)
Net().to("cuda")(images)
"""),
    Called("a branch by its dtype", "x = x.float()", "x is `images`", NET + """
    def forward(self, x):
        y = x if x.dtype == dt.float64 else x.flatten(1)
        return self.conv(x)  # here # fix
## main.py
from scripts_model import Net
images = dt.rand(4, 1, 8, 8, dtype=dt.float64)
Net()(images)
"""),
    Called("its device, for what is made", 'images = images.to("cuda:0")', "x is `images`", NET + """
    def forward(self, x, mask=None):
        device, dtype = x.device, x.dtype
        mask = dt.ones(8, device=device) if mask is None else mask.to(x.device)
        far = dt.arange(8, device=device) < 4
        if x.dtype == dt.float32 and far.device.type == "cpu":
            mask = mask * far
        return self.conv(x)  # here
## main.py
from scripts_model import Net
images = dt.rand(4, 1, 8, 8)
Net().to("cuda")(images)  # fix
"""),
    Called("shapes that were read before", 'x = x.permute(0, 3, 1, 2)', "x is `photo`", NET + """
    def forward(self, x):
        assert x.shape[3] == 3
        return F.conv2d(x, self.conv.weight.expand(-1, 3, -1, -1))  # here # fix
## main.py
from scripts_model import Net
photo = dt.rand(1, 8, 9, 3)
Net()(photo)
"""),
]  # fmt: skip
