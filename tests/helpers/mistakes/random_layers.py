"""Programs of random layers and callers, some of whose arrays and weights have the wrong device or dtype."""

from __future__ import annotations

import random
import textwrap

# x is what forward was given, z another of its arrays, h what is computed so far; all are (2, 4).
LINES = [
    "x = x.reshape(2, 4)", "x = x.view(x.shape[0], -1)", "h = x * 2.0", "h = F.relu(x)", "h = self.act(h)",
    "h = x + self.plain", "h = h + self.buffer", "x = self.fc(x)", "h = self.fc(h)", "x.mul_(2)", "x += 1",
    "h = dt.cat([x, x])[:2]", "h = h + dt.ones(2, 4)", "k = dt.ones(4)\nh = h * k",
    "k = dt.arange(4)\nk = k.unsqueeze(0)\nh = h + k", "for i in range(2):\n    h = h + x",
    "if x.device.type == 'cpu':\n    h = h + self.plain", "h = [x, h][1]", "d = {'a': x}\nh = d['a']",
    "x, h = h, x", "self.kept = x", "m = self.kept\nh = h + m", "h = x.cpu()", "h = h.to(self.fc.weight.device)",
    "h = x + z", "z = z.flatten(1)", "h = self.seq(x)", "h = h.double()", "x = x.double()", "h = h.float()",
    "b, n = x.shape\nh = h.reshape(b, n)", "h = h.T.T", "h = h.softmax(-1) + x", "h = x + self.fc(F.relu(x))",
    "h = helper(x, h)", "h = self.method(h)", "h = self.method(z)", "h = h[:, :]", "h = h[dt.arange(2)]",
    "y = x\ny = y + 1\nh = h + y", "h = dt.where(x > 0, x, z)", "h = h + dt.zeros_like(x)",
    "k = dt.rand(4)\nself.other = k + self.plain[0]\nh = h + k", "args = (x, h)\nh = args[0] + args[1]",
    "h = (lambda a: a + self.buffer)(h)", "h = sum([x, h])", "h = h - x.mean()", "h = x.clone()",
    "with dt.no_grad():\n    h = self.fc(h)", "try:\n    h = self.fc(h)\nexcept KeyError:\n    pass",
    "q, k = x.chunk(2, 1)\nh = dt.cat((q, k), dim=1)",
]  # fmt: skip
CALLS = [
    "net(a, b)", "net(a.reshape(2, 4), b)", "net(*[a, b])", "net(d['a'], b)", "net(o.a, b)", "net(x=a, z=b)",
    "net(a * 1.0, b)", "step(net, a, b)", "net(z=b, x=d['a'])", "net(dt.rand(2, 4), b)", "net(l[0], b)", "net(a, a)",
    "net(t[0], t[1])", "outer(a)", "(lambda q: net(q, b))(a)", "[net(q, b) for q in [a]]", "outer(a.float())",
    "seq(a)", "seq2(a)",
]  # fmt: skip

PROGRAM = """\
import devtensor as dt
from devtensor import nn
import devtensor.nn.functional as F
class Box: pass
def helper(x, h):
    y = x.reshape(2, 4)
    return y + h
def step(model, p, q):
    return model(p, q)
class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.act = nn.Linear(4, 4), nn.ReLU()
        self.seq = nn.Sequential(nn.Flatten(), nn.ReLU(), nn.Linear(4, 4))
        self.plain, self.kept = dt.ones(2, 4), dt.ones(2, 4)
        self.register_buffer("buffer", dt.ones(2, 4))
    def method(self, x):
        x = x.view(2, 4)
        return self.fc(x)
class Sub(Base):
    def forward(self, x):
        h = z = x
{sub}
class Net(Base):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
    def forward(self, x, z):
        h = x
{body}
class Outer(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net
    def forward(self, images):
        return self.net(images, images)
net = Net().to("{net}")
{then}
outer, seq = Outer(net), nn.Sequential(nn.Flatten(), Outer(net))
seq2 = nn.Sequential(nn.Identity(), nn.ReLU(), Outer(net))
a, b = dt.rand(2, 4, device="{a}"){cast}, dt.rand(2, 4, device="{b}")
d, o, l, t = {{"a": a}}, Box(), [a], (a, b)
o.a = a
{call}
"""
THEN = ["", "net.fc.to('{}')", "net.sub.to('{}')", "net.fc.double()", "net.sub.to('cpu')"]


def program(seed: int, gpu: str) -> str:
    """One program; most fail."""
    r = random.Random(seed)

    def body(most: int, more: list[str]) -> str:
        lines = [r.choice(LINES + more) for _ in range(r.randint(0, most))]
        return textwrap.indent("\n".join([*lines, r.choice(["return self.fc(h)", "return h"])]), " " * 8)

    net, a, b = (r.choice(["cpu", gpu]) for _ in range(3))
    then, cast, call = r.choice(THEN).format(gpu), r.choice(["", "", ".double()"]), r.choice(CALLS)
    sub, whole = body(3, []), body(5, ["h = self.sub(x)", "h = self.sub(h)"])
    return PROGRAM.format(sub=sub, body=whole, net=net, then=then, a=a, b=b, cast=cast, call=call)
