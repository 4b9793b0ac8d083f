"""The parameters of PyTorch 2.13's layers of images, rows and volumes: a part of torch_signatures.py."""

from __future__ import annotations

RECORDED: dict[str, str] = {
    "nn.AdaptiveAvgPool1d": "output_size",
    "nn.AdaptiveAvgPool3d": "output_size",
    "nn.AdaptiveMaxPool1d": "output_size, return_indices=False",
    "nn.AdaptiveMaxPool2d": "output_size, return_indices=False",
    "nn.AdaptiveMaxPool3d": "output_size, return_indices=False",
    "nn.AvgPool1d": "kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True",
    "nn.AvgPool3d": "kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, "
    "divisor_override=None",
    "nn.Bilinear": "in1_features, in2_features, out_features, bias=True, device=None, dtype=None",
    "nn.ChannelShuffle": "groups",
    "nn.CircularPad1d": "padding",
    "nn.CircularPad2d": "padding",
    "nn.CircularPad3d": "padding",
    "nn.ConstantPad1d": "padding, value",
    "nn.ConstantPad2d": "padding, value",
    "nn.ConstantPad3d": "padding, value",
    "nn.Conv3d": "in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, "
    "padding_mode='zeros', device=None, dtype=None",
    "nn.ConvTranspose1d": "in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, "
    "groups=1, bias=True, dilation=1, padding_mode='zeros', device=None, dtype=None",
    "nn.ConvTranspose2d": "in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, "
    "groups=1, bias=True, dilation=1, padding_mode='zeros', device=None, dtype=None",
    "nn.ConvTranspose3d": "in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, "
    "groups=1, bias=True, dilation=1, padding_mode='zeros', device=None, dtype=None",
    "nn.Fold": "output_size, kernel_size, dilation=1, padding=0, stride=1",
    "nn.LPPool1d": "norm_type, kernel_size, stride=None, ceil_mode=False",
    "nn.LPPool3d": "norm_type, kernel_size, stride=None, ceil_mode=False",
    "nn.LPPool2d": "norm_type, kernel_size, stride=None, ceil_mode=False",
    "nn.LazyBatchNorm1d": "eps=1e-05, momentum=0.1, affine=True, track_running_stats=True, device=None, "
    "dtype=None, *, bias=True",
    "nn.LazyBatchNorm2d": "eps=1e-05, momentum=0.1, affine=True, track_running_stats=True, device=None, "
    "dtype=None, *, bias=True",
    "nn.LazyBatchNorm3d": "eps=1e-05, momentum=0.1, affine=True, track_running_stats=True, device=None, "
    "dtype=None, *, bias=True",
    "nn.LazyConv1d": "out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, "
    "padding_mode='zeros', device=None, dtype=None",
    "nn.LazyConv2d": "out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, "
    "padding_mode='zeros', device=None, dtype=None",
    "nn.LazyConv3d": "out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, "
    "padding_mode='zeros', device=None, dtype=None",
    "nn.LazyConvTranspose1d": "out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, "
    "bias=True, dilation=1, padding_mode='zeros', device=None, dtype=None",
    "nn.LazyConvTranspose2d": "out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, "
    "bias=True, dilation=1, padding_mode='zeros', device=None, dtype=None",
    "nn.LazyConvTranspose3d": "out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, "
    "bias=True, dilation=1, padding_mode='zeros', device=None, dtype=None",
    "nn.LazyLinear": "out_features, bias=True, device=None, dtype=None",
    "nn.MaxPool1d": "kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False",
    "nn.MaxPool3d": "kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False",
    "nn.MaxUnpool1d": "kernel_size, stride=None, padding=0",
    "nn.MaxUnpool2d": "kernel_size, stride=None, padding=0",
    "nn.MaxUnpool3d": "kernel_size, stride=None, padding=0",
    "nn.PixelShuffle": "upscale_factor",
    "nn.PixelUnshuffle": "downscale_factor",
    "nn.ReflectionPad1d": "padding",
    "nn.ReflectionPad2d": "padding",
    "nn.ReflectionPad3d": "padding",
    "nn.ReplicationPad1d": "padding",
    "nn.ReplicationPad2d": "padding",
    "nn.ReplicationPad3d": "padding",
    "nn.Unfold": "kernel_size, dilation=1, padding=0, stride=1",
    "nn.Upsample": "size=None, scale_factor=None, mode='nearest', align_corners=None, recompute_scale_factor=None",
    "nn.UpsamplingBilinear2d": "size=None, scale_factor=None",
    "nn.UpsamplingNearest2d": "size=None, scale_factor=None",
    "nn.ZeroPad1d": "padding",
    "nn.ZeroPad2d": "padding",
    "nn.ZeroPad3d": "padding",
    "nn.functional.adaptive_avg_pool3d": "input, output_size",
    "nn.functional.adaptive_max_pool1d": "input, output_size, return_indices=False",
    "nn.functional.adaptive_max_pool2d": "input, output_size, return_indices=False",
    "nn.functional.adaptive_max_pool3d": "input, output_size, return_indices=False",
    "nn.functional.affine_grid": "theta, size, align_corners=None",
    "nn.functional.fold": "input, output_size, kernel_size, dilation=1, padding=0, stride=1",
    "nn.functional.grid_sample": "input, grid, mode='bilinear', padding_mode='zeros', align_corners=None",
    "nn.functional.interpolate": "input, size=None, scale_factor=None, mode='nearest', align_corners=None, "
    "recompute_scale_factor=None, antialias=False",
    "nn.functional.lp_pool1d": "input, norm_type, kernel_size, stride=None, ceil_mode=False",
    "nn.functional.lp_pool3d": "input, norm_type, kernel_size, stride=None, ceil_mode=False",
    "nn.functional.lp_pool2d": "input, norm_type, kernel_size, stride=None, ceil_mode=False",
    "nn.functional.max_pool1d": "input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, "
    "return_indices=False",
    "nn.functional.max_pool3d": "input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, "
    "return_indices=False",
    "nn.functional.max_unpool1d": "input, indices, kernel_size, stride=None, padding=0, output_size=None",
    "nn.functional.max_unpool2d": "input, indices, kernel_size, stride=None, padding=0, output_size=None",
    "nn.functional.max_unpool3d": "input, indices, kernel_size, stride=None, padding=0, output_size=None",
    "nn.functional.unfold": "input, kernel_size, dilation=1, padding=0, stride=1",
    "nn.functional.upsample": "input, size=None, scale_factor=None, mode='nearest', align_corners=None",
}

COMPILED: dict[str, str] = {
    "nn.functional.adaptive_avg_pool1d": "input, output_size",
    "nn.functional.avg_pool1d": "input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True",
    "nn.functional.avg_pool3d": "input, kernel_size, stride=None, padding=0, ceil_mode=False, "
    "count_include_pad=True, divisor_override=None",
    "nn.functional.bilinear": "input1, input2, weight, bias=None",
    "nn.functional.channel_shuffle": "input, groups",
    "nn.functional.conv3d": "input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1",
    "nn.functional.conv_transpose1d": "input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, "
    "dilation=1",
    "nn.functional.conv_transpose2d": "input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, "
    "dilation=1",
    "nn.functional.conv_transpose3d": "input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, "
    "dilation=1",
    "nn.functional.pixel_shuffle": "input, upscale_factor",
    "nn.functional.pixel_unshuffle": "input, downscale_factor",
}
