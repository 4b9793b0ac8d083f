/* source.c: what is done to a user's CUDA C++ before the host's compiler sees it: little. Dynamic shared memory gets
 * its address, and what cannot be simulated is told with its line. */
#include "host.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- text */

static bool
make_room_for_source(sim_text *text, size_t nbytes)
{
    if (text->failed || nbytes < text->room - text->used) {
        return !text->failed;
    }
    size_t room = 2 * (text->used + nbytes) + 256;
    char *bigger = dt_malloc(room);
    if (bigger == NULL) {
        text->failed = true;
        return false;
    }
    if (text->used > 0) {
        memcpy(bigger, text->data, text->used);
    }
    bigger[text->used] = '\0';
    dt_free(text->data);
    text->data = bigger;
    text->room = room;
    return true;
}

void
sim_text_add(sim_text *text, const char *data, size_t nbytes)
{
    if (make_room_for_source(text, nbytes) && nbytes > 0) { /* of nothing data may be NULL */
        memcpy(text->data + text->used, data, nbytes);
        text->used += nbytes;
        text->data[text->used] = '\0';
    }
}

void
sim_text_print(sim_text *text, const char *format, ...)
{
    char line[1024];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (n > 0) {
        sim_text_add(text, line, (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1);
    }
}

/* ---------------------------------------------------------------- tokens */

typedef struct {
    const char *at; /* the next byte */
    const char *token;
    size_t length; /* 0: the end */
    int line;      /* of the token */
    int next_line;
    bool directive; /* the token stands in a line of the preprocessor */
} scanner;

static void
skip_to(scanner *s, const char *end)
{
    for (; s->at < end; s->at++) {
        s->next_line += *s->at == '\n';
        s->directive = s->directive && (*s->at != '\n' || s->at[-1] == '\\');
    }
}

static const char *
end_of_quoted(const char *at)
{
    char quote = *at++;
    while (*at != '\0' && *at != quote && *at != '\n') {
        at += *at == '\\' && at[1] != '\0' ? 2 : 1;
    }
    return *at == quote ? at + 1 : at;
}

/* Spaces, comments and strings are passed over; a word or one other character is a token. */
static bool
next_token(scanner *s)
{
    for (;;) {
        const char *at = s->at;
        if (isspace((unsigned char)*at)) {
            skip_to(s, at + 1);
        } else if (at[0] == '/' && at[1] == '/') {
            skip_to(s, at + strcspn(at, "\n"));
        } else if (at[0] == '/' && at[1] == '*') {
            const char *end = strstr(at + 2, "*/");
            skip_to(s, end != NULL ? end + 2 : at + strlen(at));
        } else if (*at == '"' || *at == '\'') {
            skip_to(s, end_of_quoted(at));
        } else {
            break;
        }
    }
    s->token = s->at;
    s->line = s->next_line;
    while (isalnum((unsigned char)*s->at) || *s->at == '_') {
        s->at++;
    }
    if (s->at == s->token && *s->at != '\0') {
        s->directive = s->directive || *s->at == '#';
        s->at++;
    }
    s->length = (size_t)(s->at - s->token);
    return s->length > 0;
}

static bool
is_token(const scanner *s, const char *word)
{
    return strlen(word) == s->length && strncmp(s->token, word, s->length) == 0;
}

static bool
is_word(const scanner *s)
{
    return s->length > 0 && (isalpha((unsigned char)s->token[0]) || s->token[0] == '_');
}

/* ---------------------------------------------------------------- what cannot be simulated */

static const struct {
    const char *word, *what;
} unsupported[] = {
    {"asm", "inline PTX"},
    {"__asm__", "inline PTX"},
    {"cooperative_groups", "cooperative groups"},
    {"nvcuda", "matrix fragments (wmma)"},
    {"tex1D", "a texture"},
    {"tex2D", "a texture"},
    {"tex3D", "a texture"},
    {"surf2Dread", "a surface"},
    {"surf2Dwrite", "a surface"},
    {"__match_any_sync", "__match_any_sync"},
    {"__match_all_sync", "__match_all_sync"},
    {"__reduce_add_sync", "__reduce_add_sync"},
    {"__managed__", "managed memory"},
    {"cudaLaunchDevice", "a launch from a kernel"},
};

/* A variable of the device outlives a launch, which is a process here. s stands at __device__. */
static bool
outlives_launch(scanner s, char name[SIM_LAUNCH_NAME])
{
    bool constant = false;
    name[0] = '\0';
    while (next_token(&s) && strchr("({;=[", s.token[0]) == NULL) {
        constant = constant || is_token(&s, "const") || is_token(&s, "constexpr") || is_token(&s, "__constant__");
        if (is_word(&s)) {
            snprintf(name, SIM_LAUNCH_NAME, "%.*s", (int)s.length, s.token);
        }
    }
    return !constant && s.length > 0 && strchr(";=[", s.token[0]) != NULL && name[0] != '\0';
}

static bool
is_supported(const scanner *s, const char *file, sim_text *log)
{
    char name[SIM_LAUNCH_NAME];
    for (size_t i = 0; i < sizeof(unsupported) / sizeof(unsupported[0]); i++) {
        if (is_token(s, unsupported[i].word)) {
            sim_text_print(log, "%s(%d): error: a simulated GPU cannot run %s\n", file, s->line, unsupported[i].what);
            return false;
        }
    }
    if (is_token(s, "__device__") && outlives_launch(*s, name)) {
        sim_text_print(log,
                       "%s(%d): error: a simulated GPU does not keep the variable \"%s\" from one launch to the next; "
                       "give the kernel an array\n",
                       file, s->line, name);
        return false;
    }
    return true;
}

/* ---------------------------------------------------------------- dynamic shared memory */

/* s stands at the __shared__ of `extern __shared__ float name[]`. */
static void
add_dynamic(scanner s, sim_text *definitions)
{
    char name[SIM_LAUNCH_NAME] = "";
    while (next_token(&s) && s.token[0] != '[' && s.token[0] != ';') {
        if (is_word(&s)) {
            snprintf(name, sizeof(name), "%.*s", (int)s.length, s.token);
        }
    }
    if (name[0] != '\0') {
        sim_text_print(definitions, "__asm__(\".globl %s\\n.set %s, dt_dynamic_shared\");\n", name, name);
    }
}

/* ---------------------------------------------------------------- what a kernel declares */

/* Of each kind of memory, the most that the real assembler lets a kernel have. */
static const struct {
    const char *word, *memory;
    int most;
} limits[] = {
    {"__shared__", "shared", SIM_SHARED_BYTES},
    {"__constant__", "constant", 64 << 10},
};

static void
add_limit(sim_text *text, const scanner *name, int limit)
{
    sim_text_print(text, " static_assert(sizeof(%.*s) <= %d, \"%.*s uses too much %s data (0x%x bytes max)\");",
                   (int)name->length, name->token, limits[limit].most, (int)name->length, name->token,
                   limits[limit].memory, limits[limit].most);
}

/* Moves s behind the declaration in which it stands, and adds a limit for each of its names: of
 * `float a[N], b[M][N], *c;` a, b and c. A name is the last word before [ , = or the end, outside of brackets. False
 * where it ends otherwise, as within the arguments of a macro: then text holds nothing of use. */
static bool
limit_declared(scanner *s, int limit, sim_text *text)
{
    scanner word = {0};
    int depth = 0, angles = 0;
    bool has_value = false;
    while (depth >= 0 && next_token(s)) {
        char c = s->token[0];
        bool outside = depth == 0 && angles == 0 && !has_value;
        bool ends = depth == 0 && c == ';';
        if ((outside && strchr("[,=", c) != NULL) || ends) {
            if (word.length > 0) {
                add_limit(text, &word, limit);
            }
            word.length = 0;
        }
        if (ends) {
            return true;
        }
        if (outside && (is_word(s) || c == '(' || c == '{')) {
            word = *s;
            word.length = is_word(s) ? s->length : 0;
        }
        has_value = has_value || (outside && c == '=');
        angles += depth > 0 ? 0 : c == '<' ? 1 : c == '>' && angles > 0 ? -1 : 0;
        depth += strchr("([{", c) != NULL ? 1 : strchr(")]}", c) != NULL ? -1 : 0;
    }
    return false;
}

/* Which limit the word at s is under; -1: none. */
static int
find_limit(const scanner *s)
{
    for (int i = 0; i < (int)(sizeof(limits) / sizeof(limits[0])); i++) {
        if (is_token(s, limits[i].word)) {
            return i;
        }
    }
    return -1;
}

/* Whether the function at whose __global__ s stands is one of that name, or may be. */
static bool
may_be_kernel(scanner s, const char *kernel)
{
    scanner word = s;
    while (next_token(&s) && strchr(";{", s.token[0]) == NULL && !is_token(&s, "inline")) {
        if (s.token[0] == '(' && is_token(&word, "__launch_bounds__")) {
            skip_to(&s, s.at + strcspn(s.at, ")"));
        } else if (s.token[0] == '(') {
            return is_token(&word, kernel);
        }
        word = s;
    }
    return true;
}

bool
sim_source_prepare(const char *source, const char *name, const char *kernel, sim_text *out, sim_text *log)
{
    static const char shared[] = "__shared__", dynamic[] = "__dtextern", global[] = "__global__",
                      other[] = "__dtothers";
    _Static_assert(sizeof(shared) == sizeof(dynamic) && sizeof(global) == sizeof(other), "columns stay what they are");
    scanner s = {.at = source, .next_line = 1}, before = {0};
    sim_text definitions = {0}, checks = {0};
    const char *copied = source, *checked = NULL; /* where the checks belong */
    bool fine = true;
    sim_text_add(out, sim_host_source, sim_host_source != NULL ? strlen(sim_host_source) : 0);
    sim_text_print(out, "#line 1 \"%s\"\n", name);
    while (fine && next_token(&s)) {
        fine = is_supported(&s, name, log);
        const char *instead = NULL;
        if (is_token(&s, shared) && is_token(&before, "extern")) {
            instead = dynamic;
            add_dynamic(s, &definitions);
        } else if (is_token(&s, global) && !s.directive && !is_token(&before, "inline") &&
                   !is_token(&before, "template") && !may_be_kernel(s, kernel)) {
            instead = other;
        } else if (find_limit(&s) >= 0 && !s.directive && !is_token(&before, "extern") && checked == NULL) {
            scanner end = s;
            if (limit_declared(&end, find_limit(&s), &checks)) {
                checked = end.at;
            } else {
                checks.used = 0;
            }
        }
        if (instead != NULL || s.at == checked) {
            sim_text_add(out, copied, (size_t)((instead != NULL ? s.token : s.at) - copied));
            sim_text_add(out, instead != NULL ? instead : checks.data, instead != NULL ? strlen(instead) : checks.used);
            copied = s.at;
        }
        if (s.at == checked) {
            checked = NULL;
            checks.used = 0;
        }
        before = s;
    }
    sim_text_add(out, copied, strlen(copied));
    sim_text_print(out, "\n#line 1 \"launch\"\n");
    if (definitions.used > 0) {
        sim_text_add(out, definitions.data, definitions.used);
    }
    sim_text_print(out,
                   "void dt_entry(const unsigned char *params) { dt_apply(%s, params); }\n"
                   "extern const unsigned dt_param_bytes = dt_bytes(%s);\n",
                   kernel, kernel);
    out->failed = out->failed || definitions.failed || checks.failed;
    dt_free(definitions.data);
    dt_free(checks.data);
    return fine;
}
