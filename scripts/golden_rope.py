#!/usr/bin/env python3
"""Writes golden values of rope, by transformers: frequencies for a configuration of each scaling, and rotated heads.

    python3.11 -m venv VENV
    VENV/bin/pip install -r scripts/requirements.txt
    VENV/bin/python scripts/golden_rope.py tests/data/golden_rope.txt

Written with Python 3.11, torch 2.15.0, transformers 5.23.0. Frequencies are those of transformers'
ROPE_INIT_FUNCTIONS for the sizes and parameters of models; the divisors of LongRoPE are made up. They compute in
torch.float, here set to f64, because in f32 their roundings are several ulp. Each line `frequencies` is followed by the
library's scaling and parameters, the magnitude and the values. Heads are rotated in f64 by transformers'
apply_rotary_pos_emb (half split) and by complex numbers (interleaved), with the angles of the formula, of transformers'
proportional frequencies (half split of the head), of YaRN with its magnitude, of tables in f32, and of Qwen2-VL's and
Qwen3-VL's three-part positions; and after PyTorch's rms_norm.
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


HEAD = 16


def embedding(module, config, name, **parameters):
    """A model's rotary embedding with heads of 16 elements, in f64."""
    models = getattr(transformers.models, module)
    rope_parameters = {"rope_type": "default", "rope_theta": 10000.0, **parameters}
    made = getattr(models, config)(hidden_size=HEAD, num_attention_heads=1, head_dim=HEAD,
                                   max_position_embeddings=2 * LENGTH, rope_parameters=rope_parameters)
    return getattr(getattr(models, f"modeling_{module}"), name)(made)


def rotated(out):
    """Heads, positions and frequencies, and the rotated heads."""
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    rng = random.Random(5)
    tokens, heads, head = 6, 2, HEAD
    positions = torch.tensor([0, 1, 7, 4095, 131071, 1048575], dtype=torch.float64)
    inverse = 10000.0 ** (-torch.arange(0, head, 2, dtype=torch.float64) / head)
    src = torch.tensor([rng.randint(-40, 40) / 16 for _ in range(tokens * heads * head)], dtype=torch.float64)
    src = src.reshape(1, tokens, heads, head)
    angles = positions[:, None] * inverse
    double = torch.cat((angles, angles), -1)[None]

    def turned_by(cos, sin, of=src):
        return apply_rotary_pos_emb(of, of, cos, sin, unsqueeze_dim=2)[0]

    half = turned_by(double.cos(), double.sin())
    pairs = torch.view_as_complex(src.reshape(1, tokens, heads, head // 2, 2))
    turned = pairs * torch.polar(torch.ones_like(angles), angles)[None, :, None]
    near = torch.view_as_real(turned).reshape(src.shape)

    gemma = embedding("llama", "LlamaConfig", "LlamaRotaryEmbedding", rope_type="proportional",
                      partial_rotary_factor=0.5)
    yarn = embedding("llama", "LlamaConfig", "LlamaRotaryEmbedding", rope_type="yarn", factor=8.0,
                     original_max_position_embeddings=4096)
    near_positions = torch.tensor([0, 1, 7, 4, 2, 2])
    cosines, sines = (of(torch.outer(torch.arange(8.0, dtype=torch.float64), inverse)).to(
        torch.float32).to(torch.float64) for of in (torch.cos, torch.sin))
    rows = [torch.cat((table, table), -1)[near_positions][None] for table in (cosines, sines)]
    parts = torch.tensor([[rng.randrange(5000) for _ in range(3)] for _ in range(tokens)], dtype=torch.float64)
    qwen2 = embedding("qwen2_vl", "Qwen2VLTextConfig", "Qwen2VLRotaryEmbedding", mrope_section=[2, 3, 3])
    qwen3 = embedding("qwen3_vl", "Qwen3VLTextConfig", "Qwen3VLTextRotaryEmbedding", mrope_section=[4, 2, 2])
    scale = torch.tensor([rng.randint(8, 24) / 16 for _ in range(head)], dtype=torch.float64)
    normalized = torch.nn.functional.rms_norm(src, (head,), weight=scale, eps=1e-6)
    part_rows = parts.T[:, None]
    for name, values in (
            ("positions", positions), ("inverse", inverse), ("src", src), ("half_split", half), ("interleaved", near),
            ("proportional", gemma.inv_freq[gemma.inv_freq != 0]),
            ("half_split_of_head", turned_by(*gemma(src, positions[None]))),
            ("yarn", yarn.inv_freq), ("yarn_magnitude", torch.tensor([yarn.attention_scaling], dtype=torch.float64)),
            ("with_magnitude", turned_by(*yarn(src, positions[None]))),
            ("near_positions", near_positions), ("cosines", cosines), ("sines", sines),
            ("from_tables", turned_by(*rows)), ("parts", parts), ("sections", turned_by(*qwen2(src, part_rows))),
            ("interleaved_sections", turned_by(*qwen3(src, part_rows))), ("scale", scale),
            ("normalized", turned_by(double.cos(), double.sin(), normalized))):
        out.append(f"{name} {text(values.flatten())}")


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
