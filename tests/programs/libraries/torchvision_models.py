"""Needs: torchvision. Its models, forward and backward."""

from fill import numbers, show
from torchvision import models

x = numbers(2, 3, 64, 64)
for make in (
    models.alexnet, models.vgg11_bn, models.resnet18, models.resnext50_32x4d, models.densenet121, models.googlenet,
    models.mobilenet_v2, models.mobilenet_v3_small, models.efficientnet_b0, models.shufflenet_v2_x0_5,
    models.squeezenet1_1, models.convnext_tiny, models.swin_t, models.swin_v2_t, models.regnet_y_400mf,
    models.mnasnet0_5,
):  # fmt: skip
    options = {"aux_logits": False, "init_weights": False} if make is models.googlenet else {}
    show(make(num_classes=7, **options), x)
show(models.vit_b_16(image_size=64, num_classes=7), x)
show(models.segmentation.fcn_resnet50(weights_backbone=None, num_classes=3), x, pick=lambda found: found["out"])
show(models.segmentation.deeplabv3_mobilenet_v3_large(weights_backbone=None, num_classes=3), x, pick=lambda y: y["out"])
show(models.video.r3d_18(num_classes=5), numbers(2, 3, 8, 32, 32))
