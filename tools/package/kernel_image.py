"""Device code for the build: compiled by nvcc where there is one, and as source for NVRTC.

A unit is one file of csrc/kernels for one dtype, or the whole file when it does not go through each_dtype.inc. It is
lowered to PTX once, which becomes machine code for each architecture and stands beside it for newer ones. What casts to
bfloat16 is lowered twice, as 7.5 has no instruction for that. A unit is compiled again when the text of what it
includes changes; its machine code when its PTX does, or where there are two of them, with the unit.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

CSRC = Path("csrc")
KERNELS = CSRC / "kernels"
HOST = [CSRC / "sim" / "launch.h", *(CSRC / "sim" / "host" / f"{n}.hpp" for n in ("builtins", "half", "math", "run"))]
NVCC_FLAGS = ["-std=c++17", "-O3", "--fmad=false"]
NVCC_FLAGS += ["--diag-suppress=186"]  # an op for every dtype also asks whether an unsigned number is negative
# Machine code runs on later minor versions too: 8.7 and 8.9 take that of 8.6, 10.3 that of 10.0, 12.1 that of 12.0.
DEFAULT_ARCHS = "75 80 86 90 100 120"
LEVELS = "75", "80"  # of PTX: the second is for units that it makes a difference to
INCLUDE = re.compile(r'^\s*#\s*(include|define\s+DT_EACH)\s+"([^"]+)"', re.MULTILINE)
ENTRY = re.compile(r"^[^/\n]*\.entry\s+(\w+)\s*\(([^)]*)\)", re.MULTILINE)
STRUCT = re.compile(r"\s*\.param \.align \d+ \.b8 \w+\[(\d+)\]\s*")
DTYPE = re.compile(r"^DT_DTYPE\(\w+, (\w+),", re.MULTILINE)


def find_nvcc():
    """Path of nvcc or None, and the places where it was looked for."""
    tried = []
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            tried.append(Path(os.environ[variable], "bin", "nvcc"))
    on_path = shutil.which("nvcc")
    tried.append(Path(on_path) if on_path else Path("nvcc on PATH"))
    tried.append(Path("/usr/local/cuda/bin/nvcc"))
    return next((p for p in tried if os.access(p, os.X_OK) and p.is_file()), None), tried


def gpus_here():
    """Compute capabilities of the GPUs of this machine, such as ["90"]; [] without a driver."""
    command = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
    try:
        said = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return []
    found = {line.strip().replace(".", "") for line in said.stdout.splitlines()} if said.returncode == 0 else set()
    return sorted(arch for arch in found if arch.isdigit())


def sha256(*parts):
    return hashlib.sha256(repr(parts).encode()).hexdigest()


# ---------------------------------------------------------------- the source


def sources():
    return sorted(KERNELS.rglob("*.cu"))


def umbrella():
    """One translation unit with every kernel."""
    return "".join(f'#include "{p.relative_to(KERNELS).as_posix()}"\n' for p in sources())


def local_headers():
    """Every file that the kernels include, as {text between the quotes: contents}: NVRTC finds headers by that text."""
    headers, seen, queue = {}, {}, [(KERNELS, umbrella())]
    while queue:
        folder, text = queue.pop()
        for directive, name in INCLUDE.findall(text):
            path = ((folder if directive == "include" else CSRC / "core") / name).resolve()  # each_dtype.inc is there
            if seen.setdefault(name, path) != path:
                raise SystemExit(f'#include "{name}" means {seen[name]} in one place and {path} in another')
            if name not in headers and path.is_file():
                headers[name] = path.read_text()
                queue.append((path.parent, headers[name]))
    return headers


# ---------------------------------------------------------------- units


@dataclass(frozen=True)
class Unit:
    source: Path
    dtype: str  # "": all

    @property
    def stem(self):
        return f"{self.source.stem}.{self.dtype}" if self.dtype else self.source.stem

    @property
    def levels(self):
        """Of its PTX: a copy casts to every dtype, others to their own. tools/gpu/check_kernels.py sees it."""
        return LEVELS if self.dtype == "bfloat16" or self.source.stem == "copy" else LEVELS[:1]

    def options(self):
        return ["-DDT_ONLY", f"-DDT_ONLY_{self.dtype}"] if self.dtype else []

    def targets(self, archs):
        """{level: the codes that are made of it}, the PTX itself with the last."""
        found = {}
        for arch in archs:
            level = max((v for v in self.levels if int(v) <= int(arch.rstrip("af"))), key=int, default=self.levels[0])
            found.setdefault(level, []).append(f"sm_{arch}")
        found = dict(sorted(found.items(), key=lambda item: int(item[0])))
        last = list(found)[-1]
        found[last].append(f"compute_{last}")
        return found


def units():
    dtypes = DTYPE.findall((CSRC / "core" / "dtypes.def").read_text())
    found = []
    for source in sources():
        by_dtype = "each_dtype.inc" in source.read_text()
        found += [Unit(source, dtype) for dtype in dtypes] if by_dtype else [Unit(source, "")]
    return found


def arguments(ptx):
    """{kernel: bytes of the struct that it takes}"""
    found = {}
    for name, parameters in ENTRY.findall(ptx):
        struct = STRUCT.fullmatch(parameters)
        if struct is None:
            raise OSError(f"{name} takes other than one struct: {' '.join(parameters.split())}")
        found[name] = int(struct[1])
    return found


class Compiler:
    """nvcc with a folder of what it made, each file beside the key of what it was made from."""

    def __init__(self, nvcc, temp, archs):
        self.nvcc, self.temp, self.archs = str(nvcc), Path(temp), archs
        self.version = subprocess.run([self.nvcc, "--version"], stdout=subprocess.PIPE, text=True).stdout
        self.temp.mkdir(parents=True, exist_ok=True)

    def run(self, *arguments):
        """What nvcc said. Raises OSError with that when it fails."""
        command = [self.nvcc, *NVCC_FLAGS, *map(str, arguments)]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        if done.returncode:
            raise OSError(f"{' '.join(command)}\n{done.stdout}")
        return done.stdout

    def inputs(self, depfile):
        """[(file of ours, hash of its contents)]; what belongs to nvcc is told by its version."""
        names = depfile.read_text().replace("\\\n", " ").partition(":")[2].split()
        ours = sorted(n for n in names if Path(n).resolve().is_relative_to(CSRC.resolve()))
        return [(n, hashlib.sha256(Path(n).read_bytes()).hexdigest()) for n in ours]

    def ptx(self, unit, level):
        """The PTX of a unit, a path."""
        target = self.temp / f"{unit.stem}.{level}.ptx"
        depfile, stamp = target.with_suffix(".ptx.d"), target.with_suffix(".ptx.key")
        command = [*unit.options(), f"-arch=compute_{level}", "-ptx", unit.source]
        try:
            fresh = target.exists() and stamp.read_text() == self.key(command, depfile)
        except OSError:
            fresh = False
        if not fresh:
            stamp.unlink(missing_ok=True)
            self.run(*command, "-MD", "-MF", depfile, "-o", target)
            stamp.write_text(self.key(command, depfile))
        return target

    def key(self, command, depfile):
        return sha256(self.version, NVCC_FLAGS, list(map(str, command)), self.inputs(depfile))

    def image(self, unit):
        """The kernels of a unit, as of arguments(), and its fat binary, a path; ({}, None) when the dtype has none."""
        targets = unit.targets(self.archs)
        ptx = self.ptx(unit, list(targets)[-1])
        kernels = arguments(ptx.read_text())
        if not kernels:
            return {}, None
        target = self.temp / f"{unit.stem}.fatbin"
        stamp = target.with_suffix(".fatbin.key")
        command = ["-fatbin", "--compress-mode=size"]
        for level, codes in targets.items():
            command += ["-gencode", f"arch=compute_{level},code=[{','.join(codes)}]"]
        if len(targets) == 1:
            source, key = [ptx], sha256(self.version, NVCC_FLAGS, command, ptx.read_text())
        else:
            source = [*unit.options(), unit.source]
            key = self.key([*command, *source], ptx.with_suffix(".ptx.d"))
        if not (target.exists() and stamp.exists() and stamp.read_text() == key):
            stamp.unlink(missing_ok=True)
            self.run(*command, "-o", target, *source)
            stamp.write_text(key)
        return kernels, target


# ---------------------------------------------------------------- the file


def byte_array(data):
    rows = (data[i : i + 24] for i in range(0, len(data), 24))
    return "".join("    " + ",".join(map(str, row)) + ",\n" for row in rows)


def text_array(declaration, text):
    return f"{declaration}[] = {{\n{byte_array(text.encode())}    0}};\n"


def embed(symbol, path):
    """Takes a file in as it is; the hash makes a change of it a change of this text."""
    return f"""/* {hashlib.sha256(path.read_bytes()).hexdigest()} */
__asm__(".section .rodata\\n.balign 16\\n.globl {symbol}\\n.hidden {symbol}\\n"
        "{symbol}: .incbin \\"{path}\\"\\n.previous\\n");
extern const unsigned char {symbol}[] __attribute__((visibility("hidden")));
"""


def render(images, archs, folder):
    """images: [(kernels, path)]; folder: where the text will stand."""
    headers = local_headers()
    held = {}
    for i, (kernels, _) in enumerate(images):
        for name in kernels:
            if held.setdefault(name, i) != i:
                raise SystemExit(f"{name} is in {images[held[name]][1].name} and in {images[i][1].name}")
    out = ["/* Generated by tools/package/kernel_image.py. */\n"]
    for header in ("cuda/launch/image.h", "sim/host_image.h"):
        out.append(f'#include "{os.path.relpath(CSRC / header, folder)}"\n')
    out += [embed(f"cuda_image_{i}", path) for i, (_, path) in enumerate(images)]
    rows = "".join(f"    {{cuda_image_{i}, {path.stat().st_size}}},\n" for i, (_, path) in enumerate(images))
    out.append(f"const int cuda_nimages = {len(images)};\n")
    out.append(f"const cuda_image cuda_images[] = {{\n{rows}    {{NULL, 0}}}};\n")
    rows = "".join(f'    {{"{name}", {image}, {images[image][0][name]}}},\n' for name, image in sorted(held.items()))
    out.append(f"const int cuda_nimage_kernels = {len(held)};\n")
    out.append(f"const cuda_image_kernel cuda_image_kernels[] = {{\n{rows}    {{NULL, 0, 0}}}};\n")
    made = [code for unit in units() for codes in unit.targets(archs).values() for code in codes] if images else []
    codes = " ".join(sorted(dict.fromkeys(made), key=lambda code: (code.startswith("compute"), made.index(code))))
    out.append(f'const char cuda_image_archs[] = "{codes}";\n')
    out.append(text_array("const char cuda_kernel_source", umbrella()))
    out.append(f'const char cuda_kernel_hash[] = "{sha256(umbrella(), sorted(headers.items()))}";\n')
    out += [text_array(f"static const char header_{i}", text) for i, text in enumerate(headers.values())]
    names = "".join(f'    "{name}",\n' for name in headers)
    texts = "".join(f"    header_{i},\n" for i in range(len(headers)))
    host = "".join(path.read_text() for path in HOST)
    out.append(text_array("const char sim_host_source", host))
    out.append(f'const char sim_host_hash[] = "{sha256(host)}";\n')
    out.append(f"const int cuda_kernel_nheaders = {len(headers)};\n")
    out.append(f"const char *const cuda_kernel_header_names[] = {{\n{names}    NULL}};\n")
    out.append(f"const char *const cuda_kernel_headers[] = {{\n{texts}    NULL}};\n")
    return "".join(out)


class Image:
    """What DEVTENSOR_BUILD_CUDA=mode asks for, compiled into folder by the threads of pool; write() waits."""

    def __init__(self, pool, folder, mode):
        if mode not in ("auto", "0", "1"):
            raise SystemExit(f"DEVTENSOR_BUILD_CUDA must be auto, 0 or 1, not {mode!r}")
        self.required, self.jobs = mode == "1", []
        asked = os.environ.get("DEVTENSOR_CUDA_ARCH", "").split()
        self.archs = asked or (DEFAULT_ARCHS.split() if self.required else gpus_here() if mode == "auto" else [])
        if not all(re.fullmatch(r"\d+[af]?", arch) for arch in self.archs):
            raise SystemExit(f'DEVTENSOR_CUDA_ARCH must be like "80 90", not {" ".join(self.archs)!r}')
        nvcc, tried = find_nvcc() if mode != "0" and self.archs else (None, [])
        if nvcc is not None:
            compiler = Compiler(nvcc, folder, self.archs)
            self.jobs = [pool.submit(compiler.image, unit) for unit in units()]
        elif self.required:
            raise SystemExit("DEVTENSOR_BUILD_CUDA=1, but nvcc was not found; tried " + ", ".join(map(str, tried)))

    def images(self):
        try:
            return [(kernels, path) for kernels, path in (job.result() for job in self.jobs) if kernels]
        except OSError as e:
            for job in self.jobs:
                job.cancel()
            if self.required:
                raise SystemExit(f"nvcc failed: {e}") from e
            print(f"warning: nvcc failed, so no GPU code is embedded: {e}", file=sys.stderr)
            return []

    def write(self, path):
        """Writes path if its contents change."""
        text = render(self.images(), self.archs, path.parent)
        if not (path.exists() and path.read_text() == text):
            path.write_text(text)
