/* args.h: what a launcher hands to a kernel. Read by csrc/cuda and by the kernels; plain data, passed by value. */
#ifndef DT_KERNEL_ARGS_H
#define DT_KERNEL_ARGS_H

#include "../core/ops/update.h"
#include "../core/layout/walk.h"

#define K_VECTOR_BYTES 16
/* Vectors that a thread has in flight: few where an element costs much, or where a vector holds many elements. */
#define K_DEPTH(costly, itemsize, ninputs)                                                                             \
    ((costly) || ((itemsize) == 8 && (ninputs) == 3) ? 1                                                               \
     : (itemsize) >= 4 && (ninputs) == 1             ? 4                                                               \
     : (itemsize) >= 2 || (ninputs) == 1             ? 2                                                               \
                                                     : 1)

/* An input or a result: its device address and how many bytes from there it may touch; or, with address 0, the
 * immediate whose bytes stand in bits. */
typedef struct {
    uint64_t address;
    uint64_t nbytes;
    uint64_t bits;
} k_operand;

/* Division of a number below 2**31: (n + high word of n * multiplier) >> shift (Granlund and Montgomery 1994). */
typedef struct {
    uint32_t multiplier, shift;
} k_divisor;

/* Where entry i of up to four arrays stands. */
typedef struct {
    int64_t numel;
    int32_t ndim;
    int32_t wide; /* entries or offsets need more than 31 bits */
    k_divisor divisor[DT_MAX_NDIM];
    int64_t shape[DT_MAX_NDIM];
    int64_t strides[4][DT_MAX_NDIM]; /* elements */
} k_index;

/* Elementwise ops, casts and fills: array 0 of the index is the result. Where vectors are allowed, each array has along
 * the last dimension stride 1 and is aligned, or is the same element (its bit of splat is set). */
typedef struct {
    k_index index; /* not wide when it has more than one dimension */
    int64_t tiles; /* of K_DEPTH * DT_MAX_THREADS vectors at the front of the only dimension */
    int32_t unit;  /* elements an access after those: 1, or a whole vector */
    uint32_t splat;
    k_operand array[4];
    double f[2]; /* parameters p0 and p1 */
    int64_t i[2];
} k_elementwise_args;

#define K_TILE_ROWS 32
#define K_TILE_COLUMNS 64
#define K_TILE_LEAST 16 /* rows and columns that are worth tiles */

/* out[r * out_stride + c] = x[r + c * x_stride], for each entry of outer (array 0 is out, array 1 is x). */
typedef struct {
    k_index outer;
    k_operand x, out;
    int64_t rows, columns, x_stride, out_stride;
    int64_t tiles, across; /* of a matrix, and of those side by side: together below 2**31 */
    k_divisor by_tiles, by_across;
} k_transpose_args;

enum { K_STAGE_WHOLE, K_STAGE_PARTIAL, K_STAGE_COMBINE };

/* How a block of DT_MAX_THREADS is laid over rows: 2**lanes threads a row. Neighbours are lanes of a row, which reads a
 * contiguous row in order, or with across the rows, which reads neighbouring columns. */
typedef struct {
    int32_t lanes;
    int32_t across;
    int32_t vector; /* rows are contiguous and aligned */
} k_rows;

#define K_REDUCE_PART_BYTES 32 /* of what a split comes to, at most */

/* One result per entry of outer, over the entries of inner. A reduction that is cut into splits of chunk entries leaves
 * what it has per result and split in scratch, which a second launch combines. */
typedef struct {
    k_index outer, inner; /* array 0 is x, in logical order */
    k_operand x, out, scratch;
    k_rows rows;
    int32_t stage;
    int32_t wide; /* results are accumulators: int64 or float64 */
    int64_t splits, chunk;
    double count; /* of variance: what sums of squares are divided by, and whether the root is wanted */
    int32_t root;
} k_reduce_args;

#define K_SOFTMAX_KEEP 64 /* bytes that a thread keeps of its row */

/* Array 0 of outer is x, array 1 the result. */
typedef struct {
    k_index outer;
    int64_t n, x_stride, out_stride;
    k_operand x, out;
    k_rows rows;
    int32_t kept; /* each thread keeps its part of a row, so that x is read once */
} k_softmax_args;

/* softmax.x is the result of softmax; arrays of its outer index are out, that result and the gradient. */
typedef struct {
    k_softmax_args softmax;
    k_operand grad;
    int64_t grad_stride;
    int32_t log;
} k_softmax_grad_args;

#define K_NORMALIZE_KEEP 64 /* bytes that a thread keeps of its row */

/* out = (x - mean) / sqrt(variance + eps) * weight + bias for each of rows of n, which lie one after the other; without
 * centred the mean counts as 0. 2**lanes threads a row. pixels 0: weight and bias go along the row; else a row has each
 * channels of so many pixels, and weight and bias the channels of so many groups. Their address is 0 where there are
 * none. */
typedef struct {
    k_operand x, weight, bias, out;
    int64_t rows, n, groups, each, pixels;
    double eps;
    int32_t lanes, centred;
    int32_t kept;   /* each thread keeps its part of a row, so that x is read once */
    int32_t vector; /* rows, weight and bias are whole vectors, aligned */
    int32_t narrow; /* n fits 32 bits */
} k_normalize_args;

/* normalize.out is the gradient of x, grad what came; weights go along the row. stats, of address 0 or rows of two
 * accumulators, gets mean and 1 / sqrt(variance + eps). */
typedef struct {
    k_normalize_args normalize;
    k_operand grad, stats;
} k_normalize_grad_args;

/* out (float64): for each chunk of rows the sums over them of grad * normalised x, then of grad, for each of n columns.
 */
typedef struct {
    k_operand x, grad, stats, out;
    int64_t rows, n, chunk;
} k_normalize_sums_args;

#define K_MOMENTS_BYTES 32 /* of a part of a channel */

/* Batch norm by the numbers of the batch: each channel has n elements, pixels of them side by side, and is cut into
 * splits of chunk elements, no more than DT_MAX_THREADS. PARTIAL leaves what they come to in parts, from which COMBINE
 * goes on; WHOLE has one split. stats, of address 0 or two numbers of each channel: mean, and variance by n - 1. */
typedef struct {
    k_operand x, weight, bias, out, stats, parts;
    int64_t channels, pixels, n, splits, chunk;
    k_divisor by_pixels;
    double eps;
    int32_t stage;
    int32_t vector; /* pixels are whole vectors, aligned */
    int32_t narrow; /* n fits 32 bits */
} k_channels_args;

/* channels.out is the gradient of x, channels.stats those of weight and bias, grad what came; products is as parts, two
 * float64. Where channels.parts is 0, the block measures its chunk, which is the whole channel. */
typedef struct {
    k_channels_args channels;
    k_operand grad, products;
} k_channels_grad_args;

/* Batch norm by numbers that are known: element i of x, and of out, in memory is of channel i / inner % channels. */
typedef struct {
    k_operand x, mean, var, weight, bias, out;
    int64_t numel, channels, inner;
    k_divisor by_inner, by_channels;
    double eps;
    int32_t vector; /* all packs are whole and aligned */
    int32_t narrow;
} k_batch_norm_args;

/* own: the product with h, x: that with the input, (n, gates * size), state (n, size), grad (n, size), of an LSTM (2,
 * n, size); rows of neighbours, so many elements apart. */
typedef struct {
    k_operand own, x, state, grad, out;
    int64_t n, size, own_stride, x_stride, state_stride, grad_stride, grad_next;
} k_cell_args;

/* All steps of a layer: a block takes up to K_STEPS_ROWS rows, of which both states and the gates are in shared memory.
 * A thread has K_STEPS_WIDTH columns of a product and divides its depth with others. */
enum { K_STEPS_ROWS = 4, K_STEPS_WIDTH = 4, K_STEPS_STATES = 5120 /* bytes of numbers to compute in */ };
#define K_STEPS_SLICES(columns)                                                                                        \
    ((columns) < DT_MAX_THREADS * K_STEPS_WIDTH ? DT_MAX_THREADS * K_STEPS_WIDTH / (columns) : 1)

/* weight (size, gates * size), contiguous. product_first: where the first step stands, as others may stand before it.
 * own, cells and state may be missing; of an LSTM cells are the c of each step, cells_step apart. */
typedef struct {
    k_operand product, weight, bias, h, state, own, cells, out;
    int64_t steps, n, size, product_first, product_step, product_row, bias_stride, h_row, h_column, state_row;
    int64_t cells_step, out_step;
    int32_t rows;
} k_cell_steps_args;

/* weight (gates * size, size), contiguous; own, grad, begin and the rows of states and gates likewise. */
typedef struct {
    k_operand own, product, weight, state, grad, gates, begin;
    int64_t steps, n, size, product_first, product_step, product_row, state_step, gates_first, gates_step, gates_next;
    int64_t begin_next;
    int32_t rows;
} k_cell_steps_grad_args;

#define K_SCAN_EACH 8        /* elements of a lane, one after another */
#define K_SCAN_PART_BYTES 32 /* of what a split comes to, at most */

/* Running sums and the like along rows of n; arrays of outer are x, out and indices. A row may be cut into splits of
 * chunk elements: PARTIAL leaves what each comes to in scratch, from which WHOLE goes on. */
typedef struct {
    k_index outer;
    int64_t n, x_stride, out_stride, indices_stride;
    k_operand x, out, indices, scratch;
    k_rows rows;
    int32_t stage, reverse;
    int64_t splits, chunk;
} k_scan_args;

#define K_SORTED_TILE 2048 /* items that a block sorts at a time */

#define K_RADIX_BITS 8 /* of a digit */

enum { K_SORTED_TILES, K_SORTED_MERGE };
enum { K_RADIX_COUNT, K_RADIX_SUM, K_RADIX_MOVE, K_RADIX_VARIES };

/* Rows of n in order, k of each from `first` on; arrays of outer are x, out and indices. An item is an element as a
 * number, with its position: 8 bytes, or 16 for elements of 8. TILES sorts tiles of the rows, or, where 2**bits items
 * are less than a tile, several rows side by side, each with room for so many; MERGE makes runs of 2 * run items of
 * runs of run. The last launch writes results, not items.
 *
 * k_select_rows takes the first k, or from `first` on one, of each of splits parts of a row, chunk items long; items
 * are made of x, or read where from has an address. It searches, bits being those of a position, until no more than
 * `room` of them can be it, which are sorted.
 *
 * k_radix_rows sorts by the digit from bit `bits` of a key on: COUNT writes how many of each tile have each digit, SUM
 * makes sums over tiles of it, MOVE writes items, or in the last pass results. Items go from x to `from`, then to and
 * fro between that and `to`. Where varies has an address, VARIES comes first and writes 1 there for each digit of a
 * row, 8 of them, that is not the same in all its keys; but for the last one the others are passed over. */
typedef struct {
    k_index outer;
    int64_t n, first, k, x_stride, out_stride, indices_stride;
    k_operand x, out, indices, from, to, counts, varies;
    int64_t run, splits, chunk;
    int32_t bits, stage, descending, last, room;
} k_sort_rows_args;

typedef struct {
    k_operand x, out, indices; /* indices: address 0 when not wanted */
    int64_t numel, sizes[4];   /* of out in its order in memory: N, C, P, Q or N, P, Q, C */
    k_divisor divisor[4];
    int64_t height, width;
    int64_t x_strides[4], out_strides[4], indices_strides[4];
    int64_t kernel[2], stride[2], padding[2], dilation[2];
    int64_t divide_by; /* 0: the size of the window */
    int32_t wide, channels_last;
    int32_t count_include_pad;
    int32_t adaptive;
    int32_t few; /* windows of at most K_POOL_FEW rows and columns, in 32 bits */
} k_pool2d_args;

#define K_POOL_FEW 3
#define K_POOL_WINDOWS 2048 /* that a block keeps */

/* pool.out is the gradient of x, pool.sizes those of x; grad (N, C, P, Q) is what came. By rows: blocks take so many of
 * an image each, which K_POOL_WINDOWS windows reach over at most. */
typedef struct {
    k_pool2d_args pool;
    k_operand grad;
    int64_t results[2], grad_strides[4]; /* results: P, Q */
    int64_t rows;
    k_divisor by_columns, by_stride[2]; /* Q */
} k_max_pool2d_grad_args;

/* Which place of a dimension of the input a place of the result shows: its own, the last first, that of padding, of an
 * image of another size, or a mean of two. */
enum {
    K_REMAP_SAME,
    K_REMAP_FLIP,
    K_REMAP_REFLECT,
    K_REMAP_REPLICATE,
    K_REMAP_CIRCULAR,
    K_REMAP_NEAREST,
    K_REMAP_LINEAR
};

/* n: of the input. before: places of padding, which come round in [first, first + period). An image of another size has
 * place (i + shift) * step, for means - shift. */
typedef struct {
    int32_t kind;
    float shift;
    int64_t n, before, first, period;
    double step;
} k_remap_dim;

/* x (outer, rows, columns, inner), out of the sizes, both contiguous. */
typedef struct {
    k_operand x, out;
    int64_t numel, sizes[4]; /* of out */
    k_divisor divisor[4];
    k_remap_dim dim[2];
    int32_t columns_first;
    int32_t wide, vector;
} k_remap_args;

enum { K_ACTIVATION_NONE, K_ACTIVATION_RELU, K_ACTIVATION_GELU, K_ACTIVATION_GELU_TANH };

#define K_STRIP 4 /* results below each other, of one thread: they share rows of the image */
/* Channels of a vector: 16 bytes, or 8 for the half types, whose sums would not fit the registers. */
#define K_DEPTHWISE_WIDTH(itemsize) ((itemsize) == 8 ? 2 : 4)
#define K_DEPTHWISE_SHARED 25600 /* bytes for the filters of a block */
/* Those with a size: dilation 1, and stride 1 unless said. */
enum { K_DEPTHWISE_ANY, K_DEPTHWISE_3X3, K_DEPTHWISE_3X3_STEP_2, K_DEPTHWISE_5X5 };

/* x (N, C, H, W), weight (C, R, S), out (N, C, P, Q): shape has N, P, Q. 2**lanes threads of a block take neighbouring
 * channels. Of the strips, N * rows * Q with rows of K_STRIP results, a block takes share. */
typedef struct {
    k_operand x, weight, bias, out; /* bias: address 0 when there is none */
    int64_t channels, shape[3], height, width, rows, strips, share;
    int64_t x_strides[4], out_strides[4], weight_strides[3], bias_stride;
    int64_t kernel[2], stride[2], padding[2], dilation[2];
    k_divisor divisor[2]; /* of rows and Q */
    int32_t form, lanes, wide, activation;
} k_depthwise_args;

#define K_SKINNY_SUMS                                                                                                  \
    128                  /* bytes of the sums of a thread: 8 rows of float32 or 4 of float16 by a vector, or 8 by 4    \
                          */
#define K_SKINNY_AHEAD 4 /* rows of b in flight */
#define K_SMALL_SHARED 16384

/* out (m, n) = activation(alpha * a (m, k) @ b (k, n) + beta * out + bias), for each entry of batch (arrays out, a, b).
 * b is contiguous and aligned along k, or with across along n; a_vector: a is along k too. */
typedef struct {
    k_index batch;
    k_operand a, b, bias, out; /* bias: address 0 when there is none */
    int64_t m, n, k;
    int64_t a_strides[2], b_strides[2], bias_strides[2], out_strides[2];
    double alpha, beta;
    int32_t lanes, across, a_vector, activation;
    int32_t together;                         /* products that a block of k_small_matmul takes at once */
    k_divisor by_pair, by_result, by_k, by_n; /* for it: of both matrices' elements, the results, k and n */
} k_skinny_args;

#define K_ATTENTION_MOST 128     /* numbers of a query, a key or a value */
#define K_ATTENTION_LEAST 16     /* queries of a head that are worth a block */
#define K_ATTENTION_SUMS 16      /* scores of a thread */
#define K_ATTENTION_PAD 4        /* after a row in shared memory, so that neighbouring rows do not meet in its banks */
#define K_ATTENTION_SHARED 11776 /* numbers, as the largest form needs */

enum { K_MASK_NONE, K_MASK_BOOL, K_MASK_NUMBERS };

/* out (queries, columns) = softmax(query @ key^T * scale + mask) @ value, for each entry of heads (arrays out, query,
 * mask); groups (arrays key, value) has one entry for `group` of those. */
typedef struct {
    k_index heads, groups;
    k_operand query, key, value, mask, out;
    int64_t queries, keys, depth, columns, group;
    int64_t query_strides[2], key_strides[2], value_strides[2], mask_strides[2], out_strides[2];
    float scale;
    int32_t causal, mask_kind;
} k_attention_args;

#define K_WEIGH_PACKS 4                   /* of four scores, that a thread has in flight */
#define K_WEIGH_CHUNK (4 * K_WEIGH_PACKS) /* scores */
#define K_WEIGH_FEWEST_LANES 3
#define K_WEIGH_MOST_LANES 8

/* Rows of scores, float32 and `pitch` apart, become weights of the dtype at the front of their places: unit *
 * softmax(scores + mask). Row r is query first + r % queries of entry head + r / queries of heads (array 0: mask).
 * 2**lanes threads a row; kept: no more than K_WEIGH_CHUNK scores for each. */
typedef struct {
    k_index heads;
    k_operand scores, mask;
    int64_t rows, queries, pitch, head, first;
    int64_t mask_strides[2];
    k_divisor by_queries;
    float unit;
    int32_t keys, causal, mask_kind, lanes, kept;
} k_weigh_args;

/* sums[part] = the sum of x * y over the part's chunk of k, for each of splits. Sums are accumulators: float32 or
 * float64. */
typedef struct {
    k_operand x, y, sums;
    int64_t k, chunk, splits, x_stride, y_stride;
    int32_t vector; /* both are contiguous and aligned */
} k_dot_args;

/* Results that a thread of a random kernel computes and writes at once, where the result is flat and aligned. */
#define K_RANDOM_WIDTH(itemsize) ((itemsize) == 8 ? 2 : 4)

/* Element i of out, in logical order; unit of them at once. */
typedef struct {
    k_index index;
    k_operand out;
    int64_t unit;
    double start, step;
    int64_t first, increment;
} k_arange_args;

/* Array 0 is the result, array 1 is x; every dimension is kept, the last two are the matrix. */
typedef struct {
    k_index index;
    k_operand out, x;
    int64_t diagonal;
    int32_t upper;
} k_tri_args;

typedef struct {
    k_index index;
    k_operand out;
    int64_t unit;
    uint64_t seed, offset;
    double a, b;
    int64_t low, high;
} k_random_args;

/* Elements that a thread of dropout reads and writes at once: what the words of one block, or two, are for. */
#define K_DROPOUT_WIDTH(itemsize) ((itemsize) == 2 ? 8 : 4)

/* Array 0 is the result, array 1 is x. unit as above. An element stays, times factor, where its number is not below
 * least. */
typedef struct {
    k_index index;
    k_operand out, x;
    int64_t unit;
    uint64_t seed, offset;
    double factor;
    float least;
} k_dropout_args;

#define K_REPORTS 256

/* What kernels tell the host, in page-locked memory: written only where something is wrong. */
typedef struct {
    uint64_t any;
    struct {
        uint64_t launch[DT_MAX_NDIM]; /* by selector; 0: nothing wrong */
        int64_t index[DT_MAX_NDIM];
    } entry[K_REPORTS]; /* of launch n: n % K_REPORTS */
} k_reports;

/* An array of indices: int64, or int32. */
typedef struct {
    k_operand array;
    int64_t strides[DT_MAX_NDIM];
    int64_t size, stride; /* an index is below size, and counts for stride elements */
    int32_t wide;         /* int64 */
} k_selector;

/* Up to DT_MAX_NDIM arrays of indices over one shape. */
typedef struct {
    k_index index; /* arrays 0 and 1 are the kernel's, array 2 is that of the first selector */
    k_selector selector[DT_MAX_NDIM];
    int32_t n;
    int32_t wraps;    /* negative indices count from the end */
    uint64_t reports; /* address of k_reports; 0: a wrong index is passed over in silence */
    uint64_t launch;
} k_selection;

#define K_GATHER_DEPTH 4 /* accesses of a thread in flight */

/* out = x at the places that selection says, or with put: out there = x, which may be an immediate. Array 0 of the
 * index is out, array 1 is x. */
typedef struct {
    k_selection by;
    k_operand out, x;
    int32_t put;
} k_gather_args;

enum { K_PLACES_FIND, K_PLACES_CLAIM, K_PLACES_KEEP };

/* Of positions that mean one place the last one shall count. FIND writes the place of each position, or -1, to places;
 * CLAIM enters the highest position + 1 of each place into table, which is zero and has mask + 1 entries; KEEP writes
 * to kept the places whose position it was, -1 for the others. */
typedef struct {
    k_selection by;
    k_operand places, kept, table;
    uint64_t mask;
    int32_t stage;
} k_places_args;

/* A pass of a stable sort, by the K_RADIX_BITS bits from shift on, in stages as those of k_radix_rows. In the first
 * pass keys are places, or -1 for nowhere, and get their position as the lowest bits. */
typedef struct {
    k_operand keys, sorted, counts;
    int64_t numel, nowhere;
    int32_t shift, bits; /* bits of a position */
    int32_t first;
    int32_t stage;
} k_sort_args;

#define K_ADD_CHUNK 128 /* keys that are added up one after the other */

#define K_ADD_ROOM 32768  /* bytes of sums of a block */
#define K_ADD_CLAIMS 2048 /* places in its table of who adds next */
/* The most values of a block: what threads claim is a number of 24 bits that grows with them. */
#define K_ADD_MOST (1 << 23)

enum { K_ADD_COLUMNS, K_ADD_CHUNKS, K_ADD_REST };

/* x += value where the selection says; x has the type that value is computed in. With COLUMNS a thread takes a column
 * of x and looks at all that may go there, in order: the last of the entries of the selection, so many (length) for
 * each. In k_add_together a block does so for `width` columns, and for `range` of the places of a column, which it
 * holds. Else keys are the sorted places, in units of some elements, with the position in the selection in the lowest
 * bits; nowhere is the place of what is out of range. CHUNKS adds up the keys of one place, chunk by chunk: where they
 * begin to x, and in a chunk that they go on to in sums; REST adds those. Array 0 of an index is x, array 1 is value.
 */
typedef struct {
    k_selection by;
    k_index columns; /* CHUNKS and REST: keys by columns; array 2 is the number of the key */
    k_operand x, value, keys, sums;
    int64_t length, ncolumns, numel, unit, nowhere; /* nowhere is also how many places there are */
    int64_t range;
    k_divisor by_width;
    int32_t bits, width;
    int32_t stage;
} k_scatter_add_args;

#define K_TRUE_LANES 256
#define K_TRUE_EACH 16  /* elements of a lane: together a chunk (DT_TRUE_CHUNK) */
#define K_TRUE_CHUNKS 8 /* that a block counts at a time */

enum { K_TRUE_COUNT, K_TRUE_SUM, K_TRUE_FIND };

/* COUNT writes the number of True elements of each chunk to before, SUM makes sums of it that go up to the chunk, FIND
 * writes their places to out: array 0 of index is the weights, over the shape of the mask. */
typedef struct {
    k_index index;
    k_operand mask, before, out;
    int64_t numel, chunks, rows;
    int32_t columns; /* 0: sums of coordinates times weights */
    int32_t aligned; /* mask, to 16 bytes */
    int32_t stage;
} k_true_args;

#define K_JOIN_PARTS 64   /* as many as the arguments of a launch have room for */
#define K_JOIN_CHUNK 1024 /* accesses of a block at a time */

/* So many units, in rows of `length`, that begin `offset` units after those of out; how many chunks it and the parts
 * before it have. */
typedef struct {
    uint64_t address;
    int64_t numel, length, offset, chunks;
    k_divisor by_length;
} k_join_part;

/* Parts beside each other: rows of out are pitch units apart. */
typedef struct {
    k_operand out;
    int64_t pitch;
    int32_t n, wide; /* wide: a part has more units than 31 bits count */
    k_join_part part[K_JOIN_PARTS];
} k_join_args;

#define K_UPDATE_ENTRIES 64 /* as many as the arguments of a launch have room for */
#define K_UPDATE_CHUNK 2048 /* elements that a block takes at a time */

/* Device addresses of a parameter, its gradient and its states; how many chunks it and the entries before it have. */
typedef struct {
    uint64_t address[2 + DT_UPDATE_STATES];
    int64_t numel, chunks;
} k_update_entry;

typedef struct {
    double number[DT_NNUMBERS];
    int32_t rule, n;
    int32_t wide; /* states are float32 whatever the parameters are */
    k_update_entry entry[K_UPDATE_ENTRIES];
} k_update_args;

#endif
