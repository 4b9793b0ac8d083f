"""Grids of images, and files of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from PIL import Image


def make_grid(tensor: Any, nrow: int = 8, padding: int = 2, normalize: bool = False, **_: Any) -> Any:
    if isinstance(tensor, (list, tuple)):
        tensor = torch.stack(list(tensor), dim=0)
    if tensor.dim() == 3:
        tensor = tensor.unsqueeze(0)
    if tensor.size(1) == 1:
        tensor = torch.cat((tensor, tensor, tensor), 1)
    if normalize:
        low, high = float(tensor.min()), float(tensor.max())
        tensor = tensor.clone().clamp_(low, high).sub_(low).div_(max(high - low, 1e-5))
    count, columns = tensor.size(0), min(nrow, tensor.size(0))
    rows = math.ceil(count / columns)
    height, width = tensor.size(2) + padding, tensor.size(3) + padding
    grid = tensor.new_zeros((tensor.size(1), height * rows + padding, width * columns + padding))
    for i in range(count):
        top, left = (i // columns) * height + padding, (i % columns) * width + padding
        grid[:, top : top + tensor.size(2), left : left + tensor.size(3)] = tensor[i]
    return grid


def save_image(tensor: Any, fp: Any, nrow: int = 8, padding: int = 2, normalize: bool = False, **_: Any) -> None:
    grid = make_grid(tensor, nrow, padding, normalize).detach()
    pixels = grid.mul(255).add_(0.5).clamp_(0, 255).permute(1, 2, 0).to("cpu", torch.uint8).numpy()
    Image.fromarray(np.ascontiguousarray(pixels)).save(fp)
