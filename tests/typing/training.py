"""Optimizers, schedules and clipping."""

from __future__ import annotations

from typing import Any, assert_type

import devtensor as dt
from devtensor import nn
from devtensor.optim import lr_scheduler

net = nn.Linear(4, 3)
for parameter in net.parameters():
    parameter.grad = dt.ones_like(parameter)

# ---------------------------------------------------------------- optimizers

for optimizer in (
    dt.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, nesterov=True),
    dt.optim.Adam([{"params": net.weight, "lr": 0.1}, {"params": [net.bias]}], betas=(0.9, 0.99), amsgrad=True),
    dt.optim.AdamW(net.named_parameters(), lr=dt.tensor(0.1), fused=True),
    dt.optim.Adafactor(net.parameters(), eps=(None, 1e-3), maximize=True),
    dt.optim.Muon([net.weight], lr=0.1),
    dt.optim.RMSprop(net.parameters(), centered=True, momentum=0.5),
    dt.optim.Adagrad(list(net.parameters()), lr_decay=0.1),
    dt.optim.Adadelta(net.parameters(), rho=0.8),
    dt.optim.Adamax(net.parameters(), betas=(0.9, 0.99)),
    dt.optim.NAdam(net.parameters(), momentum_decay=0.1),
    dt.optim.RAdam(net.parameters(), decoupled_weight_decay=True),
    dt.optim.ASGD(net.parameters(), t0=10),
    dt.optim.Rprop(net.parameters(), etas=(0.4, 1.3)),
):
    assert isinstance(optimizer, dt.optim.Optimizer)
    optimizer.step()
    optimizer.step(lambda: 1.0)
    optimizer.load_state_dict(optimizer.state_dict())
    optimizer.zero_grad(set_to_none=False)
assert_type(dt.optim.LBFGS(net.parameters(), line_search_fn="strong_wolfe").state_dict(), dict[str, Any])
sgd = dt.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
sgd.add_param_group({"params": [nn.Parameter(dt.ones(2))], "lr": 0.2})
with sgd.register_step_pre_hook(lambda optimizer, args, kwargs: None):
    sgd.step()
assert_type(sgd.state_dict(), dict[str, Any])
assert_type(sgd.param_groups, list[dict[str, Any]])

# ---------------------------------------------------------------- schedules

warm_up = lr_scheduler.LinearLR(sgd, start_factor=0.5, total_iters=2)
for schedule in (
    lr_scheduler.LambdaLR(sgd, lambda epoch: 0.9**epoch), lr_scheduler.MultiplicativeLR(sgd, [float, lambda i: 0.9]),
    lr_scheduler.StepLR(sgd, 3), lr_scheduler.MultiStepLR(sgd, [2, 4]), lr_scheduler.ConstantLR(sgd),
    lr_scheduler.PolynomialLR(sgd), lr_scheduler.ExponentialLR(sgd, 0.9), lr_scheduler.CosineAnnealingLR(sgd, 10),
    lr_scheduler.CosineAnnealingWarmRestarts(sgd, 5, T_mult=2), lr_scheduler.CyclicLR(sgd, 0.1, [0.2, 0.3]),
    lr_scheduler.OneCycleLR(sgd, 0.1, total_steps=9), lr_scheduler.SequentialLR(sgd, [warm_up], []),
    lr_scheduler.ChainedScheduler([warm_up]),
):  # fmt: skip
    sgd.step()
    assert isinstance(schedule, lr_scheduler.LRScheduler)
    assert_type(schedule.get_last_lr(), list[Any])
    schedule.load_state_dict(schedule.state_dict())
plateau = lr_scheduler.ReduceLROnPlateau(sgd, "max", patience=2)
plateau.step(0.5)
plateau.step(dt.tensor(0.5))
assert_type(plateau.in_cooldown, bool)

# ---------------------------------------------------------------- clipping

net(dt.ones(1, 4)).sum().backward()
assert_type(nn.utils.clip_grad_norm_(net.parameters(), 1.0), dt.DeviceArray)
assert_type(nn.utils.get_total_norm([dt.ones(2)], float("inf")), dt.DeviceArray)
nn.utils.clip_grads_with_norm_(net.weight, 1.0, dt.tensor(2.0))
nn.utils.clip_grad_value_(net.parameters(), 0.5)
assert_type(nn.utils.parameters_to_vector(net.parameters()), dt.DeviceArray)
nn.utils.vector_to_parameters(dt.zeros(15), net.parameters())

# ---------------------------------------------------------------- gradients checked, refused


def cube(a: dt.Tensor) -> dt.Tensor:
    return a * a * a


point = dt.rand(3, dtype=dt.float64, requires_grad=True)
assert_type(dt.autograd.gradcheck(cube, (point,)), bool)
assert_type(dt.autograd.gradgradcheck(cube, (point,)), bool)
assert_type(dt.is_grad_enabled(), bool)
try:
    dt.ones(2).sum().backward()
except dt.GradientError as refused:
    assert_type(refused.code, str | None)
    assert_type(refused.fix_of, str | None)
assert_type(dt.GradientWarning.fix, str | None)
scaler = dt.amp.GradScaler("cpu", init_scale=8.0)
assert_type(scaler.scale(point.sum()), dt.Tensor)
assert_type(scaler.get_scale(), float)
assert_type(dt.is_autocast_enabled("cpu"), bool)
with dt.autocast("cpu", enabled=False), dt.cuda.amp.autocast(enabled=False):
    pass
assert_type(dt.get_autocast_dtype("cpu"), dt.dtype)
assert_type(dt.amp.is_autocast_available("cpu"), bool)


class Plain(dt.autograd.Function):
    @staticmethod
    @dt.amp.custom_fwd(device_type="cpu", cast_inputs=dt.float32)
    def forward(ctx: Any, x: dt.Tensor) -> dt.Tensor:
        return x * 2

    @staticmethod
    @dt.amp.custom_bwd(device_type="cpu")
    def backward(ctx: Any, grad: dt.Tensor) -> dt.Tensor:
        return grad * 2


class PlainOnCuda(dt.autograd.Function):
    @staticmethod
    @dt.cuda.amp.custom_fwd(cast_inputs=dt.float32)
    def forward(ctx: Any, x: dt.Tensor) -> dt.Tensor:
        return x * 2

    @staticmethod
    @dt.cuda.amp.custom_bwd
    def backward(ctx: Any, grad: dt.Tensor) -> dt.Tensor:
        return grad * 2


assert_type(dt.cuda.amp.GradScaler(enabled=False).is_enabled(), bool)

# ---------------------------------------------------------------- averages of weights

swa = dt.optim.swa_utils
averaged = swa.AveragedModel(net, avg_fn=swa.get_ema_avg_fn(0.9))
averaged.update_parameters(net)
assert_type(averaged.n_averaged, dt.Tensor)
for many in (swa.get_ema_multi_avg_fn(), swa.get_swa_multi_avg_fn()):
    swa.AveragedModel(net, "cpu", multi_avg_fn=many, use_buffers=True).update_parameters(net)
assert_type(swa.get_swa_avg_fn()(dt.ones(2), dt.zeros(2), 1), dt.Tensor)
swa.update_bn([dt.ones(2, 4)], averaged)
assert_type(swa.SWALR(sgd, 0.05, anneal_strategy="linear").get_last_lr(), list[Any])

# ---------------------------------------------------------------- Jacobians and Hessians

jacobians = dt.autograd.functional


def power(a: dt.Tensor) -> dt.Tensor:
    return (a**3).sum()


jacobians.jacobian(power, dt.ones(2), create_graph=True, strict=True)
jacobians.hessian(power, (dt.ones(2),))
for product in (jacobians.vjp, jacobians.jvp):
    assert_type(product(power, dt.ones(1), dt.ones(()) if product is jacobians.vjp else None), tuple[Any, Any])
for second in (jacobians.vhp, jacobians.hvp):
    assert_type(second(power, dt.ones(2), v=dt.ones(2)), tuple[dt.Tensor, Any])

# ---------------------------------------------------------------- functions, checkpoints, anomalies


class Doubled(dt.autograd.Function):
    @staticmethod
    def forward(ctx: dt.autograd.function.FunctionCtx, a: dt.Tensor) -> dt.Tensor:
        ctx.save_for_backward(a, None)
        ctx.set_materialize_grads(True)
        assert_type(ctx.needs_input_grad, tuple[bool, ...])
        return a * 2

    @staticmethod
    @dt.autograd.function.once_differentiable
    def backward(ctx: dt.autograd.function.FunctionCtx, gradient: dt.Tensor) -> dt.Tensor:
        assert len(ctx.saved_tensors) == 2
        return gradient * 2


doubled: dt.Tensor = Doubled.apply(point)
with dt.autograd.detect_anomaly(), dt.autograd.set_detect_anomaly(False):
    doubled.sum().backward()
light: dt.Tensor = dt.utils.checkpoint.checkpoint(cube, point, use_reentrant=False)
light = dt.utils.checkpoint.checkpoint_sequential([cube, cube], 2, point)
states = dt.utils.checkpoint.get_device_states(point)
assert_type(states, tuple[list[int], list[dt.DeviceArray]])
dt.utils.checkpoint.set_device_states(*states)
with (
    net.register_full_backward_hook(lambda module, grad_input, grad_output: None),
    net.register_full_backward_pre_hook(lambda module, grad_output: None),
):
    net(dt.ones(1, net.in_features)).sum().backward()

# ---------------------------------------------------------------- what ops keep

graph = dt.autograd.graph
kept = dt.ones(2, requires_grad=True)
with graph.saved_tensors_hooks(lambda x: x.half(), lambda x: x.float()), graph.save_on_cpu(pin_memory=True):
    through = (kept * kept).sum()
with graph.disable_saved_tensors_hooks("not here"):
    graph.increment_version(kept.detach())
graph.register_multi_grad_hook((kept,), lambda gradients: None, mode="all").remove()
edge = graph.get_gradient_edge(kept)
assert_type(edge, graph.GradientEdge)
assert_type(edge.node, graph.Node)
assert_type(dt.autograd.explain(through), str)

# ---------------------------------------------------------------- functions of functions

func = dt.func
layer = dt.nn.Linear(2, 1)
parameters = dict(layer.named_parameters())
scores: dt.DeviceArray = func.functional_call(layer, dict(parameters), (dt.ones(2),), {}, tie_weights=True, strict=True)
slope = func.grad(lambda p, x: func.functional_call(layer, p, x).sum(), argnums=0, has_aux=False)
dt.vmap(slope, in_dims=(None, 0), out_dims=0, randomness="different", chunk_size=None)({**parameters}, dt.ones(3, 2))
gradient, value = func.grad_and_value(lambda x: x.sum())(dt.ones(2))
primal, pull = func.vjp(lambda x: x * x, dt.ones(2), has_aux=False)
func.jvp(lambda x: x * x, (dt.ones(2),), (dt.ones(2),), strict=False, has_aux=False)
func.linearize(lambda x: x * x, dt.ones(2))[1](dt.ones(2))
func.replace_all_batch_norm_modules_(dt.nn.BatchNorm1d(2))
assert_type(dt.nn.utils.skip_init(dt.nn.Linear, 2, 3, device="cpu"), dt.nn.Linear)
func.jacrev(lambda x: x * x, 0, has_aux=False, chunk_size=1)(dt.ones(2))
func.jacfwd(lambda x: x * x, (0,), False, randomness="error")(dt.ones(2))
func.hessian(lambda x: (x * x).sum(), argnums=0)(dt.ones(2))
stacked, its_buffers = func.stack_module_state([layer, dt.nn.Linear(2, 1)])
assert_type(stacked, dict[str, dt.DeviceArray])
