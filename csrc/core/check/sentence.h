/* sentence.h: how a sentence about operands is put together: the text, the list of operands, the culprit. */
#ifndef DT_SENTENCE_H
#define DT_SENTENCE_H

#include "../devtensor.h"

#define DT_NAME_TEXT 40
#define DT_SHAPE_TEXT 192

typedef enum { DT_SHOW_DEVICE, DT_SHOW_DTYPE, DT_SHOW_SHAPE } dt_show;

bool dt_operand_present(const dt_operand *operand);
/* Whether dtype and shape of an operand must go with the others': out= is checked against the result. */
static inline bool
dt_operand_takes_part(const dt_operand *operand)
{
    return operand->array != NULL && operand->array->storage != NULL && operand->index != DT_WRITTEN;
}
/* These write to text and return it. */
const char *dt_operand_name(const dt_operand *operand, char text[DT_NAME_TEXT]);
const char *dt_shape_text(int ndim, const int64_t *shape, char text[DT_SHAPE_TEXT]);
const char *dt_array_shape_text(const dt_array *a, char text[DT_SHAPE_TEXT]);

/* Starts a failure: the operands that are there, no text yet; then text is added to it. */
void dt_sentence_begin(dt_error *err, dt_status status, const char *code, const char *op, const dt_operand *in, int n);
void dt_sentence_add(dt_error *err, const char *format, ...) DT_PRINTF(2, 3);
/* " (op: a on cuda:0, b on cpu)" */
void dt_sentence_operands(dt_error *err, dt_show what);
void dt_sentence_culprit(dt_error *err, const dt_operand *odd);
/* A whole failure about shapes: the sentence, then every operand with its shape; odd is to blame. */
dt_status dt_sentence_shapes(const char *code, const char *op, const dt_operand *in, int n, const dt_operand *odd,
                             dt_error *err, const char *format, ...) DT_PRINTF(7, 8);
/* One more operand at the end of the list that the text of err ends with, which shows shapes. */
void dt_sentence_join(dt_error *err, const dt_operand *more);

/* By majority of those that are there; of a tie, what is forgotten more often (see sentence.c). An index into in. */
int dt_odd_one_out(const dt_operand *in, int n, dt_show what);
/* Of two operands of one list whose sizes disagree. */
const dt_operand *dt_odder(const dt_operand *a, const dt_operand *b);

#endif
