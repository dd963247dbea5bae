//! Names that PyTorch, Keras, JAX, Hugging Face and flash-attention use, and what they are here.

/// What a keyword is in a function.
pub(crate) struct Meaning {
    /// A part of the name of the functions for which this counts.
    pub(crate) function: &'static str,
    /// A keyword that the function must have, if not empty.
    pub(crate) keyword: &'static str,
    /// What to say; if empty, that the keyword is `keyword`.
    pub(crate) sentence: &'static str,
}

/// The keyword of this name, wherever there is one.
const fn is(keyword: &'static str) -> Meaning {
    is_in("", keyword)
}

const fn is_in(function: &'static str, keyword: &'static str) -> Meaning {
    Meaning { function, keyword, sentence: "" }
}

const fn say(function: &'static str, sentence: &'static str) -> Meaning {
    Meaning { function, keyword: "", sentence }
}

/// Something to do with a keyword, wherever there is one.
const fn say_of(keyword: &'static str, sentence: &'static str) -> Meaning {
    Meaning { function: "", keyword, sentence }
}

/// Keywords, and what they are; the first that counts for the function.
pub(crate) const KEYWORDS: &[(&[&str], &[Meaning])] = &[
    // Arrays.
    (
        &["input", "inputs", "x", "hidden_states", "tensor", "array"],
        &[
            is("src"),
            is("src0"),
            is("q"),
            say("softmax_backward", "pass dst, the result of the forward function"),
        ],
    ),
    (&["other", "y"], &[is("src1"), is("up"), is_in("backward", "dst"), is("out")]),
    (&["gate", "gate_proj"], &[is_in("gated", "src")]),
    (&["query", "queries", "query_states"], &[is("q")]),
    (&["key", "keys", "key_states"], &[is("k")]),
    (&["value", "values", "value_states"], &[is("v")]),
    (&["output", "result", "dst"], &[is_in("backward", "dst"), is("out")]),
    (&["grad_output", "grad_out", "grad", "dy", "dout", "do", "diff_out"], &[is("diff_dst")]),
    (&["grad_input", "dx", "diff_src"], &[is("out")]),
    (&["logsumexp", "softmax_lse", "lse"], &[is("lse"), is("return_lse")]),
    (&["dtype", "out_dtype"], &[is("dtype"), say_of("out", "pass out, an array of that type")]),
    (&["inplace", "in_place"], &[say_of("out", "pass the array itself as out")]),
    // Normalization.
    (
        &["weight", "gamma"],
        &[is_in("norm", "scale"), is_in("explain", "scale"), is_in("rope", "scale")],
    ),
    (
        &["bias"],
        &[
            say("gated", "there is none: add it to gate and up before the call"),
            say("explain", "it has no effect on what is measured: leave it out"),
            is_in("norm", "shift"),
            is("mask"),
        ],
    ),
    (&["beta"], &[is_in("gated", "alpha"), is_in("norm", "shift")]),
    (&["shift"], &[say("explain", "it has no effect on what is measured: leave it out")]),
    (
        &["eps", "variance_epsilon", "layer_norm_eps", "rms_norm_eps", "layer_norm_epsilon"],
        &[is("epsilon")],
    ),
    (
        &["dim", "axis", "axes", "normalized_shape"],
        &[
            is("axis"),
            say("group_norm", "channels are dimension 1 of src"),
            say("norm", "the last dimension of src is normalized"),
            say("explain", "the last dimension of src is normalized"),
            say("gated", "gate and up are parts of the last dimension, and packing says which"),
            is("rotary_dims"),
        ],
    ),
    (&["num_groups", "n_groups"], &[is("groups")]),
    (&["group_size"], &[is("group")]),
    (&["block_size"], &[is("group"), is("page_size")]),
    (
        &["elementwise_affine", "affine", "center"],
        &[say("norm", "there is no such switch: pass scale and shift, or leave them out")],
    ),
    (
        &["training"],
        &[say("norm", "the functions whose names end in _training return the statistics, too")],
    ),
    (&["var", "running_var", "mean_square"], &[is("variance")]),
    (&["running_mean", "mu"], &[is("mean")]),
    (
        &["rstd", "invstd", "inv_std", "inv_rms", "invvar"],
        &[say_of("variance", "pass variance, with which rstd is 1/sqrt(variance + epsilon)")],
    ),
    (
        &["residual", "res", "skip"],
        &[
            is("residual"),
            say("norm_backward", "pass the sum as src, and the gradient of the sum as diff_sum"),
            say(
                "group_norm_quantized",
                "use add_group_norm_quantized(src, residual, ...), which also returns the sum",
            ),
            say(
                "layer_norm_quantized",
                "use add_layer_norm_quantized(src, residual, ...), which also returns the sum",
            ),
            say(
                "rms_norm_quantized",
                "use add_rms_norm_quantized(src, residual, ...), which also returns the sum",
            ),
            say(
                "group_norm_training",
                "use add_group_norm_training(src, residual, ...), which also returns the sum",
            ),
            say("group_norm", "use add_group_norm(src, residual, ...), which also returns the sum"),
            say(
                "layer_norm_training",
                "use add_layer_norm_training(src, residual, ...), which also returns the sum",
            ),
            say(
                "rms_norm_training",
                "use add_rms_norm_training(src, residual, ...), which also returns the sum",
            ),
            say("layer_norm", "use add_layer_norm(src, residual, ...), which also returns the sum"),
            say("rms_norm", "use add_rms_norm(src, residual, ...), which also returns the sum"),
        ],
    ),
    (&["diff_residual", "grad_residual", "dresidual", "diff_residual_dst"], &[is("diff_sum")]),
    (
        &["prenorm", "return_residual"],
        &[
            is("return_sum"),
            say("norm", "the functions whose names begin with add_ return the sum with a residual"),
        ],
    ),
    (
        &["residual_in_fp32"],
        &[say("norm", "the sum with a residual has the type of residual, such as float32")],
    ),
    (&["z"], &[is("gate")]),
    (
        &["norm_before_gate"],
        &[say_of("gate", "pass the gate as gate for True, as gate_input for False")],
    ),
    (&["zero_centered_gamma", "unit_offset", "one_plus_weight"], &[is("scale_plus_one")]),
    // Functions.
    (
        &[
            "activation",
            "function",
            "act",
            "act_fn",
            "hidden_act",
            "op",
            "fn",
            "alg_kind",
            "algorithm",
        ],
        &[is("activation"), is("function"), is("gating")],
    ),
    (
        &["approximate"],
        &[
            say_of("function", "pass \"gelu_tanh\" for \"tanh\", \"gelu_erf\" for \"none\""),
            say_of("activation", "pass \"gelu_tanh\" for \"tanh\", \"gelu_erf\" for \"none\""),
        ],
    ),
    (&["use_dst", "use_dst_for_bwd"], &[is("from_dst")]),
    (&["cond", "src2", "where", "mask"], &[is("condition")]),
    (&["negative_slope", "slope"], &[is_in("eltwise", "alpha"), is_in("gated", "alpha")]),
    (&["min", "min_val", "min_value", "a_min"], &[is_in("eltwise", "alpha"), is("min_window")]),
    (&["max", "max_val", "max_value", "a_max"], &[is_in("eltwise", "beta"), is("max_window")]),
    (&["exponent"], &[is_in("eltwise", "beta")]),
    (
        &["temperature", "temp", "tau"],
        &[say("softmax", "there is none: divide src by it before the call")],
    ),
    // Attention.
    (
        &["is_causal", "use_causal_mask", "causal_mask"],
        &[is_in("KvCache", "causal"), say_of("causal", "pass causal=\"top_left\" for True")],
    ),
    (&["attn_mask", "attention_mask", "attn_bias", "attention_bias"], &[is("mask")]),
    (
        &["key_padding_mask"],
        &[say_of(
            "mask",
            "pass a mask of shape (B, 1, 1, T) that is False for padding, or key_lengths",
        )],
    ),
    (
        &["dropout_p", "dropout", "dropout_rate", "attention_dropout", "deterministic", "training"],
        &[say("atten", "there is no dropout: leave it out")],
    ),
    (
        &["enable_gqa", "num_key_value_groups"],
        &[say("atten", "k and v may have fewer heads than q without it: leave it out")],
    ),
    (
        &["need_weights", "return_attn_probs", "output_attentions", "return_attention_scores"],
        &[say("atten", "weights are not stored; return_lse returns the logarithms of their sums")],
    ),
    (&["softmax_scale", "sm_scale", "scaling"], &[is_in("atten", "scale")]),
    (&["softcap", "logits_soft_cap", "attn_logits_soft_cap", "logit_cap"], &[is("soft_cap")]),
    (&["window_size", "sliding_window", "local_window_size"], &[is("window")]),
    (&["slopes", "alibi"], &[is("alibi_slopes")]),
    (&["sink", "s_aux", "attn_sink", "attention_sink"], &[is("sinks")]),
    (&["cu_seqlens_q", "cu_seqlens"], &[is("query_offsets")]),
    (&["cu_seqlens_k", "cu_seqlens_kv"], &[is("key_offsets")]),
    (
        &["max_seqlen_q", "max_seqlen_k", "max_seqlen"],
        &[say("atten", "the offsets suffice: leave it out")],
    ),
    (&["query_seq_lengths", "seqlens_q"], &[is("query_lengths")]),
    (
        &[
            "key_value_seq_lengths",
            "seqlens_k",
            "cache_seqlens",
            "context_lens",
            "seq_lens",
            "lengths",
        ],
        &[is("key_lengths")],
    ),
    (&["block_table", "block_tables"], &[is("page_table")]),
    (&["k_scale", "k_descale"], &[is("key_scales")]),
    (&["v_scale", "v_descale"], &[is("value_scales")]),
    (&["return_softmax_lse", "return_attn_lse", "return_logsumexp"], &[is("return_lse")]),
    // Rope.
    (&["position_ids", "pos", "offset", "input_pos"], &[is("positions")]),
    (&["inv_freq", "freqs", "freqs_cis"], &[is("frequencies")]),
    (
        &["interleaved", "rotary_interleaved"],
        &[say_of("pairing", "pass pairing=\"interleaved\" for True, \"half_split\" for False")],
    ),
    (
        &["is_neox_style", "is_neox"],
        &[say_of("pairing", "pass pairing=\"half_split\" for True, \"interleaved\" for False")],
    ),
    (
        &["theta", "rope_theta", "base"],
        &[is("base"), say_of("frequencies", "pass it to rope_frequencies, and the results here")],
    ),
    (
        &["rotary_dim", "rotary_ndims", "head_dim", "head_size", "d"],
        &[is("rotary_dims"), is("key_size")],
    ),
    (&["rope_type", "rope_scaling"], &[is("scaling")]),
    (&["mrope_section", "mrope_sections", "rope_sections"], &[is("sections")]),
    (&["mrope_interleaved"], &[is("interleaved_sections")]),
    (&["slot_mapping", "slot_indices"], &[is("slots")]),
    (
        &[
            "factor",
            "scaling_factor",
            "low_freq_factor",
            "high_freq_factor",
            "beta_fast",
            "beta_slow",
            "original_max_position_embeddings",
            "mscale",
            "mscale_all_dim",
            "attention_factor",
        ],
        &[say_of("parameters", "it is one of parameters, a list whose order help() gives")],
    ),
    (&["attention_factor", "attention_scaling", "mscale"], &[is("magnitude")]),
    // The cache.
    (
        &[
            "max_tokens",
            "num_tokens",
            "max_len",
            "max_seq_len",
            "max_cache_len",
            "capacity",
            "count",
            "lengths",
        ],
        &[is("tokens")],
    ),
    (&["max_length"], &[is("length"), is("tokens")]),
    (&["num_heads", "n_heads", "num_kv_heads", "kv_heads", "num_key_value_heads"], &[is("heads")]),
    (&["value_dim", "v_head_dim", "value_head_dim"], &[is("value_size")]),
    (&["num_layers", "n_layers", "num_hidden_layers"], &[is("layers")]),
    (&["layer_idx", "layer_id", "layer_index", "layer_number"], &[is("layer")]),
    (
        &["batch_size", "max_batch_size", "batch", "num_sequences", "max_sequences"],
        &[is("sequences")],
    ),
    (&["seq", "seq_id", "sequence", "sequence_id", "parent"], &[is("sequence"), is("sequences")]),
    (&["seqs", "seq_ids", "sequence_ids"], &[is("sequences")]),
    (&["num_blocks", "num_pages"], &[is("pages")]),
    (&["data_type", "cache_dtype"], &[is("dtype")]),
    // Settings.
    (&["n", "threads", "num"], &[is("num_threads")]),
];

/// Parameters without a default: a part of the name of the function, the parameter, and what to pass.
pub(crate) const NEEDED: &[(&str, &str, &str)] = &[
    (
        "rope",
        "pairing",
        "\"interleaved\", \"half_split\" as for Hugging Face's models, or \"half_split_of_head\"",
    ),
    (
        "rope",
        "positions",
        "an int32 or int64 array with the dimensions of src without the last, or 1",
    ),
    ("rope_permute", "heads", "the number of heads that the rows are of"),
    ("rope_permute", "from_pairing", "the pairing that the weights are for"),
    ("rope_permute", "to_pairing", "the pairing that the result is for"),
    ("layer_norm_backward", "mean", "the array that layer_norm_training returned"),
    ("layer_norm_backward", "variance", "the array that layer_norm_training returned"),
    ("rms_norm_backward", "variance", "the array that rms_norm_training returned"),
    (
        "group_norm_backward",
        "mean",
        "the array that group_norm_training returned, or None with rms=True",
    ),
    ("group_norm_backward", "variance", "the array that group_norm_training returned"),
    ("group_norm", "groups", "an int, a divisor of the number of channels"),
    ("attention_backward", "dst", "the result of attention"),
    ("attention_backward", "lse", "the array that attention returns with return_lse=True"),
    ("softmax_backward", "dst", "the result of the forward function"),
    (
        "gated_quantized",
        "out",
        "an array of int8, uint8, float8_e4m3fn or float8_e5m2, of the shape of the result",
    ),
    (
        "norm_quantized",
        "out",
        "an array of int8, uint8, float8_e4m3fn or float8_e5m2, of the shape of src",
    ),
    ("eltwise", "function", "the name of a function, such as \"relu\""),
    ("binary", "function", "the name of a function, such as \"add\""),
    ("adaptive_window", "length", "the number of tokens in the sequence"),
    (
        "adaptive_window",
        "strategy",
        "\"fixed\", \"length\", \"entropy\", \"entropy_over_4\" or \"perplexity\"",
    ),
];

/// Values; what they are here, which counts only if it is a value of the parameter; and what to add.
pub(crate) const VALUES: &[(&[&str], &str, &str)] = &[
    // Functions.
    (&["gelu"], "gelu_erf", ", its approximation gelu_tanh"),
    (&["geglu"], "gelu_erf", ", or gelu_tanh for its approximation"),
    (&["gelu_new", "gelu_pytorch_tanh", "gelu_fast", "gelu_approx"], "gelu_tanh", ""),
    (&["quick_gelu", "gelu_quick"], "swish", " with alpha=1.702"),
    (&["swiglu", "silu_and_mul"], "swish", ""),
    (&["reglu"], "relu", ""),
    (&["glu"], "logistic", ""),
    (&["bilinear", "identity", "none"], "linear", ""),
    (&["softplus"], "soft_relu", ""),
    (&["leaky_relu", "leakyrelu"], "relu", ", whose alpha is the slope below 0"),
    (&["relu6"], "clip", " with alpha=0.0 and beta=6.0"),
    (&["clamp", "hardtanh"], "clip", ""),
    (&["hard_sigmoid"], "hardsigmoid", ""),
    (&["hard_swish"], "hardswish", ""),
    (&["plus", "sum"], "add", ""),
    (&["subtract", "minus"], "sub", ""),
    (&["multiply", "prod"], "mul", ""),
    (&["divide", "true_divide", "truediv"], "div", ""),
    (&["maximum"], "max", ""),
    (&["minimum"], "min", ""),
    (&["equal"], "eq", ""),
    (&["not_equal"], "ne", ""),
    (&["greater"], "gt", ""),
    (&["greater_equal"], "ge", ""),
    (&["less"], "lt", ""),
    (&["less_equal"], "le", ""),
    (&["where"], "select", " with condition"),
    (
        &["chunk", "halves", "gate_up", "split"],
        "gate_first",
        ", or up_first if the second half is the gate",
    ),
    (&["up_gate"], "up_first", ""),
    // Rope.
    (&["neox", "gpt_neox", "rotate_half", "half", "split_half", "hf"], "half_split", ""),
    (&["gptj", "gpt_j", "adjacent", "pairs", "rotate_every_two"], "interleaved", ""),
    (&["default"], "none", ""),
    (&["dynamic"], "dynamic_ntk", ""),
    (&["su"], "longrope", ""),
    (&["ntk_aware"], "ntk", ""),
    (&["llama"], "llama3", ""),
    // Attention and its cache.
    (&["upper_left"], "top_left", ""),
    (&["left", "before"], "before_self", ""),
    (&["lower_right"], "bottom_right", ""),
    (&["static"], "contiguous", ""),
    (&["dynamic", "block"], "paged", ""),
    (&["sliding", "sliding_window", "rolling"], "ring", ""),
    (&["f32", "fp32"], "float32", ""),
    (&["bf16"], "bfloat16", ""),
    (&["f16", "fp16", "half"], "float16", ""),
    (&["fp8", "f8", "float8", "float8_e4m3", "f8_e4m3", "e4m3", "fp8_e4m3"], "float8_e4m3fn", ""),
    (&["i8", "s8"], "int8", ""),
];
