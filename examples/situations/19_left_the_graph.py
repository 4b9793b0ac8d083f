"""19. "Does not require grad": a loss that left the graph, by .detach(), by no_grad, by a Python number.

Run it with `python FILE`; without a GPU, `python -m devtensor run --simulate 1 FILE` gives it a simulated one.
"""

import traceback

import devtensor as dt
from devtensor import nn

device = dt.device("cuda" if dt.cuda.is_available() else "cpu")
dt.manual_seed(0)
x = dt.randn(4, 3, device=device)
encoder, head = nn.Linear(3, 8).to(device), nn.Linear(8, 1).to(device)


def detached():
    return encoder(x).detach().sum()


@dt.no_grad()
def predicted():
    return head(encoder(x)).sum()


def numbers():
    parts = [encoder(x).sum(), head(encoder(x)).sum()]
    return dt.tensor([part.item() for part in parts]).sum()


for loss in (detached(), predicted(), numbers()):
    try:
        loss.backward()
    except dt.GradientError:
        traceback.print_exc(limit=0)

# The correction: one graph from the parameters to the loss.
loss = dt.stack([encoder(x).sum(), head(encoder(x)).sum()]).sum()
loss.backward()
print(f"both have gradients: {encoder.weight.grad is not None and head.weight.grad is not None}")
