"""Trains a layer of grouped-query attention in PyTorch whose attention is libnorm's, forward and backward.

    pip install ./python torch
    python python/examples/torch_attention.py

`attention` takes the place of torch.nn.functional.scaled_dot_product_attention with is_causal and enable_gqa. The
losses are printed beside those of the same layer with that.
"""

import torch
from torch import nn
from torch.autograd.function import once_differentiable

import libnorm

HEADS, GROUPS, SIZE = 4, 2, 8
CLASSES, TOKENS = 8, 16


class AttentionFunction(torch.autograd.Function):
    """Causal attention of q, k and v: sequences x heads x tokens x elements."""

    @staticmethod
    def forward(ctx, q, k, v, options):
        y, lse = libnorm.attention(q, k, v, return_lse=True, **options)
        ctx.save_for_backward(q, k, v, y, lse)
        ctx.options = options
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, diff_y):
        q, k, v, y, lse = ctx.saved_tensors
        return (*libnorm.attention_backward(diff_y, q, k, v, y, lse, **ctx.options), None)


def attention(q, k, v, **options):
    """Attention with the keywords of libnorm.attention, except those with gradients of their own."""
    options.setdefault("causal", "top_left")
    if torch.is_grad_enabled():
        return AttentionFunction.apply(q, k, v, options)
    return libnorm.attention(q, k, v, **options)


def torch_attention(q, k, v):
    """PyTorch's own."""
    return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


class Model(nn.Module):
    """Maps each token to the class of the token before it: attention has to look back by one."""

    def __init__(self, function):
        super().__init__()
        width = HEADS * SIZE
        self.function = function
        self.tokens, self.positions = nn.Embedding(CLASSES, width), nn.Embedding(TOKENS, width)
        self.q = nn.Linear(width, width, bias=False)
        self.kv = nn.Linear(width, 2 * GROUPS * SIZE, bias=False)
        self.out = nn.Linear(width, CLASSES)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions.weight

        def heads(y, count):
            return y.unflatten(-1, (count, SIZE)).transpose(1, 2)

        # Strides are fine: nothing is copied.
        k, v = heads(self.kv(x), 2 * GROUPS).split(GROUPS, 1)
        y = self.function(heads(self.q(x), HEADS), k, v)
        return self.out(y.transpose(1, 2).flatten(2))


def train(function, steps=60):
    """The losses of the steps."""
    torch.manual_seed(1)
    model = Model(function)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(steps):
        tokens = torch.randint(CLASSES, (32, TOKENS))
        scores = model(tokens)[:, 1:].flatten(0, 1)
        loss = nn.functional.cross_entropy(scores, tokens[:, :-1].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    """Prints the losses of both."""
    ours, theirs = train(attention), train(torch_attention)
    print("step   libnorm   PyTorch")
    for step in range(0, len(ours), 10):
        print(f"{step:4d}  {ours[step]:8.5f}  {theirs[step]:8.5f}")
    print(f"last  {ours[-1]:8.5f}  {theirs[-1]:8.5f}")


if __name__ == "__main__":
    main()
