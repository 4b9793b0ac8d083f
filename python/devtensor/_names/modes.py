"""Modes of PyTorch's top level: those that are set elsewhere here, and those of which there is one."""

from __future__ import annotations

from typing import Any

from devtensor import _C
from devtensor._dtypes.autocast import here
from devtensor._names.old_names import choose_kind, typed_classes
from devtensor.amp.autocast_mode import get_autocast_dtype, is_autocast_enabled
from devtensor.autograd import anomaly


def set_default_tensor_type(t: Any) -> None:
    """set_default_dtype and set_default_device, by a class such as FloatTensor or cuda.DoubleTensor, or its name."""
    if isinstance(t, str):
        module, _, name = t.rpartition(".")
        kinds = {"torch": "cpu", "devtensor": "cpu", "torch.cuda": "cuda", "devtensor.cuda": "cuda"}
        t = typed_classes(kinds[module], module).get(name) if module in kinds else None
    if not hasattr(t, "device_type") or not t.dtype.is_floating_point:
        raise TypeError(
            "set_default_tensor_type(): a class of arrays of floats, such as FloatTensor, or its name is needed"
        )
    _C.set_default_dtype(t.dtype)
    _C.set_default_device(t.device_type)
    choose_kind(t.device_type)


def is_anomaly_enabled() -> bool:
    """Whether set_detect_anomaly looks at every gradient."""
    now = _C._watch_gradients(False)
    _C._watch_gradients(now)
    return now


def is_anomaly_check_nan_enabled() -> bool:
    """Whether it raises for NaN."""
    return anomaly._check_nan


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """autograd.set_detect_anomaly."""
    anomaly.set_detect_anomaly(enabled, check_nan)


def is_autocast_cpu_enabled() -> bool:
    """is_autocast_enabled("cpu")."""
    return is_autocast_enabled("cpu")


def get_autocast_cpu_dtype() -> _C.dtype:
    """get_autocast_dtype("cpu")."""
    return get_autocast_dtype("cpu")


def get_autocast_gpu_dtype() -> _C.dtype:
    """get_autocast_dtype("cuda")."""
    return get_autocast_dtype("cuda")


def is_autocast_cache_enabled() -> bool:
    """Whether an autocast block keeps the casts of weights."""
    return here.caching


def clear_autocast_cache() -> None:
    """Forget the casts of weights that an autocast block keeps."""
    here.leaves.clear()
    here.originals.clear()


def get_num_interop_threads() -> int:
    """1: ops run one after the other."""
    return 1


def set_num_interop_threads(n: int) -> None:
    """Changes nothing. Raises RuntimeError for less than 1."""
    if _C._need_int("set_num_interop_threads", "n", n) <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")


def set_flush_denormal(mode: bool) -> bool:
    """False: small numbers are kept, as everywhere."""
    _C._need_bool("set_flush_denormal", "mode", mode)
    return False


def get_deterministic_debug_mode() -> int:
    """2: every result is deterministic."""
    return 2


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Changes nothing. Raises RuntimeError for other modes than 0, 1, 2, "default", "warn" and "error"."""
    if debug_mode not in (0, 1, 2, "default", "warn", "error"):
        raise RuntimeError(
            "invalid value of debug_mode, expected 0, 1, 2, 'default', 'warn' or 'error', but got "
            f"{_C._shown(debug_mode)}"
        )


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """False."""
    return False


def is_warn_always_enabled() -> bool:
    """False: a warning is given as Python's filters say."""
    return False


def set_warn_always(b: bool) -> None:
    """Changes nothing."""
    _C._need_bool("set_warn_always", "b", b)


def is_vulkan_available() -> bool:
    """False."""
    return False


MODES = {
    function.__name__: function
    for function in (
        *(set_default_tensor_type, is_anomaly_enabled, is_anomaly_check_nan_enabled, set_anomaly_enabled),
        *(is_autocast_cpu_enabled, get_autocast_cpu_dtype, get_autocast_gpu_dtype, is_autocast_cache_enabled),
        *(clear_autocast_cache, get_num_interop_threads, set_num_interop_threads, set_flush_denormal),
        *(get_deterministic_debug_mode, set_deterministic_debug_mode, is_deterministic_algorithms_warn_only_enabled),
        *(is_warn_always_enabled, set_warn_always, is_vulkan_available),
    )
}
