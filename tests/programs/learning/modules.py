"""A module of one's own, with hooks, control flow and parameters that are used several times."""

import math
import sys

import torch


class Polynomial(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Parameter(torch.tensor(0.3))
        self.b = torch.nn.Parameter(torch.tensor(0.8))
        self.c = torch.nn.Parameter(torch.tensor(-0.1))
        self.e = torch.nn.Parameter(torch.tensor(0.001))
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        y = self.a + self.b * x + self.c * x**3
        for degree in range(4, 4 + self.calls % 3):
            y = y + self.e * x**degree
        return y

    def string(self):
        return f"{self.a.item()} + {self.b.item()} x + {self.c.item()} x^3 + {self.e.item()} x^4 ..."


device = torch.device(sys.argv[1])
x = torch.linspace(-math.pi, math.pi, 400, device=device)
y = torch.sin(x)
model = Polynomial().to(device)
seen = []
handle = model.register_full_backward_hook(lambda module, grad_input, grad_output: seen.append(grad_output[0].shape))
criterion = torch.nn.MSELoss(reduction="sum")
optimizer = torch.optim.SGD(model.parameters(), lr=1e-8, momentum=0.9)
for step in range(300):
    loss = criterion(model(x), y)
    if step % 100 == 99:
        print(step, loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step == 1:
        handle.remove()
print(model.string(), len(seen), tuple(seen[0]))
