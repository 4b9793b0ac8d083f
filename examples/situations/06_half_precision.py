"""6. Half precision: float16 and bfloat16, on the cpu as on a GPU.

Run it with `python FILE`; without a GPU, `python -m devtensor run --simulate 1 FILE` gives it a simulated one.
"""

import traceback

import devtensor as dt
from devtensor import nn

device = dt.device("cuda" if dt.cuda.is_available() else "cpu")
model = nn.Linear(4096, 8).to(device).half()

# The mistake: the model was made half precision, the batch was not.
batch = dt.randn(2, 4096, device=device)
try:
    model(batch)
except dt.DTypeMismatchError:
    traceback.print_exc(limit=0)

# The correction: ask the model what it takes, and it stays right when you change to bfloat16 or back.
batch = batch.to(model.weight.dtype)
print(f"model(batch): {model(batch).dtype}")

# Both half types are summed in float32 and rounded once. Summed in float16, 4096 ones get stuck at 2048, where the next
# number after 2048 is 2050.
for dtype in (dt.float16, dt.bfloat16):
    ones = dt.ones(4096, dtype=dtype, device=device)
    print(f"{dtype}: sum {ones.sum().item():g}, product {(ones @ ones).item():g}")

# What differs is range and precision: 70000 is no float16, and bfloat16 knows two to three digits.
x = dt.tensor([70000.0, 3.14159], device=device)
print(f"float16 {x.half().tolist()}, bfloat16 {x.bfloat16().tolist()}")
