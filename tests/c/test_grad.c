/* test_grad.c: gradients without Python: the core and the host's loops alone. Prints "N passed, M failed". */
#include <pthread.h>
#include <stdlib.h>

#include "../../csrc/core/grad/grad.h"
#include "../../csrc/core/ops/ops.h"
#include "../../csrc/core/registry.h"
#include "../../csrc/cpu/front.h"
#include "check.h"

static const dt_device cpu = {DT_CPU, 0};

static double
first_of(const dt_array *x)
{
    return *(const double *)dt_array_data(x);
}

/* ---------------------------------------------------------------- a front: a leaf's gradient is its owner */

static dt_status
accumulate(dt_node *leaf, dt_array *grad, bool create_graph, dt_error *err)
{
    (void)create_graph;
    dt_array *sum = leaf->owner;
    if (sum == NULL) {
        sum = leaf->owner = dt_calloc(1, sizeof(*sum));
        if (sum == NULL) {
            return dt_fail_nomem(err, sizeof(*sum));
        }
    }
    return sum->storage == NULL ? dt_clone(grad, sum, err)
                                : dt_binary(DT_BINARY_add, "backward", sum, grad, NULL, NULL, true, sum, err);
}

static void
release_owner(void *owner)
{
    dt_array_clear(owner);
    dt_free(owner);
}

static const dt_array *
gradient_of(const dt_array *leaf)
{
    return leaf->node->owner;
}

static dt_status
backward(const dt_array *y, bool retain)
{
    dt_error err;
    const dt_scalar one = dt_scalar_int(1);
    dt_array seed = DT_ARRAY_EMPTY;
    dt_node *root = dt_node_retain(y->node);
    const dt_backward_options options = {.retain_graph = retain};
    dt_status rc = dt_full("backward", cpu, DT_FLOAT64, y->ndim, y->shape, &one, &seed, &err);
    if (rc == DT_OK) {
        rc = dt_backward(1, &root, (const dt_array *const[]){&seed}, &options, &err);
    }
    dt_array_clear(&seed);
    dt_node_release(root);
    return rc;
}

/* ---------------------------------------------------------------- arrays */

/* A leaf of n elements that want a gradient. */
static dt_status
leaf(int64_t n, double value, dt_array *out)
{
    dt_error err;
    const dt_scalar number = dt_scalar_float(value);
    *out = DT_ARRAY_EMPTY;
    dt_status rc = dt_full("leaf", cpu, DT_FLOAT64, 1, &n, &number, out, &err);
    if (rc == DT_OK && (rc = dt_leaf_new(out, true, &out->node, &err)) != DT_OK) {
        dt_array_clear(out);
    }
    return rc;
}

static dt_status
binary(dt_binary_op op, const dt_array *a, const dt_array *b, dt_array *out)
{
    dt_error err;
    *out = DT_ARRAY_EMPTY;
    return dt_binary(op, "op", a, b, NULL, NULL, false, out, &err);
}

/* x becomes y, which ends. */
static void
move(dt_array *x, dt_array *y)
{
    dt_array_clear(x);
    *x = *y;
    *y = DT_ARRAY_EMPTY;
}

/* ---------------------------------------------------------------- tests */

static void
test_chain(int n)
{
    dt_array x, y, z;
    CHECK(leaf(1, 1, &x) == DT_OK);
    dt_array_share(&x, &y);
    dt_status rc = DT_OK;
    for (int i = 0; i < n && rc == DT_OK; i++) {
        rc = binary(DT_BINARY_add, &y, &x, &z);
        if (rc == DT_OK) {
            move(&y, &z);
        }
    }
    CHECK(rc == DT_OK && first_of(&y) == n + 1);
    CHECK(backward(&y, false) == DT_OK && first_of(gradient_of(&x)) == n + 1);
    dt_array_clear(&y); /* the end of n nodes, one held by the next */
    dt_array_clear(&x);
}

static void *
chain_of_a_million(void *unused)
{
    test_chain(1000000);
    return unused;
}

static void
test_chain_in_little_stack(void)
{
#ifdef __SANITIZE_ADDRESS__
    const size_t room = 1 << 20; /* the sanitizer's own frames are large */
#else
    const size_t room = 64 << 10;
#endif
    pthread_attr_t attributes;
    pthread_t thread;
    CHECK(pthread_attr_init(&attributes) == 0 && pthread_attr_setstacksize(&attributes, room) == 0);
    CHECK(pthread_create(&thread, &attributes, chain_of_a_million, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    (void)pthread_attr_destroy(&attributes);
}

static void
test_fan(int n)
{
    dt_array x, y = DT_ARRAY_EMPTY;
    dt_error err;
    dt_array *parts = calloc((size_t)n, sizeof(*parts));
    const dt_array **pointers = calloc((size_t)n, sizeof(*pointers));
    CHECK(leaf(2, 3, &x) == DT_OK);
    dt_status rc = DT_OK;
    for (int i = 0; i < n && rc == DT_OK; i++) {
        rc = binary(DT_BINARY_mul, &x, &x, &parts[i]);
        pointers[i] = &parts[i];
    }
    CHECK(rc == DT_OK && dt_cat(pointers, n, 0, &y, &err) == DT_OK);
    CHECK(backward(&y, false) == DT_OK && first_of(gradient_of(&x)) == 6.0 * n);
    CHECK(backward(&y, false) == DT_EGRAD); /* the products gave back what they kept */
    for (int i = 0; i < n; i++) {
        dt_array_clear(&parts[i]);
    }
    free(parts);
    free(pointers);
    dt_array_clear(&y);
    dt_array_clear(&x);
}

/* ((x y) + x) exp(x), forward and back */
static dt_status
step(const dt_array *x, const dt_array *y)
{
    dt_array a = DT_ARRAY_EMPTY, b = DT_ARRAY_EMPTY, e = DT_ARRAY_EMPTY, z = DT_ARRAY_EMPTY;
    dt_error err;
    dt_status rc = binary(DT_BINARY_mul, x, y, &a);
    rc = rc == DT_OK ? binary(DT_BINARY_add, &a, x, &b) : rc;
    rc = rc == DT_OK ? dt_unary(DT_UNARY_exp, "exp", x, NULL, false, &e, &err) : rc;
    rc = rc == DT_OK ? binary(DT_BINARY_mul, &b, &e, &z) : rc;
    rc = rc == DT_OK ? backward(&z, false) : rc;
    dt_array_clear(&a);
    dt_array_clear(&b);
    dt_array_clear(&e);
    dt_array_clear(&z);
    return rc;
}

static void
test_failing_allocations(void)
{
    dt_array x, y;
    int points = 0, damaged = 0;
    for (dt_status rc = DT_ENOMEM; rc != DT_OK && points < 1000; points++) {
        const int64_t before = dt_live_blocks();
        CHECK(leaf(1000, 0, &x) == DT_OK && leaf(1000, 2, &y) == DT_OK);
        dt_fail_allocations(points, false);
        rc = step(&x, &y);
        dt_fail_allocations(-1, false);
        const dt_array *g = gradient_of(&x); /* (y + 1) exp(x) + (x y + x) exp(x) = 3, or none */
        damaged += g != NULL && g->storage != NULL && first_of(g) != 3;
        damaged += rc != DT_OK && rc != DT_ENOMEM;
        damaged += rc == DT_OK && (g == NULL || g->storage == NULL);
        damaged += dt_grad_off;
        dt_array_clear(&x);
        dt_array_clear(&y);
        damaged += dt_live_blocks() != before;
    }
    CHECK(points > 15 && points < 1000);
    CHECK(damaged == 0);
}

static void
test_retained(void)
{
    dt_array x, y;
    CHECK(leaf(3, 2, &x) == DT_OK && binary(DT_BINARY_mul, &x, &x, &y) == DT_OK);
    for (int i = 0; i < 100; i++) {
        CHECK(backward(&y, true) == DT_OK);
    }
    CHECK(first_of(gradient_of(&x)) == 400);
    dt_array_clear(&y);
    dt_array_clear(&x);
}

int
main(void)
{
    dt_register_backend(DT_CPU, &(dt_backend_entry){"cpu", NULL, cpu_open});
    dt_set_grad_front(&(dt_grad_front){.accumulate = accumulate, .release_owner = release_owner});
    test_retained(); /* and what the first use of a loop allocates for good */
    test_failing_allocations();
    const int64_t before = dt_live_blocks();
    test_retained();
    test_chain_in_little_stack();
    test_fan(100000);
    CHECK(dt_live_blocks() <= before + 8); /* large blocks are kept warm */
    return summary();
}
