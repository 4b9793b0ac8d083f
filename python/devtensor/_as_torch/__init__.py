"""PyTorch programs as they are, with devtensor in its place: its modules, and what a program asks for in vain."""
