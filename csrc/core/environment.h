/* environment.h: what the environment chooses, and which of it is not understood. */
#ifndef DT_ENVIRONMENT_H
#define DT_ENVIRONMENT_H

#include "devtensor.h"

typedef enum {
#define DT_NUMBER(name, least, most, valid) DT_ENV_##name,
#define DT_WORD(name, words, valid) DT_ENV_##name,
#define DT_PATH(name, valid) DT_ENV_##name,
#include "environment.def"
#undef DT_NUMBER
#undef DT_WORD
#undef DT_PATH
    DT_NVARIABLES
} dt_variable;

/* What a variable of each kind says; otherwise, which is where it is not set, empty or not understood, the default. */
uint64_t dt_environment_number(dt_variable variable, uint64_t otherwise);
int dt_environment_word(dt_variable variable, int otherwise); /* its position in the list of words */
const char *dt_environment_path(dt_variable variable);        /* NULL by default */

typedef struct {
    const char *name, *text, *valid;
} dt_misread;

/* Whether variable is not understood. */
bool dt_environment_misread(dt_variable variable, dt_misread *out);

#endif
