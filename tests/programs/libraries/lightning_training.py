"""Needs: pytorch_lightning. A module that its Trainer trains, validates and tests."""

import logging

import pytorch_lightning as pl
import torch
from fill import numbers
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)


class Regression(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1).double()
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(numbers(*parameter.shape))

    def loss(self, batch):
        x, y = batch
        return torch.nn.functional.mse_loss(self.layer(x), y)

    def training_step(self, batch, index):
        loss = self.loss(batch)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, index):
        self.log("validation", self.loss(batch))

    def on_validation_epoch_end(self):
        if not self.trainer.sanity_checking:
            print(f"{self.trainer.callback_metrics['validation'].item():.6f}")

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=0.05)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)]


data = DataLoader(TensorDataset(numbers(32, 4), numbers(32, 1, low=0.0)), 8)
options = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
trainer = pl.Trainer(max_epochs=3, accelerator="cpu", gradient_clip_val=1.0, **options)
model = Regression()
trainer.fit(model, data, data)
print(model.layer.weight.tolist())
