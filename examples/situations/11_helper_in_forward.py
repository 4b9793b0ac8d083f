"""11. A helper array that a module makes in forward, on the default device.

Run it with `python FILE`; without a GPU, `python -m devtensor run --simulate 1 FILE` gives it a simulated one.
"""

import traceback

import devtensor as dt
from devtensor import nn


class Noisy(nn.Module):
    def forward(self, x):
        noise = dt.randn(x.shape)  # the mistake: on the cpu, wherever x is
        return x + 0.1 * noise


class NoisyAnywhere(nn.Module):
    def forward(self, x):
        noise = dt.randn(x.shape, device=x.device, dtype=x.dtype)  # the correction
        return x + 0.1 * noise


device = dt.device("cuda" if dt.cuda.is_available() else "cpu")
x = dt.zeros(2, 3, device=device)

# The notes follow the array through the product back to the line in forward that made it.
try:
    Noisy().to(device)(x)
except dt.DeviceMismatchError:
    traceback.print_exc(limit=0)
else:
    print("no GPU here, so nothing can be on the wrong device")

print(f"made where x is: {NoisyAnywhere()(x).device.type}")

# Shorter, and right for every device and dtype: what is made like x is where x is.
print(f"randn_like: {dt.randn_like(x).device == x.device}, new_zeros: {x.new_zeros(3).device == x.device}")
