"""Checks csrc/cuda/api.h and api.def against NVIDIA's own headers: every signature, constant, size and offset.

    python tools/check_api.py [INCLUDE_DIR ...]

Both declare the same names, so our side is read as text and asserted in a file that includes only NVIDIA's headers.
Without directories, CUDA_HOME, CUDA_PATH, /usr/local/cuda and NVIDIA's wheels are searched. Exit status 0 also when a
header is missing: its part is then named as not checked.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CUDA = ROOT / "csrc" / "cuda"
HEADERS = {"CUDA": "cuda.h", "CUBLASLT": "cublasLt.h", "CUDNN": "cudnn.h", "NVRTC": "nvrtc.h"}
SECTION = {"driver": "CUDA", "cuBLASLt": "CUBLASLT", "cuDNN": "CUDNN", "NVRTC": "NVRTC"}


def search_path():
    found = [Path(os.environ[v], "include") for v in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(v)]
    found.append(Path("/usr/local/cuda/include"))
    for folder in map(Path, sys.path):
        found += [folder / "nvidia" / "cu13" / "include", folder / "nvidia" / "cudnn" / "include"]
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


def main():
    includes = [Path(a) for a in sys.argv[1:]] or search_path()
    declared, functions, failed, checked = read_header(), read_functions(), 0, 0
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
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
