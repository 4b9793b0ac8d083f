"""One call of the fuzzer as Python source: the same for the same kind, seed and number, on every machine."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from fuzz.pools import Pool, rooted
from fuzz.signatures import Target, targets

EVERYTHING = frozenset({"*"})


@dataclass(frozen=True)
class Program:
    """Lines that make the arguments, then one expression. D is the device to run on."""

    lines: tuple[str, ...]
    call: str
    path: str
    writes: frozenset[str] = frozenset()  # arrays that the call may change
    differs: bool = False  # devices may answer differently

    @property
    def source(self) -> str:
        return "\n".join([*self.lines, f"result = {self.call}"]) + "\n"


RECEIVERS = {
    "Event": ("dt.cuda.Event()", "dt.cuda.Event(enable_timing=True)", "dt.cuda.current_stream().record_event()"),
    "Stream": ("dt.cuda.Stream()", "dt.cuda.current_stream()", "dt.cuda.default_stream(0)"),
    "Generator": ("dt.Generator(D)", "dt.Generator().manual_seed(7)"),
    "device": ("dt.device(D)", "dt.device('cpu')"),
    "dtype": ("dt.float32", "dt.bool", "dt.int64"),
}
OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "and": "&",
    "or": "|", "xor": "^", "matmul": "@", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip

# What is not one value for both devices: state of the process, addresses, host access, numbers that are checked on the
# cpu alone.
DIFFERENT = {
    "__hash__", "__format__", "_repr_html_", "data_ptr", "empty", "empty_like", "new_empty", "numpy", "__array__",
    "__dlpack__", "__dlpack_device__", "__cuda_array_interface__", "is_cuda", "index", "pin_memory", "is_pinned",
    "cuda", "from_numpy", "frombuffer", "from_dlpack", "from_cuda_array_interface", "seed", "initial_seed",
    "__reduce__", "__reduce_ex__", "__deepcopy__", "counters", "origin", "get_default_device", "set_default_device",
    "get_num_threads", "device", "record_transfers", "forbid_transfers", "allow_transfers", "get_worker_info",
    "one_hot", "cov", "empty_strided", "new_empty_strided", "tobytes", "__array_interface__",
    "cholesky", "cholesky_ex", "cholesky_inverse", "cholesky_solve", "cond", "inv_ex", "solve_ex",
    "lu", "lu_factor", "lu_factor_ex", "lu_solve", "lu_unpack", "tensorinv", "tensorsolve", "poisson", "binomial",
    "det", "eigh", "eigvalsh", "inv", "inverse", "logdet", "lstsq", "matrix_exp",
    "matrix_norm", "matrix_power", "matrix_rank", "norm", "orthogonal_", "pinv", "pinverse", "qr", "slogdet", "solve",
    "solve_triangular", "svd", "svdvals",
    "bernoulli", "bernoulli_", "multinomial", "gaussian_nll_loss", "GaussianNLLLoss",
    "Stream", "assert_close", "copy_", "apply_", "map_", "new", "normal", "repeat_interleave", "is_cpu", "get_device",
    "get_rng_state", "set_rng_state", "resize_", "resize_as_",
    "full", "full_like", "new_full", "linspace", "logspace",  # are made on the default device, and take arrays of that
    "range",
}  # fmt: skip


def of_target(target: Target, pool: Pool) -> Program:
    """A call of a function, a method, an operator or an attribute."""
    receiver = ""
    if target.owner == "DeviceArray":
        receiver = pool.array("self", target)
        if pool.rng.random() < 0.05:
            receiver = f"dt.nn.Parameter({receiver})"
    elif target.owner:
        receiver = pool.one_of(*RECEIVERS[target.owner])
    given = pool.all(target)
    call = spelled(target, receiver, given, pool)
    if target.builds and pool.rng.random() < 0.8:
        call = f"{call}.to(D)({', '.join(pool.array('input', target) for _ in range(pool.rng.choice((1, 1, 2))))})"
    return Program(
        tuple(pool.lines),
        call,
        target.path,
        written(target, receiver, given, pool),
        pool.host_bound or names_devices(target) or "cuda" in call or takes_buffers(call),
    )


def takes_buffers(call: str) -> bool:
    """Bytes compare with, and are joined with, all that lends its memory."""
    return "(b'" in call or "bytearray(" in call or "memoryview(" in call


def names_devices(target: Target) -> bool:
    return target.owner == "device" or target.name in DIFFERENT or target.path.startswith(("dt.cuda", "dt.cpu"))


def spelled(target: Target, receiver: str, given: list[str], pool: Pool) -> str:
    if not target.owner:
        return f"{target.path}({', '.join(given)})"
    if target.attribute:
        return f"{receiver}.{target.name}"
    inner = target.name[2:-2] if target.name.startswith("__") else ""
    plain = len(given) == 1 and not given[0].startswith("*") and "=" not in given[0].split("(")[0]
    if inner in OPERATORS and plain:
        return f"{receiver} {OPERATORS[inner]} ({given[0]})"
    if inner[:1] == "r" and inner[1:] in OPERATORS and plain:
        return f"({given[0]}) {OPERATORS[inner[1:]]} {receiver}"
    if inner == "getitem" and plain:
        return f"{receiver}[{given[0]}]"
    if pool.rng.random() < 0.05:
        return (
            f"dt.DeviceArray.{target.name}({', '.join([receiver, *given])})" if target.owner == "DeviceArray" else "0"
        )
    return f"{receiver}.{target.name}({', '.join(given)})"


def written(target: Target, receiver: str, given: list[str], pool: Pool) -> frozenset[str]:
    """The arrays that the call may write."""
    text = " ".join(given)
    running = "running" in text or target.name in ("batch_norm", "instance_norm")
    if "Acts(" in text or running or "**" in text or target.builds:
        return EVERYTHING
    names = [part.partition("=")[2] for part in given if part.startswith("out=")]
    if target.in_place:
        names.append(receiver or (given[0].partition("=")[2] or given[0] if given else ""))
        if receiver.startswith("dt.nn."):
            return EVERYTHING
    if any(p.name == "inplace" for p in target.parameters):
        return EVERYTHING
    return rooted(pool.roots, names)


# ---------------------------------------------------------------- kinds


@functools.cache
def known() -> tuple[dict[str, list[Target]], list[str]]:
    found = targets()
    return found, list(found)


def api(rng: Random) -> Program:
    found, paths = known()
    pool = Pool(rng)
    return of_target(rng.choice(found[rng.choice(paths)]), pool)


KINDS: dict[str, Callable[[Random], Program]] = {"api": api}


def program(kind: str, seed: str, number: int) -> Program:
    from fuzz import kinds  # noqa: F401  (adds to KINDS)

    return KINDS[kind](Random(f"{kind}/{seed}/{number}"))
