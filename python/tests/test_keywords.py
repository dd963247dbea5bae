"""Keywords and values of other libraries, and misspelt ones: messages say what they are here."""

import inspect
import pickle

import ml_dtypes
import numpy as np
import pytest
from test_errors import refused

import libnorm

OPTIONS = ["gate", "gate_input", "gating", "alpha", "scale_plus_one", "round_before_scale", "partial"]
ROWS, COLS = np.ones((2, 4), np.float32), np.ones(4, np.float32)
EACH = np.ones(2, np.float32)
HEADS, LSE = np.ones((1, 2, 3, 4), np.float32), np.ones((1, 2, 3), np.float32)
TOKENS, POSITIONS = np.ones((3, 2, 4), np.float32), np.zeros((3, 1), np.int32)
ANGLES = {"frequencies": [1.0, 0.5], "pairing": "interleaved"}
SIZES = {"tokens": 8, "heads": 2, "key_size": 4, "sequences": 2}


def cache():
    """A cache with a sequence, 0, of three tokens, and an open step."""
    own = libnorm.KvCache("paged", **SIZES)
    own.extend(own.new_sequence(), 3)
    own.write(HEADS, HEADS)
    return own


NORM = {"src": ROWS}
STATISTICS = {"diff_dst": ROWS, "src": ROWS, "mean": EACH, "variance": EACH}
GROUPS = {"src": ROWS, "groups": 2}
GROUP_STATISTICS = {"diff_dst": ROWS, "mean": np.ones((2, 2), np.float32), "variance": np.ones((2, 2), np.float32)}
ATTENTION = {"q": HEADS, "k": HEADS, "v": HEADS}
# A call of every function with parameters.
CALLS = {
    "KvCache": {"kind": "paged", **SIZES},
    "KvCache.attend": {"q": HEADS, "sequences": [0]},
    "KvCache.drop": {"sequence": 0},
    "KvCache.extend": {"sequences": [0], "tokens": [1]},
    "KvCache.fork": {"sequence": 0},
    "KvCache.length": {"sequence": 0},
    "KvCache.truncate": {"sequence": 0, "length": 1},
    "KvCache.write": {"k": HEADS, "v": HEADS},
    "KvCache.write_rope": {"k": TOKENS, **ANGLES},
    "adaptive_window": {"strategy": "length", "length": 9},
    "add_layer_norm": {**NORM, "residual": ROWS},
    "add_group_norm": {**GROUPS, "residual": ROWS},
    "add_group_norm_quantized": {**GROUPS, "residual": ROWS, "out": np.ones((2, 4), np.int8)},
    "add_group_norm_training": {**GROUPS, "residual": ROWS},
    "add_layer_norm_quantized": {**NORM, "residual": ROWS, "out": np.ones((2, 4), np.int8)},
    "add_layer_norm_training": {**NORM, "residual": ROWS},
    "add_rms_norm": {**NORM, "residual": ROWS},
    "add_rms_norm_quantized": {**NORM, "residual": ROWS, "out": np.ones((2, 4), np.int8)},
    "add_rms_norm_training": {**NORM, "residual": ROWS},
    "attention": ATTENTION,
    "attention_backward": {**ATTENTION, "diff_dst": HEADS, "dst": HEADS, "lse": LSE},
    "binary": {"src0": ROWS, "src1": ROWS, "function": "add"},
    "eltwise": {"src": ROWS, "function": "relu"},
    "eltwise_backward": {"diff_dst": ROWS, "src": ROWS, "function": "relu"},
    "explain": NORM,
    "gated": {"src": ROWS, "up": ROWS},
    "gated_backward": {"diff_dst": ROWS, "src": ROWS, "up": ROWS},
    "gated_quantized": {"src": ROWS, "up": ROWS, "out": np.ones((2, 4), np.int8)},
    "group_norm": GROUPS,
    "group_norm_backward": {**GROUPS, **GROUP_STATISTICS},
    "group_norm_quantized": {**GROUPS, "out": np.ones((2, 4), np.int8)},
    "group_norm_training": GROUPS,
    "layer_norm": NORM,
    "layer_norm_backward": STATISTICS,
    "layer_norm_quantized": {**NORM, "out": np.ones((2, 4), np.int8)},
    "layer_norm_training": NORM,
    "log_softmax": NORM,
    "log_softmax_backward": {"diff_dst": ROWS, "dst": ROWS},
    "machine_epsilon": {"dtype": "float32"},
    "rms_norm": NORM,
    "rms_norm_backward": {name: value for name, value in STATISTICS.items() if name != "mean"},
    "rms_norm_quantized": {**NORM, "out": np.ones((2, 4), np.int8)},
    "rms_norm_training": NORM,
    "rope": {"src": TOKENS, "positions": POSITIONS, **ANGLES},
    "rope_backward": {"diff_dst": TOKENS, "positions": POSITIONS, **ANGLES},
    "rope_frequencies": {"rotary_dims": 4},
    "rope_permute": {"src": ROWS, "heads": 1, "from_pairing": "interleaved", "to_pairing": "half_split",
                     "rotary_dims": 2},
    "set_num_threads": {"num_threads": 0},
    "softmax": NORM,
    "softmax_backward": {"diff_dst": ROWS, "dst": ROWS},
}


def found(name):
    """The function, or the method of a new cache."""
    return getattr(cache(), name.split(".")[1]) if "." in name else getattr(libnorm, name)


def keywords(name):
    """The keywords of a function, in the order of its signature."""
    parameters = inspect.signature(found(name)).parameters.values()
    own = [p.name for p in parameters if p.kind not in (p.POSITIONAL_ONLY, p.VAR_KEYWORD)]
    return own + (OPTIONS if any(p.kind == p.VAR_KEYWORD for p in parameters) else [])


def test_calls_are_complete():
    functions = [name for name in libnorm.__all__ if callable(getattr(libnorm, name))]
    methods = [f"KvCache.{name}" for name in vars(libnorm.KvCache) if name[0] != "_"]
    names = [name for name in functions + methods if keywords(name)]
    assert sorted(names) == sorted(CALLS)
    assert all(not inspect.signature(found(name)).parameters for name in methods if name not in CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_every_function_names_its_keywords(name):
    found(name)(**CALLS[name])
    words = f"{name}() has no keyword no_such_name; its keywords are {', '.join(keywords(name))}"
    for others in (CALLS[name], {}):
        with pytest.raises(TypeError) as caught:
            found(name)(**others, no_such_name=1)
        assert str(caught.value) == words
    libnorm.set_num_threads(0)


@pytest.mark.parametrize("name", CALLS)
def test_every_error_about_a_value_names_the_parameter(name):
    for keyword in keywords(name):
        given = {**CALLS[name], keyword: object()}
        if keyword in ("cos", "sin"):
            given = {**given, "frequencies": None, "cos": ROWS, "sin": ROWS, keyword: object()}
        if keyword == "mean":
            given.setdefault("variance", EACH)
        if keyword == "variance" and name in ("layer_norm", "group_norm"):
            given.setdefault("mean", EACH if name == "layer_norm" else GROUP_STATISTICS["mean"])
        if keyword == "gating":
            given["gate"] = ROWS
        if keyword == "packing":
            given["up"] = None
        with pytest.raises((TypeError, ValueError)) as caught:
            found(name)(**given)
        assert str(caught.value).startswith(keyword), (keyword, str(caught.value))
        # pyo3's own messages do not say what to pass.
        assert "cannot be" not in str(caught.value) and "instance of" not in str(caught.value)


def test_replaced_functions_are_like_others():
    assert pickle.loads(pickle.dumps(libnorm.rms_norm)) is libnorm.rms_norm
    assert repr(libnorm.softmax) == "<built-in function softmax>"
    assert libnorm.softmax.__module__ == "libnorm._libnorm"
    assert repr(libnorm.KvCache.extend) == "<method 'extend' of 'libnorm.KvCache' objects>"
    for function in (libnorm.softmax, libnorm.layer_norm, libnorm.KvCache.extend):
        assert len(function.__doc__) > 200
    # Other errors of calls with keywords are those of the function.
    refused(ValueError, ["scale has the shape"], libnorm.rms_norm, src=ROWS, scale=EACH)
    with pytest.raises(TypeError, match="multiple values"):
        libnorm.softmax(ROWS, src=ROWS)
    refused(TypeError, ["passed without names"], libnorm.set_max_cpu_isa, cpu_isa=None)


def test_arguments_without_names():
    no_more = "takes no more arguments without names than"
    words = [f"layer_norm() {no_more} src, scale, shift, epsilon, and 5 are given; there is no normalized_shape"]
    refused(TypeError, [*words, "by name: mean, variance, out"], libnorm.layer_norm, ROWS, (4,), COLS, COLS, 1e-5)
    words = [f"attention() {no_more} q, k, v, and 4 are given; pass these by name: causal, window, scale"]
    refused(TypeError, words, libnorm.attention, HEADS, HEADS, HEADS, None)
    words = [f"softmax() {no_more} src, axis, and 3 are given; pass these by name: inf_as_zero"]
    refused(TypeError, words, libnorm.softmax, ROWS, -1, np.float32)
    words = [f"KvCache.extend() {no_more} sequences, tokens, and 3 are given; pass these by name: packed"]
    refused(TypeError, words, cache().extend, [0], [1], True)
    words = [f"set_max_cpu_isa() {no_more} cpu_isa, and 2 are given"]
    refused(TypeError, words, libnorm.set_max_cpu_isa, "avx2", 1)
    refused(TypeError, ["cpu_isa is an int: pass the name of an instruction set"], libnorm.set_max_cpu_isa, 2)


# The parameters of PyTorch, Keras, JAX, Hugging Face and flash-attention, and what messages say about them.
ELSEWHERE = {
    "layer_norm": {
        "input": "input is src",
        "normalized_shape": "the last dimension of src is normalized",
        "weight": "weight is scale",
        "bias": "bias is shift",
        "eps": "eps is epsilon",
        "gamma": "gamma is scale",
        "beta": "beta is shift",
        "axis": "the last dimension of src is normalized",
        "residual": "use add_layer_norm(src, residual, ...)",
        "elementwise_affine": "pass scale and shift, or leave them out",
        "dtype": "pass out, an array of that type",
    },
    "rms_norm": {
        "input": "input is src",
        "weight": "weight is scale",
        "eps": "eps is epsilon",
        "dim": "the last dimension of src is normalized",
        "hidden_states": "hidden_states is src",
        "variance_epsilon": "variance_epsilon is epsilon",
        "residual": "use add_rms_norm(src, residual, ...)",
        "z": "z is gate",
    },
    "rms_norm_training": {"residual": "use add_rms_norm_training(src, residual, ...)"},
    "add_rms_norm": {"weight": "weight is scale", "eps": "eps is epsilon", "prenorm": "prenorm is return_sum"},
    "rms_norm_backward": {
        "grad_output": "grad_output is diff_dst",
        "dy": "dy is diff_dst",
        "rstd": "pass variance, with which rstd is 1/sqrt(variance + epsilon)",
        "diff_residual": "diff_residual is diff_sum",
        "residual": "the gradient of the sum as diff_sum",
    },
    "layer_norm_backward": {"grad_out": "grad_out is diff_dst", "rstd": "pass variance"},
    "group_norm": {
        "input": "input is src",
        "num_groups": "num_groups is groups",
        "weight": "weight is scale",
        "bias": "bias is shift",
        "eps": "eps is epsilon",
        "axis": "channels are dimension 1",
        "residual": "use add_group_norm(src, residual, ...)",
        "z": "z is gate",
    },
    "group_norm_training": {"residual": "use add_group_norm_training(src, residual, ...)"},
    "group_norm_backward": {"residual": "the gradient of the sum as diff_sum"},
    "rms_norm_quantized": {"residual": "use add_rms_norm_quantized(src, residual, ...)", "group_size": "is group"},
    "layer_norm_quantized": {"residual": "use add_layer_norm_quantized(src, residual, ...)"},
    "group_norm_quantized": {"residual": "use add_group_norm_quantized(src, residual, ...)"},
    "add_rms_norm_training": {"residual_in_fp32": "has the type of residual", "return_residual": "return the sum"},
    "explain": {"input": "input is src", "weight": "weight is scale", "eps": "eps is epsilon", "bias": "no effect"},
    "softmax": {"input": "input is src", "dim": "dim is axis", "dtype": "pass out, an array of that type"},
    "log_softmax": {"input": "input is src", "dim": "dim is axis"},
    "softmax_backward": {"grad_output": "grad_output is diff_dst", "output": "output is dst", "dim": "dim is axis"},
    "attention": {
        "query": "query is q",
        "key": "key is k",
        "value": "value is v",
        "attn_mask": "attn_mask is mask",
        "is_causal": 'pass causal="top_left" for True',
        "dropout_p": "there is no dropout",
        "enable_gqa": "k and v may have fewer heads than q without it",
        "bias": "bias is mask",
        "use_causal_mask": 'causal="top_left"',
        "attention_mask": "attention_mask is mask",
        "softmax_scale": "softmax_scale is scale",
        "window_size": "window_size is window",
        "softcap": "softcap is soft_cap",
        "cu_seqlens_q": "cu_seqlens_q is query_offsets",
        "cu_seqlens_k": "cu_seqlens_k is key_offsets",
        "cache_seqlens": "cache_seqlens is key_lengths",
        "block_table": "block_table is page_table",
        "lse": "lse is return_lse",
    },
    "attention_backward": {"dout": "dout is diff_dst", "output": "output is dst", "softmax_lse": "softmax_lse is lse"},
    "gated": {
        "input": "input is src",
        "gate": "gate is src",
        "act": "act is activation",
        "dim": "packing says which",
        "approximate": "gelu_tanh",
        "beta": "beta is alpha",
    },
    "eltwise": {
        "input": "input is src",
        "op": "op is function",
        "negative_slope": "negative_slope is alpha",
        "min": "min is alpha",
        "max": "max is beta",
        "inplace": "pass the array itself as out",
    },
    "binary": {"input": "input is src0", "other": "other is src1", "cond": "cond is condition"},
    "eltwise_backward": {"use_dst": "use_dst is from_dst"},
    "rope": {
        "x": "x is src",
        "position_ids": "position_ids is positions",
        "inv_freq": "inv_freq is frequencies",
        "interleaved": 'pass pairing="interleaved" for True, "half_split" for False',
        "is_neox_style": 'pass pairing="half_split" for True, "interleaved" for False',
        "theta": "pass it to rope_frequencies",
        "attention_scaling": "attention_scaling is magnitude",
        "rotary_dim": "rotary_dim is rotary_dims",
        "weight": "weight is scale",
        "eps": "eps is epsilon",
        "mrope_section": "mrope_section is sections",
        "slot_mapping": "slot_mapping is slots",
    },
    "rope_frequencies": {
        "dim": "dim is rotary_dims",
        "theta": "theta is base",
        "rope_type": "rope_type is scaling",
        "factor": "it is one of parameters",
        "beta_fast": "it is one of parameters",
    },
    "KvCache": {
        "max_tokens": "max_tokens is tokens",
        "max_cache_len": "max_cache_len is tokens",
        "num_heads": "num_heads is heads",
        "head_dim": "head_dim is key_size",
        "num_layers": "num_layers is layers",
        "max_batch_size": "max_batch_size is sequences",
        "block_size": "block_size is page_size",
        "num_blocks": "num_blocks is pages",
    },
    "KvCache.extend": {"num_tokens": "num_tokens is tokens", "seq_ids": "seq_ids is sequences"},
    "KvCache.fork": {"parent": "parent is sequence"},
    "KvCache.write": {"key": "key is k", "value": "value is v", "layer_idx": "layer_idx is layer"},
    "KvCache.attend": {"query": "query is q", "is_causal": "is_causal is causal", "attn_mask": "attn_mask is mask"},
    "KvCache.truncate": {"max_length": "max_length is length"},
    "set_num_threads": {"n": "n is num_threads"},
}


@pytest.mark.parametrize(("name", "keyword"), [(name, keyword) for name, own in ELSEWHERE.items() for keyword in own])
def test_keywords_of_other_libraries(name, keyword):
    words = [f"{name}() has no keyword {keyword}; ", ELSEWHERE[name][keyword], "; its keywords are "]
    for others in (CALLS[name], {}):
        refused(TypeError, words, lambda: found(name)(**others, **{keyword: 1}))


def test_several_keywords():
    words = ["attention() has no keywords query, key and value; query is q; key is k; value is v; its keywords are q"]
    refused(TypeError, words, libnorm.attention, query=HEADS, key=HEADS, value=HEADS, causal=True)
    words = ["layer_norm() has no keywords weight and epsilom; weight is scale; epsilom is perhaps epsilon; its"]
    refused(TypeError, words, libnorm.layer_norm, ROWS, weight=COLS, epsilom=1e-5)


@pytest.mark.parametrize(
    ("name", "keyword", "own"),
    [
        ("rms_norm", "epsillon", "epsilon"),
        ("rms_norm", "varaince", "variance"),
        ("rms_norm", "scale_plusone", "scale_plus_one"),
        ("attention", "query_length", "query_lengths"),
        ("attention", "casual", "causal"),
        ("softmax", "length", None),
        ("attention", "w", None),
        ("rope", "Frequencies", "frequencies"),
    ],
)
def test_misspelt_keywords(name, keyword, own):
    with pytest.raises(TypeError) as caught:
        found(name)(**CALLS[name], **{keyword: 1})
    hint = f"; {keyword} is perhaps {own}" if own else ""
    assert str(caught.value).startswith(f"{name}() has no keyword {keyword}{hint}; its keywords are")


@pytest.mark.parametrize(
    ("name", "parameter", "value", "hint"),
    [
        ("gated", "activation", "swiglu", "swiglu is swish"),
        ("gated", "activation", "GEGLU", "GEGLU is gelu_erf, or gelu_tanh for its approximation"),
        ("gated", "activation", "gelu", "gelu is gelu_erf, its approximation gelu_tanh"),
        ("gated", "activation", "glu", "glu is logistic"),
        ("gated", "activation", "gelu_pytorch_tanh", "gelu_pytorch_tanh is gelu_tanh"),
        ("gated", "activation", "swihs", "did you mean swish?"),
        ("eltwise", "function", "softplus", "softplus is soft_relu"),
        ("eltwise", "function", "leaky_relu", "leaky_relu is relu, whose alpha is the slope below 0"),
        ("binary", "function", "multiply", "multiply is mul"),
        ("binary", "function", "where", "where is select with condition"),
        ("machine_epsilon", "dtype", "bf16", "bf16 is bfloat16"),
        ("rope", "pairing", "neox", "neox is half_split"),
        ("rope", "pairing", "GPT-NeoX", "GPT-NeoX is half_split"),
        ("rope", "pairing", "gptj", "gptj is interleaved"),
        ("rope", "pairing", "halfsplit", "did you mean half_split?"),
        ("rope_frequencies", "scaling", "default", "default is none"),
        ("rope_frequencies", "scaling", "dynamic", "dynamic is dynamic_ntk"),
        ("attention", "causal", "lower_right", "lower_right is bottom_right"),
        ("KvCache", "kind", "static", "static is contiguous"),
        ("KvCache", "dtype", "bf16", "bf16 is bfloat16"),
        ("KvCache", "dtype", ml_dtypes.float8_e4m3, "float8_e4m3 is float8_e4m3fn"),
    ],
)
def test_values_of_other_libraries(name, parameter, value, hint):
    with pytest.raises(ValueError, match=f"^{parameter} is ") as caught:
        found(name)(**{**CALLS[name], parameter: value})
    assert str(caught.value).endswith(f"; {hint}")
