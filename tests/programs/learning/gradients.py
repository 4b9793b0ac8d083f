"""The cubic again: backward() finds the gradient."""

import math
import sys

import torch

torch.set_default_dtype(torch.float)
device = torch.device(sys.argv[1])
x = torch.linspace(-math.pi, math.pi, 400, device=device)
y = torch.sin(x)
a, b, c, d = (torch.tensor(start, device=device, requires_grad=True) for start in (0.3, -0.2, 0.1, 0.5))
for step in range(300):
    loss = (a + b * x + c * x**2 + d * x**3 - y).pow(2).sum()
    loss.backward()
    with torch.no_grad():
        for parameter, rate in ((a, 5e-6), (b, 5e-6), (c, 5e-6), (d, 2e-7)):
            parameter -= rate * parameter.grad
            parameter.grad = None
    if step % 100 == 99:
        print(step, loss.item())
print(a.item(), b.item(), c.item(), d.item(), a.requires_grad, loss.grad_fn is not None)
