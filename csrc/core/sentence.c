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

/* Parameters of a layer are what the user moves as a whole; the data is what is forgotten. */
static bool
is_parameter(const dt_operand *operand)
{
    return strcmp(operand->name, "weight") == 0 || strcmp(operand->name, "bias") == 0;
}

static bool
same_value(const dt_operand *a, const dt_operand *b, dt_show what)
{
    return what == DT_SHOW_DEVICE ? dt_device_equal(dt_array_device(a->array), dt_array_device(b->array))
                                  : a->array->dtype == b->array->dtype;
}

/* Of a CPU and a CUDA operand the CPU one; of float64 and another float the float64 one; the data rather than the
 * parameter; else the later one. */
static bool
is_odder(const dt_operand *a, const dt_operand *b, dt_show what)
{
    bool special_a = what == DT_SHOW_DEVICE ? dt_array_device(a->array).type == DT_CPU : a->array->dtype == DT_FLOAT64;
    bool special_b = what == DT_SHOW_DEVICE ? dt_array_device(b->array).type == DT_CPU : b->array->dtype == DT_FLOAT64;
    if (special_a != special_b) {
        return special_a;
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

/* Of two operands whose sizes disagree: the data rather than the parameter, else the later. */
const dt_operand *
dt_odder(const dt_operand *a, const dt_operand *b)
{
    return is_parameter(b) && !is_parameter(a) ? a : b;
}

void
dt_sentence_culprit(dt_error *err, const dt_operand *odd)
{
    for (int i = 0; i < err->noperands; i++) {
        if (err->operands[i].identity == (uintptr_t)odd->array && err->operands[i].index == odd->index) {
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
