"""23. A model that is moved or cast in the middle of training: between forward and backward, or after a first step.

Run it with `python FILE`; without a GPU, `python -m devtensor run --simulate 1 FILE` gives it a simulated one.
"""

import traceback

import devtensor as dt
from devtensor import nn

device = dt.device("cuda" if dt.cuda.is_available() else "cpu")
dt.manual_seed(0)

# The gradient fits the weights as they were, and these are others now.
model, x = nn.Linear(3, 1), dt.randn(4, 3)
loss = model(x).sum()
model.to(device, dt.float64)
try:
    loss.backward()
except (dt.DeviceMismatchError, dt.DTypeMismatchError):
    traceback.print_exc(limit=0)

# What an optimizer remembers stays where it was made.
model = nn.Linear(3, 1)
optimizer = dt.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
model(x).sum().backward()
optimizer.step()
optimizer.zero_grad()
model.to(device)
model(x.to(device)).sum().backward()
try:
    optimizer.step()
except dt.DeviceMismatchError:
    traceback.print_exc(limit=0)
else:
    print("no GPU here, so nothing can be on the wrong device")

# The correction: first the model goes where it shall be. An optimizer may be made before or after that.
model = nn.Linear(3, 1)
optimizer = dt.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
model.to(device)
for _ in range(2):
    optimizer.zero_grad()
    model(x.to(device)).sum().backward()
    optimizer.step()
print(f"two steps on {model.weight.device.type}")
