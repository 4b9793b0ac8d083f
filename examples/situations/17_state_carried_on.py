"""17. "Backward through the graph a second time": the state of a recurrent network carried from batch to batch.

Run it with `python FILE`; without a GPU, `python -m devtensor run --simulate 1 FILE` gives it a simulated one.
"""

import traceback

import devtensor as dt
from devtensor import nn

device = dt.device("cuda" if dt.cuda.is_available() else "cpu")
dt.manual_seed(0)
cell = nn.RNNCell(3, 8, device=device)
batches = [dt.randn(4, 3, device=device) for _ in range(3)]

# The mistake: the second loss reaches back into the graph of the first batch, which its backward() has used up.
h = dt.zeros(4, 8, device=device)
try:
    for batch in batches:
        h = cell(batch, h)
        loss = h.square().mean()
        loss.backward()
except dt.GradientError as error:
    traceback.print_exc(limit=0)
    print(f"fix: {error.fix}, before line {error.fix_at.lineno if error.fix_at else '?'}")

# The correction: the state goes on as numbers, and each batch has a graph of its own.
h = dt.zeros(4, 8, device=device)
for batch in batches:
    h = cell(batch, h.detach())
    loss = h.square().mean()
    loss.backward()
print(f"three batches, gradient of {tuple(cell.weight_hh.grad.shape)} on {cell.weight_hh.grad.device.type}")
