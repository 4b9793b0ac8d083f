"""What the statements of graph_programs.py are drawn from.

{a} {b} {c} stand for arrays, {l} for a leaf. `tensor` makes an array on the device of the program.
"""

from __future__ import annotations

SHAPES = [(), (1,), (3,), (2, 3), (2, 1), (3, 3), (1, 3), (4, 2, 3), (2, 1, 3), (3, 2), (5,), (0, 3), (2, 0)]
# Of programs with convolutions and pools: images, filters, and what goes with them.
WINDOWS = [
    (1, 2, 4, 4),
    (2, 2, 4, 4),
    (2, 2, 3, 3),
    (2, 2, 2, 2),
    (3, 2, 1, 1),
    (2, 1, 3, 3),
    (2, 2, 4),
    (2, 2, 2),
    (2,),
]

# a, b, c: arrays. What each op needs and gives:
SMOOTH = """
{a}.tanh(); {a}.sigmoid(); {a}.sin(); {a}.cos(); lib.erf({a}); ({a} * 0.1).exp(); ({a}.abs() + 0.5).log()
({a}.square() + 1).sqrt(); ({a}.square() + 1).rsqrt(); ({a} * {a} + 1).reciprocal(); F.silu({a}); F.gelu({a})
F.gelu({a}, approximate="tanh"); F.softplus({a}); ({a} * 0.1).expm1(); {a}.square().log1p()
({a}.square() + 2).log2(); ({a}.square() + 2).log10(); {a} / 3; {a} / ({b}.square() + 1); {a} ** 3; 2.0 ** ({a} * 0.1)
({a}.abs() + 0.5) ** 1.5; ({a}.square() + 1) ** ({b} * 0.1); lib.lerp({a}, {b}, 0.3); lib.lerp({a}, {b}, {c})
{a}.exp(); {a}.log(); {a}.sqrt(); {a} / {b}; {a}.abs() ** 0.5; {a}.reciprocal(); {a}.rsqrt(); {a} ** {b}; {a}.tan()
{a}.softmax(-1); {a}.log_softmax(0); F.softmax({a}, -1, dtype=lib.float64); {a}.mean(); {a}.mean(0)
{a}.mean(-1, keepdim=True); {a}.var(); {a}.std(-1); {a}.var(0, unbiased=False); {a}.norm(); {a}.norm(3, dim=-1)
{a}.norm(1, dim=0, keepdim=True); {a}.logsumexp(-1); {a}.logsumexp(0, keepdim=True)
F.normalize({a}, dim=0); F.layer_norm({a}, {a}.shape[-1:]); F.mse_loss({a}, {b})
F.cross_entropy({a}, tensor([0, 1])); F.nll_loss({a}, tensor([1, 0, 0]))
"""
# Exact on small dyadic numbers.
EXACT = """
-{a}; {a} + {b}; {a} - {b}; {a} * {b}; {a} + 0.5; 2 - {a}; {a} * 0.5; {a} * {a}; {a} + {a}; {a}.square(); {a} * -2
lib.add({a}, {b}, alpha=2); lib.sub({a}, {b}, alpha=0.5); {a}.sum(); {a}.sum(0); {a}.sum(-1, keepdim=True)
{a}.sum((0, -1)); {a}.sum(()); {a} @ {b}; {a} @ {b}.t(); lib.matmul({a}, {a}.transpose(-1, -2)); {b} @ {a}
lib.mm({a}, {b}); lib.mv({a}, {b}); lib.dot({a}, {b}); lib.outer({a}, {b}); lib.addmm({c}, {a}, {b})
F.linear({a}, {b}); F.linear({a}, {b}, {c}); lib.bmm({a}, {b}.transpose(1, 2)); {a}.prod(); {a}.prod(0)
{a}.prod(-1, keepdim=True); {a}.clone(); {a} ** 2; {a} ** 0; {a} ** 1; lib.baddbmm({c}, {a}, {b}, beta=0.5, alpha=2)
lib.cat([{a}, {b}]); lib.cat([{a}, {b}, {a}], -1); lib.cat([{a}, {b}], 0); lib.stack([{a}, {b}])
lib.stack([{a}, {a}], -1); lib.stack([{a}, {b}, {c}], 1); {a}.repeat(2, 1); lib.flip({a}, (0,)); lib.roll({a}, 1, 0)
lib.tril({a}); lib.triu({a}, 1); F.pad({a}, (1, 2)); {a}.t().contiguous(); {a}.repeat_interleave(2, 0)
{a}.double(); {a}.to(lib.float64); sum({a}); sum({a}.unbind(-1)); sum(c.sum() for c in {a}.chunk(2))
{a}[tensor([0, 1, 0])]; {a}[[0, -1]]; {a}[:, tensor([0, 0])]; {a}[tensor([1, 0]), tensor([0, 0])]
lib.index_select({a}, -1, tensor([0, 0, 1])); lib.gather({a}, 0, tensor([[0, 1, 0]]))
lib.take({a}, tensor([[0, 1], [1, 0]])); lib.take_along_dim({a}, tensor([[0, 1]]), -1)
F.embedding(tensor([[0, 1], [1, 1]]), {a}); lib.scatter_add({a}, 0, tensor([[0, 1]]), {b})
lib.index_add({a}, 0, tensor([0, 0]), {b}); lib.index_add({a}, -1, tensor([0, 1, 0]), {b}, alpha=-2)
"""
# Steps and corners: only on exact operands, where both libraries see the same side.
CORNERS = """
{a}.abs(); {a}.relu(); F.elu({a}); F.relu6({a}); F.leaky_relu({a}, 0.25); F.hardtanh({a}, -0.5, 0.5); {a}.sign()
{a}.floor(); ({a} * 3).ceil()
{a}.round(); {a}.trunc(); lib.maximum({a}, {b}); lib.minimum({a}, {b}); {a}.clamp(-0.5, 1)
{a}.clamp(min=0); {a}.clamp(max={b}); {a}.clamp({b}, {c}); lib.where({a} > {b}, {a}, {b}); lib.where({a} > 0, {b}, 0.5)
lib.where({a} < {b}, 2.0, {a}); {a}.masked_fill({a} > 0, 2.0); {a}.masked_fill({b} > 0, -1); {a}[{a} > 0]
{a}[{b} >= 0]; lib.masked_select({a}, {b} > 0); {a}.amax(); {a}.amax(0); {a}.amin(-1, keepdim=True); {a}.amax((0, -1))
{a}.max(); {a}.min(); {a}.max(0).values; {a}.min(-1, keepdim=True).values; {a} % 0.75; {a} % {b}
{a}.detach() * ({b} > 0)
F.l1_loss({a}, {b}); ({a} > {b}).double() * {a}; F.max_pool2d({a}, 1); lib.floor_divide({a}, 2).detach() * {b}
{a} * {a}.sign()
"""
VIEWS = """
{a}.t(); {a}.transpose(0, -1); {a}.mT; {a}.reshape(-1); {a}.flatten(); {a}.unsqueeze(0); {a}.unsqueeze(-1)
{a}.squeeze(); {a}.squeeze(0); {a}.squeeze(-1); {a}[0]; {a}[-1]; {a}[..., 0]; {a}[:, 0]; {a}[1:]; {a}[..., 1:]
{a}[::2]; {a}[..., ::2]; {a}[None]; {a}[..., None]; {a}[1:1]; {a}.expand(2, 3); {a}.expand(2, -1, 3)
{a}.expand(4, 2, 3)
{a}.narrow(0, 1, 1); {a}.narrow(-1, 0, 2); {a}.select(-1, 0); {a}.permute(-1, 0); {a}.permute(2, 0, 1)
{a}.reshape(3, -1); {a}.view(-1); {a}.view(1, -1); {a}.unbind()[0]; {a}.split(2)[0]; {a}.split([1, 1])[1]
{a}.chunk(2, -1)[0]; {a}.movedim(0, -1); {a}.ravel(); {a}.unflatten(0, (1, -1)); {a}.detach(); {a}.contiguous()
{a}[0, 1]; {a}[1, ..., 0]; {a}.expand_as({b}); {a}.view_as({b}); {a}.broadcast_to((2, 3)); {a}.swapaxes(0, 1)
{a}.reshape(()); {a}.data
"""
IN_PLACE = """
{a}.add_({b}); {a}.sub_(0.5); {a}.mul_({b}); {a}.mul_(2); {a}.neg_(); {a}.square_(); {a}.zero_(); {a}.fill_(0.5)
{a}.copy_({b}); {a}[0] = 1.5; {a}[0] = {b}; {a}[..., 0] = {b}; {a}[1:] = 2; {a}.add_({b}, alpha=2); {a} += {b}
{a} *= 0.5; {a}[:] = {b}; {a}[tensor([0, 0])] = 0.5; {a}[[0, 1]] = {b}; {a}[..., None] = 1.0
{a}.index_add_(0, tensor([0, 0]), {b}); {a} -= 1
"""
IN_PLACE_SMOOTH = """
{a}.tanh_(); {a}.sigmoid_(); {a}.sin_(); {a}.cos_(); {a}.div_(3); {a}.pow_(3); {a}.lerp_({b}, 0.3); {a}.exp_()
{a}.div_({b}.square() + 1)
"""
IN_PLACE_CORNERS = """
{a}.relu_(); {a}.abs_(); {a}.clamp_(-0.5, 0.5); {a}.masked_fill_({b} > 0, 0.25); {a}[{a} > 0] = 0.5; {a}[{b} > 0] = 0.0
"""
CASTS = "{a}.float(); {a}.float() * 2; {a}.float().double(); {a}.to(lib.float32) + {b}.float(); {a}.half().double()"
SMOOTH_MORE = """
{a}.sinh(); {a}.cosh(); {a}.asinh(); ({a}.square() + 1.5).acosh(); ({a}.tanh() * 0.9).atanh(); ({a}.tanh() * 0.9).asin()
({a}.tanh() * 0.9).acos(); {a}.atan(); lib.sinc({a}); {a}.sigmoid().logit(); lib.logaddexp({a}, {b})
lib.logaddexp2({a}, {b}); lib.hypot({a}, {b}.square() + 1); lib.atan2({a}, {b}.square() + 1)
lib.xlogy({a}, {b}.square() + 1); {a}.erfc(); ({a}.tanh() * 0.9).erfinv(); ({a}.square() + 1).lgamma()
({a}.square() + 1).digamma(); ({a} * 0.1).exp2(); lib.addcmul({c}, {a}, {b}, value=0.3)
lib.addcdiv({c}, {a}, {b}.square() + 1); {a}.cumprod(0); {a}.logcumsumexp(-1); F.mish({a}); F.logsigmoid({a})
F.softsign({a}); F.tanhshrink({a}); F.softmin({a}, -1); F.glu({a}); F.glu({a}, 0); F.group_norm({a}, 1)
F.group_norm({a}, 2, {b}, {b}); F.batch_norm({a}, None, None, None, None, True); F.instance_norm({a})
F.batch_norm({a}, None, None, {b}, {b}, True); F.rms_norm({a}, {a}.shape[-1:]); F.layer_norm({a}, {b}.shape, {b}, {b})
F.cosine_similarity({a}, {b}, -1); F.pairwise_distance({a}, {b}); F.kl_div({a}.log_softmax(-1), {b}.softmax(-1))
F.binary_cross_entropy_with_logits({a}, {b}.sigmoid()); F.binary_cross_entropy({a}.sigmoid(), {b}.sigmoid())
F.poisson_nll_loss({a} * 0.1, {b}); F.gaussian_nll_loss({a}, {b}, {a}.square() + 1)
F.scaled_dot_product_attention({a}, {b}, {b}); F.scaled_dot_product_attention({a}, {a}, {a}, is_causal=True)
lib.cdist({a}, {b}); {a}.std((0, -1)); lib.var_mean({a})[0]; lib.std_mean({a}, -1)[0]; lib.linalg.vector_norm({a})
lib.linalg.inv({a} @ {a}.mT + eye({a})); lib.linalg.solve({a} @ {a}.mT + eye({a}), {a}); lib.linalg.det({a})
lib.logdet({a} @ {a}.mT + eye({a})); lib.linalg.cholesky({a} @ {a}.mT + eye({a})); lib.matrix_exp({a} * 0.1)
lib.linalg.multi_dot([{a}, {b}, {a}]); Cube.apply({a}); Cube.apply({a}) * {b}
checkpoint(lambda x, y: (x * y).tanh() + y, {a}, {b}, use_reentrant=False)
lib.nn.functional.bilinear({a}, {b}, {c}); F.softplus({a}, beta=2); F.silu({a}) * {b}.sigmoid(); ({a} - {a}.mean()) / 2
F.cross_entropy({a}, {b}.softmax(-1)); F.cross_entropy({a}, tensor([0, 1]), label_smoothing=0.1, reduction="sum")
"""
EXACT_MORE = """
{a}.cumsum(0); {a}.cumsum(-1); lib.einsum("ij,kj->ik", {a}, {b}); lib.einsum("ij->j", {a})
lib.einsum("ij,ij->", {a}, {b})
lib.einsum("bij,bjk->bik", {a}, {b}.mT); {a}.diff(); lib.tensordot({a}, {b}, 1); lib.kron({a}, {b}); lib.trace({a})
lib.diag({a}); lib.diag_embed({a}); lib.rot90({a}); lib.fliplr({a}); lib.hstack([{a}, {b}]); lib.vstack([{a}, {b}])
lib.dstack([{a}, {b}]); {a}.tile(2); lib.block_diag({a}, {b}); lib.addmv({c}, {a}, {b}); lib.addr({c}, {a}, {b})
lib.inner({a}, {b}); {a}.scatter(0, tensor([[0, 1]]), {b}); {a}.scatter(-1, tensor([[0]]), 0.5)
{a}.index_fill(0, tensor([0]), 2.0); {a}.index_copy(0, tensor([0]), {b}); lib.select_scatter({a}, {b}, 0, 0)
lib.slice_scatter({a}, {b}, 0, 0, 1); lib.diagonal_scatter({a}, {b})
{a}.index_put((tensor([0, 0]),), {b}, accumulate=True)
{a}.index_put((tensor([0, 1]),), {b}); lib.addbmm({c}, {a}, {b}); {a}.nansum(); lib.broadcast_tensors({a}, {b})[0]
lib.meshgrid({a}, {b}, indexing="ij")[0]; lib.cross({a}, {b}, dim=-1); lib.moveaxis({a}, 0, -1); {a}.mul({b}).sum(-1)
checkpoint(lambda x: x * 2 + x, {a}, use_reentrant=False); {a}.sum(-1).unsqueeze(-1) * {b}
{a}.masked_fill({a} != {a}, 0)
{a}.type_as({b}) + {b}; {a}.new_zeros({a}.shape) + {a}; lib.addcmul({c}, {a}, {b}, value=2); Twice.apply({a})
Twice.apply({a}) + {b}
"""
CORNERS_MORE = """
{a}.sort(dim=0, stable=True).values; {a}.sort(dim=-1, descending=True, stable=True).values
lib.gather({a}, -1, {a}.argsort(dim=-1, stable=True)); {a}.cummax(0).values; {a}.cummin(-1).values; F.hardswish({a})
F.hardsigmoid({a}); F.hardshrink({a}); F.softshrink({a}); F.threshold({a}, 0.25, 0.5); F.prelu({a}, {b}); F.selu({a})
F.celu({a}); lib.fmin({a}, {b}); lib.fmax({a}, {b}); {a}.frac(); lib.fmod({a}, 0.75); lib.fmod({a}, {b})
lib.copysign({a}, {b}); F.huber_loss({a}, {b}); F.smooth_l1_loss({a}, {b}); F.margin_ranking_loss({a}, {b}, {b}.sign())
F.hinge_embedding_loss({a}, {b}.sign()); {a}.nan_to_num(0.5); lib.aminmax({a})[0]; lib.aminmax({a}, dim=0)[1]
{a}.clip(-1, 0.5); {a}.masked_scatter({b} > 0, {a} * 2); lib.where({a} == {b}, {a}, {b} * 2); {a}.clamp_min(0)
{a}.scatter_reduce(0, tensor([[0, 0]]), {b}, "amax"); lib.dist({a}, {b}, 1); F.relu({a}) * {b}; F.rrelu({a}, 0.25, 0.25)
"""
VIEWS_MORE = """
{a}.unfold(0, 2, 1); {a}.unfold(-1, 2, 2); {a}.diagonal(); {a}.diagonal(1, 0, -1); {a}.T; {a}.swapdims(0, -1)
{a}.as_strided((2,), (1,)); {a}[..., -1:]; {a}.tensor_split(2)[0]; {a}.squeeze((0, -1)); {a}.flatten(0, 1)
{a}.adjoint(); lib.atleast_2d({a}); {a}.split(1, -1)[0][..., 0]; {a}.unbind(-1)[-1]; {a}.narrow(0, 0, 1).expand_as({b})
"""
IN_PLACE_MORE = """
{a}.addcmul_({b}, {c}); {a}.scatter_(0, tensor([[0]]), {b}); {a}.index_fill_(0, tensor([0]), 0.5); {a}.tril_()
{a}.index_copy_(0, tensor([0]), {b}); {a}.index_put_((tensor([0, 0]),), {b}, accumulate=True); {a}.fill_diagonal_(0.5)
{a}.cumsum_(0); {a}.detach_(); {a}.scatter_add_(0, tensor([[0, 0]]), {b}); {a}[..., ::2] += 1; {a}[0] *= 2
{a}[..., 0] -= {b}
{a}.addcdiv_({b}, 2 + 0 * {c}); {a}.index_put_((tensor([0]),), {b}); {a}.masked_fill_({a} != {a}, 1)
{a}.diagonal().add_(1)
"""
CONVOLUTIONS = """
F.conv2d({a}, {b}); F.conv2d({a}, {b}, padding=1); F.conv2d({a}, {b}, {c}, stride=2, padding=1)
F.conv2d({a}, {b}, groups=2)
F.conv2d({a}, {b}, dilation=2, padding=2); F.conv1d({a}, {b}); F.conv1d({a}, {b}, {c}, 1, 1)
F.conv_transpose2d({a}, {b})
F.conv_transpose2d({a}, {b}, stride=2, padding=1, output_padding=1); F.avg_pool2d({a}, 2); F.avg_pool2d({a}, 3, 1, 1)
F.avg_pool2d({a}, 3, 2, 1, count_include_pad=False); F.avg_pool1d({a}, 2); F.adaptive_avg_pool2d({a}, 1)
F.adaptive_avg_pool2d({a}, (2, 3)); F.unfold({a}, 2); F.fold({a}, (3, 3), 2); F.pixel_shuffle({a}, 1)
F.interpolate({a}, scale_factor=2); F.interpolate({a}, size=(3, 3), mode="bilinear"); F.pad({a}, (1, 1), mode="reflect")
F.pad({a}, (1, 2, 0, 1), mode="replicate"); F.pad({a}, (1, 1, 1, 1), mode="circular"); F.pad({a}, (-1, 1), value=0.5)
F.interpolate({a}, size=(5, 5), mode="bilinear", align_corners=True); F.local_response_norm({a}, 2)
F.batch_norm({a}, None, None, {c}, {c}, True); F.group_norm({a}, 2); F.instance_norm({a})
F.group_norm({a}, 1, {c}, {c})
F.conv2d({a}, {b}, {c}).tanh(); F.conv2d({a}, {a}, padding=1); F.lp_pool2d({a}.abs() + 0.5, 2, 2)
"""
POOLS = """
F.max_pool2d({a}, 2); F.max_pool2d({a}, 3, 1, 1); F.max_pool2d({a}, 2, stride=1)
F.max_pool2d({a}, 2, return_indices=True)[0]
F.adaptive_max_pool2d({a}, 1); F.adaptive_max_pool2d({a}, (2, 3)); F.max_pool1d({a}, 2); F.conv2d({a}, {b}).relu()
F.max_pool2d({a}, 3, 2, 1); F.relu6({a}); F.leaky_relu({a}, 0.25); {a}.amax((-1, -2))
"""
# What has nothing to do with the values.
EVENTS = """
{a}.register_hook(lambda g: g * 2); {a}.register_hook(lambda g: log.append(("{a}", g.clone()))); {a}.retain_grad()
{a}.register_hook(lambda g: None); {a}.register_hook(lambda g: g + 1).remove(); {l}.requires_grad_(False)
{l}.requires_grad_(); {l}.grad = None; {l}.requires_grad = True; {a}.requires_grad_(); {l}.grad = lib.ones_like({l})
{l}.register_post_accumulate_grad_hook(lambda p: log.append(("after", p.grad.clone())))
{l}.grad.zero_(); {a}.register_hook(lambda g: lib.zeros(7)); {a}.register_hook(lambda g: 3)
{a}.cpu().numpy(); {a}.tolist(); {l}.add_(1); {l}.grad = lib.ones(7, dtype=lib.float64); {a}.requires_grad_(False)
{l}[0] = 1; {l}.detach().add_(0.25); {l}.grad = {l}; {a}.register_hook(lambda g: {l}.detach().sum() * g)
{a}.item(); {l}.requires_grad
"""
LOSSES = """
{a}.sum().backward(); {a}.square().sum().backward(); ({a} * {b}).sum().backward(); {a}.sum().backward(retain_graph=True)
{a}.backward(lib.ones_like({a})); ({a} * {b}).mean().backward(retain_graph=True); {a}.backward()
lib.autograd.backward([{a}.sum(), {b}.sum()]); lib.autograd.backward([{a}, {b}], [lib.ones_like({a}), {b}.detach() * 1])
{a}.sum().backward(inputs=[{l}]); ({a}.sum() + {b}.sum()).backward(inputs=[{l}, {b}], retain_graph=True)
{a}.backward({a}.detach() * 2, retain_graph=True); {a}.backward(lib.ones(7, dtype=lib.float64)); {a}.backward({b} * 1)
"""
GRADS = """
lib.autograd.grad({a}.sum(), {l}); lib.autograd.grad({a}.sum(), [{l}, {b}], allow_unused=True)
lib.autograd.grad(({a} * {b}).sum(), [{l}], retain_graph=True, allow_unused=True)
lib.autograd.grad({a}.square().sum(), [{l}], create_graph=True); lib.autograd.grad({a}, {a}, {b} * 1)
lib.autograd.grad(({a} * {b}).sum(), [{a}, {b}, {l}], create_graph=True, allow_unused=True)
lib.autograd.grad([{a}.sum(), {b}.sum()], [{l}], materialize_grads=True)
"""


def rows(text: str) -> list[str]:
    return [row.strip() for line in text.strip().splitlines() for row in line.split("; ") if row.strip()]


KINDS = {
    "smooth": (rows(SMOOTH), 8),
    "exact": (rows(EXACT), 12),
    "corners": (rows(CORNERS), 7),
    "views": (rows(VIEWS), 10),
    "in_place": (rows(IN_PLACE), 2),
    "in_place_smooth": (rows(IN_PLACE_SMOOTH), 1),
    "in_place_corners": (rows(IN_PLACE_CORNERS), 1),
    "casts": (rows(CASTS), 1),
    "events": (rows(EVENTS), 3),
    "losses": (rows(LOSSES), 3),
    "grads": (rows(GRADS), 2),
    "leaf": ([], 2),
    "smooth_more": (rows(SMOOTH_MORE), 6),
    "exact_more": (rows(EXACT_MORE), 6),
    "corners_more": (rows(CORNERS_MORE), 4),
    "views_more": (rows(VIEWS_MORE), 2),
    "in_place_more": (rows(IN_PLACE_MORE), 1),
    "convolutions": (rows(CONVOLUTIONS), 0),
    "pools_corners": (rows(POOLS), 0),
}
# Of programs with convolutions and pools.
WINDOW_WEIGHTS = [
    {"convolutions": 30, "pools_corners": 12}.get(kind, weight / 3) for kind, (_, weight) in KINDS.items()
]
