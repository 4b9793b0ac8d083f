"""MobileNetV2: depthwise convolutions and ReLU6, with torchvision's keys; a sixth of ResNet-18's multiply-adds.

    python examples/mobilenet_v2.py                      # random weights; on the GPU where there is one
    python examples/mobilenet_v2.py --device cpu --half --batch 1 8
    python examples/mobilenet_v2.py --weights mobilenet_v2.safetensors

The table of layers and the timing are those of resnet18.py, whose text also says how to write the file of weights. The
table shows why such networks are slower than their multiply-adds promise: a depthwise convolution does few of them
for each number that it reads.
"""

from __future__ import annotations

import devtensor as dt
from devtensor import nn


class ConvUnit(nn.Sequential):
    """Convolution, normalisation, ReLU6; depthwise where groups is the number of channels."""

    def __init__(self, before: int, after: int, kernel: int, stride: int = 1, groups: int = 1) -> None:
        super().__init__(
            nn.Conv2d(before, after, kernel, stride, (kernel - 1) // 2, groups=groups, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU6(),
        )


class InvertedResidual(nn.Module):
    """Each pixel is widened, each channel filtered by itself, each pixel narrowed: short cuts join the narrow ends."""

    def __init__(self, before: int, after: int, stride: int, expansion: int) -> None:
        super().__init__()
        inside = before * expansion
        self.short_cut = stride == 1 and before == after
        self.conv = nn.Sequential(
            *([ConvUnit(before, inside, 1)] if expansion != 1 else []),
            ConvUnit(inside, inside, 3, stride, groups=inside),
            nn.Conv2d(inside, after, 1, bias=False),
            nn.BatchNorm2d(after),
        )

    def forward(self, x: dt.Tensor) -> dt.Tensor:
        return x + self.conv(x) if self.short_cut else self.conv(x)


class MobileNetV2(nn.Module):
    """Sandler et al. 2018, table 2: images (N, 3, H, W) to scores (N, classes)."""

    STAGES = (  # expansion, channels, blocks, stride of the first
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    )

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        blocks: list[nn.Module] = [ConvUnit(3, 32, 3, stride=2)]
        before = 32
        for expansion, after, count, stride in self.STAGES:
            for i in range(count):
                blocks.append(InvertedResidual(before, after, stride if i == 0 else 1, expansion))
                before = after
        self.features = nn.Sequential(*blocks, ConvUnit(before, 1280, 1))
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, classes))

    def forward(self, x: dt.Tensor) -> dt.Tensor:
        return self.classifier(self.features(x).mean((2, 3)))


if __name__ == "__main__":
    from resnet18 import main

    main(MobileNetV2, __doc__)
