/* environment.c: the variables of environment.def. */
#include "environment.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *words, *valid;
    uint64_t least, most;
    bool path;
} variables[DT_NVARIABLES] = {
#define DT_NUMBER(name_, least_, most_, valid_)                                                                        \
    [DT_ENV_##name_] = {.name = "DEVTENSOR_" #name_, .valid = (valid_), .least = (least_), .most = (most_)},
#define DT_WORD(name_, words_, valid_)                                                                                 \
    [DT_ENV_##name_] = {.name = "DEVTENSOR_" #name_, .valid = (valid_), .words = (words_)},
#define DT_PATH(name_, valid_) [DT_ENV_##name_] = {.name = "DEVTENSOR_" #name_, .valid = (valid_), .path = true},
#include "environment.def"
#undef DT_NUMBER
#undef DT_WORD
#undef DT_PATH
};

/* NULL where it is not set, or empty. */
static const char *
text_of(dt_variable v)
{
    const char *text = getenv(variables[v].name);
    return text == NULL || text[0] == '\0' ? NULL : text;
}

/* Where text stands in a list of words with spaces between; -1: nowhere. */
static int
position(const char *words, const char *text)
{
    size_t length = strlen(text);
    for (int i = 0; *words != '\0'; i++) {
        size_t n = strcspn(words, " ");
        if (n == length && memcmp(words, text, n) == 0) {
            return i;
        }
        words += n + strspn(words + n, " ");
    }
    return -1;
}

static bool
is_number(dt_variable v, const char *text)
{
    uint64_t value = strtoull(text, NULL, 10);
    return text[strspn(text, "0123456789")] == '\0' && value >= variables[v].least && value <= variables[v].most;
}

static bool
understood(dt_variable v, const char *text)
{
    if (variables[v].words != NULL) {
        return position(variables[v].words, text) >= 0;
    }
    return variables[v].path ? text[0] == '/' : is_number(v, text);
}

static const char *
text_understood(dt_variable v)
{
    const char *text = text_of(v);
    return text != NULL && understood(v, text) ? text : NULL;
}

uint64_t
dt_environment_number(dt_variable variable, uint64_t otherwise)
{
    const char *text = text_understood(variable);
    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

int
dt_environment_word(dt_variable variable, int otherwise)
{
    const char *text = text_understood(variable);
    return text != NULL ? position(variables[variable].words, text) : otherwise;
}

const char *
dt_environment_path(dt_variable variable)
{
    return text_understood(variable);
}

bool
dt_environment_misread(dt_variable variable, dt_misread *out)
{
    *out = (dt_misread){variables[variable].name, text_of(variable), variables[variable].valid};
    return out->text != NULL && !understood(variable, out->text);
}
