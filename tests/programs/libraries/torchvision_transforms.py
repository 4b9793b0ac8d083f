"""Needs: torchvision, PIL. Its transforms over images and arrays, its data sets and boxes."""

import numpy as np
import torch
import torchvision
from fill import numbers
from PIL import Image
from torchvision import ops
from torchvision import transforms as T
from torchvision.transforms import functional as F

image = Image.fromarray((np.arange(32 * 48 * 3) % 255).astype("uint8").reshape(32, 48, 3))
prepared = T.Compose([T.Resize(40), T.CenterCrop(32), T.ToTensor(), T.Normalize((0.5,) * 3, (0.25,) * 3)])(image)
print(tuple(prepared.shape), f"{prepared.mean().item():.6f}")
x = numbers(3, 32, 48) * 0.5 + 0.5
for name, arguments in (
    ("hflip", ()), ("vflip", ()), ("pad", ([2, 3],)), ("center_crop", ([20, 20],)), ("resize", ([20, 30],)),
    ("rotate", (20.0,)), ("affine", (10.0, [1, 2], 1.1, [3.0])), ("adjust_brightness", (1.2,)),
    ("gaussian_blur", ([3, 3],)), ("adjust_contrast", (1.2,)), ("adjust_saturation", (0.7,)), ("adjust_hue", (0.1,)),
    ("invert", ()), ("rgb_to_grayscale", ()), ("erase", (1, 2, 5, 6, 0.5)),
    ("perspective", ([[0, 0], [47, 0], [47, 31], [0, 31]], [[1, 1], [45, 2], [46, 30], [2, 29]])),
):  # fmt: skip
    found = getattr(F, name)(x.float(), *arguments)
    print(name, tuple(found.shape), f"{found.double().mean().item():.5f}")
for change in (T.RandomHorizontalFlip(1.0), T.RandomResizedCrop(16), T.ColorJitter(0.1), T.RandomErasing(1.0)):
    print(type(change).__name__, tuple(change(x).shape))
samples = torchvision.datasets.FakeData(8, (3, 8, 8), 4, T.ToTensor())
for images, labels in torch.utils.data.DataLoader(samples, 4):
    print(tuple(images.shape), tuple(labels.shape))
print(tuple(torchvision.utils.make_grid(numbers(4, 3, 8, 8)).shape))
boxes = torch.tensor([[0.0, 0.0, 2.0, 2.0], [1.0, 1.0, 3.0, 4.0]])
print(ops.box_iou(boxes, boxes).tolist(), ops.box_convert(boxes, "xyxy", "cxcywh").tolist())
print(f"{ops.sigmoid_focal_loss(numbers(8), (numbers(8) > 0).double(), reduction='mean').item():.6f}")
