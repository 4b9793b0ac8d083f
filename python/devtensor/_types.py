"""What arguments may be, for the signatures of this package. As texts, since nothing reads them at run time."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from typing import Any

    import numpy as np
    import numpy.typing as npt

    from devtensor import _C

Device: TypeAlias = "_C.device | str | int"
DType: TypeAlias = "_C.dtype | str | type[Any] | np.dtype[Any]"
Dims: TypeAlias = "int | Sequence[int]"
Operand: TypeAlias = "_C.DeviceArray | float | np.number[Any] | np.bool"
ArrayLike: TypeAlias = "_C.DeviceArray | npt.NDArray[Any] | float | Sequence[Any]"
Path: TypeAlias = "str | os.PathLike[str]"
