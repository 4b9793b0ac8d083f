"""Write python/devtensor/digits/assets/digits.csv.gz from scikit-learn's copy of the UCI digits."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

ASSETS = Path(__file__).resolve().parents[2] / "python" / "devtensor" / "digits" / "assets"


def main() -> None:
    """One line an image, in the original order: 64 pixels (0..16) and the label."""
    digits = load_digits()
    table = np.column_stack([digits.data, digits.target]).astype(np.int64)
    if not np.array_equal(table[:, :64], digits.data):
        raise SystemExit("the pixels are expected to be whole numbers")
    text = "".join(",".join(map(str, row)) + "\n" for row in table.tolist())
    target = ASSETS / "digits.csv.gz"
    target.parent.mkdir(parents=True, exist_ok=True)
    # mtime=0: the same input gives the same bytes.
    target.write_bytes(gzip.compress(text.encode("ascii"), compresslevel=9, mtime=0))
    print(f"{target.name}: {len(table)} images, {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
