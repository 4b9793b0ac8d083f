/* registry.h: how the front tells the core which backends there are (registry.c). */
#ifndef DT_REGISTRY_H
#define DT_REGISTRY_H

#include "devtensor.h"

typedef struct {
    const char *label;   /* of its devices, in messages */
    const char *visible; /* the environment variable that hides some of them, or NULL */
    /* Called on first use, maybe twice: the table, or the reason why there is none. */
    dt_status (*open)(const dt_backend **backend, dt_error *err);
} dt_backend_entry;

void dt_register_backend(dt_device_type type, const dt_backend_entry *entry);

#endif
