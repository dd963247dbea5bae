"""The KV cache: the same bits as attention on plain arrays; forks, full pools, rings, threads, errors."""

import threading

import ml_dtypes
import numpy as np
import pytest
from minimal import Array
from test_attention import ALLOWED, Expected, near, numbers
from test_errors import refused

import libnorm

H, G, D, E, TOKENS = 4, 2, 16, 24, 150
WINDOW = ("before_self", 29, 3)


def story(dtype="float32", seed=0):
    """q, k and v of one sequence."""
    shapes = (1, H, TOKENS, D), (1, G, TOKENS, D), (1, G, TOKENS, E)
    return [numbers(shape, dtype, seed + i) for i, shape in enumerate(shapes)]


def cache(kind="paged", **options):
    if kind == "ring":
        options.setdefault("window", WINDOW)
    options = {"tokens": TOKENS, "heads": G, "key_size": D, "value_size": E, **options}
    return libnorm.KvCache(kind, **options)


def same(a, b):
    return np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.mark.parametrize("kind", ["contiguous", "paged", "ring"])
@pytest.mark.parametrize("dtype", ALLOWED)
def test_bits_of_plain_arrays(kind, dtype):
    q, k, v = story(dtype)
    window = WINDOW if kind == "ring" else None
    expected = libnorm.attention(q, k, v, causal="bottom_right", window=window, return_lse=True)
    near(expected[0], Expected(q, k, v, causal="bottom_right", window=window).dst, ALLOWED[dtype])
    own = cache(kind, layers=2, step_tokens=64, dtype=dtype)
    sequence = own.new_sequence()
    known = 0
    for count in (1, 7, 64, 1, 5, 60):
        part = slice(known, known + count)
        own.extend([sequence], [count])
        for layer in (1, 0):
            own.write(k[:, :, part], v[:, :, part], layer)
            dst, lse = own.attend(q[:, :, part], [sequence], layer, return_lse=True)
            assert same(dst, expected[0][:, :, part]) and same(lse, expected[1][:, :, part])
        known += count
    assert own.length(sequence) == known == 138
    own.truncate(sequence, 133)
    own.extend(sequence, 8)
    own.write(k[:, :, 133:141], v[:, :, 133:141])
    assert same(own.attend(q[:, :, 133:141], sequence), expected[0][:, :, 133:141])
    stats = own.stats()
    assert stats["sequences"] == 1 and stats["copied_pages"] == 0
    if kind == "ring":
        assert stats["pages"] < -(-TOKENS // 16)


def test_several_sequences():
    """Padded with different lengths, packed, and next to empty places."""
    stories = [story(seed=10 * i) for i in range(3)]
    expected = [libnorm.attention(*own, causal="bottom_right") for own in stories]
    own = cache(sequences=4, page_size=8)
    sequences = [own.new_sequence() for _ in stories]
    tokens, known = [5, 2, 9], [0, 0, 0]
    for packed in (False, True, False):
        parts = [slice(at, at + count) for at, count in zip(known, tokens)]
        own.extend(sequences, tokens, packed=packed)
        if packed:
            q, k, v = (np.concatenate([x[:, :, at] for x, at in zip(xs, parts)], 2) for xs in zip(*stories))
            own.write(k, v)
            offsets = np.cumsum([0, *tokens], dtype=np.int32)
            dst = own.attend(q, sequences, query_offsets=offsets)
            for b, part in enumerate(parts):
                assert same(dst[:, :, offsets[b] : offsets[b + 1]], expected[b][:, :, part])
        else:
            q, k, v = (np.full((3, x.shape[1], 9, x.shape[3]), np.nan, np.float32) for x in stories[0])
            for to, xs in zip((q, k, v), zip(*stories)):
                for b, part in enumerate(parts):
                    to[b, :, : tokens[b]] = xs[b][0, :, part]
            own.write(k, v)
            dst = own.attend(q, sequences, query_lengths=np.array(tokens, np.int32))
            for b, part in enumerate(parts):
                assert same(dst[b, :, : tokens[b]], expected[b][0, :, part])
                assert not dst[b, :, tokens[b] :].any()
        known = [at + count for at, count in zip(known, tokens)]
    q = np.concatenate([x[0][:, :, at - 1 : at] for x, at in zip(stories, known)], 0)
    dst = own.attend(q[[2, 0, 0]], [sequences[2], None, sequences[0]])
    assert same(dst[[0, 2]], np.stack([expected[b][0, :, known[b] - 1 : known[b]] for b in (2, 0)]))
    assert not dst[1].any()
    own.extend([None, sequences[1]], 1)
    assert [own.length(x) for x in sequences] == [known[0], known[1] + 1, known[2]]


def test_options_and_out():
    q, k, v = story()
    own = cache()
    sequence = own.new_sequence()
    own.extend(sequence, TOKENS)
    own.write(k, None)
    own.write(None, v)
    slopes = np.array([0.5, 0.25, 0.125, 0.0625], np.float32)
    options = {"scale": 0.5, "soft_cap": 0.75, "sinks": slopes, "alibi_slopes": slopes, "window": ("with_self", 9)}
    options["return_entropy"] = True
    expected = libnorm.attention(q, k, v, causal="bottom_right", **options)
    assert all(same(a, b) for a, b in zip(own.attend(q, sequence, **options), expected))
    assert same(own.attend(q, sequence, causal=False), libnorm.attention(q, k, v))
    out = np.empty((1, H, TOKENS, E), ml_dtypes.bfloat16)
    assert own.attend(q, sequence, out=out) is out
    assert same(out, libnorm.attention(q, k, v, causal="bottom_right").astype(ml_dtypes.bfloat16))
    lent = own.attend(Array(q), sequence)
    assert type(lent) is Array and same(lent.array, libnorm.attention(q, k, v, causal="bottom_right"))


def test_conversion():
    """Keys and values are rounded to the type of the cache."""
    q, k, v = story()
    own = cache(dtype=ml_dtypes.bfloat16)
    sequence = own.new_sequence()
    own.extend(sequence, TOKENS)
    own.write(np.asfortranarray(k), v.astype(np.float16))
    narrow = [x.astype(ml_dtypes.bfloat16) for x in (q, k, v.astype(np.float16))]
    assert same(own.attend(narrow[0], sequence), libnorm.attention(*narrow, causal="bottom_right"))
    refused(TypeError, ["q", "float32", "bfloat16"], own.attend, q, sequence)


def test_a_fork_copies_one_page():
    q, k, v = story()
    expected = libnorm.attention(q, k, v, causal="bottom_right")
    own = cache(sequences=8, page_size=16)
    first = own.new_sequence()
    own.extend(first, 40)
    own.write(k[:, :, :40], v[:, :, :40])
    beams = [first, *(own.fork(first) for _ in range(7))]
    stats = own.stats()
    assert (stats["used_pages"], stats["shared_pages"], stats["copied_pages"]) == (3, 3, 0)
    for copied, beam in enumerate(beams[1:], 1):
        own.extend(beam, 2)
        assert own.stats()["copied_pages"] == copied
        own.write(k[:, :, 40:42], v[:, :, 40:42])
        assert same(own.attend(q[:, :, 40:42], beam), expected[:, :, 40:42])
    for beam in beams[1:]:
        own.drop(beam)
    assert own.stats()["shared_pages"] == 0 and own.stats()["sequences"] == 1
    assert same(own.attend(q[:, :, 39:40], first), expected[:, :, 39:40])


def test_a_full_cache_changes_nothing():
    q, k, v = story()
    own = cache(sequences=2, page_size=16, pages=3)
    first = own.new_sequence()
    own.extend(first, 30)
    before = own.stats()
    with pytest.raises(MemoryError, match="1 of the 3"):
        own.extend(first, 30)
    assert own.stats() == before and own.length(first) == 30
    own.write(k[:, :, :30], v[:, :, :30])
    expected = libnorm.attention(*(x[:, :, :30] for x in (q, k, v)), causal="bottom_right")
    assert same(own.attend(q[:, :, :30], first), expected)
    second = own.new_sequence()
    with pytest.raises(MemoryError, match="sequence"):
        own.fork(first)
    own.drop(first)
    own.extend(second, 48)
    assert own.stats()["used_pages"] == 3


def test_errors_say_which_limit_to_raise():
    sizes = {"tokens": 8, "heads": 1, "key_size": 2}
    own = libnorm.KvCache("paged", **sizes)
    first = own.new_sequence()
    x = np.ones((1, 1, 3, 2), np.float32)
    own.extend(first, 3)
    for call in (own.new_sequence, lambda: own.fork(first)):
        refused(MemoryError, ["are taken, 1", "drop a sequence", "create the cache with sequences=2"], call)
    refused(ValueError, ["no sequence 9"], own.fork, 9)
    refused(ValueError, [f"tokens is 6 for sequence {first}", "has 3 of at most 8", "tokens=9"], own.extend, first, 6)
    refused(ValueError, ["tokens is 8", "tokens=11"], own.extend, [first], [8])
    rows = x[0].swapaxes(0, 1)
    for call in (
        lambda: own.write(x, x, 1),
        lambda: own.write_rope(rows, 1, [1.0], pairing="interleaved"),
        lambda: own.attend(x, first, 1),
    ):
        words = ["layer is 1", "count from 0", "layers=1: pass 0, or create it with layers=2"]
        refused(ValueError, words, call)
    deep = libnorm.KvCache("paged", layers=3, **sizes)
    deep.extend(deep.new_sequence(), 3)
    refused(ValueError, ["k and v are both None", "values or both"], deep.write, None, None)
    refused(ValueError, ["layer is 3", "pass 0 to 2"], deep.write, x, x, 3)
    tight = libnorm.KvCache("paged", pages=1, page_size=4, **sizes)
    refused(MemoryError, ["2 free pages", "more pages"], tight.extend, tight.new_sequence(), 8)
    words = ["heads is missing", 'such as KvCache("paged", tokens=4096']
    refused(TypeError, words, libnorm.KvCache, "paged", tokens=8, key_size=2)
    refused(TypeError, ["kind is missing"], libnorm.KvCache, **sizes)
    refused(TypeError, ["only kind is passed without a name", "tokens="], libnorm.KvCache, "paged", 8, 1, 2)


def test_threads_wait_for_each_other():
    q, k, v = story()
    expected = libnorm.attention(q, k, v, causal="bottom_right")
    own = cache(sequences=3)
    errors = []

    def work():
        try:
            sequence = own.new_sequence()
            for _ in range(10):
                # Without the lock, other threads could end the step between these calls.
                with lock:
                    own.extend(sequence, 15)
                    at = own.length(sequence)
                    own.write(k[:, :, at - 15 : at], v[:, :, at - 15 : at])
                assert same(own.attend(q[:, :, at - 15 : at], sequence), expected[:, :, at - 15 : at])
        except BaseException as error:
            errors.append(error)

    lock = threading.Lock()
    threads = [threading.Thread(target=work) for _ in range(3)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not errors


def test_errors():
    q, k, v = story()
    sizes = {"tokens": 8, "heads": 1, "key_size": 2}
    small = libnorm.KvCache("paged", **sizes)
    refused(ValueError, ["sequences has 2 entries", "create it with sequences=2"], small.extend, [0, 1], 1)
    refused(ValueError, ["sequences has 3 entries", "sequences=3"], small.attend, q, [0, 1, 2])
    refused(ValueError, ["kind", "round", "contiguous, paged, ring"], libnorm.KvCache, "round", **sizes)
    refused(ValueError, ["heads: 0"], libnorm.KvCache, "paged", **{**sizes, "heads": 0})
    refused(ValueError, ["page_size"], libnorm.KvCache, "contiguous", page_size=4, **sizes)
    refused(ValueError, ["window", "ring"], libnorm.KvCache, "ring", **sizes)
    refused(ValueError, ["window", "ring"], libnorm.KvCache, "paged", window=WINDOW, **sizes)
    refused(ValueError, ["dtype", "float64", "bfloat16"], libnorm.KvCache, "paged", dtype=np.float64, **sizes)
    assert libnorm.KvCache("paged", dtype=np.dtype("float16"), **sizes).stats()["page_bytes"] == 16 * 4 * 2
    own = cache(sequences=2, step_tokens=20)
    sequence = own.new_sequence()
    refused(ValueError, ["sequence", "9"], own.length, 9)
    refused(ValueError, ["sequence", "9"], own.fork, 9)
    refused(ValueError, ["length"], own.truncate, sequence, 1)
    refused(TypeError, ["sequences", "list"], own.extend, "all", 1)
    refused(TypeError, ["tokens", "list"], own.extend, sequence, -1)
    refused(ValueError, ["tokens has 2 entries", "1"], own.extend, [sequence], [1, 1])
    refused(ValueError, ["21", "20"], own.extend, sequence, 21)
    refused(ValueError, ["no step is open"], own.write, k[:, :, :1], v[:, :, :1])
    own.extend(sequence, 3)
    refused(ValueError, ["k: ", "3 or more"], own.write, k[:, :, :2], v[:, :, :2])
    refused(ValueError, ["v: ", "3 or more"], own.write, k[:, :, :3], v[:, :, :2])
    refused(ValueError, ["k", "four dimensions"], own.write, k[0], v)
    refused(TypeError, ["k", "int8"], own.write, k.astype(np.int8), v)
    refused(ValueError, ["layer", "1"], own.write, k[:, :, :3], v[:, :, :3], 1)
    own.write(k[:, :, :3], v[:, :, :3])
    one = q[:, :, :1]
    refused(ValueError, ["layer", "1"], own.attend, one, sequence, 1)
    refused(ValueError, ["sequences has 2 entries", "q has 1"], own.attend, one, [sequence, sequence])
    refused(ValueError, ["sequence", "9"], own.attend, one, 9)
    refused(ValueError, ["q", "(1, 4, 1, 8)", "(1, 4, 1, 16)"], own.attend, one[..., :8], sequence)
    refused(ValueError, ["q has 3 heads", "multiple"], own.attend, one[:, :3], sequence)
    refused(ValueError, ["causal", "left"], own.attend, one, sequence, causal="left")
    own.drop(sequence)
    refused(ValueError, ["sequence"], own.drop, sequence)
    ring = cache("ring", step_tokens=20)
    sequence = ring.new_sequence()
    refused(ValueError, ["causal", "ring"], ring.attend, one, sequence, causal=False)
    for window in (("with_self", 31), ("before_self", 29, 4)):
        refused(ValueError, ["window", "wider", "ring"], ring.attend, one, sequence, window=window)
    assert not ring.attend(one, sequence, window=("with_self", 30, 3)).any()


def own_dtype(dtype):
    return np.dtype(np.int8 if dtype == "int8" else dtype)


def quantized(x, dtype):
    """The elements and the scale of each token and head, in f32."""
    scale = np.abs(x).max(-1, keepdims=True) / np.float32(127 if dtype == np.int8 else 448)
    elements = x * (np.float32(1) / scale)
    return (np.rint(elements) if dtype == np.int8 else elements).astype(dtype), scale


@pytest.mark.parametrize(("dtype", "allowed"), [("int8", 0.03), (ml_dtypes.float8_e4m3fn, 0.15)])
def test_quantized_caches(dtype, allowed):
    """Close to plain arrays; a fork has the bits of its origin."""
    own = cache(dtype=dtype, sequences=2, layers=2)
    q, k, v = story()
    expected = libnorm.attention(q, k, v, causal="bottom_right")
    first = own.new_sequence()
    parts = [slice(0, 50), slice(50, 57)]
    own.extend(first, 50)
    own.write(k[:, :, parts[0]], v[:, :, parts[0]], 1)
    dst = [own.attend(q[:, :, parts[0]], first, 1)]
    second = own.fork(first)
    for sequence in (first, second):
        own.extend(sequence, 7)
        own.write(k[:, :, parts[1]], v[:, :, parts[1]], 1)
        dst.append(own.attend(q[:, :, parts[1]], sequence, 1))
    assert same(dst[1], dst[2])
    near(np.concatenate(dst[:2], 2), expected[:, :, :57].astype(np.float64), allowed)
    # Dynamic scales for each token and head follow the same rule on plain arrays, with the same bits.
    of_k, of_v = (quantized(x[:, :, :57], own_dtype(dtype)) for x in (k, v))
    scales = {"key_scales": of_k[1], "value_scales": of_v[1], "causal": "bottom_right"}
    plain = libnorm.attention(q[:, :, :57], of_k[0], of_v[0], **scales)
    assert same(np.concatenate(dst[:2], 2), plain)
    # Queries of another type.
    narrow = own.attend(q[:, :, parts[1]].astype(ml_dtypes.bfloat16), first, 1)
    near(narrow, expected[:, :, parts[1]].astype(np.float64), allowed + 0.03)


@pytest.mark.parametrize("kind", ["contiguous", "paged", "ring"])
@pytest.mark.parametrize("dtype", ALLOWED)
def test_masks(kind, dtype):
    """Masks with a key for each token, with a key for each place in the cache, and shared ones."""
    q, k, v = story(dtype)
    window = WINDOW if kind == "ring" else None
    own = cache(kind, step_tokens=70, dtype=dtype)
    sequence = own.new_sequence()
    random = np.random.default_rng(5)
    added = random.uniform(-3, 3, (1, H, TOKENS, TOKENS)).astype(np.float32)
    added[random.random(added.shape) < 0.2] = -np.inf
    options = {"causal": "bottom_right", "window": window}
    for part in (slice(0, 64), slice(64, 65), slice(65, 130), slice(130, 150)):
        count, known = part.stop - part.start, part.stop
        own.extend(sequence, count)
        own.write(k[:, :, part], v[:, :, part])
        keys = [x[:, :, :known] for x in (k, v)]
        for mask in (
            added[:, :, part, :known],
            added[0, :1, part, :known].astype(np.float16),
            added[:, :, part, :known] > 0,
            np.asfortranarray(added[:, :1, :1, :known]),
            added[:, :, part, :1],
        ):
            if mask.dtype == np.float32:
                mask = np.where(np.isneginf(mask) & (mask.shape[-1] == 1), 0, mask).astype(np.float32)
            expected = libnorm.attention(q[:, :, part], *keys, mask=mask, **options)
            assert same(own.attend(q[:, :, part], sequence, mask=mask), expected)
            if mask.shape[-1] > 1:
                # Elements beyond the tokens have no effect.
                more = np.concatenate([mask, np.ones((*mask.shape[:-1], 20), mask.dtype)], -1)[..., :TOKENS]
                assert same(own.attend(q[:, :, part], sequence, mask=more), expected)
    second = own if kind == "ring" else cache(kind, sequences=2, dtype=dtype)
    if kind == "ring":
        return
    pair = [second.new_sequence(), second.new_sequence()]
    second.extend(pair, [9, 20], packed=True)
    second.write(*(np.concatenate([x[:, :, :9], x[:, :, :20]], 2) for x in (k, v)))
    mask = np.concatenate([added[:, :, 8:9, :20], added[:, :, 19:20, :20]])
    dst = second.attend(np.concatenate([q[:, :, 8:9], q[:, :, 19:20]]), pair, mask=mask)
    for b, known in enumerate((9, 20)):
        keys = [x[:, :, :known] for x in (k, v)]
        one = slice(known - 1, known)
        alone = libnorm.attention(q[:, :, one], *keys, mask=mask[b : b + 1, ..., :known], causal="bottom_right")
        assert same(dst[b : b + 1], alone)


def test_errors_of_masks():
    q, k, v = story()
    own = cache(sequences=2)
    sequence = own.new_sequence()
    own.extend(sequence, 9)
    own.write(k[:, :, :9], v[:, :, :9])
    one = q[:, :, :1]
    for keys in (8, 161):
        refused(ValueError, ["mask", "9 tokens", "160"], own.attend, one, sequence, mask=np.zeros((1, keys), np.float32))
    refused(ValueError, ["mask", "(2, 9)"], own.attend, one, sequence, mask=np.zeros((2, 9), np.float32))
    refused(TypeError, ["mask", "int32"], own.attend, one, sequence, mask=np.zeros((1, 9), np.int32))
    offsets = np.array([0, 1], np.int32)
    refused(
        ValueError, ["query_offsets", "mask"], own.attend, one, sequence, mask=np.zeros((1, 9), bool), query_offsets=offsets
    )


@pytest.mark.parametrize("kind", ["contiguous", "paged", "ring"])
@pytest.mark.parametrize("dtype", ALLOWED)
def test_rope_writes_keys(kind, dtype):
    """The same bits as rope followed by write."""
    q, k, v = story(dtype)
    frequencies, magnitude = libnorm.rope_frequencies(12, scaling="yarn", parameters=[4, 64])
    options = {"frequencies": np.array(frequencies), "magnitude": magnitude, "pairing": "half_split", "rotary_dims": 12}
    own, other = (cache(kind, layers=2, step_tokens=64, dtype=dtype) for _ in range(2))
    sequence, twin = own.new_sequence(), other.new_sequence()
    known = 0
    for count in (1, 7, 64, 5):
        part = slice(known, known + count)
        positions = np.arange(known, known + count, dtype=np.int32)[:, None]
        rows = np.ascontiguousarray(k[0, :, part].swapaxes(0, 1))
        own.extend(sequence, count)
        other.extend(twin, count)
        for layer in range(2):
            rotated = libnorm.rope(rows, positions, **options)
            other.write(rotated.swapaxes(0, 1)[None], v[:, :, part], layer)
            own.write_rope(rows, layer, **options)
            own.write(None, v[:, :, part], layer)
            assert same(own.attend(q[:, :, part], sequence, layer), other.attend(q[:, :, part], twin, layer))
        known += count


def test_rope_of_several_sequences():
    """Padded and packed steps, tables, and positions that differ."""
    stories = [story(seed=10 * i) for i in range(2)]
    frequencies = np.array(libnorm.rope_frequencies(D)[0])
    angles = np.arange(TOKENS)[:, None] * frequencies
    tables = {"cos": np.cos(angles).astype(np.float32), "sin": np.sin(angles).astype(np.float32)}
    own, other = (cache(sequences=2, page_size=8) for _ in range(2))
    sequences, twins = ([x.new_sequence(), x.new_sequence()] for x in (own, other))
    known = [0, 0]
    for tokens, packed, given in [((5, 2), False, tables), ((3, 9), True, tables), ((1, 1), True, {"frequencies": frequencies})]:
        parts = [slice(at, at + count) for at, count in zip(known, tokens)]
        rows = [np.ascontiguousarray(x[1][0, :, at].swapaxes(0, 1)) for x, at in zip(stories, parts)]
        room = 0 if packed else max(tokens)
        padded = [np.pad(x, ((0, max(room - len(x), 0)), (0, 0), (0, 0)), constant_values=np.nan) for x in rows]
        own.extend(sequences, tokens, packed=packed)
        own.write_rope(np.concatenate(padded), pairing="interleaved", **given)
        with pytest.raises(ValueError, match="has no values of the open step"):
            own.attend(stories[0][0][:, :, :1], sequences[0])
        own.write(None, np.zeros((1, G, sum(tokens), E) if packed else (2, G, room, E), np.float32))
        other.extend(twins, tokens, packed=True)
        positions = np.concatenate([np.arange(at.start, at.stop) for at in parts])[:, None]
        rotated = libnorm.rope(np.concatenate(rows), positions, pairing="interleaved", **given)
        other.write(rotated.swapaxes(0, 1)[None], np.zeros((1, G, len(rotated), E), np.float32))
        known = [at + count for at, count in zip(known, tokens)]
    for b, count in enumerate(known):
        q = stories[b][0][:, :, count - 1 : count]
        # Values are zeros: log-sum-exp shows differences in keys.
        a = own.attend(q, sequences[b], return_lse=True)[1]
        assert same(a, other.attend(q, twins[b], return_lse=True)[1]) and np.isfinite(a).all()


def test_errors_of_rope():
    own = cache(sequences=2, step_tokens=20)
    rows = np.zeros((3, G, D), np.float32)
    given = {"frequencies": np.zeros(D // 2), "pairing": "interleaved"}
    sequence = own.new_sequence()
    refused(ValueError, ["no step is open"], own.write_rope, rows, **given)
    own.extend(sequence, 3)
    own.write_rope(rows, **given)
    refused(ValueError, ["k has 2 rows", "3"], own.write_rope, rows[:2], **given)
    refused(ValueError, ["k has 21 rows", "20"], own.write_rope, np.zeros((21, G, D), np.float32), **given)
    refused(ValueError, ["k", "(3, 3, 16)"], own.write_rope, np.zeros((3, 3, D), np.float32), **given)
    refused(ValueError, ["k", "tokens, heads"], own.write_rope, rows[None], **given)
    refused(TypeError, ["k", "int8"], own.write_rope, rows.astype(np.int8), **given)
    refused(ValueError, ["angles"], own.write_rope, rows, pairing="interleaved")
    refused(ValueError, ["pairing", "round"], own.write_rope, rows, **{**given, "pairing": "round"})
    refused(ValueError, ["layer", "1"], own.write_rope, rows, 1, **given)
    own.truncate(sequence, 2)
    refused(ValueError, ["no step is open"], own.write_rope, rows, **given)
    quantized = cache(dtype="int8")
    quantized.extend(quantized.new_sequence(), 3)
    refused(NotImplementedError, ["rope"], quantized.write_rope, rows, **given)
