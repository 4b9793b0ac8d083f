/* depthwise_each.h: convolution of arrays of one dtype with one input channel a group. Included by each_dtype.h after
 * gemm_each.h and depthwise_tile.h. */
#if IS_FLOAT

#define LANES ((int64_t)(VECTOR_BYTES / sizeof(C)))
#define TILE_NUMBERS ((int64_t)(DEPTHWISE_TILE / sizeof(C)))
#define BAND_NUMBERS ((int64_t)(DEPTHWISE_BAND / sizeof(C)))
#define PIXELS 4
#define PLAIN (sizeof(T) == sizeof(C)) /* a number is its own accumulator */

/* ---------------------------------------------------------------- channels side by side */

/* Anywhere among accumulators: read as a whole, since a vector that comes by halves is waited for. */
typedef DT_CAT(vec, ENUM) DT_CAT(loose, ENUM) __attribute__((aligned(sizeof(C)), may_alias));

/* A vector of sums to the result, whose activation follows where that is not rounded once more. */
static inline void
DT_CAT(put, ENUM)(const conv_rows *job, DT_CAT(vec, ENUM) sums, T *out)
{
    C lanes[LANES];
    T numbers[LANES];
    if (PLAIN) {
        memcpy(out, &sums, sizeof(sums));
        return;
    }
    memcpy(lanes, &sums, sizeof(lanes));
    if (job->activation != NULL) {
        CPU_ACTIVATE(job->activation, lanes, LANES);
    }
    for (int l = 0; l < LANES; l++) {
        numbers[l] = STORE(lanes[l]);
    }
    memcpy(out, numbers, sizeof(numbers));
}

/* All channels of `pixels` results in a row, over rows and columns of the weight that meet the image for all of them;
 * x: the image, out: of the first. */
__attribute__((always_inline)) static inline void
DT_CAT(pixels, ENUM)(const conv_rows *job, const conv_window *window, int pixels, const T *x, T *out)
{
    const struct cpu_conv *conv = &job->conv;
    const int64_t apart = conv->stride[1] * conv->x_column, along = conv->dilation[1] * conv->x_column;
    const int64_t line = job->padded_outputs, first = window->columns[0];
    for (int64_t next = 0; next < job->outputs; next += LANES) {
        const int64_t channel = CPU_MIN(next, job->outputs - LANES);
        const C *weight = (const C *)job->packed + channel;
        DT_CAT(vec, ENUM) sums[PIXELS], w;
        UNROLL for (int j = 0; j < pixels; j++)
        {
            sums[j] = *(const DT_CAT(loose, ENUM) *)(weight + conv->kernel[0] * conv->kernel[1] * line);
        }
        for (int64_t r = window->rows[0]; r < window->rows[1]; r++) {
            const T *from = x + (window->offset + r * conv->dilation[0] * conv->x_row + first * along + channel);
            const C *place = weight + (r * conv->kernel[1] + first) * line;
            for (int64_t s = first; s < window->columns[1]; s++, from += along, place += line) {
                w = *(const DT_CAT(loose, ENUM) *)place;
                UNROLL for (int j = 0; j < pixels; j++)
                {
                    sums[j] = DT_CAT(fma, ENUM)(DT_CAT(load, ENUM)(from + j * apart), w, sums[j]);
                }
            }
        }
        UNROLL for (int j = 0; j < pixels; j++)
        {
            DT_CAT(put, ENUM)(job, sums[j], out + j * job->out_column + channel);
        }
    }
}

/* All channels of PIXELS results in each of `rows` rows with a weight of 3 x 3; places: of the pixels that they need.
 */
__attribute__((always_inline)) static inline void
DT_CAT(threes, ENUM)(const conv_rows *job, int stride, int rows, const T *const *places, T *out)
{
    const int columns = (PIXELS - 1) * stride + 3;
    const int64_t line = job->padded_outputs;
    for (int64_t next = 0; next < job->outputs; next += LANES) {
        const int64_t channel = CPU_MIN(next, job->outputs - LANES);
        const C *weight = (const C *)job->packed + channel;
        DT_CAT(vec, ENUM) sums[2][PIXELS], w[3][3];
        UNROLL for (int i = 0; i < rows * PIXELS; i++)
        {
            sums[i / PIXELS][i % PIXELS] = *(const DT_CAT(loose, ENUM) *)(weight + 9 * line);
        }
        UNROLL for (int y = 0; y < rows + 2; y++)
        {
            UNROLL for (int s = 0; s < 3 && y < 3; s++)
            {
                w[y][s] = *(const DT_CAT(loose, ENUM) *)(weight + (3 * y + s) * line);
            }
            UNROLL for (int c = 0; c < columns; c++)
            {
                const DT_CAT(vec, ENUM) x = DT_CAT(load, ENUM)(places[y * columns + c] + channel);
                UNROLL for (int i = 0; i < rows * PIXELS; i++)
                {
                    const int r = y - i / PIXELS, s = c - i % PIXELS * stride;
                    if (r >= 0 && r < 3 && s >= 0 && s < 3) {
                        sums[i / PIXELS][i % PIXELS] = DT_CAT(fma, ENUM)(x, w[r][s], sums[i / PIXELS][i % PIXELS]);
                    }
                }
            }
        }
        UNROLL for (int i = 0; i < rows * PIXELS; i++)
        {
            T *to = out + i / PIXELS * job->out_row + i % PIXELS * job->out_column + channel;
            DT_CAT(put, ENUM)(job, sums[i / PIXELS][i % PIXELS], to);
        }
    }
}

/* `rows` rows of the result from row p on, with a weight of 3 x 3: the last pixels may be made twice. */
static void
DT_CAT(rows_of_threes, ENUM)(const conv_rows *job, const T *x, int64_t p, int rows, T *out)
{
    const struct cpu_conv *conv = &job->conv;
    const int64_t row = p * conv->stride[0] - conv->pad[0];
    const int columns = (int)((PIXELS - 1) * conv->stride[1] + 3);
    const T *zeros = (const T *)(const void *)((const C *)job->packed + 10 * job->padded_outputs);
    for (int64_t q = 0; q < conv->result[1]; q += PIXELS) {
        const int64_t at = CPU_MIN(q, conv->result[1] - PIXELS), column = at * conv->stride[1] - conv->pad[1];
        const T *places[4 * (2 * PIXELS + 1)];
        for (int y = 0; y < rows + 2; y++) {
            bool there = row + y >= 0 && row + y < conv->height;
            for (int c = 0; c < columns; c++) {
                places[y * columns + c] = there && column + c >= 0 && column + c < conv->width
                                              ? x + (row + y) * conv->x_row + (column + c) * conv->x_column
                                              : zeros;
            }
        }
        if (conv->stride[1] == 2) {
            DT_CAT(threes, ENUM)(job, 2, 1, places, out + at * job->out_column);
        } else if (rows == 1) {
            DT_CAT(threes, ENUM)(job, 1, 1, places, out + at * job->out_column);
        } else {
            DT_CAT(threes, ENUM)(job, 1, 2, places, out + at * job->out_column);
        }
    }
}

static void
DT_CAT(row_of_any, ENUM)(const conv_rows *job, const T *x, int64_t p, T *out)
{
    const struct cpu_conv *conv = &job->conv;
    const int64_t row = p * conv->stride[0] - conv->pad[0];
    conv_window window;
    conv_meet(row, conv->height, conv->kernel[0], conv->dilation[0], window.rows);
    for (int64_t q = 0, pixels; q < conv->result[1]; q += pixels) {
        int64_t column = q * conv->stride[1] - conv->pad[1];
        int64_t last = column + (PIXELS - 1) * conv->stride[1] + (conv->kernel[1] - 1) * conv->dilation[1];
        bool inside = column >= 0 && last < conv->width && q + PIXELS <= conv->result[1];
        pixels = inside ? PIXELS : 1;
        conv_meet(column, conv->width, conv->kernel[1], conv->dilation[1], window.columns);
        window.offset = row * conv->x_row + column * conv->x_column;
        if (inside) {
            DT_CAT(pixels, ENUM)(job, &window, PIXELS, x, out + q * job->out_column);
        } else {
            DT_CAT(pixels, ENUM)(job, &window, 1, x, out + q * job->out_column);
        }
    }
}

/* Groups [begin, end) of job->together rows of all images' results. */
static void
DT_CAT(depthwise_rows, ENUM)(const conv_rows *job, int64_t begin, int64_t end)
{
    const struct cpu_conv *conv = &job->conv;
    const int64_t groups = CPU_CEIL_DIV(conv->result[0], job->together);
    bool threes = PLAIN && conv->kernel[0] == 3 && conv->kernel[1] == 3 && conv->dilation[0] == 1 &&
                  conv->dilation[1] == 1 && conv->stride[1] <= 2 && conv->result[1] >= PIXELS;
    for (int64_t item = begin; item < end; item++) {
        int64_t image = item / groups, p = item % groups * job->together;
        int64_t rows = CPU_MIN(job->together, conv->result[0] - p);
        const T *x = (const T *)job->x + image * conv->x_image;
        T *out = (T *)job->out + image * job->out_image + p * job->out_row;
        if (threes) {
            DT_CAT(rows_of_threes, ENUM)(job, x, p, (int)rows, out);
        }
        for (int64_t i = 0; i < rows; i++) {
            if (!threes) {
                DT_CAT(row_of_any, ENUM)(job, x, p + i, out + i * job->out_row);
            }
            for (int64_t q = 0; PLAIN && job->activation != NULL && q < conv->result[1]; q++) {
                CPU_ACTIVATE(job->activation, out + i * job->out_row + q * job->out_column, job->outputs);
            }
        }
    }
}

/* ---------------------------------------------------------------- planes, of any strides */

/* n numbers, `apart` from each other. */
__attribute__((noinline)) static void
DT_CAT(gather, ENUM)(C *to, const T *from, int64_t n, int64_t apart)
{
    for (int64_t j = 0; j < n; j++) {
        to[j] = LOAD(from[j * apart]);
    }
}

/* n neighbours; the last vector may lie over the one before. Fewer than a vector has come with what lies behind them,
 * if `more` allows reading that, and zeros are put there. */
__attribute__((noinline)) static void
DT_CAT(copy_line, ENUM)(C *to, const T *from, int64_t n, bool more)
{
    const DT_CAT(vec, ENUM) zeros = {0};
    if (n >= LANES || more) {
        for (int64_t j = 0; j < n; j += LANES) {
            int64_t at = CPU_MAX(CPU_MIN(j, n - LANES), 0);
            const DT_CAT(vec, ENUM) v = DT_CAT(load, ENUM)(from + at);
            memcpy(to + at, &v, sizeof(v));
        }
        if (n < LANES) {
            memcpy(to + n, &zeros, sizeof(zeros));
        }
        return;
    }
    for (int64_t j = 0; j < n; j++) {
        to[j] = LOAD(from[j]);
    }
}

/* The same to two lines in turn. */
static inline void
DT_CAT(split_line, ENUM)(C *restrict even, C *restrict odd, const T *from, int64_t n, bool more)
{
    const int64_t pairs = n / 2;
    const DT_CAT(vec, ENUM) zeros = {0};
    if (pairs >= LANES || more) {
        for (int64_t j = 0; j < pairs; j += LANES) {
            int64_t at = CPU_MAX(CPU_MIN(j, pairs - LANES), 0);
            C first[LANES], second[LANES];
            for (int l = 0; l < LANES; l++) {
                first[l] = LOAD(from[2 * (at + l)]);
                second[l] = LOAD(from[2 * (at + l) + 1]);
            }
            memcpy(even + at, first, sizeof(first));
            memcpy(odd + at, second, sizeof(second));
        }
        if (pairs < LANES) {
            memcpy(even + pairs, &zeros, sizeof(zeros));
            memcpy(odd + pairs, &zeros, sizeof(zeros));
        }
    } else {
        for (int64_t j = 0; j < pairs; j++) {
            even[j] = LOAD(from[2 * j]);
            odd[j] = LOAD(from[2 * j + 1]);
        }
    }
    if (n % 2 != 0) {
        even[pairs] = LOAD(from[n - 1]);
    }
}

/* n numbers of a row of a plane to a line of a tile from its column `first` on. */
static inline void
DT_CAT(fill_line, ENUM)(const conv_rows *job, const T *from, int64_t first, int64_t n, bool more, C *line)
{
    const int64_t stride = job->conv.stride[1], step = job->conv.x_column, pitch = job->tiles.pitch;
    if (step == 1 && stride == 1) {
        DT_CAT(copy_line, ENUM)(line + first, from, n, more);
    } else if (step == 1 && stride == 2) {
        C *even = line + first % 2 * pitch + first / 2, *odd = line + (first + 1) % 2 * pitch + (first + 1) / 2;
        DT_CAT(split_line, ENUM)(even, odd, from, n, more);
    } else {
        int64_t part = first % stride, place = first / stride;
        for (int64_t j = 0; j < n; j++) {
            line[part * pitch + place] = LOAD(from[j * step]);
            if (++part == stride) {
                part = 0;
                place++;
            }
        }
    }
}

/* What a tile of the result needs of a plane from (row, column) on, padding included, columns that a stride keeps apart
 * side by side. What is padding in each tile is zero already. */
static void
DT_CAT(fill_tile, ENUM)(const conv_rows *job, const T *plane, int64_t row, int64_t column, C *tile)
{
    const struct cpu_conv *conv = &job->conv;
    const conv_tiles *tiles = &job->tiles;
    const int64_t line = conv->stride[1] * tiles->pitch, skipped = CPU_MAX(column, 0), first = skipped - column;
    const int64_t n = CPU_MIN(column + line, conv->width) - skipped;
    /* more than n numbers may be read if the plane goes on after them, and the line of the tile too */
    const bool fits = ((first + n) >> (conv->stride[1] > 1)) + 1 + LANES <= tiles->pitch;
    const int64_t plane_end = fits && conv->x_row == conv->width ? conv->height * conv->width : 0;
    for (int64_t i = 0; i < tiles->in_rows; i++, tile += line) {
        bool there = row + i >= 0 && row + i < conv->height;
        if (tiles->across > 1 || (!there && tiles->down > 1)) {
            memset(tile, 0, (size_t)line * sizeof(C));
        }
        if (there && n > 0) {
            bool more = (row + i) * conv->width + skipped + conv->stride[1] * LANES <= plane_end;
            const T *from = plane + ((row + i) * conv->x_row + skipped * conv->x_column);
            DT_CAT(fill_line, ENUM)(job, from, first, n, more, tile);
        }
    }
}

/* Sums side by side, which may be where they belong, to the result. */
__attribute__((noinline)) static void
DT_CAT(finish_tile, ENUM)(const conv_rows *job, C *sums, int64_t rows, int64_t columns, T *out)
{
    const int64_t step = job->out_column;
    const bool done = PLAIN && sums == (C *)(void *)out;
    int64_t n = columns;
    if (step == 1 && job->out_row == columns) {
        n *= rows;
        rows = 1;
    }
    for (int64_t p = 0; p < rows; p++, sums += done ? job->out_row : n, out += job->out_row) {
        if (job->activation != NULL) {
            CPU_ACTIVATE(job->activation, sums, n);
        }
        if (done) {
            continue;
        }
        if (PLAIN && step == 1) {
            DT_CAT(copy_line, ENUM)((C *)(void *)out, (const T *)(const void *)sums, n, false);
        } else if (step == 1) {
            for (int64_t j = 0; j < n; j++) {
                out[j] = STORE(sums[j]);
            }
        } else {
            for (int64_t j = 0; j < n; j++) {
                out[j * step] = STORE(sums[j]);
            }
        }
    }
}

/* A plane of the result, and what it is made of. */
typedef struct {
    int64_t image, output;
    const T *x;
    T *out;
    const C *weights;
    C bias, copied[DEPTHWISE_TAPS];
} DT_CAT(plane_parts, ENUM);

__attribute__((noinline)) static void
DT_CAT(find_parts, ENUM)(const conv_rows *job, DT_CAT(plane_parts, ENUM) * parts)
{
    const struct cpu_conv *conv = &job->conv;
    const int64_t k = parts->output, channel = job->multiplier == 1 ? k : k / job->multiplier;
    const T *weight = (const T *)job->weight + k * conv->weight_output;
    parts->x = (const T *)job->x + parts->image * conv->x_image + channel * conv->x_channel;
    parts->out = (T *)job->out + parts->image * job->out_image + k * job->out_channel;
    parts->bias = job->bias ? LOAD(((const T *)job->bias)[k * job->bias_stride]) : 0;
    if (PLAIN && conv->weight_column == 1 && conv->weight_row == conv->kernel[1]) {
        parts->weights = (const C *)(const void *)weight;
        return;
    }
    parts->weights = parts->copied;
    for (int64_t r = 0; r < conv->kernel[0]; r++) {
        DT_CAT(gather, ENUM)
        (parts->copied + r * conv->kernel[1], weight + r * conv->weight_row, conv->kernel[1], conv->weight_column);
    }
}

static inline void
DT_CAT(next_plane, ENUM)(const conv_rows *job, DT_CAT(plane_parts, ENUM) * parts)
{
    if (++parts->output == job->outputs) {
        parts->output = 0;
        parts->image++;
    }
}

/* Rows [first, first + rows) of a plane of x, where they lie or copied to `to`: vectors of what is beside them may be
 * read. */
static inline const C *
DT_CAT(rows_of_plane, ENUM)(const conv_rows *job, const DT_CAT(plane_parts, ENUM) * parts, int64_t first, int64_t rows,
                            C *to)
{
    const struct cpu_conv *conv = &job->conv;
    const int64_t width = conv->width, stride = conv->stride[1], size = conv->height * width;
    const T *from = parts->x + first * conv->x_row;
    const bool lines = conv->x_column == 1 && conv->x_row == width;
    if (PLAIN && lines && conv->x_channel == size) {
        const T *image = (const T *)job->x + parts->image * conv->x_image;
        const int64_t reach = CPU_MAX(conv->result[1], LANES) * stride - conv->pad[1] + 3 - stride;
        if (from - image >= conv->pad[1] && from - image + (rows - 1) * width + reach <= job->channels * size) {
            return (const C *)(const void *)from;
        }
    }
    if (lines) {
        DT_CAT(copy_line, ENUM)(to, from, rows * width, false);
    }
    for (int64_t r = 0; !lines && r < rows; r++) {
        DT_CAT(gather, ENUM)(to + r * width, from + r * conv->x_row, width, conv->x_column);
    }
    return to;
}

/* Bands [begin, end) of all planes, with a weight of 3 x 3. */
static void
DT_CAT(depthwise_planes, ENUM)(const conv_rows *job, int64_t begin, int64_t end)
{
    const struct cpu_conv *conv = &job->conv;
    const conv_tiles *tiles = &job->tiles;
    const int64_t columns = conv->result[1], down = tiles->down, size = conv->result[0] * columns;
    const bool in_place = PLAIN && job->out_column == 1;
    const bool dense = job->out_row == columns && job->out_channel == size && down == 1;
    _Alignas(64) C numbers[BAND_NUMBERS], sums[BAND_NUMBERS + LANES], spare[BAND_NUMBERS / 8 + LANES];
    DT_CAT(plane_parts, ENUM) parts = {.image = begin / down / job->outputs, .output = begin / down % job->outputs};
    memset(numbers, 0, sizeof(numbers));
    for (int64_t item = begin, band = begin % down; item < end; item++) {
        const int64_t p = band * tiles->rows, first = p * conv->stride[0] - conv->pad[0];
        const int64_t above = CPU_MAX(CPU_MIN(first, conv->height), 0);
        const int64_t below = CPU_MAX(CPU_MIN(first + tiles->in_rows, conv->height), above);
        conv_plane plane = {
            .zeros = numbers + LANES,
            .spare = spare,
            .width = conv->width,
            .height = below - above,
            .pad = conv->pad[1],
            .first = first - above,
            .rows = CPU_MIN(tiles->rows, conv->result[0] - p),
            .columns = columns,
        };
        DT_CAT(find_parts, ENUM)(job, &parts);
        plane.x = DT_CAT(rows_of_plane, ENUM)(job, &parts, above, plane.height, numbers + tiles->pitch);
        /* what follows rows shorter than a vector is overwritten, which is right before this part makes it */
        const int64_t left = CPU_MIN(end - item, job->outputs - parts.output) * size;
        const bool direct = in_place && (columns >= LANES || (dense && size - columns + LANES <= left));
        T *out = parts.out + p * job->out_row;
        plane.out = direct ? (void *)out : sums;
        plane.out_row = direct ? job->out_row : columns;
        DT_CAT(plane, ENUM)(conv->stride[0], &plane, parts.weights, parts.bias);
        if (!direct || job->activation != NULL) {
            DT_CAT(finish_tile, ENUM)(job, plane.out, plane.rows, columns, out);
        }
        if (++band == down) {
            band = 0;
            DT_CAT(next_plane, ENUM)(job, &parts);
        }
    }
}

/* Tiles [begin, end) of all planes. */
static void
DT_CAT(depthwise_tiles, ENUM)(const conv_rows *job, int64_t begin, int64_t end)
{
    const struct cpu_conv *conv = &job->conv;
    const conv_tiles *tiles = &job->tiles;
    const int64_t taps = conv->kernel[0] * conv->kernel[1], in_plane = tiles->across * tiles->down;
    int64_t offsets[DEPTHWISE_TAPS];
    _Alignas(64) C tile[TILE_NUMBERS], sums[TILE_NUMBERS + LANES];
    DT_CAT(plane_parts, ENUM)
    parts = {.image = begin / in_plane / job->outputs, .output = begin / in_plane % job->outputs};
    memset(tile, 0, (size_t)(tiles->in_rows * conv->stride[1] * tiles->pitch) * sizeof(C));
    for (int64_t t = 0; t < taps; t++) {
        int64_t r = t / conv->kernel[1] * conv->dilation[0], s = t % conv->kernel[1] * conv->dilation[1];
        offsets[t] = (r * conv->stride[1] + s % conv->stride[1]) * tiles->pitch + s / conv->stride[1];
    }
    for (int64_t item = begin; item < end; item++) {
        const int64_t q = item % tiles->across * tiles->columns, p = item / tiles->across % tiles->down * tiles->rows;
        const int64_t rows = CPU_MIN(tiles->rows, conv->result[0] - p);
        const int64_t columns = CPU_MIN(tiles->columns, conv->result[1] - q);
        const bool direct = PLAIN && job->out_column == 1 && columns >= LANES;
        DT_CAT(find_parts, ENUM)(job, &parts);
        T *out = parts.out + p * job->out_row + q * job->out_column;
        C *to = direct ? (C *)(void *)out : sums;
        DT_CAT(fill_tile, ENUM)
        (job, parts.x, p * conv->stride[0] - conv->pad[0], q * conv->stride[1] - conv->pad[1], tile);
        DT_CAT(tile, ENUM)
        (job, tile, offsets, parts.weights, parts.bias, rows, columns, to, direct ? job->out_row : columns);
        if (!direct || job->activation != NULL) {
            DT_CAT(finish_tile, ENUM)(job, to, rows, columns, out);
        }
        if ((item + 1) % in_plane == 0) {
            DT_CAT(next_plane, ENUM)(job, &parts);
        }
    }
}

/* ---------------------------------------------------------------- what no tile holds */

/* Numbers [begin, end) of the result. */
static void
DT_CAT(depthwise_each, ENUM)(const conv_rows *job, int64_t begin, int64_t end)
{
    const struct cpu_conv *conv = &job->conv;
    for (int64_t item = begin; item < end; item++) {
        int64_t q = item % conv->result[1], p = item / conv->result[1] % conv->result[0];
        int64_t plane = item / conv->result[1] / conv->result[0], k = plane % job->outputs,
                image = plane / job->outputs;
        int64_t row = p * conv->stride[0] - conv->pad[0], column = q * conv->stride[1] - conv->pad[1];
        const T *x = (const T *)job->x + image * conv->x_image + k / job->multiplier * conv->x_channel;
        const T *weight = (const T *)job->weight + k * conv->weight_output;
        C sum = job->bias ? LOAD(((const T *)job->bias)[k * job->bias_stride]) : 0;
        conv_window window;
        conv_meet(row, conv->height, conv->kernel[0], conv->dilation[0], window.rows);
        conv_meet(column, conv->width, conv->kernel[1], conv->dilation[1], window.columns);
        for (int64_t r = window.rows[0]; r < window.rows[1]; r++) {
            for (int64_t s = window.columns[0]; s < window.columns[1]; s++) {
                sum += LOAD(x[(row + r * conv->dilation[0]) * conv->x_row +
                              (column + s * conv->dilation[1]) * conv->x_column]) *
                       LOAD(weight[r * conv->weight_row + s * conv->weight_column]);
            }
        }
        T *out = (T *)job->out + image * job->out_image + k * job->out_channel;
        if (job->activation != NULL) {
            CPU_ACTIVATE(job->activation, &sum, 1);
        }
        out[p * job->out_row + q * job->out_column] = STORE(sum);
    }
}
#undef LANES
#undef TILE_NUMBERS
#undef BAND_NUMBERS
#undef PIXELS
#undef PLAIN
#endif
