"""13. Two GPUs: cuda:0 is not cuda:1.

Run it with `python FILE`; without two GPUs, `python -m devtensor run --simulate 2 FILE` gives it simulated ones.
"""

import sys
import traceback

import devtensor as dt

if dt.cuda.device_count() < 2:
    print(f"this needs two GPUs, and here are {dt.cuda.device_count()}: try `python -m devtensor run --simulate 2`")
    sys.exit()

# The mistake: half of a model on each GPU, and its result not carried over. Both are "cuda", but not the same device.
first = dt.randn(4, 8, device="cuda:0")
second = dt.randn(8, 2, device="cuda:1")
try:
    first @ second
except dt.DeviceMismatchError:
    traceback.print_exc(limit=0)

# The correction: a copy from GPU to GPU, directly where the two can reach each other, else through the host.
with dt.record_transfers() as log:
    carried = first.to("cuda:1")
print(f"result on {(carried @ second).device}, after a copy from {log[0].source} to {log[0].target}")

# A bare "cuda" is the current device, which `with dt.cuda.device(1):` sets for this thread.
with dt.cuda.device(1):
    x = dt.ones(3, device="cuda")
print(f"made inside of the block: {x.device}; after it: {dt.ones(3, device='cuda').device}")

# A batch split over all GPUs, each part with the weights of its own GPU, and the results gathered on the first.
batch, weight = dt.randn(12, 8), dt.randn(4, 8)
devices = [f"cuda:{i}" for i in range(dt.cuda.device_count())]
parts = [
    dt.linear(part.to(device), weight.to(device))
    for part, device in zip(dt.chunk(batch, len(devices)), devices, strict=True)
]
gathered = dt.cat([part.to(devices[0]) for part in parts])
right = dt.allclose(gathered.cpu(), dt.linear(batch, weight))
print(f"gathered: {gathered.shape} on {gathered.device}, right: {right}")
