/* repr.c: an array as text, in the manner of the frameworks: its values aligned, large ones with their edges only, then
 * always its device and dtype, and whether gradients flow to it. */
#include "../grad/grad.h"

#include <math.h>

/* ---------------------------------------------------------------- a growing text */

typedef struct {
    char *data;
    size_t length, room;
    bool failed;
} text;

static void
append(text *t, const char *part, size_t n)
{
    if (t->length + n >= t->room) { /* also before the first part, which may be empty */
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

typedef struct {
    py_print_options options;
    dt_array array; /* what is shown: contiguous, on the host */
    bool cut[DT_MAX_NDIM];
    bool integers, scientific; /* how floats are written */
    size_t width;
} page;

/* The first and the last entries of dim. */
static dt_status
edges_of(const dt_array *x, int dim, int64_t edge, dt_array *out, dt_error *err)
{
    dt_array first = DT_ARRAY_EMPTY, last = DT_ARRAY_EMPTY;
    DT_TRY(dt_narrow("repr", x, dim, 0, edge, &first, err));
    dt_status status = dt_narrow("repr", x, dim, x->shape[dim] - edge, edge, &last, err);
    if (status == DT_OK) {
        const dt_array *const parts[] = {&first, &last};
        status = dt_cat(parts, 2, dim, out, err);
    }
    dt_array_clear(&first);
    dt_array_clear(&last);
    return status;
}

/* Brings what is shown of x to the host. */
static dt_status
fetch_shown(const dt_array *x, page *p, dt_error *err)
{
    dt_array part, next = DT_ARRAY_EMPTY;
    dt_status status = DT_OK;
    int64_t edge = p->options.edgeitems;
    bool large = dt_array_numel(x) > p->options.threshold;
    DT_TRY(dt_settle(x, DT_READ, err));
    dt_array_copy_handle(x, &part);
    for (int d = 0; d < x->ndim && status == DT_OK; d++) {
        p->cut[d] = large && x->shape[d] > 2 * edge;
        if (p->cut[d] && (status = edges_of(&part, d, edge, &next, err)) == DT_OK) {
            dt_array_clear(&part);
            part = next;
            next = DT_ARRAY_EMPTY;
        }
    }
    if (status == DT_OK &&
        (status = dt_to(&part, (dt_device){DT_CPU, 0}, (dt_dtype)x->dtype, false, false, &next, err)) == DT_OK) {
        status = dt_contiguous(&next, &p->array, err);
    }
    dt_array_clear(&part);
    dt_array_clear(&next);
    return status;
}

/* ---------------------------------------------------------------- one element */

static dt_scalar
element(const page *p, int64_t i)
{
    dt_dtype dtype = (dt_dtype)p->array.dtype;
    return dt_scalar_load(dtype, (char *)dt_array_data(&p->array) + i * (int64_t)dt_itemsize(dtype));
}

static void
append_float(text *t, const page *p, double value)
{
    if (!isfinite(value)) {
        append_string(t, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
        return;
    }
    bool whole = !p->scientific && (p->integers || p->options.precision == 0);
    int precision = whole ? 0 : (int)p->options.precision;
    char *number = PyOS_double_to_string(value, p->scientific ? 'e' : 'f', precision, 0, NULL);
    if (number == NULL) {
        PyErr_Clear();
        t->failed = true;
        return;
    }
    append_string(t, number);
    append_string(t, whole ? "." : "");
    PyMem_Free(number);
}

static void
append_number(text *t, const page *p, int64_t i)
{
    char integer[24];
    dt_scalar value = element(p, i);
    switch (value.kind) {
    case DT_CATEGORY_BOOL:
        append_string(t, value.i ? "True" : "False");
        return;
    case DT_CATEGORY_INT:
        PyOS_snprintf(integer, sizeof(integer), "%lld", (long long)value.i);
        append_string(t, integer);
        return;
    default:
        append_float(t, p, value.f);
    }
}

/* The characters of element i; t is scratch. */
static size_t
element_width(text *t, const page *p, int64_t i)
{
    t->length = 0;
    append_number(t, p, i);
    return t->length;
}

static bool
wants_exponents(const page *p, double smallest, double largest)
{
    if (p->options.sci_mode >= 0) {
        return p->options.sci_mode;
    }
    return largest > 0 && (largest / smallest > 1000 || largest > 1e8 || (!p->integers && smallest < 1e-4));
}

/* How all elements are written, from the smallest and the largest of them; t is scratch. */
static void
choose_format(text *t, page *p)
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
    p->scientific = wants_exponents(p, smallest, largest);
    p->width = 1;
    for (int64_t i = 0; i < n; i++) {
        size_t width = element_width(t, p, i);
        p->width = width > p->width ? width : p->width;
    }
    t->length = 0;
}

/* ---------------------------------------------------------------- layout */

static void
append_element(text *t, const page *p, int64_t i)
{
    size_t start = t->length;
    append_times(t, " ", p->width);
    size_t end = t->length;
    append_number(t, p, i);
    if (!t->failed) { /* the number, right-aligned in the room made for it */
        size_t n = t->length - end;
        memmove(t->data + start + p->width - n, t->data + end, n);
        t->length = end;
    }
}

/* Between two entries of a row: a comma, and a new line where this one is full. */
static void
append_separator(text *t, int64_t entry, int64_t per_line, int64_t indent)
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

/* Entry k of n, where the one after the first edge stands for all that is left out: the index in the page, or -1. */
static int64_t
entry_index(const page *p, int dim, int64_t k)
{
    int64_t edge = p->options.edgeitems;
    return !p->cut[dim] || k < edge ? k : k == edge ? -1 : k - 1;
}

static void
append_row(text *t, const page *p, int64_t offset, int64_t indent)
{
    int dim = p->array.ndim - 1;
    int64_t entries = p->array.shape[dim] + p->cut[dim];
    int64_t per_line = (p->options.linewidth - indent) / ((int64_t)p->width + 2);
    append_string(t, "[");
    for (int64_t k = 0; k < entries; k++) {
        int64_t i = entry_index(p, dim, k);
        append_separator(t, k, per_line, indent);
        if (i < 0) {
            append_string(t, k == 0 ? "..." : " ...");
        } else {
            append_element(t, p, offset + i);
        }
    }
    append_string(t, "]");
}

static void
append_values(text *t, const page *p, int dim, int64_t offset, int64_t indent)
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
    for (int64_t k = 0; k < x->shape[dim] + p->cut[dim]; k++) {
        int64_t i = entry_index(p, dim, k);
        if (k > 0) {
            append_string(t, ",");
            append_times(t, "\n", (size_t)(x->ndim - dim - 1));
            append_times(t, " ", (size_t)indent + 1);
        }
        if (i < 0) {
            append_string(t, "...");
        } else {
            append_values(t, p, dim + 1, offset + i * x->strides[dim], indent + 1);
        }
    }
    append_string(t, "]");
}

/* One fact after the values, on a line of its own where this one has no room. */
static void
append_fact(text *t, const page *p, const char *fact, size_t indent)
{
    size_t line = t->length;
    while (!t->failed && line > 0 && t->data[line - 1] != '\n') {
        line--;
    }
    bool fits = t->length - line + strlen(fact) + 3 <= (size_t)p->options.linewidth;
    append_string(t, fits ? ", " : ",\n");
    append_times(t, " ", fits ? 0 : indent);
    append_string(t, fact);
}

static void
append_size(text *t, const dt_array *x, const page *p, size_t indent)
{
    char fact[DT_MAX_NDIM * 32], *end = fact;
    for (int d = 0; d < x->ndim; d++) {
        end += PyOS_snprintf(end, 32, d ? ", %lld" : "size=(%lld", (long long)x->shape[d]);
    }
    (void)PyOS_snprintf(end, 3, "%s", x->ndim == 1 ? ",)" : ")");
    append_fact(t, p, fact, indent);
}

/* "requires_grad=True" of a leaf, "grad_fn=<MulBackward0>" of a result; None where no gradient flows. */
static PyObject *
gradient_fact(PyObject *self)
{
    if (!dt_wants_grad(py_array_of(self))) {
        Py_RETURN_NONE;
    }
    PyObject *function = py_grad_fn(self, NULL), *name = NULL, *fact = NULL;
    if (function == Py_None) {
        fact = PyUnicode_FromString("requires_grad=True");
    } else if (function != NULL && (name = PyObject_CallMethod(function, "name", NULL)) != NULL) {
        fact = PyUnicode_FromFormat("grad_fn=<%S>", name);
    }
    Py_XDECREF(function);
    Py_XDECREF(name);
    return fact;
}

/* The size where the values do not tell it; device and dtype always; what there is to say of gradients. */
static void
append_facts(text *t, const dt_array *x, const page *p, size_t indent, PyObject *gradient)
{
    char fact[64], device[DT_DEVICE_TEXT];
    bool cut = false;
    for (int d = 0; d < x->ndim; d++) {
        cut = cut || p->cut[d];
    }
    if (cut || (dt_array_numel(x) == 0 && x->ndim != 1)) {
        append_size(t, x, p, indent);
    }
    PyOS_snprintf(fact, sizeof(fact), "device='%s'", dt_device_text(dt_array_device(x), device));
    append_fact(t, p, fact, indent);
    PyOS_snprintf(fact, sizeof(fact), "dtype=%s", dt_dtypes[x->dtype].name);
    append_fact(t, p, fact, indent);
    const char *more = gradient == Py_None ? NULL : PyUnicode_AsUTF8(gradient);
    if (more != NULL) {
        append_fact(t, p, more, indent);
    }
    append_string(t, ")");
}

PyObject *
py_repr(PyObject *self)
{
    const dt_array *x = py_array_of(self);
    page p = {.options = py_print_options_now(), .array = DT_ARRAY_EMPTY};
    dt_error err;
    dt_status status;
    PyObject *gradient = gradient_fact(self);
    if (gradient == NULL) {
        return NULL;
    }
    PY_MOVE("repr", self, py_on_device(x), status, fetch_shown(x, &p, &err));
    if (status != DT_OK) {
        Py_DECREF(gradient);
        return py_raise(py_state_of(self), &err, &self, 1);
    }
    text t = {0};
    const char *dot = strrchr(Py_TYPE(self)->tp_name, '.'), *name = dot == NULL ? Py_TYPE(self)->tp_name : dot + 1;
    size_t indent = strlen(name) + 1;
    choose_format(&t, &p);
    append_string(&t, name);
    append_string(&t, "(");
    if (dt_array_numel(x) == 0) {
        append_string(&t, "[]");
    } else {
        dt_array_set_contiguous(&p.array);
        append_values(&t, &p, 0, 0, (int64_t)indent);
    }
    append_facts(&t, x, &p, indent, gradient);
    Py_DECREF(gradient);
    dt_array_clear(&p.array);
    PyObject *result = t.failed ? PyErr_NoMemory() : PyUnicode_FromStringAndSize(t.data, (Py_ssize_t)t.length);
    PyMem_Free(t.data);
    return result;
}
