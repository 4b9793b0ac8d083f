"""Layers, their calls and their arrays; a user's own module; the functions behind them."""

from __future__ import annotations

from typing import assert_type

import devtensor as dt
import devtensor.nn.functional as F
from devtensor import nn
from devtensor.nn import utils
from devtensor.nn.utils import parametrize

x, image, signal, labels = dt.rand(2, 4), dt.rand(2, 4, 6, 6), dt.rand(2, 4, 6), dt.array([0, 1])

# ---------------------------------------------------------------- the built-in layers

linear = nn.Linear(4, 3, device="cpu", dtype=dt.float32)
assert_type(linear(x), dt.DeviceArray)
assert_type(linear.weight, nn.Parameter)
assert_type(linear.bias, nn.Parameter | None)
norm = nn.BatchNorm2d(4)
assert_type(norm(image), dt.DeviceArray)
if norm.running_mean is not None:
    assert_type(norm.running_mean.shape, dt.Size)
for output in (
    nn.Conv1d(4, 2, 3)(signal), nn.Conv2d(4, 2, 3, padding="same")(image), nn.BatchNorm1d(4)(x), nn.LayerNorm(4)(x),
    nn.Embedding(10, 3)(labels), nn.Dropout(0.1)(x), nn.Flatten()(image), nn.Unflatten(1, (2, 2))(x), nn.Identity()(x),
    nn.MaxPool2d(2)(image), nn.AvgPool2d(2)(image), nn.AdaptiveAvgPool2d(1)(image), nn.ReLU(inplace=False)(x),
    nn.ReLU6()(x), nn.LeakyReLU(0.1)(x), nn.ELU()(x), nn.GELU()(x), nn.SiLU()(x), nn.Sigmoid()(x), nn.Tanh()(x),
    nn.Softplus()(x), nn.Hardtanh()(x), nn.Softmax(dim=1)(x), nn.LogSoftmax(1)(x), nn.CrossEntropyLoss()(x, labels),
    nn.NLLLoss()(x, labels), nn.MSELoss()(x, x), nn.L1Loss()(x, x),
    nn.HuberLoss("sum", delta=0.5)(x, x), nn.SmoothL1Loss(beta=0.5)(x, x), nn.KLDivLoss(reduction="batchmean")(x, x),
    nn.MarginRankingLoss(0.5)(x, x, x), nn.CosineEmbeddingLoss()(x, x, x[:, 0]), nn.HingeEmbeddingLoss()(x, x),
    nn.SoftMarginLoss()(x, x), nn.TripletMarginLoss(swap=True)(x, x, x), nn.MultiMarginLoss(2)(x, labels),
    nn.PoissonNLLLoss(full=True)(x, x), nn.GaussianNLLLoss(full=True)(x, x, 1.0), nn.CosineSimilarity()(x, x),
    nn.PairwiseDistance(p=1)(x, x),
    nn.BCELoss()(x.sigmoid(), x.sigmoid()), nn.BCEWithLogitsLoss(pos_weight=x)(x, x),
    nn.EmbeddingBag(10, 3, mode="sum")(labels, dt.array([0])), F.embedding_bag(labels, x, dt.array([0])),
    nn.CTCLoss()(signal.log_softmax(2), dt.array([[1], [2], [1], [1]]), [2, 2, 2, 2], dt.array([1, 1, 1, 1])),
    nn.MultiLabelMarginLoss()(x, dt.array([[0, -1, 0, 0], [1, 2, -1, 0]])), nn.MultiLabelSoftMarginLoss()(x, x),
    nn.NLLLoss2d()(image, dt.zeros(2, 6, 6, dtype=dt.int64)), nn.TripletMarginWithDistanceLoss(swap=True)(x, x, x),
    F.ctc_loss(signal.log_softmax(2), dt.array([1, 2]), [2, 2, 2, 2], [1, 0, 1, 0]), F.mish(x),
    F.multilabel_margin_loss(x, dt.array([[0, -1, 0, 0], [1, 2, -1, 0]])), F.multilabel_soft_margin_loss(x, x),
    F.triplet_margin_with_distance_loss(x, x, x, distance_function=F.cosine_similarity),
    nn.Mish()(x), nn.LogSigmoid()(x), nn.Softsign()(x), nn.GLU()(x), nn.Softmin(1)(x), nn.Softmax2d()(image),
    nn.PReLU()(x), nn.RReLU(0.1, 0.2)(x), nn.CELU(2)(x), nn.SELU(inplace=False)(x), nn.Threshold(0, 1)(x),
    nn.Hardshrink()(x), nn.Softshrink(0.1)(x), nn.Hardswish()(x), nn.Hardsigmoid()(x), nn.Tanhshrink()(x),
    nn.BatchNorm3d(4)(dt.rand(2, 4, 2, 3, 3)), nn.SyncBatchNorm(4)(x), nn.GroupNorm(2, 4, bias=False)(x),
    nn.InstanceNorm1d(4)(signal), nn.InstanceNorm2d(4)(image), nn.InstanceNorm3d(2)(dt.rand(2, 2, 2, 3, 3)),
    nn.CrossMapLRN2d(3, k=2)(image), nn.AdaptiveLogSoftmaxWithLoss(4, 9, [2, 5]).log_prob(x),
    nn.RMSNorm(4)(x), nn.LocalResponseNorm(2)(image), nn.Dropout1d()(signal), nn.Dropout2d(0.2)(image),
    nn.Dropout3d()(dt.rand(2, 2, 2, 3, 3)), nn.AlphaDropout()(x), nn.FeatureAlphaDropout()(image),
    nn.Sequential(linear, nn.ReLU())(x), nn.MultiheadAttention(6, 2)(signal, signal, signal)[0],
    nn.TransformerEncoderLayer(6, 2)(signal), nn.TransformerDecoderLayer(6, 2)(signal, signal),
    nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2), 1)(signal), nn.Transformer(6, 2, 1, 1)(signal, signal),
    nn.TransformerDecoder(nn.TransformerDecoderLayer(6, 2), 1)(signal, signal),
    F.scaled_dot_product_attention(x, x, x, is_causal=True),
    F.multi_head_attention_forward(x, x, x, 4, 2, dt.ones(12, 4), None, None, None, False, 0.0, dt.eye(4), None)[0],
):  # fmt: skip
    assert_type(output, dt.DeviceArray)
sequence, vector = dt.rand(5, 2, 4), dt.rand(2, 4)
packed = nn.utils.rnn.pack_padded_sequence(sequence, [5, 3])
assert_type(packed, nn.utils.rnn.PackedSequence)
assert_type(packed.to("cpu").data, dt.DeviceArray)
assert_type(nn.LSTM(4, 3)(sequence), tuple[dt.DeviceArray, tuple[dt.DeviceArray, dt.DeviceArray]])
assert_type(
    nn.LSTM(4, 3, num_layers=2, bidirectional=True, proj_size=2)(packed),
    tuple[nn.utils.rnn.PackedSequence, tuple[dt.DeviceArray, dt.DeviceArray]],
)
assert_type(nn.GRU(4, 3, batch_first=True)(sequence)[0], dt.DeviceArray)
assert_type(nn.RNN(4, 3, nonlinearity="relu")(packed)[0], nn.utils.rnn.PackedSequence)
assert_type(nn.LSTMCell(4, 3)(vector), tuple[dt.DeviceArray, dt.DeviceArray])
assert_type(nn.GRUCell(4, 3)(vector), dt.DeviceArray)
assert_type(nn.RNNCell(4, 3, bias=False)(vector, dt.rand(2, 3)), dt.DeviceArray)
assert_type(nn.utils.rnn.pad_packed_sequence(packed), tuple[dt.DeviceArray, dt.DeviceArray])
assert_type(nn.utils.rnn.pad_sequence([vector, vector], batch_first=True), dt.DeviceArray)
assert_type(nn.utils.rnn.unpad_sequence(sequence, dt.array([5, 3])), list[dt.DeviceArray])
assert_type(nn.utils.rnn.unpack_sequence(nn.utils.rnn.pack_sequence([vector, vector])), list[dt.DeviceArray])
assert_type(nn.utils.rnn.invert_permutation(labels), dt.DeviceArray | None)
nn.RNNBase("GRU", 4, 3).flatten_parameters()
assert_type(utils.remove_weight_norm(utils.weight_norm(nn.Linear(4, 3), dim=None)), nn.Linear)
assert_type(utils.remove_spectral_norm(utils.spectral_norm(nn.Linear(4, 3), n_power_iterations=2)), nn.Linear)
normed = utils.parametrizations.weight_norm(utils.parametrizations.spectral_norm(nn.Linear(4, 3)), "bias")
assert_type(normed, nn.Linear)
with parametrize.cached():
    assert_type(parametrize.is_parametrized(parametrize.remove_parametrizations(normed, "bias"), "weight"), bool)
parametrize.register_parametrization(nn.Linear(4, 4), "weight", nn.Softplus(), unsafe=True)
assert_type(parametrize.ParametrizationList([nn.Softplus()], linear.weight)[0], nn.Module)
parametrize.type_before_parametrizations(normed)
rows_norm = nn.BatchNorm1d(3).eval()
assert_type(utils.fuse_linear_bn_eval(nn.Linear(4, 3).eval(), rows_norm), nn.Linear)
assert_type(utils.fuse_conv_bn_eval(nn.Conv1d(4, 3, 1).eval(), rows_norm), nn.Conv1d)
mean, scale = dt.zeros(3), dt.ones(3)
assert_type(
    utils.fuse_linear_bn_weights(linear.weight, None, mean, scale, 0.1, None, None), tuple[nn.Parameter, nn.Parameter]
)
utils.fuse_conv_bn_weights(nn.Conv1d(4, 3, 1).weight, None, mean, scale, 0.1, None, None)
nn.RNNCellBase(4, 3, True, num_chunks=1).reset_parameters()
assert_type(nn.MaxPool2d(2, return_indices=True)(image), tuple[dt.DeviceArray, dt.DeviceArray])

# ---------------------------------------------------------------- a module of the user's


class Net(nn.Module):
    scale: nn.Buffer
    steps: dt.DeviceArray

    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc = nn.Linear(4, width)
        self.layers = nn.ModuleList([nn.Linear(width, width), nn.ReLU()])
        self.heads = nn.ModuleDict({"a": nn.Linear(width, 2)})
        self.weights = nn.ParameterList([dt.ones(width)])
        self.named = nn.ParameterDict({"b": dt.zeros(width)})
        self.shift = nn.Parameter(dt.zeros(width))
        self.scale = nn.Buffer(dt.ones(width), persistent=False)
        self.register_buffer("steps", dt.zeros(()))

    def forward(self, x: dt.DeviceArray, *, scaled: bool = True) -> tuple[dt.DeviceArray, int]:
        x = self.fc(x) + self.shift + self.weights[0] + self.named["b"]
        for layer in self.layers:
            x = layer(x)
        return (x * self.scale + self.steps if scaled else x), x.shape[0]


net = Net(5)
assert_type(net(x), tuple[dt.DeviceArray, int])
assert_type(net(x, scaled=False)[0], dt.DeviceArray)
assert_type(net.fc.weight, nn.Parameter)
assert_type(net.shift, nn.Parameter)
assert_type(net.scale, nn.Buffer)
assert_type(net.scale.persistent, bool)
assert_type(net.to("cpu", dt.float64).eval().float().train(), Net)
assert_type(list(net.parameters()), list[nn.Parameter])
assert_type(dict(net.named_buffers()), dict[str, dt.DeviceArray])
assert_type(net.state_dict(), dict[str, dt.DeviceArray])
assert_type(net.load_state_dict(net.state_dict()).missing_keys, list[str])
assert_type(net.get_submodule("fc"), nn.Module)
assert_type(nn.ModuleList().append(linear), nn.ModuleList)

# ---------------------------------------------------------------- functional and init

for value in (
    F.relu(x), F.relu6(x), F.leaky_relu(x), F.elu(x), F.gelu(x), F.silu(x), F.sigmoid(x), F.tanh(x), F.softplus(x),
    F.hardtanh(x), F.softmax(x, 1), F.log_softmax(x, 1), F.linear(x, linear.weight, linear.bias),
    F.conv1d(signal, dt.rand(2, 4, 3)), F.conv2d(image, dt.rand(2, 4, 3, 3)), F.max_pool2d(image, 2),
    F.avg_pool2d(image, 2), F.adaptive_avg_pool2d(image, 1), F.batch_norm(x, None, None, training=True),
    F.layer_norm(x, [4]), F.dropout(x), F.embedding(labels, x), F.pad(x, (1, 1)), F.normalize(x), F.one_hot(labels),
    F.cross_entropy(x, labels), F.nll_loss(x, labels), F.mse_loss(x, x), F.l1_loss(x, x),
    F.huber_loss(x, x), F.smooth_l1_loss(x, x), F.kl_div(x, x, reduction="batchmean", log_target=True),
    F.margin_ranking_loss(x, x, x), F.cosine_embedding_loss(x, x, x[:, 0]), F.hinge_embedding_loss(x, x, margin=2),
    F.soft_margin_loss(x, x), F.triplet_margin_loss(x, x, x, p=1), F.multi_margin_loss(x, labels, p=2),
    F.poisson_nll_loss(x, x, full=True), F.gaussian_nll_loss(x, x, x.square()), F.cosine_similarity(x, x, dim=0),
    F.pairwise_distance(x, x, keepdim=True),
    F.binary_cross_entropy(x.sigmoid(), x.sigmoid()), F.binary_cross_entropy_with_logits(x, x, pos_weight=x),
    F.selu(x), F.celu(x, 2), F.mish(x), F.hardswish(x), F.hardsigmoid(x), F.logsigmoid(x), F.glu(x), F.softmin(x, 1),
    F.threshold(x, 0, 1), F.prelu(x, x[0]), F.softsign(x), F.tanhshrink(x), F.hardshrink(x), F.softshrink(x, 0.1),
    F.relu_(x.clone()), F.leaky_relu_(x.clone()), F.elu_(x.clone()), F.hardtanh_(x.clone()), F.selu_(x.clone()),
    F.celu_(x.clone()), F.threshold_(x.clone(), 0, 1), F.rrelu_(x.clone()), F.rrelu(x, training=True),
    F.gumbel_softmax(x, hard=True), F.dropout1d(signal), F.dropout2d(image), F.dropout3d(dt.rand(2, 2, 2, 3, 3)),
    F.alpha_dropout(x, training=True), F.feature_alpha_dropout(image), F.group_norm(x, 2), F.instance_norm(image),
    F.rms_norm(x, 4), F.local_response_norm(image, 2), x.prelu(x[0]), x.hardshrink(),
):  # fmt: skip
    assert_type(value, dt.DeviceArray)
w = dt.empty(3, 4)
for filled in (
    nn.init.constant_(w, 1.0), nn.init.zeros_(w), nn.init.ones_(w), nn.init.eye_(w), nn.init.uniform_(w),
    nn.init.normal_(w, 0.0, 0.1), nn.init.xavier_uniform_(w), nn.init.xavier_normal_(w), nn.init.kaiming_uniform_(w),
    nn.init.orthogonal_(w, gain=0.5),
    nn.init.kaiming_normal_(w, mode="fan_out", nonlinearity="relu"), nn.init.dirac_(dt.ones(2, 2, 3)),
    nn.init.sparse_(w, 0.5, std=0.1),
):  # fmt: skip
    assert_type(filled, dt.DeviceArray)
assert_type(nn.init.calculate_gain("tanh"), float)
assert_type(nn.functional.relu(x), dt.DeviceArray)

pruned = dt.nn.utils.prune.l1_unstructured(dt.nn.Linear(3, 4), "weight", 0.5)
assert_type(pruned, dt.nn.Linear)
prune = dt.nn.utils.prune
for layer in (
    prune.identity(dt.nn.Linear(3, 4), "weight"), prune.random_unstructured(dt.nn.Linear(3, 4), "weight", 2),
    prune.random_structured(dt.nn.Linear(3, 4), "weight", 1, dim=0),
    prune.ln_structured(dt.nn.Linear(3, 4), "weight", 0.5, n=2, dim=0),
    prune.custom_from_mask(dt.nn.Linear(3, 4), "weight", dt.ones(4, 3)), prune.remove(pruned, "weight"),
    dt.nn.utils.parametrizations.orthogonal(dt.nn.Linear(3, 4)),
):  # fmt: skip
    assert_type(layer, dt.nn.Linear)
assert_type(prune.is_pruned(pruned), bool)
prune.global_unstructured([(pruned, "weight"), (pruned, "bias")], prune.L1Unstructured, amount=2)
kept = prune.PruningContainer(prune.CustomFromMask(dt.ones(4)))
assert len(kept) == 1
assert_type(kept[0], prune.BasePruningMethod)
assert_type(prune.L1Unstructured(1).prune(dt.ones(3)), dt.Tensor)
for made in (
    prune.Identity, prune.LnStructured, prune.RandomStructured, prune.RandomUnstructured, dt.nn.LazyInstanceNorm1d,
    dt.nn.LazyInstanceNorm2d, dt.nn.LazyInstanceNorm3d, dt.nn.FractionalMaxPool2d, dt.nn.FractionalMaxPool3d,
):  # fmt: skip
    assert callable(made)
assert_type(dt.nn.functional.pdist(dt.ones(3, 2)), dt.Tensor)
assert_type(dt.nn.functional.fractional_max_pool2d_with_indices(dt.ones(1, 4, 4), 2, 3), tuple[dt.Tensor, dt.Tensor])
assert_type(dt.nn.functional.fractional_max_pool3d_with_indices(dt.ones(1, 4, 4, 4), 2, 3)[0], dt.Tensor)
for drawn in (
    dt.nn.functional.fractional_max_pool2d(dt.ones(1, 4, 4), 2, 3),
    dt.nn.functional.fractional_max_pool3d(dt.ones(1, 4, 4, 4), 2, output_ratio=0.5),
):
    assert isinstance(drawn, dt.Tensor)
for larger in (
    dt.nn.functional.upsample_nearest(dt.ones(1, 1, 2, 2), 4),
    dt.nn.functional.upsample_bilinear(dt.ones(1, 1, 2, 2), scale_factor=2),
    dt.nn.utils.clip_grad_norm([], 1.0),
):
    assert_type(larger, dt.Tensor)
