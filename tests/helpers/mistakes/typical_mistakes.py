"""One typical mistake, or a few, for each kind of error: run by the tests, and shown in docs/errors.md."""

from __future__ import annotations

from race_mistakes import RACES
from typical_gradient_mistakes import GRADIENTS

# code -> (what it is about, program whose marked line fails)
EXAMPLES: dict[str, list[tuple[str, str]]] = {
    "device-mismatch": [
        (
            "A batch that stayed on the cpu, three steps after it was loaded",
            """
import numpy as np
import devtensor as dt

weight = dt.randn(10, 64, device="cuda")
batch = dt.from_numpy(np.zeros((32, 64), dtype=np.float32))
batch = (batch - 0.5) * 2
scores = dt.linear(batch, weight)  # here
""",
        ),
        (
            "A helper made inside of a class on the default device",
            """
import devtensor as dt


class Scale:
    def __init__(self, n):
        self.factor = dt.ones(n)

    def __call__(self, x):
        return x * self.factor  # here


Scale(3)(dt.zeros(2, 3, device="cuda"))
""",
        ),
    ],
    "dtype-mismatch": [
        (
            "float64 from NumPy meets float32 weights",
            """
import numpy as np
import devtensor as dt

weight = dt.randn(4, 3)
x = dt.from_numpy(np.random.rand(8, 3))
y = dt.linear(x, weight)  # here
""",
        ),
        (
            "An in-place op whose result is of another kind",
            """
import devtensor as dt

count = dt.zeros(3, dtype=dt.int64)
count += dt.ones(3) / 2  # here
""",
        ),
    ],
    "dtype-not-supported": [
        (
            "Integers where floats are needed",
            """
import devtensor as dt

pixels = dt.arange(12).reshape(3, 4)
dt.softmax(pixels, dim=1)  # here
""",
        ),
    ],
    "dtype-of-index": [
        (
            "Places that were computed as floats",
            """
import devtensor as dt

table = dt.rand(10, 4, device="cuda")
middle = dt.ones(3, device="cuda") * 10 / 2
row = table[middle]  # here
""",
        ),
    ],
    "shape-mismatch": [
        (
            "A weight that is the wrong way round",
            """
import devtensor as dt

x, weight = dt.zeros(8, 3), dt.zeros(3, 4)
dt.linear(x, weight)  # here
""",
        ),
        (
            "Images with their channels last",
            """
import devtensor as dt

images = dt.zeros(2, 8, 8, 3)
filters = dt.zeros(16, 3, 3, 3)
dt.conv2d(images, filters)  # here
""",
        ),
        (
            "Two readings, so no fix",
            """
import devtensor as dt

a, b = dt.zeros(2, 3), dt.zeros(2, 3)
a @ b  # here
""",
        ),
    ],
    "rank-mismatch": [
        (
            "One image without its channel",
            """
import devtensor as dt

image, filters = dt.zeros(8, 8), dt.zeros(16, 1, 3, 3)
dt.conv2d(image, filters)  # here
""",
        ),
    ],
    "host-access": [
        (
            "NumPy asked for the memory of a GPU",
            """
import devtensor as dt

loss = dt.zeros(3, device="cuda")
loss.numpy()  # here
""",
        ),
    ],
    "numpy-operand": [
        (
            "A NumPy array in an operator",
            """
import numpy as np
import devtensor as dt

x = dt.zeros(3, device="cuda")
mean = np.ones(3, dtype=np.float32)
x - mean  # here
""",
        ),
    ],
    "numpy-function": [
        ("A function of NumPy", "\nimport numpy as np\nimport devtensor as dt\n\nx = dt.ones(2)\nnp.exp(x)  # here\n"),
    ],
    "transfer-forbidden": [
        (
            "A loop that asks the GPU for a number each time",
            """
import devtensor as dt

x = dt.zeros(3, device="cuda")
with dt.forbid_transfers():
    while x.sum().item() < 1:  # here
        x += 1
""",
        ),
    ],
    "view-needs-copy": [
        (
            "A view of what is not in order",
            """
import devtensor as dt

x = dt.zeros(2, 3).T
x.view(6)  # here
""",
        ),
    ],
    "kernel-argument": [
        (
            "A number that does not fit its C type",
            """
import devtensor as dt

source = 'extern "C" __global__ void fill(unsigned char *x, unsigned char v, int n) { x[threadIdx.x] = v; }'
fill = dt.cuda.RawKernel(source, "fill")
x = dt.empty(8, dtype=dt.uint8, device="cuda")
fill[1, 8](x, 300, 8)  # here
""",
        ),
    ],
    "stream-race": RACES,
    "not-contiguous": [
        (
            "A transposed array for a kernel",
            """
import devtensor as dt

source = 'extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }'
twice = dt.cuda.RawKernel(source, "twice")
x = dt.ones(3, 2, device="cuda").T
twice(1, 6, (x,))  # here
""",
        ),
    ],
    "read-only": [
        (
            "Memory that NumPy does not let be written",
            """
import numpy as np
import devtensor as dt

a = np.zeros(3)
a.flags.writeable = False
x = dt.from_numpy(a)
x += 1  # here
""",
        ),
    ],
    "overlapping-write": [
        (
            "A write to an expanded dimension",
            """
import devtensor as dt

x = dt.zeros(1).expand(4)
x += 1  # here
""",
        ),
    ],
    "empty-reduction": [
        (
            "The largest of nothing",
            """
import devtensor as dt

x = dt.zeros(0, 3)
x.amax(dim=0)  # here
""",
        ),
    ],
    "index-out-of-range": [
        (
            "One step too far",
            """
import devtensor as dt

table = dt.zeros(3, 4)[1:]
for i in range(3):
    table[i].sum()  # here
""",
        ),
    ],
    "dimension-out-of-range": [
        (
            "A dimension that an earlier reduction removed",
            """
import devtensor as dt

scores = dt.zeros(8, 10)
best = scores.amax(dim=1)
best.mean(dim=1)  # here
""",
        ),
    ],
    "invalid-index": [
        (
            "More indices than dimensions",
            """
import devtensor as dt

image = dt.zeros(28, 28)
image[0, :, 0]  # here
""",
        ),
    ],
    "invalid-argument": [
        (
            "A function that returns nothing",
            """
import devtensor as dt


def load(n):
    dt.zeros(n, 3)


x, weight = load(4), dt.zeros(2, 3)
dt.linear(x, weight)  # here
""",
        ),
        (
            "A NumPy array where a DeviceArray is taken",
            """
import numpy as np
import devtensor as dt

x = np.zeros((4, 3))
weight = dt.zeros(2, 3, device="cuda")
dt.linear(x, weight)  # here
""",
        ),
    ],
    "ambiguous-bool": [
        (
            "A condition of many elements",
            """
import devtensor as dt

loss = dt.zeros(8)
if loss > 1:  # here
    pass
""",
        ),
    ],
    "not-a-scalar": [
        (
            "A loss for each element",
            """
import devtensor as dt

x, y = dt.zeros(8), dt.ones(8)
losses = (x - y) ** 2
float(losses)  # here
""",
        ),
    ],
    "not-a-sequence": [
        (
            "A loop over one number",
            """
import devtensor as dt

total = dt.ones(3).sum()
for part in total:  # here
    pass
""",
        ),
    ],
    "device-not-available": [
        (
            "A device that is not there",
            """
import devtensor as dt

dt.zeros(3, device="cuda:7")  # here
""",
        ),
    ],
    "not-probabilities": [
        (
            "Scores of a model in a loss of probabilities",
            """
import devtensor as dt
from devtensor.nn import functional as F

scores, answers = dt.tensor([2.0, -1.0]), dt.tensor([1.0, 0.0])
F.binary_cross_entropy(scores, answers)  # here
""",
        ),
    ],
    **GRADIENTS,
    "selected-out-of-range": [
        (
            "More of the largest than there are",
            """
import devtensor as dt

scores = dt.randn(8, 3)
best = dt.topk(scores, k=5)  # here
""",
        ),
    ],
    "grad-unused": [
        (
            "An input that the output does not need",
            """
import devtensor as dt

w, v = dt.ones(3, requires_grad=True), dt.ones(3, requires_grad=True)
dt.autograd.grad((w * 2).sum(), [w, v])  # here
""",
        ),
    ],
}
