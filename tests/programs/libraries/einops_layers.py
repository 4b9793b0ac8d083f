"""Needs: einops. Its functions, and its layers in a model that trains."""

import torch
from einops import einsum, pack, rearrange, reduce, repeat, unpack
from einops.layers.torch import EinMix, Rearrange, Reduce
from fill import numbers, show

x = numbers(2, 3, 8, 8)
print(rearrange(x, "b c (h p) (w q) -> b (h w) (p q c)", p=2, q=2).sum(1).mean().item())
print(reduce(x, "b c (h 2) (w 2) -> b c h w", "max").sum().item(), reduce(x, "b c h w -> c", "mean").tolist())
print(tuple(repeat(x, "b c h w -> b c (h 2) (w 3)").shape), einsum(x, x, "b c h w, b d h w -> b c d").sum().item())
packed, shapes = pack([x, x[:, 0]], "b * h w")
print(tuple(packed.shape), [tuple(part.shape) for part in unpack(packed, shapes, "b * h w")])
show(
    torch.nn.Sequential(
        Rearrange("b c (h p) (w q) -> b (h w) (c p q)", p=2, q=2), torch.nn.Linear(12, 16), torch.nn.GELU(),
        EinMix("b t c -> b t d", weight_shape="c d", bias_shape="d", c=16, d=8), Reduce("b t d -> b d", "mean"),
    ),
    x,
)  # fmt: skip
