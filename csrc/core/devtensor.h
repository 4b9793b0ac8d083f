/* devtensor.h: every type of the core and the functions between its rooms. READ FIRST.
 *
 * The core checks, infers and allocates, then calls one slot of the backend that owns the memory. It knows neither
 * Python nor CUDA, and no backend by name.
 *
 * Ownership. A dt_storage is counted: _new gives one reference, _retain another, _release takes one back. A dt_array is
 * a plain value that holds one reference to its storage; dt_array_clear gives it back. Functions with a dt_array *out
 * fill an empty one (all zero, DT_ARRAY_EMPTY) with a new reference; when out already has a storage (out=, in place)
 * they write into it. On failure out holds the storage that it held; the shape of an empty one may have been written.
 * Everything else is borrowed for the call.
 *
 * Failure. Functions that can fail return a dt_status and take the dt_error last; err is written only on failure.
 * DT_TRY where nothing is held, one `done:` label where something is. */
#ifndef DEVTENSOR_H
#define DEVTENSOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compiler.h"
#include "memory/memory.h"
#include "numbers/scalar.h"
#include "status.h"
#include "ops/update.h"
#include "layout/walk.h"

#define DT_MAX_OPERANDS 8

/* ---------------------------------------------------------------- status and error: error.c, check.c */

typedef enum { DT_CPU = 1, DT_CUDA = 2, DT_NDEVICE_TYPES } dt_device_type; /* DLPack's codes */

typedef struct {
    int32_t type;
    int32_t index;
} dt_device;

struct dt_array;

/* One operand as the caller knows it: the public parameter name; index >= 0 for an entry of a list ("tensors[2]"), -1
 * for none, DT_WRITTEN for out=: on the device of the others, while dtype and shape are checked against the result. */
#define DT_WRITTEN (-2)
typedef struct {
    const char *name;
    const struct dt_array *array; /* borrowed; NULL: absent */
    int index;
} dt_operand;

/* What an error keeps of an operand: all by value, as the array may have ended when the error is read. */
typedef struct {
    const char *name;
    int index;
    uintptr_t identity; /* where the array was: tells whose it is, and is never followed */
    dt_device device;   /* type 0: none */
    uint8_t dtype, ndim;
    int64_t shape[DT_MAX_NDIM];
} dt_error_operand;

typedef struct {
    dt_status status;
    const char *code;       /* stable, such as "device-mismatch" */
    const char *op;         /* the public name */
    int noperands, culprit; /* culprit: index into operands, or -1 */
    dt_error_operand operands[DT_MAX_OPERANDS];
    /* DT_ECUDA and DT_EOUTOFMEMORY */
    const char *symbol; /* the call that failed */
    int library_status;
    dt_device device;
    size_t requested;
    uint64_t place; /* DT_EINDEX that a device told late: of the call that it belongs to; else 0 */
    char message[1024];
} dt_error;

/* Returns status, after writing the printf-formatted message; code names the kind. */
dt_status dt_fail(dt_error *err, dt_status status, const char *code, const char *op, const char *format, ...)
    DT_PRINTF(5, 6);
dt_status dt_fail_nomem(dt_error *err, size_t nbytes);
#ifdef __clang_analyzer__ /* it reads one file at a time, and must know that these never return DT_OK */
#define dt_fail(err, status, ...) (dt_fail(err, status, __VA_ARGS__), (status))
#define dt_fail_nomem(err, nbytes) (dt_fail_nomem(err, nbytes), DT_ENOMEM)
#endif
/* operand, which has an array, as an error keeps it */
dt_error_operand dt_describe_operand(const dt_operand *operand);

/* ---------------------------------------------------------------- dtypes: dtype.c */

typedef enum { DT_CATEGORY_BOOL, DT_CATEGORY_INT, DT_CATEGORY_FLOAT } dt_category;

typedef enum {
#define DT_DTYPE(NAME, name, ctype, bits, dlpack, category) DT_##NAME,
#include "dtypes.def"
#undef DT_DTYPE
    DT_NDTYPES
} dt_dtype;

typedef struct {
    const char *name;
    uint8_t itemsize;
    uint8_t dlpack_code;
    dt_category category;
} dt_dtype_info;

extern const dt_dtype_info dt_dtypes[DT_NDTYPES];

static inline size_t
dt_itemsize(dt_dtype dtype)
{
    return dt_dtypes[dtype].itemsize;
}

static inline bool
dt_is_float(dt_dtype dtype)
{
    return dt_dtypes[dtype].category == DT_CATEGORY_FLOAT;
}

dt_dtype dt_promote(dt_dtype a, dt_dtype b);
/* what floats of dtype are computed in: float32 for the half types */
dt_dtype dt_wide(dt_dtype dtype);
/* i, or the nearest number that an integer dtype has */
int64_t dt_saturate(dt_dtype dtype, int64_t i);
/* -1 if there is no such name */
int dt_dtype_find(const char *name);
/* float32 or another float: what a Python float gives; process-wide */
dt_dtype dt_default_dtype(void);
void dt_set_default_dtype(dt_dtype dtype);
/* Whether products and convolutions of float32 may round their inputs to TF32 (10 bits of mantissa) where a device has
 * it; process-wide, false at first. The host never does. */
bool dt_allow_tf32(void);
void dt_set_allow_tf32(bool allow);

/* A Python number. f and i both hold the value, converted. */
typedef struct {
    dt_category kind;
    double f;
    int64_t i;
} dt_scalar;

dt_scalar dt_scalar_int(int64_t i);
dt_scalar dt_scalar_float(double f);
dt_scalar dt_scalar_bool(bool b);
/* Writes value as one element of dtype to out, by the cast rule (scalar.h). */
void dt_scalar_store(const dt_scalar *value, dt_dtype dtype, void *out);
dt_scalar dt_scalar_load(dt_dtype dtype, const void *in);

/* ---------------------------------------------------------------- devices and backends: device.c, registry.c */

struct dt_backend;

/* Strict: "cpu", "cuda", "cuda:N". A bare "cuda" is the current CUDA device. */
dt_status dt_device_parse(const char *text, dt_device *device, dt_error *err) DT_MUST_CHECK;
dt_status dt_device_make(const char *type, int64_t index, dt_device *device, dt_error *err) DT_MUST_CHECK;
#define DT_DEVICE_TEXT 24
/* Writes "cpu" or "cuda:0" to text (DT_DEVICE_TEXT bytes) and returns it. */
const char *dt_device_text(dt_device device, char *text);
static inline bool
dt_device_equal(dt_device a, dt_device b)
{
    return a.type == b.type && a.index == b.index;
}

/* Where this code runs, and whose memory it reads. */
#define DT_HOST ((dt_device){DT_CPU, 0})
/* The current CUDA device of this thread; setting it checks that the device exists. */
int dt_current_device(void);
/* The same: the device whose transfers page-locked memory of the host is for. */
dt_device dt_current_accelerator(void);
dt_status dt_set_current_device(int index, dt_error *err) DT_MUST_CHECK;
/* Where creation functions put arrays when no device is given; process-wide, "cpu" at first. */
dt_device dt_default_device(void);
dt_status dt_set_default_device(dt_device device, dt_error *err) DT_MUST_CHECK;
/* The same for this thread, until it is set back; type 0: as for the process. */
dt_status dt_set_default_device_here(dt_device device, dt_device *before, dt_error *err) DT_MUST_CHECK;

/* The backend of an existing device; DT_ENODEVICE for one that is not there. */
dt_status dt_backend_for(dt_device device, const struct dt_backend **backend, dt_error *err) DT_MUST_CHECK;
dt_status dt_device_count(dt_device_type type, int *count, dt_error *err) DT_MUST_CHECK;

typedef struct {
    char name[128];
    int major, minor; /* compute capability */
    int multiprocessors;
    size_t total_memory, free_memory, allocated_memory, reserved_memory, peak_memory;
    bool simulated;
} dt_device_info;

/* ---------------------------------------------------------------- storage: storage.c */

enum { DT_STORAGE_READONLY = 1, DT_STORAGE_PINNED = 2, DT_STORAGE_FOREIGN = 4 };

/* Copies between a device and page-locked memory of the host that may still run. */
enum { DT_PENDING_WRITE = 1, DT_PENDING_READ = 2 };
/* What somebody on the host is about to do, and by that the copies that it must wait for. */
typedef enum { DT_READ = DT_PENDING_WRITE, DT_WRITE = DT_PENDING_WRITE | DT_PENDING_READ } dt_access;

/* One block of memory on one device, shared by views. */
typedef struct dt_storage {
    atomic_uint_fast64_t refs; /* low half: holders; high half: those of them that are nodes (grad/node.c) */
    const struct dt_backend *backend;
    dt_device device;
    uint16_t flags;
    atomic_ushort quiet_writes; /* through .data, while nodes keep it: DT_NODE_QUIET */
    atomic_uint pending;        /* 0 but for page-locked memory */
    atomic_bool exported;       /* somebody else has had the address, and asks nobody before it reads or writes */
    atomic_bool kept;           /* something made from the bytes may be kept: see forget */
    atomic_bool ours;    /* from dt_storage_new, not lent: who writes says so (dt_written) until it is exported */
    atomic_uint version; /* counts other writes while nodes keep it */
    size_t nbytes;
    void *data;                                     /* device address: host code reads it only on cpu */
    void *owner;                                    /* foreign or pinned memory: what keeps it alive */
    void (*release_owner)(void *owner, void *data); /* NULL: backend->free */
    void *private;                                  /* the backend's */
    _Atomic(struct dt_node *) history;              /* of writes that gradients flow through (grad/history.c), owned */
    atomic_uint_fast64_t born;                      /* the latest transform when it was made: see dt_transform */
} dt_storage;

/* A transform of a function (dt.func) numbers itself as it begins. In it nothing may be written to that was there
 * before: the write would outlive the function, or come once for each entry that it is called for. */
typedef struct {
    uint64_t latest; /* that this thread has begun */
    uint64_t began;  /* the innermost that it is in; 0: none */
    bool maps;       /* that one calls its function for each entry */
} dt_transform;

extern _Thread_local dt_transform dt_transform_here __attribute__((tls_model("initial-exec")));
/* Begins one; returns what was. */
dt_transform dt_transform_enter(bool maps);
/* storage is an argument of the one begun after before: it may be written to, if that was so before. */
void dt_transform_admit(const dt_transform *before, dt_storage *storage);

/* A new block of nbytes on device (contents undefined). *out stays as it is on failure. */
dt_status dt_storage_new(dt_device device, size_t nbytes, dt_storage **out, dt_error *err) DT_MUST_CHECK;
/* Wraps memory that someone else owns; release_owner(owner, data) is called once, from any thread, without the GIL. */
dt_status dt_storage_wrap(dt_device device, void *data, size_t nbytes, unsigned flags, void *owner,
                          void (*release_owner)(void *, void *), dt_storage **out, dt_error *err) DT_MUST_CHECK;
dt_status dt_storage_new_pinned(size_t nbytes, dt_storage **out, dt_error *err) DT_MUST_CHECK;
/* Waits for the copies that access must not meet. See dt_settle. */
dt_status dt_storage_settle(dt_storage *storage, dt_access access, dt_error *err) DT_MUST_CHECK;
/* What is called around such a wait: the result of enter is handed to leave. */
void dt_set_wait_hooks(void *(*enter)(void), void (*leave)(void *));
void dt_storage_release(dt_storage *storage);
/* Forgets what was made from the bytes; nodes that keep them can tell. See dt_written. */
void dt_storage_changed(dt_storage *storage, const struct dt_node *by);

static inline dt_storage *
dt_storage_retain(dt_storage *storage)
{
    atomic_fetch_add_explicit(&storage->refs, 1, memory_order_relaxed);
    return storage;
}

/* Whether all writes to its memory are known here, so that something made from it may be kept. */
static inline bool
dt_storage_is_ours(const dt_storage *storage)
{
    return atomic_load(&storage->ours) && !atomic_load(&storage->exported);
}

/* ---------------------------------------------------------------- arrays: array.c, view.c, reshape.c */

/* A typed, strided view. Never changes after it is made. Without a storage it is an immediate: one number of dtype,
 * shape () or expanded, whose bytes stand in the value itself; only inputs of elementwise slots may be immediates. Of a
 * binary op that gives half floats, an immediate is float32. */
typedef struct dt_array {
    dt_storage *storage;
    struct dt_node *node; /* grad/grad.h: where its gradient goes; NULL: nowhere. Not looked at without a storage */
    union {
        int64_t offset; /* bytes from storage->data */
        unsigned char immediate[8];
    };
    uint8_t dtype; /* dt_dtype */
    uint8_t ndim;
    int64_t shape[DT_MAX_NDIM];
    int64_t strides[DT_MAX_NDIM]; /* in elements */
} dt_array;

#define DT_ARRAY_EMPTY ((dt_array){0})

static inline dt_device
dt_array_device(const dt_array *a)
{
    return a->storage->device;
}

/* Address of element 0: of the device, or of the immediate. */
static inline void *
dt_array_data(const dt_array *a)
{
    return a->storage ? (char *)a->storage->data + a->offset : (void *)(uintptr_t)a->immediate;
}

static inline int64_t
dt_array_numel(const dt_array *a)
{
    int64_t n = 1;
    DT_SHORT_LOOP for (size_t d = a->ndim; d > 0; d--)
    {
        n *= a->shape[d - 1];
    }
    return n;
}

static inline size_t
dt_array_nbytes(const dt_array *a)
{
    return (size_t)dt_array_numel(a) * dt_itemsize((dt_dtype)a->dtype);
}

static inline bool
dt_array_readonly(const dt_array *a)
{
    return a->storage && (a->storage->flags & DT_STORAGE_READONLY);
}

/* Before the host touches the memory of x (which may be absent or an immediate): copies that the device still has to
 * make are waited for. Every call of a slot (call.h) and every door to the bytes goes through here. */
static inline dt_status
dt_settle(const dt_array *x, dt_access access, dt_error *err)
{
    if (x != NULL && x->storage != NULL &&
        DT_UNLIKELY(atomic_load_explicit(&x->storage->pending, memory_order_acquire) & access)) {
        return dt_storage_settle(x->storage, access, err);
    }
    return DT_OK;
}

/* After the bytes of x have changed, or on a device work that changes them has been sent. All slots, and copies to the
 * host, end with it. */
static inline void
dt_written(const dt_array *x)
{
    if (x != NULL && DT_UNLIKELY(atomic_load_explicit(&x->storage->kept, memory_order_relaxed) ||
                                 atomic_load_explicit(&x->storage->refs, memory_order_relaxed) >> 32)) {
        dt_storage_changed(x->storage, x->node);
    }
}

bool dt_array_is_contiguous(const dt_array *a);
/* Whether every element has an address of its own and together they fill one block (any order of dimensions). */
bool dt_array_is_dense(const dt_array *a);
/* Whether two elements share an address (an expanded dimension). */
bool dt_array_overlaps_itself(const dt_array *a);
/* First and one past the last byte that a touches, from storage->data. */
void dt_array_extent(const dt_array *a, int64_t *first, int64_t *last);
void dt_array_clear(dt_array *a);
/* out becomes another holder of the same storage, without a node. */
void dt_array_copy_handle(const dt_array *a, dt_array *out);
/* Fills strides for a contiguous array of a's shape. */
void dt_array_set_contiguous(dt_array *a);

/* Checks a shape: rank, signs, number of bytes. */
dt_status dt_shape_check(const char *op, int ndim, const int64_t *shape, dt_dtype dtype, dt_error *err) DT_MUST_CHECK;
dt_status dt_empty(dt_device device, dt_dtype dtype, int ndim, const int64_t *shape, dt_array *out,
                   dt_error *err) DT_MUST_CHECK;
/* Like dt_empty, with the strides of like where that is dense, else contiguous (PyTorch's preserve_format). */
dt_status dt_empty_like(const dt_array *like, dt_device device, dt_dtype dtype, dt_array *out,
                        dt_error *err) DT_MUST_CHECK;
/* The same on its device. */
dt_status dt_empty_beside(const dt_array *like, dt_dtype dtype, dt_array *out, dt_error *err) DT_MUST_CHECK;
dt_status dt_empty_pinned(const dt_array *like, dt_dtype dtype, dt_array *out, dt_error *err) DT_MUST_CHECK;
/* A view of all of storage's elements with these strides (elements); the caller has checked the bounds. */
dt_status dt_as_strided(dt_storage *storage, int64_t offset, dt_dtype dtype, int ndim, const int64_t *shape,
                        const int64_t *strides, dt_array *out, dt_error *err) DT_MUST_CHECK;
/* (C, H, W) as a batch of one, (N, C, H, W) as it is; borrowed. */
dt_array dt_as_batch(const dt_array *image);
/* out: an immediate of dtype. */
void dt_immediate(const dt_scalar *value, dt_dtype dtype, dt_array *out);

/* Views share the storage. Negative dims count from the end; dims are checked (DT_EINDEX). */
dt_status dt_view_reshape(const char *op, const dt_array *x, int ndim, const int64_t *shape, dt_array *out,
                          dt_error *err) DT_MUST_CHECK; /* fails where a copy would be needed */
dt_status dt_reshape(const char *op, const dt_array *x, int ndim, const int64_t *shape, dt_array *out,
                     dt_error *err) DT_MUST_CHECK; /* copies where needed */
dt_status dt_flatten(const char *op, const dt_array *x, int64_t start_dim, int64_t end_dim, dt_array *out,
                     dt_error *err) DT_MUST_CHECK;
dt_status dt_unflatten(const char *op, const dt_array *x, int64_t dim, int ndim, const int64_t *shape, dt_array *out,
                       dt_error *err) DT_MUST_CHECK;
dt_status dt_permute(const char *op, const dt_array *x, int ndims, const int64_t *dims, dt_array *out,
                     dt_error *err) DT_MUST_CHECK;
dt_status dt_transpose(const char *op, const dt_array *x, int64_t dim0, int64_t dim1, dt_array *out,
                       dt_error *err) DT_MUST_CHECK;
dt_status dt_movedim(const char *op, const dt_array *x, int n, const int64_t *source, const int64_t *destination,
                     dt_array *out, dt_error *err) DT_MUST_CHECK;
/* ndims 0: every dimension of size 1 */
dt_status dt_squeeze(const char *op, const dt_array *x, int ndims, const int64_t *dims, dt_array *out,
                     dt_error *err) DT_MUST_CHECK;
dt_status dt_unsqueeze(const char *op, const dt_array *x, int64_t dim, dt_array *out, dt_error *err) DT_MUST_CHECK;
/* -1 keeps a size */
dt_status dt_expand(const char *op, const dt_array *x, int ndim, const int64_t *shape, dt_array *out,
                    dt_error *err) DT_MUST_CHECK;
dt_status dt_expand_as(const dt_array *input, const dt_array *other, dt_array *out, dt_error *err) DT_MUST_CHECK;
dt_status dt_view_as(const dt_array *input, const dt_array *other, dt_array *out, dt_error *err) DT_MUST_CHECK;
dt_status dt_narrow(const char *op, const dt_array *x, int64_t dim, int64_t start, int64_t length, dt_array *out,
                    dt_error *err) DT_MUST_CHECK;
/* Python's slice, already clipped by the caller: length elements from start, step > 0 */
dt_status dt_slice(const char *op, const dt_array *x, int64_t dim, int64_t start, int64_t step, int64_t length,
                   dt_array *out, dt_error *err) DT_MUST_CHECK;
/* Other elements of the memory of x, which the caller has found to lie there; offset in elements. */
dt_status dt_view_strided(const dt_array *x, int64_t offset, int ndim, const int64_t *shape, const int64_t *strides,
                          dt_array *out, dt_error *err) DT_MUST_CHECK;
/* The same bytes as elements of another dtype, without a gradient. */
dt_status dt_view_dtype(const char *op, const dt_array *x, dt_dtype dtype, dt_array *out, dt_error *err) DT_MUST_CHECK;
/* Drops dim; index may be negative */
dt_status dt_select(const char *op, const dt_array *x, int64_t dim, int64_t index, dt_array *out,
                    dt_error *err) DT_MUST_CHECK;
/* The elements whose index in dim2 is offset more than that in dim1, as the last dimension */
dt_status dt_diagonal(const char *op, const dt_array *x, int64_t offset, int64_t dim1, int64_t dim2, dt_array *out,
                      dt_error *err) DT_MUST_CHECK;

/* ---------------------------------------------------------------- walks: walk.h, walk.c */

void dt_walk_init(dt_walk *walk, int narrays, const dt_array *const *arrays);

/* ---------------------------------------------------------------- op codes and parameters */

typedef enum {
#define DT_UNARY(name, ...) DT_UNARY_##name,
#include "elementwise.def"
#undef DT_UNARY
    DT_NUNARY
} dt_unary_op;

typedef enum {
#define DT_BINARY(name, ...) DT_BINARY_##name,
#include "elementwise.def"
#undef DT_BINARY
    DT_NBINARY
} dt_binary_op;

typedef enum {
    DT_TERNARY_where, /* a is the bool condition */
#define DT_TERNARY(name, ...) DT_TERNARY_##name,
#include "elementwise.def"
#undef DT_TERNARY
    DT_NTERNARY
} dt_ternary_op;

typedef enum {
#define DT_REDUCE(name, ...) DT_REDUCE_##name,
#include "reductions.def"
#undef DT_REDUCE
    DT_NREDUCE
} dt_reduce_op;

typedef enum { DT_SCAN_SUM, DT_SCAN_PROD, DT_SCAN_LOGSUMEXP, DT_SCAN_MAX, DT_SCAN_MIN, DT_NSCANS } dt_scan_op;

typedef enum {
    DT_KIND_ARITH,
    DT_KIND_FLOAT,
    DT_KIND_ROUND,
    DT_KIND_BITS,
    DT_KIND_TEST,
    DT_KIND_FTEST,
    DT_KIND_COMPARE
} dt_elementwise_kind;
typedef enum {
    DT_REDUCE_KIND_SUM,
    DT_REDUCE_KIND_FLOAT,
    DT_REDUCE_KIND_SQUARES,
    DT_REDUCE_KIND_SAME,
    DT_REDUCE_KIND_ARG,
    DT_REDUCE_KIND_TEST
} dt_reduce_kind;

extern const char *const dt_unary_names[DT_NUNARY];
extern const char *const dt_binary_names[DT_NBINARY];
extern const char *const dt_reduce_names[DT_NREDUCE];
extern const uint8_t dt_reduce_kinds[DT_NREDUCE]; /* dt_reduce_kind */

/* Up to two parameters p0, p1 of an elementwise op, each as a float and as an integer (saturated). */
typedef struct {
    double f[2];
    int64_t i[2];
} dt_params;

/* What a product or a convolution does to its sums at the end: the elementwise op of that name, rounded once. */
typedef enum { DT_ACTIVATION_NONE, DT_ACTIVATION_RELU, DT_ACTIVATION_GELU, DT_ACTIVATION_GELU_TANH } dt_activation;

typedef struct {
    double alpha, beta;
    dt_activation activation;
} dt_matmul_params;

typedef struct {
    double scale;
    bool causal; /* query i sees the keys up to i */
} dt_attention_params;

typedef struct {
    int64_t stride[2], pad_before[2], pad_after[2], dilation[2], groups;
    dt_activation activation;
} dt_conv2d_params;

/* What is normalised together, and the dimensions that weight and bias have. */
typedef enum {
    DT_NORM_LAST,     /* the dimensions from lead on; the same */
    DT_NORM_CHANNELS, /* all dimensions but the second; the second */
    DT_NORM_GROUPS,   /* of (N, groups, channels, pixels) the last two; groups and channels */
} dt_norm_kind;

/* lead: the first dimension that is normalised, but for channels; centred: the mean is subtracted first */
typedef struct {
    dt_norm_kind kind;
    int lead;
    bool centred;
    double eps;
} dt_normalize_params;

/* size: of dimension dim of the result; back: the way of the gradient (ops/resample.h) */
typedef struct {
    int64_t dim, size;
    bool back;
} dt_resample_params;

typedef struct dt_remap_params dt_remap_params; /* ops/remap.h */

typedef enum { DT_CELL_LSTM, DT_CELL_GRU, DT_NCELLS } dt_cell;

typedef enum { DT_POOL_MAX, DT_POOL_AVG, DT_POOL_ADAPTIVE_AVG } dt_pool2d_mode;

typedef struct {
    dt_pool2d_mode mode;
    bool count_include_pad;
    int64_t kernel[2], stride[2], padding[2], dilation[2];
    int64_t divisor; /* 0: the size of the window */
} dt_pool2d_params;

typedef enum { DT_RANDOM_UNIFORM, DT_RANDOM_NORMAL, DT_RANDOM_INTEGERS, DT_RANDOM_PERMUTATION } dt_random_kind;

/* Philox4x32-10 (Salmon et al. 2011): element i of the result is a function of seed, offset and i alone, the same on
 * every device (philox.h). Each block of the generator, counted by offset, makes two or four neighbours. a, b: [a, b)
 * for uniform, mean and deviation for normal; low, high: [low, high) for integers. */
typedef struct {
    dt_random_kind kind;
    uint64_t seed, offset;
    double a, b;
    int64_t low, high;
} dt_random_params;

/* Which elements of an array are meant, by arrays of indices. A gather or scatter goes over one shape: an element of
 * x stands where x's strides say (0 along what the indices choose), and further by each index times its stride. */
typedef struct {
    const char *op;
    uint64_t place; /* of the call, for the front; 0: not known */
    int n;
    bool wraps;                    /* negative indices count from the end */
    bool any_order;                /* of writes: no element is meant twice, or by equal values */
    int first, ndim;               /* the dimensions along which indices change */
    dt_array array[DT_MAX_NDIM];   /* borrowed: int32 or int64, of the shape that is gone over */
    int64_t size[DT_MAX_NDIM];     /* an index is below it; not 0 */
    int64_t stride[DT_MAX_NDIM];   /* in elements of x */
    int8_t dimension[DT_MAX_NDIM]; /* of the user's array, for messages */
} dt_index;

/* A parameter, its gradient and its states: borrowed, of one shape, dense, in one order of their elements. Only the
 * gradient is not written. */
enum { DT_UPDATE_PARAM, DT_UPDATE_GRAD, DT_UPDATE_STATE, DT_UPDATE_ARRAYS = DT_UPDATE_STATE + DT_UPDATE_STATES };
typedef struct {
    const dt_array *array[DT_UPDATE_ARRAYS];
    int place;   /* of the parameter in the optimizer, for messages */
    int64_t end; /* how many elements this and the entries before it have */
} dt_update_entry;

/* Parameters that one rule changes: on one device, of one float dtype, that of the gradients. States have it too, or
 * all are float32. No element is written twice. */
typedef struct {
    dt_update_rule rule;
    int nstates, n;
    const dt_update_entry *entry;
    double number[DT_NNUMBERS];
} dt_update;

extern const char *const dt_update_names[DT_NUPDATE];
extern const char *const dt_update_states[DT_NUPDATE][DT_UPDATE_STATES]; /* NULL behind the last */
extern const char *const dt_number_names[DT_NNUMBERS];

#define DT_TRUE_CHUNK 4096 /* elements of a mask that are counted as one */

/* The elementwise op of an activation other than NONE. */
dt_unary_op dt_activation_op(dt_activation activation);

/* ---------------------------------------------------------------- the backend table */

typedef struct dt_backend {
    const char *name;
#define DT_SLOT(ret, name, args) ret(*name) args;
#include "slots.def"
#undef DT_SLOT
} dt_backend;

/* ---------------------------------------------------------------- checks: check.c (every sentence about a mismatch) */

/* All operands (absent ones skipped, immediates too) on one device; the same dtype. Two compares if all is well. */
dt_status dt_check_same_device(const char *op, const dt_operand *in, int n, dt_error *err) DT_MUST_CHECK;
dt_status dt_check_same_dtype(const char *op, const dt_operand *in, int n, dt_error *err) DT_MUST_CHECK;

#endif
