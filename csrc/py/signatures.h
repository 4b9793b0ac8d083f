/* Made by tools/package/signatures.py of signatures.pyi. PY_SPEC_f: what PY_PARSE(f) reads. PY_TEXT_f and
 * PY_SELF_f: the parameters of the function and of the method f in their docstrings. */
#ifndef DEVTENSOR_SIGNATURES_H
#define DEVTENSOR_SIGNATURES_H
/* clang-format off */
#define PY_SPEC_gelu {"gelu", 1, 1, -1, {"input", "approximate", "out"}, __func__}
#define PY_TEXT_gelu "input, *, approximate='none', out=None"
#define PY_SELF_gelu "$self, *, approximate='none'"
#define PY_SPEC_clamp {"clamp", 1, 3, -1, {"input", "min", "max", "out"}, __func__}
#define PY_TEXT_clamp "input, min=None, max=None, *, out=None"
#define PY_SELF_clamp "$self, min=None, max=None"
#define PY_SELF_clamp_ "$self, min=None, max=None"
#define PY_SPEC_add {"add", 2, 2, -1, {"input", "other", "alpha", "out"}, __func__}
#define PY_TEXT_add "input, other, *, alpha=1, out=None"
#define PY_SELF_add "$self, other, *, alpha=1"
#define PY_SELF_add_ "$self, other, *, alpha=1"
#define PY_SPEC_sub {"sub", 2, 2, -1, {"input", "other", "alpha", "out"}, __func__}
#define PY_TEXT_sub "input, other, *, alpha=1, out=None"
#define PY_SELF_sub "$self, other, *, alpha=1"
#define PY_SELF_sub_ "$self, other, *, alpha=1"
#define PY_SPEC_div {"div", 2, 2, -1, {"input", "other", "rounding_mode", "out"}, __func__}
#define PY_TEXT_div "input, other, *, rounding_mode=None, out=None"
#define PY_SELF_div "$self, other, *, rounding_mode=None"
#define PY_SELF_div_ "$self, other, *, rounding_mode=None"
#define PY_SPEC_pow {"pow", 2, 2, -1, {"input", "exponent", "out"}, __func__}
#define PY_TEXT_pow "input, exponent, *, out=None"
#define PY_SELF_pow "$self, exponent"
#define PY_SELF_pow_ "$self, exponent"
#define PY_SPEC_where {"where", 1, 3, -1, {"condition", "input", "other", "out"}, __func__}
#define PY_TEXT_where "condition, input=None, other=None, *, out=None"
#define PY_SPEC_lerp {"lerp", 3, 3, -1, {"input", "end", "weight", "out"}, __func__}
#define PY_TEXT_lerp "input, end, weight, *, out=None"
#define PY_SELF_lerp "$self, end, weight"
#define PY_SELF_lerp_ "$self, end, weight"
#define PY_SPEC__huber {"huber_loss", 3, 3, -1, {"input", "target", "delta"}, __func__}
#define PY_TEXT__huber "input, target, delta"
#define PY_SPEC__affine {"addcmul", 3, 3, -1, {"input", "scale", "shift"}, __func__}
#define PY_TEXT__affine "input, scale, shift"
#define PY_SPEC__affine_ {"_affine_", 3, 3, -1, {"input", "scale", "shift"}, __func__}
#define PY_TEXT__affine_ "input, scale, shift"
#define PY_SPEC__batch_norm {"batch_norm", 6, 6, -1, {"input", "running_mean", "running_var", "weight", "bias", "eps"}, __func__}
#define PY_TEXT__batch_norm "input, running_mean, running_var, weight, bias, eps"
#define PY_SPEC__normalize_channels {"batch_norm", 5, 5, -1, {"input", "weight", "bias", "stats", "eps"}, __func__}
#define PY_TEXT__normalize_channels "input, weight, bias, stats, eps"
#define PY_SPEC__layer_norm {"layer_norm", 6, 6, -1, {"input", "weight", "bias", "lead", "eps", "centred"}, __func__}
#define PY_TEXT__layer_norm "input, weight, bias, lead, eps, centred"
#define PY_SPEC__rms_norm {"rms_norm", 6, 6, -1, {"input", "weight", "bias", "lead", "eps", "centred"}, __func__}
#define PY_TEXT__rms_norm "input, weight, bias, lead, eps, centred"
#define PY_SPEC__dropout {"dropout", 2, 2, -1, {"input", "p"}, __func__}
#define PY_TEXT__dropout "input, p"
#define PY_SPEC__group_norm {"group_norm", 4, 4, -1, {"input", "weight", "bias", "eps"}, __func__}
#define PY_TEXT__group_norm "input, weight, bias, eps"
#define PY_SPEC__lstm_cell {"lstm", 3, 3, -1, {"own", "input", "state"}, __func__}
#define PY_TEXT__lstm_cell "own, input, state"
#define PY_SPEC__gru_cell {"gru", 3, 3, -1, {"own", "input", "state"}, __func__}
#define PY_TEXT__gru_cell "own, input, state"
#define PY_SPEC__lstm_steps {"lstm", 4, 5, -1, {"product", "weight", "h", "c", "reverse"}, __func__}
#define PY_TEXT__lstm_steps "product, weight, h, c, reverse=False"
#define PY_SPEC__gru_steps {"gru", 3, 5, -1, {"product", "weight", "h", "bias", "reverse"}, __func__}
#define PY_TEXT__gru_steps "product, weight, h, bias=None, reverse=False"
#define PY_SPEC__lstm_steps_kept {"lstm", 4, 5, -1, {"product", "weight", "h", "c", "reverse"}, __func__}
#define PY_TEXT__lstm_steps_kept "product, weight, h, c, reverse=False"
#define PY_SPEC__gru_steps_kept {"gru", 3, 5, -1, {"product", "weight", "h", "bias", "reverse"}, __func__}
#define PY_TEXT__gru_steps_kept "product, weight, h, bias=None, reverse=False"
#define PY_SPEC__steps_grad {"recurrent", 5, 7, -1, {"own", "product", "weight", "states", "grad", "last", "reverse"}, __func__}
#define PY_TEXT__steps_grad "own, product, weight, states, grad, last=None, reverse=False"
#define PY_SPEC__remap {"interpolate", 8, 8, -1, {"input", "dim", "kinds", "sizes", "before", "steps", "shifts", "columns_first"}, __func__}
#define PY_TEXT__remap "input, dim, kinds, sizes, before, steps, shifts, columns_first"
#define PY_SPEC__resample {"interpolate", 4, 4, -1, {"input", "index", "share", "dim"}, __func__}
#define PY_TEXT__resample "input, index, share, dim"
#define PY_SPEC_isclose {"isclose", 2, 5, -1, {"input", "other", "rtol", "atol", "equal_nan"}, __func__}
#define PY_TEXT_isclose "input, other, rtol=1e-05, atol=1e-08, equal_nan=False"
#define PY_SELF_isclose "$self, other, rtol=1e-05, atol=1e-08, equal_nan=False"
#define PY_SPEC_allclose {"allclose", 2, 5, -1, {"input", "other", "rtol", "atol", "equal_nan"}, __func__}
#define PY_TEXT_allclose "input, other, rtol=1e-05, atol=1e-08, equal_nan=False"
#define PY_SELF_allclose "$self, other, rtol=1e-05, atol=1e-08, equal_nan=False"
#define PY_SPEC_equal {"equal", 2, 2, -1, {"input", "other"}, __func__}
#define PY_TEXT_equal "input, other"
#define PY_SELF_equal "$self, other"
#define PY_SPEC_array_equal {"array_equal", 2, 2, -1, {"input", "other"}, __func__}
#define PY_TEXT_array_equal "input, other"
#define PY_SPEC__variance {"var", 5, 5, -1, {"input", "dim", "keepdim", "count", "root"}, __func__}
#define PY_TEXT__variance "input, dim, keepdim, count, root"
#define PY_SPEC__sum_squares {"_sum_squares", 1, 3, -1, {"input", "dim", "keepdim"}, __func__}
#define PY_TEXT__sum_squares "input, dim=None, keepdim=False"
#define PY_SPEC__root_squares {"_root_squares", 1, 3, -1, {"input", "dim", "keepdim"}, __func__}
#define PY_TEXT__root_squares "input, dim=None, keepdim=False"
#define PY_SPEC_max {"max", 1, 3, -1, {"input", "dim", "keepdim", "other", "out"}, __func__}
#define PY_TEXT_max "input, dim=None, keepdim=False, *, other=None, out=None"
#define PY_SELF_max "$self, dim=None, keepdim=False, *, other=None"
#define PY_SPEC_min {"min", 1, 3, -1, {"input", "dim", "keepdim", "other", "out"}, __func__}
#define PY_TEXT_min "input, dim=None, keepdim=False, *, other=None, out=None"
#define PY_SELF_min "$self, dim=None, keepdim=False, *, other=None"
#define PY_SPEC_softmax {"softmax", 1, 2, -1, {"input", "dim", "dtype"}, __func__}
#define PY_TEXT_softmax "input, dim=None, *, dtype=None"
#define PY_SELF_softmax "$self, dim=None, *, dtype=None"
#define PY_SPEC_log_softmax {"log_softmax", 1, 2, -1, {"input", "dim", "dtype"}, __func__}
#define PY_TEXT_log_softmax "input, dim=None, *, dtype=None"
#define PY_SELF_log_softmax "$self, dim=None, *, dtype=None"
#define PY_SPEC_cumsum {"cumsum", 2, 2, -1, {"input", "dim", "dtype", "out"}, __func__}
#define PY_TEXT_cumsum "input, dim, *, dtype=None, out=None"
#define PY_SELF_cumsum "$self, dim, *, dtype=None"
#define PY_SELF_cumsum_ "$self, dim, *, dtype=None"
#define PY_SPEC_cumprod {"cumprod", 2, 2, -1, {"input", "dim", "dtype", "out"}, __func__}
#define PY_TEXT_cumprod "input, dim, *, dtype=None, out=None"
#define PY_SELF_cumprod "$self, dim, *, dtype=None"
#define PY_SELF_cumprod_ "$self, dim, *, dtype=None"
#define PY_SPEC_logcumsumexp {"logcumsumexp", 2, 2, -1, {"input", "dim", "out"}, __func__}
#define PY_TEXT_logcumsumexp "input, dim, *, out=None"
#define PY_SELF_logcumsumexp "$self, dim"
#define PY_SPEC_cummax {"cummax", 2, 2, -1, {"input", "dim", "out"}, __func__}
#define PY_TEXT_cummax "input, dim, *, out=None"
#define PY_SELF_cummax "$self, dim"
#define PY_SPEC_cummin {"cummin", 2, 2, -1, {"input", "dim", "out"}, __func__}
#define PY_TEXT_cummin "input, dim, *, out=None"
#define PY_SELF_cummin "$self, dim"
#define PY_SPEC_sort {"sort", 1, 3, -1, {"input", "dim", "descending", "stable", "out"}, __func__}
#define PY_TEXT_sort "input, dim=-1, descending=False, *, stable=None, out=None"
#define PY_SELF_sort "$self, dim=-1, descending=False, *, stable=None"
#define PY_SPEC_argsort {"argsort", 1, 3, -1, {"input", "dim", "descending", "stable", "out"}, __func__}
#define PY_TEXT_argsort "input, dim=-1, descending=False, *, stable=None, out=None"
#define PY_SELF_argsort "$self, dim=-1, descending=False, *, stable=None"
#define PY_SPEC__kth {"kthvalue", 3, 3, -1, {"input", "k", "along"}, __func__}
#define PY_TEXT__kth "input, k, along"
#define PY_SPEC_topk {"topk", 2, 5, -1, {"input", "k", "dim", "largest", "sorted", "out"}, __func__}
#define PY_TEXT_topk "input, k, dim=-1, largest=True, sorted=True, *, out=None"
#define PY_SELF_topk "$self, k, dim=-1, largest=True, sorted=True"
#define PY_SPEC_reshape {"reshape", 2, 2, 1, {"input", "shape"}, __func__}
#define PY_TEXT_reshape "input, *shape"
#define PY_SELF_reshape "$self, *shape"
#define PY_SPEC_view {"view", 2, 2, 1, {"input", "size"}, __func__}
#define PY_TEXT_view "input, *size"
#define PY_SELF_view "$self, *size"
#define PY_SPEC_flatten {"flatten", 1, 3, -1, {"input", "start_dim", "end_dim"}, __func__}
#define PY_TEXT_flatten "input, start_dim=0, end_dim=-1"
#define PY_SELF_flatten "$self, start_dim=0, end_dim=-1"
#define PY_SPEC_unflatten {"unflatten", 3, 3, -1, {"input", "dim", "sizes"}, __func__}
#define PY_TEXT_unflatten "input, dim, sizes"
#define PY_SELF_unflatten "$self, dim, sizes"
#define PY_SPEC_transpose {"transpose", 3, 3, -1, {"input", "dim0", "dim1"}, __func__}
#define PY_TEXT_transpose "input, dim0, dim1"
#define PY_SELF_transpose "$self, dim0, dim1"
#define PY_SPEC_t {"t", 1, 1, -1, {"input"}, __func__}
#define PY_TEXT_t "input"
#define PY_SELF_t "$self"
#define PY_SPEC_permute {"permute", 2, 2, 1, {"input", "dims"}, __func__}
#define PY_TEXT_permute "input, *dims"
#define PY_SELF_permute "$self, *dims"
#define PY_SPEC_movedim {"movedim", 3, 3, -1, {"input", "source", "destination"}, __func__}
#define PY_TEXT_movedim "input, source, destination"
#define PY_SELF_movedim "$self, source, destination"
#define PY_SPEC_squeeze {"squeeze", 1, 2, -1, {"input", "dim"}, __func__}
#define PY_TEXT_squeeze "input, dim=None"
#define PY_SELF_squeeze "$self, dim=None"
#define PY_SPEC_unsqueeze {"unsqueeze", 2, 2, -1, {"input", "dim"}, __func__}
#define PY_TEXT_unsqueeze "input, dim"
#define PY_SELF_unsqueeze "$self, dim"
#define PY_SPEC_expand {"expand", 2, 2, 1, {"input", "size"}, __func__}
#define PY_TEXT_expand "input, *size"
#define PY_SELF_expand "$self, *size"
#define PY_SPEC_broadcast_to {"broadcast_to", 2, 2, 1, {"input", "size"}, __func__}
#define PY_TEXT_broadcast_to "input, *size"
#define PY_SELF_broadcast_to "$self, *size"
#define PY_SPEC_narrow {"narrow", 4, 4, -1, {"input", "dim", "start", "length"}, __func__}
#define PY_TEXT_narrow "input, dim, start, length"
#define PY_SELF_narrow "$self, dim, start, length"
#define PY_SPEC_select {"select", 3, 3, -1, {"input", "dim", "index"}, __func__}
#define PY_TEXT_select "input, dim, index"
#define PY_SELF_select "$self, dim, index"
#define PY_SPEC_diagonal {"diagonal", 1, 4, -1, {"input", "offset", "dim1", "dim2"}, __func__}
#define PY_TEXT_diagonal "input, offset=0, dim1=0, dim2=1"
#define PY_SELF_diagonal "$self, offset=0, dim1=0, dim2=1"
#define PY_SPEC_cat {"cat", 1, 2, -1, {"tensors", "dim", "out"}, __func__}
#define PY_TEXT_cat "tensors, dim=0, *, out=None"
#define PY_SPEC_stack {"stack", 1, 2, -1, {"tensors", "dim", "out"}, __func__}
#define PY_TEXT_stack "tensors, dim=0, *, out=None"
#define PY_SPEC_split {"split", 2, 3, -1, {"tensor", "split_size_or_sections", "dim"}, __func__}
#define PY_TEXT_split "tensor, split_size_or_sections, dim=0"
#define PY_SELF_split "$self, split_size_or_sections, dim=0"
#define PY_SPEC_chunk {"chunk", 2, 3, -1, {"input", "chunks", "dim"}, __func__}
#define PY_TEXT_chunk "input, chunks, dim=0"
#define PY_SELF_chunk "$self, chunks, dim=0"
#define PY_SPEC_unbind {"unbind", 1, 2, -1, {"input", "dim"}, __func__}
#define PY_TEXT_unbind "input, dim=0"
#define PY_SELF_unbind "$self, dim=0"
#define PY_SPEC_index_select {"index_select", 3, 3, -1, {"input", "dim", "index", "out"}, __func__}
#define PY_TEXT_index_select "input, dim, index, *, out=None"
#define PY_SELF_index_select "$self, dim, index"
#define PY_SPEC_gather {"gather", 3, 3, -1, {"input", "dim", "index", "out"}, __func__}
#define PY_TEXT_gather "input, dim, index, *, out=None"
#define PY_SELF_gather "$self, dim, index"
#define PY_SPEC_scatter_add {"scatter_add", 4, 4, -1, {"input", "dim", "index", "src"}, __func__}
#define PY_TEXT_scatter_add "input, dim, index, src"
#define PY_SELF_scatter_add "$self, dim, index, src"
#define PY_SPEC_index_add {"index_add", 4, 4, -1, {"input", "dim", "index", "source", "alpha"}, __func__}
#define PY_TEXT_index_add "input, dim, index, source, *, alpha=1"
#define PY_SELF_index_add "$self, dim, index, source, *, alpha=1"
#define PY_SPEC__pick_nll_loss {"nll_loss", 5, 5, -1, {"input", "target", "logs", "dim", "index"}, __func__}
#define PY_TEXT__pick_nll_loss "input, target, logs, dim, index"
#define PY_SPEC__pick_cross_entropy {"cross_entropy", 5, 5, -1, {"input", "target", "logs", "dim", "index"}, __func__}
#define PY_TEXT__pick_cross_entropy "input, target, logs, dim, index"
#define PY_SPEC__check_binary_cross_entropy {"binary_cross_entropy", 3, 3, -1, {"input", "target", "what"}, __func__}
#define PY_TEXT__check_binary_cross_entropy "input, target, what"
#define PY_SPEC_take {"take", 2, 2, -1, {"input", "index", "out"}, __func__}
#define PY_TEXT_take "input, index, *, out=None"
#define PY_SELF_take "$self, index"
#define PY_SPEC_take_along_dim {"take_along_dim", 2, 3, -1, {"input", "indices", "dim", "out"}, __func__}
#define PY_TEXT_take_along_dim "input, indices, dim=None, *, out=None"
#define PY_SELF_take_along_dim "$self, indices, dim=None"
#define PY_SPEC_embedding {"embedding", 2, 7, -1, {"input", "weight", "padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse"}, __func__}
#define PY_TEXT_embedding "input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False"
#define PY_SPEC_nonzero {"nonzero", 1, 1, -1, {"input", "as_tuple"}, __func__}
#define PY_TEXT_nonzero "input, *, as_tuple=False"
#define PY_SELF_nonzero "$self, *, as_tuple=False"
#define PY_SPEC__put_selected {"_put_selected", 4, 5, -1, {"op", "input", "index", "value", "wraps"}, __func__}
#define PY_TEXT__put_selected "op, input, index, value, wraps=True"
#define PY_SPEC__get_selected {"_get_selected", 3, 3, -1, {"op", "input", "index"}, __func__}
#define PY_TEXT__get_selected "op, input, index"
#define PY_SPEC_masked_select {"masked_select", 2, 2, -1, {"input", "mask", "out"}, __func__}
#define PY_TEXT_masked_select "input, mask, *, out=None"
#define PY_SELF_masked_select "$self, mask"
#define PY_SPEC_masked_fill {"masked_fill", 3, 3, -1, {"input", "mask", "value"}, __func__}
#define PY_TEXT_masked_fill "input, mask, value"
#define PY_SELF_masked_fill "$self, mask, value"
#define PY_SPEC_matmul {"matmul", 2, 2, -1, {"input", "other", "out"}, __func__}
#define PY_TEXT_matmul "input, other, *, out=None"
#define PY_SELF_matmul "$self, other"
#define PY_SPEC_mm {"mm", 2, 2, -1, {"input", "mat2", "out"}, __func__}
#define PY_TEXT_mm "input, mat2, *, out=None"
#define PY_SELF_mm "$self, mat2"
#define PY_SPEC_bmm {"bmm", 2, 2, -1, {"input", "mat2", "out"}, __func__}
#define PY_TEXT_bmm "input, mat2, *, out=None"
#define PY_SELF_bmm "$self, mat2"
#define PY_SPEC_mv {"mv", 2, 2, -1, {"input", "vec", "out"}, __func__}
#define PY_TEXT_mv "input, vec, *, out=None"
#define PY_SELF_mv "$self, vec"
#define PY_SPEC_dot {"dot", 2, 2, -1, {"input", "tensor", "out"}, __func__}
#define PY_TEXT_dot "input, tensor, *, out=None"
#define PY_SELF_dot "$self, tensor"
#define PY_SPEC_outer {"outer", 2, 2, -1, {"input", "vec2", "out"}, __func__}
#define PY_TEXT_outer "input, vec2, *, out=None"
#define PY_SELF_outer "$self, vec2"
#define PY_SPEC_addmm {"addmm", 3, 3, -1, {"input", "mat1", "mat2", "beta", "alpha", "out"}, __func__}
#define PY_TEXT_addmm "input, mat1, mat2, *, beta=1, alpha=1, out=None"
#define PY_SELF_addmm "$self, mat1, mat2, *, beta=1, alpha=1"
#define PY_SPEC_baddbmm {"baddbmm", 3, 3, -1, {"input", "batch1", "batch2", "beta", "alpha", "out"}, __func__}
#define PY_TEXT_baddbmm "input, batch1, batch2, *, beta=1, alpha=1, out=None"
#define PY_SELF_baddbmm "$self, batch1, batch2, *, beta=1, alpha=1"
#define PY_SPEC_linear {"linear", 2, 3, -1, {"input", "weight", "bias", "activation", "out"}, __func__}
#define PY_TEXT_linear "input, weight, bias=None, *, activation=None, out=None"
#define PY_SPEC__attention {"scaled_dot_product_attention", 6, 6, -1, {"query", "key", "value", "attn_mask", "scale", "is_causal"}, __func__}
#define PY_TEXT__attention "query, key, value, attn_mask, scale, is_causal"
#define PY_SPEC__attention_grad {"scaled_dot_product_attention", 6, 6, -1, {"query", "key", "value", "grad", "scale", "is_causal"}, __func__}
#define PY_TEXT__attention_grad "query, key, value, grad, scale, is_causal"
#define PY_SPEC_conv2d {"conv2d", 2, 7, -1, {"input", "weight", "bias", "stride", "padding", "dilation", "groups", "activation", "out"}, __func__}
#define PY_TEXT_conv2d "input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, *, activation=None, out=None"
#define PY_SPEC__conv_transpose2d {"conv_transpose2d", 8, 8, -1, {"input", "weight", "bias", "stride", "padding", "output_padding", "groups", "dilation"}, __func__}
#define PY_TEXT__conv_transpose2d "input, weight, bias, stride, padding, output_padding, groups, dilation"
#define PY_SPEC_max_pool2d {"max_pool2d", 2, 7, -1, {"input", "kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices"}, __func__}
#define PY_TEXT_max_pool2d "input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False"
#define PY_SPEC_avg_pool2d {"avg_pool2d", 2, 7, -1, {"input", "kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override"}, __func__}
#define PY_TEXT_avg_pool2d "input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None"
#define PY_SPEC_adaptive_avg_pool2d {"adaptive_avg_pool2d", 2, 2, -1, {"input", "output_size"}, __func__}
#define PY_TEXT_adaptive_avg_pool2d "input, output_size"
#define PY_SPEC_numel {"numel", 1, 1, -1, {"input"}, __func__}
#define PY_TEXT_numel "input"
#define PY_SELF_numel "$self"
#define PY_SPEC_detach {"detach", 1, 1, -1, {"input"}, __func__}
#define PY_TEXT_detach "input"
#define PY_SELF_detach "$self"
#define PY_SPEC__loaded {"_loaded", 1, 1, -1, {"input"}, __func__}
#define PY_TEXT__loaded "input"
#define PY_SPEC__become {"_become", 3, 3, -1, {"op", "input", "view"}, __func__}
#define PY_TEXT__become "op, input, view"
#define PY_SPEC__backward {"_backward", 5, 5, -1, {"tensors", "grad_tensors", "retain_graph", "create_graph", "inputs"}, __func__}
#define PY_TEXT__backward "tensors, grad_tensors, retain_graph, create_graph, inputs"
#define PY_SPEC__grad {"_grad", 5, 5, -1, {"outputs", "grad_outputs", "retain_graph", "create_graph", "inputs"}, __func__}
#define PY_TEXT__grad "outputs, grad_outputs, retain_graph, create_graph, inputs"
#define PY_SPEC__refuse_unused {"_refuse_unused", 2, 2, -1, {"input", "index"}, __func__}
#define PY_TEXT__refuse_unused "input, index"
#define PY_SPEC__set_grad_enabled {"_set_grad_enabled", 1, 1, -1, {"mode"}, __func__}
#define PY_TEXT__set_grad_enabled "mode"
#define PY_SPEC__enter_transform {"_enter_transform", 2, 2, -1, {"arrays", "maps"}, __func__}
#define PY_TEXT__enter_transform "arrays, maps"
#define PY_SPEC__leave_transform {"_leave_transform", 1, 1, -1, {"before"}, __func__}
#define PY_TEXT__leave_transform "before"
#define PY_SPEC_is_grad_enabled {"is_grad_enabled", 0, 0, -1, {NULL}, __func__}
#define PY_TEXT_is_grad_enabled ""
#define PY_SPEC__grad_hooks {"_grad_hooks", 2, 2, -1, {"input", "after"}, __func__}
#define PY_TEXT__grad_hooks "input, after"
#define PY_SPEC__record_function {"_record_function", 4, 4, -1, {"context", "inputs", "outputs", "saved"}, __func__}
#define PY_TEXT__record_function "context, inputs, outputs, saved"
#define PY_SPEC__saved_of_function {"_saved_of_function", 2, 2, -1, {"handle", "k"}, __func__}
#define PY_TEXT__saved_of_function "handle, k"
#define PY_SPEC__run_light {"_run_light", 4, 4, -1, {"function", "args", "kwargs", "again"}, __func__}
#define PY_TEXT__run_light "function, args, kwargs, again"
#define PY_SPEC__watch_gradients {"_watch_gradients", 1, 1, -1, {"watched"}, __func__}
#define PY_TEXT__watch_gradients "watched"
#define PY_SPEC__default_generator {"_default_generator", 0, 0, -1, {NULL}, __func__}
#define PY_TEXT__default_generator ""
#define PY_SPEC_clone {"clone", 1, 1, -1, {"input", "memory_format"}, __func__}
#define PY_TEXT_clone "input, *, memory_format=None"
#define PY_SELF_clone "$self, *, memory_format=None"
#define PY_SPEC_empty {"empty", 1, 1, 0, {"size", "dtype", "device", "requires_grad", "pin_memory", "layout", "out", "memory_format"}, __func__}
#define PY_TEXT_empty "*size, dtype=None, device=None, requires_grad=False, pin_memory=False, layout=None, out=None, memory_format=None"
#define PY_SPEC_zeros {"zeros", 1, 1, 0, {"size", "dtype", "device", "requires_grad", "pin_memory", "layout", "out"}, __func__}
#define PY_TEXT_zeros "*size, dtype=None, device=None, requires_grad=False, pin_memory=False, layout=None, out=None"
#define PY_SPEC_ones {"ones", 1, 1, 0, {"size", "dtype", "device", "requires_grad", "pin_memory", "layout", "out"}, __func__}
#define PY_TEXT_ones "*size, dtype=None, device=None, requires_grad=False, pin_memory=False, layout=None, out=None"
#define PY_SPEC_full {"full", 2, 2, -1, {"size", "fill_value", "dtype", "device", "requires_grad", "pin_memory", "layout", "out"}, __func__}
#define PY_TEXT_full "size, fill_value, *, dtype=None, device=None, requires_grad=False, pin_memory=False, layout=None, out=None"
#define PY_SPEC_empty_like {"empty_like", 1, 1, -1, {"input", "dtype", "device", "requires_grad", "pin_memory", "layout", "memory_format"}, __func__}
#define PY_TEXT_empty_like "input, *, dtype=None, device=None, requires_grad=False, pin_memory=False, layout=None, memory_format=None"
#define PY_SPEC_zeros_like {"zeros_like", 1, 1, -1, {"input", "dtype", "device", "requires_grad", "pin_memory", "layout", "memory_format"}, __func__}
#define PY_TEXT_zeros_like "input, *, dtype=None, device=None, requires_grad=False, pin_memory=False, layout=None, memory_format=None"
#define PY_SPEC_ones_like {"ones_like", 1, 1, -1, {"input", "dtype", "device", "requires_grad", "pin_memory", "layout", "memory_format"}, __func__}
#define PY_TEXT_ones_like "input, *, dtype=None, device=None, requires_grad=False, pin_memory=False, layout=None, memory_format=None"
#define PY_SPEC_full_like {"full_like", 2, 2, -1, {"input", "fill_value", "dtype", "device", "requires_grad", "pin_memory", "layout", "memory_format"}, __func__}
#define PY_TEXT_full_like "input, fill_value, *, dtype=None, device=None, requires_grad=False, pin_memory=False, layout=None, memory_format=None"
#define PY_SPEC_arange {"arange", 0, 3, -1, {"start", "end", "step", "dtype", "device", "requires_grad", "pin_memory", "layout", "out"}, __func__}
#define PY_TEXT_arange "start=0, end=None, step=1, *, dtype=None, device=None, requires_grad=False, pin_memory=False, layout=None, out=None"
#define PY_SPEC_linspace {"linspace", 3, 3, -1, {"start", "end", "steps", "dtype", "device", "requires_grad", "pin_memory", "layout"}, __func__}
#define PY_TEXT_linspace "start, end, steps, *, dtype=None, device=None, requires_grad=False, pin_memory=False, layout=None"
#define PY_SPEC_eye {"eye", 1, 2, -1, {"n", "m", "dtype", "device", "requires_grad", "pin_memory", "layout", "out"}, __func__}
#define PY_TEXT_eye "n, m=None, *, dtype=None, device=None, requires_grad=False, pin_memory=False, layout=None, out=None"
#define PY_SPEC_tril {"tril", 1, 2, -1, {"input", "diagonal", "out"}, __func__}
#define PY_TEXT_tril "input, diagonal=0, *, out=None"
#define PY_SELF_tril "$self, diagonal=0"
#define PY_SPEC_triu {"triu", 1, 2, -1, {"input", "diagonal", "out"}, __func__}
#define PY_TEXT_triu "input, diagonal=0, *, out=None"
#define PY_SELF_triu "$self, diagonal=0"
#define PY_SPEC_manual_seed {"manual_seed", 1, 1, -1, {"seed"}, __func__}
#define PY_TEXT_manual_seed "seed"
#define PY_SPEC_seed {"seed", 0, 0, -1, {NULL}, __func__}
#define PY_TEXT_seed ""
#define PY_SPEC_initial_seed {"initial_seed", 0, 0, -1, {NULL}, __func__}
#define PY_TEXT_initial_seed ""
#define PY_SPEC_rand {"rand", 1, 1, 0, {"size", "generator", "dtype", "device", "requires_grad", "pin_memory", "layout", "out"}, __func__}
#define PY_TEXT_rand "*size, generator=None, dtype=None, device=None, requires_grad=False, pin_memory=False, layout=None, out=None"
#define PY_SPEC_randn {"randn", 1, 1, 0, {"size", "generator", "dtype", "device", "requires_grad", "pin_memory", "layout", "out"}, __func__}
#define PY_TEXT_randn "*size, generator=None, dtype=None, device=None, requires_grad=False, pin_memory=False, layout=None, out=None"
#define PY_SPEC_rand_like {"rand_like", 1, 1, -1, {"input", "generator", "dtype", "device", "requires_grad", "pin_memory", "layout", "memory_format"}, __func__}
#define PY_TEXT_rand_like "input, *, generator=None, dtype=None, device=None, requires_grad=False, pin_memory=False, layout=None, memory_format=None"
#define PY_SPEC_randn_like {"randn_like", 1, 1, -1, {"input", "generator", "dtype", "device", "requires_grad", "pin_memory", "layout", "memory_format"}, __func__}
#define PY_TEXT_randn_like "input, *, generator=None, dtype=None, device=None, requires_grad=False, pin_memory=False, layout=None, memory_format=None"
#define PY_SPEC_randint {"randint", 0, 3, -1, {"low", "high", "size", "generator", "dtype", "device", "requires_grad", "pin_memory", "layout", "out"}, __func__}
#define PY_TEXT_randint "low=0, high=None, size=None, *, generator=None, dtype=None, device=None, requires_grad=False, pin_memory=False, layout=None, out=None"
#define PY_SPEC_randperm {"randperm", 1, 1, -1, {"n", "generator", "dtype", "device", "requires_grad", "pin_memory", "layout", "out"}, __func__}
#define PY_TEXT_randperm "n, *, generator=None, dtype=None, device=None, requires_grad=False, pin_memory=False, layout=None, out=None"
#define PY_SPEC__normal {"normal", 3, 3, -1, {"mean", "std", "size", "generator", "dtype", "device", "requires_grad", "pin_memory", "layout", "out"}, __func__}
#define PY_TEXT__normal "mean, std, size, *, generator=None, dtype=None, device=None, requires_grad=False, pin_memory=False, layout=None, out=None"
#define PY_SPEC_array {"array", 1, 2, -1, {"data", "dtype", "device", "requires_grad"}, __func__}
#define PY_TEXT_array "data, dtype=None, *, device=None, requires_grad=False"
#define PY_SPEC_tensor {"tensor", 1, 2, -1, {"data", "dtype", "device", "requires_grad", "pin_memory"}, __func__}
#define PY_TEXT_tensor "data, dtype=None, *, device=None, requires_grad=False, pin_memory=False"
#define PY_SPEC_as_tensor {"as_tensor", 1, 3, -1, {"data", "dtype", "device", "requires_grad"}, __func__}
#define PY_TEXT_as_tensor "data, dtype=None, device=None, *, requires_grad=False"
#define PY_SPEC_asarray {"asarray", 1, 3, -1, {"data", "dtype", "device", "requires_grad"}, __func__}
#define PY_TEXT_asarray "data, dtype=None, device=None, *, requires_grad=False"
#define PY_SPEC_from_numpy {"from_numpy", 1, 1, -1, {"ndarray"}, __func__}
#define PY_TEXT_from_numpy "ndarray"
#define PY_SPEC_from_dlpack {"from_dlpack", 1, 1, -1, {"x", "device", "copy"}, __func__}
#define PY_TEXT_from_dlpack "x, *, device=None, copy=None"
#define PY_SPEC_frombuffer {"frombuffer", 2, 1, -1, {"buffer", "dtype", "count", "offset", "requires_grad"}, __func__}
#define PY_TEXT_frombuffer "buffer, *, dtype, count=-1, offset=0, requires_grad=False"
#define PY_SPEC_from_cuda_array_interface {"from_cuda_array_interface", 1, 1, -1, {"object"}, __func__}
#define PY_TEXT_from_cuda_array_interface "object"
#define PY_SPEC__rebuild {"_rebuild", 4, 7, -1, {"shape", "dtype", "data", "device", "strides", "share", "requires_grad"}, __func__}
#define PY_TEXT__rebuild "shape, dtype, data, device, strides=None, share=False, requires_grad=False"
#define PY_SPEC__storage {"_storage", 1, 1, -1, {"input"}, __func__}
#define PY_TEXT__storage "input"
#define PY_SPEC__strided {"_strided", 5, 5, -1, {"input", "dtype", "shape", "strides", "offset"}, __func__}
#define PY_TEXT__strided "input, dtype, shape, strides, offset"
#define PY_SPEC__check {"_check", 3, 6, -1, {"op", "names", "arrays", "apart", "channels", "convolution"}, __func__}
#define PY_TEXT__check "op, names, arrays, apart=-1, channels=False, convolution=False"
#define PY_SPEC__check_shape {"_check_shape", 5, 5, -1, {"op", "names", "arrays", "which", "shape"}, __func__}
#define PY_TEXT__check_shape "op, names, arrays, which, shape"
#define PY_SPEC__check_devices {"_check_devices", 3, 3, -1, {"op", "names", "arrays"}, __func__}
#define PY_TEXT__check_devices "op, names, arrays"
#define PY_SPEC__check_dtypes {"_check_dtypes", 3, 4, -1, {"op", "names", "arrays", "apart"}, __func__}
#define PY_TEXT__check_dtypes "op, names, arrays, apart=-1"
#define PY_SPEC__check_indices {"_check_indices", 4, 5, -1, {"op", "names", "arrays", "which", "masks"}, __func__}
#define PY_TEXT__check_indices "op, names, arrays, which, masks=False"
#define PY_SPEC__check_in_place {"_check_in_place", 5, 5, -1, {"op", "names", "arrays", "dtype", "shape"}, __func__}
#define PY_TEXT__check_in_place "op, names, arrays, dtype, shape"
#define PY_SPEC__check_broadcast {"_check_broadcast", 3, 3, -1, {"op", "names", "arrays"}, __func__}
#define PY_TEXT__check_broadcast "op, names, arrays"
#define PY_SPEC__check_rank {"_check_rank", 6, 6, -1, {"op", "names", "arrays", "which", "low", "high"}, __func__}
#define PY_TEXT__check_rank "op, names, arrays, which, low, high"
#define PY_SPEC__fail_dtype {"_fail_dtype", 5, 5, -1, {"op", "names", "arrays", "which", "kinds"}, __func__}
#define PY_TEXT__fail_dtype "op, names, arrays, which, kinds"
#define PY_SPEC__check_conv1d {"_check_conv1d", 6, 6, -1, {"op", "names", "arrays", "groups", "padded", "reach"}, __func__}
#define PY_TEXT__check_conv1d "op, names, arrays, groups, padded, reach"
#define PY_SPEC__add_method {"_add_method", 2, 2, -1, {"name", "function"}, __func__}
#define PY_TEXT__add_method "name, function"
#define PY_SPEC__write_out {"_write_out", 3, 3, -1, {"op", "result", "out"}, __func__}
#define PY_TEXT__write_out "op, result, out"
#define PY_SPEC__explained {"_explained", 5, 6, -1, {"op", "names", "arrays", "code", "error", "culprit"}, __func__}
#define PY_TEXT__explained "op, names, arrays, code, error, culprit=-1"
#define PY_SPEC__update {"step", 6, 6, -1, {"rule", "params", "grads", "states", "numbers", "places"}, __func__}
#define PY_TEXT__update "rule, params, grads, states, numbers, places"
#define PY_SPEC__need_int {"_need_int", 3, 3, -1, {"op", "parameter", "value"}, __func__}
#define PY_TEXT__need_int "op, parameter, value"
#define PY_SPEC__need_ints {"_need_ints", 3, 3, -1, {"op", "parameter", "value"}, __func__}
#define PY_TEXT__need_ints "op, parameter, value"
#define PY_SPEC__need_size {"_need_size", 3, 3, -1, {"op", "parameter", "value"}, __func__}
#define PY_TEXT__need_size "op, parameter, value"
#define PY_SPEC__need_number {"_need_number", 3, 3, -1, {"op", "parameter", "value"}, __func__}
#define PY_TEXT__need_number "op, parameter, value"
#define PY_SPEC__need_bool {"_need_bool", 3, 3, -1, {"op", "parameter", "value"}, __func__}
#define PY_TEXT__need_bool "op, parameter, value"
#define PY_SPEC__need_str {"_need_str", 3, 3, -1, {"op", "parameter", "value"}, __func__}
#define PY_TEXT__need_str "op, parameter, value"
#define PY_SPEC__need_generator {"_need_generator", 3, 3, -1, {"op", "parameter", "value"}, __func__}
#define PY_TEXT__need_generator "op, parameter, value"
#define PY_SPEC__need_dtype {"_need_dtype", 3, 3, -1, {"op", "parameter", "value"}, __func__}
#define PY_TEXT__need_dtype "op, parameter, value"
#define PY_SPEC__need_device {"_need_device", 3, 3, -1, {"op", "parameter", "value"}, __func__}
#define PY_TEXT__need_device "op, parameter, value"
#define PY_SPEC_set_default_dtype {"set_default_dtype", 1, 1, -1, {"d"}, __func__}
#define PY_TEXT_set_default_dtype "d"
#define PY_SPEC_get_default_dtype {"get_default_dtype", 0, 0, -1, {NULL}, __func__}
#define PY_TEXT_get_default_dtype ""
#define PY_SPEC_set_default_device {"set_default_device", 1, 1, -1, {"device"}, __func__}
#define PY_TEXT_set_default_device "device"
#define PY_SPEC_get_default_device {"get_default_device", 0, 0, -1, {NULL}, __func__}
#define PY_TEXT_get_default_device ""
#define PY_SPEC_set_num_threads {"set_num_threads", 1, 1, -1, {"n"}, __func__}
#define PY_TEXT_set_num_threads "n"
#define PY_SPEC_get_num_threads {"get_num_threads", 0, 0, -1, {NULL}, __func__}
#define PY_TEXT_get_num_threads ""
#define PY_SPEC_set_float32_precision {"set_float32_precision", 1, 1, -1, {"precision"}, __func__}
#define PY_TEXT_set_float32_precision "precision"
#define PY_SPEC_get_float32_precision {"get_float32_precision", 0, 0, -1, {NULL}, __func__}
#define PY_TEXT_get_float32_precision ""
#define PY_SPEC__shown {"_shown", 1, 1, -1, {"object"}, __func__}
#define PY_TEXT__shown "object"
#define PY_SPEC__set_autocast {"_set_autocast", 2, 2, -1, {"rules", "hook"}, __func__}
#define PY_TEXT__set_autocast "rules, hook"
#define PY_SPEC__autocast_on {"_autocast_on", 0, 1, -1, {"on"}, __func__}
#define PY_TEXT__autocast_on "on=None"
#define PY_SPEC__as_torch {"_as_torch", 0, 1, -1, {"on"}, __func__}
#define PY_TEXT__as_torch "on=None"
#define PY_SPEC__keep_marks {"_keep_marks", 2, 2, -1, {"read", "write"}, __func__}
#define PY_TEXT__keep_marks "read, write"
#define PY_SPEC__make_subclass {"_make_subclass", 2, 3, -1, {"cls", "data", "require_grad"}, __func__}
#define PY_TEXT__make_subclass "cls, data, require_grad=False"
#define PY_SPEC__set_overrides {"_set_overrides", 5, 5, -1, {"hook", "default", "disabled", "parameter", "buffer"}, __func__}
#define PY_TEXT__set_overrides "hook, default, disabled, parameter, buffer"
#define PY_SPEC__overrides_on {"_overrides_on", 0, 1, -1, {"on"}, __func__}
#define PY_TEXT__overrides_on "on=None"
#define PY_SPEC__misread_environment {"_misread_environment", 0, 0, -1, {NULL}, __func__}
#define PY_TEXT__misread_environment ""
#define PY_SPEC_counters {"counters", 0, 0, -1, {NULL}, __func__}
#define PY_TEXT_counters ""
#define PY_SPEC__cpu_cache {"_cpu_cache", 0, 0, -1, {NULL}, __func__}
#define PY_TEXT__cpu_cache ""
#define PY_SPEC__cpu_trim_cache {"empty_cache", 0, 1, -1, {"keep"}, __func__}
#define PY_TEXT__cpu_trim_cache "keep=0"
#define PY_SPEC__cpu_limit_cache {"set_cache_limit", 1, 1, -1, {"nbytes"}, __func__}
#define PY_TEXT__cpu_limit_cache "nbytes"
#define PY_SPEC__cpu_limit_packed {"set_packed_limit", 1, 1, -1, {"nbytes"}, __func__}
#define PY_TEXT__cpu_limit_packed "nbytes"
#define PY_SPEC_set_printoptions {"set_printoptions", 0, 6, -1, {"precision", "threshold", "edgeitems", "linewidth", "profile", "sci_mode"}, __func__}
#define PY_TEXT_set_printoptions "precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None"
#define PY_SPEC_get_printoptions {"get_printoptions", 0, 0, -1, {NULL}, __func__}
#define PY_TEXT_get_printoptions ""
#define PY_SPEC__frame_variable {"_frame_variable", 3, 3, -1, {"frame", "name", "default"}, __func__}
#define PY_TEXT__frame_variable "frame, name, default"
#define PY_SPEC__set_own_directory {"_set_own_directory", 1, 1, -1, {"directory"}, __func__}
#define PY_TEXT__set_own_directory "directory"
#define PY_SPEC__node_has {"_node_has", 2, 2, -1, {"node", "array"}, __func__}
#define PY_TEXT__node_has "node, array"
#define PY_SPEC__steps {"_steps", 1, 1, -1, {"array"}, __func__}
#define PY_TEXT__steps "array"
#define PY_SPEC__made_by {"_made_by", 2, 2, -1, {"array", "op"}, __func__}
#define PY_TEXT__made_by "array, op"
#define PY_SPEC__note_step {"_note_step", 2, 2, -1, {"params", "before"}, __func__}
#define PY_TEXT__note_step "params, before"
#define PY_SPEC__gradients_as_used {"_gradients_as_used", 1, 1, -1, {"params"}, __func__}
#define PY_TEXT__gradients_as_used "params"
#define PY_SPEC__watch_training {"_watch_training", 1, 1, -1, {"watched"}, __func__}
#define PY_TEXT__watch_training "watched"
#define PY_SPEC__pack_saved {"_pack_saved", 1, 1, -1, {"packs"}, __func__}
#define PY_TEXT__pack_saved "packs"
#define PY_SPEC__backward_of {"_backward_of", 1, 1, -1, {"array"}, __func__}
#define PY_TEXT__backward_of "array"
#define PY_SPEC__increment_version {"_increment_version", 1, 1, -1, {"array"}, __func__}
#define PY_TEXT__increment_version "array"
#define PY_SPEC__node_of {"_node_of", 1, 1, -1, {"array"}, __func__}
#define PY_TEXT__node_of "array"
#define PY_SPEC__kept_memory {"_kept_memory", 1, 1, -1, {"node"}, __func__}
#define PY_TEXT__kept_memory "node"
#define PY_SPEC__watch_transfers {"_watch_transfers", 1, 1, -1, {"by"}, __func__}
#define PY_TEXT__watch_transfers "by"
#define PY_SPEC__cuda_library_versions {"_cuda_library_versions", 0, 0, -1, {NULL}, __func__}
#define PY_TEXT__cuda_library_versions ""
#define PY_SPEC__cuda_workspace_limit {"set_workspace_limit", 0, 1, -1, {"nbytes"}, __func__}
#define PY_TEXT__cuda_workspace_limit "nbytes=None"
#define PY_SPEC__cuda_tuning {"tune", 0, 1, -1, {"enabled"}, __func__}
#define PY_TEXT__cuda_tuning "enabled=None"
#define PY_SPEC__cuda_tuned_export {"tune", 1, 1, -1, {"device"}, __func__}
#define PY_TEXT__cuda_tuned_export "device"
#define PY_SPEC__cuda_tuned_key {"_cuda_tuned_key", 0, 0, -1, {NULL}, __func__}
#define PY_TEXT__cuda_tuned_key ""
#define PY_SPEC__cuda_cache_directory {"_cuda_cache_directory", 0, 0, -1, {NULL}, __func__}
#define PY_TEXT__cuda_cache_directory ""
#define PY_SPEC__cuda_tuned_import {"tune", 2, 2, -1, {"device", "row"}, __func__}
#define PY_TEXT__cuda_tuned_import "device, row"
#define PY_SPEC__cuda_device_count {"device_count", 0, 0, -1, {NULL}, __func__}
#define PY_TEXT__cuda_device_count ""
#define PY_SPEC__cuda_current_device {"_cuda_current_device", 0, 0, -1, {NULL}, __func__}
#define PY_TEXT__cuda_current_device ""
#define PY_SPEC__cuda_index {"device", 1, 1, -1, {"device"}, __func__}
#define PY_TEXT__cuda_index "device"
#define PY_SPEC__cuda_set_device {"set_device", 1, 1, -1, {"device"}, __func__}
#define PY_TEXT__cuda_set_device "device"
#define PY_SPEC__cuda_info {"device_info", 0, 1, -1, {"device"}, __func__}
#define PY_TEXT__cuda_info "device=None"
#define PY_SPEC__cuda_synchronize {"synchronize", 0, 1, -1, {"device"}, __func__}
#define PY_TEXT__cuda_synchronize "device=None"
#define PY_SPEC__cuda_empty_cache {"empty_cache", 0, 0, -1, {NULL}, __func__}
#define PY_TEXT__cuda_empty_cache ""
#define PY_SPEC__cuda_is_simulated {"_cuda_is_simulated", 0, 0, -1, {NULL}, __func__}
#define PY_TEXT__cuda_is_simulated ""
#define PY_SPEC__cuda_is_initialized {"_cuda_is_initialized", 0, 0, -1, {NULL}, __func__}
#define PY_TEXT__cuda_is_initialized ""
#define PY_SPEC__sim_confines {"_sim_confines", 0, 0, -1, {NULL}, __func__}
#define PY_TEXT__sim_confines ""
#define PY_SPEC__cuda_report {"_cuda_report", 0, 0, -1, {NULL}, __func__}
#define PY_TEXT__cuda_report ""
#define PY_SPEC__cuda_set_search_path {"_cuda_set_search_path", 1, 1, -1, {"directories"}, __func__}
#define PY_TEXT__cuda_set_search_path "directories"
#define PY_SPEC__simulate_cuda {"simulate_cuda", 1, 3, -1, {"devices", "memory", "races"}, __func__}
#define PY_TEXT__simulate_cuda "devices, memory=0, races=-1"
#define PY_SPEC__reset_simulated {"_reset_simulated", 0, 0, -1, {NULL}, __func__}
#define PY_TEXT__reset_simulated ""
#define PY_SPEC__cuda_probe {"_cuda_probe", 0, 0, -1, {NULL}, __func__}
#define PY_TEXT__cuda_probe ""
#define PY_SPEC__cuda_hazard {"_cuda_hazard", 1, 1, -1, {"major"}, __func__}
#define PY_TEXT__cuda_hazard "major"
#define PY_SPEC__cuda_versions {"_cuda_versions", 0, 0, -1, {NULL}, __func__}
#define PY_TEXT__cuda_versions ""
#define PY_SPEC__cuda_memory_stats {"memory_stats", 0, 1, -1, {"device"}, __func__}
#define PY_TEXT__cuda_memory_stats "device=None"
#define PY_SPEC__cuda_reset_peak {"reset_peak_memory_stats", 0, 1, -1, {"device"}, __func__}
#define PY_TEXT__cuda_reset_peak "device=None"
#define PY_SPEC__cuda_set_memory_fraction {"set_per_process_memory_fraction", 1, 2, -1, {"fraction", "device"}, __func__}
#define PY_TEXT__cuda_set_memory_fraction "fraction, device=None"
#define PY_SPEC__cuda_host_memory {"_cuda_host_memory", 0, 0, -1, {NULL}, __func__}
#define PY_TEXT__cuda_host_memory ""
#define PY_SPEC__cuda_current_stream {"current_stream", 0, 1, -1, {"device"}, __func__}
#define PY_TEXT__cuda_current_stream "device=None"
#define PY_SPEC__cuda_default_stream {"default_stream", 0, 1, -1, {"device"}, __func__}
#define PY_TEXT__cuda_default_stream "device=None"
#define PY_SPEC__cuda_set_stream {"set_stream", 1, 1, -1, {"stream"}, __func__}
#define PY_TEXT__cuda_set_stream "stream"
#define PY_SPEC__kernel_new {"_kernel_new", 7, 7, -1, {"name", "source", "params", "options", "header_names", "headers", "kept"}, __func__}
#define PY_TEXT__kernel_new "name, source, params, options, header_names, headers, kept"
#define PY_SPEC__kernel_compile {"_kernel_compile", 2, 2, -1, {"kernel", "index"}, __func__}
#define PY_TEXT__kernel_compile "kernel, index"
#define PY_SPEC__kernel_attributes {"_kernel_attributes", 2, 2, -1, {"kernel", "index"}, __func__}
#define PY_TEXT__kernel_attributes "kernel, index"
#define PY_SPEC__kernel_launch {"_kernel_launch", 4, 6, -1, {"kernel", "grid", "block", "args", "shared_mem", "stream"}, __func__}
#define PY_TEXT__kernel_launch "kernel, grid, block, args, shared_mem=0, stream=None"
#define PY_SPEC__cuda_last_sent {"_cuda_last_sent", 1, 1, -1, {"index"}, __func__}
#define PY_TEXT__cuda_last_sent "index"
#define PY_SPEC_self_where {"where", 3, 3, -1, {"input", "condition", "other"}, __func__}
#define PY_SELF_where "$self, condition, other"
#define PY_SPEC_expand_as {"expand_as", 2, 2, -1, {"input", "other"}, __func__}
#define PY_SELF_expand_as "$self, other"
#define PY_SPEC_view_as {"view_as", 2, 2, -1, {"input", "other"}, __func__}
#define PY_SELF_view_as "$self, other"
#define PY_SPEC_masked_fill_ {"masked_fill_", 3, 3, -1, {"input", "mask", "value"}, __func__}
#define PY_SELF_masked_fill_ "$self, mask, value"
#define PY_SPEC_scatter_add_ {"scatter_add_", 4, 4, -1, {"input", "dim", "index", "src"}, __func__}
#define PY_SELF_scatter_add_ "$self, dim, index, src"
#define PY_SPEC_index_add_ {"index_add_", 4, 4, -1, {"input", "dim", "index", "source", "alpha"}, __func__}
#define PY_SELF_index_add_ "$self, dim, index, source, *, alpha=1"
#define PY_SPEC_dim {"dim", 1, 1, -1, {"input"}, __func__}
#define PY_SELF_dim "$self"
#define PY_SPEC_element_size {"element_size", 1, 1, -1, {"input"}, __func__}
#define PY_SELF_element_size "$self"
#define PY_SPEC_data_ptr {"data_ptr", 1, 1, -1, {"input"}, __func__}
#define PY_SELF_data_ptr "$self"
#define PY_SPEC_storage_offset {"storage_offset", 1, 1, -1, {"input"}, __func__}
#define PY_SELF_storage_offset "$self"
#define PY_SPEC_is_contiguous {"is_contiguous", 1, 2, -1, {"input", "memory_format"}, __func__}
#define PY_SELF_is_contiguous "$self, memory_format=None"
#define PY_SPEC_is_pinned {"is_pinned", 1, 1, -1, {"input"}, __func__}
#define PY_SELF_is_pinned "$self"
#define PY_SPEC_size {"size", 1, 2, -1, {"input", "dim"}, __func__}
#define PY_SELF_size "$self, dim=None"
#define PY_SPEC_stride {"stride", 1, 2, -1, {"input", "dim"}, __func__}
#define PY_SELF_stride "$self, dim=None"
#define PY_SPEC_item {"item", 1, 1, -1, {"input"}, __func__}
#define PY_SELF_item "$self"
#define PY_SPEC_tolist {"tolist", 1, 1, -1, {"input"}, __func__}
#define PY_SELF_tolist "$self"
#define PY_SPEC__repr_html_ {"_repr_html_", 1, 1, -1, {"input"}, __func__}
#define PY_SELF__repr_html_ "$self"
#define PY_SPEC_as_subclass {"as_subclass", 2, 2, -1, {"input", "cls"}, __func__}
#define PY_SELF_as_subclass "$self, cls"
#define PY_SPEC_requires_grad_ {"requires_grad_", 1, 2, -1, {"input", "requires_grad"}, __func__}
#define PY_SELF_requires_grad_ "$self, requires_grad=True"
#define PY_SPEC_detach_ {"detach_", 1, 1, -1, {"input"}, __func__}
#define PY_SELF_detach_ "$self"
#define PY_SPEC_retain_grad {"retain_grad", 1, 1, -1, {"input"}, __func__}
#define PY_SELF_retain_grad "$self"
#define PY_SPEC_backward {"backward", 1, 5, -1, {"input", "gradient", "retain_graph", "create_graph", "inputs"}, __func__}
#define PY_SELF_backward "$self, gradient=None, retain_graph=None, create_graph=False, inputs=None"
#define PY_SPEC_to {"to", 1, 2, 1, {"input", "", "device", "dtype", "non_blocking", "copy", "memory_format"}, __func__}
#define PY_SELF_to "$self, *args, device=None, dtype=None, non_blocking=False, copy=False, memory_format=None"
#define PY_SPEC_cuda {"cuda", 1, 3, -1, {"input", "device", "non_blocking"}, __func__}
#define PY_SELF_cuda "$self, device=None, non_blocking=False"
#define PY_SPEC_cpu {"cpu", 1, 1, -1, {"input"}, __func__}
#define PY_SELF_cpu "$self"
#define PY_SPEC_bool {"bool", 1, 1, -1, {"input"}, __func__}
#define PY_SELF_bool "$self"
#define PY_SPEC_bfloat16 {"bfloat16", 1, 1, -1, {"input"}, __func__}
#define PY_SELF_bfloat16 "$self"
#define PY_SPEC_float {"float", 1, 1, -1, {"input"}, __func__}
#define PY_SELF_float "$self"
#define PY_SPEC_double {"double", 1, 1, -1, {"input"}, __func__}
#define PY_SELF_double "$self"
#define PY_SPEC_half {"half", 1, 1, -1, {"input"}, __func__}
#define PY_SELF_half "$self"
#define PY_SPEC_int {"int", 1, 1, -1, {"input"}, __func__}
#define PY_SELF_int "$self"
#define PY_SPEC_long {"long", 1, 1, -1, {"input"}, __func__}
#define PY_SELF_long "$self"
#define PY_SPEC_short {"short", 1, 1, -1, {"input"}, __func__}
#define PY_SELF_short "$self"
#define PY_SPEC_char {"char", 1, 1, -1, {"input"}, __func__}
#define PY_SELF_char "$self"
#define PY_SPEC_byte {"byte", 1, 1, -1, {"input"}, __func__}
#define PY_SELF_byte "$self"
#define PY_SPEC_astype {"astype", 2, 2, -1, {"input", "dtype", "copy"}, __func__}
#define PY_SELF_astype "$self, dtype, *, copy=False"
#define PY_SPEC_pin_memory {"pin_memory", 1, 1, -1, {"input"}, __func__}
#define PY_SELF_pin_memory "$self"
#define PY_SPEC_contiguous {"contiguous", 1, 2, -1, {"input", "memory_format"}, __func__}
#define PY_SELF_contiguous "$self, memory_format=None"
#define PY_SPEC_copy_ {"copy_", 2, 3, -1, {"input", "src", "non_blocking"}, __func__}
#define PY_SELF_copy_ "$self, src, non_blocking=False"
#define PY_SPEC_fill_ {"fill_", 2, 2, -1, {"input", "value"}, __func__}
#define PY_SELF_fill_ "$self, value"
#define PY_SPEC_zero_ {"zero_", 1, 1, -1, {"input"}, __func__}
#define PY_SELF_zero_ "$self"
#define PY_SPEC_new_empty {"new_empty", 2, 2, 1, {"input", "size", "dtype", "device", "requires_grad", "pin_memory", "layout"}, __func__}
#define PY_SELF_new_empty "$self, *size, dtype=None, device=None, requires_grad=False, pin_memory=False, layout=None"
#define PY_SPEC_new_zeros {"new_zeros", 2, 2, 1, {"input", "size", "dtype", "device", "requires_grad", "pin_memory", "layout"}, __func__}
#define PY_SELF_new_zeros "$self, *size, dtype=None, device=None, requires_grad=False, pin_memory=False, layout=None"
#define PY_SPEC_new_ones {"new_ones", 2, 2, 1, {"input", "size", "dtype", "device", "requires_grad", "pin_memory", "layout"}, __func__}
#define PY_SELF_new_ones "$self, *size, dtype=None, device=None, requires_grad=False, pin_memory=False, layout=None"
#define PY_SPEC_new_full {"new_full", 3, 3, -1, {"input", "size", "fill_value", "dtype", "device", "requires_grad", "pin_memory", "layout"}, __func__}
#define PY_SELF_new_full "$self, size, fill_value, *, dtype=None, device=None, requires_grad=False, pin_memory=False, layout=None"
#define PY_SPEC_numpy {"numpy", 1, 1, -1, {"input", "force"}, __func__}
#define PY_SELF_numpy "$self, *, force=False"
#define PY_SPEC___array__ {"__array__", 1, 2, -1, {"input", "dtype", "copy"}, __func__}
#define PY_SELF___array__ "$self, dtype=None, *, copy=None"
#define PY_SPEC___dlpack__ {"__dlpack__", 1, 1, -1, {"input", "stream", "max_version", "dl_device", "copy"}, __func__}
#define PY_SELF___dlpack__ "$self, *, stream=None, max_version=None, dl_device=None, copy=None"
#define PY_SPEC___dlpack_device__ {"__dlpack_device__", 1, 1, -1, {"input"}, __func__}
#define PY_SELF___dlpack_device__ "$self"
#define PY_SPEC_Stream_query {"query", 0, 0, -1, {NULL}, __func__}
#define PY_SELF_Stream_query "$self"
#define PY_SPEC_Stream_record_event {"record_event", 0, 1, -1, {"event"}, __func__}
#define PY_SELF_Stream_record_event "$self, event=None"
#define PY_SPEC_Stream_synchronize {"synchronize", 0, 0, -1, {NULL}, __func__}
#define PY_SELF_Stream_synchronize "$self"
#define PY_SPEC_Stream_wait_event {"wait_event", 1, 1, -1, {"event"}, __func__}
#define PY_SELF_Stream_wait_event "$self, event"
#define PY_SPEC_Stream_wait_stream {"wait_stream", 1, 1, -1, {"stream"}, __func__}
#define PY_SELF_Stream_wait_stream "$self, stream"
#define PY_SPEC_Event_elapsed_time {"elapsed_time", 1, 1, -1, {"end_event"}, __func__}
#define PY_SELF_Event_elapsed_time "$self, end_event"
#define PY_SPEC_Event_query {"query", 0, 0, -1, {NULL}, __func__}
#define PY_SELF_Event_query "$self"
#define PY_SPEC_Event_record {"record", 0, 1, -1, {"stream"}, __func__}
#define PY_SELF_Event_record "$self, stream=None"
#define PY_SPEC_Event_synchronize {"synchronize", 0, 0, -1, {NULL}, __func__}
#define PY_SELF_Event_synchronize "$self"
#define PY_SPEC_Event_wait {"wait", 0, 1, -1, {"stream"}, __func__}
#define PY_SELF_Event_wait "$self, stream=None"
#define PY_SPEC_Node_name {"name", 0, 0, -1, {NULL}, __func__}
#define PY_SELF_Node_name "$self"
#define PY_SPEC_Node_register_hook {"register_hook", 1, 1, -1, {"fn"}, __func__}
#define PY_SELF_Node_register_hook "$self, fn, /"
#define PY_SPEC_Node_register_prehook {"register_prehook", 1, 1, -1, {"fn"}, __func__}
#define PY_SELF_Node_register_prehook "$self, fn, /"
#define PY_SPEC_Generator_clone_state {"clone_state", 0, 0, -1, {NULL}, __func__}
#define PY_SELF_Generator_clone_state "$self"
#define PY_SPEC_Generator_get_state {"get_state", 0, 0, -1, {NULL}, __func__}
#define PY_SELF_Generator_get_state "$self"
#define PY_SPEC_Generator_set_state {"set_state", 1, 1, -1, {"new_state"}, __func__}
#define PY_SELF_Generator_set_state "$self, new_state"
#define PY_SPEC_Generator_initial_seed {"initial_seed", 0, 0, -1, {NULL}, __func__}
#define PY_SELF_Generator_initial_seed "$self"
#define PY_SPEC_Generator_manual_seed {"manual_seed", 1, 1, -1, {"seed"}, __func__}
#define PY_SELF_Generator_manual_seed "$self, seed"
#define PY_SPEC_Generator_seed {"seed", 0, 0, -1, {NULL}, __func__}
#define PY_SELF_Generator_seed "$self"
#define PY_SPEC__Scope__aim {"_aim", 2, 2, -1, {"index", "stream"}, __func__}
#define PY_SELF__Scope__aim "$self, index, stream, /"
#define PY_SPEC_add_at {"add_at", 3, 3, -1, {"target", "indices", "value"}, __func__}
#define PY_TEXT_add_at "target, indices, value"
#define PY_SPEC_allocation_count {"allocation_count", 0, 0, -1, {NULL}, __func__}
#define PY_TEXT_allocation_count ""
#define PY_SPEC_api_calls {"api_calls", 0, 0, -1, {NULL}, __func__}
#define PY_TEXT_api_calls ""
#define PY_SPEC_api_fail {"api_fail", 3, 7, -1, {"symbol", "n", "status", "sticky", "late", "dropped", "times"}, __func__}
#define PY_TEXT_api_fail "symbol, n, status, sticky=False, late=False, dropped=False, times=1"
#define PY_SPEC_slow_calls {"slow_calls", 2, 2, -1, {"symbol", "microseconds"}, __func__}
#define PY_TEXT_slow_calls "symbol, microseconds"
#define PY_SPEC_watch_calls {"watch_calls", 0, 0, -1, {NULL}, __func__}
#define PY_TEXT_watch_calls ""
#define PY_SPEC_watched_calls {"watched_calls", 0, 0, -1, {NULL}, __func__}
#define PY_TEXT_watched_calls ""
#define PY_SPEC_binary {"binary", 3, 6, -1, {"op", "input", "other", "p0", "p1", "in_place"}, __func__}
#define PY_TEXT_binary "op, input, other, p0=0.0, p1=0.0, in_place=False"
#define PY_SPEC_check_cost {"check_cost", 1, 1, -1, {"n"}, __func__}
#define PY_TEXT_check_cost "n"
#define PY_SPEC_describe_attention {"describe_attention", 5, 7, -1, {"json", "dtype", "query", "key", "value", "is_causal", "kind"}, __func__}
#define PY_TEXT_describe_attention "json, dtype, query, key, value, is_causal=False, kind=0"
#define PY_SPEC_describe_conv2d {"describe_conv2d", 10, 12, -1, {"properties", "dtype", "input", "weight", "stride", "before", "after", "dilation", "channels_last", "bias", "activation", "kind"}, __func__}
#define PY_TEXT_describe_conv2d "properties, dtype, input, weight, stride, before, after, dilation, channels_last, bias, activation=None, kind=0"
#define PY_SPEC_fail_allocations {"fail_allocations", 1, 2, -1, {"n", "sticky"}, __func__}
#define PY_TEXT_fail_allocations "n, sticky=False"
#define PY_SPEC_guard_violations {"guard_violations", 0, 0, -1, {NULL}, __func__}
#define PY_TEXT_guard_violations ""
#define PY_SPEC_kernel_images {"kernel_images", 0, 0, -1, {NULL}, __func__}
#define PY_TEXT_kernel_images ""
#define PY_SPEC_kernel_settings {"kernel_settings", 0, 6, -1, {"index_limit", "skinny", "depthwise", "attention_scores", "attention_work", "attention_shapes"}, __func__}
#define PY_TEXT_kernel_settings "index_limit=2147483647, skinny=True, depthwise=True, attention_scores=25165824, attention_work=4294967296, attention_shapes=32"
#define PY_SPEC_ledger {"ledger", 0, 0, -1, {NULL}, __func__}
#define PY_TEXT_ledger ""
#define PY_SPEC_lend_simulated {"lend_simulated", 1, 1, -1, {"lend"}, __func__}
#define PY_TEXT_lend_simulated "lend"
#define PY_SPEC_sim_races {"sim_races", 1, 1, -1, {"mode"}, __func__}
#define PY_TEXT_sim_races "mode"
#define PY_SPEC_live_blocks {"live_blocks", 0, 0, -1, {NULL}, __func__}
#define PY_TEXT_live_blocks ""
#define PY_SPEC_origin_cost {"origin_cost", 1, 2, -1, {"n", "operand"}, __func__}
#define PY_TEXT_origin_cost "n, operand=None"
#define PY_SPEC_set_compute_capability {"set_compute_capability", 2, 2, -1, {"major", "minor"}, __func__}
#define PY_TEXT_set_compute_capability "major, minor"
#define PY_SPEC_set_plan_limit {"set_plan_limit", 1, 1, -1, {"n"}, __func__}
#define PY_TEXT_set_plan_limit "n"
#define PY_SPEC_set_size_limit {"set_size_limit", 1, 1, -1, {"n"}, __func__}
#define PY_TEXT_set_size_limit "n"
#define PY_SPEC_softmax_grad {"softmax_grad", 4, 5, -1, {"grad", "result", "dim", "log", "in_place"}, __func__}
#define PY_TEXT_softmax_grad "grad, result, dim, log, in_place=False"
/* clang-format on */
#endif
