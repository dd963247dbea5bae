"""Trains a small model in PyTorch whose normalization is libnorm's, forward and backward.

    pip install ./python torch
    python python/examples/torch_autograd.py

`LayerNorm` and `RMSNorm` take the place of torch.nn.LayerNorm and torch.nn.RMSNorm over the last dimension.
The losses are printed beside those of the same model with PyTorch's own layers.
"""

import torch
from torch import nn
from torch.autograd.function import once_differentiable

import libnorm


class LayerNormFunction(torch.autograd.Function):
    """Layer normalization over the last dimension, with scale and shift."""

    @staticmethod
    def forward(ctx, x, scale, shift, epsilon):
        y, mean, variance = libnorm.layer_norm_training(x, scale, shift, epsilon)
        ctx.save_for_backward(x, mean, variance, scale, shift)
        ctx.epsilon = epsilon
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, diff_y):
        x, mean, variance, scale, shift = ctx.saved_tensors
        diff_x, diff_scale, diff_shift = libnorm.layer_norm_backward(
            diff_y, x, mean, variance, scale, shift, ctx.epsilon
        )
        return diff_x, diff_scale, diff_shift, None


class RMSNormFunction(torch.autograd.Function):
    """RMS normalization over the last dimension, with scale."""

    @staticmethod
    def forward(ctx, x, scale, epsilon):
        y, variance = libnorm.rms_norm_training(x, scale, None, epsilon)
        ctx.save_for_backward(x, variance, scale)
        ctx.epsilon = epsilon
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx, diff_y):
        x, variance, scale = ctx.saved_tensors
        diff_x, diff_scale, _ = libnorm.rms_norm_backward(diff_y, x, variance, scale, None, ctx.epsilon)
        return diff_x, diff_scale, None


class LayerNorm(nn.Module):
    """As torch.nn.LayerNorm(cols)."""

    def __init__(self, cols, epsilon=1e-5):
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.ones(cols)), nn.Parameter(torch.zeros(cols))
        self.epsilon = epsilon

    def forward(self, x):
        if torch.is_grad_enabled():
            return LayerNormFunction.apply(x, self.scale, self.shift, self.epsilon)
        return libnorm.layer_norm(x, self.scale, self.shift, self.epsilon)


class RMSNorm(nn.Module):
    """As torch.nn.RMSNorm(cols, eps=epsilon)."""

    def __init__(self, cols, epsilon=1e-5):
        super().__init__()
        self.scale, self.epsilon = nn.Parameter(torch.ones(cols)), epsilon

    def forward(self, x):
        if torch.is_grad_enabled():
            return RMSNormFunction.apply(x, self.scale, self.epsilon)
        return libnorm.rms_norm(x, self.scale, None, self.epsilon)


def train(layer_norm, rms_norm, steps=200):
    """The losses of a model that learns the sine of a sum."""
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Linear(8, 64), layer_norm(64), nn.GELU(), nn.Linear(64, 64), rms_norm(64), nn.GELU(), nn.Linear(64, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(steps):
        x = torch.randn(256, 8)
        loss = (model(x) - x.sum(1, keepdim=True).sin()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    """Trains twice and prints both losses."""
    ours = train(LayerNorm, RMSNorm)
    theirs = train(nn.LayerNorm, lambda cols: nn.RMSNorm(cols, eps=1e-5))
    print("step  libnorm  torch")
    for step in (0, 10, 50, 100, len(ours) - 1):
        print(f"{step:4}  {ours[step]:.5f}  {theirs[step]:.5f}")


if __name__ == "__main__":
    main()
