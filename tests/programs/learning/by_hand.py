"""A cubic through a sine: arrays, and the gradient written by hand."""

import math
import sys

import torch

device = torch.device(sys.argv[1])
x = torch.linspace(-math.pi, math.pi, 400, device=device, dtype=torch.float)
y = torch.sin(x)
a, b, c, d = (torch.full((), start, device=device, dtype=torch.float) for start in (0.3, -0.2, 0.1, 0.5))

rate = 5e-6
for step in range(400):
    guess = a + b * x + c * x**2 + d * x**3
    loss = (guess - y).pow(2).sum().item()
    if step % 100 == 99:
        print(step, loss)
    slope = 2.0 * (guess - y)
    a -= rate * slope.sum()
    b -= rate * (slope * x).sum()
    c -= rate * (slope * x**2).sum()
    d -= rate * 0.05 * (slope * x**3).sum()
print(f"y = {a.item()} + {b.item()} x + {c.item()} x^2 + {d.item()} x^3")
