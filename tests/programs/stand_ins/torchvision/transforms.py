"""Changes of PIL images and arrays, by torchvision's names."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageOps


class Compose:
    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = transforms

    def __call__(self, image: Any) -> Any:
        for change in self.transforms:
            image = change(image)
        return image


class ToTensor:
    def __call__(self, image: Any) -> Any:
        pixels = np.array(image)
        if pixels.ndim == 2:
            pixels = pixels[:, :, None]
        return torch.from_numpy(pixels).permute((2, 0, 1)).contiguous().to(dtype=torch.float32).div(255)


class Normalize:
    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> None:
        self.mean, self.std = mean, std

    def __call__(self, image: Any) -> Any:
        mean = torch.as_tensor(self.mean, dtype=image.dtype, device=image.device).view(-1, 1, 1)
        std = torch.as_tensor(self.std, dtype=image.dtype, device=image.device).view(-1, 1, 1)
        return image.clone().sub_(mean).div_(std)


class Lambda:
    def __init__(self, lambd: Callable[[Any], Any]) -> None:
        self.lambd = lambd

    def __call__(self, image: Any) -> Any:
        return self.lambd(image)


class Resize:
    def __init__(self, size: int | Sequence[int], interpolation: Any = None) -> None:
        self.size = size

    def __call__(self, image: Image.Image) -> Image.Image:
        if isinstance(self.size, int):
            scale = self.size / min(image.size)
            wanted = (round(image.size[0] * scale), round(image.size[1] * scale))
        else:
            wanted = (self.size[1], self.size[0])
        return image.resize(wanted, Image.Resampling.BILINEAR)


Scale = Resize


class CenterCrop:
    def __init__(self, size: int | Sequence[int]) -> None:
        self.size = (size, size) if isinstance(size, int) else tuple(size)

    def __call__(self, image: Image.Image) -> Image.Image:
        left, top = (image.size[0] - self.size[1]) // 2, (image.size[1] - self.size[0]) // 2
        return image.crop((left, top, left + self.size[1], top + self.size[0]))


class Pad:
    def __init__(self, padding: int, fill: Any = 0) -> None:
        self.padding, self.fill = padding, fill

    def __call__(self, image: Image.Image) -> Image.Image:
        return ImageOps.expand(image, self.padding, self.fill)


class RandomCrop:
    def __init__(self, size: int, padding: int = 0) -> None:
        self.size, self.padding = size, padding

    def __call__(self, image: Image.Image) -> Image.Image:
        image = ImageOps.expand(image, self.padding) if self.padding else image
        left = random.randint(0, image.size[0] - self.size)
        top = random.randint(0, image.size[1] - self.size)
        return image.crop((left, top, left + self.size, top + self.size))


class RandomHorizontalFlip:
    def __init__(self, p: float = 0.5) -> None:
        self.p = p

    def __call__(self, image: Image.Image) -> Image.Image:
        return ImageOps.mirror(image) if random.random() < self.p else image
