"""16. A loop that sends its data back to the host in the middle: .numpy(), .cpu(), .item().

Run it with `python FILE`; without a GPU, `python -m devtensor run --simulate 1 FILE` gives it a simulated one.
"""

import numpy as np

import devtensor as dt

device = dt.device("cuda" if dt.cuda.is_available() else "cpu")
x = dt.linspace(0, 1, 1000).to(device)

# The mistake: one step of a pipeline is done by NumPy. Each turn copies all data to the host and back, and waits for
# it. The log has the lines, and points out the round trips.
with dt.record_transfers() as log:
    y = x
    for _ in range(5):
        clipped = np.clip(y.cpu().numpy(), 0.1, 0.9)
        y = dt.from_numpy(clipped).to(device) * 1.1
        if y.max().item() > 10:
            break
print(log)

# The correction: the same step by an op, and one look at the end.
with dt.record_transfers() as log:
    z = x
    for _ in range(5):
        z = z.clamp(0.1, 0.9) * 1.1
    largest = z.max().item()
print(f"afterwards: {log.nbytes} bytes, same result: {dt.allclose(y, z)}, largest {largest:.2f}")
