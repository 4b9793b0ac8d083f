"""Kernels of users: compiled by NVRTC, checked before each launch."""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from devtensor import _C
from devtensor._errors import KernelCompileError
from devtensor._types import Device
from devtensor.cuda._kernel_source import explicit, parameters, refuse

# What NVRTC takes, without the architecture, which is that of the device.
_OPTIONS = (
    "-D", "-U", "-I", "--define-macro=", "--undefine-macro=", "--include-path=", "-std=", "--std=", "--fmad=", "-fmad=",
    "--ftz=", "-ftz=", "--prec-div=", "-prec-div=", "--prec-sqrt=", "-prec-sqrt=", "--use_fast_math", "-use_fast_math",
    "--maxrregcount=", "-maxrregcount=", "--generate-line-info", "-lineinfo", "--device-debug", "-G", "--dopt=",
    "-dopt=", "--restrict", "-restrict", "--extra-device-vectorization", "-extra-device-vectorization",
    "--disable-warnings", "-w", "--diag-suppress=", "-diag-suppress=", "--device-int128", "-device-int128",
)  # fmt: skip
_VALUED = tuple(option for option in _OPTIONS if option.endswith("=") or option in ("-D", "-U", "-I"))
_INCLUDES = ("-I", "--include-path=")
_VALUES = {"-D": "NAME=VALUE", "-U": "NAME", "-I": "/folder"} | {
    "--define-macro=": "NAME=VALUE", "--undefine-macro=": "NAME", "--include-path=": "/folder",
}  # fmt: skip
_SETTLED = (
    "-arch",
    "--gpu-architecture",
    "--gpu-code",
    "-dlto",
    "--dlink-time-opt",
    "-rdc",
    "--relocatable-device-code",
)

# Headers that NVRTC does not have, so that a source which also a C++ compiler takes is taken by it too.
_TYPES = "".join(
    f"typedef {own} {name}_t;\n"
    for own, name in (
        ("signed char", "int8"), ("short", "int16"), ("int", "int32"), ("long", "int64"), ("unsigned char", "uint8"),
        ("unsigned short", "uint16"), ("unsigned int", "uint32"), ("unsigned long", "uint64"), ("long", "intptr"),
        ("unsigned long", "uintptr"),
    )
)  # fmt: skip
_HEADERS = {"devtensor_types.h": "#pragma once\n" + _TYPES} | dict.fromkeys(
    ("stdint.h", "cstdint", "stddef.h", "cstddef", "math.h", "cmath", "stdio.h", "cstdio", "assert.h", "cassert",
     "cuda_runtime.h", "device_launch_parameters.h"), "#pragma once\n",
)  # fmt: skip

_LOG_LINE = re.compile(r"^(?P<file>[^\s:(]+)(?:\((?P<a>\d+)\)|:(?P<b>\d+):(?P<column>\d+)): "
                       r"(?P<kind>(?:catastrophic |fatal )?error|warning)[^:]*: (?P<text>.*)$")  # fmt: skip


def _wanted_option(option: Any) -> str:
    if not isinstance(option, str):
        raise TypeError(f"RawKernel(): options must be str, not {type(option).__name__}")
    if option.startswith(_SETTLED):
        raise ValueError(f"RawKernel(): {option} is settled by the device that the kernel is launched on")
    for name in _VALUED:
        if option in (name, name.rstrip("=")):
            whole = f"{name}{_VALUES.get(name, 'VALUE')}"
            raise ValueError(f"RawKernel(): {option} needs its value in the same string: {whole!r}")
    known = option in _OPTIONS or option.startswith(_VALUED)
    if not known or "\0" in option:
        import difflib  # two milliseconds of the import of devtensor otherwise

        near = difflib.get_close_matches(option.partition("=")[0], [name.rstrip("=") for name in _OPTIONS], 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ValueError(f"RawKernel(): NVRTC has no option {option!r}{hint} (docs/raw-kernel.md lists them)")
    return option


@functools.cache
def _cuda_include() -> str | None:
    """Where CUDA's own headers are, such as cuda_fp16.h; None where they are not installed."""
    roots = [os.path.join(p, "nvidia", name) for p in sys.path if os.path.isabs(p) for name in ("cu13", "cuda_runtime")]
    roots += [os.environ[name] for name in ("CUDA_PATH", "CUDA_HOME") if os.path.isabs(os.environ.get(name, ""))]
    roots += [os.path.join(sys.prefix, "targets", "x86_64-linux"), sys.prefix, "/usr/local/cuda", "/opt/cuda"]
    folders = (os.path.join(root, "include") for root in roots)
    return next((folder for folder in folders if os.path.isfile(os.path.join(folder, "cuda_fp16.h"))), None)


class RawKernel:
    """A CUDA C++ kernel of your own: `kernel[grid, block](*args)` or `kernel(grid, block, args)`.

    source is CUDA C++ in which `name` is declared `extern "C" __global__ void`. Its parameters are read from there:
    pointers to numbers take contiguous DeviceArrays of that dtype on one CUDA device, numbers take Python numbers that
    fit. Where the list cannot be read (structs, templates, macros), params gives it: "const float *x, int n". options
    are NVRTC's, such as "-DTILE=16" or "--use_fast_math".

    Each call checks number, device, dtype, contiguity and range of its arguments and the size of the launch before
    anything is sent, and is ordered with what other streams do to the arrays. The kernel is compiled for a device at
    its first launch there, or by compile(), and kept for later processes. docs/raw-kernel.md shows it all.

    Raises KernelArgumentError for a source whose kernel or parameters cannot be read, TypeError and ValueError for
    options.

    >>> double = dt.cuda.RawKernel('''extern "C" __global__ void twice(float *x, int n)
    ... {
    ...     int i = blockIdx.x * blockDim.x + threadIdx.x;
    ...     if (i < n) x[i] *= 2;
    ... }''', "twice")
    >>> x = dt.ones(3, device="cuda")
    >>> double[1, 32](x, 3)
    >>> x.tolist()
    [2.0, 2.0, 2.0]
    """

    __slots__ = ("__weakref__", "_kernel", "_name", "_options", "_params", "_source")

    def __init__(self, source: str, name: str, options: Sequence[str] = (), *, params: str | None = None) -> None:
        for value, what in ((source, "source"), (name, "name"), ("" if params is None else params, "params")):
            if not isinstance(value, str):
                raise TypeError(f"RawKernel(): {what} must be str, not {type(value).__name__}")
        if isinstance(options, str) or not isinstance(options, Iterable):
            given = "one" if isinstance(options, str) else type(options).__name__
            raise TypeError(f"RawKernel(): options must be a sequence of str, not {given}")
        if "\0" in source:
            raise refuse("RawKernel(): the source has a zero byte")
        if not (name.isidentifier() and name.isascii() and len(name) < 64):
            raise refuse(f"RawKernel(): {name!r} is not the name of a kernel")
        own = tuple(map(_wanted_option, options))
        self._source = source
        self._name = name
        self._options = own
        self._params = parameters(source, name) if params is None else explicit(name, source, params)
        added = ["--pre-include=devtensor_types.h"]
        include = _cuda_include() if "#include" in source.replace(" ", "") else None
        if include is not None:
            added.append(f"-I{include}")
        kept = not any(option.startswith(_INCLUDES) for option in own)
        self._kernel = _C._kernel_new(
            name,
            source,
            tuple(map(tuple, self._params)),
            (*own, *added),
            tuple(_HEADERS),
            tuple(_HEADERS.values()),
            kept,
        )

    @property
    def name(self) -> str:
        """The name of the kernel."""
        return self._name

    @property
    def source(self) -> str:
        """The source as it was given."""
        return self._source

    @property
    def options(self) -> tuple[str, ...]:
        """The options as they were given."""
        return self._options

    @property
    def params(self) -> tuple[tuple[str, str], ...]:
        """Name and declaration of each parameter, such as ("x", "const float *x")."""
        return tuple((param.name, param.declaration) for param in self._params)

    @property
    def attributes(self) -> dict[str, int]:
        """What the compiled kernel needs and allows on the current device; compiles it there first.

        max_threads_per_block; bytes of shared, const and local memory; num_regs (0 on a simulated GPU);
        max_dynamic_shared_size_bytes that a launch may ask for. Raises KernelCompileError, DeviceNotAvailableError.
        """
        index = _C._cuda_current_device()
        self.compile(index)
        return _C._kernel_attributes(self._kernel, index)

    def compile(self, device: Device | None = None) -> None:
        """Compile for a device now, the current one by default, instead of at the first launch there.

        Raises KernelCompileError with the lines of the source that are wrong, DeviceNotAvailableError, and CudaError
        where NVRTC is not installed.
        """
        index = _C._cuda_index(device)
        log = _C._kernel_compile(self._kernel, index)
        if log is not None:
            raise _compile_error(self, index, log)

    def __call__(
        self, grid: int | Sequence[int], block: int | Sequence[int], args: Sequence[Any], *, shared_mem: int = 0,
        stream: _C.Stream | None = None,
    ) -> None:  # fmt: skip
        """Launch grid blocks of block threads (ints, or up to three sizes each) with args.

        shared_mem is in bytes, for `extern __shared__` arrays; stream is a dt.cuda.Stream, this thread's by default.
        The call returns when the launch has been sent; synchronize() and the first read of a result wait for it.

        Raises DeviceMismatchError, DTypeMismatchError, KernelArgumentError, RuntimeError for a read-only array, all
        before anything is sent; CudaError.
        """
        given = args if type(args) is tuple else tuple(args)
        device = _C._kernel_launch(self._kernel, grid, block, given, shared_mem, stream)
        if device is not None:
            self.compile(device)
            _C._kernel_launch(self._kernel, grid, block, given, shared_mem, stream)

    def __getitem__(self, configuration: tuple[Any, ...]) -> _Configured:
        """kernel[grid, block], kernel[grid, block, shared_mem] or kernel[grid, block, shared_mem, stream]."""
        if not isinstance(configuration, tuple) or not 2 <= len(configuration) <= 4:
            raise refuse(f"{self._name}[grid, block, shared_mem=0, stream=None] takes two to four values")
        return _Configured(self, *configuration)

    def __repr__(self) -> str:
        text = ", ".join(param.declaration for param in self._params)
        return f"<RawKernel {self._name}({text})>"

    def __reduce__(self) -> Any:
        text = ", ".join(param.declaration for param in self._params)
        return _rebuild, (self._source, self._name, self._options, text)


def _rebuild(source: str, name: str, options: tuple[str, ...], params: str) -> RawKernel:
    return RawKernel(source, name, options, params=params)


class _Configured:
    """A kernel with the size of its launch: call it with the arguments."""

    __slots__ = ("_block", "_grid", "_kernel", "_shared_mem", "_stream")

    def __init__(self, kernel: RawKernel, grid: Any, block: Any, shared_mem: int = 0, stream: Any = None) -> None:
        self._kernel, self._grid, self._block, self._shared_mem, self._stream = kernel, grid, block, shared_mem, stream

    def __call__(self, *args: Any) -> None:
        self._kernel(self._grid, self._block, args, shared_mem=self._shared_mem, stream=self._stream)

    def __repr__(self) -> str:
        return f"{self._kernel!r}[{self._grid}, {self._block}]"


# ---------------------------------------------------------------- what does not compile


def _compile_error(kernel: RawKernel, index: int, log: str) -> KernelCompileError:
    """The first error in the message, and each with its line of the source."""
    found = [match for match in map(_LOG_LINE.match, log.splitlines()) if match and "error" in match.group("kind")]
    own = [match for match in found if match.group("file") == f"{kernel.name}.cu"]
    if own:
        first = own[0]
        lineno = int(first.group("a") or first.group("b"))
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        message = f"{kernel.name} does not compile: line {lineno}: {first.group('text')}{more}"
        note = "\n".join(_excerpt(kernel.source, match) for match in own[:5])
    else:
        lineno = None
        message = (
            f"{kernel.name} cannot be compiled: {log.strip().splitlines()[0] if log.strip() else 'no reason given'}"
        )
        note = log.strip()
    error = KernelCompileError(message)
    error.op, error.code, error.symbol, error.status = "RawKernel", "kernel-compile", "nvrtcCompileProgram", 6
    error.device, error.log, error.lineno = _C.device("cuda", index), log, lineno
    from devtensor._diagnosis import get_error_detail
    from devtensor._diagnosis.causes import see

    if get_error_detail() == "full":
        error.add_note(note)
        if "could not open source file" in log and "cuda_" in log:
            error.add_note("CUDA's headers come with `pip install 'devtensor[cuda13]'`, or a CUDA 13 toolkit")
        error.add_note(see("kernel-compile")[0])
    return error


def _excerpt(source: str, match: re.Match[str]) -> str:
    """The line of an error between its neighbours, and the error below it."""
    lineno = int(match.group("a") or match.group("b"))
    lines = source.splitlines()
    shown = [
        f"  {'>' if i == lineno else ' '} {i:4} | {lines[i - 1]}"
        for i in range(max(1, lineno - 1), min(len(lines), lineno + 1) + 1)
    ]
    at = next((k for k, line in enumerate(shown) if line.startswith("  >")), len(shown) - 1)
    shown.insert(at + 1, f"  {' ' * 6} | {match.group('kind')}: {match.group('text')}")
    return "\n".join(shown)
