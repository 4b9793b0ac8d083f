"""Checks csrc/cuda/api.h and api.def against NVIDIA's own headers (every signature, constant, size and offset) and
libraries (every symbol).

    python tools/gpu/check_api.py [DIR ...]

Both declare the same names, so our side is read as text and asserted in a file that includes only NVIDIA's headers.
Headers and libraries are looked for in each DIR; without one, in CUDA_HOME, CUDA_PATH, /usr/local/cuda and NVIDIA's
wheels. The driver's library may be the toolkit's stub. Exit status 0 also when something is missing: it is then named
as not checked.

The lowest and the highest supported versions are checked by installing them somewhere and naming their folders:

    pip install --no-deps --target low nvidia-cublas==13.0.0.19 nvidia-cudnn-cu13==9.12.0.46 nvidia-cuda-nvrtc==13.0.48
    cd low/nvidia && python ../../tools/gpu/check_api.py cu13/include cudnn/include cu13/lib cudnn/lib
"""

import ctypes
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CUDA = ROOT / "csrc" / "cuda"
HEADERS = {"CUDA": "cuda.h", "CUBLASLT": "cublasLt.h", "CUDNN": "cudnn.h", "NVRTC": "nvrtc.h"}
LIBRARIES = {
    "CUDA": ("libcuda.so.1", "libcuda.so"),
    "CUBLASLT": ("libcublasLt.so.13",),
    "CUDNN": ("libcudnn.so.9",),
    "NVRTC": ("libnvrtc.so.13",),
}
SECTION = {"driver": "CUDA", "cuBLASLt": "CUBLASLT", "cuDNN": "CUDNN", "NVRTC": "NVRTC"}


def search_path():
    toolkits = [Path(os.environ[v]) for v in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(v)]
    found = [t / d for t in (*toolkits, Path("/usr/local/cuda")) for d in ("include", "lib64", "lib64/stubs")]
    for folder in map(Path, sys.path):
        found += [folder / "nvidia" / name / d for name in ("cu13", "cudnn") for d in ("include", "lib")]
    return [d for d in found if d.is_dir()]


def read_header():
    """{library: (constants {name: value}, structs {name: [field, ...]}, other typedef names)} of api.h."""
    text = (CUDA / "api.h").read_text()
    parts = re.split(r"/\* -+ (\w+)[^*]*\*/", text)
    out = {}
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        if title not in SECTION:
            continue
        constants = dict(re.findall(r"\b([A-Z][A-Za-z0-9_]+) = (-?\d+)\b", body))
        structs = {}
        for fields, name in re.findall(r"typedef struct \{(.*?)\} (\w+);", body, re.DOTALL):
            structs[name] = re.findall(r"(\w+)(?:\[\d+\])?;", fields)
        typedefs = re.findall(r"^typedef (?!struct \{).*?\*?(\w+);$", body, re.MULTILINE)
        out[SECTION[title]] = (constants, structs, typedefs)
    return out


def read_functions():
    """[(library, symbol, result type, parameters)] of api.def."""
    text = re.sub(r"/\*.*?\*/", "", (CUDA / "api.def").read_text(), flags=re.DOTALL)
    pattern = r"^DT_API\((\w+), (\w+), ([^(]+), (\([^()]*\)), \([^()]*\)\)"
    found = re.findall(pattern, text, re.MULTILINE)
    if len(found) != text.count("DT_API("):
        raise SystemExit("api.def has a line that this script cannot read")
    return found


def compile_c(source, includes, output):
    compiler = shlex.split(os.environ.get("CC", "cc"))
    command = [*compiler, "-std=gnu11", "-w", *(f"-I{d}" for d in includes), "-x", "c", "-"]
    return subprocess.run([*command, *output], input=source, text=True, capture_output=True)


def our_layout(names):
    """Sizes and offsets as our own header has them: [C expression, value]."""
    lines = "".join(f'printf("%s\\t%zu\\n", "{e}", (size_t)({e}));\n' for e in names)
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder, "layout"))
        source = f'#include <stdio.h>\n#include "{CUDA}/api.h"\nint main(void) {{\n{lines}return 0;\n}}\n'
        result = compile_c(source, [], ["-o", program])
        if result.returncode:
            raise SystemExit(result.stderr)
        text = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return [line.split("\t") for line in text.splitlines()]


def version_of(library, handle):
    if library == "CUDA":
        return "whatever driver there is"
    if library == "NVRTC":
        major, minor = ctypes.c_int(), ctypes.c_int()
        handle.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        return f"{major.value}.{minor.value}"
    function = handle.cudnnGetVersion if library == "CUDNN" else handle.cublasLtGetVersion
    function.restype = ctypes.c_size_t
    return function()


def check_libraries(folders, functions):
    """Every symbol is looked up as the loader does it. Returns how many are missing."""
    missing = 0
    for library, names in LIBRARIES.items():
        path = next((d / name for d in folders for name in names if (d / name).is_file()), None)
        if path is None:
            print(f"NOT CHECKED: the symbols of {names[0]}, which is not in {[str(d) for d in folders]}")
            continue
        handle = ctypes.CDLL(str(path))
        wanted = [symbol for owner, symbol, *_ in functions if owner == library]
        absent = [symbol for symbol in wanted if not hasattr(handle, symbol)]
        print(f"{path} ({version_of(library, handle)}): {len(wanted)} symbols, missing: {absent or 'none'}")
        missing += len(absent)
    return missing


def main():
    includes = [Path(a).resolve() for a in sys.argv[1:]] or search_path()
    declared, functions, failed, checked = read_header(), read_functions(), 0, 0
    missing = check_libraries(includes, functions)
    for library, header in HEADERS.items():
        if not any((d / header).is_file() for d in includes):
            print(f"NOT CHECKED: {library}: {header} is not in {[str(d) for d in includes]}")
            continue
        constants, structs, typedefs = declared[library]
        claims = [f"{name} == {value}" for name, value in constants.items()]
        expressions = [f"sizeof({name})" for name in [*structs, *typedefs]]
        expressions += [f"offsetof({name}, {field})" for name, fields in structs.items() for field in fields]
        claims += [f"{expression} == {value}" for expression, value in our_layout(expressions)]
        for owner, symbol, result, parameters in functions:
            if owner == library:
                claims.append(f"__builtin_types_compatible_p(__typeof__(&{symbol}), {result} (*){parameters})")
        source = f"#include <stddef.h>\n#include <stdint.h>\n#include <{header}>\n"
        source += "typedef struct CUstream_st *CUstream;\n"
        source += "".join(f'_Static_assert({c}, "{c}");\n' for c in claims)
        result = compile_c(source, includes, ["-fsyntax-only"])
        errors = re.findall(r"error: (.*)", result.stderr)
        print(f"{library}: {len(claims)} claims, {len(errors)} wrong")
        for error in errors:
            print("  " + error)
        checked += len(claims)
        failed += len(errors) or (result.returncode != 0)
    print(f"{checked} claims checked against NVIDIA's headers, {failed} wrong")
    return 1 if failed or missing else 0


if __name__ == "__main__":
    sys.exit(main())
