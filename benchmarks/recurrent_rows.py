"""An LSTM: one step, as a program that generates takes it, and whole sequences, with and without gradients."""

import numpy as np

from .rows import Row, everywhere

BOTH = ("devtensor", "torch")
ROUNDING = 2e-5  # of numbers below 1, over all steps


def layer(lib, kind, weights):
    """LSTM or LSTMCell with these weights."""
    rows, columns = weights["weight_ih"].shape
    made = getattr(lib.nn, kind)(columns, rows // 4)
    end = "" if kind.endswith("Cell") else "_l0"
    made.load_state_dict({name + end: weight for name, weight in weights.items()})
    return made


def train(lib, x, layer):
    """All outputs, after the gradients of their sum."""
    with lib.enable_grad():
        layer.zero_grad()
        output = layer(x)[0]
        output.sum().backward()
    return output.detach()


def sizes(steps, batch, columns, hidden):
    def inputs(rng):
        bound = 1 / np.sqrt(hidden)
        shapes = {
            "weight_ih": (4 * hidden, columns),
            "weight_hh": (4 * hidden, hidden),
            "bias_ih": (4 * hidden,),
            "bias_hh": (4 * hidden,),
        }
        found = {name: rng.uniform(-bound, bound, shape).astype("float32") for name, shape in shapes.items()}
        return {"x": rng.standard_normal((steps, batch, columns), "float32"), **found}

    return inputs


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def outputs(x):
    """h of all steps, in float64."""
    x = {name: value.astype("float64") for name, value in x.items()}
    h = c = np.zeros((x["x"].shape[1], x["weight_hh"].shape[1]))
    found = []
    for row in x["x"]:
        gates = row @ x["weight_ih"].T + h @ x["weight_hh"].T + x["bias_ih"] + x["bias_hh"]
        i, f, g, o = np.split(gates, 4, 1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        found.append(h)
    return np.stack(found)


def row(name, steps, batch, columns, hidden, kind, expression, frozen=True):
    here = "__import__('benchmarks.recurrent_rows', fromlist=['recurrent_rows'])"
    weights = "dict(weight_ih=weight_ih, weight_hh=weight_hh, bias_ih=bias_ih, bias_hh=bias_hh)"
    names = {"net": f"{here}.layer(lib, '{kind}', {weights})" + (".requires_grad_(False)" if frozen else "")}
    if kind == "LSTMCell":
        names["x"] = "x[0]"
    if not frozen:
        names |= {"train": f"{here}.train", "lib": "lib"}

    def reference(x):
        found = outputs(x)
        return (found[0] if kind == "LSTMCell" else found), ROUNDING

    return Row("recurrent", name, sizes(steps, batch, columns, hidden), everywhere(expression, BOTH), reference, names,
               target={"torch": (1.0, 1.5)})  # fmt: skip


ROWS = [
    row("LSTMCell(256, 256), 1 row", 1, 1, 256, 256, "LSTMCell", "net(x)[0]"),
    row("LSTMCell(128, 128), 32 rows", 1, 32, 128, 128, "LSTMCell", "net(x)[0]"),
    row("LSTM(256, 256), one step of 1 row", 1, 1, 256, 256, "LSTM", "net(x)[0]"),
    row("LSTM(128, 128), 50 steps of 32 rows", 50, 32, 128, 128, "LSTM", "net(x)[0]"),
    row("LSTM(650, 650), 35 steps of 20 rows", 35, 20, 650, 650, "LSTM", "net(x)[0]"),
    row("LSTM(650, 650), 35 steps of 20 rows, backward too", 35, 20, 650, 650, "LSTM", "train(lib, x, net)", False),
    row("LSTM(28, 128), 28 steps of 64 rows, backward too", 28, 64, 28, 128, "LSTM", "train(lib, x, net)", False),
]
