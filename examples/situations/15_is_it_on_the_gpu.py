"""15. "Is it really on the GPU?": where an array is, what was moved, and by which line.

Run it with `python FILE`; without a GPU, `python -m devtensor run --simulate 1 FILE` gives it a simulated one.
"""

import devtensor as dt
from devtensor import nn

device = dt.device("cuda" if dt.cuda.is_available() else "cpu")

# An array tells, and so does each parameter of a model.
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))
batch = dt.randn(16, 64)
print(f"batch on {batch.device.type}, model on {next(model.parameters()).device.type}")

# Every copy between devices inside of the block: bytes, direction, the array as you wrote it, the line, whether the
# host had to wait.
with dt.record_transfers() as log:
    model = model.to(device)
    result = model(batch.to(device))
    for row in range(3):
        print(f"row {row}: {type(result[row].item()).__name__}")
print(log)

# Inside of a part that should stay on the device, make it an error.
batch = batch.to(device)
with dt.forbid_transfers():
    result = model(batch)
print(f"result on {result.device.type}")

# For a whole script, unchanged: `python -m devtensor run SCRIPT` prints this table at its end.
