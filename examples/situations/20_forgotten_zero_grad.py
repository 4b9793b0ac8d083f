"""20. Gradients that add up, or are gone: zero_grad() forgotten, or in the wrong place.

Run it with `python FILE`; without a GPU, `python -m devtensor run --simulate 1 FILE` gives it a simulated one.
"""

import devtensor as dt
from devtensor import nn

device = dt.device("cuda" if dt.cuda.is_available() else "cpu")
dt.manual_seed(0)
x, y = dt.randn(8, 3, device=device), dt.randn(8, 1, device=device)
model = nn.Linear(3, 1).to(device)
optimizer = dt.optim.SGD(model.parameters(), lr=0.1)

# Nothing fails in PyTorch here, and the second step goes too far. Adding up over several batches before one step is
# no mistake, and gives no warning.
for _ in range(2):
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()

# Between backward() and step() it leaves nothing to step with.
nn.functional.mse_loss(model(x), y).backward()
optimizer.zero_grad()
optimizer.step()

# The correction.
for _ in range(100):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
print(f"trained on {loss.device.type}")
