/* engine.c: from results back to leaves. Every node that is reached is marked first, with the number of those that
 * will give to it; then nodes run when all have given, leaves at once, else the latest first, so sums are always formed
 * in one order. There is no recursion: the stack, the heap and the marks are blocks of a run. */
#include <string.h>

#include "../check/check.h"
#include "task.h"
#include "../ops/index.h"
#include "../layout/layout.h"
#include "../ops/ops.h"

/* ---------------------------------------------------------------- a run */

#define TASKS 127
typedef struct task_block {
    struct task_block *before;
    int n;
    dt_task tasks[TASKS];
} task_block;

/* In memory of its own, so that no other run ever has the address of one that a fork has cut off. */
typedef struct dt_run {
    const dt_backward_options *options;
    task_block *blocks; /* the latest first */
    dt_task **heap;
    size_t nheap, room;
    dt_tape tape;
} dt_run;

static dt_status
add_task(dt_run *run, dt_node *node, dt_task **out, dt_error *err)
{
    task_block *block = run->blocks;
    if (block == NULL || block->n == TASKS) {
        block = dt_malloc(sizeof(*block));
        if (block == NULL) {
            return dt_fail_nomem(err, sizeof(*block));
        }
        block->n = 0;
        block->before = run->blocks;
        run->blocks = block;
    }
    dt_task *task = &block->tasks[block->n++];
    *task = (dt_task){.node = node, .run = run, .outer = node->task, .wanted = -1};
    node->task = task;
    *out = task;
    return DT_OK;
}

static bool
is_marked(const dt_run *run, const dt_node *node)
{
    return node->task != NULL && node->task->run == run;
}

bool
dt_node_is_needed(const dt_node *node)
{
    return node->task != NULL && node->task->needed;
}

/* Room for one more entry of the heap, which is the stack of the marking before. */
static dt_status
grow(dt_run *run, dt_error *err)
{
    if (run->nheap < run->room) {
        return DT_OK;
    }
    const size_t room = run->room == 0 ? 64 : 2 * run->room;
    dt_task **heap = dt_malloc(room * sizeof(*heap));
    if (heap == NULL) {
        return dt_fail_nomem(err, room * sizeof(*heap));
    }
    if (run->nheap > 0) {
        memcpy(heap, run->heap, run->nheap * sizeof(*heap));
    }
    dt_free(run->heap);
    run->heap = heap;
    run->room = room;
    return DT_OK;
}

/* ---------------------------------------------------------------- marking */

static dt_status
visit(dt_run *run, dt_node *node, dt_error *err)
{
    dt_task *task = NULL;
    DT_TRY(grow(run, err));
    DT_TRY(add_task(run, node, &task, err));
    const dt_backward_options *o = run->options;
    task->needed = o->wanted == NULL && (node->flags & DT_NODE_LEAF);
    for (int i = 0; i < o->nwanted; i++) {
        if (o->wanted[i] == node && !task->needed) {
            task->wanted = i;
            task->needed = true;
        }
    }
    run->heap[run->nheap++] = task;
    return DT_OK;
}

/* Marks all that is reached from node, operands before results. */
static dt_status
mark(dt_run *run, dt_node *node, dt_error *err)
{
    if (is_marked(run, node)) {
        return DT_OK;
    }
    DT_TRY(visit(run, node, err));
    while (run->nheap > 0) {
        dt_task *task = run->heap[run->nheap - 1];
        dt_node *from = task->node;
        if (task->next == from->ninputs) {
            run->nheap--;
            for (int i = 0; i < from->ninputs && !task->passes; i++) {
                task->passes = from->inputs[i] != NULL && from->inputs[i]->task->needed;
            }
            task->needed |= task->passes;
            continue;
        }
        dt_node *input = from->inputs[task->next++];
        if (input != NULL && !is_marked(run, input)) {
            DT_TRY(visit(run, input, err));
        }
    }
    return DT_OK;
}

static void
count_givers(dt_run *run)
{
    for (task_block *b = run->blocks; b != NULL; b = b->before) {
        for (int k = 0; k < b->n; k++) {
            const dt_node *node = b->tasks[k].node;
            for (int i = 0; i < node->ninputs && b->tasks[k].passes; i++) {
                if (node->inputs[i] != NULL) {
                    node->inputs[i]->task->pending++;
                }
            }
        }
    }
}

static void
end_run(dt_run *run)
{
    while (run->blocks != NULL) {
        task_block *block = run->blocks;
        run->blocks = block->before;
        for (int k = block->n - 1; k >= 0; k--) {
            dt_task *task = &block->tasks[k];
            task->node->task = task->outer;
            dt_task_drop(task);
        }
        dt_free(block);
    }
    dt_free(run->heap);
    dt_free(run);
}

/* ---------------------------------------------------------------- the heap: leaves at once, then the latest node */

static uint64_t
rank(const dt_task *task)
{
    const uint64_t leaf = task->node->flags & DT_NODE_LEAF ? (uint64_t)1 << 63 : 0;
    return leaf | task->node->order;
}

static dt_status
push(dt_run *run, dt_task *task, dt_error *err)
{
    DT_TRY(grow(run, err));
    size_t at = run->nheap++;
    for (; at > 0 && rank(run->heap[(at - 1) / 2]) < rank(task); at = (at - 1) / 2) {
        run->heap[at] = run->heap[(at - 1) / 2];
    }
    run->heap[at] = task;
    return DT_OK;
}

static dt_task *
pop(dt_run *run)
{
    dt_task *first = run->heap[0], *last = run->heap[--run->nheap];
    size_t at = 0;
    for (size_t child = 1; child < run->nheap; child = 2 * at + 1) {
        if (child + 1 < run->nheap && rank(run->heap[child + 1]) > rank(run->heap[child])) {
            child++;
        }
        if (rank(run->heap[child]) < rank(last)) {
            break;
        }
        run->heap[at] = run->heap[child];
        at = child;
    }
    run->heap[at] = last;
    return first;
}

/* ---------------------------------------------------------------- one node */

static dt_status
unpack(dt_tape *t, dt_node *node)
{
    for (int k = 0; k < node->nkept; k++) {
        const dt_kept *kept = &node->kept[k];
        dt_array *slot = dt_tape_slot(t);
        DT_TRY(dt_node_unpack(node, kept, slot, t->err));
        if (t->create_graph && slot->storage != NULL) {
            const bool result = kept->operand == DT_MAX_KEPT - 1;
            slot->node = dt_node_retain(result ? node : node->inputs[kept->operand]);
            if (slot->node == NULL && dt_has_history(slot)) {
                DT_TRY(dt_leaf_new(slot, false, &slot->node, t->err));
                slot->node->flags |= DT_NODE_APART;
            }
        }
        t->kept[kept->operand] = slot;
    }
    return DT_OK;
}

/* The formula of a hooked node: hooks see what it gives before the operands get it. */
static void
call_between_hooks(dt_tape *t, dt_node *node)
{
    const size_t n = (size_t)node->ninputs;
    t->caught = dt_calloc(n, sizeof(*t->caught));
    dt_array *given = dt_calloc(n, sizeof(*given));
    t->rc = t->caught == NULL || given == NULL ? dt_fail_nomem(t->err, n * sizeof(*t->caught)) : DT_OK;
    if (t->rc == DT_OK) {
        dt_derivatives[node->derivative].gradient(t);
    }
    for (size_t i = 0; t->caught != NULL && i < n; i++) {
        if (t->caught[i].sum != NULL && given != NULL) {
            dt_array_share(t->caught[i].sum, &given[i]);
        }
        dt_task_drop(&t->caught[i]);
    }
    dt_free(t->caught);
    t->caught = NULL;
    if (t->rc == DT_OK) {
        t->rc = dt_front.after(node, t->parts, t->nparts, given, t->err);
    }
    for (size_t i = 0; given != NULL && i < n; i++) {
        if (t->rc == DT_OK && given[i].storage != NULL) {
            t->rc = dt_task_add(t, dt_tape_input(t, (int)i)->task, &given[i]);
        }
        dt_array_clear(&given[i]);
    }
    dt_free(given);
}

/* The formula of a node for the complete gradient of its result. */
static dt_status
differentiate(dt_run *run, const dt_task *task, dt_error *err)
{
    dt_tape *t = &run->tape;
    dt_node *node = task->node;
    dt_index_set_place(0); /* selections of a formula are no call of the user's */
    if (DT_UNLIKELY(node->rerun != NULL) && node->derivative == DT_GRAD_dropout) {
        dt_rerun_draw(node);
    }
    t->node = node;
    t->params = node->params;
    t->grad = task->sum;
    t->parts = task->parts == NULL ? task->sum : task->parts;
    t->nparts = task->parts == NULL ? 1 : task->nparts;
    t->rc = DT_OK;
    t->err = err;
    t->n = 0;
    memset(t->kept, 0, sizeof(t->kept));
    if (DT_UNLIKELY(node->hooked)) {
        t->rc = dt_front.before(node, task->parts == NULL ? task->sum : task->parts, t->nparts, err);
    }
    if (t->rc == DT_OK && node->derivative != DT_GRAD_function) {
        t->rc = unpack(t, node);
    }
    if (t->rc == DT_OK && DT_UNLIKELY(node->hooked)) {
        call_between_hooks(t, node);
    } else if (t->rc == DT_OK) {
        dt_derivatives[node->derivative].gradient(t);
    }
    dt_tape_drop(t, 0);
    return t->rc;
}

static dt_status
deliver(dt_run *run, dt_task *task, dt_error *err)
{
    const dt_backward_options *o = run->options;
    if (o->found == NULL) {
        return task->node->flags & DT_NODE_LEAF ? dt_front.accumulate(task->node, task->sum, o->create_graph, err)
                                                : DT_OK;
    }
    for (int i = task->wanted; i >= 0 && i < o->nwanted; i++) {
        if (o->wanted[i] == task->node) {
            dt_array_share(task->sum, &o->found[i]);
        }
    }
    return DT_OK;
}

static dt_status
run_task(dt_run *run, dt_task *task, dt_error *err)
{
    dt_node *node = task->node;
    run->tape.node = node;
    DT_TRY(dt_task_add_rows(&run->tape, task));
    if ((task->sum == NULL && task->parts == NULL) || !task->needed) {
        return DT_OK;
    }
    if (task->sum != NULL) {
        if (node->owner != NULL && dt_front.hooks != NULL) {
            DT_TRY(dt_front.hooks(node, task->sum, err));
        }
        DT_TRY(deliver(run, task, err));
    }
    if (task->passes) {
        DT_TRY(differentiate(run, task, err));
        if (!run->options->retain_graph) {
            node->flags |= DT_NODE_RAN;
            dt_node_forget(node, run->options->place);
        }
    }
    dt_task_drop(task);
    return DT_OK;
}

/* Those that node has given to, or would have. */
static dt_status
hand_on(dt_run *run, const dt_task *task, dt_error *err)
{
    const dt_node *node = task->node;
    for (int i = 0; i < node->ninputs && task->passes; i++) {
        dt_task *input = node->inputs[i] == NULL ? NULL : node->inputs[i]->task;
        if (input != NULL && --input->pending == 0) {
            DT_TRY(push(run, input, err));
        }
    }
    return DT_OK;
}

/* ---------------------------------------------------------------- the whole */

static dt_status
start(dt_run *run, int n, dt_node *const *roots, const dt_array *const *gradients, dt_error *err)
{
    for (int i = 0; i < n; i++) {
        DT_TRY(mark(run, roots[i], err));
    }
    count_givers(run);
    dt_tape *t = &run->tape;
    t->run = run;
    t->create_graph = run->options->create_graph;
    t->caught = NULL;
    t->err = err;
    t->rc = DT_OK;
    t->n = 0;
    for (int i = 0; i < n; i++) {
        dt_task *task = roots[i]->task;
        const bool first = task->sum == NULL;
        t->node = task->node;
        DT_TRY(dt_task_add(t, task, gradients[i]));
        if (first && task->pending == 0) {
            DT_TRY(push(run, task, err));
        }
    }
    return DT_OK;
}

dt_status
dt_backward(int n, dt_node *const *roots, const dt_array *const *gradients, const dt_backward_options *options,
            dt_error *err)
{
    dt_run *run = dt_malloc(sizeof(*run));
    if (run == NULL) {
        return dt_fail_nomem(err, sizeof(*run));
    }
    run->options = options;
    run->blocks = NULL;
    run->heap = NULL;
    run->nheap = run->room = 0;
    const uint8_t was_off = dt_grad_off;
    dt_grad_off = options->create_graph ? 0 : DT_GRAD_OFF_INSIDE;
    dt_status rc = start(run, n, roots, gradients, err);
    while (rc == DT_OK && run->nheap > 0) {
        dt_task *task = pop(run);
        rc = run_task(run, task, err);
        if (rc != DT_OK && options->failed != NULL) {
            *options->failed = dt_node_retain(task->node);
        }
        rc = rc == DT_OK ? hand_on(run, task, err) : rc;
    }
    dt_grad_off = was_off;
    end_run(run);
    return rc;
}
