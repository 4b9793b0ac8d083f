"""Whole networks, written once for devtensor and PyTorch: each function takes the library's `nn`."""

import functools

import numpy as np

from .rows import EPS, Row


def digits_cnn(nn):
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 10),
    )


def resnet18(nn):
    """He et al. 2015, table 1, for inference."""

    class Block(nn.Module):
        def __init__(self, before, after, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(after)
            self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(after)
            self.relu = nn.ReLU()
            self.downsample = None
            if before != after:
                self.downsample = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

        def forward(self, x):
            short = x if self.downsample is None else self.downsample(x)
            x = self.relu(self.bn1(self.conv1(x)))
            return self.relu(self.bn2(self.conv2(x)) + short)

    layers = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
    ]
    before = 64
    for after, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Block(before, after, stride), Block(after, after, 1)]
        before = after
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


def mobilenet_v2(nn):
    """Sandler et al. 2018, table 2, for inference."""

    def unit(before, after, kernel=1, stride=1, groups=1):
        return [
            nn.Conv2d(before, after, kernel, stride, kernel // 2, groups=groups, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU6(),
        ]

    class Inverted(nn.Module):
        def __init__(self, before, after, stride, expansion):
            super().__init__()
            inside = before * expansion
            wide = unit(before, inside) if expansion != 1 else []
            self.conv = nn.Sequential(
                *wide,
                *unit(inside, inside, 3, stride, inside),
                nn.Conv2d(inside, after, 1, bias=False),
                nn.BatchNorm2d(after),
            )
            self.short = stride == 1 and before == after

        def forward(self, x):
            return x + self.conv(x) if self.short else self.conv(x)

    layers, before = unit(3, 32, 3, 2), 32
    for expansion, after, count, stride in (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ):
        for i in range(count):
            layers.append(Inverted(before, after, stride if i == 0 else 1, expansion))
            before = after
    layers += unit(320, 1280)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000))


BUILDERS = {"digits CNN": digits_cnn, "ResNet-18": resnet18, "MobileNetV2": mobilenet_v2}


def instance(lib, network):
    """The network in `lib` with the same weights in each, ready for inference."""
    model = BUILDERS[network](lib.nn)
    model.load_state_dict({k: lib.from_numpy(v) for k, v in random_weights(network).items()}, strict=False)
    return model.eval()


@functools.cache
def random_weights(network):
    """By the shapes of our own modules: He's scale, and statistics of a plausible normalisation."""
    import devtensor

    rng, out = np.random.default_rng(1), {}
    for key, value in BUILDERS[network](devtensor.nn).state_dict().items():
        shape, kind = tuple(value.shape), key.rpartition(".")[2]
        if kind == "num_batches_tracked":
            continue
        if len(shape) > 1:
            out[key] = rng.standard_normal(shape, "float32") * np.float32((2 / np.prod(shape[1:])) ** 0.5)
        else:
            low, high = {"bias": (-0.1, 0.1), "running_mean": (-0.1, 0.1)}.get(kind, (0.5, 1.0))
            out[key] = rng.uniform(low, high, shape).astype("float32")
    return out


def network(name, batch, shape):
    def inputs(rng):
        return {"x": rng.standard_normal((batch, *shape), "float32")}

    def reference(x):
        """In float64 by our own ops, which the tests hold to other libraries; float32 may differ by its rounding."""
        import devtensor

        model = instance(devtensor, name).double()
        exact = model(devtensor.from_numpy(x["x"].astype("float64"))).numpy()
        return exact, np.full(exact.shape, 2.0**12 * EPS["float32"] * np.abs(exact).max())

    names = {"model": lambda lib: instance(lib, name)}
    expressions = {"devtensor": "model(x)", "torch": "model(x)"}
    return Row("networks", f"{name}, batch {batch}", inputs, expressions, reference, names)


ROWS = [
    network("digits CNN", 1, (1, 8, 8)),
    network("digits CNN", 32, (1, 8, 8)),
    *(network(name, batch, (3, 224, 224)) for name in ("ResNet-18", "MobileNetV2") for batch in (1, 32)),
]
