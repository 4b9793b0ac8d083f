/* sentence.c: the machinery behind check.c: operands as text, and who is the odd one out. */
#include "sentence.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void
dt_sentence_add(dt_error *err, const char *format, ...)
{
    size_t used = strlen(err->message);
    va_list args;
    va_start(args, format);
    vsnprintf(err->message + used, sizeof(err->message) - used, format, args);
    va_end(args);
}

static const char *
name_text(const char *name, int index, char text[DT_NAME_TEXT])
{
    if (index < 0) {
        return name;
    }
    snprintf(text, DT_NAME_TEXT, "%s[%d]", name, index);
    return text;
}

const char *
dt_operand_name(const dt_operand *operand, char text[DT_NAME_TEXT])
{
    return name_text(operand->name, operand->index, text);
}

const char *
dt_shape_text(int ndim, const int64_t *shape, char text[DT_SHAPE_TEXT])
{
    size_t used = 0;
    text[used++] = '(';
    for (int d = 0; d < ndim && used < DT_SHAPE_TEXT - 2; d++) {
        used += (size_t)snprintf(text + used, DT_SHAPE_TEXT - used, d ? ", %lld" : "%lld", (long long)shape[d]);
    }
    snprintf(text + used, DT_SHAPE_TEXT - used, ndim == 1 ? ",)" : ")");
    return text;
}

const char *
dt_array_shape_text(const dt_array *a, char text[DT_SHAPE_TEXT])
{
    return dt_shape_text(a->ndim, a->shape, text);
}

bool
dt_operand_present(const dt_operand *operand)
{
    return operand->array != NULL && operand->array->storage != NULL;
}

/* " (op: a on cuda:0, b on cpu)" */
void
dt_sentence_operands(dt_error *err, dt_show what)
{
    const char *separator = "";
    dt_sentence_add(err, " (%s: ", err->op);
    for (int i = 0; i < err->noperands; i++) {
        char name[DT_NAME_TEXT], device[DT_DEVICE_TEXT], shape[DT_SHAPE_TEXT];
        const dt_error_operand *operand = &err->operands[i];
        dt_sentence_add(err, "%s%s ", separator, name_text(operand->name, operand->index, name));
        switch (what) {
        case DT_SHOW_DEVICE:
            dt_sentence_add(err, "on %s", dt_device_text(operand->device, device));
            break;
        case DT_SHOW_DTYPE:
            dt_sentence_add(err, "%s", dt_dtypes[operand->dtype].name);
            break;
        case DT_SHOW_SHAPE:
            dt_sentence_add(err, "%s", dt_shape_text(operand->ndim, operand->shape, shape));
            break;
        }
        separator = ", ";
    }
    dt_sentence_add(err, ")");
}

/* Starts a failure: the operands that are there, no text yet. */
void
dt_sentence_begin(dt_error *err, dt_status status, const char *code, const char *op, const dt_operand *in, int n)
{
    dt_fail(err, status, code, op, "%s", "");
    for (int i = 0; i < n && err->noperands < DT_MAX_OPERANDS; i++) {
        if (dt_operand_present(&in[i])) {
            err->operands[err->noperands++] = dt_describe_operand(&in[i]);
        }
    }
}

/* ---------------------------------------------------------------- who is the odd one out */

/* Parameters and statistics of a layer are what the user moves as a whole; the data is what is forgotten. */
static bool
is_parameter(const dt_operand *operand)
{
    static const char *const names[] = {"weight", "bias", "running_mean", "running_var"};
    bool found = false;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        found = found || strcmp(operand->name, names[i]) == 0;
    }
    return found;
}

static bool
same_value(const dt_operand *a, const dt_operand *b, dt_show what)
{
    return what == DT_SHOW_DEVICE ? dt_device_equal(dt_array_device(a->array), dt_array_device(b->array))
                                  : a->array->dtype == b->array->dtype;
}

/* Higher for what is forgotten more often: the CPU; an integer among floats, then float64. */
static int
oddness(const dt_operand *operand, dt_show what)
{
    const dt_array *x = operand->array;
    if (what == DT_SHOW_DEVICE) {
        return dt_array_device(x).type == DT_CPU;
    }
    return !dt_is_float((dt_dtype)x->dtype) ? 2 : x->dtype == DT_FLOAT64;
}

/* Of a CPU and a CUDA operand the CPU one; of an integer and a float the integer; of float64 and another float the
 * float64 one; the data rather than the parameter; else the later one. */
static bool
is_odder(const dt_operand *a, const dt_operand *b, dt_show what)
{
    const int odd_a = oddness(a, what), odd_b = oddness(b, what);
    if (odd_a != odd_b) {
        return odd_a > odd_b;
    }
    if (is_parameter(a) != is_parameter(b)) {
        return !is_parameter(a);
    }
    return a > b;
}

int
dt_odd_one_out(const dt_operand *in, int n, dt_show what)
{
    int best = -1, best_votes = 0;
    for (int i = 0; i < n; i++) {
        int votes = 0;
        if (!dt_operand_present(&in[i])) {
            continue;
        }
        for (int j = 0; j < n; j++) {
            votes += dt_operand_present(&in[j]) && same_value(&in[i], &in[j], what);
        }
        if (best < 0 || votes < best_votes || (votes == best_votes && is_odder(&in[i], &in[best], what))) {
            best = i;
            best_votes = votes;
        }
    }
    return best;
}

/* What is made to go with the values that it stands beside. */
static bool
is_companion(const dt_operand *operand)
{
    return strcmp(operand->name, "condition") == 0 || strcmp(operand->name, "mask") == 0;
}

/* Of two operands of one list whose sizes disagree: the condition or mask, the data rather than the parameter, else the
 * later. */
const dt_operand *
dt_odder(const dt_operand *a, const dt_operand *b)
{
    if (is_companion(a) != is_companion(b)) {
        return is_companion(a) ? a : b;
    }
    if (is_parameter(a) != is_parameter(b)) {
        return is_parameter(a) ? b : a;
    }
    return a > b ? a : b;
}

void
dt_sentence_join(dt_error *err, const dt_operand *more)
{
    char name[DT_NAME_TEXT], shape[DT_SHAPE_TEXT];
    const size_t used = strlen(err->message);
    if (err->noperands == 0 || err->noperands == DT_MAX_OPERANDS || used == 0 || err->message[used - 1] != ')') {
        return;
    }
    err->operands[err->noperands++] = dt_describe_operand(more);
    err->message[used - 1] = '\0';
    dt_sentence_add(err, ", %s %s)", dt_operand_name(more, name), dt_array_shape_text(more->array, shape));
}

void
dt_sentence_culprit(dt_error *err, const dt_operand *odd)
{
    for (int i = 0; i < err->noperands; i++) {
        const dt_error_operand *one = &err->operands[i];
        if (one->identity == (uintptr_t)odd->array && one->index == odd->index && strcmp(one->name, odd->name) == 0) {
            err->culprit = i;
        }
    }
}

/* A whole failure about shapes: the sentence, then every operand with its shape. */
dt_status
dt_sentence_shapes(const char *code, const char *op, const dt_operand *in, int n, const dt_operand *odd, dt_error *err,
                   const char *format, ...)
{
    dt_sentence_begin(err, DT_ESHAPE, code, op, in, n);
    va_list args;
    va_start(args, format);
    vsnprintf(err->message, sizeof(err->message), format, args);
    va_end(args);
    dt_sentence_culprit(err, odd);
    dt_sentence_operands(err, DT_SHOW_SHAPE);
    return DT_ESHAPE;
}
