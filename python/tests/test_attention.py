"""Attention against the formulas in f64, forward and backward; bits; errors; PyTorch if installed."""

import importlib.util
import itertools
import math

import ml_dtypes
import numpy as np
import pytest
from minimal import Array
from reference import TYPES
from test_errors import refused

import libnorm

B, H, G, S, T, D, E = 2, 4, 2, 9, 13, 16, 24
# Bounds for results and gradients: weights and results of about 1 are rounded to the type.
ALLOWED = {"float32": 4e-6, "float16": 8e-3, "bfloat16": 6e-2}


def numbers(shape, dtype="float32", seed=0):
    return np.random.default_rng([seed, *shape]).uniform(-1.5, 1.5, shape).astype(TYPES[dtype])


def tensors(dtype="float32", tokens=(S, T)):
    """q, k, v and diff_dst."""
    queries, keys = tokens
    shapes = (B, H, queries, D), (B, G, keys, D), (B, G, keys, E), (B, H, queries, E)
    return [numbers(shape, dtype, seed) for seed, shape in enumerate(shapes)]


def seen(queries, keys, causal=None, window=None):
    """Which keys each query of a sequence sees."""
    i = np.arange(queries)[:, None] + (keys - queries if causal == "bottom_right" else 0)
    j = np.arange(keys)
    allowed = np.full((queries, keys), True)
    if causal or window:
        allowed &= j <= i
    if window:
        first = window[2] if len(window) > 2 else 0
        allowed &= (j > i - window[1] - (window[0] == "before_self")) | (j < first)
    return allowed


class Expected:
    """Everything in f64."""

    def __init__(self, q, k, v, *, scale=None, soft_cap=None, sinks=None, alibi_slopes=None, mask=None, **options):
        self.q, k, v = (np.asarray(x, dtype=np.float64) for x in (q, k, v))
        self.repeat = q.shape[1] // k.shape[1]
        self.k, self.v = np.repeat(k, self.repeat, 1), np.repeat(v, self.repeat, 1)
        self.scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
        (batch, heads, queries, _), keys = q.shape, k.shape[2]
        lengths = [options.pop(name, None) for name in ("query_lengths", "key_lengths")]
        lengths = [np.full(batch, all) if own is None else own for own, all in zip(lengths, (queries, keys))]
        score = self.scale * self.q @ self.k.swapaxes(2, 3)
        self.slope = np.ones_like(score)
        if soft_cap:
            score = soft_cap * np.tanh(score / soft_cap)
            self.slope = 1 - (score / soft_cap) ** 2
        for b, (own_queries, own_keys) in enumerate(zip(*lengths)):
            if alibi_slopes is not None:
                shift = own_keys - own_queries if options.get("causal") == "bottom_right" else 0
                distance = np.arange(keys) - np.arange(queries)[:, None] - shift
                score[b] += alibi_slopes[:, None, None].astype(np.float64) * distance
            own = np.full((queries, keys), False)
            own[:own_queries, :own_keys] = seen(own_queries, own_keys, **options)
            score[b][:, ~own] = -np.inf
        if mask is not None:
            mask = np.asarray(mask)
            hides = mask.dtype in (np.bool_, np.uint8)
            score = score + (np.where(mask, 0.0, -np.inf) if hides else mask.astype(np.float64))
        all_scores = score
        if sinks is not None:
            sink = np.broadcast_to(sinks[:, None, None].astype(np.float64), (batch, heads, queries, 1)).copy()
            for b, own_queries in enumerate(lengths[0]):
                sink[b, :, own_queries:] = -np.inf
            all_scores = np.concatenate([score, sink], -1)
        with np.errstate(divide="ignore", invalid="ignore"):
            largest = np.maximum(all_scores.max(-1, keepdims=True), -1e300)
            self.lse = np.log(np.exp(all_scores - largest).sum(-1, keepdims=True)) + largest
            self.p = np.where(score > -np.inf, np.exp(score - self.lse), 0.0)
            self.sink = None if sinks is None else np.where(sink > -np.inf, np.exp(sink - self.lse), 0.0)
            terms = np.where(self.p > 0, -self.p * np.log(self.p), 0)
        self.lse = np.where(self.lse < -1e299, -np.inf, self.lse)[..., 0]
        self.entropy = terms.sum((2, 3)) / np.maximum(lengths[0], 1)[:, None]
        self.dst = self.p @ self.v

    def gradients(self, dy):
        dy = np.asarray(dy, dtype=np.float64)
        delta = (dy * self.dst).sum(-1, keepdims=True)
        ds = self.p * (dy @ self.v.swapaxes(2, 3) - delta) * self.slope * self.scale

        def of_groups(x):
            batch, heads, keys, size = x.shape
            return x.reshape(batch, heads // self.repeat, self.repeat, keys, size).sum(2)

        own = ds @ self.k, of_groups(ds.swapaxes(2, 3) @ self.q), of_groups(self.p.swapaxes(2, 3) @ dy)
        return own if self.sink is None else (*own, -(self.sink * delta).sum((0, 2, 3)))


def near(actual, expected, allowed):
    actual = np.asarray(actual).astype(np.float64)
    assert actual.shape == expected.shape
    with np.errstate(invalid="ignore"):
        apart = np.where(actual == expected, 0, np.abs(actual - expected))
    assert np.all(apart <= allowed), f"off by {np.max(apart)}"


def check(dtype="float32", tokens=(S, T), **options):
    q, k, v, dy = tensors(dtype, tokens)
    allowed = ALLOWED[dtype]
    dst, lse, entropy = libnorm.attention(q, k, v, return_lse=True, return_entropy=True, **options)
    assert dst.dtype == q.dtype and lse.dtype == entropy.dtype == np.float32
    expected = Expected(q, k, v, **options)
    near(dst, expected.dst, allowed)
    near(lse, expected.lse, 4e-6)
    near(entropy, expected.entropy, 4e-6)
    gradients = libnorm.attention_backward(dy, q, k, v, dst, lse, **options)
    wanted = expected.gradients(dy)
    assert len(gradients) == len(wanted)
    for actual, wanted in zip(gradients, wanted):
        near(actual, wanted, 8 * allowed)
    alone = libnorm.attention(q, k, v, **options)
    assert type(alone) is np.ndarray and alone.tobytes() == dst.tobytes()


@pytest.mark.parametrize("dtype", ALLOWED)
@pytest.mark.parametrize("causal", [None, "top_left", "bottom_right"])
def test_types(dtype, causal):
    check(dtype, causal=causal)


SLOPES = np.array([0.5, 0.25, 0.125, 0.0625], np.float32)
OPTIONS = {
    "with_self": {"window": ("with_self", 3)},
    "before_self": {"window": ("before_self", 0), "causal": "bottom_right"},
    "first_keys": {"window": ("with_self", 2, 3), "causal": "bottom_right"},
    "scale": {"scale": 0.5},
    "soft_cap": {"soft_cap": 0.75},
    "sinks": {"sinks": SLOPES - 0.2},
    "alibi": {"alibi_slopes": SLOPES},
    "added": {"mask": numbers((B, H, S, T), seed=9)},
    "shared": {"mask": numbers((S, T), seed=9).astype(np.float16), "causal": "top_left"},
    "bool": {"mask": numbers((B, 1, S, T), seed=9) > -0.5},
    "bytes": {"mask": (numbers((1, H, 1, T), seed=9) > -0.5).astype(np.uint8)},
    "key_lengths": {"key_lengths": np.array([11, 5], np.int32), "causal": "bottom_right"},
    "lengths": {"query_lengths": np.array([9, 4], np.int32), "key_lengths": np.array([0, 7], np.int32)},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options(name):
    check(**OPTIONS[name])


def test_options_together():
    names = ("soft_cap", "sinks", "alibi", "added", "key_lengths", "with_self")
    check(**{key: value for name in names for key, value in OPTIONS[name].items()})


def test_causal_true_is_for_squares():
    q, k, v, _ = tensors(tokens=(5, 5))
    expected = libnorm.attention(q, k, v, causal="bottom_right").tobytes()
    assert libnorm.attention(q, k, v, causal=True).tobytes() == expected
    assert libnorm.attention(q, k, v, causal=False).tobytes() == libnorm.attention(q, k, v).tobytes()
    words = ["causal", "bottom_right", "top_left"]
    refused(ValueError, words, libnorm.attention, q[:, :, :4], k, v, causal=True)
    lengths = np.array([5, 5], np.int32)
    refused(ValueError, words, libnorm.attention, q, k, v, causal=True, key_lengths=lengths)


def test_a_decoded_token_has_the_bits_of_the_prefill():
    q, k, v, _ = tensors(tokens=(40, 40))
    prefill = libnorm.attention(q, k, v, causal=True)
    for token in range(40):
        lengths = np.full(B, token + 1, np.int32)
        step = libnorm.attention(q[:, :, token : token + 1], k, v, causal="bottom_right", key_lengths=lengths)
        assert step.tobytes() == prefill[:, :, token : token + 1].tobytes()
        # Without lengths, on a part of the cache.
        own = slice(0, token + 1)
        step = libnorm.attention(q[:, :, token : token + 1], k[:, :, own], v[:, :, own])
        assert step.tobytes() == prefill[:, :, token : token + 1].tobytes()


def test_strides_and_pages_change_no_bit():
    q, k, v, _ = tensors(tokens=(S, 12))
    expected = libnorm.attention(q, k, v).tobytes()
    # Tokens before heads, the layout of projections.
    turned = [np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2) for x in (q, k, v)]
    assert libnorm.attention(*turned).tobytes() == expected
    turned[1] = np.asfortranarray(k)
    assert libnorm.attention(*turned).tobytes() == expected
    order = np.array([[5, 0, 3], [1, 6, 2]], np.int32)
    pages = [np.full((7, G, 4, x.shape[3]), np.nan, np.float32) for x in (k, v)]
    for b in range(B):
        for at, page in enumerate(order[b]):
            for paged, x in zip(pages, (k, v)):
                paged[page] = x[b, :, 4 * at : 4 * at + 4]
    assert libnorm.attention(q, *pages, page_table=order).tobytes() == expected
    order[1, 2] = 7
    refused(ValueError, ["page_table", "7"], libnorm.attention, q, *pages, page_table=order)


@pytest.mark.parametrize("dtype", ALLOWED)
def test_instruction_sets_and_threads_change_no_bit(dtype):
    q, k, v, dy = tensors(dtype, (70, 300))
    found = set()
    for isa, threads in [("portable", 1), (None, 1), (None, 2), (None, 3), ("avx2", 2)]:
        try:
            libnorm.set_max_cpu_isa(isa)
        except NotImplementedError:
            continue
        libnorm.set_num_threads(threads)
        dst, lse = libnorm.attention(q, k, v, causal="bottom_right", return_lse=True)
        gradients = libnorm.attention_backward(dy, q, k, v, dst, lse, causal="bottom_right")
        found.add(b"".join(x.tobytes() for x in (dst, lse, *gradients)))
    assert len(found) == 1


def test_out():
    q, k, v, _ = tensors()
    expected = libnorm.attention(q, k, v)
    out = np.empty(expected.shape, ml_dtypes.bfloat16)
    assert libnorm.attention(q, k, v, out=out) is out
    assert out.tobytes() == expected.astype(ml_dtypes.bfloat16).tobytes()
    narrow = v[..., :D]
    expected = libnorm.attention(q, k, narrow)
    own = q.copy()
    assert libnorm.attention(own, k, narrow, out=own) is own
    assert own.tobytes() == expected.tobytes()
    refused(ValueError, ["out", "overlaps k"], libnorm.attention, q[:, :G, :, :], k, k, out=k[:, :, :S])


def test_dlpack():
    q, k, v, _ = tensors()
    dst, lse = libnorm.attention(Array(q), k, v, return_lse=True)
    expected = libnorm.attention(q, k, v, return_lse=True)
    assert type(dst) is Array and dst.array.tobytes() == expected[0].tobytes()
    assert type(lse) is Array and lse.array.tobytes() == expected[1].tobytes()


def test_nothing_to_do():
    assert libnorm.attention(*(np.empty((B, H, 0, D), np.float32),) * 3).shape == (B, H, 0, D)
    q, k, v, _ = tensors()
    assert not libnorm.attention(q, k[:, :, :0], v[:, :, :0]).any()


def test_errors():
    q, k, v, dy = tensors()
    refused(ValueError, ["q", "(4, 9, 16)", "four dimensions"], libnorm.attention, q[0], k, v)
    refused(ValueError, ["k", "(2, 2, 13, 8)", "(2, 2, 13, 16)"], libnorm.attention, q, k[..., :8], v)
    refused(ValueError, ["v", "those of k"], libnorm.attention, q, k, v[:, :, :5])
    refused(ValueError, ["q has 3 heads", "multiple"], libnorm.attention, q[:, :3], k, v)
    refused(TypeError, ["k", "float16", "q of float32"], libnorm.attention, q, k.astype(np.float16), v)
    refused(TypeError, ["q", "float64"], libnorm.attention, q.astype(np.float64), k, v)
    refused(ValueError, ["causal", "left", "top_left"], libnorm.attention, q, k, v, causal="left")
    refused(TypeError, ["causal", "top_left"], libnorm.attention, q, k, v, causal=2.5)
    for window in (3, ("self", 3), ("with_self", -1)):
        refused(ValueError, ["window", "with_self", "before_self"], libnorm.attention, q, k, v, window=window)
    refused(ValueError, ["window", "0"], libnorm.attention, q, k, v, window=("with_self", 0))
    refused(ValueError, ["soft_cap"], libnorm.attention, q, k, v, soft_cap=-1.0)
    assert (libnorm.attention(q, k, v, soft_cap=0.0) == libnorm.attention(q, k, v)).all()
    assert "0 is none" in libnorm.attention.__doc__
    refused(ValueError, ["scale"], libnorm.attention, q, k, v, scale=math.nan)
    mask = np.zeros((S, T + 1), np.float32)
    refused(ValueError, ["mask", "(9, 14)", "(2, 4, 9, 13)"], libnorm.attention, q, k, v, mask=mask)
    words = ["mask has elements of float64", "float32, bfloat16 or float16, which are added", "bool or uint8"]
    refused(TypeError, words, libnorm.attention, q, k, v, mask=np.zeros((S, T)))
    lengths = np.array([5, 6])
    refused(TypeError, ["key_lengths", "int64", "int32"], libnorm.attention, q, k, v, key_lengths=lengths)
    lengths = np.array([5, T + 1], np.int32)
    refused(ValueError, ["key_lengths", "14", "13"], libnorm.attention, q, k, v, key_lengths=lengths)
    refused(ValueError, ["sinks", "(3,)", "(4,)"], libnorm.attention, q, k, v, sinks=SLOPES[:3])
    wide = np.repeat(SLOPES, 2)[::2]
    refused(ValueError, ["sinks", "contiguous"], libnorm.attention, q, k, v, sinks=wide)
    dst, lse = libnorm.attention(q, k, v, return_lse=True)
    backward = libnorm.attention_backward
    refused(ValueError, ["lse", "(2, 4)", "(2, 4, 9)"], backward, dy, q, k, v, dst, lse[..., 0])
    refused(ValueError, ["diff_dst", "(2, 4, 9, 24)"], backward, dy[..., :5], q, k, v, dst, lse)
    refused(TypeError, ["diff_dst", "float16"], backward, dy.astype(np.float16), q, k, v, dst, lse)
    # Only masks may have elements of bool.
    refused(TypeError, ["q", "bool"], libnorm.attention, q > 0, k, v)


def test_adaptive_window():
    lengths = [(100, 512), (1024, 512), (1026, 513), (4096, 2048), (8192, 4096), (32768, 4096)]
    assert all(libnorm.adaptive_window("length", length) == window for length, window in lengths)
    entropies = [(0, 512), (1, 1408), (2, 2304), (3, 3200), (4, 4096), (9, 4096)]
    for entropy, window in entropies:
        assert libnorm.adaptive_window("entropy_over_4", 8192, measured=entropy) == window
    assert libnorm.adaptive_window("perplexity", 8192, measured=100, vocabulary=10_000) == 2304
    assert libnorm.adaptive_window("length", 8192, previous=1000, max_step=64) == 1064
    assert libnorm.adaptive_window("length", 8192, previous=1000, smoothing=0.25) == 1774
    # A previous window outside the bounds is first limited to them.
    assert libnorm.adaptive_window("length", 0, previous=10_000, max_step=64) == 4032
    # Equal weights give the largest entropy of a window.
    q, k, v, _ = tensors(tokens=(64, 64))
    window = ("with_self", 16)
    _, entropy = libnorm.attention(q, k, v, window=window, scale=0.0, return_entropy=True)
    expected = np.log(np.minimum(np.arange(1, 65), 16)).mean()
    near(entropy, np.full((B, H), expected), 1e-5)
    measured = float(entropy.mean())
    assert libnorm.adaptive_window("entropy", 64, 8, 32, measured=measured, previous=16) == 8 + int(
        24 * measured / math.log(16)
    )
    refused(ValueError, ["strategy", "fast", "entropy_over_4"], libnorm.adaptive_window, "fast", 1)
    refused(ValueError, ["max_window"], libnorm.adaptive_window, "length", 1, 8, 7)
    for strategy in ("entropy", "entropy_over_4", "perplexity"):
        words = ["measured is missing", strategy.split("_")[0], "length"]
        refused(ValueError, words, libnorm.adaptive_window, strategy, 6, 2, 8)


def exact_attention(q, k, v, *, scale=None, soft_cap=None, sinks=None, alibi_slopes=None, mask=None, **options):
    """Attention written in PyTorch; a bool mask selects, another is added."""
    import torch

    (batch, heads, queries, size), keys = q.shape, k.shape[2]
    k, v = (x.repeat_interleave(heads // x.shape[1], 1) for x in (k, v))
    score = (1 / math.sqrt(size) if scale is None else scale) * (q @ k.mT)
    if soft_cap:
        score = soft_cap * torch.tanh(score / soft_cap)
    lengths = [options.pop(name, None) for name in ("query_lengths", "key_lengths")]
    lengths = [[all] * batch if own is None else own.tolist() for own, all in zip(lengths, (queries, keys))]
    visible = torch.zeros(batch, heads, queries, keys, dtype=torch.bool)
    sink = torch.full((batch, heads, queries, 1), -math.inf, dtype=torch.float64)
    distance = (torch.arange(keys) - torch.arange(queries)[:, None]).repeat(batch, 1, 1, 1)
    for b, (own_queries, own_keys) in enumerate(zip(*lengths)):
        own = seen(own_queries, own_keys, **options)
        visible[b, :, :own_queries, :own_keys] = torch.from_numpy(own)
        if options.get("causal") == "bottom_right":
            distance[b] -= own_keys - own_queries
        if sinks is not None:
            sink[b, :, :own_queries] = sinks[:, None, None]
    if alibi_slopes is not None:
        score = score + alibi_slopes.double()[:, None, None] * distance
    if mask is not None and mask.dtype in (torch.bool, torch.uint8):
        visible &= mask.bool()
    elif mask is not None:
        score = score + mask
    score = torch.cat([score.masked_fill(~visible, -math.inf), sink], -1)
    # Rows that see nothing have weights of 0.
    weights = torch.softmax(score.masked_fill((score == -math.inf).all(-1, True), 0), -1)
    return (weights[..., :-1] * visible) @ v


def is_pytorch(*names):
    """Whether PyTorch is installed, with these functions of torch.nn.functional."""
    if not importlib.util.find_spec("torch"):
        return False
    import torch

    return all(hasattr(torch.nn.functional, name) for name in names)


needs_torch = pytest.mark.skipif(not is_pytorch(), reason="PyTorch is not installed")


def check_against_autograd(dtype="float32", groups=G, **options):
    """The gradients of q, k, v, sinks and mask that PyTorch computes in f64 from the same numbers."""
    import torch

    arrays = tensors()
    # Groups of heads; the numbers of the usual ones are repeated, or some are left out.
    arrays[1:3] = (x[:, np.arange(groups) % G] for x in arrays[1:3])
    q, k, v, dy = (torch.from_numpy(np.ascontiguousarray(x)).to(getattr(torch, dtype)) for x in arrays)
    options = {name: torch.from_numpy(x) if isinstance(x, np.ndarray) else x for name, x in options.items()}
    mask = options.get("mask")
    # PyTorch lends bool from 2.0 on.
    if mask is not None and mask.dtype == torch.bool and torch.__version__ < "2":
        options["mask"] = mask = mask.byte()
    adds = mask is not None and mask.is_floating_point()
    inputs = {"q": q, "k": k, "v": v}
    if "sinks" in options:
        inputs["sinks"] = options["sinks"]
    if adds:
        inputs["mask"] = mask
    exact = {name: x.double().requires_grad_() for name, x in inputs.items()}
    expected = exact_attention(**{**options, **exact})
    wanted = torch.autograd.grad(expected, list(exact.values()), dy.double())
    dst, lse = libnorm.attention(q, k, v, return_lse=True, **options)
    own = libnorm.attention_backward(dy, q, k, v, dst, lse, return_diff_mask=adds, **options)
    assert all(type(x) is torch.Tensor for x in (dst, *own)) and len(own) == len(inputs)
    near(dst.double().numpy(), expected.detach().numpy(), ALLOWED[dtype])
    for actual, wanted, x in zip(own, wanted, inputs.values()):
        assert actual.dtype == x.dtype
        allowed = max(ALLOWED[dtype], ALLOWED[str(x.dtype).split(".")[1]])
        near(actual.double().numpy(), wanted.numpy(), 16 * allowed)


@pytest.mark.torch
@needs_torch
@pytest.mark.parametrize("dtype", ALLOWED)
@pytest.mark.parametrize("name", ["plain", "causal", *OPTIONS])
def test_against_autograd(dtype, name):
    """Each option alone, with two heads of queries in a group."""
    check_against_autograd(dtype, **{"plain": {}, "causal": {"causal": "top_left"}, **OPTIONS}[name])


def pairs():
    """The names of options that can be combined, as pairs."""

    def fit(first, second):
        both = OPTIONS[first].keys() & OPTIONS[second].keys()
        return not both or both == {"causal"} and OPTIONS[first]["causal"] == OPTIONS[second]["causal"]

    return [f"{first}-{second}" for first, second in itertools.combinations(OPTIONS, 2) if fit(first, second)]


@pytest.mark.torch
@needs_torch
@pytest.mark.parametrize("names", pairs())
def test_pairs_of_options_against_autograd(names):
    first, second = names.split("-")
    check_against_autograd(**{**OPTIONS[first], **OPTIONS[second]})


@pytest.mark.torch
@needs_torch
@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("name", OPTIONS)
def test_groups_against_autograd(groups, name):
    """Heads of queries that share keys and values: all of them, two, none."""
    check_against_autograd(groups=groups, **OPTIONS[name])


@pytest.mark.torch
@needs_torch
def test_every_option_against_autograd():
    names = ("soft_cap", "sinks", "alibi", "added", "lengths", "first_keys")
    check_against_autograd(**{key: value for name in names for key, value in OPTIONS[name].items()})


@pytest.mark.torch
@pytest.mark.skipif(
    not is_pytorch("scaled_dot_product_attention"), reason="PyTorch is not installed, or before 2.5"
)
def test_the_example_trains_as_pytorch_does():
    import pathlib
    import runpy

    example = runpy.run_path(str(pathlib.Path(__file__).parent.parent / "examples" / "torch_attention.py"))
    ours, theirs = (example["train"](example[name], steps=30) for name in ("attention", "torch_attention"))
    # The losses of the first steps differ only by rounding, which Adam amplifies.
    assert np.allclose(ours, theirs, rtol=1e-3)
    assert ours[-1] < 0.9 * ours[0]
