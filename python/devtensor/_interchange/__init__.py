"""Other libraries and classes that meet an array: NumPy, einops, and classes that derive from DeviceArray."""
