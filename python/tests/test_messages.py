"""What messages say to pass: the list of the argument, an array for the result, the right range."""

import numpy as np
import pytest
from test_errors import COLS, ROWS, X, refused

import libnorm
import minimal

HEADS = np.ones((1, 2, 3, 4), np.float32)
TOKENS, POSITIONS = np.ones((3, 2, 8), np.float32), np.zeros((3, 1), np.int32)
FREQUENCIES = libnorm.rope_frequencies(8)[0]
CACHE = libnorm.KvCache("paged", tokens=4, heads=2, key_size=8)
AFTER = "and read the result from it after the call"


def attend(**options):
    return libnorm.attention(HEADS, options.pop("k", HEADS), HEADS, **options)


def rope(x=TOKENS, positions=POSITIONS, frequencies=FREQUENCIES, pairing="half_split", **options):
    return libnorm.rope(x, positions, frequencies, pairing=pairing, **options)


@pytest.mark.parametrize("dtype", ["int16", "uint16", "uint32", "uint64", "bool"])
@pytest.mark.parametrize("wrap", [np.asarray, minimal.Array])
def test_the_list_is_that_of_the_argument(dtype, wrap):
    floats = "float32, bfloat16 or float16"

    def check(name, types, function, *arguments, **options):
        words = [f"{name} has elements of {'bool8' if dtype == 'bool' and wrap is not np.asarray else dtype}: ", types]
        refused(TypeError, words, function, *arguments, **options)

    def array(*shape):
        return wrap(np.zeros(shape, dtype))

    check("positions", "convert them to int32 or int64", rope, positions=array(3, 1))
    for name in ("key_lengths", "query_lengths", "key_offsets", "page_table"):
        shape = (1, 3) if name == "page_table" else (2,) if name == "key_offsets" else (1,)
        check(name, "convert them to int32", attend, **{name: array(*shape)})
    check("sinks", "convert them to float32", attend, sinks=array(2))
    check("k", f"convert them to {floats.replace(' or', ',')}, int8 or float8_e4m3fn", attend, k=array(1, 2, 3, 4))
    check("cos", f"convert them to {floats}", rope, frequencies=None, cos=array(3, 4), sin=array(3, 4))
    check("frequencies", "convert them to float64", rope, frequencies=array(4))
    check("scale", f"convert them to {floats}", libnorm.rms_norm, X, array(8))
    check("variance", "convert them to float32", libnorm.rms_norm, X, variance=array(3, 5))
    check("residual", f"convert them to {floats}", libnorm.add_rms_norm, X, array(3, 5, 8))
    words = f"pass an array of int8, uint8, float8_e4m3fn or float8_e5m2, {AFTER}"
    check("out", words, libnorm.rms_norm_quantized, X, out=array(3, 5, 8))
    if dtype != "bool":
        check("mask", "or bool or uint8, where False and 0 hide a key", attend, mask=array(3, 3))


def test_integers_of_64_bits_under_another_name():
    rope(positions=POSITIONS.astype(np.longlong))


def test_outputs_are_not_copied():
    out = X.copy()
    words = ["out runs backwards", "numpy.empty(shape, dtype)", AFTER]
    refused(ValueError, words, libnorm.layer_norm, X, out=out[::-1])
    refused(TypeError, ["out has elements of int32: pass an array of float32", AFTER], libnorm.layer_norm, X,
            out=X.astype(np.int32))
    swapped = X.astype(X.dtype.newbyteorder())
    refused(ValueError, ["out has", "byte order", "pass a new array", AFTER], libnorm.layer_norm, X, out=swapped)
    shifted = np.zeros(X.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(X.shape)
    refused(ValueError, ["out is not aligned", "pass a new array", AFTER], libnorm.layer_norm, X, out=shifted)
    masked = np.ma.masked_array(X.copy())
    refused(TypeError, ["out", "mask", "pass an array without one", AFTER], libnorm.layer_norm, X, out=masked)
    fixed = X.copy()
    fixed.flags.writeable = False
    words = ["out is read-only: pass a writable array", AFTER]
    refused(ValueError, words, libnorm.layer_norm, X, out=fixed)
    refused(ValueError, words, libnorm.layer_norm, X, out=minimal.Array(fixed))
    out = (None, np.empty(16, np.float32)[::2], None)
    refused(ValueError, ["out[1] is not contiguous", AFTER], libnorm.rms_norm_backward, X, X, ROWS, COLS, out=out)
    out = (None, ROWS.copy(), np.ones((3, 10), np.float32)[:, ::2])
    words = ["out[1] and out[2] have different strides", AFTER]
    refused(ValueError, words, libnorm.layer_norm_training, X, out=out)
    sparse = np.zeros((4,) * 6, np.float32)[:, :3, :2, :3, :2, :]
    words = ["5 dimensions of rows", AFTER]
    refused(ValueError, words, libnorm.layer_norm, np.ones(sparse.shape, np.float32), out=sparse)
    out = (None, COLS.copy(), COLS.astype(np.float16))
    words = ["out[2] has elements of float16, but out[1] of float32: pass an array of float32", AFTER]
    refused(TypeError, words, libnorm.rms_norm_backward, X, X, ROWS, COLS, COLS, out=out)
    abroad = minimal.Array(X.copy(), device=(2, 0))
    words = ["out is on a CUDA device", "pass an array on the CPU, and copy the result from it"]
    refused(ValueError, words, libnorm.layer_norm, X, out=abroad)


def test_a_class_without_setitem():
    words = ["out has no __setitem__, so it counts as immutable: give its class that method"]
    refused(ValueError, words, libnorm.layer_norm, X, out=minimal.Immutable(X.copy()))


def test_rotary_dims():
    odd = np.ones((3, 2, 15), np.float32)
    words = ["the last dimension of src is 15, odd: pass an even rotary_dims, 2 to 14"]
    refused(ValueError, words, rope, odd)
    refused(ValueError, [words[0].replace("src", "diff_dst")], libnorm.rope_backward, odd, POSITIONS, FREQUENCIES,
            pairing="interleaved")
    for given in (0, 3, 10):
        words = [f"rotary_dims is {given}, but the last dimension of src is 8: pass an even number, 2 to 8"]
        refused(ValueError, words, rope, rotary_dims=given)
    words = ['pairing is "half_split_of_head", but the last dimension of src is 15: pass heads of an even number']
    refused(ValueError, words, rope, odd, pairing="half_split_of_head", rotary_dims=4)
    refused(ValueError, ["the last dimension of src is 1: pass heads of 2"], rope, np.ones((3, 2, 1), np.float32))
    # With an even number, heads of any size are rotated.
    rope(odd, frequencies=FREQUENCIES[:2], rotary_dims=4)


def test_positions_and_tables():
    words = ["positions has the shape (4, 1), but src has (3, 2, 8): pass the dimensions of src without the last"]
    refused(ValueError, words, rope, positions=np.zeros((4, 1), np.int32))
    full = np.ones((8, 8), np.float32)

    def tables(cos, sin=None, **options):
        return rope(frequencies=None, cos=cos, sin=cos if sin is None else sin, **options)

    words = ["cos has the shape (8, 8), but must have (positions, 4)", "pass cos[:, :4] and sin[:, :4]"]
    refused(ValueError, words, tables, full)
    tables(full[:, :4])
    words = ["cos has the shape (1, 8, 8)", "pass cos[0, :, :4] and sin[0, :, :4]"]
    refused(ValueError, words, tables, full[None])
    refused(ValueError, ["numpy.ascontiguousarray(cos[:, ::2])"], tables, full, pairing="interleaved")
    refused(ValueError, ["cos is not contiguous"], tables, full[:, ::2])
    refused(ValueError, ["cos and sin have different strides"], tables, full[:, :4], full[:, :4].copy())
    with pytest.raises(ValueError, match=r"one element for each pair$"):
        tables(full[:, :5])


def test_windows():
    refused(ValueError, ['window is (4, 0): pass ("before_self", 4)'], attend, window=(4, 0))
    refused(ValueError, ['window is (4, 0): pass ("before_self", 4)'], attend, window=[4, 0])
    refused(ValueError, ["window is (-1, -1): pass None"], attend, window=(-1, -1))
    refused(ValueError, ["window is (-1, 0): pass None, and causal"], attend, window=(-1, 0))
    refused(ValueError, ["window is (4, 4)", "no keys after a query's own"], attend, window=(4, 4))
    words = ['window[0] is "left": pass one of with_self, before_self; left is before_self']
    refused(ValueError, words, attend, window=("left", 4))
    for window in (("with_self", 0), ("with_self", -1), ("before_self", -1), ("with_self", 1, -1)):
        words = [f"window is {window}: pass a width of 1 or more", '0 or more after "before_self"']
        refused(ValueError, words, attend, window=window)


def test_ranges():
    refused(ValueError, ["partial is 9, but a row of src has 8 elements: pass 1 to 8"], libnorm.rms_norm, X, partial=9)
    words = ["partial is 2, but only RMS normalization has it", "rms_norm"]
    refused(ValueError, words, libnorm.layer_norm, X, partial=2)
    words = ["is 1e60, more than float32 can hold: pass at most 3.4e38"]
    refused(ValueError, ["epsilon " + words[0]], libnorm.rms_norm, X, epsilon=1e60)
    refused(ValueError, ["epsilon " + words[0]], libnorm.group_norm, X, 5, epsilon=1e60)
    refused(ValueError, ["alpha " + words[0]], libnorm.eltwise, X, "elu", 1e60)
    refused(ValueError, ["shift " + words[0]], libnorm.gated, X, X, shift=1e60)
    refused(ValueError, ["scale " + words[0]], attend, scale=1e60)
    refused(ValueError, ["magnitude " + words[0]], rope, magnitude=1e60)
    words = ["gating is given, but no gate: pass the array as gate or gate_input"]
    refused(ValueError, words, libnorm.rms_norm, X, COLS, gating="silu")
    assert libnorm.rms_norm(X, gate=None, gating="silu").tobytes() == libnorm.rms_norm(X).tobytes()


def test_caches_and_their_windows():
    sizes = {"tokens": 4, "heads": 1, "key_size": 4}
    words = ['window is missing, but a ring keeps the tokens of one: pass window=("with_self", W)']
    refused(ValueError, words, libnorm.KvCache, "ring", **sizes)
    words = ['window is for a ring: pass kind="ring", or leave window out']
    refused(ValueError, words, libnorm.KvCache, "paged", window=("with_self", 2), **sizes)


def test_queries_before_the_first_token_are_zeros():
    cache = libnorm.KvCache("paged", tokens=8, heads=2, key_size=4)
    sequence = cache.new_sequence()
    cache.extend(sequence, 2)
    cache.write(HEADS[:, :, :2], HEADS[:, :, :2])
    y = cache.attend(HEADS, sequence)
    assert not y[:, :, 0].any() and (y[:, :, 1:] == 1).all()
    assert "sees no key" in libnorm.KvCache.attend.__doc__


@pytest.mark.parametrize(
    ("function", "arguments", "words"),
    [
        (libnorm.rope, (TOKENS, POSITIONS), ['rope() needs pairing: "interleaved", ', "half_split_of_head"]),
        (libnorm.rms_norm_backward, (X, X), ["rms_norm_backward() needs variance: the array that rms_norm_"]),
        (libnorm.layer_norm_backward, (X, X), ["needs mean: the array that layer_", "; variance: the array"]),
        (libnorm.group_norm_backward, (X, X, 5), ["None with rms=True; variance: the array that group_norm_"]),
        (libnorm.attention_backward, (HEADS,) * 5, ["needs lse", "attention returns with return_lse=True"]),
        (libnorm.rms_norm_quantized, (X,), ["needs out", "int8, uint8, float8_e4m3fn or float8_e5m2"]),
        (libnorm.softmax_backward, (X,), ["needs dst: the result of the forward function"]),
        (libnorm.binary, (X, X), ['the name of a function, such as "add"']),
        (libnorm.gated_quantized, (X, X), ["needs out", "float8_e5m2, of the shape of the result"]),
        (libnorm.rope_permute, (X, 1), ["needs from_pairing: the pairing", "; to_pairing: the pairing that the result"]),
        (libnorm.rms_norm, (), ["rms_norm() needs src"]),
        (CACHE.extend, (0,), ["KvCache.extend() needs tokens"]),
        (CACHE.write_rope, (TOKENS,), ["KvCache.write_rope() needs pairing: "]),
    ],
)
def test_missing_arguments(function, arguments, words):
    refused(TypeError, words, function, *arguments)


def test_what_functions_do_not_have():
    refused(TypeError, ["temperature: there is none: divide src by it"], libnorm.softmax, X, temperature=2.0)
    words = ["src1 is a float: pass an array of the shape (1, 1, 1), such as numpy.full((1, 1, 1), 2.0, numpy.float32)"]
    refused(TypeError, words, libnorm.binary, X, 2.0, "add")
    refused(TypeError, ["src1 has elements of int64: convert them"], libnorm.binary, X, np.array([[[3]]]), "add")
    refused(TypeError, ["src0 is an int: pass an array of the shape (1,)"], libnorm.binary, 2, COLS, "mul")
    words = ["src1 is a float32: pass an array of the shape (1, 1, 1)"]
    refused(TypeError, words, libnorm.binary, X, X[0, 0, 0], "add")
    refused(TypeError, ["src0 is an int: pass an array that supports DLPack"], libnorm.binary, 2, 2, "mul")


def test_instruction_sets_of_this_machine():
    own = "neon" if libnorm.get_cpu_isa() == "neon" else "avx2"
    foreign = "avx2" if own == "neon" else "neon"
    with pytest.raises(NotImplementedError) as caught:
        libnorm.set_max_cpu_isa(foreign)
    said = str(caught.value)
    assert said.startswith(f'cpu_isa is "{foreign}"') and "another architecture" in said
    names = said.split("pass one of ")[1]
    assert names.startswith("portable, ") and names.endswith(", or None") and foreign not in names
