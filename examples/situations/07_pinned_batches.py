"""7. Batches from a DataLoader with pinned memory, which still have to be moved; and prefetch, which moves them ahead.

Run it with `python FILE`; without a GPU, `python -m devtensor run --simulate 1 FILE` gives it a simulated one.
"""

import traceback

import devtensor as dt
from devtensor import nn
from devtensor.data import DataLoader, TensorDataset, prefetch

device = dt.device("cuda" if dt.cuda.is_available() else "cpu")
dt.manual_seed(1)
model = nn.Linear(64, 10).to(device)
dataset = TensorDataset(dt.randn(512, 64), dt.randint(0, 10, (512,)))

# pin_memory=True puts each batch into page-locked memory of the host, from which a GPU can copy by itself. Without a
# GPU it is ignored.
loader = DataLoader(dataset, batch_size=128, shuffle=True, pin_memory=True)
images, labels = next(iter(loader))
print(f"a batch is on {images.device}, pinned: {images.is_pinned()}")

# The mistake: to take pinning for a transfer.
try:
    model(images)
except dt.DeviceMismatchError:
    traceback.print_exc(limit=0)
else:
    print("no GPU here, so nothing can be on the wrong device")

# The correction: .to(device) as ever; from pinned memory non_blocking=True does not make the host wait.
print(f"by hand: {model(images.to(device, non_blocking=True)).shape}")

# Better: the next batches travel on a stream of their own while the model works on this one.
with dt.record_transfers() as log:
    right = 0
    for images, labels in prefetch(loader, device):
        right += (model(images).argmax(1) == labels).sum()
print(f"prefetched: {len(log)} copies, {sum(copy.synchronous for copy in log)} of them waited for")
print(f"{right.item()} of {len(dataset)} right, as the model has learned nothing yet")
