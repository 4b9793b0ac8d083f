"""21. Losses that are computed, and wrong: softmax before cross_entropy, a column against a row.

Run it with `python FILE`; without a GPU, `python -m devtensor run --simulate 1 FILE` gives it a simulated one.
"""

import devtensor as dt
from devtensor import nn

device = dt.device("cuda" if dt.cuda.is_available() else "cpu")
dt.manual_seed(0)
x = dt.randn(4, 3, device=device)
labels, prices = dt.tensor([0, 1, 2, 0], device=device), dt.randn(4, device=device)
classes, price = nn.Linear(3, 3).to(device), nn.Linear(3, 1).to(device)

# cross_entropy applies log_softmax itself. With softmax in front of it the network learns slowly.
probabilities = dt.softmax(classes(x), dim=1)
loss = nn.functional.cross_entropy(probabilities, labels)

# (4, 1) against (4,) broadcasts to (4, 4): each prediction is compared with each target.
predicted = price(x)
wrong = nn.functional.mse_loss(predicted, prices)

# The corrections.
loss = nn.functional.cross_entropy(classes(x), labels)
right = nn.functional.mse_loss(predicted.squeeze(-1), prices)
print(f"corrected on {loss.device.type}, the losses differ: {bool(wrong != right)}")
