"""Training programs that run and learn nothing, or the wrong thing, and others that are correct.

The first give one GradientWarning at the line marked `# here`; with the fix, where there is one, they give none. Both
are written as users write them; x is a batch of 4 rows of 3, labels are its 4 classes.
"""

from __future__ import annotations

from gradient_mistakes import Mistake

START = """
import devtensor as dt
from devtensor import nn
F = nn.functional
dt.manual_seed(0)
x, labels = dt.randn(4, 3, device=dev), dt.tensor([0, 1, 2, 0], device=dev)
net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 3)).to(dev)
opt = dt.optim.SGD(net.parameters(), lr=0.1)
"""


MISTAKES = [
    Mistake(
        "a column against a row",
        "loss-broadcast",
        """
head, y = nn.Linear(3, 1).to(dev), dt.ones(4, device=dev)
pred = head(x)
F.mse_loss(pred, y)  # here
""",
        "pred = pred.squeeze(-1)",
        says=("pred", "(4, 1)", "(4,)"),
    ),
    Mistake(
        "a row against a column, by a Module",
        "loss-broadcast",
        """
head, y = nn.Linear(3, 1).to(dev), dt.ones(4, 1, device=dev)
pred, criterion = head(x).squeeze(1), nn.L1Loss()
criterion(pred, y)  # here
""",
        "y = y.squeeze(-1)",
    ),
    Mistake(
        "softmax before cross_entropy",
        "loss-of-probabilities",
        """
scores = net(x)
scores = F.softmax(scores, dim=1)
F.cross_entropy(scores, labels).backward()  # here
""",
        "scores",
        "F.softmax(scores, dim=1)",
        ("scores", "result of softmax"),
    ),
    Mistake(
        "a Softmax layer before CrossEntropyLoss",
        "loss-of-probabilities",
        """
model = nn.Sequential(net, nn.Softmax(dim=1))
out = model(x)
nn.CrossEntropyLoss()(out, labels).backward()  # here
""",
        says=("out", "result of softmax"),
    ),
    Mistake(
        "softmax before nll_loss",
        "loss-of-probabilities",
        """
out = net(x).softmax(1)
F.nll_loss(out, labels).backward()  # here
""",
        says=("log_softmax gives them",),
    ),
    Mistake(
        "sigmoid before the loss with logits",
        "loss-of-probabilities",
        """
target = dt.ones(4, 3, device=dev)
p = net(x)
p = dt.sigmoid(p)
F.binary_cross_entropy_with_logits(p, target).backward()  # here
""",
        "p",
        "dt.sigmoid(p)",
    ),
    Mistake(
        "no zero_grad",
        "zero-grad",
        """
for epoch in range(3):
    loss = F.cross_entropy(net(x), labels)
    loss.backward()
    opt.step()  # here
""",
        says=("4 parameters (net.0.weight first)",),
    ),
    Mistake(
        "zero_grad of another optimizer",
        "zero-grad",
        """
other = dt.optim.Adam(nn.Linear(3, 3).to(dev).parameters())
for epoch in range(3):
    other.zero_grad()
    F.cross_entropy(net(x), labels).backward()
    opt.step()  # here
""",
    ),
    Mistake(
        "zero_grad between backward and step",
        "step-without-gradient",
        """
F.cross_entropy(net(x), labels).backward()
opt.zero_grad()
opt.step()  # here
""",
        says=("zero_grad() has cleared the gradients at", "no gradient in its 4 parameters"),
    ),
    Mistake(
        "step before the first backward",
        "step-without-gradient",
        """
loss = F.cross_entropy(net(x), labels)
opt.step()  # here
loss.backward()
""",
        says=("call backward() before step()",),
    ),
    Mistake(
        "the optimizer of another model",
        "step-without-gradient",
        """
model = nn.Linear(3, 3).to(dev)
F.cross_entropy(model(x), labels).backward()
opt.step()  # here
""",
        says=("those of model have some",),
    ),
    Mistake(
        "layers in a plain list",
        "unregistered-parameters",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = [nn.Linear(3, 3).to(dev) for _ in range(2)]
        self.head = nn.Linear(3, 3).to(dev)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)

model = Net()
adam = dt.optim.Adam(model.parameters())
F.cross_entropy(model(x), labels).backward()
adam.step()  # here
""",
        says=("model.blocks = nn.ModuleList(...)",),
    ),
    Mistake(
        "a parameter in a plain dict",
        "unregistered-parameters",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = {"a": nn.Parameter(dt.ones(3, device=dev))}
        self.head = nn.Linear(3, 3).to(dev)

    def forward(self, x):
        return self.head(x * self.scales["a"])

model = Net()
adam = dt.optim.Adam(model.parameters())
F.cross_entropy(model(x), labels).backward()
adam.step()  # here
""",
        says=("model.scales = nn.ParameterDict(...)",),
    ),
    Mistake(
        "clipping before backward",
        "clip-without-gradient",
        """
loss = F.cross_entropy(net(x), labels)
nn.utils.clip_grad_norm_(net.parameters(), 1.0)  # here
loss.backward()
opt.step()
""",
        says=("none of the 4 parameters",),
    ),
    Mistake(
        "clipping after step",
        "clip-without-gradient",
        """
for epoch in range(2):
    opt.zero_grad()
    F.cross_entropy(net(x), labels).backward()
    opt.step()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)  # here
""",
        says=("step() has used the gradients of the 4 parameters",),
    ),
    Mistake(
        "losses that are added up",
        "graphs-grow",
        """
total = 0
for epoch in range(60):
    opt.zero_grad()
    loss = F.cross_entropy(net(x), labels)
    loss.backward()
    opt.step()  # here
    total += loss
""",
        "total += loss.item()",
        "total += loss",
        ("after each of 50 steps",),
    ),
    Mistake(
        "losses that are added up anew",
        "graphs-grow",
        """
total = 0
for epoch in range(60):
    opt.zero_grad()
    loss = F.cross_entropy(net(x), labels)
    loss.backward()
    opt.step()  # here
    total = total + loss
""",
        "total = total + loss.item()",
        "total = total + loss",
    ),
    Mistake(
        "losses in a list",
        "graphs-grow",
        """
losses = []
for epoch in range(60):
    opt.zero_grad()
    losses.append(F.cross_entropy(net(x), labels))
    losses[-1].backward()
    opt.step()  # here
""",
        says=("in losses,", ".item()"),
    ),
    Mistake(
        "losses in a list, of sequences that grow",
        "graphs-grow",
        """
losses = []
for length in range(1, 61):
    opt.zero_grad()
    state = x
    for _ in range(length):
        state = net(state)
    losses.append(F.cross_entropy(state, labels))
    losses[-1].backward()
    opt.step()  # here
""",
        says=("in losses,", ".item()"),
    ),
    Mistake(
        "a leaf that was moved",
        "grad-of-result",
        """
w = dt.randn(3, device="cpu", requires_grad=True).to(dev, copy=True)
w.sum().backward()
w.grad  # here
""",
        says=("w", "created by randn"),
    ),
    Mistake(
        "an update that makes a new array",
        "grad-of-result",
        """
w = dt.randn(3, device=dev, requires_grad=True)
w.sum().backward()
w = w - 0.1 * w.grad
w.sum().backward()
w.grad  # here
""",
        says=("result of sub",),
    ),
]

STEP = """
    opt.zero_grad()
    F.cross_entropy(net(x), labels).backward()
    opt.step()
"""

CORRECT = {
    "sequences that grow": """
for length in range(1, 61):
    opt.zero_grad()
    state = x
    for _ in range(length):
        state = net(state)
    loss = F.cross_entropy(state, labels)
    loss.backward()
    opt.step()
""",
    "sequences that grow, with two optimizers": """
other = nn.Linear(3, 3).to(dev)
second = dt.optim.SGD(other.parameters(), lr=0.1)
for length in range(1, 61):
    made = x
    for _ in range(length):
        made = other(made).tanh()
    opt.zero_grad()
    loss = F.cross_entropy(net(made.detach()), labels)
    loss.backward()
    opt.step()
    second.zero_grad()
    fooled = F.cross_entropy(net(made), labels)
    fooled.backward()
    second.step()
""",
    "the usual loop": f"for epoch in range(3):{STEP}",
    "zero_grad after step": """
for epoch in range(3):
    F.cross_entropy(net(x), labels).backward()
    opt.step()
    opt.zero_grad()
""",
    "zero_grad of the module": """
for epoch in range(3):
    net.zero_grad()
    F.cross_entropy(net(x), labels).backward()
    opt.step()
""",
    "zeros in place": """
for epoch in range(3):
    opt.zero_grad(set_to_none=False)
    F.cross_entropy(net(x), labels).backward()
    opt.step()
""",
    "zeros by hand": """
for epoch in range(3):
    for p in net.parameters():
        if p.grad is not None:
            p.grad.zero_()
    F.cross_entropy(net(x), labels).backward()
    opt.step()
""",
    "zeros by .data": """
for epoch in range(3):
    for p in net.parameters():
        if p.grad is not None:
            p.grad.data.zero_()
    F.cross_entropy(net(x), labels).backward()
    opt.step()
""",
    "accumulation over four batches": """
for epoch in range(3):
    opt.zero_grad()
    for part in range(4):
        (F.cross_entropy(net(x), labels) / 4).backward()
    opt.step()
""",
    "two losses": """
for epoch in range(3):
    opt.zero_grad()
    out = net(x)
    F.cross_entropy(out, labels).backward(retain_graph=True)
    out.square().mean().backward()
    opt.step()
""",
    "a GAN": """
G, D = nn.Linear(2, 3).to(dev), nn.Linear(3, 1).to(dev)
optG, optD = dt.optim.Adam(G.parameters()), dt.optim.Adam(D.parameters())
one, zero = dt.ones(4, 1, device=dev), dt.zeros(4, 1, device=dev)
for epoch in range(3):
    fake = G(dt.randn(4, 2, device=dev))
    optD.zero_grad()
    loss = F.binary_cross_entropy_with_logits(D(x), one)
    (loss + F.binary_cross_entropy_with_logits(D(fake.detach()), zero)).backward()
    optD.step()
    optG.zero_grad()
    F.binary_cross_entropy_with_logits(D(fake), one).backward()
    optG.step()
""",
    "actor and critic": """
actor, critic = nn.Linear(3, 2).to(dev), nn.Linear(3, 1).to(dev)
both = dt.optim.Adam([*actor.parameters(), *critic.parameters()])
for episode in range(3):
    logs, values = F.log_softmax(actor(x), dim=1), critic(x).squeeze(1)
    advantage = 1.0 - values.detach()
    both.zero_grad()
    (-(logs[:, 0] * advantage).mean() + F.mse_loss(values, dt.ones_like(values))).backward()
    both.step()
""",
    "fine-tuning of the last layer": """
for p in net[0].parameters():
    p.requires_grad = False
head = dt.optim.SGD(net[2].parameters(), lr=0.1)
for epoch in range(3):
    head.zero_grad()
    F.cross_entropy(net(x), labels).backward()
    head.step()
""",
    "an optimizer of all, some frozen": f"net[0].requires_grad_(False)\nfor epoch in range(3):{STEP}",
    "an average of the weights": """
import copy
average = copy.deepcopy(net)
for epoch in range(3):
    opt.zero_grad()
    F.cross_entropy(net(x), labels).backward()
    opt.step()
    with dt.no_grad():
        for a, p in zip(average.parameters(), net.parameters()):
            a.mul_(0.9).add_(p, alpha=0.1)
""",
    "a penalty on the gradient": """
for epoch in range(3):
    opt.zero_grad()
    inputs = x.clone().requires_grad_()
    slope, = dt.autograd.grad(net(inputs).sum(), inputs, create_graph=True)
    (F.cross_entropy(net(x), labels) + slope.square().sum()).backward()
    opt.step()
""",
    "two optimizers, one loss": """
first, last = dt.optim.SGD(net[0].parameters(), lr=0.1), dt.optim.Adam(net[2].parameters())
for epoch in range(3):
    first.zero_grad(), last.zero_grad()
    F.cross_entropy(net(x), labels).backward()
    first.step(), last.step()
""",
    "a closure": """
def closure():
    opt.zero_grad()
    loss = F.cross_entropy(net(x), labels)
    loss.backward()
    return loss

for epoch in range(3):
    opt.step(closure)
""",
    "the norm of what a step has used": """
opt.zero_grad()
F.cross_entropy(net(x), labels).backward()
opt.step()
nn.utils.clip_grad_norm_(net.parameters(), float("inf"))
""",
    "clipping": """
for epoch in range(3):
    opt.zero_grad()
    F.cross_entropy(net(x), labels).backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
""",
    "a scheduler": """
schedule = dt.optim.lr_scheduler.StepLR(opt, 1)
for epoch in range(3):
    opt.zero_grad()
    F.cross_entropy(net(x), labels).backward()
    opt.step()
    schedule.step()
""",
    "steps that only drive a scheduler": """
schedule = dt.optim.lr_scheduler.StepLR(opt, 1)
for epoch in range(3):
    opt.step()
    schedule.step()
""",
    "distillation": """
teacher = nn.Linear(3, 3).to(dev)
for epoch in range(3):
    with dt.no_grad():
        target = F.softmax(teacher(x), dim=1)
    opt.zero_grad()
    F.cross_entropy(net(x), target).backward()
    opt.step()
""",
    "log_softmax and nll_loss": """
for epoch in range(3):
    opt.zero_grad()
    F.nll_loss(F.log_softmax(net(x), dim=1), labels).backward()
    opt.step()
""",
    "validation between": """
for epoch in range(3):
    net.train()
    opt.zero_grad()
    F.cross_entropy(net(x), labels).backward()
    opt.step()
    net.eval()
    with dt.no_grad():
        shares = F.softmax(net(x), dim=1)
        correct = (shares.argmax(1) == labels).float().mean().item()
""",
    "an update by hand": """
w = dt.randn(3, 3, device=dev, requires_grad=True)
for epoch in range(3):
    F.cross_entropy(x @ w, labels).backward()
    with dt.no_grad():
        w -= 0.1 * w.grad
        w.grad.zero_()
""",
    "a carried state": """
cell, h = nn.Linear(6, 3).to(dev), dt.zeros(4, 3, device=dev)
steps = dt.optim.SGD(cell.parameters(), lr=0.1)
for t in range(3):
    h = dt.tanh(cell(dt.cat([x, h.detach()], dim=1)))
    steps.zero_grad()
    F.cross_entropy(h, labels).backward()
    steps.step()
""",
    "plain lists of what is registered too": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(3, 3), nn.Linear(3, 3)
        self.order = [self.one, self.two]

    def forward(self, x):
        for layer in self.order:
            x = layer(x)
        return x

model = Net().to(dev)
adam = dt.optim.Adam(model.parameters())
for epoch in range(3):
    adam.zero_grad()
    F.cross_entropy(model(x), labels).backward()
    adam.step()
""",
    "a part that this batch did not use": """
branch = nn.Linear(3, 3).to(dev)
both = dt.optim.SGD([*net.parameters(), *branch.parameters()], lr=0.1)
for epoch in range(3):
    both.zero_grad()
    F.cross_entropy(net(x) if epoch % 2 else net(branch(x)), labels).backward()
    both.step()
""",
    "losses without their graphs": """
losses, total = [], 0.0
for epoch in range(60):
    opt.zero_grad()
    loss = F.cross_entropy(net(x), labels)
    loss.backward()
    opt.step()
    losses.append(loss.detach())
    total += loss.detach()
""",
    "arrays that want gradients, in a list": """
inputs = []
for epoch in range(60):
    inputs.append(x.clone().requires_grad_())
    opt.zero_grad()
    F.cross_entropy(net(inputs[-1]), labels).backward()
    opt.step()
""",
    "gradients that are read": """
out = net(x)
out.retain_grad()
F.cross_entropy(out, labels).backward()
size = out.grad.norm().item() + sum(p.grad.norm().item() for p in net.parameters())
""",
}
