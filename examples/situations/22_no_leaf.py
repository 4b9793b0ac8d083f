"""22. ".grad is None": an array that is no leaf, as it was moved or computed after requires_grad=True.

Run it with `python FILE`; without a GPU, `python -m devtensor run --simulate 1 FILE` gives it a simulated one.
"""

import devtensor as dt

device = dt.device("cuda" if dt.cuda.is_available() else "cpu")
dt.manual_seed(0)

# The mistake: w is the result of .to(), and the gradient goes to what was before, which nobody holds.
w = dt.randn(3, requires_grad=True).to(device, copy=True)
w.square().sum().backward()
print(f"w.grad is {w.grad}")
try:
    dt.optim.SGD([w], lr=0.1)
except ValueError as error:
    print(error)

# An update that makes a new array has the same end.
w = dt.randn(3, device=device, requires_grad=True)
w.square().sum().backward()
w = w - 0.1 * w.grad
w.square().sum().backward()
print(f"w.grad is {w.grad}")

# The correction: made where it shall be, and changed in place while nothing is recorded.
w = dt.randn(3, device=device, requires_grad=True)
for _ in range(2):
    w.square().sum().backward()
    with dt.no_grad():
        w -= 0.1 * w.grad
        w.grad = None
print(f"w is a leaf on {w.device.type}: {w.is_leaf}")
