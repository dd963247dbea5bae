#!/usr/bin/env python3
"""Writes golden masks of dropout, those of oneDNN.

    python3.11 -m venv VENV
    VENV/bin/pip install onednn==2026.1.0
    LD_LIBRARY_PATH=VENV/lib OCL_ICD_FILENAMES=VENV/lib/libintelocl.so \\
        VENV/bin/python scripts/golden_dropout.py VENV/lib/libdnnl.so.3 tests/data/golden_dropout.txt

Written with onednn 2026.1.0, which is oneDNN 3.13. Eltwise linear (x -> x) of ones, 3 x 45 in f32, with dropout. One
line per mask: probability, type of the seed, seed, offset or `none`, the mask in hexadecimal digits of four elements
(the first in the lowest bit), and the bits of the value of kept elements, `none` if there are none.
"""

import argparse
import ctypes
import pathlib
import struct

ROWS, COLS = 3, 45
F32, S32, U8, S64 = 3, 4, 6, 16
CPU, FORWARD_TRAINING, LINEAR, TAG_AB = 1, 64, 0x26, 3
SRC, DST = 1, 17
OFFSET, MASK, PROBABILITY, SEED = 507, 509, 510, 511

CASES = [
    (probability, kind, seed, offset)
    for kind, seeds in (("s32", (0, 1, 12345678, -5)), ("s64", (0, 843921, -5, 2**40 + 3)))
    for seed in seeds
    for probability in (0.5, 0.1)
    for offset in (None, 0, 1, 1238976, 2**33 + 1)
] + [(p, "s64", 12345678, None) for p in (0.0, 0.25, 0.75, 0.9, 1.0)]


class Argument(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("memory", ctypes.c_void_p)]


class Library:
    """oneDNN's functions; an error status is an exception."""

    def __init__(self, path):
        self.functions = ctypes.CDLL(path)
        self.engine = self.create("engine_create", CPU, ctypes.c_size_t(0))
        self.stream = self.create("stream_create", self.engine, 1)

    def call(self, name, *arguments):
        status = getattr(self.functions, f"dnnl_{name}")(*arguments)
        if status != 0:
            raise RuntimeError(f"dnnl_{name}: status {status}")

    def create(self, name, *arguments):
        handle = ctypes.c_void_p()
        self.call(name, ctypes.byref(handle), *arguments)
        return handle

    def desc(self, dims, data_type):
        tag = TAG_AB if len(dims) == 2 else 2
        dims = (ctypes.c_int64 * 12)(*dims)
        count = sum(1 for dim in dims if dim)
        return self.create("memory_desc_create_with_tag", count, dims, data_type, tag)

    def memory(self, desc, buffer):
        return self.create("memory_create", desc, self.engine, buffer)


def mask_of(library, probability, kind, seed, offset):
    """The mask, and the bits of the kept value."""
    data, bytes_ = library.desc((ROWS, COLS), F32), library.desc((ROWS, COLS), U8)
    seed_type = {"s32": S32, "s64": S64}[kind]
    attr = library.create("primitive_attr_create")
    library.call("primitive_attr_set_dropout_v2", attr, bytes_, seed_type, int(offset is not None), 0)
    one, zero = ctypes.c_float(1), ctypes.c_float(0)
    pd = library.create(
        "eltwise_forward_primitive_desc_create",
        library.engine, FORWARD_TRAINING, LINEAR, data, data, one, zero, attr,
    )
    primitive = library.create("primitive_create", pd)
    count = ROWS * COLS
    src, dst = (ctypes.c_float * count)(*([1.0] * count)), (ctypes.c_float * count)()
    mask = (ctypes.c_uint8 * count)(*([7] * count))
    integer = {"s32": ctypes.c_int32, "s64": ctypes.c_int64}[kind]
    single = {
        PROBABILITY: (F32, ctypes.c_float(probability)),
        SEED: (seed_type, integer(seed)),
        OFFSET: (S64, ctypes.c_int64(offset or 0)),
    }
    arguments = [
        Argument(SRC, library.memory(data, src)),
        Argument(DST, library.memory(data, dst)),
        Argument(MASK, library.memory(bytes_, mask)),
    ]
    for number, (data_type, value) in single.items():
        if number != OFFSET or offset is not None:
            desc = library.desc((1,), data_type)
            arguments.append(Argument(number, library.memory(desc, ctypes.byref(value))))
    arguments = (Argument * len(arguments))(*arguments)
    library.call("primitive_execute", primitive, library.stream, len(arguments), arguments)
    library.call("stream_wait", library.stream)
    kept = {struct.pack("<f", y).hex() for y, m in zip(dst, mask) if m}
    assert all(y == 0.0 for y, m in zip(dst, mask) if not m) and len(kept) <= 1
    return list(mask), struct.unpack("<I", bytes.fromhex(kept.pop()))[0] if kept else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", help="libdnnl.so.3")
    parser.add_argument("output", type=pathlib.Path)
    arguments = parser.parse_args()
    library = Library(arguments.library)
    lines = []
    for probability, kind, seed, offset in CASES:
        mask, kept = mask_of(library, probability, kind, seed, offset)
        nibbles = (mask[at : at + 4] for at in range(0, len(mask), 4))
        digits = "".join(f"{sum(bit << i for i, bit in enumerate(four)):x}" for four in nibbles)
        offset = "none" if offset is None else offset
        kept = "none" if kept is None else f"{kept:x}"
        lines.append(f"{probability} {kind} {seed} {offset} {digits} {kept}\n")
    arguments.output.write_text("".join(lines))


if __name__ == "__main__":
    main()
