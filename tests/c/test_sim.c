/* test_sim.c: how the simulated GPU behaves, call by call; the sections stand in test_sim_*.c. Every section runs in a
 * process of its own, as a lost device stays lost. Prints "N passed, M failed". */
#include "test_sim.h"

cuda_api api;
CUcontext contexts[2];
CUmodule module;
CUfunction fill, add, overrun;

static int passed, failed;

void
check(bool good, const char *text, const char *file, int line)
{
    if (good) {
        passed++;
    } else {
        failed++;
        fprintf(stderr, "%s:%d: %s\n", file, line, text);
    }
}

void
same(int64_t actual, int64_t expected, const char *text, const char *file, int line)
{
    if (actual == expected) {
        passed++;
    } else {
        failed++;
        fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", file, line, text, (long long)actual, (long long)expected);
    }
}

/* ---------------------------------------------------------------- kernels to launch */

DT_KERNEL(k_test_fill, fill_args, a)
{
    float *x = DT_GLOBAL(float, a.x, a.n * sizeof(float));
    DT_FOR(i, (int64_t)a.n) {
        x[i] = a.value;
    }
}

/* Claims n elements and writes one more. */
DT_KERNEL(k_test_overrun, fill_args, a)
{
    float *x = DT_GLOBAL(float, a.x, a.n * sizeof(float));
    DT_FOR(i, (int64_t)a.n + 1) {
        x[i] = a.value;
    }
}

DT_KERNEL(k_test_add, fill_args, a)
{
    float *x = DT_GLOBAL(float, a.x, a.n * sizeof(float));
    DT_FOR(i, (int64_t)a.n) {
        x[i] += a.value;
    }
}

/* What a build would embed: of the last, nvcc made a smaller struct. */
DT_KERNEL(k_test_uneven, fill_args, a)
{
    (void)a;
}

const int cuda_nimage_kernels = 3;
const cuda_image_kernel cuda_image_kernels[] = {
    {"k_test_add", 0, sizeof(fill_args)},
    {"k_test_fill", 0, sizeof(fill_args)},
    {"k_test_uneven", 0, sizeof(fill_args) - 4},
};

/* ---------------------------------------------------------------- helpers */

void
start(void)
{
    OK(sim_open(2, MEMORY, &api, &(dt_error){0}));
    OK(api.cuInit(0));
    OK(api.cuDevicePrimaryCtxRetain(&contexts[0], 0));
    OK(api.cuDevicePrimaryCtxRetain(&contexts[1], 1));
    OK(api.cuCtxSetCurrent(contexts[0]));
    OK(api.cuModuleLoadData(&module, ".version 9.0\n.target sm_75\n"));
    OK(api.cuModuleGetFunction(&fill, module, "k_test_fill"));
    OK(api.cuModuleGetFunction(&add, module, "k_test_add"));
    OK(api.cuModuleGetFunction(&overrun, module, "k_test_overrun"));
}

CUdeviceptr
alloc(size_t nbytes)
{
    CUdeviceptr p = 0;
    OK(api.cuMemAlloc_v2(&p, nbytes));
    return p;
}

CUstream
stream_new(unsigned flags)
{
    CUstream s = NULL;
    OK(api.cuStreamCreate(&s, flags));
    return s;
}

CUresult
launch(CUfunction function, CUdeviceptr x, uint64_t n, float value, CUstream stream)
{
    fill_args args = {x, n, value};
    void *parameters[] = {&args};
    return api.cuLaunchKernel(function, 1, 1, 1, 256, 1, 1, 0, stream, parameters, NULL);
}

void *
host(size_t nbytes)
{
    void *p = NULL;
    OK(api.cuMemHostAlloc(&p, nbytes, CU_MEMHOSTALLOC_PORTABLE));
    return p;
}

float
peek(CUdeviceptr p, CUstream stream)
{
    float x = 0;
    OK(api.cuMemcpyDtoHAsync_v2(&x, p, sizeof(x), stream));
    return x;
}

double
entry(int64_t i)
{
    return (double)((i * 7 + i / 3) % 5 - 2);
}

static const struct {
    const char *name;
    void (*run)(void);
} sections[] = {
#define SECTION(name) {#name, test_##name},
    SECTIONS(SECTION)
#undef SECTION
};

int
main(void)
{
    int all_passed = 0, all_failed = 0;
    for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
        int counts[2] = {0, 1}, ends[2], status = 0;
        if (pipe(ends) != 0) {
            return 2;
        }
        pid_t pid = fork();
        if (pid == 0) {
            sections[i].run();
            counts[0] = passed;
            counts[1] = failed;
            exit(write(ends[1], counts, sizeof(counts)) == (ssize_t)sizeof(counts) ? 0 : 2);
        }
        close(ends[1]);
        if (read(ends[0], counts, sizeof(counts)) != (ssize_t)sizeof(counts)) {
            fprintf(stderr, "test_sim.c: %s did not come to its end\n", sections[i].name);
        }
        close(ends[0]);
        waitpid(pid, &status, 0);
        all_failed += status != 0 && counts[1] == 0;
        all_passed += counts[0];
        all_failed += counts[1];
    }
    printf("%d passed, %d failed\n", all_passed, all_failed);
    return all_failed != 0;
}
