"""9. Arrays made on the host and then moved, where they could have been made on the device.

Run it with `python FILE`; without a GPU, `python -m devtensor run --simulate 1 FILE` gives it a simulated one.
"""

import devtensor as dt

device = dt.device("cuda" if dt.cuda.is_available() else "cpu")

# The mistake is only slow: a million random numbers are made on the cpu, then all of them cross the bus.
with dt.record_transfers() as log:
    dt.randn(1000, 1000).to(device)
print(f"made on the cpu, then moved: {log.nbytes} bytes moved")

# The correction: device= where it is made. No buffer on the host, nothing crosses.
with dt.record_transfers() as log:
    noise = dt.randn(1000, 1000, device=device)
    noise += dt.ones_like(noise)
    steps = dt.arange(1000, device=device)
print(f"made on the device, {steps.device.type}: {log.nbytes} bytes moved")

# The same seed gives the same numbers on every device, so that this changes no result.
dt.manual_seed(7)
here = dt.randn(1000)
dt.manual_seed(7)
there = dt.randn(1000, device=device)
print(f"the same numbers: {here.tolist() == there.tolist()}")

# forbid_transfers guards a part of a program that should not move anything.
try:
    with dt.forbid_transfers():
        dt.eye(3).to(device)
    print("no GPU here, so nothing moves")
except dt.TransferForbiddenError as error:
    print(error)
