"""Losses that are cut off where the history of the result does not show it, and lines where no statement can be put;
marked as in gradient_mistakes."""

from __future__ import annotations

from gradient_mistakes import Mistake

START = "net, x = dt.nn.Linear(3, 1).to(dev), dt.ones(2, 3, device=dev)\n"
HOST = "net, x = dt.nn.Linear(3, 1), dt.ones(2, 3)\n"  # tensor() takes no list of arrays of a GPU
LEAF = "requires_grad=True makes an array a leaf"

ENDS = [
    Mistake(
        "losses appended to a list",
        "grad-missing",
        f"""
{HOST}losses = []
for i in range(2):
    losses.append(net(x).sum())
dt.tensor(losses).mean().backward()  # cut, fix, here
""",
        "dt.stack(losses)",
        "dt.tensor(losses)",
        says=("made of the numbers in losses",),
    ),
    Mistake(
        "losses of a comprehension in a variable",
        "grad-missing",
        f"""
{HOST}losses = [net(x).sum() for i in range(2)]
loss = dt.tensor(losses).mean()  # cut, fix
loss.backward()  # here
""",
        "dt.stack(losses)",
        "dt.tensor(losses)",
    ),
    Mistake(
        "losses of a dictionary",
        "grad-missing",
        f"""
{HOST}losses = {{"one": net(x).sum(), "two": net(x).mean()}}
dt.tensor(list(losses.values())).sum().backward()  # cut, fix, here
""",
        "dt.stack(list(losses.values()))",
        "dt.tensor(list(losses.values()))",
    ),
    Mistake(
        "losses and a number",
        "grad-missing",
        f"""
{HOST}losses = [net(x).sum(), 1.0]
dt.tensor(losses).sum().backward()  # cut, here
""",
        says=("made of the numbers in losses",),
    ),
    Mistake(
        "losses of a comprehension",
        "grad-missing",
        f"""
{HOST}dt.tensor([net(x).sum() for i in range(2)]).mean().backward()  # made, here
""",
        says=("dt.tensor keeps nothing but the numbers", "dt.stack keeps the gradients"),
    ),
    Mistake(
        "numbers alone",
        "grad-missing",
        """
loss = dt.tensor([1.0, 2.0], device=dev).sum()  # made
loss.backward()  # here
""",
        says=("Its history ends with tensor", LEAF),
    ),
    Mistake(
        "a detached loss that is added in place",
        "grad-missing",
        f"""
{START}total = dt.zeros(1, device=dev)  # made
for i in range(2):
    loss = net(x).sum()
    total += loss.detach()  # cut, fix
total.backward()  # here
""",
        "loss",
        "loss.detach()",
        says=("no gradient flows through .detach()",),
    ),
    Mistake(
        "a detached operand on the right",
        "grad-missing",
        f"""
{START}out = net(x)
loss = (dt.ones(2, 1, device=dev) - out.data).mean()  # made, cut
loss.backward()  # here
""",
        says=("no gradient flows through .data",),
    ),
    Mistake(
        "a way through NumPy",
        "grad-missing",
        """
net, x = dt.nn.Linear(3, 1), dt.ones(2, 3)
out = net(x)
values = out.detach().numpy() * 2  # cut
dt.from_numpy(values).sum().backward()  # made, here
""",
        says=("no gradient flows through .numpy()",),
    ),
    Mistake(
        "a number in an op",
        "grad-missing",
        f"""
{START}out = net(x)
loss = dt.ones(1, device=dev) * out.sum().item()  # made, cut
loss.backward()  # here
""",
        says=("no gradient flows through .item()",),
    ),
    Mistake(
        "an update by hand on the line of its loop",
        "grad-leaf-in-place",
        """
w = dt.ones(3, device=dev, requires_grad=True)
(w * w).sum().backward()
for i in range(2): w -= 0.1 * w.grad  # here
""",
    ),
    Mistake(
        "a write on the line of its loop",
        "grad-modified",
        """
y = dt.zeros(3, device=dev, requires_grad=True).exp()  # kept
for i in range(2): y += 1  # changed
y.sum().backward()  # here
""",
    ),
    Mistake(
        "a detached target is none of it",
        "grad-missing",
        """
x = dt.ones(3, device=dev)
target = x.detach()
loss = (dt.zeros(3, device=dev) - target).mean()  # made
loss.backward()  # here
""",
        says=(LEAF,),
    ),
]
