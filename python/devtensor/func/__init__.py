"""Functions made of functions: gradients, Jacobians, calls for each entry of a dimension, and modules as functions.

They are composed: jvp and jacfwd go backward, and vmap is a loop that stacks what it gets. Results are PyTorch's; the
speed of a transformation is not there.
"""

from devtensor.func.derivatives import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp
from devtensor.func.mapped import vmap
from devtensor.func.stateless import functional_call, replace_all_batch_norm_modules_, stack_module_state

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]


def __dir__() -> list[str]:
    return __all__
