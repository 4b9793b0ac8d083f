"""Needs: timm. Its models, forward and backward."""

import timm
from fill import numbers, show

small, large = numbers(2, 3, 64, 64), numbers(2, 3, 224, 224)
SMALL = """resnet26d seresnet18 efficientnet_b0 mobilenetv3_small_100 convnext_atto regnetx_002 ghostnet_100
hrnet_w18_small darknet53 dpn48b res2net50_14w_8s skresnet18 nfnet_l0 repvgg_a0 tf_efficientnetv2_b0 mobileone_s0
resnetv2_50 densenet121"""
LARGE = """vit_tiny_patch16_224 deit_tiny_patch16_224 swin_tiny_patch4_window7_224 mixer_s32_224 xcit_nano_12_p16_224
levit_128s maxvit_tiny_tf_224 pit_ti_224 coat_lite_tiny convmixer_768_32 poolformer_s12 gmlp_ti16_224"""
for names, x in ((SMALL, small), (LARGE, large)):
    for name in names.split():
        show(timm.create_model(name, num_classes=7, drop_rate=0.0), x)
