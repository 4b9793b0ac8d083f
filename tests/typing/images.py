"""Layers of images, rows and volumes: convolutions, pools, other sizes, padding."""

from __future__ import annotations

from typing import assert_type

import devtensor as dt
import devtensor.nn.functional as F
from devtensor import nn

signal, image, volume = dt.rand(2, 4, 6), dt.rand(2, 4, 6, 6), dt.rand(2, 4, 6, 6, 6)
kernel = dt.rand(4, 4, 3, 3)

for output in (
    nn.Conv3d(4, 2, 3, padding="same")(volume), nn.ConvTranspose1d(4, 2, 3, stride=2)(signal),
    nn.ConvTranspose2d(4, 2, 3, stride=(2, 1), output_padding=(1, 0))(image), nn.ConvTranspose3d(4, 2, 3)(volume),
    nn.ConvTranspose2d(4, 2, 3, stride=2)(image, output_size=(14, 13)),
    nn.MaxPool1d(2)(signal), nn.MaxPool3d((1, 2, 2), ceil_mode=True)(volume), nn.AvgPool1d(2, padding=1)(signal),
    nn.AvgPool3d(2, divisor_override=3)(volume), nn.AdaptiveAvgPool1d(3)(signal),
    nn.AdaptiveAvgPool3d((1, None, 2))(volume), nn.AdaptiveMaxPool1d(3)(signal), nn.AdaptiveMaxPool2d((None, 4))(image),
    nn.AdaptiveMaxPool3d(3)(volume), nn.LPPool1d(2, 3)(signal), nn.LPPool2d(1.5, (2, 3), stride=1)(image.abs()),
    nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)(image), nn.UpsamplingNearest2d(12)(image),
    nn.UpsamplingBilinear2d(scale_factor=(2.0, 1.5))(image),
    nn.Unfold(3, padding=1)(image), nn.Fold((6, 6), 2, stride=2)(dt.rand(2, 16, 9)), nn.PixelShuffle(2)(image),
    nn.PixelUnshuffle(2)(image), nn.ChannelShuffle(2)(image),
    nn.ConstantPad1d(1, 0.5)(signal), nn.ConstantPad2d((1, 2, 3, 4), 1)(image), nn.ConstantPad3d(1, -1.0)(volume),
    nn.ZeroPad1d(1)(signal), nn.ZeroPad2d(1)(image), nn.ZeroPad3d(1)(volume),
    nn.ReflectionPad1d(1)(signal), nn.ReflectionPad2d((1, 1, 2, 2))(image), nn.ReflectionPad3d(1)(volume),
    nn.ReplicationPad1d((2, 0))(signal), nn.ReplicationPad2d(1)(image), nn.ReplicationPad3d(1)(volume),
    nn.CircularPad1d(1)(signal), nn.CircularPad2d(1)(image), nn.CircularPad3d(1)(volume),
):  # fmt: skip
    assert_type(output, dt.DeviceArray)

for value in (
    F.conv3d(volume, dt.rand(2, 4, 3, 3, 3), padding="same"), dt.conv3d(volume, dt.rand(2, 4, 3, 3, 3)),
    F.conv_transpose1d(signal, dt.rand(4, 2, 3)), F.conv_transpose2d(image, kernel, stride=2, groups=2),
    F.conv_transpose3d(volume, dt.rand(4, 1, 2, 2, 2)), dt.conv_transpose2d(image, kernel, dilation=(1, 2)),
    dt.conv_transpose1d(signal, dt.rand(4, 2, 3)), dt.conv_transpose3d(volume, dt.rand(4, 1, 2, 2, 2)),
    F.max_pool1d(signal, 2), F.max_pool3d(volume, 2, ceil_mode=True), F.avg_pool1d(signal, 2), F.avg_pool3d(volume, 2),
    dt.max_pool1d(signal, 2), dt.max_pool3d(volume, 2), dt.avg_pool1d(signal, 2), dt.adaptive_avg_pool1d(signal, 3),
    F.adaptive_avg_pool1d(signal, 3), F.adaptive_avg_pool3d(volume, (1, None, 2)), F.adaptive_max_pool1d(signal, 3),
    F.adaptive_max_pool2d(image, (None, 3)), F.adaptive_max_pool3d(volume, 2), F.lp_pool1d(signal, 2, 3),
    F.lp_pool3d(volume.abs(), 2, 3), nn.LPPool3d(2, 2)(volume.abs()),
    F.lp_pool2d(image, 2, 3, ceil_mode=True), F.interpolate(image, scale_factor=2, mode="bicubic", antialias=True),
    F.interpolate(volume, (3, 4, 5), mode="trilinear", align_corners=True),
    F.upsample(image, scale_factor=2.0),
    F.pixel_shuffle(image, 2), dt.pixel_shuffle(image, 2),
    F.pixel_unshuffle(image, 2), dt.pixel_unshuffle(image, 2),
    F.channel_shuffle(image, 2), dt.channel_shuffle(image, 2), F.unfold(image, 3),
    F.fold(dt.rand(16, 9), 6, 2, stride=2),
):  # fmt: skip
    assert_type(value, dt.DeviceArray)

Pair = tuple[dt.DeviceArray, dt.DeviceArray]
assert_type(nn.MaxPool1d(2, return_indices=True)(signal), Pair)
assert_type(nn.MaxPool3d(2, return_indices=True)(volume), Pair)
assert_type(nn.AdaptiveMaxPool1d(2, return_indices=True)(signal), Pair)
assert_type(nn.AdaptiveMaxPool2d(2, return_indices=True)(image), Pair)
assert_type(nn.AdaptiveMaxPool3d(2, return_indices=True)(volume), Pair)
assert_type(F.adaptive_max_pool1d(signal, 2, True), Pair)
assert_type(F.adaptive_max_pool2d(image, 2, return_indices=True), Pair)
assert_type(F.adaptive_max_pool3d(volume, 2, return_indices=True), Pair)
rows, places = F.max_pool1d(signal, 2, return_indices=True)
assert_type(F.max_unpool1d(rows, places, 2), dt.DeviceArray)
assert_type(nn.MaxUnpool1d(2)(rows, places), dt.DeviceArray)
maxima, places = dt.max_pool2d(image, 2, return_indices=True)
assert_type(F.max_unpool2d(maxima, places, 2, output_size=(6, 6)), dt.DeviceArray)
assert_type(nn.MaxUnpool2d(2)(maxima, places, output_size=(6, 6)), dt.DeviceArray)
blocks, places = F.max_pool3d(volume, 2, return_indices=True)
assert_type(F.max_unpool3d(blocks, places, 2), dt.DeviceArray)
assert_type(nn.MaxUnpool3d(2)(blocks, places), dt.DeviceArray)

for output in (
    nn.LazyLinear(3)(signal), nn.LazyConv1d(2, 3)(signal), nn.LazyConv2d(2, 3, padding="same")(image),
    nn.LazyConv3d(2, 3)(volume), nn.LazyConvTranspose1d(2, 3)(signal), nn.LazyConvTranspose2d(2, 3, stride=2)(image),
    nn.LazyConvTranspose3d(2, 3)(volume), nn.LazyBatchNorm1d()(signal), nn.LazyBatchNorm2d(affine=False)(image),
    nn.LazyBatchNorm3d()(volume), nn.Bilinear(6, 6, 2)(signal, signal), F.bilinear(signal, signal, dt.rand(2, 6, 6)),
    dt.bilinear(signal, signal, dt.rand(2, 6, 6), dt.rand(2)),
    F.grid_sample(image, dt.rand(2, 3, 3, 2), mode="bicubic", padding_mode="border", align_corners=False),
    F.affine_grid(dt.rand(2, 2, 3), (2, 4, 5, 6), align_corners=True),
):  # fmt: skip
    assert_type(output, dt.DeviceArray)
assert_type(nn.LazyLinear(3).has_uninitialized_params(), bool)
