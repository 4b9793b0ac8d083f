"""Compiles every kernel with nvcc for each common architecture, and reads the PTX of the casts.

A cast must keep subnormals and round once: no .ftz, no .approx in any k_cast kernel. The check is first shown a build
with fast math, in which it must find both.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import kernel_image

PTX_ARCH = "75"
ARCHS = (PTX_ARCH, "90", "120")
BAD = re.compile(r"\.(?:ftz|approx)\b")


def nvcc(*arguments):
    path, tried = kernel_image.find_nvcc()
    if path is None:
        raise SystemExit("nvcc was not found; tried " + ", ".join(map(str, tried)))
    command = [str(path), *kernel_image.NVCC_FLAGS, f"-I{kernel_image.KERNELS.resolve()}", *arguments]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def entries(ptx):
    """{kernel: its PTX}"""
    parts = re.split(r"\.entry\s+(\w+)", ptx)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def inexact_casts(ptx):
    """Number of cast kernels, and the bad instructions in them."""
    casts = {name: body for name, body in entries(ptx).items() if name.startswith("k_cast")}
    found = [
        f"{name}: {line.strip()}" for name, body in casts.items() for line in body.splitlines() if BAD.search(line)
    ]
    return len(casts), found


PLANTED = """
extern "C" __global__ void k_cast_planted(const double *x, float *y) { y[0] = (float)x[0] / (float)x[1]; }
"""


def main():
    with tempfile.TemporaryDirectory() as folder:
        source, ptx = Path(folder, "kernels.cu"), Path(folder, "kernels.ptx")
        source.write_text(PLANTED)
        nvcc("--use_fast_math", f"-arch=compute_{PTX_ARCH}", "-ptx", "-o", str(ptx), str(source))
        if not inexact_casts(ptx.read_text())[1]:
            raise SystemExit("the planted inexact cast was not found: this check is blind")

        source.write_text(kernel_image.umbrella())
        nvcc(f"-arch=compute_{PTX_ARCH}", "-ptx", "-o", str(ptx), str(source))
        ncasts, found = inexact_casts(ptx.read_text())
        print(f"{len(entries(ptx.read_text()))} kernels, {ncasts} casts, {len(found)} inexact instructions in casts")
        for line in found[:20]:
            print("  " + line)
        if found or not ncasts:
            return 1
        for arch in ARCHS:
            origin = ptx if arch == PTX_ARCH else source
            nvcc(f"-arch=sm_{arch}", "-cubin", "-o", "/dev/null", str(origin))
            print(f"sm_{arch}: compiled", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
