/* depthwise_each.h: convolution of arrays of one dtype with one input channel a group. Included by each_dtype.h after
 * gemm_each.h. */
#if IS_FLOAT

#define LANES ((int64_t)(VECTOR_BYTES / sizeof(C)))
#define TILE_NUMBERS ((int64_t)(DEPTHWISE_TILE / sizeof(C)))
#define MOST_VECTORS 4
#define MOST_PIXELS 4

/* count numbers of `capacity`, which is a power of two, to the result. */
__attribute__((always_inline)) static inline void
DT_CAT(finish, ENUM)(const conv_rows *job, C *sums, int64_t count, int64_t capacity, T *out, int64_t step)
{
    if (job->activation != NULL) {
        CPU_ACTIVATE(job->activation, sums, count);
    }
    if (step != 1) {
        for (int64_t i = 0; i < count; i++) {
            out[i * step] = STORE(sums[i]);
        }
        return;
    }
    T numbers[MOST_VECTORS * LANES];
    const T *from = numbers;
    for (int64_t i = 0; i < capacity; i++) {
        numbers[i] = STORE(sums[i]);
    }
    if (count == capacity) {
        memcpy(out, numbers, (size_t)capacity * sizeof(T));
        return;
    }
    UNROLL for (int64_t n = capacity / 2; n > 0; n /= 2)
    {
        if (count & n) {
            memcpy(out, from, (size_t)n * sizeof(T));
            out += n;
            from += n;
        }
    }
}

/* ---------------------------------------------------------------- channels side by side */

static inline DT_CAT(vec, ENUM) DT_CAT(part, ENUM)(const T *from, int64_t count)
{
    T lanes[LANES] = {0}, *to = lanes;
    UNROLL for (int64_t n = LANES / 2; n > 0; n /= 2)
    {
        if (count & n) {
            memcpy(to, from, (size_t)n * sizeof(T));
            to += n;
            from += n;
        }
    }
    return DT_CAT(load, ENUM)(lanes);
}

/* `count` channels (a vector, or what is left) of `pixels` results in a row, over rows and columns of the weight that
 * meet the image for all of them, span columns; x: the image, out: of the first; weight: packed, channels side by side.
 */
__attribute__((always_inline)) static inline void
DT_CAT(pixels, ENUM)(const conv_rows *job, const conv_window *window, int span, int pixels, int64_t channel,
                     int64_t count, const T *x, const C *weight, T *out)
{
    const struct cpu_conv *conv = &job->conv;
    const int64_t apart = conv->stride[1] * conv->x_column;
    DT_CAT(vec, ENUM) sums[MOST_PIXELS], w, start = {0};
    for (int64_t i = 0; job->bias != NULL && i < count; i++) {
        start[i] = LOAD(((const T *)job->bias)[(channel + i) * job->bias_stride]);
    }
    UNROLL for (int j = 0; j < pixels; j++)
    {
        sums[j] = start;
    }
    const int64_t line = job->padded_outputs, along = conv->dilation[1] * conv->x_column, first = window->columns[0];
    for (int64_t r = window->rows[0]; r < window->rows[1]; r++) {
        const T *from = x + (window->offset + r * conv->dilation[0] * conv->x_row + first * along + channel);
        const C *place = weight + (r * conv->kernel[1] + first) * line + channel;
        for (int s = 0; s < span; s++, from += along, place += line) {
            memcpy(&w, place, sizeof(w));
            UNROLL for (int j = 0; j < pixels; j++)
            {
                sums[j] = DT_CAT(fma, ENUM)(count == LANES ? DT_CAT(load, ENUM)(from + j * apart)
                                                           : DT_CAT(part, ENUM)(from + j * apart, count),
                                            w, sums[j]);
            }
        }
    }
    UNROLL for (int j = 0; j < pixels; j++)
    {
        C lanes[LANES];
        memcpy(lanes, &sums[j], sizeof(lanes));
        DT_CAT(finish, ENUM)(job, lanes, count, LANES, out + j * job->out_column + channel, 1);
    }
}

static void
DT_CAT(all_channels, ENUM)(const conv_rows *job, const conv_window *window, int64_t pixels, const T *x, T *out)
{
    const int span = (int)(window->columns[1] - window->columns[0]);
    int64_t channel = 0;
    for (; channel + LANES <= job->outputs; channel += LANES) {
        if (pixels == MOST_PIXELS && span == 3) {
            DT_CAT(pixels, ENUM)(job, window, 3, MOST_PIXELS, channel, LANES, x, job->packed, out);
        } else if (pixels == MOST_PIXELS) {
            DT_CAT(pixels, ENUM)(job, window, span, MOST_PIXELS, channel, LANES, x, job->packed, out);
        } else {
            DT_CAT(pixels, ENUM)(job, window, span, 1, channel, LANES, x, job->packed, out);
        }
    }
    conv_window one = *window;
    for (int64_t j = 0; channel < job->outputs && j < pixels; j++) {
        DT_CAT(pixels, ENUM)
        (job, &one, span, 1, channel, job->outputs - channel, x, job->packed, out + j * job->out_column);
        one.offset += job->conv.stride[1] * job->conv.x_column;
    }
}

/* Rows [begin, end) of all images' results. */
static void
DT_CAT(depthwise_rows, ENUM)(const conv_rows *job, int64_t begin, int64_t end)
{
    const struct cpu_conv *conv = &job->conv;
    for (int64_t item = begin; item < end; item++) {
        int64_t image = item / conv->result[0], p = item % conv->result[0], row = p * conv->stride[0] - conv->pad[0];
        const T *x = (const T *)job->x + image * conv->x_image;
        T *out = (T *)job->out + image * job->out_image + p * job->out_row;
        conv_window window;
        conv_meet(row, conv->height, conv->kernel[0], conv->dilation[0], window.rows);
        for (int64_t q = 0, pixels; q < conv->result[1]; q += pixels) {
            int64_t column = q * conv->stride[1] - conv->pad[1];
            int64_t last = column + (MOST_PIXELS - 1) * conv->stride[1] + (conv->kernel[1] - 1) * conv->dilation[1];
            bool inside = column >= 0 && last < conv->width && q + MOST_PIXELS <= conv->result[1];
            pixels = inside ? MOST_PIXELS : 1;
            conv_meet(column, conv->width, conv->kernel[1], conv->dilation[1], window.columns);
            window.offset = row * conv->x_row + column * conv->x_column;
            DT_CAT(all_channels, ENUM)(job, &window, pixels, x, out + q * job->out_column);
        }
    }
}

/* ---------------------------------------------------------------- planes, of any strides */

/* n neighbours, and what is left of a vector zero; the last vector may lie over the one before. */
static inline void
DT_CAT(copy_line, ENUM)(C *to, const T *from, int64_t n)
{
    for (int64_t j = 0; j < n && n >= LANES; j += LANES) {
        int64_t at = CPU_MIN(j, n - LANES);
        const DT_CAT(vec, ENUM) v = DT_CAT(load, ENUM)(from + at);
        memcpy(to + at, &v, sizeof(v));
    }
    if (n < LANES) {
        const DT_CAT(vec, ENUM) v = DT_CAT(part, ENUM)(from, n);
        memcpy(to, &v, sizeof(v));
    }
}

/* What a tile of the result needs of a plane, padding included, columns that are a stride apart side by side. The
 * padding of a whole plane is there already. */
static void
DT_CAT(fill_tile, ENUM)(const conv_rows *job, const T *plane, int64_t row, int64_t column, C *tile)
{
    const struct cpu_conv *conv = &job->conv;
    const conv_tiles *tiles = &job->tiles;
    const int64_t step = conv->stride[1] * conv->x_column;
    for (int64_t phase = 0; phase < conv->stride[1]; phase++) {
        int64_t first = column + phase, begin = first < 0 ? CPU_CEIL_DIV(-first, conv->stride[1]) : 0;
        int64_t end = first >= conv->width ? 0 : (conv->width - 1 - first) / conv->stride[1] + 1;
        end = CPU_MIN(end, tiles->pitch);
        begin = CPU_MIN(begin, end);
        for (int64_t i = 0; i < tiles->in_rows; i++) {
            C *line = tile + (i * conv->stride[1] + phase) * tiles->pitch;
            bool there = row + i >= 0 && row + i < conv->height && begin < end;
            if (!tiles->whole) {
                memset(line, 0, (size_t)(there ? begin : tiles->pitch) * sizeof(C));
                memset(line + end, 0, (size_t)(tiles->pitch - end) * sizeof(C));
            }
            if (!there) {
                continue;
            }
            const T *from = plane + ((row + i) * conv->x_row + first * conv->x_column + begin * step);
            if (step == 1 && begin + LANES <= tiles->pitch) {
                DT_CAT(copy_line, ENUM)(line + begin, from, end - begin);
            } else if (step == 2) {
                for (int64_t j = 0; j < end - begin; j++) {
                    line[begin + j] = LOAD(from[2 * j]);
                }
            } else {
                for (int64_t j = 0; j < end - begin; j++) {
                    line[begin + j] = LOAD(from[j * step]);
                }
            }
        }
    }
}

/* `vectors` side by side of each row of a tile of the result, `count` numbers of them; offsets, weights: of the taps.
 */
__attribute__((always_inline)) static inline void
DT_CAT(tile_rows, ENUM)(const conv_rows *job, int taps, int vectors, const C *tile, const int64_t *offsets,
                        const DT_CAT(vec, ENUM) * weights, C bias, int64_t rows, int64_t count, T *out)
{
    const struct cpu_conv *conv = &job->conv;
    const int64_t pitch = conv->stride[0] * conv->stride[1] * job->tiles.pitch;
    for (int64_t p = 0; p < rows; p++, tile += pitch, out += job->out_row) {
        DT_CAT(vec, ENUM) sums[MOST_VECTORS], x;
        UNROLL for (int j = 0; j < vectors; j++)
        {
            sums[j] = (DT_CAT(vec, ENUM)){0} + bias;
        }
        for (int t = 0; t < taps; t++) {
            UNROLL for (int j = 0; j < vectors; j++)
            {
                memcpy(&x, tile + offsets[t] + j * LANES, sizeof(x));
                sums[j] = DT_CAT(fma, ENUM)(x, weights[t], sums[j]);
            }
        }
        C lanes[MOST_VECTORS * LANES];
        UNROLL for (int j = 0; j < vectors; j++)
        {
            memcpy(lanes + j * LANES, &sums[j], sizeof(*sums));
        }
        DT_CAT(finish, ENUM)(job, lanes, count, vectors * LANES, out, job->out_column);
    }
}

#define TILE_ROWS(taps, vectors)                                                                                       \
    DT_CAT(tile_rows, ENUM)                                                                                            \
    (job, taps, vectors, tile + q, offsets, weights, bias, rows, count, out + q * job->out_column)

/* One tile. */
static void
DT_CAT(run_tile, ENUM)(const conv_rows *job, const C *tile, const int64_t *offsets, const T *weight, C bias,
                       int64_t rows, int64_t columns, T *out)
{
    const struct cpu_conv *conv = &job->conv;
    int taps = (int)(conv->kernel[0] * conv->kernel[1]);
    DT_CAT(vec, ENUM) weights[DEPTHWISE_TAPS];
    for (int t = 0; t < taps; t++) {
        int64_t r = t / conv->kernel[1], s = t % conv->kernel[1];
        weights[t] = (DT_CAT(vec, ENUM)){0} + LOAD(weight[r * conv->weight_row + s * conv->weight_column]);
    }
    for (int64_t q = 0, count; q < columns; q += count) {
        count = CPU_MIN(MOST_VECTORS * LANES, columns - q);
        if (taps == 9 && count > 2 * LANES) {
            TILE_ROWS(9, 4);
        } else if (taps == 9 && count > LANES) {
            TILE_ROWS(9, 2);
        } else if (taps == 9) {
            TILE_ROWS(9, 1);
        } else if (count > LANES) {
            TILE_ROWS(taps, 4);
        } else {
            TILE_ROWS(taps, 1);
        }
    }
}
#undef TILE_ROWS

/* Tiles [begin, end) of all planes. */
static void
DT_CAT(depthwise_tiles, ENUM)(const conv_rows *job, int64_t begin, int64_t end)
{
    const struct cpu_conv *conv = &job->conv;
    const conv_tiles *tiles = &job->tiles;
    int64_t offsets[DEPTHWISE_TAPS];
    _Alignas(64) C tile[TILE_NUMBERS];
    if (tiles->whole) {
        memset(tile, 0, (size_t)(tiles->in_rows * conv->stride[1] * tiles->pitch) * sizeof(C));
    }
    for (int64_t t = 0; t < conv->kernel[0] * conv->kernel[1]; t++) {
        int64_t r = t / conv->kernel[1] * conv->dilation[0], s = t % conv->kernel[1] * conv->dilation[1];
        offsets[t] = (r * conv->stride[1] + s % conv->stride[1]) * tiles->pitch + s / conv->stride[1];
    }
    for (int64_t item = begin; item < end; item++) {
        int64_t q0 = item % tiles->across * tiles->columns, p0 = item / tiles->across % tiles->down * tiles->rows;
        int64_t plane = item / tiles->across / tiles->down, k = plane % job->outputs, image = plane / job->outputs;
        int64_t rows = CPU_MIN(tiles->rows, conv->result[0] - p0);
        int64_t columns = CPU_MIN(tiles->columns, conv->result[1] - q0);
        const T *x = (const T *)job->x + image * conv->x_image + k / job->multiplier * conv->x_channel;
        const T *weight = (const T *)job->weight + k * conv->weight_output;
        const C bias = job->bias ? LOAD(((const T *)job->bias)[k * job->bias_stride]) : 0;
        T *out =
            (T *)job->out + image * job->out_image + k * job->out_channel + p0 * job->out_row + q0 * job->out_column;
        DT_CAT(fill_tile, ENUM)
        (job, x, p0 * conv->stride[0] - conv->pad[0], q0 * conv->stride[1] - conv->pad[1], tile);
        DT_CAT(run_tile, ENUM)(job, tile, offsets, weight, bias, rows, columns, out);
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
        DT_CAT(finish, ENUM)(job, &sum, 1, 1, out + p * job->out_row + q * job->out_column, 1);
    }
}
#undef LANES
#undef TILE_NUMBERS
#undef MOST_VECTORS
#undef MOST_PIXELS
#endif
