"""What every public program runs with: seeds, and for PyTorch the random numbers that devtensor draws.

tools/programs/public_programs.py puts this folder on the path. The two frameworks draw different numbers for one seed,
so that nothing could be compared; here PyTorch's functions ask devtensor, and both print the same losses.
"""

from __future__ import annotations

import os
import random
from typing import Any

_RANDINT = ("low", "high", "size")


def seed() -> None:
    random.seed(0)
    try:
        import numpy
    except ImportError:
        return
    numpy.random.seed(0)


def _draw_from_devtensor() -> None:
    import numpy as np
    import torch
    import torch.nn.functional as F
    from torch.utils.data import RandomSampler, dataloader

    import devtensor as dt

    generators: dict[int, tuple[Any, Any]] = {}  # each with the torch.Generator, which must live as long as its id

    def generator_of(generator: Any) -> Any:
        if generator is None or generator is torch.default_generator:
            return None
        if id(generator) not in generators:
            generators[id(generator)] = (generator, dt.Generator().manual_seed(generator.initial_seed()))
        return generators[id(generator)][1]

    def sizes(size: tuple[Any, ...]) -> tuple[int, ...]:
        return tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size

    def given(drawn: dt.DeviceArray, dtype: Any = None, requires_grad: bool = False, **_: Any) -> torch.Tensor:
        value = torch.from_numpy(np.array(drawn.numpy()))
        return value.to(dtype or value.dtype).requires_grad_(requires_grad)

    def wide(dtype: Any) -> Any:
        return dt.float64 if dtype is torch.float64 else dt.float32

    def creator(name: str) -> Any:
        def draw(*size: Any, generator: Any = None, dtype: Any = None, **options: Any) -> torch.Tensor:
            options.pop("size", None) if size else None
            shape = sizes(size) if size else tuple(options.pop("size"))
            drawn = getattr(dt, name)(shape, generator=generator_of(generator), dtype=wide(dtype))
            return given(drawn, dtype or torch.float32, options.get("requires_grad", False))

        return draw

    def like(name: str) -> Any:
        def draw(input: torch.Tensor, dtype: Any = None, **options: Any) -> torch.Tensor:
            drawn = getattr(dt, name)(tuple(input.shape), dtype=wide(dtype or input.dtype))
            value = torch.empty_like(input, dtype=dtype).detach().copy_(given(drawn))  # with its strides
            return value.requires_grad_(options.get("requires_grad", False))

        return draw

    def randint(*args: Any, generator: Any = None, dtype: Any = None, **options: Any) -> torch.Tensor:
        without_low = len(args) + ("size" in options) == 2
        placed = dict(zip(_RANDINT[without_low:], args, strict=False))
        low, high, size = ({"low": 0, **options, **placed}[name] for name in _RANDINT)
        drawn = dt.randint(low, high, tuple(size), generator=generator_of(generator))
        return given(drawn, dtype or torch.int64)

    def randint_like(input: torch.Tensor, *args: Any, dtype: Any = None, **options: Any) -> torch.Tensor:
        low, high = args if len(args) == 2 else (options.get("low", 0), args[0] if args else options.get("high"))
        return torch.empty_like(input, dtype=dtype).detach().copy_(randint(low, high, tuple(input.shape)))

    def randperm(n: int, generator: Any = None, dtype: Any = None, **_: Any) -> torch.Tensor:
        return given(dt.randperm(n, generator=generator_of(generator)), dtype or torch.int64)

    def normal(mean: Any, std: Any = 1.0, size: Any = None, generator: Any = None, **options: Any) -> torch.Tensor:
        shape = size if size is not None else torch.broadcast_shapes(np.shape(mean), np.shape(std))
        drawn = given(dt.randn(tuple(shape), generator=generator_of(generator))) * std + mean
        return drawn.requires_grad_(options.get("requires_grad", False))

    def multinomial(
        input: torch.Tensor, num_samples: int, replacement: bool = False, generator: Any = None, **_: Any
    ) -> torch.Tensor:
        return given(
            dt.multinomial(
                dt.from_numpy(input.detach().numpy()), num_samples, replacement, generator=generator_of(generator)
            )
        )

    def bernoulli(input: torch.Tensor, *args: Any, **_: Any) -> torch.Tensor:
        return given(dt.bernoulli(dt.from_numpy(input.detach().numpy()), *args))

    def in_place(name: str) -> Any:
        def draw(self: torch.Tensor, *args: Any, generator: Any = None, **options: Any) -> torch.Tensor:
            x = dt.empty(tuple(self.shape), dtype=wide(self.dtype))
            getattr(x, name)(*args, generator=generator_of(generator), **options)
            with torch.no_grad():
                return self.copy_(given(x))

        return draw

    def dropout(input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> torch.Tensor:
        if not training or p == 0.0:
            return input
        keep = given(dt.rand(tuple(input.shape)) >= p)
        result = torch.where(keep, input * (1.0 / (1.0 - p)), 0.0)
        return input.copy_(result) if inplace else result

    def dropout2d(input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> torch.Tensor:
        if not training or p == 0.0 or input.dim() != 4:
            return dropout(input, p, training, inplace)
        keep = given(dt.rand((*input.shape[:2], 1, 1)) >= p)
        result = torch.where(keep, input * (1.0 / (1.0 - p)), 0.0)
        return input.copy_(result) if inplace else result

    def order(self: Any) -> Any:
        count = len(self.data_source)
        wanted = self.num_samples
        while self.replacement and wanted > 0:
            part = min(wanted, 1024)
            yield from randint(0, count, (part,), generator=self.generator).tolist()
            wanted -= part
        yield from randperm(count, generator=self.generator).tolist()[:wanted] if wanted > 0 else ()

    class WithWorkers(dataloader._MultiProcessingDataLoaderIter):
        def __init__(self, loader: Any) -> None:
            dt.randint(0, 2**62, (1,))  # the seed of the workers
            super().__init__(loader)

    def manual_seed(seed: int) -> Any:
        dt.manual_seed(seed)
        return plain_seed(seed)

    plain_seed = torch.manual_seed
    torch.manual_seed = manual_seed
    for name in ("rand", "randn"):
        setattr(torch, name, creator(name))
        setattr(torch, name + "_like", like(name))
    torch.randint, torch.randperm, torch.normal = randint, randperm, normal
    torch.utils.data.dataset.randperm = randperm
    torch.randint_like = randint_like
    torch.multinomial, torch.bernoulli = multinomial, bernoulli
    torch.Tensor.multinomial = multinomial
    for name in ("uniform_", "normal_", "bernoulli_", "exponential_"):
        setattr(torch.Tensor, name, in_place(name))

    def trunc_normal_(
        tensor: Any, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
    ) -> Any:
        drawn = dt.nn.init.trunc_normal_(dt.empty(tuple(tensor.shape), dtype=wide(tensor.dtype)), mean, std, a, b)
        with torch.no_grad():
            return tensor.copy_(given(drawn))

    torch.nn.init.trunc_normal_ = trunc_normal_
    F.dropout, F.dropout2d = dropout, dropout2d
    RandomSampler.__iter__ = order
    dataloader._MultiProcessingDataLoaderIter = WithWorkers


if os.environ.get("PUBLIC_PROGRAMS"):
    seed()
    import devtensor

    devtensor.manual_seed(0)
    if os.environ["PUBLIC_PROGRAMS"] == "torch":
        _draw_from_devtensor()
