/* task.h: the mark of a node in a run of backward, and what was given to it. */
#ifndef DT_GRAD_TASK_H
#define DT_GRAD_TASK_H

#include "rows.h"

typedef struct dt_task {
    dt_node *node;
    struct dt_run *run;
    struct dt_task *outer; /* the mark that a run around this one has put there */
    uint32_t pending;
    int next;        /* while it is marked: the next operand to look at */
    bool needed;     /* a wanted gradient is here, or reached from here */
    bool passes;     /* a wanted gradient is reached from here */
    int32_t wanted;  /* its first place in found, or -1 */
    dt_array *sum;   /* what was given so far; NULL: nothing */
    dt_rows *rows;   /* given by products, and not in sum yet; NULL: none */
    dt_array *parts; /* of a function with several outputs: the same of each */
    int nparts;
} dt_task;

/* Adds gradient, which fits, to what task was given. */
dt_status dt_task_add(dt_tape *t, dt_task *task, dt_value gradient) DT_MUST_CHECK;
/* Adds the product of the rows that it was given, if any. */
dt_status dt_task_add_rows(dt_tape *t, dt_task *task) DT_MUST_CHECK;
void dt_task_drop(dt_task *task);

#endif
