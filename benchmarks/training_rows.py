"""Forward, backward and steps of optimizers: what training is made of, from one addition to a network.

A learning rate of 0 lets each call find the same weights. References are computed in float64 by our own ops, which the
tests hold to other libraries.
"""

import itertools

import numpy as np

from .networks import BUILDERS
from .rows import EPS, Row, everywhere

BOTH = ("devtensor", "torch")


def recorded(make):
    def recording(lib):
        call = make(lib)

        def run(*args, **named):
            with lib.enable_grad():
                return call(*args, **named)

        return run

    return recording


def row(name, inputs, make, passed, aim, roundings=64):
    """make(lib) gives a function of the inputs. passed, aim: the peer's time over ours."""

    def reference(arrays):
        import devtensor as dt

        wide = {
            key: dt.from_numpy(value.astype("float64") if value.dtype == "float32" else value.copy())
            for key, value in arrays.items()
        }
        dt.set_default_dtype(dt.float64)
        try:
            exact = recorded(make)(dt)(**wide).detach().numpy()
        finally:
            dt.set_default_dtype(dt.float32)
        return exact, np.full(exact.shape, roundings * EPS["float32"] * max(np.abs(exact).max(initial=0), 1))

    given = ", ".join(inputs(np.random.default_rng(0)))
    target = {"torch": (passed, aim)}
    return Row(
        "training", name, inputs, everywhere(f"run({given})", BOTH), reference, {"run": recorded(make)}, target=target
    )


def drawn(**shapes):
    return lambda rng: {name: rng.standard_normal(shape, "float32") for name, shape in shapes.items()}


def through(call):
    """The gradient of x through call(functional, x, *parameters)."""

    def make(lib):
        def run(x, g, w=None, b=None):
            leaves = [p.detach().requires_grad_() for p in (x, w, b) if p is not None]
            call(lib.nn.functional, *leaves).backward(g)
            return leaves[0].grad

        return run

    return make


def batch_norm(functional, x, weight, bias):
    return functional.batch_norm(x, None, None, weight, bias, True)


def layer_norm(functional, x, weight, bias):
    return functional.layer_norm(x, x.shape[-1:], weight, bias)


def loss(make_loss):
    """The gradient of x, which is scores or predictions, and y what they should be."""

    def make(lib):
        def run(x, y):
            leaf = x.detach().requires_grad_()
            make_loss(lib.nn.functional, leaf, y).backward()
            return leaf.grad

        return run

    return make


def classes(n, count):
    return lambda rng: {"x": rng.standard_normal((n, count), "float32"), "y": rng.integers(0, count, n)}


def dropped(lib):
    """Of ones: what came through is what comes back."""

    def run(x):
        leaf = lib.ones_like(x).requires_grad_()
        y = lib.nn.functional.dropout(leaf, 0.5)
        y.backward(lib.ones_like(x))
        return leaf.grad - y

    return run


def embedded(lib):
    def run(weight, index, g):
        leaf = weight.detach().requires_grad_()
        lib.nn.functional.embedding(index, leaf).backward(g)
        return leaf.grad

    return run


def places(n, count, size):
    return lambda rng: {
        "weight": rng.standard_normal((n, size), "float32"),
        "index": rng.integers(0, n, count),
        "g": rng.standard_normal((count, size), "float32"),
    }


def added(wanted):
    """A thousand times. The difference of the two rows is what recording takes."""

    def make(lib):
        def run(a, b):
            leaf = a.detach().requires_grad_(wanted)
            for _ in itertools.repeat(None, 999):
                leaf + b
            return leaf + b

        return run

    return make


def chained(lib):
    def run(x, y):
        leaf = z = x.detach().requires_grad_()
        one = y * 0 + 1
        for _ in range(1000):
            z = z * one
        z.backward()
        return leaf.grad

    return run


def rows_read(lib):
    def run(x):
        leaf, total = x.detach().requires_grad_(), 0
        for i in range(len(x)):
            total = total + leaf[i].sum()
        total.backward()
        return leaf.grad

    return run


def rows_written(lib):
    def run(x):
        leaf, out = x.detach().requires_grad_(), lib.zeros_like(x)
        for i in range(len(x)):
            out[i] = leaf[i] * 2
        out.sum().backward()
        return leaf.grad

    return run


def mlp(*sizes):
    def build(nn):
        layers = [layer for a, b in itertools.pairwise(sizes) for layer in (nn.Linear(a, b), nn.ReLU())]
        return nn.Sequential(*layers[:-1])

    return build


def weighted(lib, build):
    """The network with the same weights in each library."""
    net, rng = build(lib.nn), np.random.default_rng(1)
    like = next(net.parameters())
    with lib.no_grad():
        for p in net.parameters():
            bound = (2 / max(np.prod(p.shape[1:]), 1)) ** 0.5 if len(p.shape) > 1 else 0.5
            p.copy_(lib.from_numpy(rng.uniform(-bound, bound, tuple(p.shape)).astype("float32")).to(like.dtype))
    return net


def stepped(build, optimizer, **options):
    """One step; the loss before it."""

    def make(lib):
        net = weighted(lib, build)
        optim = getattr(lib.optim, optimizer)(net.parameters(), lr=0.0, **options)

        def run(x, y):
            optim.zero_grad()
            value = lib.nn.functional.cross_entropy(net(x), y)
            value.backward()
            optim.step()
            return value

        return run

    return make


def passed_through(build):
    """Forward and backward; the gradient of the first parameter."""

    def make(lib):
        net = weighted(lib, build)
        first = next(net.parameters())

        def run(x):
            net.zero_grad()
            net(x).sum().backward()
            return first.grad

        return run

    return make


def labelled(n, shape, count):
    return lambda rng: {"x": rng.standard_normal((n, *shape), "float32"), "y": rng.integers(0, count, n)}


def optimized(count, optimizer, **options):
    """A step of count parameters; their first."""

    def make(lib):
        def run(x):
            if not held:
                held.extend(lib.nn.Parameter(x.clone()) for _ in range(count))
                for p in held:
                    p.grad = x * 0 + 1
                held.append(getattr(lib.optim, optimizer)(held[:count], lr=0.0, **options))
            held[-1].step()
            return held[0]

        held = []
        return run

    return make


def resnet_step(lib):
    """For benchmarks.memory."""
    return recorded(stepped(BUILDERS["ResNet-18"], "SGD", momentum=0.9))(lib)


def resnet_forward(lib):
    """The same, without the way back: the loss holds what it needs."""
    net = weighted(lib, BUILDERS["ResNet-18"])

    def run(x, y):
        with lib.enable_grad():
            return lib.nn.functional.cross_entropy(net(x), y)

    return run


WIDE, LONG = (32, 64, 56, 56), (1024, 1024)

ROWS = [
    row("1000 times a + b, recorded, n=1", drawn(a=1, b=1), added(True), 10, 20),
    row("1000 times a + b, no gradient wanted, n=1", drawn(a=1, b=1), added(False), 10, 20),
    row("chain of 1000 products, n=1", drawn(x=1, y=1), chained, 10, 25),
    row("2000 rows of 8 read one by one", drawn(x=(2000, 8)), rows_read, 50, 200),
    row("2000 rows of 8 written one by one", drawn(x=(2000, 8)), rows_written, 10, 40),
    row("batch_norm in training, (32, 64, 56, 56)", drawn(x=WIDE, g=WIDE, w=64, b=64), through(batch_norm), 1.5, 3),
    row("layer_norm, 1024 rows of 1024", drawn(x=LONG, g=LONG, w=1024, b=1024), through(layer_norm), 1, 1.3),
    row("softmax, 1024 rows of 1024", drawn(x=LONG, g=LONG), through(lambda f, x: f.softmax(x, -1)), 1, 1.3),
    row("gelu, 2^20", drawn(x=1 << 20, g=1 << 20), through(lambda f, x: f.gelu(x)), 1, 1.3),
    row("dropout, 2^20", drawn(x=1 << 20), dropped, 1.5, 3),
    row("cross_entropy, (64, 10)", classes(64, 10), loss(lambda f, x, y: f.cross_entropy(x, y)), 5, 8),
    row("cross_entropy, (512, 32000)", classes(512, 32000), loss(lambda f, x, y: f.cross_entropy(x, y)), 1.2, 1.5),
    row("mse_loss, 2^19", drawn(x=1 << 19, y=1 << 19), loss(lambda f, x, y: f.mse_loss(x, y)), 1, 1.3),
    row("smooth_l1_loss, 2^19", drawn(x=1 << 19, y=1 << 19), loss(lambda f, x, y: f.smooth_l1_loss(x, y)), 1, 1.3),
    row("embedding, 30000 rows of 256, 8192 places", places(30000, 8192, 256), embedded, 1, 2),
    row("forward and backward of MLP 4-8-1, batch 1", drawn(x=(1, 4)), passed_through(mlp(4, 8, 1)), 8, 15),
    row("step of MLP 4-8-2, batch 1, SGD", labelled(1, (4,), 2), stepped(mlp(4, 8, 2), "SGD"), 8, 15),
    row("step of MLP 784-512-10, batch 64, SGD", labelled(64, (784,), 10), stepped(mlp(784, 512, 10), "SGD"), 1.5, 2),
    row(
        "step of digits CNN, batch 32, Adam", labelled(32, (1, 8, 8), 10), stepped(BUILDERS["digits CNN"], "Adam"), 2, 3
    ),
    row(
        "step of ResNet-18, batch 8, SGD with momentum",
        labelled(8, (3, 224, 224), 1000),
        stepped(BUILDERS["ResNet-18"], "SGD", momentum=0.9),
        1.1,
        1.4,
        roundings=4096,
    ),
    row("SGD of 100 parameters of 100", drawn(x=100), optimized(100, "SGD"), 20, 60),
    row("Adam of 100 parameters of 100", drawn(x=100), optimized(100, "Adam"), 20, 60),
    *(
        row(f"{name} of 100 parameters of 100, {way}=True", drawn(x=100), optimized(100, name, **{way: True}), 8, 20)
        for name in ("SGD", "Adam")
        for way in ("foreach", "fused")
    ),
    row("Adam of 2^22", drawn(x=1 << 22), optimized(1, "Adam"), 3, 5),
    row("Adam of 2^22, fused=True", drawn(x=1 << 22), optimized(1, "Adam", fused=True), 0.95, 1.1),
]
