"""Two layers out of matrix products, the gradient by hand, from NumPy's numbers."""

import sys

import numpy as np
import torch

device = torch.device(sys.argv[1])
source = np.random.default_rng(1)
x, y, w1, w2 = (
    torch.from_numpy(source.normal(size=size).astype(np.float32)).to(device)
    for size in ((16, 30), (16, 4), (30, 20), (20, 4))
)
for step in range(60):
    hidden = x.mm(w1)
    positive = hidden.clamp(min=0)
    guess = positive.mm(w2)
    if step % 20 == 19:
        print(step, (guess - y).pow(2).sum().item())
    back = 2.0 * (guess - y)
    grad2 = positive.t().mm(back)
    back = back.mm(w2.t())
    back[hidden < 0] = 0
    w1 -= 2e-5 * x.t().mm(back)
    w2 -= 2e-5 * grad2
print(w1.norm().item(), w2.abs().max().item())
