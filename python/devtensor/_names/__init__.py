"""What devtensor calls by other names too, as PyTorch and NumPy do, and the names that it has on purpose not."""
