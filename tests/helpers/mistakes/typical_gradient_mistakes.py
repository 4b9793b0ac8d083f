"""Those of typical_mistakes.py that are about gradients."""

from __future__ import annotations

GRADIENTS: dict[str, list[tuple[str, str]]] = {
    "grad-moved": [
        (
            "A model that moves before backward",
            """
import devtensor as dt

net = dt.nn.Linear(3, 1)
loss = net(dt.ones(2, 3)).sum()
net.to("cuda")
loss.backward()  # here
""",
        ),
    ],
    "grad-missing": [
        (
            "A loss of predictions that left the graph",
            """
import devtensor as dt

w = dt.ones(3, requires_grad=True)
scores = (w * 2).detach()
loss = scores.sum()
loss.backward()  # here
""",
        ),
    ],
    "grad-not-scalar": [
        (
            "A loss for each row",
            """
import devtensor as dt

w = dt.ones(3, requires_grad=True)
losses = w * w
losses.backward()  # here
""",
        ),
    ],
    "grad-freed": [
        (
            "A second backward",
            """
import devtensor as dt

w = dt.ones(3, requires_grad=True)
loss = (w * w).sum()
loss.backward()
loss.backward()  # here
""",
        ),
    ],
    "grad-modified": [
        (
            "A write to what exp keeps",
            """
import devtensor as dt

x = dt.zeros(3, requires_grad=True)
y = x.exp()
y += 1
y.sum().backward()  # here
""",
        ),
    ],
    "grad-leaf-in-place": [
        (
            "An update by hand",
            """
import devtensor as dt

w = dt.ones(3, requires_grad=True)
w.sum().backward()
w -= 0.1 * w.grad  # here
""",
        ),
    ],
    "grad-leaf-view-in-place": [
        (
            "A row of a parameter",
            """
import devtensor as dt

w = dt.ones(3, 2, requires_grad=True)
w[0].fill_(0)  # here
""",
        ),
    ],
    "grad-view-in-place": [
        (
            "A view made under no_grad",
            """
import devtensor as dt

x = dt.ones(4, requires_grad=True)
y = x * 2
with dt.no_grad():
    row = y[1:]
row.mul_(x[1:])  # here
""",
        ),
    ],
    "grad-captured": [
        (
            "A count that a transformed function keeps",
            """
import devtensor as dt

calls = dt.zeros(1)


def loss(x):
    calls.add_(1)  # here
    return (x * x).sum()


dt.func.grad(loss)(dt.ones(2))
""",
        ),
    ],
    "grad-transform": [
        (
            "A loss that calls backward itself",
            """
import devtensor as dt

weight = dt.ones(2, requires_grad=True)


def loss(x):
    error = (weight * x).sum()
    error.backward()  # here
    return error


dt.func.grad(loss)(dt.ones(2))
""",
        ),
    ],
    "grad-shared": [
        (
            "A write to a detached array that has views",
            """
import devtensor as dt

x = dt.ones(4, requires_grad=True)
y = x * 2
state = y.detach()
row = state[1:]
state.mul_(x)  # here
""",
        ),
    ],
    "grad-out": [
        (
            "A result that has a place already",
            """
import devtensor as dt

w, total = dt.ones(3, requires_grad=True), dt.zeros(3)
dt.add(w, 1, out=total)  # here
""",
        ),
    ],
    "grad-flag": [
        (
            "A result that shall want none",
            """
import devtensor as dt

w = dt.ones(3, requires_grad=True)
y = w * 2
y.requires_grad = False  # here
""",
        ),
    ],
    "grad-dtype": [
        (
            "Labels that want a gradient",
            """
import devtensor as dt

labels = dt.tensor([0, 2, 1])
labels.requires_grad_()  # here
""",
        ),
    ],
    "grad-assign": [
        (
            "A gradient of another shape",
            """
import devtensor as dt

w = dt.ones(3, 2, requires_grad=True)
w.grad = dt.ones(2, 3)  # here
""",
        ),
    ],
    "grad-host-access": [
        (
            "A result handed to NumPy",
            """
import devtensor as dt

w = dt.ones(3, device="cpu", requires_grad=True)
scores = w * 2
scores.numpy()  # here
""",
        ),
    ],
    "grad-function": [
        (
            "A gradient of another shape",
            """
import devtensor as dt


class Total(dt.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x * x).sum(1)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return (2 * x).sum(1) * gradient


w = dt.ones(3, 2, requires_grad=True)
Total.apply(w).sum().backward()  # here
""",
        ),
    ],
    "grad-nan": [
        (
            "A square root at 0, in a block that looks for NaN",
            """
import devtensor as dt

w = dt.zeros(3, requires_grad=True)
with dt.autograd.detect_anomaly():
    length = w.sqrt()
    (length * 0).sum().backward()  # here
""",
        ),
    ],
    "grad-checkpoint": [
        (
            "A function that does something else the second time",
            """
import devtensor as dt
from devtensor.utils.checkpoint import checkpoint

steps = []


def block(x):
    steps.append(x)
    return x.exp() if len(steps) > 1 else x.exp().sin()


w = dt.ones(3, requires_grad=True)
loss = checkpoint(block, w).sum()
loss.backward()  # here
""",
        ),
    ],
}
