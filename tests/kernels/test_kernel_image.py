"""tools/package/kernel_image.py, with a compiler that only writes down what it was asked for."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest
from support import (
    ROOT,
    call,  # noqa: F401  (starts the suite's devices before devtensor is used)
    needs_compiler,
)

if not (ROOT / "csrc" / "kernels").is_dir():
    pytest.skip("these tests read the source tree", allow_module_level=True)
pytestmark = needs_compiler

# PTX is what the preprocessor leaves of one file, so that a comment changes nothing; every call is written down.
NVCC = r"""#!/bin/sh
if [ "$1" = --version ]; then echo "release 13.0"; exit; fi
echo "$@" >>"$(dirname "$0")/log"
[ ! -e "$(dirname "$0")/broken" ] || { echo "no such thing"; exit 1; }
for source; do :; done
while [ $# -gt 1 ]; do
    case "$1" in
    -o) target=$2 ;;
    -MF) dep=$2 ;;
    -DDT_ONLY_*) dtype=${1#-DDT_ONLY_} ;;
    *.cu) source=$1 ;;
    esac
    shift
done
case "$target" in
*.ptx)
    echo "$target: $source csrc/kernels/index.h /usr/include/stdint.h" >"$dep"
    [ "$(basename "$source") $dtype" = "one.cu int8" ] ||
        printf '.entry k_%s(\n\t.param .align 8 .b8 a[912]\n)\n' "$(basename "$source" .cu)_$dtype" >"$target"
    [ -e "$target" ] || : >"$target"
    grep -v '^//' "$source" >>"$target"
    ;;
*) cat "$1" >"$target" ;;
esac
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source tree with two files of kernels and that compiler."""
    host = [str(path.relative_to(ROOT / "csrc")) for path in (ROOT / "csrc" / "sim" / "host").iterdir()]
    for name in (
        "core/dtypes.def",
        "core/each_dtype.inc",
        "cuda/launch/image.h",
        "sim/launch.h",
        "sim/host_image.h",
        *host,
    ):
        (tmp_path / "csrc" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "csrc" / name, tmp_path / "csrc" / name)
    kernels = tmp_path / "csrc" / "kernels"
    kernels.mkdir()
    (kernels / "index.h").write_text("// index\n")
    (kernels / "one.cu").write_text('#include "index.h"\n#include "../core/each_dtype.inc"\n')
    (kernels / "two.cu").write_text('#include "index.h"\n')
    (tmp_path / "bin").mkdir()
    nvcc = tmp_path / "bin" / "nvcc"
    nvcc.write_text(NVCC)
    nvcc.chmod(nvcc.stat().st_mode | stat.S_IXUSR)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    monkeypatch.delenv("DEVTENSOR_CUDA_ARCH", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    return tmp_path


@pytest.fixture
def image(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "tools" / "package"))
    import kernel_image

    return kernel_image


@pytest.fixture
def gpus(tree: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What nvidia-smi says; without the file it fails."""
    tool = tree / "bin" / "nvidia-smi"
    tool.write_text('#!/bin/sh\ncat "$(dirname "$0")/gpus"\n')
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    return tool.with_name("gpus")


def build(image: ModuleType, tree: Path, mode: str = "1", temp: Path = Path("temp")) -> tuple[str, list[str]]:
    """The file that is generated in temp, and what nvcc was called for."""
    log = tree / "bin" / "log"
    log.unlink(missing_ok=True)
    temp.mkdir(exist_ok=True)
    with ThreadPoolExecutor(2) as pool:
        image.Image(pool, Path("kernels"), mode).write(temp / "kernel_image.c")
    return (temp / "kernel_image.c").read_text(), log.read_text().splitlines() if log.exists() else []


def test_each_unit_is_lowered_once_and_embedded(image: ModuleType, tree: Path) -> None:
    text, calls = build(image, tree)
    lowered, assembled = ([c for c in calls if flag in c] for flag in (" -ptx ", " -fatbin "))
    assert len(lowered) == 11  # one.cu for ten dtypes, two.cu as a whole
    assert len(assembled) == 10  # there is nothing in one.cu for int8
    whole = [c for c in assembled if "code=[sm_75,sm_80,sm_86,sm_90,sm_100,sm_120,compute_75]" in c]
    assert len(whole) == 9 and all(c.endswith(".75.ptx") for c in whole)
    assert all("--fmad=false" in c for c in calls)
    assert "const int cuda_nimages = 10;" in text
    assert 'cuda_image_archs[] = "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120 compute_75 compute_80"' in text
    rows = text.split("cuda_image_kernels[] = {\n")[1].split("{NULL")[0]
    names = [line.split('"')[1] for line in rows.splitlines() if '"' in line]
    assert names == sorted(names)
    assert len(names) == 10
    assert all(line.endswith(", 912},") for line in rows.splitlines() if '"' in line)


def test_a_kernel_takes_one_struct(image: ModuleType, tree: Path, gpus: Path) -> None:
    """Whose size the embedded table says. An nvcc that writes another kind ends no build that did not ask for it."""
    gpus.write_text("9.0\n")
    two = tree / "csrc" / "kernels" / "two.cu"
    for parameters in ("", ".param .u64 a", ".param .align 8 .b8 a[8], .param .u64 b"):
        two.write_text(f".entry k_wrong({parameters})\n")
        with pytest.raises(SystemExit, match="k_wrong takes other than one struct"):
            build(image, tree)
        assert "const int cuda_nimages = 0;" in build(image, tree, "auto")[0]


def test_what_casts_to_bfloat16_is_lowered_twice(image: ModuleType, tree: Path) -> None:
    """7.5 has no instruction for it, and everything later has."""
    shutil.copy(tree / "csrc" / "kernels" / "one.cu", tree / "csrc" / "kernels" / "copy.cu")
    _, calls = build(image, tree)
    twice = [c for c in calls if "-gencode arch=compute_75,code=[sm_75] -gencode" in c]
    assert len(twice) == 11  # bfloat16 of one.cu, and every dtype of copy.cu
    assert all("arch=compute_80,code=[sm_80,sm_86,sm_90,sm_100,sm_120,compute_80]" in c for c in twice)
    assert sorted({Path(c.split()[-1]).name for c in twice}) == ["copy.cu", "one.cu"]
    assert build(image, tree)[1] == []
    source = tree / "csrc" / "kernels" / "copy.cu"
    source.write_text(source.read_text() + "// a comment\n")
    assert len(build(image, tree)[1]) == 20


def test_the_generated_file_compiles(image: ModuleType, tree: Path) -> None:
    build(image, tree)
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    command = [compiler, "-Wall", "-Wextra", "-Werror", "-c", "temp/kernel_image.c", "-o", "temp/kernel_image.o"]
    subprocess.run(command, check=True)
    listed = subprocess.run(["nm", "temp/kernel_image.o"], capture_output=True, text=True, check=True).stdout
    assert len([line for line in listed.splitlines() if " cuda_image_" in line and line[-1].isdigit()]) == 10


def test_nothing_changed_nothing_done(image: ModuleType, tree: Path) -> None:
    first, _ = build(image, tree)
    for path in (tree / "csrc").rglob("*"):
        os.utime(path)
    assert build(image, tree) == (first, [])


def test_another_python_takes_the_machine_code_that_is_there(image: ModuleType, tree: Path) -> None:
    first, _ = build(image, tree)
    assert build(image, tree, temp=Path("temp2")) == (first, [])


def test_only_what_changed_is_done(image: ModuleType, tree: Path) -> None:
    first, _ = build(image, tree)
    source = tree / "csrc" / "kernels" / "two.cu"
    source.write_text(source.read_text() + "// a comment\n")
    second, calls = build(image, tree)
    assert ["-ptx" in c and "two.cu" in c for c in calls] == [True]
    assert second != first  # NVRTC's source has the comment too
    source.write_text(source.read_text() + "int x;\n")
    _, calls = build(image, tree)
    assert ["-ptx" in c for c in calls] == [True, False]
    header = tree / "csrc" / "kernels" / "index.h"
    header.write_text("// another\n")
    _, calls = build(image, tree)
    assert ["-ptx" in c for c in calls if "one.cu" not in c or "bfloat16" not in c] == [True] * 10
    assert ["-ptx" in c for c in calls if "bfloat16" in c] == [True, False]  # what is lowered twice


def test_the_architectures_can_be_chosen(
    image: ModuleType, tree: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    build(image, tree)
    monkeypatch.setenv("DEVTENSOR_CUDA_ARCH", "80 90a")
    text, calls = build(image, tree)
    assert len(calls) == 10
    assert sum("arch=compute_75,code=[sm_80,sm_90a,compute_75]" in c for c in calls) == 9
    assert [c for c in calls if "compute_80" in c and "-fatbin" in c and c.endswith("one.bfloat16.80.ptx")]
    assert 'cuda_image_archs[] = "sm_80 sm_90a compute_75 compute_80"' in text
    monkeypatch.setenv("DEVTENSOR_CUDA_ARCH", "Hopper")
    with pytest.raises(SystemExit, match="DEVTENSOR_CUDA_ARCH must be like"):
        build(image, tree)


@pytest.mark.parametrize(
    ("said", "codes"),
    [
        ("9.0\n", "sm_90 compute_75 compute_80"),
        ("9.0\n9.0\n8.0\n", "sm_80 sm_90 compute_75 compute_80"),
        ("", ""),
        (None, ""),
        ("[N/A]\n", ""),
        ("No devices were found\n", ""),
    ],
)
def test_unasked_there_is_code_for_the_gpus_of_this_machine(
    image: ModuleType, tree: Path, gpus: Path, said: str | None, codes: str
) -> None:
    if said is not None:
        gpus.write_text(said)
    text, calls = build(image, tree, "auto")
    assert f'cuda_image_archs[] = "{codes}"' in text
    assert bool(calls) == bool(codes)


def test_asked_for_architectures_there_is_code_for_these(
    image: ModuleType, tree: Path, gpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus.write_text("9.0\n")
    monkeypatch.setenv("DEVTENSOR_CUDA_ARCH", "86")
    assert 'cuda_image_archs[] = "sm_86 compute_75 compute_80"' in build(image, tree, "auto")[0]


def test_an_empty_list_of_architectures_is_no_list(
    image: ModuleType, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DEVTENSOR_CUDA_ARCH", raising=False)
    unset = build(image, tree, "1")[0]
    for empty in ("", " "):
        monkeypatch.setenv("DEVTENSOR_CUDA_ARCH", empty)
        assert build(image, tree, "1")[0] == unset and "sm_90" in unset


def test_a_compiler_that_fails(image: ModuleType, tree: Path, gpus: Path, capfd: pytest.CaptureFixture[str]) -> None:
    gpus.write_text("9.0\n")
    (tree / "bin" / "broken").touch()
    with pytest.raises(SystemExit, match="nvcc failed: .*\nno such thing"):
        build(image, tree)
    text, _ = build(image, tree, "auto")
    assert "const int cuda_nimages = 0;" in text
    assert "so no GPU code is embedded" in capfd.readouterr().err
    (tree / "bin" / "broken").unlink()
    assert "const int cuda_nimages = 10;" in build(image, tree, "auto")[0]


def test_no_compiler_is_asked(image: ModuleType, tree: Path) -> None:
    text, calls = build(image, tree, "0")
    assert "const int cuda_nimages = 0;" in text
    assert calls == []


def test_a_kernel_of_two_units_is_an_error(image: ModuleType, tree: Path) -> None:
    two = tree / "csrc" / "kernels" / "two.cu"
    two.write_text("// .entry k_two_int16()\n.entry k_one_int16(.param .align 8 .b8 a[8])\n")
    with pytest.raises(SystemExit, match=r"k_one_int16 is in one.int16.fatbin and in two.fatbin"):
        build(image, tree)


def test_the_source_tree_has_units(image: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    stems = [unit.stem for unit in image.units()]
    assert len(stems) == len(set(stems))
    assert {"elementwise.float32", "reduce.int64"} <= set(stems)
    assert {"../../core/each_dtype.inc", "../kernels/reduce/reduce.inc"} <= set(image.local_headers())
    assert sys.modules["kernel_image"] is image
