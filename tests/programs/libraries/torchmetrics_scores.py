"""Needs: torchmetrics. Metrics over batches."""

import torch
import torchmetrics as m
from fill import numbers

scores, labels = numbers(4, 10, 5), torch.arange(40).reshape(4, 10) * 7 % 5
task = {"task": "multiclass", "num_classes": 5}
for metric in (
    m.Accuracy(**task), m.Precision(average="macro", **task), m.Recall(average="macro", **task), m.F1Score(**task),
    m.AUROC(**task), m.ConfusionMatrix(**task), m.CohenKappa(**task), m.JaccardIndex(**task),
    m.MatthewsCorrCoef(**task), m.AveragePrecision(**task),
):  # fmt: skip
    for batch in range(4):
        metric.update(scores[batch].softmax(-1), labels[batch])
    print(type(metric).__name__, metric.compute().tolist())
for metric in (
    m.MeanSquaredError(),
    m.MeanAbsoluteError(),
    m.R2Score(),
    m.PearsonCorrCoef(),
    m.SpearmanCorrCoef(),
    m.ExplainedVariance(),
):
    for batch in range(4):
        metric.update(scores[batch, :, 0].contiguous(), scores[batch, :, 1].contiguous())
    print(type(metric).__name__, f"{metric.compute().item():.6f}")
both = m.MetricCollection({"accuracy": m.Accuracy(**task), "f1": m.F1Score(**task)})
print({name: round(value.item(), 6) for name, value in both(scores[0].softmax(-1), labels[0]).items()})
