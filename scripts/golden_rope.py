#!/usr/bin/env python3
"""Writes golden values of rope, by transformers: frequencies for a configuration of each scaling, and rotated heads.

    python3.11 -m venv VENV
    VENV/bin/pip install -r scripts/requirements.txt
    VENV/bin/python scripts/golden_rope.py tests/data/golden_rope.txt

Written with Python 3.11, torch 2.15.0, transformers 5.23.0. Frequencies are those of transformers'
ROPE_INIT_FUNCTIONS for the sizes and parameters of published models. They compute in torch.float, here set to
f64, because in f32 their roundings are several ulp. Each line `frequencies` is followed by the library's scaling and
parameters, the magnitude and the values. Heads are rotated in f64 by transformers' apply_rotary_pos_emb (half split)
and by complex numbers (interleaved).
"""

import argparse
import math
import pathlib
import random

try:
    import torch
    import transformers
except ImportError:
    torch = None  # --help works without it

LENGTH = 131072
SHORT = [1.0 + 0.0625 * i for i in range(64)]
# The library's name, head, base, transformers' parameters, length of the sequence, the library's parameters.
CONFIGURATIONS = [
    ("none", 128, 10000.0, {"rope_type": "default"}, None, []),
    ("none", 64, 500000.0, {"rope_type": "default"}, None, []),
    ("linear", 128, 10000.0, {"rope_type": "linear", "factor": 4.0}, None, [4.0]),
    ("ntk", 128, 10000.0, {"rope_type": "dynamic", "factor": 1.0}, 4 * 4096, [4.0]),
    ("dynamic_ntk", 128, 10000.0, {"rope_type": "dynamic", "factor": 2.0}, 10000, [2.0, 4096.0, 10000.0]),
    ("yarn", 128, 1000000.0, {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}, None,
     [4.0, 32768.0]),
    ("yarn", 64, 150000.0, {"rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 4096,
                            "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False}, None,
     [32.0, 4096.0, 32.0, 1.0, 0.0, 0.0, 0.0]),
    ("yarn", 64, 10000.0, {"rope_type": "yarn", "factor": 40.0, "original_max_position_embeddings": 4096,
                           "beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 0.707}, None,
     [40.0, 4096.0, 32.0, 1.0, 1.0, 0.707]),
    ("llama3", 128, 500000.0, {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                               "original_max_position_embeddings": 8192}, None, [8.0, 1.0, 4.0, 8192.0]),
    ("llama3", 64, 500000.0, {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                              "original_max_position_embeddings": 8192}, None, [32.0, 1.0, 4.0, 8192.0]),
    ("longrope", 128, 10000.0, {"rope_type": "longrope", "factor": 32.0, "short_factor": SHORT, "long_factor": SHORT,
                                "original_max_position_embeddings": 4096}, None, [32.0, 4096.0] + SHORT),
]


def frequencies(head, base, parameters, sequence):
    """transformers' inverse frequencies and attention factor."""
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    torch.float, torch.Tensor.float = torch.float64, torch.Tensor.double

    trained = parameters.get("original_max_position_embeddings", 4096)
    config = transformers.LlamaConfig(
        hidden_size=head, num_attention_heads=1, head_dim=head,
        max_position_embeddings=LENGTH if parameters["rope_type"] == "longrope" else trained,
        rope_parameters={**parameters, "rope_theta": base})
    kind = parameters["rope_type"]
    if kind == "default":
        from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

        values, factor = LlamaRotaryEmbedding.compute_default_rope_parameters(config)
    else:
        values, factor = ROPE_INIT_FUNCTIONS[kind](config, "cpu", seq_len=sequence)
    return values.to(torch.float32), float(factor)


def text(values):
    return " ".join(repr(float(value)) for value in values)


def rotated(out):
    """Heads, positions and frequencies, and the rotated heads."""
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    rng = random.Random(5)
    tokens, heads, head = 6, 2, 16
    positions = torch.tensor([0, 1, 7, 4095, 131071, 1048575], dtype=torch.float64)
    inverse = 10000.0 ** (-torch.arange(0, head, 2, dtype=torch.float64) / head)
    src = torch.tensor([rng.randint(-40, 40) / 16 for _ in range(tokens * heads * head)], dtype=torch.float64)
    src = src.reshape(1, tokens, heads, head)
    angles = positions[:, None] * inverse
    double = torch.cat((angles, angles), -1)[None]
    half, _ = apply_rotary_pos_emb(src, src, double.cos(), double.sin(), unsqueeze_dim=2)
    pairs = torch.view_as_complex(src.reshape(1, tokens, heads, head // 2, 2))
    turned = pairs * torch.polar(torch.ones_like(angles), angles)[None, :, None]
    near = torch.view_as_real(turned).reshape(src.shape)
    for name, values in (("positions", positions), ("inverse", inverse), ("src", src.flatten()),
                         ("half_split", half.flatten()), ("interleaved", near.flatten())):
        out.append(f"{name} {text(values)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=pathlib.Path, help="the file to write")
    arguments = parser.parse_args()
    if torch is None:
        raise SystemExit("golden_rope.py needs torch and transformers: see --help")
    out = [f"# scripts/golden_rope.py, torch {torch.__version__}, transformers {transformers.__version__}"]
    for name, head, base, parameters, sequence, ours in CONFIGURATIONS:
        values, factor = frequencies(head, base, parameters, sequence)
        assert len(values) == head // 2 and math.isfinite(factor), name
        out.append(f"frequencies {name} {head} {base!r} {' '.join(map(repr, ours))}".rstrip())
        out.append(f"magnitude {factor!r}")
        out.append(f"values {text(values)}")
    rotated(out)
    arguments.output.write_text("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
