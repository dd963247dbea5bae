#!/usr/bin/env python3
"""Times libnorm against PyTorch and ONNX Runtime, taking turns in one process.

    cargo build --release
    python3 -m venv VENV && VENV/bin/pip install numpy torch onnx onnxruntime
    VENV/bin/python scripts/compare_frameworks.py

What is not installed is skipped. Every library gets the same f32 data, warm buffers and the same number of
threads, and is called from Python: that costs a microsecond or two for all of them, most for those that take the
longest way to their kernel. PyTorch allocates its outputs; glibc is told to keep what was freed, without which
its large outputs are page faults. A ratio is the median of the ratios of neighbouring samples, above 1 where
libnorm is faster. Results are compared before anything is timed.
Exit status: 0 measured, 1 results differ, 2 something failed. What was measured never decides it.
"""

import argparse
import ctypes
import math
import os
import pathlib
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHAPES = [(1, 4096), (4, 4096), (32, 4096), (128, 1024), (257, 768), (512, 4096), (2048, 8192), (4096, 4096)]
EPSILON = 1e-5
KEEP_MEMORY = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(8 << 30),
    "MALLOC_TOP_PAD_": str(64 << 20),
    "MALLOC_ARENA_MAX": "1",
}


class Norm:
    """Layer and RMS normalization by libnorm's C functions. Values are those of norm_types.h."""

    F32, FORWARD_INFERENCE, BACKWARD = 3, 96, 128
    SCALE, SHIFT, RMS = 2, 4, 0x20
    SRC, DST, MEAN, VARIANCE = 1, 17, 49, 50
    ARG_SCALE, ARG_SHIFT, DIFF_SRC, DIFF_DST, DIFF_SCALE, DIFF_SHIFT = 51, 52, 129, 145, 255, 256

    class Argument(ctypes.Structure):
        """norm_exec_arg_t."""

        _fields_ = [("arg", ctypes.c_int), ("memory", ctypes.c_void_p)]

    def __init__(self, library, threads):
        self.lib = ctypes.CDLL(str(library))
        self.lib.norm_get_last_error.restype = ctypes.c_char_p
        self.call("norm_set_num_threads", ctypes.c_int(threads))
        self.engine, self.stream = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("norm_engine_create", ctypes.byref(self.engine), 1, ctypes.c_size_t(0))
        self.call("norm_stream_create", ctypes.byref(self.stream), self.engine, 1)

    def call(self, name, *arguments):
        """Calls a function that returns a status."""
        if getattr(self.lib, name)(*arguments) != 0:
            sys.exit(f"{name}: {self.lib.norm_get_last_error().decode()}")

    def describe(self, dims):
        """A dense f32 descriptor."""
        desc, strides = ctypes.c_void_p(), []
        for dim in reversed(dims):
            strides.insert(0, strides[0] * last if strides else 1)
            last = dim
        count = len(dims)
        self.call(
            "norm_memory_desc_create_with_strides",
            ctypes.byref(desc),
            count,
            (ctypes.c_int64 * count)(*dims),
            self.F32,
            (ctypes.c_int64 * count)(*strides),
        )
        return desc

    def prepare(self, rms, backward, tensors):
        """A call that executes the problem on numpy arrays, by argument."""
        data = self.describe(tensors[self.SRC].shape)
        flags = self.SCALE | (self.RMS if rms else self.SHIFT)
        desc, primitive = ctypes.c_void_p(), ctypes.c_void_p()
        if backward:
            hint, epsilon = None, ctypes.c_float(EPSILON)
            self.call(
                "norm_layer_normalization_backward_primitive_desc_create",
                *(ctypes.byref(desc), self.engine, self.BACKWARD, data, data, data, None),
                *(epsilon, flags, hint, None),
            )
        else:
            self.call(
                "norm_layer_normalization_forward_primitive_desc_create",
                *(ctypes.byref(desc), self.engine, self.FORWARD_INFERENCE, data, data, None),
                *(ctypes.c_float(EPSILON), flags, None),
            )
        self.call("norm_primitive_create", ctypes.byref(primitive), desc)
        arguments = (self.Argument * len(tensors))()
        for slot, (arg, array) in zip(arguments, tensors.items()):
            memory, address = ctypes.c_void_p(), ctypes.c_void_p(array.ctypes.data)
            shape = self.describe(array.shape)
            self.call("norm_memory_create", ctypes.byref(memory), shape, self.engine, address)
            slot.arg, slot.memory = arg, memory
        execute, count = self.lib.norm_primitive_execute, ctypes.c_int(len(tensors))
        return lambda: execute(primitive, self.stream, count, arguments)


def contestants(np, norm, rms, backward, rows, cols, threads):
    """Calls by name, ours first, and the array or tensor that each leaves its result in."""
    random = np.random.default_rng(1)
    x, dy = (random.standard_normal((rows, cols), dtype=np.float32) for _ in range(2))
    scale, shift = (random.standard_normal(cols, dtype=np.float32) for _ in range(2))
    tensors, result = {Norm.SRC: x, Norm.ARG_SCALE: scale}, np.zeros_like(x)
    if backward:
        centred = x if rms else x - x.mean(1, keepdims=True)
        if not rms:
            tensors[Norm.MEAN] = x.mean(1)
            tensors[Norm.DIFF_SHIFT] = np.zeros_like(scale)
        tensors[Norm.VARIANCE] = (centred**2).mean(1)
        tensors |= {Norm.DIFF_DST: dy, Norm.DIFF_SRC: result, Norm.DIFF_SCALE: np.zeros_like(scale)}
    else:
        tensors[Norm.DST] = result
        if not rms:
            tensors[Norm.ARG_SHIFT] = shift
    ours = norm.prepare(rms, backward, tensors)
    yield "libnorm", ours, lambda: result
    yield from of_torch(rms, backward, (x, dy, scale, shift), threads)
    if not backward:
        yield from of_onnx_runtime(np, rms, (x, scale, shift), threads)


def of_torch(rms, backward, arrays, threads):
    """PyTorch's own operations, eager and compiled."""
    try:
        import torch
        import torch.nn.functional as functional
    except ImportError:
        return
    torch.set_num_threads(threads)
    x, dy, scale, shift = (torch.from_numpy(array) for array in arrays)
    cols, kept = x.shape[-1:], {}

    def forward(x):
        if rms:
            return functional.rms_norm(x, cols, scale, EPSILON)
        return functional.layer_norm(x, cols, scale, shift, EPSILON)

    def keep(name, function):
        def call():
            kept[name] = function()

        return call, lambda: kept[name].numpy()

    if not backward:
        compiled = torch.compile(forward)
        for name, function in (("torch", forward), ("torch.compile", compiled)):
            with torch.no_grad():
                yield name, *keep(name, torch.no_grad()(lambda function=function: function(x)))
    elif not rms:
        mean = x.mean(1, keepdim=True)
        rstd = ((x - mean).pow(2).mean(1, keepdim=True) + EPSILON).rsqrt()
        op, mask = torch.ops.aten.native_layer_norm_backward, [True, True, True]
        arguments = (dy, x, cols, mean, rstd, scale, shift, mask)
        yield "torch", *keep("torch", lambda: op(*arguments)[0])


def of_onnx_runtime(np, rms, arrays, threads):
    """ONNX Runtime, with inputs and outputs bound."""
    try:
        import onnxruntime
        from onnx import TensorProto, helper
    except ImportError:
        return
    x, scale, shift = arrays
    names = ["x", "scale"] if rms else ["x", "scale", "shift"]
    op = ("RMSNormalization", 23) if rms else ("LayerNormalization", 17)
    tensor = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node(op[0], names, ["y"], axis=-1, epsilon=EPSILON)],
        "norm",
        [tensor("x", TensorProto.FLOAT, x.shape)]
        + [tensor(name, TensorProto.FLOAT, scale.shape) for name in names[1:]],
        [tensor("y", TensorProto.FLOAT, x.shape)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", op[1])])
    model.ir_version = 10
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # pylint: disable=broad-except
        print(f"onnxruntime: {op[0]} not offered: {str(error).splitlines()[0]}")
        return
    binding, y = session.io_binding(), np.zeros_like(x)
    for name, array in zip(names, (x, scale, shift)):
        binding.bind_cpu_input(name, array)
    value = onnxruntime.OrtValue.ortvalue_from_numpy(y)
    binding.bind_ortvalue_output("y", value)
    yield "onnxruntime", lambda: session.run_with_iobinding(binding), lambda: value.numpy()


def sample(call, seconds):
    """The time of one execution, from as many as take long enough to measure."""
    count = 1
    while True:
        begin = time.perf_counter()
        for _ in range(count):
            call()
        taken = time.perf_counter() - begin
        if taken >= seconds:
            return taken / count
        count = max(2 * count, int(1.2 * count * seconds / max(taken, 1e-9)))


def contest(ours, theirs, rounds):
    """The median of the ratios, and both medians in microseconds."""
    pairs = []
    for _ in range(rounds):
        pairs.append((sample(theirs, 3e-4), sample(ours, 3e-4)))
    ratio = statistics.median(a / b for a, b in pairs)
    return ratio, *(1e6 * statistics.median(times) for times in zip(*pairs))


def main():
    """Reads the options and prints a table per operation."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--ours", default=ROOT / "target" / "release" / "libnorm.so")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    if any(os.environ.get(name) != value for name, value in KEEP_MEMORY.items()):
        environment = {**os.environ, **KEEP_MEMORY, "OMP_NUM_THREADS": str(arguments.threads)}
        os.execve(sys.executable, [sys.executable, *sys.argv], environment)
    try:
        import numpy as np
    except ImportError:
        sys.exit("numpy is not installed")
    norm, wrong = Norm(arguments.ours, arguments.threads), False
    for rms, backward in ((False, False), (True, False), (False, True)):
        name = f"{'rms_norm' if rms else 'layer_norm'} {'backward' if backward else 'forward'}"
        print(f"\n### {name}, f32, {arguments.threads} thread(s)\n")
        print("| rows x cols | library | libnorm us | theirs us | ratio |\n|---|---|---|---|---|")
        ratios = {}
        for rows, cols in SHAPES:
            (_, ours, ours_result), *others = contestants(
                np, norm, rms, backward, rows, cols, arguments.threads
            )
            ours()
            for other, theirs, theirs_result in others:
                theirs()
                if not np.allclose(ours_result(), theirs_result(), rtol=1e-4, atol=1e-4):
                    print(f"{other}: the results differ at {rows}x{cols}")
                    wrong = True
                ratio, their_time, our_time = contest(ours, theirs, arguments.rounds)
                ratios.setdefault(other, []).append(ratio)
                print(f"| {rows}x{cols} | {other} | {our_time:.2f} | {their_time:.2f} | {ratio:.2f} |")
        for other, values in ratios.items():
            mean = math.exp(statistics.fmean(map(math.log, values)))
            print(f"\n{other}: geometric mean {mean:.2f}, least {min(values):.2f}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
