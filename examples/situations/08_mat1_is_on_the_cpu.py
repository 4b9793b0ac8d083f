"""8. "mat1 is on the CPU": products with one operand on the wrong device.

Run it with `python FILE`; without a GPU, `python -m devtensor run --simulate 1 FILE` gives it a simulated one.
"""

import traceback

import devtensor as dt

device = dt.device("cuda" if dt.cuda.is_available() else "cpu")
queries = dt.randn(4, 64)
keys = dt.randn(64, 16, device=device)
offset = dt.zeros(16, device=device)

# The mistake. The message has the parameter's public name, mat1; the notes have beside it what you called it: queries.
try:
    dt.addmm(offset, queries, keys)
except dt.DeviceMismatchError:
    traceback.print_exc(limit=0)
else:
    print("no GPU here, so nothing can be on the wrong device")

# Each product speaks of its own parameters, never of those of something it calls inside.
for product in (
    lambda: dt.mm(queries, keys),
    lambda: queries @ keys,
    lambda: dt.linear(queries, keys.T, offset),
):
    try:
        product()
    except dt.DeviceMismatchError as error:
        print(error)

# The correction.
queries = queries.to(device)
print(f"scores on {device.type}: {dt.addmm(offset, queries, keys).shape}")
