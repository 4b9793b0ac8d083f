"""5. NumPy makes float64, a model has float32 weights; and whether to cast before or after the transfer.

Run it with `python FILE`; without a GPU, `python -m devtensor run --simulate 1 FILE` gives it a simulated one.
"""

import traceback

import numpy as np

import devtensor as dt
from devtensor import nn

device = dt.device("cuda" if dt.cuda.is_available() else "cpu")
model = nn.Linear(100, 10).to(device)

# The mistake: from_numpy shares NumPy's memory and keeps its dtype, which is float64 unless you said otherwise. A
# product of two dtypes is refused on every device. The notes find the line where the float64 came from, also when the
# array went through other ops since.
rows = dt.from_numpy(np.linspace(0.0, 1.0, 6400).reshape(64, 100))
rows = (rows - 0.5) * 2
x = rows.to(device)
try:
    model(x)
except dt.DTypeMismatchError:
    traceback.print_exc(limit=0)

# The correction: both at once. It is cast on the way, so that only the narrow bytes cross the bus ...
with dt.record_transfers() as together:
    x = rows.to(device, dt.float32)
print(f"model(x): {model(x).shape}, {model(x).dtype}")

# ... which a cast after the transfer cannot do.
with dt.record_transfers() as separately:
    rows.to(device).float()
print(f"bytes moved: {together.nbytes} together, {separately.nbytes} one after the other")
