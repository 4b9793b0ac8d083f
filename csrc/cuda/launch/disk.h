/* disk.h: what took long to make, kept between processes. Nothing here fails an op. */
#ifndef DT_CUDA_DISK_H
#define DT_CUDA_DISK_H

#include "../../core/numbers/sha256.h"

/* What was kept under key, to be released by dt_free; NULL when there is nothing that can be trusted. */
void *cuda_disk_read(const uint8_t key[DT_SHA256_BYTES], size_t *nbytes);
void cuda_disk_write(const uint8_t key[DT_SHA256_BYTES], const void *data, size_t nbytes);

/* The directory, and NULL or why nothing is kept there. Writes at most size bytes with the 0. */
const char *cuda_disk_where(char *path, size_t size);

#endif
