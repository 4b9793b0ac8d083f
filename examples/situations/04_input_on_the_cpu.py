"""4. The model is on the GPU, the input was left on the cpu: the forgotten .to(device).

Run it with `python FILE`; without a GPU, `python -m devtensor run --simulate 1 FILE` gives it a simulated one.
"""

import traceback

import devtensor as dt
from devtensor import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Flatten())
        self.head = nn.Linear(8 * 8 * 8, 10)

    def forward(self, x):
        return self.head(self.body(x))


device = dt.device("cuda" if dt.cuda.is_available() else "cpu")
net = Net().to(device)
batch = dt.randn(4, 1, 8, 8)

# The mistake. It comes up deep inside of the model; the notes speak of the nearest line that you wrote, where the batch
# is called x, and say at which line it was made and which layer it reached.
try:
    net(batch)
except dt.DeviceMismatchError as error:
    traceback.print_exc(limit=0)
    print(f"the layer was {error.module_path}")
else:
    print("no GPU here, so nothing can be on the wrong device")

# A layer by itself says it alike.
try:
    nn.Linear(64, 10, device=device)(batch.flatten(1))
except dt.DeviceMismatchError as error:
    print(error)

# The correction.
batch = batch.to(device)
print(f"net(batch) on {device.type}: {net(batch).shape}")
