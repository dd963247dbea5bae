#!/usr/bin/env python3
"""Times the overhead of a call from Python: RMS normalization of one short row.

    cargo build --release
    pip install ./python numpy
    scripts/python_overhead.py

The row of 16 elements is computed in a few nanoseconds, so the time is that of the call. It is compared with
executing a primitive through ctypes, with memory objects made in advance, which is the least that ctypes can do.
PyTorch's times are printed if it is installed. Times are the minimum of several samples.
"""

import argparse
import ctypes
import importlib.util
import pathlib
import timeit

ROOT = pathlib.Path(__file__).resolve().parent.parent
COLS = 16
# Values from norm_types.h.
F32, FORWARD_INFERENCE, RMS_NORM, USE_SCALE = 3, 96, 0x20, 2
SRC, DST, SCALE = 1, 17, 51


class Argument(ctypes.Structure):
    """norm_exec_arg_t."""

    _fields_ = [("arg", ctypes.c_int), ("memory", ctypes.c_void_p)]


def through_ctypes(library, x, scale, out):
    """Returns a call that executes a primitive."""
    lib = ctypes.CDLL(str(library))

    def create(name, *arguments):
        """The object that a function stores through its first argument."""
        made = ctypes.c_void_p()
        if getattr(lib, name)(ctypes.byref(made), *arguments) != 0:
            raise RuntimeError(name)
        return made

    def describe(array):
        """The descriptor of a dense array."""
        dims = (ctypes.c_int64 * array.ndim)(*array.shape)
        strides = (ctypes.c_int64 * array.ndim)(*(stride // array.itemsize for stride in array.strides))
        return create("norm_memory_desc_create_with_strides", array.ndim, dims, F32, strides)

    engine = create("norm_engine_create", 1, ctypes.c_size_t(0))
    stream = create("norm_stream_create", engine, 1)
    rows = describe(x)
    desc = create(
        "norm_layer_normalization_forward_primitive_desc_create_v2",
        *(engine, FORWARD_INFERENCE, rows, rows, None, F32, ctypes.c_float(1e-5), RMS_NORM | USE_SCALE, None),
    )
    primitive = create("norm_primitive_create", desc)
    arguments = (Argument * 3)()
    for slot, (arg, array) in zip(arguments, ((SRC, x), (SCALE, scale), (DST, out))):
        address = ctypes.c_void_p(array.ctypes.data)
        slot.arg, slot.memory = arg, create("norm_memory_create", describe(array), engine, address).value
    execute, count = lib.norm_primitive_execute, ctypes.c_int(3)
    return lambda: execute(primitive, stream, count, arguments)


def nanoseconds(call):
    """The time of a call."""
    # Samples of about a millisecond. Even on a busy machine, some of them are not interrupted.
    count = 1000
    return 1e9 * min(timeit.repeat(call, number=count, repeat=500)) / count


def main():
    """Prints a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--library", default=ROOT / "target" / "release" / "libnorm.so")
    arguments = parser.parse_args()
    import numpy as np

    import libnorm

    x, scale = np.arange(COLS, dtype=np.float32)[None] + 1, np.ones(COLS, np.float32)
    out, own = np.zeros_like(x), np.zeros_like(x)
    bare = through_ctypes(arguments.library, x, scale, own)
    rows = {
        "ctypes, prepared primitive": bare,
        "libnorm, NumPy, out=": lambda: libnorm.rms_norm(x, scale, out=out),
        "libnorm, NumPy, new result": lambda: libnorm.rms_norm(x, scale),
    }
    if importlib.util.find_spec("torch"):
        import torch

        torch.set_num_threads(1)
        torch.set_grad_enabled(False)
        tensors = [torch.from_numpy(array) for array in (x, scale, out)]
        rows["libnorm, PyTorch, out="] = lambda: libnorm.rms_norm(tensors[0], tensors[1], out=tensors[2])
        rows["libnorm, PyTorch, new result"] = lambda: libnorm.rms_norm(*tensors[:2])
        rows["torch.nn.functional.rms_norm"] = lambda: torch.nn.functional.rms_norm(
            tensors[0], (COLS,), tensors[1], 1e-5
        )
    print(f"| one row of {COLS} f32 | ns per call |\n|---|---|")
    for name, call in rows.items():
        call()
        print(f"| {name} | {nanoseconds(call):.0f} |")
    if out.tobytes() != own.tobytes():
        raise SystemExit("the results differ")


if __name__ == "__main__":
    main()
