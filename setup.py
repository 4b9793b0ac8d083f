"""Builds devtensor._C from csrc/. Environment switches:

DEVTENSOR_BUILD_CUDA  auto (embed code for the GPUs of this machine when nvcc is found), 1 (for all architectures, or an
                      error), 0 (none: kernels are compiled at first use)
DEVTENSOR_CUDA_ARCH   compute capabilities to embed machine code for, such as "80 90" (PTX for newer ones is added)
DEVTENSOR_WERROR=1    all warnings, as errors
DEVTENSOR_SANITIZE=1  AddressSanitizer and UndefinedBehaviorSanitizer; =thread: ThreadSanitizer
DEVTENSOR_COVERAGE=1  gcov
CC, CFLAGS            the compiler, and flags that come after all others
"""

import hashlib
import logging
import os
import shlex
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

sys.path.insert(0, str(Path(__file__).parent / "tools" / "package"))
import index_page
import kernel_image

CFLAGS = ["-std=c11", "-O3", "-fvisibility=hidden", "-ffp-contract=off", "-fno-math-errno"]
CFLAGS += ["-fno-trapping-math", "-g0", "-pthread"]
# The loops for each instruction set are so many that -O3 makes them twice as large and no faster. gcc makes as many
# vectors at -O2 as at -O3 when told so; clang does without.
LOOPS = ["-O2"]
GCC_LOOPS = [*LOOPS, "-ftree-vectorize", "-fvect-cost-model=dynamic"]
KERNELS = ["-Os"]  # meant for GPUs: on the host they are run to be tested
WERROR = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wstrict-prototypes", "-Werror"]
# Python's own flags have -fwrapv, which would switch the check for signed overflow off.
SANITIZE = ["-fsanitize=address,undefined", "-fsanitize=float-cast-overflow", "-fno-wrapv"]
SANITIZE += ["-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g", "-O1"]
# Variables that gcc moves off the stack, to find uses after a return, are aligned to 32 bytes: too few for AVX-512
# (gcc's bug 110027).
ON_THE_STACK = ["--param=asan-use-after-return=0"]
THREADS = ["-fsanitize=thread", "-fno-omit-frame-pointer", "-g", "-O1"]
COVERAGE = ["--coverage", "-O0", "-g", "-fprofile-update=atomic"]


def switch(name):
    value = os.environ.get(name, "0")
    if value not in ("0", "1", ""):
        raise SystemExit(f"{name} must be 0 or 1, not {value!r}")
    return value == "1"


def sanitizers():
    """Flags for the compiler and for the linker."""
    if os.environ.get("DEVTENSOR_SANITIZE") == "thread":
        return THREADS, ["-fsanitize=thread"]
    return (SANITIZE, ["-fsanitize=address,undefined"]) if switch("DEVTENSOR_SANITIZE") else ([], [])


def flags():
    """Flags for the compiler and for the linker."""
    compile_args, link_args = list(CFLAGS), ["-pthread"]
    if switch("DEVTENSOR_WERROR"):
        compile_args += WERROR
    compile_args += sanitizers()[0]
    link_args += sanitizers()[1]
    if switch("DEVTENSOR_COVERAGE"):
        compile_args += COVERAGE
        link_args += ["--coverage"]
    return compile_args, link_args


class BuildExt(build_ext):
    """Compiles in parallel, only what has changed, with Python's and NumPy's headers as system headers."""

    def build_extension(self, ext):
        temp = Path(self.build_temp)
        temp.mkdir(parents=True, exist_ok=True)
        includes = [*self.compiler.include_dirs, *ext.include_dirs]
        command = [*self.compiler.compiler_so, *(f"-isystem{d}" for d in includes)]
        command += [f"-D{name}={value}" for name, value in ext.define_macros] + ext.extra_compile_args
        self.levels = self.find_levels()
        # pip puts NumPy's headers into another folder each time; what they are is told by the version.
        named = [numpy.__version__ if numpy.get_include() in word else word for word in command]
        key = hashlib.sha256(repr((named, self.levels, sys.version)).encode()).hexdigest()
        stamp = temp / "command"
        if self.force or not stamp.exists() or stamp.read_text() != key:
            for stale in temp.rglob("*.o"):
                stale.unlink()
            stamp.write_text(key)

        image = temp / "kernel_image.c"
        kernels = temp.parent / "kernels"  # machine code for GPUs is the same for every Python
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            device_code = kernel_image.Image(pool, kernels, os.environ.get("DEVTENSOR_BUILD_CUDA", "auto"))
            objects = list(pool.map(lambda source: self.compile(source, temp, command), map(Path, ext.sources)))
            device_code.write(image)
        objects.append(self.compile(image, temp, command))

        target = Path(self.get_ext_fullpath(ext.name))
        target.unlink(missing_ok=True)  # it is linked again, as the linker's command may be another
        self.compiler.link_shared_object(
            objects, str(target), libraries=ext.libraries, extra_postargs=ext.extra_link_args, build_temp=str(temp)
        )

    def find_levels(self):
        """Optimization by folder, where it is not that of CFLAGS."""
        if sanitizers()[0]:
            # every access is checked, so that -O1 takes minutes for kernels
            return {"csrc/kernels": ["-O0"], "csrc/cpu/loops/isa": ON_THE_STACK, "csrc/cpu/gemm/isa": ON_THE_STACK}
        if switch("DEVTENSOR_COVERAGE"):
            return {}
        probe = [*self.compiler.compiler_so, *GCC_LOOPS, "-Werror", "-fsyntax-only", "-x", "c", os.devnull]
        refused = subprocess.run(probe, stdin=subprocess.DEVNULL, capture_output=True).returncode
        return {"csrc/kernels": KERNELS, "csrc/cpu/loops/isa": LOOPS if refused else GCC_LOOPS}

    def compile(self, source, temp, command):
        stem = source.name if source.is_relative_to(temp) else str(source)
        target, depfile = temp / (stem + ".o"), temp / (stem + ".d")
        if up_to_date(target, depfile):
            return str(target)
        self.announce(f"compiling {source}", logging.INFO)
        target.parent.mkdir(parents=True, exist_ok=True)
        level = next((flags for folder, flags in self.levels.items() if source.is_relative_to(folder)), [])
        level = [*level, *shlex.split(os.environ.get("CFLAGS", ""))]
        full = [*command, *level, "-MMD", "-MF", str(depfile), "-x", "c", "-c", str(source), "-o", str(target)]
        result = subprocess.run(full, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if result.stderr:
            print(f"{source}:\n{result.stderr}", file=sys.stderr, flush=True)
        if result.returncode:
            target.unlink(missing_ok=True)
            raise CompileError(f"compiling {source} failed: {shlex.join(full)}")
        return str(target)


def up_to_date(target, depfile):
    if not (target.exists() and depfile.exists()):
        return False
    made = target.stat().st_mtime_ns
    names = depfile.read_text().replace("\\\n", " ").partition(":")[2].split()
    return all(os.path.exists(name) and os.stat(name).st_mtime_ns < made for name in names)


def sources():
    return sorted(str(path) for path in Path("csrc").rglob("*") if path.suffix in (".c", ".cu"))


def readme():
    """The long description of the project; none where the extension alone is built, without pyproject.toml."""
    if not Path("pyproject.toml").exists():
        return {}
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = Path("README.md").read_text(encoding="utf-8")
    shown = index_page.of(text, project.get("urls", {}).get("Repository"))
    return {"long_description": shown, "long_description_content_type": "text/markdown"}


compile_args, link_args = flags()
extension = Extension(
    "devtensor._C",
    sources=sources(),
    include_dirs=[numpy.get_include()],
    define_macros=[
        ("NPY_TARGET_VERSION", "NPY_1_25_API_VERSION"),
        ("NPY_NO_DEPRECATED_API", "NPY_1_25_API_VERSION"),
    ],
    libraries=["dl", "m"],
    extra_compile_args=compile_args,
    extra_link_args=link_args,
)
setup(ext_modules=[extension], cmdclass={"build_ext": BuildExt}, **readme())
