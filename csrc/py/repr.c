/* repr.c: an array as text, in the manner of the frameworks: four digits, aligned, long ones with their edges only. */
#include "py.h"

#include <math.h>

#define THRESHOLD 1000 /* more elements than this are shown by their edges */
#define EDGE 3
#define LINE_WIDTH 80
#define PREFIX "array("

/* ---------------------------------------------------------------- a growing text */

typedef struct {
    char *data;
    size_t length, room;
    bool failed;
} text;

static void
append(text *t, const char *part, size_t n)
{
    if (t->length + n > t->room) {
        size_t room = 2 * (t->length + n) + 256;
        char *data = PyMem_Realloc(t->data, room);
        t->failed = t->failed || data == NULL;
        if (data == NULL) {
            return;
        }
        t->data = data;
        t->room = room;
    }
    memcpy(t->data + t->length, part, n);
    t->length += n;
}

static void
append_string(text *t, const char *part)
{
    append(t, part, strlen(part));
}

static void
append_times(text *t, const char *part, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        append_string(t, part);
    }
}

/* ---------------------------------------------------------------- the edges of a large array */

/* The first and the last entries of dim. */
static dt_status
edges_of(const dt_array *x, int dim, dt_array *out, dt_error *err)
{
    dt_array first = DT_ARRAY_EMPTY, last = DT_ARRAY_EMPTY;
    DT_TRY(dt_narrow("repr", x, dim, 0, EDGE, &first, err));
    dt_status status = dt_narrow("repr", x, dim, x->shape[dim] - EDGE, EDGE, &last, err);
    if (status == DT_OK) {
        const dt_array *const parts[] = {&first, &last};
        status = dt_cat(parts, 2, dim, out, err);
    }
    dt_array_clear(&first);
    dt_array_clear(&last);
    return status;
}

/* What is shown of x, on the host and contiguous; cut[d]: something is left out of dimension d. */
static dt_status
shown_part(const dt_array *x, bool cut[DT_MAX_NDIM], dt_array *out, dt_error *err)
{
    dt_array part, next = DT_ARRAY_EMPTY;
    dt_status status = DT_OK;
    bool large = dt_array_numel(x) > THRESHOLD;
    DT_TRY(dt_settle(x, DT_READ, err));
    dt_array_copy_handle(x, &part);
    for (int d = 0; d < x->ndim && status == DT_OK; d++) {
        cut[d] = large && x->shape[d] > 2 * EDGE;
        if (cut[d] && (status = edges_of(&part, d, &next, err)) == DT_OK) {
            dt_array_clear(&part);
            part = next;
            next = DT_ARRAY_EMPTY;
        }
    }
    if (status == DT_OK &&
        (status = dt_to(&part, (dt_device){DT_CPU, 0}, (dt_dtype)x->dtype, false, false, &next, err)) == DT_OK) {
        status = dt_contiguous(&next, out, err);
    }
    dt_array_clear(&part);
    dt_array_clear(&next);
    return status;
}

/* ---------------------------------------------------------------- one element */

typedef struct {
    dt_array array; /* contiguous, on the host */
    bool cut[DT_MAX_NDIM];
    bool integers, scientific; /* how floats are written */
    int width;
} page;

#define ELEMENT 32

static dt_scalar
element(const page *p, int64_t i)
{
    dt_dtype dtype = (dt_dtype)p->array.dtype;
    return dt_scalar_load(dtype, (char *)dt_array_data(&p->array) + i * (int64_t)dt_itemsize(dtype));
}

static int
float_text(const page *p, double value, char out[ELEMENT])
{
    if (!isfinite(value)) {
        return PyOS_snprintf(out, ELEMENT, "%s", isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    }
    bool whole = p->integers && !p->scientific;
    char *number = PyOS_double_to_string(value, p->scientific ? 'e' : 'f', whole ? 0 : 4, 0, NULL);
    int n = PyOS_snprintf(out, ELEMENT, "%s%s", number == NULL ? "?" : number, whole ? "." : "");
    PyMem_Free(number);
    return n;
}

static int
element_text(const page *p, int64_t i, char out[ELEMENT])
{
    dt_scalar value = element(p, i);
    switch (value.kind) {
    case DT_CATEGORY_BOOL:
        return PyOS_snprintf(out, ELEMENT, "%s", value.i ? "True" : "False");
    case DT_CATEGORY_INT:
        return PyOS_snprintf(out, ELEMENT, "%lld", (long long)value.i);
    default:
        return float_text(p, value.f, out);
    }
}

/* How all elements are written, from the smallest and the largest of them. */
static void
choose_format(page *p)
{
    double smallest = INFINITY, largest = 0;
    int64_t n = dt_array_numel(&p->array);
    bool floats = dt_is_float((dt_dtype)p->array.dtype);
    p->integers = true;
    for (int64_t i = 0; floats && i < n; i++) {
        double value = element(p, i).f;
        if (isfinite(value) && value != 0) {
            p->integers = p->integers && value == floor(value);
            smallest = fmin(smallest, fabs(value));
            largest = fmax(largest, fabs(value));
        }
    }
    p->scientific = largest > 0 && (largest / smallest > 1000 || largest > 1e8 || (!p->integers && smallest < 1e-4));
    p->width = 1;
    for (int64_t i = 0; i < n; i++) {
        char out[ELEMENT];
        int width = element_text(p, i, out);
        p->width = width > p->width ? width : p->width;
    }
}

/* ---------------------------------------------------------------- layout */

static void
append_element(text *t, const page *p, int64_t i)
{
    char out[ELEMENT];
    int n = element_text(p, i, out);
    append_times(t, " ", (size_t)(p->width - n));
    append(t, out, (size_t)n);
}

/* Between two entries of a row: a comma, and a new line where this one is full. */
static void
append_separator(text *t, int entry, int per_line, int indent)
{
    if (entry == 0) {
        return;
    }
    if (entry % (per_line > 1 ? per_line : 1) != 0) {
        append_string(t, ", ");
        return;
    }
    append_string(t, ",\n");
    append_times(t, " ", (size_t)indent + 1);
}

static void
append_row(text *t, const page *p, int64_t offset, int indent)
{
    int64_t n = p->array.shape[p->array.ndim - 1];
    bool cut = p->cut[p->array.ndim - 1];
    int per_line = (LINE_WIDTH - indent) / (p->width + 2), entry = 0;
    append_string(t, "[");
    for (int64_t i = 0; i < n; i++) {
        if (cut && i == EDGE) {
            append_separator(t, entry++, per_line, indent);
            append_string(t, " ...");
        }
        append_separator(t, entry++, per_line, indent);
        append_element(t, p, offset + i);
    }
    append_string(t, "]");
}

static void
append_values(text *t, const page *p, int dim, int64_t offset, int indent)
{
    const dt_array *x = &p->array;
    if (x->ndim == 0) {
        append_element(t, p, 0);
        return;
    }
    if (dim == x->ndim - 1) {
        append_row(t, p, offset, indent);
        return;
    }
    append_string(t, "[");
    for (int64_t i = 0; i < x->shape[dim]; i++) {
        if (i > 0) {
            append_string(t, ",");
            append_times(t, "\n", (size_t)(x->ndim - dim - 1));
            append_times(t, " ", (size_t)indent + 1);
        }
        if (p->cut[dim] && i == EDGE) {
            append_string(t, "...,");
            append_times(t, "\n", (size_t)(x->ndim - dim - 1));
            append_times(t, " ", (size_t)indent + 1);
        }
        append_values(t, p, dim + 1, offset + i * x->strides[dim], indent + 1);
    }
    append_string(t, "]");
}

static void
append_shape(text *t, const dt_array *x)
{
    append_string(t, ", size=(");
    for (int d = 0; d < x->ndim; d++) {
        char size[ELEMENT];
        PyOS_snprintf(size, ELEMENT, d ? ", %lld" : "%lld", (long long)x->shape[d]);
        append_string(t, size);
    }
    append_string(t, ")");
}

/* What is not obvious from the values. */
static void
append_suffix(text *t, const dt_array *x)
{
    dt_dtype dtype = (dt_dtype)x->dtype;
    bool empty = dt_array_numel(x) == 0;
    if (empty && x->ndim != 1) {
        append_shape(t, x);
    }
    if (py_on_device(x)) {
        char device[DT_DEVICE_TEXT];
        append_string(t, ", device='");
        append_string(t, dt_device_text(dt_array_device(x), device));
        append_string(t, "'");
    }
    if ((dtype != DT_FLOAT32 && dtype != DT_INT64 && dtype != DT_BOOL) || (empty && dtype != DT_FLOAT32)) {
        append_string(t, ", dtype=devtensor.");
        append_string(t, dt_dtypes[dtype].name);
    }
    append_string(t, ")");
}

PyObject *
py_repr(PyObject *self)
{
    const dt_array *x = py_array_of(self);
    page p = {.array = DT_ARRAY_EMPTY};
    dt_error err;
    dt_status status;
    PY_MOVE("repr", self, py_on_device(x), status, shown_part(x, p.cut, &p.array, &err));
    if (status != DT_OK) {
        return py_raise(py_state_of(self), &err, &self, 1);
    }
    text t = {0};
    append_string(&t, PREFIX);
    if (dt_array_numel(x) == 0) {
        append_string(&t, "[]");
    } else {
        choose_format(&p);
        dt_array_set_contiguous(&p.array);
        append_values(&t, &p, 0, 0, (int)strlen(PREFIX));
    }
    append_suffix(&t, x);
    dt_array_clear(&p.array);
    PyObject *result = t.failed ? PyErr_NoMemory() : PyUnicode_FromStringAndSize(t.data, (Py_ssize_t)t.length);
    PyMem_Free(t.data);
    return result;
}
