"""Whole networks, written once for devtensor and PyTorch: each builder takes the library's `nn`."""

import functools
from pathlib import Path

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


def of_example(file, name):
    """The class `name` of a file in examples/, for either library: its text is PyTorch's but for the imports."""
    text = (Path(__file__).parent.parent / "examples" / file).read_text()

    def build(nn):
        namespace = {"__name__": file}
        exec(text.replace("devtensor", nn.__name__.partition(".")[0]), namespace)
        return namespace[name]()

    return build


BUILDERS = {
    "digits CNN": digits_cnn,
    "ResNet-18": of_example("resnet18.py", "ResNet18"),
    "MobileNetV2": of_example("mobilenet_v2.py", "MobileNetV2"),
}


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
