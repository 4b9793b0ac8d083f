"""python -m benchmarks: devtensor against NumPy and PyTorch, side by side in one process."""
