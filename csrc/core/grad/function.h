/* function.h: formulas of functions of the front's. */
#ifndef DT_GRAD_FUNCTION_H
#define DT_GRAD_FUNCTION_H

struct dt_tape;

/* What a node of each kind has as parameters. */
typedef struct {
    int noutputs;
    int sources[]; /* of what it keeps */
} dt_function_params;

typedef struct {
    int index;
} dt_output_params;

void dt_function_gradient(struct dt_tape *t);
void dt_output_gradient(struct dt_tape *t);

#endif
