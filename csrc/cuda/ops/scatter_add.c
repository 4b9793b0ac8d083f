/* scatter_add.c: sums at the places that indices choose. Where few elements can meet in a place a thread goes over all
 * that may go to its column of places, and where a block holds all places of some columns, it does so for those; else
 * places are sorted first, and the elements of each added up. */
#include "../launch/index_errors.h"
#include "ops.h"
#include "selection.h"
#include "../streams/stream.h"

#include "../../core/layout/layout.h"

#define FEW 128           /* elements that may meet in a place */
#define MANY_COLUMNS 8192 /* enough threads that sorting more keys than one of them goes over costs more */

/* ---------------------------------------------------------------- the order of dimensions */

/* The operands with some dimensions, from `columns` on, last. */
typedef struct {
    dt_array x, value;
    dt_index by;
    int columns;
    int64_t ncolumns, numel; /* entries of the dimensions before, and of the others */
} job;

static void
put_dim(dt_array *to, int n, const dt_array *from, int d)
{
    to->shape[n] = from->shape[d];
    to->strides[n] = from->strides[d];
}

static void
take_dim(job *to, const dt_array *x, const dt_array *value, const dt_index *by, int d)
{
    const int n = to->x.ndim++;
    put_dim(&to->x, n, x, d);
    put_dim(&to->value, n, value, d);
    for (int k = 0; k < by->n; k++) {
        put_dim(&to->by.array[k], n, &by->array[k], d);
    }
}

/* Last come the dimensions along which elements may meet, with `indexed` also all others that an index changes along.
 */
static void
job_init(job *j, const dt_array *x, const dt_array *value, const dt_index *by, bool indexed)
{
    j->x = *x;
    j->value = *value;
    j->by = *by;
    j->x.ndim = 0;
    j->ncolumns = j->numel = 1;
    for (int last = 0; last < 2; last++) {
        for (int d = 0; d < x->ndim; d++) {
            bool meets = x->strides[d] == 0 && x->shape[d] > 1;
            for (int k = 0; indexed && k < by->n; k++) {
                meets = meets || by->array[k].strides[d] != 0;
            }
            if (meets == (last == 1)) {
                take_dim(j, x, value, by, d);
                *(last ? &j->numel : &j->ncolumns) *= x->shape[d];
            }
        }
        j->columns = last ? j->columns : j->x.ndim;
    }
}

/* ---------------------------------------------------------------- places as numbers */

/* Places in units of some elements, so that they are small numbers. */
typedef struct {
    int64_t unit, reach; /* places are below reach, which stands for nowhere */
    int place_bits, position_bits;
} key_form;

static int64_t
common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static int
bits_for(int64_t n)
{
    int bits = 1;
    while (n >> bits != 0) {
        bits++;
    }
    return bits;
}

static key_form
key_form_of(const job *j)
{
    key_form form = {.reach = 1};
    int64_t strides[2 * DT_MAX_NDIM], sizes[2 * DT_MAX_NDIM];
    int n = 0;
    for (int d = j->columns; d < j->x.ndim; d++) {
        strides[n] = j->x.strides[d];
        sizes[n++] = j->x.shape[d];
    }
    for (int k = 0; k < j->by.n; k++) {
        strides[n] = j->by.stride[k];
        sizes[n++] = j->by.size[k];
    }
    for (int i = 0; i < n; i++) {
        form.unit = sizes[i] > 1 ? common_divisor(form.unit, strides[i]) : form.unit;
    }
    form.unit = form.unit == 0 ? 1 : form.unit;
    for (int i = 0; i < n; i++) {
        form.reach += sizes[i] > 1 ? (sizes[i] - 1) * (strides[i] / form.unit) : 0;
    }
    form.place_bits = bits_for(form.reach);
    form.position_bits = bits_for(j->numel - 1);
    return form;
}

/* ---------------------------------------------------------------- by blocks that hold the places of columns */

#define TOGETHER_WIDTH 32 /* columns of a block at most, a whole line of memory */
#define TOGETHER_LEAST_WIDTH 2
#define TOGETHER_RANGES 4  /* each goes over all values */
#define TOGETHER_BLOCKS 64 /* fewer do not use the device */
#define TOGETHER_PLACES 8  /* for each value at most: all are read and written */

/* Whether that fits; how, to args. */
static bool
adds_together(const job *j, k_scatter_add_args *args)
{
    const key_form form = key_form_of(j);
    const int64_t room = K_ADD_ROOM / (int64_t)dt_itemsize((dt_dtype)j->x.dtype);
    int64_t width = room / form.reach;
    width = width < TOGETHER_LEAST_WIDTH ? TOGETHER_LEAST_WIDTH : width > TOGETHER_WIDTH ? TOGETHER_WIDTH : width;
    if (form.reach / TOGETHER_PLACES > j->numel || j->numel > K_ADD_MOST / width) {
        return false;
    }
    while (width > TOGETHER_LEAST_WIDTH && j->ncolumns / width < CUDA_WANTED_BLOCKS / 2) {
        width /= 2;
    }
    *args = (k_scatter_add_args){
        .length = j->numel,
        .ncolumns = j->ncolumns,
        .unit = form.unit,
        .nowhere = form.reach,
        .width = (int32_t)width,
        .by_width = cuda_divisor(width),
        .range = cuda_fewer(room / width, form.reach),
    };
    const int64_t ranges = (form.reach - 1) / args->range + 1;
    return ranges <= TOGETHER_RANGES && j->ncolumns / width * ranges >= TOGETHER_BLOCKS;
}

/* A thread for each column, or with together blocks that hold columns. */
static dt_status
add_columns(cuda_device *d, const job *j, bool together, k_scatter_add_args *args, dt_error *err)
{
    CUfunction function;
    cuda_layout l;
    const cuda_kernel kernel = together ? CUDA_KERNEL_add_together : CUDA_KERNEL_scatter_add;
    DT_TRY(cuda_function(d, CUDA_FAMILY_OTHER, (int)kernel, (dt_dtype)j->value.dtype, &function, err));
    cuda_layout_init(&l, &j->x, &j->value, &j->by, 0, j->x.ndim);
    cuda_describe_selection(&l, &j->by, 1, &args->by);
    args->x = cuda_whole_operand(&j->x, &j->by);
    args->value = cuda_operand(&j->value);
    for (int k = 0; together && k < j->by.n; k++) {
        args->by.selector[k].stride /= args->unit;
    }
    DT_TRY(cuda_late_begin(d, &j->by, &args->by, err));
    if (together) {
        const int64_t groups = (j->ncolumns - 1) / args->width + 1, ranges = (args->nowhere - 1) / args->range + 1;
        return cuda_launch_blocks(d, function, groups * ranges, args, err);
    }
    return cuda_launch(d, function, j->ncolumns, args, err);
}

/* ---------------------------------------------------------------- by sorted places */

/* Writes the place of each position, or -1, to places. */
static dt_status
find_places(cuda_device *d, const job *j, const key_form *form, cuda_temporary *places, dt_error *err)
{
    CUfunction function;
    cuda_layout l;
    k_places_args args = {.stage = K_PLACES_FIND, .places = cuda_operand(&places->array)};
    DT_TRY(cuda_function(d, CUDA_FAMILY_OTHER, CUDA_KERNEL_places, DT_INT64, &function, err));
    cuda_layout_init(&l, &j->x, &j->x, &j->by, j->columns, j->x.ndim);
    for (int i = 0; i < l.ndim; i++) {
        l.strides[0][i] /= form->unit;
    }
    cuda_describe_selection(&l, &j->by, 1, &args.by);
    for (int k = 0; k < j->by.n; k++) {
        args.by.selector[k].stride /= form->unit;
    }
    args.table = args.kept = args.places;
    DT_TRY(cuda_late_begin(d, &j->by, &args.by, err));
    return cuda_launch(d, function, j->numel, &args, err);
}

/* Sorts places; sorted becomes one of both, where the keys end up. */
static dt_status
sort_keys(cuda_device *d, const key_form *form, int64_t n, const cuda_temporary *places, const cuda_temporary *spare,
          const cuda_temporary *counts, const cuda_temporary **sorted, dt_error *err)
{
    const cuda_temporary *from = places, *to = spare;
    CUfunction function;
    k_sort_args args = {.numel = n, .bits = form->position_bits, .nowhere = form->reach, .first = 1};
    DT_TRY(cuda_function(d, CUDA_FAMILY_OTHER, CUDA_KERNEL_sort, DT_INT64, &function, err));
    args.counts = cuda_operand(&counts->array);
    for (int bit = 0; bit < form->place_bits; bit += K_RADIX_BITS) {
        args.shift = form->position_bits + bit;
        args.keys = cuda_operand(&from->array);
        args.sorted = cuda_operand(&to->array);
        for (args.stage = K_RADIX_COUNT; args.stage <= K_RADIX_MOVE; args.stage++) {
            const int64_t blocks = args.stage == K_RADIX_SUM ? 1 << K_RADIX_BITS : (n - 1) / K_SORTED_TILE + 1;
            DT_TRY(cuda_launch_blocks(d, function, blocks, &args, err));
        }
        args.first = 0;
        *sorted = to;
        to = from;
        from = *sorted;
    }
    return DT_OK;
}

/* Keys by columns: x, value, and the number of the key. */
static void
describe_columns(const job *j, k_index *columns)
{
    dt_walk walk = {.narrays = 3, .numel = j->numel * j->ncolumns};
    walk.ndim = dt_add_dim(0, walk.shape, 3, walk.strides, j->numel, (const int64_t[]){0, 0, 1});
    for (int i = 0; i < j->columns; i++) {
        const int64_t stride[] = {j->x.strides[i], j->value.strides[i], 0};
        walk.ndim = dt_add_dim(walk.ndim, walk.shape, 3, walk.strides, j->x.shape[i], stride);
    }
    cuda_index(columns, &walk);
}

static dt_status
add_sorted(cuda_device *d, const job *j, const key_form *form, const cuda_temporary *keys, const cuda_temporary *sums,
           dt_error *err)
{
    CUfunction function;
    cuda_layout l;
    k_scatter_add_args args = {
        .stage = K_ADD_CHUNKS,
        .numel = j->numel,
        .ncolumns = j->ncolumns,
        .unit = form->unit,
        .nowhere = form->reach,
        .bits = form->position_bits,
    };
    DT_TRY(cuda_function(d, CUDA_FAMILY_OTHER, CUDA_KERNEL_scatter_add, (dt_dtype)j->value.dtype, &function, err));
    cuda_layout_init(&l, &j->x, &j->value, &j->by, j->columns, j->x.ndim);
    cuda_describe_selection(&l, &j->by, 1, &args.by);
    describe_columns(j, &args.columns);
    args.x = cuda_whole_operand(&j->x, &j->by);
    args.value = cuda_operand(&j->value);
    args.keys = cuda_operand(&keys->array);
    args.sums = cuda_operand(&sums->array);
    DT_TRY(cuda_launch(d, function, args.columns.numel, &args, err));
    args.stage = K_ADD_REST;
    const int64_t rest = (j->numel - 1) / K_ADD_CHUNK * j->ncolumns;
    return rest == 0 ? DT_OK : cuda_launch(d, function, rest, &args, err);
}

static dt_status
add_by_places(cuda_device *d, const job *j, const key_form *form, dt_error *err)
{
    const cuda_temporary *sorted = NULL;
    cuda_temporary places = CUDA_TEMPORARY_EMPTY, spare = CUDA_TEMPORARY_EMPTY;
    cuda_temporary counts = CUDA_TEMPORARY_EMPTY, sums = CUDA_TEMPORARY_EMPTY;
    const int64_t tiles = (j->numel - 1) / K_SORTED_TILE + 1, chunks = (j->numel - 1) / K_ADD_CHUNK + 1;
    const dt_array partial = {.ndim = 2, .shape = {chunks, j->ncolumns}};
    dt_status rc = cuda_vector_init(&places, d, j->numel, err);
    rc = rc == DT_OK ? cuda_vector_init(&spare, d, j->numel, err) : rc;
    rc = rc == DT_OK ? cuda_vector_init(&counts, d, (tiles + 1) << K_RADIX_BITS, err) : rc;
    rc = rc == DT_OK ? cuda_temporary_init(&sums, d, &partial, (dt_dtype)j->x.dtype, err) : rc;
    rc = rc == DT_OK ? find_places(d, j, form, &places, err) : rc;
    rc = rc == DT_OK ? sort_keys(d, form, j->numel, &places, &spare, &counts, &sorted, err) : rc;
    rc = rc == DT_OK ? add_sorted(d, j, form, sorted, &sums, err) : rc;
    cuda_temporary_clear(&places);
    cuda_temporary_clear(&spare);
    cuda_temporary_clear(&counts);
    cuda_temporary_clear(&sums);
    return rc;
}

dt_status
cuda_scatter_add(const dt_array *value, const dt_index *index, dt_array *x, dt_error *err)
{
    cuda_device *d;
    job by_columns, by_places;
    DT_TRY(cuda_enter(x->storage->device.index, &d, err));
    job_init(&by_columns, x, value, index, false);
    job_init(&by_places, x, value, index, true);
    const bool differs = by_places.numel > by_columns.numel; /* from column to column */
    k_scatter_add_args args;
    if (by_columns.numel > FEW && differs && adds_together(&by_columns, &args)) {
        return add_columns(d, &by_columns, true, &args, err);
    }
    const key_form form = key_form_of(&by_places);
    const bool sorting_costs_more = by_columns.ncolumns >= MANY_COLUMNS && differs;
    if (by_columns.numel <= FEW || sorting_costs_more || form.place_bits + form.position_bits > 63) {
        args =
            (k_scatter_add_args){.stage = K_ADD_COLUMNS, .length = by_columns.numel, .ncolumns = by_columns.ncolumns};
        return add_columns(d, &by_columns, false, &args, err);
    }
    return add_by_places(d, &by_places, &form, err);
}
