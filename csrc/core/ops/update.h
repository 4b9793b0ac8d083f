/* update.h: what updates.def lists, for the core, the backends and the kernels. Without libc. */
#ifndef DT_UPDATE_H
#define DT_UPDATE_H

#define DT_UPDATE_STATES 3 /* at most */

typedef enum {
#define DT_UPDATE0(rule, ...) DT_UPDATE_##rule,
#define DT_UPDATE1(rule, a, ...) DT_UPDATE_##rule,
#define DT_UPDATE2(rule, a, b, ...) DT_UPDATE_##rule,
#define DT_UPDATE3(rule, a, b, c, ...) DT_UPDATE_##rule,
#include "../updates.def"
    DT_NUPDATE
} dt_update_rule;

enum {
#define DT_UPDATE_NUMBER(name) DT_NUMBER_##name,
#include "../updates.def"
    DT_NNUMBERS
};

/* What stands for each element before its rule; N as there. */
#define DT_UPDATE_GRADIENT(p, g)                                                                                       \
    g = N(maximize) != 0 ? -g : g;                                                                                     \
    g = N(weight_decay) != 0 ? g + N(weight_decay) * p : g

#endif
