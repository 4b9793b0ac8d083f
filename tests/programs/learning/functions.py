"""A function with its own gradient: Legendre's polynomial of degree 3."""

import math
import sys

import torch


class Legendre3(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 0.5 * (5 * x**3 - 3 * x)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * 1.5 * (5 * x**2 - 1)


device = torch.device(sys.argv[1])
x = torch.linspace(-math.pi, math.pi, 400, device=device)
y = torch.sin(x)
a = torch.full((), 0.0, device=device, requires_grad=True)
b = torch.full((), -1.0, device=device, requires_grad=True)
c = torch.full((), 0.0, device=device, requires_grad=True)
d = torch.full((), 0.3, device=device, requires_grad=True)
p3 = Legendre3.apply
for step in range(300):
    guess = a + b * p3(c + d * x)
    loss = (guess - y).pow(2).sum()
    if step % 100 == 99:
        print(step, loss.item())
    loss.backward()
    with torch.no_grad():
        for parameter in (a, b, c, d):
            parameter -= 2.5e-5 * parameter.grad
            parameter.grad.zero_()
print(a.item(), b.item(), c.item(), d.item(), guess.requires_grad)
