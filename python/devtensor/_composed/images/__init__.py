"""Convolutions, pools, and images of another size."""
