/* layout.h: channels last, the order of images in memory that convolutions like best. */
#ifndef DT_LAYOUT_H
#define DT_LAYOUT_H

#include "devtensor.h"

/* Whether a is a batch of images, (N, C, H, W), whose channels lie innermost in memory. */
bool dt_is_channels_last(const dt_array *a);
/* Lays out a new one so. */
void dt_set_channels_last(dt_array *a);

#endif
