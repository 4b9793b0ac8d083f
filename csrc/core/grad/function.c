/* function.c: functions whose gradients the front computes. One with a single output is the node of that output.
 * With several, each output has a node, which hands its complete gradient to that of the function; this runs when all
 * have. */
#include "function.h"

#include "../check/check.h"
#include "tape.h"

/* ---------------------------------------------------------------- recording */

static dt_status
function_node(const dt_function_plan *plan, dt_node **out, dt_error *err)
{
    const size_t nbytes = sizeof(dt_function_params) + (size_t)plan->nkept * sizeof(int);
    const size_t room = (size_t)plan->ninputs * sizeof(dt_node *) + (size_t)plan->nkept;
    dt_function_params *params = dt_malloc(nbytes);
    dt_node **inputs = dt_malloc(room + 1);
    dt_status rc = DT_OK;
    if (params == NULL || inputs == NULL) {
        rc = dt_fail_nomem(err, nbytes + room);
    } else {
        uint8_t *operands = (uint8_t *)(inputs + plan->ninputs);
        params->noutputs = plan->noutputs;
        for (int k = 0; k < plan->nkept; k++) {
            params->sources[k] = plan->sources[k];
            operands[k] = 0; /* its formula is not handed what it keeps */
        }
        for (int i = 0; i < plan->ninputs; i++) {
            inputs[i] = dt_wants_grad(plan->inputs[i]) ? plan->inputs[i]->node : NULL;
        }
        rc = dt_node_new(&(dt_node_plan){.id = DT_GRAD_function,
                                         .result = plan->outputs[0],
                                         .inputs = inputs,
                                         .ninputs = plan->ninputs,
                                         .nkept = plan->nkept,
                                         .kept = plan->kept,
                                         .operands = operands,
                                         .params = params,
                                         .nbytes = nbytes},
                         out, err);
    }
    dt_free(params);
    dt_free(inputs);
    return rc;
}

static dt_status
output_node(dt_node *function, int index, const dt_array *like, dt_node **out, dt_error *err)
{
    const dt_output_params params = {index};
    return dt_node_new(&(dt_node_plan){.id = DT_GRAD_output,
                                       .result = like,
                                       .inputs = &function,
                                       .ninputs = 1,
                                       .params = &params,
                                       .nbytes = sizeof(params)},
                       out, err);
}

/* Takes node over. */
static void
give_node(dt_array *output, dt_node *node)
{
    dt_node *before = output->node;
    output->node = node;
    dt_node_release(before);
}

/* Outputs that are inputs too may be written to. */
static dt_status
check_outputs(const dt_function_plan *plan, dt_error *err)
{
    for (int i = 0; i < plan->noutputs; i++) {
        for (int k = 0; k < plan->ninputs; k++) {
            if (plan->outputs[i] == plan->inputs[k]) {
                DT_TRY(dt_grad_check_in_place("mark_dirty", plan->outputs[i], err));
            }
        }
    }
    return DT_OK;
}

dt_status
dt_function_record(const dt_function_plan *plan, dt_node **function, dt_error *err)
{
    dt_node *node = NULL;
    dt_status rc = check_outputs(plan, err);
    rc = rc == DT_OK ? function_node(plan, &node, err) : rc;
    if (rc != DT_OK) {
        dt_front.release_owner(plan->owner);
        return rc;
    }
    node->owner = plan->owner;
    *function = node;
    if (plan->noutputs == 1) {
        give_node(plan->outputs[0], node);
        return DT_OK;
    }
    dt_node **nodes = dt_calloc((size_t)plan->noutputs, sizeof(*nodes));
    rc = nodes == NULL ? dt_fail_nomem(err, (size_t)plan->noutputs * sizeof(*nodes)) : DT_OK;
    for (int i = 0; i < plan->noutputs && rc == DT_OK; i++) {
        rc = output_node(node, i, plan->outputs[i], &nodes[i], err);
    }
    for (int i = 0; i < plan->noutputs && nodes != NULL; i++) {
        if (rc == DT_OK) {
            give_node(plan->outputs[i], nodes[i]);
        } else {
            dt_node_release(nodes[i]);
        }
    }
    dt_free(nodes);
    dt_node_release(node);
    return rc;
}

dt_status
dt_function_unpack(dt_node *function, int k, dt_array *out, dt_error *err)
{
    DT_TRY(dt_node_unpack(function, &function->kept[k], out, err));
    const dt_function_params *params = function->params;
    const int source = params->sources[k], output = source - function->ninputs;
    if (source >= 0 && output < 0) {
        out->node = dt_node_retain(function->inputs[source]);
    } else if (source >= 0 && params->noutputs == 1) {
        out->node = dt_node_retain(function);
    } else if (source >= 0) {
        const dt_status rc = output_node(function, output, out, &out->node, err);
        if (rc != DT_OK) {
            dt_array_clear(out);
        }
        return rc;
    }
    return DT_OK;
}

/* ---------------------------------------------------------------- the way back */

void
dt_output_gradient(dt_tape *t)
{
    const dt_output_params *params = t->params;
    const dt_function_params *function = dt_tape_input(t, 0)->params;
    dt_tape_give_part(t, function->noutputs, params->index);
}

void
dt_function_gradient(dt_tape *t)
{
    const size_t n = (size_t)t->node->ninputs;
    dt_array *found = dt_calloc(n, sizeof(*found));
    if (found == NULL) {
        t->rc = dt_fail_nomem(t->err, n * sizeof(*found));
        return;
    }
    t->rc = dt_front.function((dt_node *)t->node, t->parts, t->nparts, found, t->err);
    for (size_t i = 0; i < n; i++) {
        if (found[i].storage != NULL) {
            dt_tape_give(t, (int)i, &found[i]);
            dt_array_clear(&found[i]);
        }
    }
    dt_free(found);
}
