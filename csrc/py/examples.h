/* examples.h: an example for each public function, behind its text: help() and editors show it, tests run it.
 *
 * PY_OP and the tables of elementwise ops and reductions ask for EXAMPLE_name, so an op without one does not compile. A
 * method has the example of the function of its name. */
#ifndef DEVTENSOR_EXAMPLES_H
#define DEVTENSOR_EXAMPLES_H

#define EXAMPLE(text) "\n\n" text

/* Reached through other names. */
#define EXAMPLE_gelu_erf ""
#define EXAMPLE_gelu_tanh ""
#define EXAMPLE_huber ""
#define EXAMPLE_trunc_divide ""
#define EXAMPLE_add_scaled ""
#define EXAMPLE_lerp_scalar ""

#include "examples/arrays.h"
#include "examples/elementwise.h"
#include "examples/ops.h"

#endif
