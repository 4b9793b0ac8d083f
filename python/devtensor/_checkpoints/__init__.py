"""Checkpoints in PyTorch's files: written so that torch.load reads them, read without running what they name."""
