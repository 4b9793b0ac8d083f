/* test_packed_cache.c: what is kept of an array that is written while its bytes are made. Prints "N passed, M failed". */
#include <string.h>

#include "../../csrc/core/memory/packed_cache.h"
#include "../../csrc/core/ops/ops.h"
#include "../../csrc/core/registry.h"
#include "../../csrc/cpu/front.h"
#include "check.h"

#define NBYTES 64

typedef enum { NOTHING, WRITE, WRITE_AND_ASK } event;

typedef struct {
    dt_storage *storage;
    const dt_kept_key *key;
    event meanwhile;
    int made;
} maker;

static void
make(const void *ctx, void *to)
{
    maker *m = (maker *)(uintptr_t)ctx;
    memset(to, ++m->made, NBYTES);
    if (m->meanwhile != NOTHING) { /* as another thread would, between two looks at the table */
        dt_kept_forget(m->storage);
    }
    if (m->meanwhile == WRITE_AND_ASK) {
        CHECK(dt_kept_get(m->storage, m->key, NBYTES, make, m) == NULL);
    }
}

/* The first byte of what is given, or 0 if nothing is. */
static int
ask(maker *m)
{
    dt_kept *kept = dt_kept_get(m->storage, m->key, NBYTES, make, m);
    const unsigned char *bytes = dt_kept_data(kept);
    const int first = bytes != NULL ? bytes[0] : 0;
    dt_kept_release(kept);
    return first;
}

static void
test_written_meanwhile(event meanwhile)
{
    dt_error err;
    const int64_t n = 16;
    const dt_scalar one = dt_scalar_int(1);
    const dt_kept_key key = {{1, 2, 3}};
    dt_array x = DT_ARRAY_EMPTY;
    CHECK(dt_full("x", (dt_device){DT_CPU, 0}, DT_FLOAT32, 1, &n, &one, &x, &err) == DT_OK);
    maker m = {x.storage, &key, meanwhile, 0};
    CHECK(ask(&m) == 0 && m.made == 0); /* noted */
    CHECK(ask(&m) == 1 && m.made == 1);
    const bool kept = meanwhile == NOTHING;
    CHECK(dt_kept_read().kept == (kept ? NBYTES : 0));
    m.meanwhile = NOTHING;
    if (meanwhile == WRITE) {
        CHECK(ask(&m) == 0 && m.made == 1); /* noted anew */
    }
    CHECK(ask(&m) == (kept ? 1 : 2) && m.made == (kept ? 1 : 2));
    CHECK(ask(&m) == (kept ? 1 : 2) && m.made == (kept ? 1 : 2));
    CHECK(dt_kept_read().kept == NBYTES);
    dt_array_clear(&x);
    CHECK(dt_kept_read().kept == 0);
}

int
main(void)
{
    dt_register_backend(DT_CPU, &(dt_backend_entry){"cpu", NULL, cpu_open});
    test_written_meanwhile(NOTHING);
    test_written_meanwhile(WRITE);
    test_written_meanwhile(WRITE_AND_ASK);
    return summary();
}
