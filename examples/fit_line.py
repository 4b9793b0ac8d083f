"""A line fitted to points: a script for PyTorch, with the usual mistake.

devtensor finds the mistake without PyTorch and without a GPU:

    python -m devtensor run --simulate 1 --as-torch examples/fit_line.py
"""

import torch
from torch import nn

device = "cuda"
model = nn.Linear(1, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.linspace(-1, 1, 64).reshape(64, 1)  # the mistake: it stays on the cpu
y = 3 * x + 0.5

for step in range(20):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    if step % 5 == 0:
        print(f"step {step}: loss {loss.item():.3f}")
