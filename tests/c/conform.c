/* conform.c: how CUDA's libraries behave, as a list of assertions for the simulated table and the real one alike.
 *
 *   conform simulated            the table of csrc/sim
 *   conform real [DIRECTORIES]   the libraries of this machine, looked for as devtensor does, also in DIRECTORIES
 *   conform libraries [...]      of those, what needs no device, nor a driver when none is installed
 *
 * Prints "ok<TAB>section<TAB>name" or "FAIL<TAB>section<TAB>name<TAB>what it is<TAB>what it should be", and a total;
 * "differs" instead of "FAIL" for what devtensor does not use.
 * Every section runs in a process of its own: a lost device stays lost, and a crash ends only one. */
#include "conform.h"

#include "../../csrc/cuda/front.h"

cuda_api api;
CUcontext context;
CUfunction fill, add, spin;

static bool simulated;
static const char *section;
static int counts[2]; /* held, failed */

void
conform_is(const char *name, int64_t actual, int64_t expected)
{
    bool good = actual == expected;
    counts[good ? 0 : 1]++;
    if (good) {
        printf("ok\t%s\t%s\n", section, name);
    } else {
        printf("FAIL\t%s\t%s\t%lld\t%lld\n", section, name, (long long)actual, (long long)expected);
    }
}

void
conform_tells(const char *name, int64_t actual, int64_t expected)
{
    if (simulated || actual == expected) {
        conform_is(name, actual, expected);
    } else {
        printf("differs\t%s\t%s\t%lld\t%lld\n", section, name, (long long)actual, (long long)expected);
    }
}

static void
end_section(int out)
{
    fflush(stdout);
    bool written = write(out, counts, sizeof(counts)) == (ssize_t)sizeof(counts);
    _exit(written ? 0 : 2);
}

static int result_pipe;

void
conform_need(const char *name, bool condition)
{
    if (!condition) {
        conform_is(name, 0, 1);
        end_section(result_pipe);
    }
}

/* ---------------------------------------------------------------- kernels */

DT_KERNEL(k_conform_fill, conform_args, a)
{
    float *x = DT_GLOBAL(float, a.x, a.n * sizeof(float));
    DT_FOR(i, (int64_t)a.n) {
        x[i] = a.value;
    }
}

DT_KERNEL(k_conform_add, conform_args, a)
{
    float *x = DT_GLOBAL(float, a.x, a.n * sizeof(float));
    DT_FOR(i, (int64_t)a.n) {
        x[i] += a.value;
    }
}

/* Simulated streams run as late as they can anyway. */
DT_KERNEL(k_conform_spin, conform_args, a)
{
    (void)a;
}

/* The same for a GPU. */
static const char source[] =
    "struct args { unsigned long long x, n; float value; };\n"
    "#define EACH for (unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x; i < a.n; i += gridDim.x * "
    "blockDim.x)\n"
    "extern \"C\" __global__ void __launch_bounds__(256) k_conform_fill(const args a) { EACH ((float *)a.x)[i] = "
    "a.value; }\n"
    "extern \"C\" __global__ void __launch_bounds__(256) k_conform_add(const args a) { EACH ((float *)a.x)[i] += "
    "a.value; }\n"
    "extern \"C\" __global__ void k_conform_spin(const args a) {\n"
    "    for (long long start = clock64(); clock64() - start < (long long)a.n;) { }\n"
    "}\n";

static void
load_kernels(void)
{
    nvrtcProgram program = NULL;
    CUmodule module = NULL;
    int major = 0, minor = 0;
    char arch[40];
    size_t size = 0;
    const char *const options[] = {arch};
    (void)api.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
    (void)api.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
    snprintf(arch, sizeof(arch), "--gpu-architecture=sm_%d%d", major, minor);
    conform_need("the kernels compile", api.nvrtcCreateProgram(&program, source, "conform.cu", 0, NULL, NULL) == 0 &&
                                            api.nvrtcCompileProgram(program, 1, options) == 0 &&
                                            api.nvrtcGetCUBINSize(program, &size) == 0);
    char *cubin = malloc(size);
    conform_need("the kernels load", api.nvrtcGetCUBIN(program, cubin) == 0 &&
                                         api.cuModuleLoadData(&module, cubin) == 0 &&
                                         api.cuModuleGetFunction(&fill, module, "k_conform_fill") == 0 &&
                                         api.cuModuleGetFunction(&add, module, "k_conform_add") == 0 &&
                                         api.cuModuleGetFunction(&spin, module, "k_conform_spin") == 0);
    (void)api.nvrtcDestroyProgram(&program);
    free(cubin);
}

/* ---------------------------------------------------------------- helpers */

void
start(void)
{
    conform_need("device 0 can be used", api.cuInit(0) == 0 && api.cuDevicePrimaryCtxRetain(&context, 0) == 0 &&
                                             api.cuCtxSetCurrent(context) == 0);
    load_kernels();
}

CUdeviceptr
allocate(size_t nbytes)
{
    CUdeviceptr p = 0;
    conform_need("memory can be had", api.cuMemAlloc_v2(&p, nbytes) == 0);
    return p;
}

CUstream
stream_new(void)
{
    CUstream stream = NULL;
    conform_need("a stream can be made", api.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == 0);
    return stream;
}

CUresult
launch(CUfunction function, CUdeviceptr x, uint64_t n, float value, CUstream stream)
{
    conform_args args = {x, n, value};
    void *parameters[] = {&args};
    return api.cuLaunchKernel(function, 1, 1, 1, 256, 1, 1, 0, stream, parameters, NULL);
}

void
keep_busy(CUstream stream)
{
    conform_need("a kernel can be launched",
                 launch(spin, 0, 200000000, 0, stream) == 0); /* cycles: a tenth of a second */
}

float
peek(CUdeviceptr p, CUstream stream)
{
    float x = NAN;
    conform_need("memory can be read",
                 api.cuMemcpyDtoHAsync_v2(&x, p, sizeof(x), stream) == 0 && api.cuStreamSynchronize(stream) == 0);
    return x;
}

void *
pinned(size_t nbytes)
{
    void *p = NULL;
    conform_need("pinned memory can be had", api.cuMemHostAlloc(&p, nbytes, CU_MEMHOSTALLOC_PORTABLE) == 0);
    return p;
}

/* ---------------------------------------------------------------- the table */

static void
load_real(void)
{
    static const struct {
        dt_library library;
        const char *name;
        size_t offset;
    } symbols[DT_NAPI] = {
#define DT_API(library, symbol, ret, params, names) {DT_LIBRARY_##library, #symbol, offsetof(cuda_api, symbol)},
#include "../../csrc/cuda/api.def"
#undef DT_API
    };
    for (int i = 0; i < DT_NAPI; i++) {
        void *handle = cuda_load_library(symbols[i].library);
        void *address = handle ? cuda_load_symbol(handle, symbols[i].library, symbols[i].name) : NULL;
        memcpy((char *)&api + symbols[i].offset, &address, sizeof(address));
    }
}

static const struct {
    const char *name;
    void (*run)(void);
    conform_needs needs;
} sections[] = {
#define SECTION(name, needs) {#name, conform_##name, needs},
    SECTIONS(SECTION)
#undef SECTION
};

/* Whether the functions that a section calls are there. */
static bool
possible(conform_needs needs)
{
    return api.nvrtcVersion != NULL && api.cublasLtCreate != NULL && api.cudnnCreate != NULL &&
           (needs == LIBRARIES || api.cuInit != NULL);
}

static void
run(int out, void (*body)(void), conform_needs needs)
{
    result_pipe = out;
    if (simulated) {
        conform_need("the simulated table opens", sim_open(2, 256 * MIB, &api, &(dt_error){0}) == DT_OK);
    } else {
        load_real();
    }
    conform_need("the libraries are there", possible(needs));
    body();
    end_section(out);
}

int
main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    bool libraries = strcmp(mode, "libraries") == 0;
    int total[2] = {0, 0};
    simulated = strcmp(mode, "simulated") == 0;
    if (!simulated && !libraries && strcmp(mode, "real") != 0) {
        fprintf(stderr, "conform simulated | real [DIRECTORIES] | libraries [DIRECTORIES]\n");
        return 2;
    }
    cuda_set_search_path(argc > 2 ? argv[2] : "");
    conform_needs most = DEVICE;
    if (libraries) {
        most = cuda_load_library(DT_LIBRARY_CUDA) != NULL ? DRIVER : LIBRARIES;
    }
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
        int found[2] = {0, 1}, ends[2], status = 0;
        if (sections[i].needs > most) {
            printf("not run\t%s\n", sections[i].name);
            continue;
        }
        section = sections[i].name;
        fflush(stdout);
        if (pipe(ends) != 0) {
            return 2;
        }
        pid_t pid = fork();
        if (pid == 0) {
            alarm(60);
            run(ends[1], sections[i].run, sections[i].needs);
        }
        close(ends[1]);
        bool came = read(ends[0], found, sizeof(found)) == (ssize_t)sizeof(found);
        close(ends[0]);
        waitpid(pid, &status, 0);
        if (!came) {
            found[0] = 0;
            found[1] = 1;
            printf("FAIL\t%s\tthe section comes to its end\t%d\t0\n", section, status);
        }
        total[0] += found[0];
        total[1] += found[1];
    }
    printf("%d hold, %d do not\n", total[0], total[1]);
    return total[1] != 0;
}
