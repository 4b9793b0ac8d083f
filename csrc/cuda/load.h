/* load.h: finding shared libraries, with a memory of every attempt (load.c). */
#ifndef DT_CUDA_LOAD_H
#define DT_CUDA_LOAD_H

#include "front.h"

const char *cuda_load_soname(dt_library library);
/* What users lose without it. */
const char *cuda_load_purpose(dt_library library);
/* The least version that will do, by the library's own count. */
int cuda_load_least(dt_library library);
/* The library's handle, or NULL; not closed again. A copy that is too old is taken where there is no other. A second
 * call gives the same handle. */
void *cuda_load_library(dt_library library);
void *cuda_load_symbol(void *handle, dt_library library, const char *name);
/* Where it was loaded from, "?" when that is not known. */
void cuda_load_path(dt_library library, char *text, size_t size);
/* The attempts for one library, as cuda_api_report gives them for all. */
size_t cuda_load_report(dt_library library, char *text, size_t size);

#endif
