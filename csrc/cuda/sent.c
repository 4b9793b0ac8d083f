/* sent.c: the last kernels and library calls that were sent to a device. Work that goes wrong there is noticed by a
 * later call, and one of these it was. */
#include <stdio.h>

#include "raw.h"

void
cuda_last_sent(int index, char *text, size_t size)
{
    text[0] = '\0';
    cuda_device *device = cuda_lost(index);
    if (device == NULL) {
        return;
    }
    unsigned n = atomic_load(&device->nsent);
    size_t length = 0;
    for (unsigned i = 1; i <= CUDA_SENT && i <= n; i++) {
        unsigned what = atomic_load(&device->sent[(n - i) % CUDA_SENT]);
        char name[64];
        if (what & CUDA_SENT_CALL) {
            snprintf(name, sizeof(name), "%s", cuda_api_names[what & ~CUDA_SENT_CALL]);
        } else if (what & CUDA_SENT_RAW) {
            snprintf(name, sizeof(name), "%s", cuda_raw_name(what & ~CUDA_SENT_RAW));
        } else if (what > 0) {
            cuda_function_name(what - 1, name, sizeof(name));
        } else {
            continue; /* another thread is about to write it */
        }
        int wrote = snprintf(text + length, size - length, "%s%s", length > 0 ? ", " : "", name);
        if (wrote < 0 || length + (size_t)wrote >= size) {
            text[length] = '\0';
            return;
        }
        length += (size_t)wrote;
    }
}
