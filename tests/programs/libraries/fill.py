"""What the programs of this folder share: weights that no random number makes, and what is printed of a model."""

import numpy as np
import torch


def numbers(*shape, low=-1.0, high=1.0):
    """The same float64 numbers in every framework."""
    count = int(np.prod(shape))
    return torch.from_numpy(np.sin(np.linspace(low, high, count) * 3.0).reshape(shape))


def show(model, *inputs, pick=lambda result: result, **named):
    """Form and mean size of what the model gives in training mode, and the sum of its gradients; in float64."""
    model.double().train()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(numbers(*parameter.shape, low=-0.05, high=0.06))
    for part in model.modules():
        for name in ("p", "drop_prob", "drop_rate", "attention_dropout"):
            if isinstance(getattr(part, name, None), float):
                setattr(part, name, 0.0)
    result = pick(model(*inputs, **named))
    result.square().mean().backward()
    total = sum(p.grad.abs().sum().item() for p in model.parameters() if p.grad is not None)
    print(type(model).__name__, tuple(result.shape), f"{result.abs().mean().item():.8g}", f"{total:.7g}", flush=True)
