"""18. "Modified by an inplace operation": a value that backward needs was changed after it was kept.

Run it with `python FILE`; without a GPU, `python -m devtensor run --simulate 1 FILE` gives it a simulated one.
"""

import traceback

import devtensor as dt
from devtensor import nn

device = dt.device("cuda" if dt.cuda.is_available() else "cpu")
dt.manual_seed(0)
x = dt.randn(4, 3, device=device)
net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)).to(device)

# The gradient of sigmoid reads its result, and the result is changed before backward() comes.
gate = dt.sigmoid(net(x))
gate += 0.1
try:
    gate.sum().backward()
except dt.GradientError:
    traceback.print_exc(limit=0)

# The same with parameters: step() changes what the second loss has kept.
optimizer = dt.optim.SGD(net.parameters(), lr=0.1)
first, second = net(x).sum(), net(x).square().sum()
first.backward()
optimizer.step()
try:
    second.backward()
except dt.GradientError:
    traceback.print_exc(limit=0)

# The corrections: a new array, and all of backward() before step().
gate = dt.sigmoid(net(x)) + 0.1
gate.sum().backward()
optimizer.zero_grad()
first, second = net(x).sum(), net(x).square().sum()
(first + second).backward()
optimizer.step()
print(f"a step on {net[0].weight.device.type}")
