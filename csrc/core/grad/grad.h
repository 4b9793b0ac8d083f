/* grad.h: gradients. An op on arrays that want one records a node: which derivative, the nodes of its operands, what
 * the formula will read. dt_backward goes from a result to its leaves (engine.c) and calls the formulas
 * (derivatives.def), which are ops themselves.
 *
 * An op records by one line in front, DT_RECORD. It calls itself again with recording off, so what it is made of
 * records nothing, and then hangs a node on its result.
 *
 * Ownership. A node is counted; an array holds one reference to its node, a node one to each node of its operands and
 * one to each storage that it keeps. Nodes hold no arrays of the front's, so there are no cycles. */
#ifndef DT_GRAD_H
#define DT_GRAD_H

#include "../devtensor.h"

/* ---------------------------------------------------------------- derivatives: derivatives.def, formulas.c */

struct dt_tape;

#define DT_MAX_KEPT 16
#define DT_KEEP(i) (1u << (i)) /* operand i */
#define DT_KEEP_RESULT DT_KEEP(15)
#define DT_ALL_OPERANDS 0x7fffu

typedef struct {
    const char *op;                     /* "mul" */
    const char *name;                   /* "Mul": what grad_fn shows as MulBackward0 */
    void (*gradient)(struct dt_tape *); /* NULL: nothing flows through */
    uint16_t keeps[3];                  /* what the gradient of operand i reads; further operands: nothing */
} dt_derivative;

typedef enum {
#define DT_DERIVATIVE(id, ...) DT_GRAD_##id,
#include "derivatives.def"
#undef DT_DERIVATIVE
    DT_NDERIVATIVES
} dt_derivative_id;

extern const dt_derivative dt_derivatives[DT_NDERIVATIVES];
/* Of each op of elementwise.def and reductions.def; DT_GRAD_none where nothing flows. */
extern const uint8_t dt_unary_derivatives[DT_NUNARY], dt_binary_derivatives[DT_NBINARY],
    dt_ternary_derivatives[DT_NTERNARY], dt_reduce_derivatives[DT_NREDUCE];

/* ---------------------------------------------------------------- nodes: node.c */

/* An array that a formula will read. */
typedef struct {
    dt_storage *storage;          /* NULL: an immediate, or released */
    int64_t offset;               /* or the bytes of the immediate; of the first, once released: see dt_node_freed_at */
    uint32_t version;             /* dt_kept_version when it was kept */
    uint8_t dtype, ndim, operand; /* operand: its place among the op's, 15 for the result */
    bool packed : 1;              /* the front has something in its place */
    bool quiet : 1;               /* of .data, so that writes through .data are changes of it too: DT_NODE_QUIET */
    int64_t *dims;                /* shape, then strides */
} dt_kept;

enum {
    DT_NODE_LEAF = 1,
    DT_NODE_WANTS = 2,    /* a leaf: requires_grad */
    DT_NODE_RELEASED = 4, /* what it kept */
    DT_NODE_SECOND = 8,   /* of a rerun: keeps what it has for another */
    DT_NODE_APART = 16,   /* detach(), and what is made of it: writes through other arrays do not reach it */
    DT_NODE_SEEN = 32,    /* APART, and a view of it was made */
    DT_NODE_CUT = 64,     /* a view that was not recorded */
    DT_NODE_RAN = 128,    /* a backward that keeps no graph has been here */
    DT_NODE_QUIET = 256,  /* of .data in a program that runs as torch: see dt_data_of */
};

typedef struct dt_node {
    atomic_uint refs;
    uint8_t derivative, dtype, ndim; /* dtype, shape and device: of the result, so of its gradient */
    bool hooked;                     /* the front has functions that see what its formula takes and gives */
    uint16_t flags, nkept;
    int ninputs;
    dt_device device;
    uint32_t rank;           /* among those of its rerun */
    uint32_t step;           /* dt_nodes_alive.step when it was made */
    uint64_t order;          /* later than the nodes of its operands */
    void *place;             /* the front's: where the op was called; counted */
    void *owner;             /* the front's: hooks, the gradient of a leaf; owned */
    void *freed;             /* the front's: the backward that released what it kept; counted */
    void *packed;            /* the front's: what it has in the place of kept arrays; owned */
    struct dt_rerun *rerun;  /* what it keeps comes from there; NULL: it has it */
    struct dt_task *task;    /* of the run that has marked it; while it is released, the next one */
    struct dt_node **inputs; /* NULL: wants no gradient */
    dt_kept *kept;
    void *params;
    int64_t *source; /* of a view: offset and strides of what it is a view of; NULL: not in the same memory */
    int64_t shape[];
} dt_node;

/* How often the memory was written to, as far as that changes what is kept. */
static inline uint32_t
dt_kept_version(const dt_storage *storage, bool quiet)
{
    const uint32_t others = atomic_load_explicit(&storage->version, memory_order_relaxed);
    return quiet ? others + atomic_load_explicit(&storage->quiet_writes, memory_order_relaxed) : others;
}

static inline dt_node *
dt_node_retain(dt_node *node)
{
    if (node != NULL) {
        atomic_fetch_add_explicit(&node->refs, 1, memory_order_relaxed);
    }
    return node;
}

void dt_node_release(dt_node *node);
#define DT_STEPS 8 /* two of each of some optimizers that take turns */

/* The nodes of ops that this thread has made, without those that it has freed, by the step of an optimizer before which
 * they were made. */
typedef struct {
    uint32_t step;
    int64_t recent[DT_STEPS], older;
} dt_nodes_by_step;

extern _Thread_local dt_nodes_by_step dt_nodes_alive __attribute__((tls_model("initial-exec")));
/* An optimizer has made a step, the number of which it gives. */
uint32_t dt_nodes_stepped(void);
/* How many are alive of those made before that step; it is one of the last DT_STEPS, or they are fewer. */
int64_t dt_nodes_before(uint32_t step);

/* What a new node has; all borrowed. */
typedef struct {
    dt_derivative_id id;
    uint16_t flags;
    const dt_array *result;
    dt_node *const *inputs;
    int ninputs, nkept;
    const dt_array *const *kept;
    const uint8_t *operands; /* of kept */
    const void *params;
    size_t nbytes;          /* of params */
    const dt_array *source; /* of a view, or NULL */
} dt_node_plan;

dt_status dt_node_new(const dt_node_plan *plan, dt_node **out, dt_error *err) DT_MUST_CHECK;
/* A leaf for an array like x; wants: requires_grad. */
dt_status dt_leaf_new(const dt_array *x, bool wants, dt_node **out, dt_error *err) DT_MUST_CHECK;
/* Gives node a later order than any that there is. */
void dt_node_mark_epoch(dt_node *node);
/* Whether a gradient shall flow to node. */
static inline bool
dt_node_flows(const dt_node *node)
{
    return node != NULL && (node->flags & (DT_NODE_LEAF | DT_NODE_WANTS)) != DT_NODE_LEAF;
}
/* What the k-th that it keeps looks like, in the same memory; borrowed. */
dt_array dt_node_kept(const dt_node *node, int k);
/* Whether a run that has begun will give a gradient to node. */
bool dt_node_is_needed(const dt_node *node);
/* out becomes another holder of the same storage and node. */
void dt_array_share(const dt_array *a, dt_array *out);
/* Storages kept as nodes keep them: a holder that does not count as one, for which writes are counted. */
void dt_storage_keep(dt_storage *storage);
void dt_storage_unkeep(dt_storage *storage);
/* Kept operand i as an array, checked to be as it was; out holds a new reference. */
dt_status dt_node_unpack(dt_node *node, const dt_kept *kept, dt_array *out, dt_error *err) DT_MUST_CHECK;
/* Gives back what it kept. place: the front's, of the backward that does it. */
void dt_node_forget(dt_node *node, void *place);
/* The order of the latest node when a node was released: later ones were made after that backward. */
static inline uint64_t
dt_node_freed_at(const dt_node *node)
{
    return (uint64_t)node->kept[0].offset;
}
/* The same without a word, and its contrary: takes what second keeps, which is of the same kind. */
void dt_node_empty(dt_node *node);
void dt_node_take_kept(dt_node *node, dt_node *second);

/* ---------------------------------------------------------------- functions of the front's: function.c */

typedef struct {
    const dt_array *const *inputs;
    dt_array *const *outputs; /* floats, which get a node; one that is an input too was written in place */
    const dt_array *const *kept;
    const int32_t *sources; /* of kept: the index among the inputs, after them among the outputs, or -1 */
    int ninputs, noutputs, nkept;
    void *owner; /* the front's, taken over in any case */
} dt_function_plan;

/* Records it: each output gets a node, whose gradients dt_front.function gets together. function: borrowed. */
dt_status dt_function_record(const dt_function_plan *plan, dt_node **function, dt_error *err) DT_MUST_CHECK;
/* The k-th array that it keeps, with its node. */
dt_status dt_function_unpack(dt_node *function, int k, dt_array *out, dt_error *err) DT_MUST_CHECK;

/* ---------------------------------------------------------------- nodes whose ops run again: rerun.c */

/* What a part of a program recorded without keeping anything. When a formula reads the first of it, the front runs that
 * part again, and each node takes what its second self has kept. */
typedef struct dt_rerun {
    atomic_uint refs;
    bool ended, again, done; /* the first run is over; the second has begun; it is over */
    uint32_t nodes;          /* recorded by the first run */
    uint32_t nsecond, room;
    struct dt_node **second; /* those of the second run, by rank */
    void *owner;             /* the front's, owned */
} dt_rerun;

/* Of this thread; NULL: nodes keep what their formulas read. */
extern _Thread_local dt_rerun *dt_rerun_here __attribute__((tls_model("initial-exec")));

/* owner: taken over unless it fails. */
dt_status dt_rerun_new(void *owner, dt_rerun **out, dt_error *err) DT_MUST_CHECK;
void dt_rerun_release(dt_rerun *rerun);
/* A node that was made while dt_rerun_here. */
dt_status dt_rerun_note(dt_rerun *rerun, dt_node *node, dt_error *err) DT_MUST_CHECK;
/* Before node is unpacked. */
dt_status dt_rerun_fill(dt_node *node, dt_error *err) DT_MUST_CHECK;
/* Before the formula of a node of dropout: where the part ran again, what others read there came from the numbers that
 * it drew then, which are others unless the generator was set back. */
void dt_rerun_draw(dt_node *node);

/* ---------------------------------------------------------------- shared memory: history.c */

static inline bool
dt_has_history(const dt_array *a)
{
    return DT_UNLIKELY(atomic_load_explicit(&a->storage->history, memory_order_relaxed) != NULL);
}

/* Whether other arrays see the memory of x. */
bool dt_is_shared(const dt_array *x);
/* Whether x is what detach() gave, or a view that was made of it on record: its writes are its own. */
static inline bool
dt_is_detached(const dt_array *x)
{
    return x->node != NULL && (x->node->flags & (DT_NODE_APART | DT_NODE_CUT)) == DT_NODE_APART;
}
/* Whether the node of x is older than a write through another array over its memory. */
bool dt_is_stale(const dt_array *x);
/* The node of x as it is now; *out stays as it is where that of x is not stale. */
dt_status dt_node_after_writes(const dt_array *x, dt_node **out, dt_error *err) DT_MUST_CHECK;
/* Goes from node through views to what they are views of, and sets where that lies. */
const dt_node *dt_node_under_views(const dt_node *node, dt_array *layout);
/* out shares the memory of x, and no gradient flows to it, whatever is written to that memory. */
dt_status dt_detach(const dt_array *x, dt_array *out, dt_error *err) DT_MUST_CHECK;
/* The same for .data. quiet: what is written to it changes nothing that nodes keep, but of it and its views. */
dt_status dt_data_of(const dt_array *x, bool quiet, dt_array *out, dt_error *err) DT_MUST_CHECK;
/* Whether a write to x, whose memory others share, can be told to them. */
dt_status dt_check_history(const char *op, const dt_array *x, dt_error *err) DT_MUST_CHECK;
/* x was written in place: before and write are its nodes (NULL: no gradient flows). */
dt_status dt_history_add(const dt_array *x, dt_node *before, dt_node *write, dt_error *err) DT_MUST_CHECK;
void dt_history_end(dt_storage *storage);
/* A holder of a storage with a history goes; true: it was the last. */
bool dt_history_leave(dt_storage *storage);

/* Whether a gradient shall flow to a. */
static inline bool
dt_wants_grad(const dt_array *a)
{
    return a != NULL && a->storage != NULL && (dt_node_flows(a->node) || (dt_has_history(a) && dt_is_stale(a)));
}

/* ---------------------------------------------------------------- recording: record.c */

/* Why this thread records nothing; 0: it does. */
enum { DT_GRAD_OFF_BY_USER = 1, DT_GRAD_OFF_INSIDE = 2 /* an op, or a formula */ };
extern _Thread_local uint8_t dt_grad_off __attribute__((tls_model("initial-exec")));

typedef struct {
    const dt_derivative *derivative;
    const char *op; /* that errors name */
    const dt_array *const *inputs;
    int n;
    bool wanted, in_place, shared; /* shared: in place, other arrays see the memory */
    uint8_t was_off;
    dt_array before; /* in place: what was there, as long as it is needed */
} dt_recording;

/* Before the op, which is called with recording off: out is new, or in place the first operand. */
dt_status dt_record_open(dt_recording *r, dt_derivative_id id, const dt_array *const *inputs, int n, dt_array *out,
                         dt_error *err) DT_MUST_CHECK;
/* The same for an op that is one of several with this derivative: errors say its name. */
dt_status dt_record_open_as(dt_recording *r, const char *op, dt_derivative_id id, const dt_array *const *inputs, int n,
                            dt_array *out, dt_error *err) DT_MUST_CHECK;
/* rc: how the op ended. */
dt_status dt_record_close(dt_recording *r, dt_status rc, const void *params, size_t nbytes, dt_array *out,
                          dt_error *err) DT_MUST_CHECK;
/* Refuses a write to a leaf that wants a gradient, or to a result of an op on arrays that do. */
dt_status dt_grad_check_write(const char *op, const dt_array *target, dt_error *err) DT_MUST_CHECK;
/* Refuses a leaf that wants a gradient, or a view of one. */
dt_status dt_grad_check_leaf(const char *op, const dt_array *target, dt_error *err) DT_MUST_CHECK;
/* Refuses a write in place that would be recorded, where the history of others than target would be wrong. */
dt_status dt_grad_check_in_place(const char *op, const dt_array *target, dt_error *err) DT_MUST_CHECK;

static inline bool
dt_is_tracked(const dt_array *a)
{
    return a != NULL && a->storage != NULL && (a->node != NULL || dt_has_history(a));
}

/* What views show is noted also where the user has turned recording off. */
static inline bool
dt_notes_views(void)
{
    return !(dt_grad_off & DT_GRAD_OFF_INSIDE);
}

#define DT_NO_PARAMS ((const char *)NULL)

/* The line in front of an op: call is the op itself with its own arguments; then its operands. params: what the formula
 * reads besides them, or DT_NO_PARAMS. */
#define DT_RECORD(id, params, out, call, ...) DT_RECORD_AS(dt_derivatives[id].op, id, params, out, call, __VA_ARGS__)
/* op: what errors name. */
#define DT_RECORD_AS(op, id, params, out, call, ...)                                                                   \
    do {                                                                                                               \
        const dt_array *const inputs_[] = {__VA_ARGS__};                                                               \
        bool tracked_ = false;                                                                                         \
        for (size_t i_ = 0; i_ < sizeof(inputs_) / sizeof(*inputs_); i_++) {                                           \
            tracked_ |= dt_is_tracked(inputs_[i_]);                                                                    \
        }                                                                                                              \
        if (DT_UNLIKELY(tracked_) && !dt_grad_off) {                                                                   \
            DT_RECORD_LIST_AS(op, id, params, out, call, inputs_, (int)(sizeof(inputs_) / sizeof(*inputs_)));          \
        }                                                                                                              \
    } while (0)
/* The same for an op whose result is always new, also where out was never written: views and copies. */
#define DT_RECORD_NEW(id, params, out, call, x)                                                                        \
    do {                                                                                                               \
        if (DT_UNLIKELY(dt_is_tracked(x)) && dt_notes_views()) {                                                       \
            const dt_array *const inputs_[] = {x};                                                                     \
            (out)->storage = NULL;                                                                                     \
            DT_RECORD_LIST(id, params, out, call, inputs_, 1);                                                         \
        }                                                                                                              \
    } while (0)
#define DT_RECORD_LIST(id, params, out, call, inputs, n)                                                               \
    DT_RECORD_LIST_AS(dt_derivatives[id].op, id, params, out, call, inputs, n)
#define DT_RECORD_LIST_AS(op, id, params, out, call, inputs, n)                                                        \
    dt_recording recording_;                                                                                           \
    DT_TRY(dt_record_open_as(&recording_, op, (dt_derivative_id)(id), inputs, n, out, err));                           \
    return dt_record_close(&recording_, (call), params, (params) == NULL ? 0 : sizeof(*(params)), out, err)

/* ---------------------------------------------------------------- the way back: engine.c */

/* Whether the front of this thread takes over what new nodes keep. */
extern _Thread_local bool dt_packs_kept __attribute__((tls_model("initial-exec")));

/* What the front does: set once. */
typedef struct {
    /* References that nodes hold; from any thread. */
    void *(*retain_place)(void *place);
    void (*release_place)(void *place);
    void (*release_owner)(void *owner);
    /* Adds the gradient to that of a leaf; grad may be taken over (storage NULL then). */
    dt_status (*accumulate)(dt_node *leaf, dt_array *grad, bool create_graph, dt_error *err);
    /* Of a node with an owner: its complete gradient, which may be replaced. */
    dt_status (*hooks)(dt_node *node, dt_array *grad, dt_error *err);
    /* Of a hooked node: the gradients of its n results, which may be replaced; and what its formula made of them for
     * each operand, without a storage where there is nothing. */
    dt_status (*before)(dt_node *node, dt_array *gradients, int n, dt_error *err);
    dt_status (*after)(dt_node *node, const dt_array *gradients, int n, dt_array *given, dt_error *err);
    /* Of a function: gradients of its n outputs, without a storage where nothing came, to those of its inputs, which
     * are empty. */
    dt_status (*function)(dt_node *node, const dt_array *gradients, int n, dt_array *found, dt_error *err);
    /* Where dt_packs_kept: sets packed from what node keeps, from any thread, with its lock or not; the array that
     * stands there for the k-th; and the end of packed. */
    dt_status (*pack)(dt_node *node, dt_error *err);
    dt_status (*unpack)(dt_node *node, int k, dt_array *out, dt_error *err);
    void (*release_packed)(void *packed);
    /* Runs what the owner of a rerun stands for, recording; and its end. */
    dt_status (*rerun)(dt_rerun *rerun, dt_error *err);
    void (*release_rerun)(void *owner);
    /* Where dt_grad_watched: what the formula of node gives to operand i. */
    dt_status (*watch)(dt_node *node, int i, const dt_array *gradient, dt_error *err);
    /* Memory that nodes keep was written to and has this version now; its end. Any thread, with its lock or not. */
    void (*wrote)(const dt_storage *storage, uint32_t version);
    void (*ended)(const dt_storage *storage);
    /* Around work on large arrays: gives the front's lock back. */
    void *(*leave)(void);
    void (*enter)(void *state);
} dt_grad_front;

void dt_set_grad_front(const dt_grad_front *front);
extern dt_grad_front dt_front;
/* Whether the front looks at every gradient of this thread's runs. */
extern _Thread_local bool dt_grad_watched __attribute__((tls_model("initial-exec")));

typedef struct {
    bool retain_graph, create_graph;
    dt_node *const *wanted; /* only these, NULL: all leaves */
    dt_array *found;        /* of wanted: filled, empty where not reached; NULL: added to leaves */
    int nwanted;
    void *place;      /* the front's: this backward */
    dt_node **failed; /* NULL, or where the node whose gradient failed goes; then counted */
} dt_backward_options;

/* From the nodes of results, with a gradient each; one run at a time, but for those inside a hook of the same thread.
 */
dt_status dt_backward(int n, dt_node *const *roots, const dt_array *const *gradients,
                      const dt_backward_options *options, dt_error *err) DT_MUST_CHECK;

#endif
