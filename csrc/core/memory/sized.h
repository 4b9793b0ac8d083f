/* sized.h: blocks of the host of more than 64 bytes and fewer than DT_LARGE_BLOCK, aligned to 64 (memory.c). Each
 * thread keeps a few of each size, since an aligned block costs the system's allocator more than a thousand additions.
 */
#ifndef DT_SIZED_H
#define DT_SIZED_H

#include <stddef.h>

void *dt_sized_new(size_t nbytes);
/* The same nbytes as when it was asked for. */
void dt_sized_free(void *p, size_t nbytes);

#endif
