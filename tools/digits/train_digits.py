"""Train the digits network with PyTorch (CPU) and write assets/digits.safetensors.

Needs torch, numpy, safetensors and tqdm; devtensor itself needs no PyTorch and is not imported.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor, nn
from tqdm import tqdm

ASSETS = Path(__file__).resolve().parents[2] / "python" / "devtensor" / "digits" / "assets"

# Image i is held out when i % MODULUS == REMAINDER. The rule is stored with the weights, and
# devtensor.digits reads it there, so the two cannot drift apart.
MODULUS = 5
REMAINDER = 4

# Chosen by 4-fold cross-validation inside the training images.
SEED = 0
EPOCHS = 150
BATCH = 64
LEARNING_RATE = 3e-3
WEIGHT_DECAY = 5e-2
TURN = 0.15  # radians
ZOOM = 0.1
SHIFT = 0.5  # pixels


class Net(nn.Module):
    """The network that devtensor.digits.predict repeats; softmax is left to the loss."""

    def __init__(self) -> None:
        """PyTorch's default initial weights."""
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.fc = nn.Linear(32 * 4 * 4, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.relu(self.conv2(x))
        return self.fc(x.flatten(1))


def load() -> tuple[Tensor, Tensor]:
    """Images (N, 1, 8, 8) in 0..1 and labels."""
    with gzip.open(ASSETS / "digits.csv.gz", "rt") as lines:
        table = torch.from_numpy(np.loadtxt(lines, delimiter=",", dtype=np.int64))
    return table[:, :64].reshape(-1, 1, 8, 8).to(torch.float32) / 16, table[:, 64]


def jittered(images: Tensor) -> Tensor:
    """Each image turned, scaled and moved a little, as another hand would have written it."""
    count = len(images)
    angle = (torch.rand(count) * 2 - 1) * TURN
    scale = 1 + (torch.rand(count) * 2 - 1) * ZOOM
    shift = (torch.rand(count, 2) * 2 - 1) * SHIFT * 2 / 8  # grid_sample counts -1..1 over 8 pixels
    across = torch.stack([angle.cos() * scale, -angle.sin() * scale, shift[:, 0]], dim=1)
    down = torch.stack([angle.sin() * scale, angle.cos() * scale, shift[:, 1]], dim=1)
    grid = F.affine_grid(torch.stack([across, down], dim=1), images.shape, align_corners=False)
    return F.grid_sample(images, grid, align_corners=False)


def accuracy(net: Net, images: Tensor, labels: Tensor) -> float:
    """Share of images that the network names correctly."""
    with torch.no_grad():
        return float((net(images).argmax(dim=1) == labels).to(torch.float64).mean())


def main() -> None:
    """Train on the images that are not held out; measure the held-out ones at the end."""
    torch.manual_seed(SEED)
    torch.set_num_threads(1)  # the order of summation, and so the result, stays the same
    torch.use_deterministic_algorithms(True)
    images, labels = load()
    held_out = torch.arange(len(images)) % MODULUS == REMAINDER
    train_images, train_labels = images[~held_out], labels[~held_out]

    net = Net()
    optimizer = torch.optim.AdamW(net.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    progress = tqdm(range(EPOCHS), desc="training", unit="epoch")
    for _ in progress:
        for chosen in torch.randperm(len(train_images)).split(BATCH):
            loss = F.cross_entropy(net(jittered(train_images[chosen])), train_labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
        progress.set_postfix(loss=f"{loss.item():.4f}")

    scores = {
        "train": accuracy(net, train_images, train_labels),
        "held_out": accuracy(net, images[held_out], labels[held_out]),
    }
    facts = {
        "held_out": {"modulus": MODULUS, "remainder": REMAINDER},
        "training": {
            "seed": SEED,
            "epochs": EPOCHS,
            "batch": BATCH,
            "learning_rate": LEARNING_RATE,
            "weight_decay": WEIGHT_DECAY,
            "jitter": {"turn": TURN, "zoom": ZOOM, "shift": SHIFT},
            "torch": torch.__version__.split("+")[0],
        },
        "accuracy": scores,
    }
    weights = {name: value.detach().contiguous() for name, value in net.state_dict().items()}
    # One key: the library writes several in no fixed order, and the file would differ each time.
    target = ASSETS / "digits.safetensors"
    save_file(weights, target, {"digits": json.dumps(facts)})
    target.chmod(0o644)
    print(f"accuracy: train {scores['train']:.2%}, held out {scores['held_out']:.2%}")


if __name__ == "__main__":
    main()
