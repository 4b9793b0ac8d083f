"""Mistakes of training programs whose gradients fail: at `# here` the error is raised.

`# kept`, `# changed`, `# freed`, `# made`, `# used`, `# cut` and `# off` mark the lines that the notes name. fix is
what the error proposes (None: nothing), before the line marked `# fix` or, with fix_of, instead of that text there;
with it the program runs to its end.
"""

from __future__ import annotations

from typing import NamedTuple


class Mistake(NamedTuple):
    name: str
    code: str
    text: str
    fix: str | None = None
    fix_of: str | None = None
    says: tuple[str, ...] = ()


MISTAKES = [
    Mistake(
        "a write to a result that exp keeps",
        "grad-modified",
        """
x = dt.zeros(3, device=dev, requires_grad=True)
y = x.exp()  # kept
y += 1  # changed, fix
y.sum().backward()  # here
""",
        "y = y.clone()",
        says=("y float32 (3,) on",),
    ),
    Mistake(
        "a write to an operand that mul keeps",
        "grad-modified",
        """
w = dt.ones(3, device=dev, requires_grad=True)
h = w + 1
y = h * w  # kept
h.add_(2)  # changed, fix
y.sum().backward()  # here
""",
        "h = h.clone()",
        says=("h float32 (3,) on",),
    ),
    Mistake(
        "an element of a kept result",
        "grad-modified",
        """
w = dt.ones(3, device=dev, requires_grad=True)
h = dt.sigmoid(w)  # kept
h[0] = 0.0  # changed, fix
(h * 2).sum().backward()  # here
""",
        "h = h.clone()",
        says=("h float32 (3,) on",),
    ),
    Mistake(
        "an activation in place behind one that keeps its result",
        "grad-modified",
        """
net = dt.nn.Sequential(dt.nn.Linear(3, 4), dt.nn.Sigmoid(), dt.nn.ReLU(inplace=True)).to(dev)
act = dt.nn.ReLU(inplace=True)
h = dt.sigmoid(net[0](dt.ones(2, 3, device=dev)))  # kept
out = act(h)  # changed, fix
out.sum().backward()  # here
""",
        "h = h.clone()",
    ),
    Mistake(
        "out= over what is kept",
        "grad-modified",
        """
w, x = dt.ones(3, device=dev, requires_grad=True), dt.ones(3, device=dev)
y = w * x  # kept
with dt.no_grad():
    dt.add(x, 1, out=x)  # changed, fix
y.sum().backward()  # here
""",
        "x = x.clone()",
        says=("x float32 (3,) on",),
    ),
    Mistake(
        "a step of the optimizer between forward and backward",
        "grad-modified",
        """
net = dt.nn.Sequential(dt.nn.Linear(3, 4), dt.nn.Tanh(), dt.nn.Linear(4, 1)).to(dev)
opt = dt.optim.SGD(net.parameters(), lr=0.1)
x = dt.ones(2, 3, device=dev)
first = net(x).sum()
second = net(x).mean()  # kept
first.backward()
opt.step()  # changed
second.backward()  # here
""",
        says=("net.2.weight float32 (1, 4)", "An optimizer stepped between forward and backward"),
    ),
    Mistake(
        "backward twice",
        "grad-freed",
        """
w = dt.ones(3, device=dev, requires_grad=True)
loss = (w * w).sum()  # made
loss.backward()  # freed, fix
loss.backward()  # here
""",
        "loss.backward(retain_graph=True)",
        "loss.backward()",
    ),
    Mistake(
        "two losses of one forward pass",
        "grad-freed",
        """
w = dt.ones(3, device=dev, requires_grad=True)
shared = w.exp()  # made
one, two = shared.sum(), (shared * 2).mean()
one.backward()  # freed, fix
two.backward()  # here
""",
        "one.backward(retain_graph=True)",
        "one.backward()",
    ),
    Mistake(
        "a hidden state that is carried on",
        "grad-freed",
        """
w, h = dt.ones(3, device=dev, requires_grad=True), dt.zeros(3, device=dev)
for step in range(3):
    h = (h + w).tanh()  # made, used, fix
    loss = h.sum()
    loss.backward()  # freed, here
""",
        "h = h.detach()",
        says=("h was made by the graph that is used up",),
    ),
    Mistake(
        "a state that a function hands back",
        "grad-freed",
        """
w = dt.ones(3, 3, device=dev, requires_grad=True)

def cell(x, state):
    state = dt.tanh(x + state @ w)  # made, used, fix
    return state.sum(), state

h = dt.zeros(2, 3, device=dev)
for step in range(3):
    loss, h = cell(1.0, h)
    loss.backward()  # freed, here
""",
        "state = state.detach()",
    ),
    Mistake(
        "detach on the way to the loss",
        "grad-missing",
        """
w = dt.ones(3, device=dev, requires_grad=True)
scores = (w * 2).detach()  # cut, fix
loss = scores.sum()
loss.backward()  # here
""",
        "w * 2",
        "(w * 2).detach()",
    ),
    Mistake(
        ".data on the way to the loss",
        "grad-missing",
        """
w = dt.ones(3, device=dev, requires_grad=True)
h = w * 2
loss = (h.data + 1).sum()  # cut, fix
loss.backward()  # here
""",
        "h",
        "h.data",
    ),
    Mistake(
        "a forward pass in a function without recording",
        "grad-missing",
        """
w = dt.ones(3, device=dev, requires_grad=True)

@dt.no_grad()  # off, fix
def predict():
    return (w * 2).sum()  # cut

predict().backward()  # here
""",
        "dt.enable_grad()",
        "dt.no_grad()",
    ),
    Mistake(
        "a loss within no_grad",
        "grad-missing",
        """
w = dt.ones(3, device=dev, requires_grad=True)
with dt.no_grad():  # off, fix
    loss = (w * 2).sum()  # cut
loss.backward()  # here
""",
        "dt.enable_grad()",
        "dt.no_grad()",
    ),
    Mistake(
        "training within inference_mode",
        "grad-missing",
        """
net = dt.nn.Linear(3, 1).to(dev)

def train(x):
    loss = net(x).sum()  # cut
    loss.backward()  # here

with dt.inference_mode():  # off, fix
    train(dt.ones(2, 3, device=dev))
""",
        "dt.enable_grad()",
        "dt.inference_mode()",
    ),
    Mistake(
        "losses as numbers",
        "grad-missing",
        """
w = dt.ones(3, device=dev, requires_grad=True)
one, two = (w * 2).sum(), w.sum()
loss = dt.tensor([one.item(), two.item()]).sum()  # cut, fix
loss.backward()  # here
""",
        "dt.stack([one, two])",
        "dt.tensor([one.item(), two.item()])",
    ),
    Mistake(
        "a loss as a number",
        "grad-missing",
        """
w = dt.ones(3, device=dev, requires_grad=True)
total = (w * 2).sum()
loss = dt.tensor(float(total))  # cut, fix
loss.backward()  # here
""",
        "total",
        "dt.tensor(float(total))",
    ),
    Mistake(
        "argmax before the loss",
        "grad-missing",
        """
w = dt.randn(3, 4, device=dev, requires_grad=True)
labels = w.argmax(1)  # cut
loss = labels.float().mean()
loss.backward()  # here
""",
        says=("argmax gives int64, which has no gradient",),
    ),
    Mistake(
        "a comparison before the loss",
        "grad-missing",
        """
w = dt.randn(3, 4, device=dev, requires_grad=True)
loss = (w > 0).float().mean()  # cut
loss.backward()  # here
""",
        says=("which has no gradient",),
    ),
    Mistake(
        "a gradient of another dtype set by hand",
        "dtype-mismatch",
        """
w = dt.ones(3, device=dev, requires_grad=True)
saved = dt.ones(3, device=dev, dtype=dt.float64)
w.grad = saved  # here, fix
""",
        "saved = saved.float()",
        says=("grad   saved",),
    ),
    Mistake(
        "rounding to whole numbers before the loss",
        "grad-missing",
        """
w = dt.ones(3, device=dev, requires_grad=True)
h = (w * 0.7).round().long()  # cut
loss = h.float().sum()
loss.backward()  # here
""",
        says=("long gives int64, which has no gradient",),
    ),
    Mistake(
        "all parameters frozen",
        "grad-missing",
        """
net = dt.nn.Linear(3, 1).to(dev)
for p in net.parameters():
    p.requires_grad = False
net(dt.ones(2, 3, device=dev)).sum().backward()  # here
""",
        says=("All 2 parameters of net have requires_grad=False",),
    ),
    Mistake(
        "a leaf that was not said to be one",
        "grad-missing",
        """
w = dt.randn(3, device=dev)  # made
(w * w).sum().backward()  # here
""",
        says=("requires_grad=True makes an array a leaf",),
    ),
    Mistake(
        "a loss for each row",
        "grad-not-scalar",
        """
w = dt.ones(3, device=dev, requires_grad=True)
losses = w * w
losses.backward()  # here, fix
""",
        "losses = losses.mean()",
    ),
    Mistake(
        "an update by hand",
        "grad-leaf-in-place",
        """
w = dt.ones(3, device=dev, requires_grad=True)
(w * w).sum().backward()
w -= 0.1 * w.grad  # here, fix
""",
        "with dt.no_grad(): w -= 0.1 * w.grad",
        "w -= 0.1 * w.grad",
    ),
    Mistake(
        "a part of a leaf set by hand",
        "grad-leaf-view-in-place",
        """
w = dt.ones(3, 2, device=dev, requires_grad=True)
w[0].zero_()  # here, fix
""",
        "with dt.no_grad(): w[0].zero_()",
        "w[0].zero_()",
    ),
    Mistake(
        "an element of a leaf set by hand",
        "grad-leaf-in-place",
        """
w = dt.ones(3, 2, device=dev, requires_grad=True)
w[0] = 0.0  # here, fix
""",
        "with dt.no_grad(): w[0] = 0.0",
        "w[0] = 0.0",
    ),
    Mistake(
        "the flag of a result",
        "grad-flag",
        """
w = dt.ones(3, device=dev, requires_grad=True)
y = w * 2
y.requires_grad = False  # here, fix
""",
        "y = y.detach()",
    ),
    Mistake(
        "labels that want a gradient",
        "grad-dtype",
        """
labels = dt.zeros(3, dtype=dt.int64, device=dev)
labels.requires_grad_()  # here, fix
""",
        "labels = labels.float()",
    ),
    Mistake(
        "NumPy's view of what wants a gradient",
        "grad-host-access",
        """
w = dt.ones(3, device="cpu", requires_grad=True)
w.numpy()  # here, fix
""",
        "w = w.detach()",
    ),
    Mistake(
        "a write to a view of no_grad",
        "grad-view-in-place",
        """
w, x = dt.ones(3, device=dev, requires_grad=True), dt.ones(6, device=dev) * 2
y = x * w.sum()
with dt.no_grad():
    half = y[:3]
half *= w  # here, fix
""",
        "half = half.clone()",
    ),
    Mistake(
        "labels that stayed on another device",
        "device-mismatch",
        """
gpu = other if dev == "cpu" else dev
net, x = dt.nn.Linear(3, 3).to(gpu), dt.ones(2, 3, device=gpu)
labels = dt.tensor([0, 2])
out = net(x)
dt.nn.functional.cross_entropy(out, labels).backward()  # here, fix
""",
        'labels = labels.to("{gpu}")',
    ),
    Mistake(
        "float64 targets from NumPy",
        "dtype-mismatch",
        """
import numpy as np
net, x = dt.nn.Linear(3, 3).to(dev), dt.ones(2, 3, device=dev)
y = dt.from_numpy(np.zeros((2, 3))).to(dev)
dt.nn.functional.mse_loss(net(x), y).backward()  # here, fix
""",
        "y = y.float()",
    ),
    Mistake(
        "classes as floats",
        "rank-mismatch",
        """
scores = dt.nn.Linear(3, 3).to(dev)(dt.ones(2, 3, device=dev))
labels = dt.tensor([0.0, 2.0], device=dev)
dt.nn.functional.cross_entropy(scores, labels).backward()  # here, fix
""",
        "labels = labels.long()",
    ),
    Mistake(
        "classes as rows of zeros and a one",
        "rank-mismatch",
        """
scores = dt.nn.Linear(3, 3).to(dev)(dt.ones(2, 3, device=dev))
labels = dt.tensor([[1, 0, 0], [0, 0, 1]], device=dev)
dt.nn.functional.cross_entropy(scores, labels).backward()  # here, fix
""",
        "labels = labels.argmax(1)",
    ),
    Mistake(
        "classes in a column",
        "rank-mismatch",
        """
scores = dt.nn.Linear(3, 3).to(dev)(dt.ones(2, 3, device=dev))
labels = dt.tensor([[0], [2]], device=dev)
criterion = dt.nn.CrossEntropyLoss()
criterion(scores, labels).backward()  # here, fix
""",
        "labels = labels.squeeze(1)",
    ),
    Mistake(
        "a model that moves between forward and backward",
        "grad-moved",
        """
net, x = dt.nn.Linear(3, 1).to(dev), dt.ones(2, 3, device=dev)
loss = net(x).sum()  # made
net.to(other)  # moved
loss.backward()  # here
""",
        says=("(net.weight)", "Move a model before the forward pass"),
    ),
    Mistake(
        "a model that is cast between forward and backward",
        "grad-moved",
        """
net, x = dt.nn.Linear(3, 1).to(dev), dt.ones(2, 3, device=dev)
loss = net(x).sum()  # made
net.double()  # moved
loss.backward()  # here
""",
        says=("(net.weight)", "float64 now", "Cast a model before the forward pass"),
    ),
    Mistake(
        "losses in a list",
        "grad-missing",
        """
w = dt.ones(3, requires_grad=True)
one, two = (w * 2).sum(), w.sum()
loss = dt.tensor([one, two]).sum()  # cut, fix
loss.backward()  # here
""",
        "dt.stack([one, two])",
        "dt.tensor([one, two])",
    ),
    Mistake(
        "scores in the place of probabilities",
        "not-probabilities",
        """
F = dt.nn.functional
x, y = dt.full((4, 3), 2.0), dt.ones(4, 3)
net = dt.nn.Linear(3, 3)
dt.nn.init.ones_(net.weight)
scores = net(x)
F.binary_cross_entropy(scores, y).backward()  # here, fix
""",
        "F.binary_cross_entropy_with_logits",
        "F.binary_cross_entropy",
        says=("scores",),
    ),
    Mistake(
        "an optimizer whose state stayed behind",
        "device-mismatch",
        """
net = dt.nn.Linear(3, 1).to(dev)
opt = dt.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
net(dt.ones(2, 3, device=dev)).sum().backward()
opt.step()
opt.zero_grad()
net.to(other)
net(dt.ones(2, 3, device=other)).sum().backward()
opt.step()  # here
""",
        says=("momentum_buffer[0]",),
    ),
    Mistake(
        "a gradient of another device",
        "device-mismatch",
        """
w = dt.nn.Parameter(dt.ones(3, device=other if dev == "cpu" else dev))
w.grad = dt.ones(3, device="cpu")  # here, fix
""",
        'dt.ones(3, device="cpu").to("{gpu}")',
        says=("<- the odd one",),
        fix_of='dt.ones(3, device="cpu")',
    ),
]
