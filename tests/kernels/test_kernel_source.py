"""The parameter list of a kernel, read from its source: what is read, what is refused, and that nothing hangs."""

from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import CUDA_DEVICES

import devtensor as dt
from devtensor.cuda import _kernel_source as source
from devtensor.cuda._kernel_source import ARRAY, BOOL, FLOAT, INT

assert CUDA_DEVICES


def read(text: str, name: str = "k") -> list[tuple[str, int, str, int]]:
    """(name, kind, dtype, lanes) of each parameter."""
    return [(p.name, p.kind, p.dtype, p.lanes) for p in source.parameters(text, name)]


def declared(parameters: str) -> str:
    return f'extern "C" __global__ void k({parameters}) {{ }}'


TYPES = [
    ("const float *x", ("x", ARRAY, "float32", 1)),
    ("float const *__restrict__ x", ("x", ARRAY, "float32", 1)),
    ("const float* __restrict x", ("x", ARRAY, "float32", 1)),
    ("volatile double * const x", ("x", ARRAY, "float64", 1)),
    ("float x[]", ("x", ARRAY, "float32", 1)),
    ("float x[16]", ("x", ARRAY, "float32", 1)),
    ("unsigned long long int *x", ("x", ARRAY, "int64", 1)),
    ("long long unsigned *x", ("x", ARRAY, "int64", 1)),
    ("unsigned char *x", ("x", ARRAY, "uint8", 1)),
    ("uint8_t *x", ("x", ARRAY, "uint8", 1)),
    ("char *x", ("x", ARRAY, "int8", 1)),
    ("unsigned *x", ("x", ARRAY, "int32", 1)),
    ("bool *x", ("x", ARRAY, "bool", 1)),
    ("void *x", ("x", ARRAY, "", 1)),
    ("__half *x", ("x", ARRAY, "float16", 1)),
    ("const nv_bfloat16 *x", ("x", ARRAY, "bfloat16", 1)),
    ("float4 *x", ("x", ARRAY, "float32", 4)),
    ("const uchar4 *x", ("x", ARRAY, "uint8", 4)),
    ("longlong2 *x", ("x", ARRAY, "int64", 2)),
    ("double2 *x", ("x", ARRAY, "float64", 2)),
    ("half2 *x", ("x", ARRAY, "float16", 2)),
    ("int n", ("n", INT, "int32", 1)),
    ("const unsigned int n", ("n", INT, "int32", 1)),
    ("size_t n", ("n", INT, "int64", 1)),
    ("bool b", ("b", BOOL, "bool", 1)),
    ("float f", ("f", FLOAT, "float32", 1)),
    ("half h", ("h", FLOAT, "float16", 1)),
    ("__nv_bfloat16 h", ("h", FLOAT, "bfloat16", 1)),
]


@pytest.mark.parametrize(("text", "want"), TYPES, ids=[t for t, _ in TYPES])
def test_types(text: str, want: tuple[str, int, str, int]) -> None:
    assert read(declared(text)) == [want]
    assert read(declared(f"int first, {text}, float *last"))[1] == want


@pytest.mark.parametrize("text", ["const float *x", "const unsigned char *__restrict__ x", "float const *x", "void *x"])
def test_const(text: str) -> None:
    (param,) = source.parameters(declared(text), "k")
    assert param.constant == ("const" in text)
    assert param.declaration == text


def test_a_const_pointer_may_be_written() -> None:
    assert not source.parameters(declared("float *const x"), "k")[0].constant


SOURCES = {
    "a comment": "// __global__ void k(int)\n/* __global__ void k(double) */ " + declared("float *x /* ) */"),
    "a text": 'const char *t = "__global__ void k(int n) { \\" }";\n' + declared("float *x"),
    "a macro before": "#define K(x) __global__ void k(int y, \\\n int z)\n" + declared("float *x"),
    "several": declared("int a").replace("k(", "j(") + declared("float *x") + declared("int b").replace("k(", "l("),
    "a block": 'extern "C" {\n__device__ int f(int a) { return a; }\n__global__ void k(float *x) { }\n}',
    "a declaration before": declared("float *y").replace("{ }", ";") + declared("float *x"),
    "launch bounds": 'extern "C" __global__ void __launch_bounds__(256, (1 + 2)) k(float *x) { }',
    "launch bounds first": 'extern "C" __global__ __launch_bounds__(256) void k(float *x) { }',
    "templates": "template <typename T, int N> __global__ void t(T x) { }\n" + declared("float *x"),
    "a typedef": "typedef const float real;\n" + declared("real *x").replace("real", "float"),
    "an alias": "using real = float;\n" + declared("real *x"),
    "a macro for a type": "#define real float\n" + declared("real *x"),
    "crlf": declared("float *x").replace(" ", "\r\n"),
}  # fmt: skip


@pytest.mark.parametrize("what", SOURCES)
def test_sources(what: str) -> None:
    assert read(SOURCES[what])[0][1:] == (ARRAY, "float32", 1)


def test_no_parameters() -> None:
    assert read(declared("")) == []
    assert read(declared("void")) == []


WRONG = [
    ("", "there is no kernel k in the source; its __global__ functions: none"),
    (declared("int n").replace(" k(", " other("), "its __global__ functions: other"),
    ("__global__ void k(int n) { }", 'k must be declared extern "C"'),
    (declared("int n, float"), "parameter 2 of k, float, cannot be read"),
    (declared("float **x"), "parameter 1 of k, float **x, cannot be read"),
    (declared("float &x"), "cannot be read"),
    (declared("struct point p"), "parameter 1 of k, struct point p, cannot be read"),
    (declared("std::complex<float> *x"), "cannot be read"),
    (declared("float3 *x"), "cannot be read"),
    (declared("float x[2][2]"), "cannot be read"),
    (declared("int n = 3"), "have no defaults"),
    (declared("int n, float n"), "two parameters of k have one name"),
    (declared("int n") + declared("float n"), "there are 2 kernels k with different parameters in the source"),
    (declared("..."), "cannot be read"),
    (declared("float *x,, int n"), "parameter 2 of k, nothing, cannot be read"),
]


@pytest.mark.parametrize(("text", "message"), WRONG, ids=range(len(WRONG)))
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(dt.KernelArgumentError) as caught:
        dt.cuda.RawKernel(text, "k")
    assert message in str(caught.value)
    assert caught.value.code == "kernel-argument"


def test_params_instead() -> None:
    kernel = dt.cuda.RawKernel("KERNEL(k, MANY)", "k", params="const float *x, int n // many\n")
    assert kernel.params == (("x", "const float *x"), ("n", "int n"))
    with pytest.raises(dt.KernelArgumentError, match="parameter 1 of k, thing t, cannot be read"):
        dt.cuda.RawKernel("", "k", params="thing t")


@pytest.mark.parametrize("name", ["", "a b", "9", "k\0", "ä", "k" * 64])
def test_names(name: str) -> None:
    with pytest.raises(dt.KernelArgumentError, match="is not the name of a kernel"):
        dt.cuda.RawKernel(declared("int n"), name)


def test_limits() -> None:
    many = ", ".join(f"int n{i}" for i in range(128))
    assert len(dt.cuda.RawKernel(declared(many), "k").params) == 128
    with pytest.raises(TypeError, match="at most 128 parameters"):
        dt.cuda.RawKernel(declared(many + ", int more"), "k")
    with pytest.raises(dt.KernelArgumentError, match="zero byte"):
        dt.cuda.RawKernel(declared("int n") + "\0", "k")


# ---------------------------------------------------------------- hostile


HOSTILE = [
    "(" * 50_000, "{" * 50_000, '"' * 50_000, "/*" * 50_000, 'R"x(' * 20_000, "__global__ " * 20_000, "'\\" * 30_000,
    "__global__ void k(" * 10_000, 'extern "C" __global__ void k(' + "float *x, " * 20_000,
    'extern "C" __global__ void k(' + "a<" * 20_000 + ")", "typedef " + " " * 50_000 + "x",
    "#define a " + " " * 50_000 + "(", "#define a a\n" + declared("a a"), "\\\n" * 30_000,
    "#define a b b\n#define b a a\n" + declared("a *x"), "__launch_bounds__(" * 9_000, "using x = " * 20_000,
    'extern "C" __global__ void __launch_bounds__(' * 5_000, declared("int " * 30_000),
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_sources_are_refused_soon(text: str) -> None:
    start = time.process_time()
    with pytest.raises(dt.KernelArgumentError):
        dt.cuda.RawKernel(text, "k")
    assert time.process_time() - start < 20  # no exponential or cubic search; a limit, not a measurement


PIECES = st.sampled_from(
    ["extern", '"C"', "__global__", "void", "k", "(", ")", "{", "}", ";", ",", "*", "const", "float", "int", "x", "n",
     "//", "/*", "*/", "\n", "#define", "\\", '"', "'", "[", "]", "<", ">", "template", "=", "&", "::", "unsigned"]
)  # fmt: skip


@settings(max_examples=300, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(PIECES, max_size=60).map(" ".join) | st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    for whole in (text, declared(text), declared("float *x") + text):
        try:
            for param in source.parameters(whole, "k"):
                assert param.name.isidentifier() and param.size in (1, 2, 4, 8)
        except dt.KernelArgumentError:
            pass


@settings(max_examples=100, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(TYPES), min_size=1, max_size=8), st.sampled_from([" ", "\n", "\t ", " /* , ) */ "]))
def test_lists_of_any_length(types: list[tuple[str, tuple[str, int, str, int]]], space: str) -> None:
    parts = []
    for i, (text, want) in enumerate(types):
        head, _, tail = text.rpartition(want[0])
        parts.append(f"{head}{want[0]}{i}{tail}")
    found = read(declared(",".join(parts).replace(" ", space)))
    assert [(kind, dtype, lanes) for _, kind, dtype, lanes in found] == [want[1:] for _, want in types]
    assert [name for name, *_ in found] == [f"{want[0]}{i}" for i, (_, want) in enumerate(types)]
