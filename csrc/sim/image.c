/* image.c: what cuModuleLoadData takes: a fat binary of nvcc or PTX, which stand for every kernel, since the machine
 * code in them is not looked at; and the cubin of the simulated NVRTC, which names the kernels that it stands for, or
 * carries the executable of a user's. */
#include "host.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- fat binaries: a header, then entries */

enum { FAT_PTX = 1, FAT_CUBIN = 2 };

typedef struct {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t nbytes; /* of the entries */
} fat_header;

typedef struct {
    uint16_t kind, version;
    uint32_t header_bytes;
    uint64_t nbytes;
    uint32_t unused[3], arch;
} fat_entry;

static bool
runs_cubin(int arch, int capability)
{
    return arch / 10 == capability / 10 && arch <= capability;
}

static CUresult
read_fat(const unsigned char *image, int capability)
{
    fat_header head;
    memcpy(&head, image, sizeof(head));
    const unsigned char *at = image + head.header_bytes;
    for (uint64_t left = head.nbytes; left >= sizeof(fat_entry);) {
        fat_entry entry;
        memcpy(&entry, at, sizeof(entry));
        int arch = (int)entry.arch;
        if ((entry.kind == FAT_PTX && arch <= capability) ||
            (entry.kind == FAT_CUBIN && runs_cubin(arch, capability))) {
            return CUDA_SUCCESS;
        }
        uint64_t step = entry.header_bytes + entry.nbytes;
        if (step == 0 || step > left) {
            return CUDA_ERROR_INVALID_IMAGE;
        }
        at += step;
        left -= step;
    }
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

/* ---------------------------------------------------------------- ours */

static void
digest_of(const sim_cubin *cubin, uint8_t digest[DT_SHA256_BYTES])
{
    dt_sha256 hash;
    dt_sha256_init(&hash);
    dt_sha256_add(&hash, &cubin->arch, sizeof(*cubin) - offsetof(sim_cubin, arch));
    dt_sha256_end(&hash, digest);
}

/* Also of what the executable was built around, so that one of another version does not count. */
static void
digest_contents(const void *executable, size_t nbytes, uint8_t digest[DT_SHA256_BYTES])
{
    dt_sha256 hash;
    dt_sha256_init(&hash);
    dt_sha256_add(&hash, sim_host_hash, sim_host_hash != NULL ? strlen(sim_host_hash) : 0);
    dt_sha256_add(&hash, nbytes > 0 ? executable : "", nbytes);
    dt_sha256_end(&hash, digest);
}

void
sim_cubin_seal(sim_cubin *cubin, const void *executable)
{
    memcpy(cubin->magic, SIM_CUBIN_MAGIC, sizeof(cubin->magic));
    digest_contents(executable, (size_t)cubin->nbytes, cubin->contents);
    digest_of(cubin, cubin->digest);
}

static CUresult
read_cubin(const unsigned char *image, int capability, sim_image *out)
{
    sim_cubin cubin;
    uint8_t digest[DT_SHA256_BYTES];
    memcpy(&cubin, image, sizeof(cubin));
    digest_of(&cubin, digest);
    if (memcmp(digest, cubin.digest, sizeof(digest)) != 0) {
        return CUDA_ERROR_INVALID_IMAGE;
    }
    digest_contents(image + sizeof(cubin), (size_t)cubin.nbytes, digest);
    if (memcmp(digest, cubin.contents, sizeof(digest)) != 0) {
        return CUDA_ERROR_INVALID_IMAGE;
    }
    memcpy(out->kernel, cubin.kernel, SIM_KERNEL_NAME);
    out->executable = cubin.nbytes > 0 ? image + sizeof(cubin) : NULL;
    out->nbytes = (size_t)cubin.nbytes;
    return runs_cubin(cubin.arch, capability) ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU;
}

CUresult
sim_image_read(const void *image, int capability, sim_image *out)
{
    static const unsigned char fat_magic[4] = {0x50, 0xed, 0x55, 0xba};
    static const char target[] = ".target sm_";
    const unsigned char *b = image;
    *out = (sim_image){.executable = NULL};
    if (strncmp(image, SIM_CUBIN_MAGIC, sizeof(SIM_CUBIN_MAGIC)) == 0) {
        return read_cubin(image, capability, out);
    }
    if (strncmp(image, ".version", strlen(".version")) == 0) {
        const char *arch = strstr(image, target);
        if (arch == NULL) {
            return CUDA_ERROR_INVALID_PTX;
        }
        return strtol(arch + strlen(target), NULL, 10) <= capability ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    if (b[0] == fat_magic[0] && b[1] == fat_magic[1] && b[2] == fat_magic[2] && b[3] == fat_magic[3]) {
        return read_fat(image, capability);
    }
    return CUDA_ERROR_INVALID_IMAGE;
}
