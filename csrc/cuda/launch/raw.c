/* raw.c: users' kernels. A device keeps the modules of the last ones, so that the same source is compiled once. */
#include <stdio.h>
#include <string.h>

#include "../../core/check/check.h"
#include "compile.h"
#include "launch_log.h"
#include "../memory/memory.h"
#include "../plans.h"
#include "../streams/stream.h"

#define MAX_NAMES 1024 /* of kernels that are told apart where a device is lost */

/* A kernel on a device. Counted; those that nobody wants wait in the device's list until a call may unload them. */
typedef struct cuda_raw_module {
    struct cuda_raw_module *next;
    cuda_device *device;
    atomic_size_t refs;
    CUmodule module;
    CUfunction function;
    cuda_raw_attributes attributes;
    int largest_block[3], largest_grid[3];
    atomic_int dynamic_shared_bytes; /* what launches may ask for without being announced */
} cuda_raw_module;

/* One entry for each device that it was used on. */
typedef struct use {
    struct use *next;
    int device;
    cuda_raw_module *module;
} use;

struct cuda_raw {
    dt_kernel kernel;
    dt_param params[DT_KERNEL_PARAMS];
    char *name, *source;
    char **headers, **header_names, **options, **texts; /* of parameters: name, declaration, ... */
    int nheaders, nnames, noptions, ntexts;             /* copied so far */
    bool kept;
    unsigned number;
    _Atomic(use *) uses;
};

/* ---------------------------------------------------------------- names */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *_Atomic names[MAX_NAMES];

/* Names stay: a device may be lost long after the kernel that did it. The last number stands for all that came late. */
static unsigned
number_of(const char *name)
{
    unsigned i = 0;
    pthread_mutex_lock(&lock);
    while (i < MAX_NAMES - 1 && names[i] != NULL && strcmp(names[i], name) != 0) {
        i++;
    }
    if (i < MAX_NAMES - 1 && names[i] == NULL) {
        char *copy = dt_malloc(strlen(name) + 1);
        if (copy != NULL) {
            memcpy(copy, name, strlen(name) + 1);
        }
        names[i] = copy;
        i = copy != NULL ? i : MAX_NAMES - 1;
    }
    pthread_mutex_unlock(&lock);
    return i;
}

const char *
cuda_raw_name(unsigned number)
{
    const char *name = number < MAX_NAMES ? atomic_load(&names[number]) : NULL;
    return name != NULL ? name : "a user's kernel";
}

/* ---------------------------------------------------------------- the kernel */

static char *
copy_text(const char *text)
{
    char *copy = dt_malloc(strlen(text) + 1);
    return copy == NULL ? NULL : memcpy(copy, text, strlen(text) + 1);
}

static char **
copy_texts(const char *const *texts, int n, int *copied)
{
    char **copies = dt_calloc((size_t)n + 1, sizeof(*copies));
    for (*copied = 0; copies != NULL && *copied < n; ++*copied) {
        copies[*copied] = copy_text(texts[*copied]);
        if (copies[*copied] == NULL) {
            break;
        }
    }
    return copies;
}

static void
free_texts(char **texts, int n)
{
    for (int i = 0; texts != NULL && i < n; i++) {
        dt_free(texts[i]);
    }
    dt_free(texts);
}

static bool
copy_all(cuda_raw *raw, const dt_kernel *kernel, const char *source, int nheaders, const char *const *headers,
         const char *const *header_names, int noptions, const char *const *options)
{
    const char *texts[2 * DT_KERNEL_PARAMS];
    int ntexts = 2 * kernel->nparams;
    for (int i = 0; i < kernel->nparams; i++) {
        texts[2 * i] = kernel->params[i].name;
        texts[2 * i + 1] = kernel->params[i].declaration;
    }
    raw->name = copy_text(kernel->name);
    raw->source = copy_text(source);
    raw->headers = copy_texts(headers, nheaders, &raw->nheaders);
    raw->header_names = copy_texts(header_names, nheaders, &raw->nnames);
    raw->options = copy_texts(options, noptions, &raw->noptions);
    raw->texts = copy_texts(texts, ntexts, &raw->ntexts);
    bool all = raw->name && raw->source && raw->nheaders == nheaders && raw->nnames == nheaders &&
               raw->noptions == noptions && raw->ntexts == ntexts && raw->headers && raw->header_names &&
               raw->options && raw->texts;
    for (int i = 0; all && i < kernel->nparams; i++) {
        raw->params[i] = kernel->params[i];
        raw->params[i].name = raw->texts[2 * i];
        raw->params[i].declaration = raw->texts[2 * i + 1];
    }
    return all;
}

dt_status
cuda_raw_new(const dt_kernel *kernel, const char *source, int nheaders, const char *const *headers,
             const char *const *header_names, int noptions, const char *const *options, bool kept, cuda_raw **out,
             dt_error *err)
{
    cuda_raw *raw = dt_calloc(1, sizeof(*raw));
    if (raw == NULL || !copy_all(raw, kernel, source, nheaders, headers, header_names, noptions, options)) {
        cuda_raw_release(raw);
        return dt_fail_nomem(err, sizeof(*raw));
    }
    raw->kernel = *kernel;
    raw->kernel.name = raw->name;
    raw->kernel.params = raw->params;
    raw->kept = kept;
    raw->number = number_of(raw->name);
    if (!dt_kernel_lay_out(raw->params, kernel->nparams, &raw->kernel.nbytes)) {
        dt_status rc = dt_fail(err, DT_EKERNEL, "kernel-argument", kernel->name,
                               "the parameters of %s take %zu bytes, and %d can be had", kernel->name,
                               raw->kernel.nbytes, DT_KERNEL_PARAM_BYTES);
        cuda_raw_release(raw);
        return rc;
    }
    *out = raw;
    return DT_OK;
}

const dt_kernel *
cuda_raw_kernel(const cuda_raw *raw)
{
    return &raw->kernel;
}

/* ---------------------------------------------------------------- modules */

static void
module_release(cuda_raw_module *m)
{
    if (atomic_fetch_sub(&m->refs, 1) != 1 || !cuda_api_alive()) {
        return;
    }
    cuda_device *d = m->device;
    m->next = atomic_load(&d->raw_unused);
    while (!atomic_compare_exchange_weak(&d->raw_unused, &m->next, m)) {
    }
}

void
cuda_raw_module_drop(void *module)
{
    module_release(module);
}

/* The context is current, the module lock held. Launches that still run are waited for. */
static void
unload_unused(cuda_device *d)
{
    cuda_raw_module *m = atomic_exchange(&d->raw_unused, NULL);
    if (m != NULL) {
        (void)cu.cuCtxSynchronize();
    }
    while (m != NULL) {
        cuda_raw_module *next = m->next;
        (void)cu.cuModuleUnload(m->module);
        dt_free(m);
        m = next;
    }
}

void
cuda_raw_release(cuda_raw *raw)
{
    if (raw == NULL) {
        return;
    }
    for (use *u = atomic_load(&raw->uses), *next; u != NULL; u = next) {
        next = u->next;
        module_release(u->module);
        dt_free(u);
    }
    free_texts(raw->headers, raw->nheaders);
    free_texts(raw->header_names, raw->nnames);
    free_texts(raw->options, raw->noptions);
    free_texts(raw->texts, raw->ntexts);
    dt_free(raw->name);
    dt_free(raw->source);
    dt_free(raw);
}

static dt_status
read_attributes(cuda_device *d, cuda_raw_module *m, dt_error *err)
{
    cuda_raw_attributes *a = &m->attributes;
    const struct {
        int attribute, *value;
    } wanted[] = {
        {CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &a->max_threads},
        {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &a->shared_bytes},
        {CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, &a->const_bytes},
        {CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &a->local_bytes},
        {CU_FUNC_ATTRIBUTE_NUM_REGS, &a->registers},
        {CU_FUNC_ATTRIBUTE_PTX_VERSION, &a->ptx_version},
        {CU_FUNC_ATTRIBUTE_BINARY_VERSION, &a->binary_version},
    };
    static const int blocks[3] = {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
                                  CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z};
    static const int grids[3] = {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
                                 CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z};
    int most = 0, usual = 0;
    for (int i = 0; i < 3; i++) {
        CUDA_TRY(d, cuDeviceGetAttribute, (&m->largest_block[i], blocks[i], d->handle));
        CUDA_TRY(d, cuDeviceGetAttribute, (&m->largest_grid[i], grids[i], d->handle));
    }
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        CUDA_TRY(d, cuFuncGetAttribute, (wanted[i].value, wanted[i].attribute, m->function));
    }
    CUDA_TRY(d, cuDeviceGetAttribute, (&most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, d->handle));
    CUDA_TRY(d, cuDeviceGetAttribute, (&usual, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, d->handle));
    a->max_dynamic_shared_bytes = most > a->shared_bytes ? most - a->shared_bytes : 0;
    atomic_store(&m->dynamic_shared_bytes, usual > a->shared_bytes ? usual - a->shared_bytes : 0);
    return DT_OK;
}

/* Takes module over, also on failure. */
static dt_status
module_new(cuda_device *d, CUmodule module, const char *name, cuda_raw_module **out, dt_error *err)
{
    cuda_raw_module *m = dt_calloc(1, sizeof(*m));
    dt_status rc = m == NULL ? dt_fail_nomem(err, sizeof(*m)) : DT_OK;
    if (rc == DT_OK) {
        m->device = d;
        m->module = module;
        atomic_init(&m->refs, 1);
        rc = cuda_get_function(d, module, name, &m->function, err);
    }
    if (rc == DT_OK) {
        rc = read_attributes(d, m, err);
    }
    if (rc != DT_OK) {
        (void)cu.cuModuleUnload(module);
        dt_free(m);
        return rc;
    }
    *out = m;
    return DT_OK;
}

/* The lock is held. *out stays NULL where the compiler refuses. */
static dt_status
find_module(cuda_device *d, const cuda_raw *raw, cuda_raw_module **out, char **log, dt_error *err)
{
    char file[128];
    uint8_t key[DT_SHA256_BYTES];
    CUmodule module;
    snprintf(file, sizeof(file), "%s.cu", raw->name);
    const cuda_program program = {.source = raw->source,
                                  .file = file,
                                  .identity = raw->source,
                                  .nheaders = raw->nheaders,
                                  .headers = (const char *const *)raw->headers,
                                  .header_names = (const char *const *)raw->header_names,
                                  .kernel = raw->name,
                                  .noptions = raw->noptions,
                                  .options = (const char *const *)raw->options,
                                  .kept = raw->kept};
    DT_TRY(cuda_program_key(d, &program, key, err));
    cuda_raw_module *m = raw->kept ? cuda_cache_find(&d->raws, key) : NULL;
    if (m != NULL) {
        atomic_fetch_add(&m->refs, 1);
        *out = m;
        return DT_OK;
    }
    DT_TRY(cuda_program_build(d, &program, key, &module, log, err));
    if (module == NULL) {
        return DT_OK;
    }
    DT_TRY(module_new(d, module, raw->name, &m, err));
    if (raw->kept) {
        atomic_fetch_add(&m->refs, 1);
        dt_status rc = cuda_cache_put(&d->raws, key, m, err); /* takes a reference, also on failure */
        if (rc != DT_OK) {
            module_release(m);
            return rc;
        }
    }
    *out = m;
    return DT_OK;
}

static cuda_raw_module *
module_on(const cuda_raw *raw, int device)
{
    const use *u = atomic_load_explicit(&raw->uses, memory_order_acquire);
    while (u != NULL && u->device != device) {
        u = u->next;
    }
    return u != NULL ? u->module : NULL;
}

/* The lock is held. */
static dt_status
compile(cuda_device *d, cuda_raw *raw, char **log, dt_error *err)
{
    if (module_on(raw, d->index) != NULL) {
        return DT_OK; /* another thread was first */
    }
    cuda_raw_module *m = NULL;
    use *u = dt_malloc(sizeof(*u));
    dt_status rc = u == NULL ? dt_fail_nomem(err, sizeof(*u)) : DT_OK;
    if (rc == DT_OK) {
        unload_unused(d);
        rc = find_module(d, raw, &m, log, err);
    }
    if (rc != DT_OK || m == NULL) {
        dt_free(u);
        return rc;
    }
    *u = (use){.next = atomic_load(&raw->uses), .device = d->index, .module = m};
    while (!atomic_compare_exchange_weak(&raw->uses, &u->next, u)) {
    }
    return DT_OK;
}

dt_status
cuda_raw_compile(cuda_raw *raw, int device, char **log, dt_error *err)
{
    cuda_device *d;
    *log = NULL;
    DT_TRY(cuda_enter(device, &d, err));
    pthread_mutex_lock(&d->module_lock);
    dt_status rc = compile(d, raw, log, err);
    pthread_mutex_unlock(&d->module_lock);
    return rc;
}

dt_status
cuda_raw_describe(cuda_raw *raw, int device, cuda_raw_attributes *out, dt_error *err)
{
    cuda_device *d;
    DT_TRY(cuda_enter(device, &d, err));
    const cuda_raw_module *m = module_on(raw, d->index);
    if (m == NULL) {
        return dt_fail(err, DT_EVALUE, "kernel", raw->name, "%s is not compiled for cuda:%d", raw->name, device);
    }
    *out = m->attributes;
    return DT_OK;
}

/* ---------------------------------------------------------------- launching */

static dt_status
check_sizes(const cuda_raw_module *m, const dt_kernel *kernel, const char *what, const char *parts,
            const unsigned sizes[3], const int most[3], dt_error *err)
{
    for (int i = 0; i < 3; i++) {
        if (sizes[i] == 0 || sizes[i] > (unsigned)most[i]) {
            char why[120];
            snprintf(why, sizeof(why), "has %u %s along %c, and cuda:%d takes 1 to %d", sizes[i], parts, 'x' + i,
                     m->device->index, most[i]);
            return dt_fail_kernel_launch(kernel, what, sizes, why, err);
        }
    }
    return DT_OK;
}

static dt_status
check_launch(const cuda_device *d, const cuda_raw *raw, const cuda_raw_module *m, const cuda_raw_launch *l,
             dt_error *err)
{
    char why[160];
    uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];
    DT_TRY(check_sizes(m, &raw->kernel, "block", "threads", l->block, m->largest_block, err));
    DT_TRY(check_sizes(m, &raw->kernel, "grid", "blocks", l->grid, m->largest_grid, err));
    if (threads > (uint64_t)m->attributes.max_threads) {
        snprintf(why, sizeof(why), "has %llu threads, and on cuda:%d a block of it has at most %d",
                 (unsigned long long)threads, d->index, m->attributes.max_threads);
        return dt_fail_kernel_launch(&raw->kernel, "block", l->block, why, err);
    }
    if (l->shared_bytes < 0 || l->shared_bytes > m->attributes.max_dynamic_shared_bytes) {
        snprintf(why, sizeof(why), "asks for %lld bytes of shared memory beside its own %d, and cuda:%d has %d more",
                 (long long)l->shared_bytes, m->attributes.shared_bytes, d->index,
                 m->attributes.max_dynamic_shared_bytes);
        return dt_fail_kernel_launch(&raw->kernel, "block", l->block, why, err);
    }
    return DT_OK;
}

/* More shared memory than usual has to be announced. */
static dt_status
announce_shared(cuda_device *d, cuda_raw_module *m, int64_t nbytes, dt_error *err)
{
    if (nbytes > atomic_load(&m->dynamic_shared_bytes)) {
        CUDA_TRY(d, cuFuncSetAttribute, (m->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)nbytes));
        atomic_store(&m->dynamic_shared_bytes, (int)nbytes);
    }
    return DT_OK;
}

static dt_status
send(cuda_device *d, const cuda_raw *raw, cuda_raw_module *m, const cuda_raw_launch *l, const dt_kernel_arg *args,
     unsigned char *block, dt_error *err)
{
    cuda_extent extents[DT_KERNEL_PARAMS];
    cuda_extents tools = {.extents = extents};
    for (int i = 0; i < raw->kernel.nparams; i++) {
        const dt_array *a = args[i].array;
        if (a != NULL) {
            extents[tools.n++] = (cuda_extent){.name = raw->params[i].name,
                                               .address = (CUdeviceptr)(uintptr_t)dt_array_data(a),
                                               .nbytes = dt_array_nbytes(a),
                                               .itemsize = (uint32_t)dt_itemsize((dt_dtype)a->dtype),
                                               .written = !raw->params[i].constant};
        }
    }
    size_t nbytes = raw->kernel.nbytes;
    void *extra[] = {(void *)CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT,
                     block,
                     (void *)CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT,
                     &nbytes,
                     (void *)CU_LAUNCH_PARAM_END_AS_INT,
                     &tools};
    DT_TRY(announce_shared(d, m, l->shared_bytes, err));
    cuda_note_sent(d, CUDA_SENT_RAW | raw->number);
    DT_COUNT(launches, 1);
    int status; /* local memory of its threads may be taken here */
    CUDA_TRY_WITH_ROOM(d, status, status == CUDA_ERROR_OUT_OF_MEMORY,
                       cu.cuLaunchKernel(m->function, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1],
                                         l->block[2], (unsigned)l->shared_bytes, cuda_stream(d), NULL, extra));
    return cuda_check(d, DT_API_cuLaunchKernel, status, err);
}

/* The arrays from *next on, as many as an op has; false at the end. */
static bool
next_operands(const cuda_raw *raw, const dt_kernel_arg *args, int *next, cuda_operands *out)
{
    int n = 0;
    *out = (cuda_operands){.array = {NULL}};
    for (; *next < raw->kernel.nparams && n < CUDA_MAX_OPERANDS; ++*next) {
        if (args[*next].array != NULL) {
            out->array[n] = args[*next].array;
            out->written[n++] = !raw->params[*next].constant;
        }
    }
    return n > 0;
}

static dt_status
send_in_order(cuda_device *d, const cuda_raw *raw, cuda_raw_module *m, const cuda_raw_launch *l,
              const dt_kernel_arg *args, unsigned char *block, dt_error *err)
{
    cuda_operands operands;
    bool many = atomic_load_explicit(&cuda_many_streams, memory_order_acquire);
    for (int next = 0; many && next_operands(raw, args, &next, &operands);) {
        DT_TRY(cuda_order_use(raw->name, &operands, err));
    }
    dt_status rc = send(d, raw, m, l, args, block, err);
    many = atomic_load_explicit(&cuda_many_streams, memory_order_acquire);
    for (int next = 0; many && next_operands(raw, args, &next, &operands);) {
        cuda_note(&operands);
    }
    for (int i = 0; i < raw->kernel.nparams; i++) {
        dt_written(raw->params[i].constant ? NULL : args[i].array);
    }
    return rc;
}

dt_status
cuda_raw_call(cuda_raw *raw, const cuda_raw_launch *l, const dt_kernel_arg *args, int nargs, int *device, bool *missing,
              dt_error *err)
{
    unsigned char block[DT_KERNEL_PARAM_BYTES] __attribute__((aligned(16)));
    dt_device stream = {DT_CUDA, l->queue != NULL ? l->queue->device->index : dt_current_device()}, where = stream;
    cuda_device *d;
    DT_TRY(dt_kernel_check(&raw->kernel, args, nargs, &where, block, err));
    if (l->queue != NULL && !dt_device_equal(stream, where)) {
        return dt_fail_kernel_stream(&raw->kernel, where, stream, err);
    }
    *device = where.index;
    DT_TRY(cuda_enter(where.index, &d, err));
    cuda_raw_module *m = module_on(raw, where.index);
    *missing = m == NULL;
    if (m == NULL) {
        return DT_OK;
    }
    DT_TRY(check_launch(d, raw, m, l, err));
    if (l->queue == NULL || l->queue == cuda_current(d)) {
        return send_in_order(d, raw, m, l, args, block, err);
    }
    cuda_queue *before = cuda_current(d);
    cuda_queue_retain(before);
    dt_status rc = cuda_set_current(l->queue, err);
    if (rc == DT_OK) {
        dt_error ignored;
        rc = send_in_order(d, raw, m, l, args, block, err);
        (void)!cuda_set_current(before, &ignored);
    }
    cuda_queue_release(before);
    return rc;
}
