"""Needs: torchvision, PIL. transforms.v2: images, videos, masks, boxes and key points, which are classes of arrays."""

import copy
import pickle

import numpy as np
import torch
from fill import numbers
from PIL import Image
from torchvision import tv_tensors
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F

picture = Image.fromarray((np.arange(32 * 48 * 3) % 255).astype("uint8").reshape(32, 48, 3))
image = tv_tensors.Image(picture)


def kind(value):
    return "Tensor" if type(value) is torch.Tensor else type(value).__name__


print(kind(image), tuple(image.shape), str(image.dtype).rpartition(".")[2])
print(kind(image + 1), kind(image.clone()), kind(image.to(torch.float32)))
with tv_tensors.set_return_type("TVTensor"):
    print(kind(image * 2), kind(image.float().mean(0)))
print(kind(copy.deepcopy(image)), kind(pickle.loads(pickle.dumps(image))))
boxes = tv_tensors.BoundingBoxes(
    torch.tensor([[2.0, 3.0, 20.0, 25.0], [10.0, 5.0, 40.0, 30.0]]), format="XYXY", canvas_size=(32, 48)
)
mask = tv_tensors.Mask(torch.arange(2 * 32 * 48).reshape(2, 32, 48) % 3)
points = tv_tensors.KeyPoints(torch.tensor([[3.0, 4.0], [30.0, 20.0]]), canvas_size=(32, 48))
video = tv_tensors.Video((numbers(4, 3, 32, 48) * 0.5 + 0.5).float())
floats = F.to_dtype(image, torch.float32, scale=True)
sample = {"image": floats, "boxes": boxes, "mask": mask, "points": points, "video": video, "label": 3}


def show(name, found):
    for key, value in found.items():
        if isinstance(value, torch.Tensor):
            more = f" {value.format.name} {value.canvas_size}" if isinstance(value, tv_tensors.BoundingBoxes) else ""
            numbers_of = f"{value.double().mean().item():.5f} {value.double().std().item():.5f}"
            print(name, key, kind(value), tuple(value.shape), numbers_of + more)


for change in (
    v2.Resize((20, 30)), v2.CenterCrop(24), v2.Pad(3, fill=0.25), v2.RandomHorizontalFlip(1.0),
    v2.RandomVerticalFlip(1.0),
    v2.RandomRotation((20, 20)), v2.RandomAffine((10, 10), None, (1.1, 1.1), (3, 3)),
    v2.GaussianBlur(3, (1.0, 1.0)),
    v2.Grayscale(3), v2.Normalize((0.5,) * 3, (0.25,) * 3), v2.RandomInvert(1.0), v2.RandomSolarize(0.5, 1.0),
    v2.ConvertBoundingBoxFormat("CXCYWH"), v2.ClampBoundingBoxes(), v2.ToDtype(torch.float64, scale=True),
    v2.RandomAdjustSharpness(2.0, 1.0), v2.RandomAutocontrast(1.0), v2.ColorJitter((1.2, 1.2)),
    v2.Compose([v2.Resize(28, antialias=True), v2.CenterCrop(20)]), v2.Identity(), v2.ToPureTensor(),
    v2.RandomOrder([v2.Identity()]), v2.SanitizeBoundingBoxes(labels_getter=None),
):  # fmt: skip
    show(kind(change), change(sample))
for change in (
    v2.RandomResizedCrop(16), v2.RandomCrop(16), v2.RandomPerspective(0.3, 1.0), v2.ElasticTransform(),
    v2.RandomIoUCrop(),
    v2.RandomZoomOut(), v2.ScaleJitter((32, 32)), v2.RandomShortestSize(20), v2.RandomErasing(1.0),
    v2.GaussianNoise(),
    v2.TrivialAugmentWide(), v2.RandAugment(), v2.AutoAugment(), v2.AugMix(),
):  # fmt: skip
    found = change(image if "Aug" in kind(change) else sample)
    kinds = found.values() if isinstance(found, dict) else [found]
    print(kind(change), [kind(value) for value in kinds])
images, labels = numbers(4, 3, 8, 8).float(), torch.tensor([0, 1, 2, 3])
for change in (v2.MixUp(num_classes=4), v2.CutMix(num_classes=4)):
    mixed, targets = change(images, labels)
    print(kind(change), tuple(mixed.shape), tuple(targets.shape), f"{targets.sum().item():.4f}")
for name, arguments in (
    ("horizontal_flip", ()), ("adjust_hue", (0.1,)), ("adjust_gamma", (1.4,)), ("posterize", (3,)), ("equalize", ()),
    ("rgb_to_grayscale", ()), ("crop", (1, 2, 10, 12)), ("resized_crop", (1, 2, 10, 12, [8, 8])),
    ("five_crop", ([8, 8],)),
):  # fmt: skip
    found = getattr(F, name)(floats if name == "resized_crop" else image, *arguments)
    for one in found if isinstance(found, tuple) else (found,):
        print(name, kind(one), tuple(one.shape), f"{one.double().mean().item():.4f}")
print(F.to_pil_image(image).size, kind(F.pil_to_tensor(picture)), F.get_size(boxes), F.get_dimensions(image))
print(kind(boxes), boxes.format.name, "BoundingBoxes" in repr(boxes))
batch = torch.utils.data.default_collate([{"image": image, "label": 1}, {"image": image, "label": 2}])
print(kind(batch["image"]), tuple(batch["image"].shape))
