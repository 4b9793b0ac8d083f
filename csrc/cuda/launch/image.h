/* image.h: the kernels as the build embeds them; written by tools/package/kernel_image.py. */
#ifndef DT_CUDA_IMAGE_H
#define DT_CUDA_IMAGE_H

#include <stddef.h>

/* Machine code: one fat binary for each source file and dtype; none where there was no nvcc. */
typedef struct {
    const unsigned char *data;
    size_t nbytes;
} cuda_image;

/* Which image holds a kernel, and how many bytes its argument has there. */
typedef struct {
    const char *name;
    int image;
    unsigned args_size;
} cuda_image_kernel;

extern const int cuda_nimages;
extern const cuda_image cuda_images[];
extern const int cuda_nimage_kernels;
extern const cuda_image_kernel cuda_image_kernels[]; /* by name */
extern const char cuda_image_archs[];                /* "sm_90 compute_75" */

/* The source with every file that it includes, by the text between the quotes; and a hash of it all. */
extern const char cuda_kernel_source[];
extern const char cuda_kernel_hash[];
extern const int cuda_kernel_nheaders;
extern const char *const cuda_kernel_headers[];
extern const char *const cuda_kernel_header_names[];

#endif
