"""The cubic as a layer: nn.Sequential, a loss, and steps by hand."""

import math
import sys

import torch

device = torch.device(sys.argv[1])
x = torch.linspace(-math.pi, math.pi, 400)
y = torch.sin(x).to(device)
powers = x.unsqueeze(-1).pow(torch.tensor([1, 2, 3])).to(device)
model = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Flatten(0, 1)).to(device)
with torch.no_grad():
    model[0].weight.copy_(torch.tensor([[0.3, -0.2, 0.1]]))
    model[0].bias.fill_(0.25)
loss_fn = torch.nn.MSELoss(reduction="sum")
for step in range(300):
    loss = loss_fn(model(powers), y)
    if step % 100 == 99:
        print(step, loss.item())
    model.zero_grad()
    loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 1e-6 * parameter.grad
layer = model[0]
print(layer.bias.item(), layer.weight[:, 0].item(), layer.weight[:, 1].item(), layer.weight[:, 2].item())
