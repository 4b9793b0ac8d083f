"""As much of torchvision as public programs ask for: it needs `torch` alone, whatever that is.

The data sets are drawn, not downloaded: images of the right size whose classes can be told apart.
"""

from torchvision import datasets, transforms, utils

__all__ = ["datasets", "transforms", "utils"]
__version__ = "0.0"
