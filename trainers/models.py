"""Small PyTorch models to record from: batch to logits, no dropout, no batch statistics."""

import torch
from torch import nn


def build(kind, hidden, features, classes, context=None):
    """(module, graph) for `kind`: "softmax", "mlp", "cnn" or "transformer".

    hidden    layer widths: any number for the MLP, one for the CNN (channels) and the transformer
    features  inputs a row; a square number for the CNN. Input: float32 [batch, features]
    classes   outputs. Logits: [batch, classes]
    context   characters a window, for the transformer, whose input is int64 [batch, context] and
              whose logits are [batch, context, classes]
    graph     the model as docs/trace_format.md defines it, or None where it cannot say it
    """
    if kind == "softmax":
        return _chain([features, classes])
    if kind == "mlp":
        return _chain([features, *hidden, classes])
    if kind == "cnn":
        return SmallCnn(features, hidden[0], classes), None
    return CharTransformer(context, hidden[0], classes), None


def _chain(widths):
    layers, graph = [], []
    for i, (fan_in, fan_out) in enumerate(zip(widths, widths[1:])):
        if i > 0:
            layers.append(nn.ReLU())
            graph.append({"op": "relu"})
        graph.append({
            "op": "linear",
            "weight": f"{len(layers)}.weight",
            "bias": f"{len(layers)}.bias"
        })
        layers.append(nn.Linear(fan_in, fan_out))
    return nn.Sequential(*layers), graph


class SmallCnn(nn.Module):
    """Two 3x3 convolutions, each with ReLU and 2x2 max pooling, and a linear layer.

    Input float32 [batch, side * side]; logits [batch, classes].
    """

    def __init__(self, features, channels, classes):
        super().__init__()
        self.side = int(round(features**0.5))
        self.conv1 = nn.Conv2d(1, channels, 3, padding=1)
        self.conv2 = nn.Conv2d(channels, 2 * channels, 3, padding=1)
        self.head = nn.Linear(2 * channels * (self.side // 4)**2, classes)

    def forward(self, x):
        x = x.reshape(-1, 1, self.side, self.side)
        x = nn.functional.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = nn.functional.max_pool2d(torch.relu(self.conv2(x)), 2)
        return self.head(x.flatten(1))


class _Block(nn.Module):
    """A pre-norm transformer block, causal self-attention: [batch, context, width] to the same."""

    def __init__(self, context, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.register_buffer("future",
                             torch.triu(torch.ones(context, context, dtype=torch.bool), 1),
                             persistent=False)

    def forward(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).reshape(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-2, -1)) / (width // self.heads)**0.5
        weights = scores.masked_fill(self.future[:length, :length], float("-inf")).softmax(-1)
        x = x + self.project((weights @ v).transpose(1, 2).reshape(batch, length, width))
        return x + self.down(torch.relu(self.up(self.norm2(x))))


class CharTransformer(nn.Module):
    """Two blocks of 4 heads over learned character and position embeddings.

    Input int64 [batch, context]; logits [batch, context, classes].
    """

    def __init__(self, context, width, classes):
        super().__init__()
        self.token = nn.Embedding(classes, width)
        self.position = nn.Parameter(torch.randn(context, width) * 0.02)
        self.blocks = nn.ModuleList([_Block(context, width, heads=4) for _ in range(2)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, codes):
        x = self.token(codes) + self.position
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
