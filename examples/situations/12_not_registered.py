"""12. model.to(device) moves parameters and buffers; a plain attribute stays where it was.

Run it with `python FILE`; without a GPU, `python -m devtensor run --simulate 1 FILE` gives it a simulated one.
"""

import traceback

import devtensor as dt
from devtensor import nn


class Normalise(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(dt.ones(3))
        self.mean = dt.tensor([0.5, 0.4, 0.3])  # the mistake: the module does not know of it

    def forward(self, x):
        return (x - self.mean) * self.scale


class NormaliseAnywhere(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(dt.ones(3))
        self.register_buffer("mean", dt.tensor([0.5, 0.4, 0.3]))  # the correction

    def forward(self, x):
        return (x - self.mean) * self.scale


device = dt.device("cuda" if dt.cuda.is_available() else "cpu")
x = dt.ones(2, 3, device=device)

# The notes say that self.mean is no buffer, which is why .to(device) passed it by.
layer = Normalise().to(device)
print(f"scale on {layer.scale.device.type}, mean on {layer.mean.device.type}, saved: {list(layer.state_dict())}")
try:
    layer(x)
except dt.DeviceMismatchError:
    traceback.print_exc(limit=0)
else:
    print("no GPU here, so nothing can be on the wrong device")

# A buffer moves with its module and is saved with it.
layer = NormaliseAnywhere().to(device)
print(f"scale on {layer.scale.device.type}, mean on {layer.mean.device.type}, saved: {list(layer.state_dict())}")
print(f"layer(x): {layer(x).shape}")
