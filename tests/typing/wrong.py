"""Calls that both type checkers refuse: each line is marked, and a mark that nothing needs is an error. Not run."""

# pyright: reportUnnecessaryTypeIgnoreComment=true

from __future__ import annotations

import devtensor as dt
from devtensor import nn
from devtensor.data import DataLoader, TensorDataset, prefetch

x = dt.rand(2, 3)

# ---------------------------------------------------------------- names and parameters that are not there

dt.zeross(2)  # type: ignore[attr-defined]
dt.os.getcwd()  # type: ignore[attr-defined]
x.cudda()  # type: ignore[attr-defined]
dt.zeros(2, dev="cuda")  # type: ignore[call-arg]
dt.relu()  # type: ignore[call-arg]
x.softmax(1, 2)  # type: ignore[call-overload]

# ---------------------------------------------------------------- arguments of another type

dt.zeros("2")  # type: ignore[arg-type]
dt.zeros(2, device=1.5)  # type: ignore[arg-type]
dt.relu([1.0, 2.0])  # type: ignore[arg-type]
dt.add(x, "1")  # type: ignore[arg-type]
dt.gelu(x, approximate="exact")  # type: ignore[arg-type]
dt.set_float32_precision("high")  # type: ignore[arg-type]
dt.set_printoptions(profile="long")  # type: ignore[arg-type]
dt.cat(x, "0")  # type: ignore[call-overload]
dt.set_default_dtype(dt.float32, 1)  # type: ignore[call-arg]
x.reshape("3")  # type: ignore[arg-type]
x["a"]  # type: ignore[index]
x[0] = "a"  # type: ignore[assignment]
x + "a"  # type: ignore[operator]
x.shape = (3, 2)  # type: ignore[misc, assignment]

# ---------------------------------------------------------------- results of another type

number: float = dt.sum(x)  # type: ignore[assignment]
text: str = x.device  # type: ignore[assignment]
pair: tuple[dt.DeviceArray, dt.DeviceArray] = x.sum(0)  # type: ignore[assignment]


# ---------------------------------------------------------------- modules, loaders


class Net(nn.Module):
    def forward(self, x: dt.DeviceArray) -> dt.DeviceArray:
        return x


Net()("x")  # type: ignore[arg-type]
Net()(x, x)  # type: ignore[call-arg]
nn.Linear(4, 3)([1.0])  # type: ignore[arg-type]
nn.Linear("4", 3)  # type: ignore[arg-type]
nn.Linear(4, 3).weight = x  # type: ignore[assignment]
words: str = Net()(x)  # type: ignore[assignment]
for batch in prefetch(DataLoader(TensorDataset(x)), "cpu"):
    batch.cuda()  # type: ignore[attr-defined]
