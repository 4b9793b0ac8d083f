"""A small classifier, as somebody might have it in a project: what test_classifier.py tests."""

import devtensor as dt
from devtensor import nn


class Normalise(nn.Module):
    """Pixels to numbers around 0."""

    def __init__(self, mean, std):
        super().__init__()
        self.register_buffer("mean", dt.tensor(mean).reshape(-1, 1, 1))
        self.register_buffer("std", dt.tensor(std).reshape(-1, 1, 1))

    def forward(self, images):
        return (images - self.mean) / self.std


class Classifier(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.normalise = Normalise([0.5, 0.4, 0.3], [0.2, 0.2, 0.2])
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.head = nn.Linear(8 * 4 * 4, classes)

    def forward(self, images):
        return self.head(self.features(self.normalise(images)).flatten(1))


def with_noise(images, scale=0.1):
    """Images with random noise, for training."""
    return images + scale * dt.randn(images.shape, device=images.device)


def accuracy(model, images, labels):
    """The part of images that model gets right, as a 0-d array on their device: nobody waits for the device here."""
    return (model(images).argmax(1) == labels).float().mean()
