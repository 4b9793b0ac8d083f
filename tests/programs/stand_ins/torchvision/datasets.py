"""Drawn images with labels, under the names of the data sets that programs download."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from PIL import Image


class _Drawn(torch.utils.data.Dataset):
    size: tuple[int, ...] = (28, 28)
    number_of_classes = 10

    def __init__(
        self,
        root: Any = None,
        train: bool = True,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
        download: bool = False,
    ) -> None:
        rng = np.random.default_rng(7)
        means = rng.integers(0, 200, (self.number_of_classes, *self.size))
        rng = np.random.default_rng(int(train))
        labels = rng.integers(0, self.number_of_classes, 600 if train else 100)
        noise = rng.integers(0, 56, (len(labels), *self.size))
        images = (means[labels] + noise).astype(np.uint8)
        self.train, self.transform, self.target_transform = train, transform, target_transform
        self.images = images
        self.data: Any = torch.from_numpy(images)
        self.targets: Any = torch.from_numpy(labels.astype(np.int64))
        self.labels = labels.tolist()
        self.classes = [str(i) for i in range(self.number_of_classes)]
        self.train_data = self.test_data = self.data
        self.train_labels = self.test_labels = self.targets

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image: Any = Image.fromarray(self.images[index])
        label: Any = self.labels[index]
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            label = self.target_transform(label)
        return image, label


class MNIST(_Drawn):
    pass


class FashionMNIST(_Drawn):
    pass


class CIFAR10(_Drawn):
    size = (32, 32, 3)


class CIFAR100(CIFAR10):
    number_of_classes = 100
