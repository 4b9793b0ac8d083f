"""2. A script that runs on machines with and without a GPU: ask first, choose the device once.

Run it with `python FILE`; without a GPU, `python -m devtensor run --simulate 1 FILE` gives it a simulated one.
"""

import traceback

import devtensor as dt

# The mistake: "cuda" written into the script. Import never fails for a CUDA reason, nor does making a device object;
# an array on a device that is not there raises, and says what is there.
try:
    x = dt.zeros(3, device="cuda")
    print("there is a GPU here; elsewhere the line above fails")
except dt.DeviceNotAvailableError as error:
    print(error)

# A GPU of a bigger machine is as absent as any.
try:
    dt.zeros(3, device="cuda:31")
except dt.DeviceNotAvailableError:
    traceback.print_exc(limit=0)

# The correction: ask, which never raises, and hand one `device` to everything that makes or moves an array.
device = dt.device("cuda" if dt.cuda.is_available() else "cpu")
x = dt.ones(3, device=device)
y = dt.arange(3, dtype=dt.float32, device=device)
print(f"x + y on {device.type}: {(x + y).tolist()}")

# `python -m devtensor` lists the devices, and says why CUDA is not available where it is not.
