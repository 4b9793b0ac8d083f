/* shape.h: the formulas of shape.c, index.c and conv.c, for the table in formulas.c. */
#ifndef DT_GRAD_SHAPE_H
#define DT_GRAD_SHAPE_H

struct dt_tape;

void reshape_gradient(struct dt_tape *t);
void transpose_gradient(struct dt_tape *t);
void permute_gradient(struct dt_tape *t);
void pass_gradient(struct dt_tape *t);
void subset_gradient(struct dt_tape *t);
void strided_gradient(struct dt_tape *t);
void embed_gradient(struct dt_tape *t);
void without_gradient(struct dt_tape *t);
void write_gradient(struct dt_tape *t);
void to_gradient(struct dt_tape *t);
void copy_gradient(struct dt_tape *t);
void cat_gradient(struct dt_tape *t);
void stack_gradient(struct dt_tape *t);
void tri_gradient(struct dt_tape *t);
void setitem_gradient(struct dt_tape *t);
void index_get_gradient(struct dt_tape *t);
void index_add_to_gradient(struct dt_tape *t);
void gather_gradient(struct dt_tape *t);
void add_along_gradient(struct dt_tape *t);
void scatter_add_gradient(struct dt_tape *t);
void index_add_gradient(struct dt_tape *t);
void conv2d_gradient(struct dt_tape *t);
void cell_gradient(struct dt_tape *t);
void resample_gradient(struct dt_tape *t);
void normalize_gradient(struct dt_tape *t);
void conv_transpose2d_gradient(struct dt_tape *t);
void max_pool2d_gradient(struct dt_tape *t);
void avg_pool2d_gradient(struct dt_tape *t);

#endif
