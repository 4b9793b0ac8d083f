"""24. A program that runs to its end and learns less than it could: what `python -m devtensor run` tells of training.

Run it with `python FILE`; without a GPU, `python -m devtensor run --simulate 1 FILE` gives it a simulated one.
"""

import subprocess
import sys

PROGRAM = """
import devtensor as dt
from devtensor import nn

device = dt.device("cuda" if dt.cuda.is_available() else "cpu")
dt.manual_seed(0)
x, labels = dt.randn(32, 4, device=device), dt.randint(0, 3, (32,), device=device)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.1))
        self.head, self.old_head = nn.Linear(16, 3), nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.body(x))


net = Net().to(device)
optimizer = dt.optim.Adam(net.parameters())
scores = []
for epoch in range(5):
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x), labels).backward()
    optimizer.step()
    net.eval()  # and nobody calls train() again
    scores.append(net(x))  # with its graph, as no_grad is missing
"""

# Each line is a fact that a correct program may have too, so none is a warning.
command = [sys.executable, "-m", "devtensor", "run", "-"]
said = subprocess.run(command, input=PROGRAM, stderr=subprocess.PIPE, text=True, check=True).stderr
print("\n".join(line for line in said.splitlines() if line.startswith("training")))

# The corrections, one for each line.
CORRECTED = (
    PROGRAM.replace(", self.old_head = nn.Linear(16, 3), nn.Linear(16, 3)", " = nn.Linear(16, 3)")
    .replace("    scores.append", "    with dt.no_grad():\n        scores.append")
    .replace("    optimizer.zero_grad()\n", "    net.train()\n    optimizer.zero_grad()\n")
)
said = subprocess.run(command, input=CORRECTED, stderr=subprocess.PIPE, text=True, check=True).stderr
print("afterwards:", [line for line in said.splitlines() if line.startswith("training")])
