/* sha256.h: SHA-256 (FIPS 180-4), for files whose contents must be what was written. */
#ifndef DT_SHA256_H
#define DT_SHA256_H

#include "../devtensor.h"

#define DT_SHA256_BYTES 32

typedef struct {
    uint32_t state[8];
    uint64_t nbytes;
    uint8_t block[64];
} dt_sha256;

void dt_sha256_init(dt_sha256 *hash);
void dt_sha256_add(dt_sha256 *hash, const void *data, size_t nbytes);
void dt_sha256_end(dt_sha256 *hash, uint8_t digest[DT_SHA256_BYTES]);
/* text: 64 lower-case digits and the 0. */
void dt_sha256_text(const uint8_t digest[DT_SHA256_BYTES], char text[2 * DT_SHA256_BYTES + 1]);

#endif
