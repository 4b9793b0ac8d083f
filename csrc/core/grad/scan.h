/* scan.h: the formulas of scan.c, for the table of formulas.c. */
#ifndef DT_GRAD_SCAN_H
#define DT_GRAD_SCAN_H

struct dt_tape;
void dt_cumsum_gradient(struct dt_tape *t);
void dt_cumprod_gradient(struct dt_tape *t);
void dt_logcumsumexp_gradient(struct dt_tape *t);

#endif
