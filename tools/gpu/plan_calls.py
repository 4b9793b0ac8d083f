"""Counts the calls of products, attention and convolutions that are products, on the simulated GPU.

    DEVTENSOR_CUDA=sim:1 python tools/gpu/plan_calls.py

tools/gpu/plan_table.py runs it for docs/plans.md. What is counted is the third call with the same operands: plans are
made, and copies of weights that are kept are there. Prints rows: the op, the dtype, calls of cuBLASLt and of cuDNN, and
kernels of our own (copies, bias, activation, or the product itself).
"""

import json
import sys

DTYPES = ("float32", "float16", "float64")
HEADS, TOKENS, DEPTH = 12, 197, 64


def cases(dt, dtype):
    """{name: (function, operands)}"""

    def of(*shape):
        return dt.rand(shape, device="cuda").to(dtype)

    width = HEADS * DEPTH
    queries, keys, values = (of(8, TOKENS, HEADS, DEPTH).permute(0, 2, 1, 3) for _ in range(3))
    shared = of(8, TOKENS, 1, DEPTH).permute(0, 2, 3, 1).expand(8, HEADS, DEPTH, TOKENS)
    x, w, b = of(2, TOKENS, width), of(width, width), of(width)
    image = of(2, 3, 224, 224)
    image_last, last = (of(*shape).permute(0, 3, 1, 2) for shape in ((2, 224, 224, 3), (2, 28, 28, 64)))
    patches, pixels, square = of(64, 3, 16, 16), of(64, 64, 1, 1), of(64, 64, 3, 3)
    few = of(64)

    def conv(x, w, b, stride=1, padding=0, activation=None):
        return dt.conv2d, (x, w, b), {"stride": stride, "padding": padding, "activation": activation}

    return {
        "attention: queries times keys": (dt.matmul, (queries, keys.transpose(-2, -1)), {}),
        "attention: weights times values": (dt.matmul, (of(8, HEADS, TOKENS, TOKENS), values), {}),
        "attention: queries times keys that heads share": (dt.matmul, (queries, shared), {}),
        "linear": (dt.linear, (x, w), {}),
        "linear, bias": (dt.linear, (x, w, b), {}),
        "linear, bias, ReLU": (dt.linear, (x, w, b), {"activation": "relu"}),
        "linear, bias, GELU": (dt.linear, (x, w, b), {"activation": "gelu"}),
        "linear, bias, GELU by tanh": (dt.linear, (x, w, b), {"activation": "gelu_tanh"}),
        "one row times a matrix": (dt.matmul, (of(1, width), of(width, 4 * width)), {}),
        "1000 products of 32x32": (dt.matmul, (of(1000, 32, 32), of(1000, 32, 32)), {}),
        "dot of a million": (dt.dot, (of(1 << 20), of(1 << 20)), {}),
        "conv: patches of 16x16, NCHW": conv(image, patches, few, 16),
        "conv: patches of 16x16, NHWC": conv(image_last, patches, few, 16),
        "conv: whole image": conv(of(8, 64, 7, 7), of(256, 64, 7, 7), of(256)),
        "conv: 1x1, NHWC, bias": conv(last, pixels, few),
        "conv: 1x1, NHWC, bias, ReLU": conv(last, pixels, few, activation="relu"),
        "conv: 3x3, NHWC, weight NCHW, bias, ReLU": conv(last, square, few, padding=1, activation="relu"),
    }


def count(dt, function, operands, parameters):
    """Calls of cuBLASLt, of cuDNN, and kernels, of the third call."""
    for _ in range(2):
        function(*operands, **parameters)
    before, launches = dt._C._test.api_calls(), dt._C.counters()["launches"]
    function(*operands, **parameters)
    after, launches = dt._C._test.api_calls(), dt._C.counters()["launches"] - launches
    libraries = [after[name] - before[name] for name in ("cublasLtMatmul", "cudnnBackendExecute")]
    return [*libraries, launches - sum(libraries)]


def main():
    import devtensor as dt

    if not dt.cuda.is_available() or not dt.cuda.get_device_properties(0).is_simulated:
        sys.exit("a simulated GPU is needed: DEVTENSOR_CUDA=sim:1")
    rows = []
    for dtype in DTYPES:
        for name, (function, operands, parameters) in cases(dt, getattr(dt, dtype)).items():
            rows.append([name, dtype, *count(dt, function, operands, parameters)])
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
