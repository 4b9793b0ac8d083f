"""Needs: transformers, torchvision, PIL. Models of images from small configurations, and what prepares images."""

import numpy as np
import torch
import transformers as t
from fill import numbers
from PIL import Image

torch.manual_seed(0)
small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
images = numbers(2, 3, 32, 32)
pictures = [Image.fromarray((np.arange(32 * 32 * 3) * k % 255).astype("uint8").reshape(32, 32, 3)) for k in (1, 7)]


def show(model, **inputs):
    model.double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(numbers(*parameter.shape, low=-0.3, high=0.3))
    result = model(**inputs)
    scores = result.logits if "logits" in result else result[0]
    loss = result.loss if result.get("loss") is not None else scores.square().mean()
    loss.backward()
    total = sum(p.grad.abs().sum().item() for p in model.parameters() if p.grad is not None)
    print(type(model).__name__, tuple(scores.shape), f"{loss.item():.8f}", f"{total:.7g}", flush=True)


labels = torch.tensor([0, 2])
few = {"num_labels": 3, "image_size": 32}
show(t.ViTForImageClassification(t.ViTConfig(patch_size=8, **few, **small)), pixel_values=images, labels=labels)
show(t.DeiTForImageClassification(t.DeiTConfig(patch_size=8, **few, **small)), pixel_values=images, labels=labels)
show(t.BeitForImageClassification(t.BeitConfig(patch_size=8, **few, **small)), pixel_values=images, labels=labels)
show(t.Dinov2ForImageClassification(t.Dinov2Config(patch_size=8, **few, **small)), pixel_values=images, labels=labels)
show(t.CLIPVisionModel(t.CLIPVisionConfig(image_size=32, patch_size=8, **small)), pixel_values=images)
show(t.SiglipVisionModel(t.SiglipVisionConfig(image_size=32, patch_size=8, **small)), pixel_values=images)
convnext = t.ConvNextConfig(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 2, 1], num_labels=3)
show(t.ConvNextForImageClassification(convnext), pixel_values=images, labels=labels)
resnet = t.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], num_labels=3)
show(t.ResNetForImageClassification(resnet), pixel_values=images, labels=labels)
swin = t.SwinConfig(
    image_size=32, patch_size=4, embed_dim=8, depths=[1, 1], num_heads=[2, 2], window_size=4, num_labels=3
)
show(t.SwinForImageClassification(swin), pixel_values=images, labels=labels)
mobile = t.MobileNetV2Config(image_size=32, num_labels=3, depth_multiplier=0.25)
show(t.MobileNetV2ForImageClassification(mobile), pixel_values=images, labels=labels)
segformer = t.SegformerConfig(
    hidden_sizes=[8, 8], depths=[1, 1], num_encoder_blocks=2, sr_ratios=[2, 1], num_attention_heads=[1, 2],
    patch_sizes=[7, 3], strides=[4, 2], mlp_ratios=[2, 2], decoder_hidden_size=16, num_labels=3,
)  # fmt: skip
show(t.SegformerForSemanticSegmentation(segformer), pixel_values=images, labels=torch.zeros(2, 32, 32).long())
text = {
    "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64,
    "vocab_size": 50, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
both = t.CLIPConfig(text_config=text, vision_config={"image_size": 32, "patch_size": 8, **small}, projection_dim=16)
ids = torch.arange(10).reshape(2, 5)
clip = t.CLIPModel(both).double()
with torch.no_grad():
    for parameter in clip.parameters():
        parameter.copy_(numbers(*parameter.shape, low=-0.3, high=0.3))
found = clip(input_ids=ids, pixel_values=images, return_loss=True)
print(tuple(found.logits_per_image.shape), f"{found.loss.item():.8f}")
for processor in (
    t.ViTImageProcessor(size={"height": 32, "width": 32}),
    t.CLIPImageProcessor(do_resize=False, crop_size={"height": 24, "width": 24}),
    t.ConvNextImageProcessor(do_resize=False),
):
    values = processor(pictures, return_tensors="pt")["pixel_values"]
    print(type(processor).__name__, tuple(values.shape), f"{values.double().mean().item():.5f}")
