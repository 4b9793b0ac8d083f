"""Compiles every kernel for every common architecture, and reads what comes out.

    python tools/gpu/check_kernels.py [--arch 75 90 ...] [--every N] [--dtypes NAME ...] [--write TABLE.md]

With nvcc: the PTX of the casts, which must round once and keep subnormals (cvt.rn; no .ftz, no .approx), and of
kernels that must move 16 bytes an access; registers, stack and spills of each kernel, of which none may spill; that the
struct that a kernel takes has in the machine code the size that the host gives it; and that machine code for 8.6 and
for 8.9 is the same, as the build embeds only one of them. With NVRTC, where its library is
found: every kernel, dtype by dtype, and one kernel of each file alone, as at run time. Each check is first shown what
it must find.
"""

import argparse
import ctypes
import os
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import zlib
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "package"))

import kernel_image

ARCHS = sorted({*kernel_image.DEFAULT_ARCHS.split(), "89"}, key=int)
SAME_CODE = ("86", "89")
BAD = re.compile(r"\.(?:ftz|approx)\b")
USAGE = re.compile(
    r"Compiling entry function '(\w+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
    r".*?Used (\d+) registers",
    re.DOTALL,
)
PLANTED_CAST = """
extern "C" __global__ void k_cast_planted(const double *x, float *y) { y[0] = (float)x[0] / (float)x[1]; }
"""
PLANTED_SPILL = """
extern "C" __global__ void k_planted(double *x) {
    double v[40];
    for (int i = 0; i < 40; i++) v[i] = x[i];
    __syncthreads();
    for (int i = 0; i < 40; i++) x[i] = v[i] * v[39 - i];
}
"""


PLANTED_STRUCT = """
#include "KERNEL_H"
typedef struct {
    uint64_t x;
#ifdef __CUDACC__
    uint64_t y;
#endif
} planted_args;
DT_KERNEL(k_uneven, planted_args, a) { *DT_GLOBAL(float, a.x, 4) = 1; }
"""
HOST_BYTES = """
#include <stdio.h>
#include "KERNEL_H"
extern const dt_host_kernel __start_dt_kernels[], __stop_dt_kernels[];
void *sim_global(uint64_t address, uint64_t nbytes, int written, unsigned alignment)
{
    (void)address, (void)nbytes, (void)written, (void)alignment;
    return NULL;
}
int main(void) {
    for (const dt_host_kernel *k = __start_dt_kernels; k < __stop_dt_kernels; k++)
        printf("%s %u\\n", k->name, k->args_size);
}
"""
# Of a kernel in an ELF file: attributes of four bytes, or of so many more.
INFO, WITH_DATA, KPARAM_INFO = ".nv.info.", 4, 0x17

# Kernels that wait for memory, and whether they read and write vectors of 16 bytes.
VECTORS = {
    "k_add_float32": "rw",
    "k_add_float16": "rw",
    "k_add_uint8": "rw",
    "k_add_float64": "rw",
    "k_lt_float32": "r",
    "k_exp_float32": "rw",
    "k_where_float32": "rw",
    "k_cast_float32_float32": "rw",
    "k_cast_float64_float32": "r",
    "k_cast_float32_float64": "w",
    "k_cast_float32_bfloat16": "r",
    "k_sum_float32": "r",
    "k_sum_uint8": "r",
    "k_argmax_float16": "r",
    "k_softmax_float32": "rw",
    "k_log_softmax_bfloat16": "rw",
    "k_weigh_float32": "rw",
    "k_weigh_float16": "r",
    "k_uniform_float32": "w",
    "k_depthwise_float32": "rw",
    "k_dot_float16": "r",
    "k_skinny_bfloat16": "r",
    "k_gather_wide_int64": "rw",
    "k_join_wide_int64": "rw",
    "k_nonzero_bool": "r",
}
ACCESS = re.compile(r"\b(ld|st)\.global\S*\.(?:v4\.[a-z]32|v2\.[a-z]64)\b")


def narrow_kernels(ptx):
    """Kernels of VECTORS that are in ptx and do not move vectors as they should."""
    found = []
    for name, body in entries(ptx).items():
        kinds = {{"ld": "r", "st": "w"}[kind] for kind in ACCESS.findall(body)}
        found += [f"{name}: no vector {kind} of 16 bytes" for kind in VECTORS.get(name, "") if kind not in kinds]
    return found


def entries(ptx):
    """{kernel: its PTX}"""
    parts = re.split(r"\.entry\s+(\w+)", ptx)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def wrong_casts(ptx):
    """Number of cast kernels, and what is wrong with them."""
    casts = {name: body for name, body in entries(ptx).items() if name.startswith("k_cast")}
    found = [
        f"{name}: {line.strip()}" for name, body in casts.items() for line in body.splitlines() if BAD.search(line)
    ]
    if "cvt.rn.f32.f64" not in casts.get("k_cast_float64_float32", "cvt.rn.f32.f64"):
        found.append("k_cast_float64_float32: has no cvt.rn.f32.f64")
    return len(casts), found


def usage(said):
    """{kernel: (registers, stack, spilled)} of what ptxas -v said."""
    return {
        name: (int(registers), int(stack), int(stores) + int(loads))
        for name, stack, stores, loads, registers in USAGE.findall(said)
    }


def sections(path, prefix):
    """{name: bytes} of the sections of an ELF file whose names begin so."""
    data = path.read_bytes()
    table = struct.unpack_from("<Q", data, 0x28)[0]
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", data, table + i * size) for i in range(count)]
    found = {}
    for header in headers:
        start = headers[names][4] + header[0]
        name = data[start : data.index(b"\0", start)].decode()
        if name.startswith(prefix):
            found[name] = data[header[4] : header[4] + header[5]]
    return found


def code(path):
    """{section: bytes} of the machine code in an ELF file."""
    return sections(path, ".text")


def parameter_bytes(path):
    """{kernel: bytes of its parameters} by machine code, where each parameter has its offset and size."""
    found = {}
    for name, data in sections(path, INFO).items():
        at, end = 0, 0
        while at < len(data):
            form, attribute, size = struct.unpack_from("<BBH", data, at)
            at += 4
            if form == WITH_DATA and attribute == KPARAM_INFO:
                offset, bits = struct.unpack_from("<HI", data, at + 6)
                end = max(end, offset + (bits >> 18))
            at += size if form == WITH_DATA else 0
        found[name.removeprefix(INFO)] = end
    return found


def host_bytes(folder, files):
    """{kernel: bytes of its struct} as the host's compiler has it, which sends them."""
    compiler = [*shlex.split(os.environ.get("CC", "cc")), "-std=gnu11", "-O0", "-w"]
    main, program = Path(folder, "host_bytes.c"), Path(folder, "host_bytes")
    main.write_text(HOST_BYTES.replace("KERNEL_H", str((kernel_image.KERNELS / "kernel.h").resolve())))
    subprocess.run([*compiler, "-o", program, main, "-x", "c", *files, "-lm"], check=True)
    said = subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout
    return {name: int(size) for name, size in map(str.split, said.splitlines())}


def uneven(path, host):
    """Kernels that take another number of bytes in machine code than the host sends."""
    return [
        f"{name}: takes {taken} bytes, and the host sends {host.get(name)}"
        for name, taken in parameter_bytes(path).items()
        if taken != host.get(name)
    ]


def body(ptx):
    """PTX without what it says about itself."""
    return re.sub(r"^(?:\s*//.*|\.target .*)$", "", ptx, flags=re.MULTILINE)


def cubin(compiler, arch, source):
    """Machine code for arch, a path, and the use that its kernels make of the machine."""
    target = compiler.temp / f"{source.stem}.sm_{arch}.cubin"
    return target, usage(compiler.run(f"-arch=sm_{arch}", "-cubin", "-Xptxas=-v", "-o", target, source))


# ---------------------------------------------------------------- nvcc


def check_planted(compiler):
    cast, spill = compiler.temp / "planted_cast.cu", compiler.temp / "planted_spill.cu"
    cast.write_text(PLANTED_CAST)
    spill.write_text(PLANTED_SPILL)
    target = cast.with_suffix(".ptx")
    compiler.run("--use_fast_math", f"-arch=compute_{kernel_image.LEVELS[0]}", "-ptx", "-o", target, cast)
    if not wrong_casts(target.read_text())[1]:
        raise SystemExit("the planted inexact cast was not found: this check is blind")
    said = compiler.run("-arch=sm_90", "-cubin", "-Xptxas=-v", "--maxrregcount=24", "-o", target, spill)
    if not usage(said)["k_planted"][2]:
        raise SystemExit("the planted spill was not found: this check is blind")
    source = compiler.temp / "planted_struct.cu"
    source.write_text(PLANTED_STRUCT.replace("KERNEL_H", str((kernel_image.KERNELS / "kernel.h").resolve())))
    compiler.run("-arch=sm_90", "-cubin", "-o", target, source)
    if len(uneven(target, host_bytes(compiler.temp, [source]))) != 1:
        raise SystemExit("the planted struct of two sizes was not found: this check is blind")


def level_of(unit, arch):
    return next(iter(unit.targets([arch])))


def check_unit(compiler, unit, archs, host, compared):
    """{arch: usage} of one unit, the number of its casts, and what is wrong. Compared: with its PTX of other levels."""
    lowered = {level: compiler.ptx(unit, level) for level in unit.levels}
    texts = {level: path.read_text() for level, path in lowered.items()}
    names, ncasts, wrong = set(entries(texts[unit.levels[0]])), 0, []
    for level in unit.levels:
        ncasts, found = wrong_casts(texts[level])
        wrong += found + narrow_kernels(texts[level])
    if not names:
        return unit, {}, ncasts, wrong
    if compared and len(unit.levels) == 1:
        bodies = {body(compiler.ptx(unit, level).read_text()) for level in kernel_image.LEVELS}
        wrong += [f"{unit.stem}: one level of PTX, and another one differs"] * (len(bodies) > 1)
    made = {arch: cubin(compiler, arch, lowered[level_of(unit, arch)]) for arch in archs}
    for arch, (path, used) in made.items():
        wrong += uneven(path, host)
        if set(used) != names:
            wrong.append(f"{unit.stem}: sm_{arch} has {len(used)} of {len(names)} kernels")
        wrong += [f"{name}: spills on sm_{arch}" for name, (_, _, spilled) in used.items() if spilled]
    if all(arch in made for arch in SAME_CODE):
        first, second = (code(made[arch][0]) for arch in SAME_CODE)
        wrong += [f"{unit.stem}: {name} differs on sm_89" for name in first if first[name] != second.get(name)]
    for path, _ in made.values():
        path.unlink()
    return unit, {arch: used for arch, (_, used) in made.items()}, ncasts, wrong


def table(results, archs):
    """Markdown: what each file's kernels use, worst over the dtypes, by architecture."""
    families = defaultdict(lambda: defaultdict(dict))
    for unit, by_arch, _, _ in results:
        for arch, kernels in by_arch.items():
            families[unit.source.stem][arch].update(kernels)
    out = ["| family | kernels | " + " | ".join(f"sm_{a}" for a in archs) + " | stack | spilled |\n"]
    out.append("|---|---|" + "---|" * len(archs) + "---|---|\n")
    for family, used in sorted(families.items()):
        every = [u for kernels in used.values() for u in kernels.values()]
        registers = " | ".join(str(max(u[0] for u in used[a].values())) for a in archs)
        stack, spilled = max(u[1] for u in every), sum(u[2] for u in every)
        out.append(f"| {family} | {len(used[archs[0]])} | {registers} | {stack} | {spilled} |\n")
    return "".join(out)


def check_nvcc(folder, pool, archs, share):
    """Markdown and what is wrong."""
    nvcc, tried = kernel_image.find_nvcc()
    if nvcc is None:
        raise SystemExit("nvcc was not found; tried " + ", ".join(map(str, tried)))
    compiler = kernel_image.Compiler(nvcc, Path(folder), archs)
    check_planted(compiler)
    host = host_bytes(folder, kernel_image.sources())
    units = list(kernel_image.units())
    compared = {unit.stem for unit in units if zlib.crc32(unit.stem.encode()) % share == 0}
    results = list(pool.map(lambda unit: check_unit(compiler, unit, archs, host, unit.stem in compared), units))
    wrong = [line for result in results for line in result[3]]
    ncasts = sum(result[2] for result in results)
    nkernels = sum(len(result[1].get(archs[0], {})) for result in results)
    print(f"nvcc: {nkernels} kernels for sm_{' sm_'.join(archs)}, {ncasts} casts read", flush=True)
    if not ncasts:
        wrong.append("there is no cast among the kernels")
    every = {name for result in results for name in result[1].get(archs[0], {})}
    wrong += [f"{name}: is not there, so its vectors were not read" for name in sorted(set(VECTORS) - every)]
    head = f"Registers a thread (the most of a family), bytes of stack and bytes spilled; {nkernels} kernels.\n\n"
    release = re.search(r"release .*", compiler.version)
    return f"{head}nvcc {release.group() if release else ''}\n\n{table(results, archs)}", wrong


# ---------------------------------------------------------------- NVRTC


def find_nvrtc():
    folders = [Path(p, "nvidia", "cu13", "lib") for p in sys.path]
    folders += [Path(os.environ[v], "lib64") for v in ("CUDA_PATH", "CUDA_HOME") if os.environ.get(v)]
    for name in [*(str(f / "libnvrtc.so.13") for f in folders if f.is_dir()), "libnvrtc.so.13"]:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def run_nvrtc(nvrtc, source, headers, arch):
    """The cubin. Raises OSError with what the compiler says."""
    texts = (ctypes.c_char_p * len(headers))(*(text.encode() for text in headers.values()))
    names = (ctypes.c_char_p * len(headers))(*(name.encode() for name in headers))
    options = [b"--gpu-architecture=sm_" + arch.encode(), b"--std=c++17", b"--fmad=false"]
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernels.cu", len(headers), texts, names)
    status = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    get_size, get = (
        (nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
        if status
        else (nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
    )
    get_size(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    get(program, text)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    if status:
        raise OSError(text.raw.decode())
    return text.raw


def kernels_in(machine_code):
    return set(re.findall(rb"\.text\.(k_\w+)", machine_code))


def check_nvrtc(nvrtc, pool, arch, wanted):
    """What is wrong."""
    headers, source = kernel_image.local_headers(), kernel_image.umbrella()
    dtypes = sorted({unit.dtype for unit in kernel_image.units() if unit.dtype})
    if unknown := set(wanted) - set(dtypes):
        raise SystemExit(f"there is no kernel of {unknown}")

    def compile_dtype(dtype):
        return kernels_in(run_nvrtc(nvrtc, f"#define DT_ONLY\n#define DT_ONLY_{dtype}\n{source}", headers, arch))

    def compile_alone(name):
        chosen = "".join(f"#define DT_ONLY_{dtype}\n" for dtype in dtypes if f"_{dtype}_" in f"{name}_")
        text = f"#define DT_ALONE\n#define DT_ALONE_{name} ,\n#define DT_ONLY\n{chosen}{source}"
        return kernels_in(run_nvrtc(nvrtc, text, headers, arch)) == {name.encode()}

    found = sorted(name.decode() for name in set().union(*pool.map(compile_dtype, wanted or dtypes)))
    alone = [name for name in found if name.endswith(("_float32", "_int64"))][::7]
    wrong = [name for name, right in zip(alone, pool.map(compile_alone, alone), strict=True) if not right]
    print(f"NVRTC: {len(found)} kernels for sm_{arch}, {len(alone)} of them also alone", flush=True)
    return [f"{name}: NVRTC does not compile it alone" for name in wrong]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", type=Path, help="file for the table of registers, stack and spills")
    parser.add_argument(
        "--arch", nargs="+", default=ARCHS, help=f"compute capabilities; {' '.join(ARCHS)} unless given"
    )
    parser.add_argument(
        "--every",
        type=int,
        default=1,
        metavar="N",
        help="only one in N files with one level of PTX is compared with another",
    )
    parser.add_argument("--dtypes", nargs="+", default=[], help="what NVRTC compiles; all unless given")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        text, wrong = check_nvcc(folder, pool, arguments.arch, arguments.every)
        print(text)
        nvrtc = find_nvrtc()
        if nvrtc is None:
            print("!!!!!!!! SKIPPED: libnvrtc.so.13 was not found !!!!!!!!")
        else:
            wrong += check_nvrtc(nvrtc, pool, "90", arguments.dtypes)
    if arguments.write:
        arguments.write.write_text("# Kernels: registers, stack, spills\n\nBy tools/gpu/check_kernels.py.\n\n" + text)
    print(f"{len(wrong)} wrong")
    for line in wrong[:40]:
        print("  " + line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
