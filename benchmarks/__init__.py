"""python -m benchmarks: devtensor against NumPy, PyTorch and CuPy, side by side in one process."""
