/* sort.c: rows in order: tiles of them in one launch, then a launch for each doubling of what is sorted, or for long
 * rows three for each byte of an element. Where few elements are wanted they are selected instead, long rows part by
 * part, then from what the parts gave. */
#include "../memory/memory.h"
#include "ops.h"
#include "selection.h"
#include "../streams/stream.h"

/* ---------------------------------------------------------------- a few of each row */

#define SELECT_FEWEST 512     /* elements of a row that are worth a block */
#define SELECT_PART 4096      /* and of a part of it */
#define SELECT_ROOM 512       /* items that are soon sorted */
#define SELECT_ONE_MOST 32768 /* elements of few rows that one block each goes over before a sort is done */
#define SELECT_MANY_ROWS 16

static bool
selects(int64_t rows, const k_sort_rows_args *args)
{
    if (args->k < 1 || args->k > K_SORTED_TILE || args->n < SELECT_FEWEST || args->n / 4 < args->k ||
        args->n > INT32_MAX) {
        return false;
    }
    return args->first == 0 || (args->k == 1 && (args->n <= SELECT_ONE_MOST || rows >= SELECT_MANY_ROWS));
}

static dt_status
select_rows(cuda_device *d, CUfunction function, int64_t words, k_sort_rows_args *args, dt_error *err)
{
    const int64_t rows = args->outer.numel, least = args->k > SELECT_PART / 8 ? 8 * args->k : SELECT_PART;
    cuda_temporary items[2];
    dt_status rc = DT_OK;
    items[0] = items[1] = CUDA_TEMPORARY_EMPTY;
    args->room = args->k > SELECT_ROOM / 2 ? K_SORTED_TILE : SELECT_ROOM;
    args->bits = cuda_log2(args->n, 31);
    for (int now = 0; rc == DT_OK && !args->last; now = 1 - now) {
        const int64_t parts = args->first > 0 ? 1 : cuda_fewer(CUDA_WANTED_BLOCKS / rows, args->n / least);
        args->chunk = parts > 1 ? (args->n - 1) / parts + 1 : args->n;
        args->splits = (args->n - 1) / args->chunk + 1;
        args->last = args->splits == 1;
        if (!args->last) {
            cuda_temporary_clear(&items[now]);
            items[now] = CUDA_TEMPORARY_EMPTY;
            rc = cuda_vector_init(&items[now], d, rows * args->splits * args->k * words, err);
            args->to = rc == DT_OK ? cuda_operand(&items[now].array) : args->to;
        }
        rc = rc == DT_OK ? cuda_launch_blocks(d, function, rows * args->splits, args, err) : rc;
        args->from = args->to;
        args->n = args->splits * args->k;
    }
    cuda_temporary_clear(&items[0]);
    cuda_temporary_clear(&items[1]);
    return rc;
}

/* ---------------------------------------------------------------- all of each row */

#define RADIX_FEWEST 8192 /* elements of a row, for each of their bytes, that merges are slower for than passes */

/* Places of digits that are the same in all of a row, as the upper ones of small whole numbers, are found first where
 * there are many digits. */
static dt_status
sort_digits(cuda_device *d, CUfunction function, int64_t itemsize, k_sort_rows_args *args, dt_error *err)
{
    const int64_t rows = args->outer.numel, tiles = (args->n - 1) / K_SORTED_TILE + 1;
    if (args->varies.address != 0) {
        DT_COUNT(launches, 1);
        DT_TRY(CUDA_CALL(d, cuMemsetD8Async,
                         ((CUdeviceptr)args->varies.address, 0, (size_t)args->varies.nbytes, cuda_stream(d))));
        args->stage = K_RADIX_VARIES;
        DT_TRY(cuda_launch_blocks(d, function, rows * tiles, args, err));
    }
    for (int64_t pass = 0; pass < itemsize; pass++) {
        args->bits = (int32_t)pass * K_RADIX_BITS;
        args->last = pass == itemsize - 1;
        for (args->stage = K_RADIX_COUNT; args->stage <= K_RADIX_MOVE; args->stage++) {
            const int64_t blocks = args->stage == K_RADIX_SUM ? rows << K_RADIX_BITS : rows * tiles;
            DT_TRY(cuda_launch_blocks(d, function, blocks, args, err));
        }
    }
    return DT_OK;
}

/* Passes over digits; items are none for elements of one byte. */
static dt_status
sort_by_digits(cuda_device *d, CUfunction function, int64_t itemsize, k_sort_rows_args *args,
               const cuda_temporary items[2], dt_error *err)
{
    const int64_t rows = args->outer.numel, tiles = (args->n - 1) / K_SORTED_TILE + 1;
    cuda_temporary counts = CUDA_TEMPORARY_EMPTY, varies = CUDA_TEMPORARY_EMPTY;
    dt_status rc = cuda_vector_init(&counts, d, (rows << K_RADIX_BITS) * (tiles + 1), err);
    rc = rc == DT_OK && itemsize == 8 ? cuda_vector_init(&varies, d, rows * 8, err) : rc;
    if (rc == DT_OK) {
        args->from = cuda_operand(&items[0].array);
        args->to = cuda_operand(&items[1].array);
        args->counts = cuda_operand(&counts.array);
        args->varies = cuda_operand(&varies.array);
        rc = sort_digits(d, function, itemsize, args, err);
    }
    cuda_temporary_clear(&counts);
    cuda_temporary_clear(&varies);
    return rc;
}

static dt_status
merge_tiles(cuda_device *d, CUfunction function, k_sort_rows_args *args, const cuda_temporary items[2], dt_error *err)
{
    const int64_t tiles = args->outer.numel * ((args->n - 1) / K_SORTED_TILE + 1);
    int now = 0;
    args->to = cuda_operand(&items[0].array);
    DT_TRY(cuda_launch_blocks(d, function, tiles, args, err));
    args->stage = K_SORTED_MERGE;
    for (args->run = K_SORTED_TILE; args->run < args->n; args->run *= 2) {
        args->from = cuda_operand(&items[now].array);
        args->to = cuda_operand(&items[1 - now].array);
        args->last = args->run >= args->n - args->run;
        DT_TRY(cuda_launch_blocks(d, function, tiles, args, err));
        now = 1 - now;
    }
    return DT_OK;
}

dt_status
cuda_sort(const dt_array *x, bool descending, int64_t first, dt_array *out, dt_array *indices, dt_error *err)
{
    cuda_device *d;
    CUfunction function;
    dt_walk outer;
    const dt_array *arrays[] = {x, out, indices};
    const int last = x->ndim - 1;
    const int64_t itemsize = (int64_t)dt_itemsize((dt_dtype)x->dtype);
    k_sort_rows_args args = {
        .n = x->shape[last],
        .first = first,
        .k = out->shape[last],
        .x_stride = x->strides[last],
        .out_stride = out->strides[last],
        .indices_stride = indices->strides[last],
        .x = cuda_operand(x),
        .out = cuda_operand(out),
        .indices = cuda_operand(indices),
        .descending = descending,
    };
    if (itemsize == 4 && args.n > UINT32_MAX) { /* an item has room for 32 bits of a position */
        return dt_fail(err, DT_ENOTIMPL, "row-too-long", "sort",
                       "rows of more than %lld elements of 4 bytes are not sorted on cuda", (long long)UINT32_MAX);
    }
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    cuda_walk_logical(&outer, 0, last, 3, arrays);
    cuda_index(&args.outer, &outer);
    const bool few = selects(outer.numel, &args), digits = !few && args.n >= RADIX_FEWEST * itemsize;
    const cuda_kernel kernel = few ? CUDA_KERNEL_select_rows : digits ? CUDA_KERNEL_radix_rows : CUDA_KERNEL_sort_rows;
    DT_TRY(cuda_function(d, CUDA_FAMILY_OTHER, (int)kernel, (dt_dtype)x->dtype, &function, err));
    if (few) {
        return select_rows(d, function, itemsize == 8 ? 2 : 1, &args, err);
    }
    while (args.n > INT64_C(1) << args.bits && 1 << args.bits < K_SORTED_TILE) {
        args.bits++;
    }
    if (args.n <= K_SORTED_TILE) {
        args.last = 1;
        return cuda_launch_blocks(d, function, (outer.numel - 1) / (K_SORTED_TILE >> args.bits) + 1, &args, err);
    }
    cuda_temporary items[2];
    items[0] = items[1] = CUDA_TEMPORARY_EMPTY;
    const int64_t words = outer.numel * args.n * (itemsize == 8 ? 2 : 1);
    dt_status rc = itemsize > 1 || !digits ? cuda_vector_init(&items[0], d, words, err) : DT_OK;
    rc = rc == DT_OK && (itemsize > 2 || !digits) ? cuda_vector_init(&items[1], d, words, err) : rc;
    if (rc == DT_OK) {
        rc = digits ? sort_by_digits(d, function, itemsize, &args, items, err)
                    : merge_tiles(d, function, &args, items, err);
    }
    cuda_temporary_clear(&items[0]);
    cuda_temporary_clear(&items[1]);
    return rc;
}
