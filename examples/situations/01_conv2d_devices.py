"""1. conv2d with its input, weight and bias on different devices.

Run it with `python FILE`; without a GPU, `python -m devtensor run --simulate 1 FILE` gives it a simulated one.
"""

import traceback

import devtensor as dt

device = dt.device("cuda" if dt.cuda.is_available() else "cpu")

# A batch as it comes from a file, on the cpu, and a filter on the device.
images = dt.randn(8, 3, 32, 32)
weight = dt.randn(16, 3, 3, 3, device=device)

# The mistake: the batch was not moved. Nothing is moved behind your back, so on a GPU this line raises. The message
# names every operand; the notes say where each was made, mark the odd one out, and propose the line that is missing.
try:
    dt.conv2d(images, weight, padding=1)
except dt.DeviceMismatchError:
    traceback.print_exc(limit=0)
else:
    print("no GPU here, so nothing can be on the wrong device")

# The same the other way round, and with a bias that was forgotten. It is one sentence in all cases.
try:
    dt.conv2d(images.to(device), weight.cpu(), padding=1)
except dt.DeviceMismatchError as error:
    print(error)

bias = dt.zeros(16)
try:
    dt.conv2d(images.to(device), weight, bias, padding=1)
except dt.DeviceMismatchError as error:
    print(error)

# The correction: one .to(device) where data comes in. On a machine without a GPU it returns the same array.
images, bias = images.to(device), bias.to(device)
features = dt.conv2d(images, weight, bias, padding=1)
print(f"conv2d on {features.device.type}: {features.shape}")
