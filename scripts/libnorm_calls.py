"""Calls libnorm's layer and RMS normalization from Python, and encodes element types that numpy lacks."""

import ctypes
import sys

# Values are those of norm_types.h.
TYPES = {"f16": 1, "bf16": 2, "f32": 3}


def aligned(np, array):
    """A copy aligned to 64 bytes, as frameworks align their tensors and numpy does not."""
    room = np.empty(array.nbytes + 64, dtype=np.uint8)
    start = -room.ctypes.data % 64
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def encode(np, dtype, array):
    """f32 numbers in another type; bf16 as 16-bit patterns, rounded to nearest even."""
    if dtype == "f32":
        return aligned(np, array)
    if dtype == "f16":
        return aligned(np, array.astype(np.float16))
    bits = np.ascontiguousarray(array).view(np.uint32)
    return aligned(np, ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16))


def decode(np, dtype, array):
    """Back to f32."""
    if dtype == "bf16":
        return aligned(np, (array.astype(np.uint32) << 16).view(np.float32))
    return aligned(np, array.astype(np.float32))


class Norm:
    """A loaded library with an engine and a stream."""

    FORWARD_INFERENCE, BACKWARD = 96, 128
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

    def describe(self, dims, dtype):
        """A dense descriptor."""
        desc, strides = ctypes.c_void_p(), [1]
        for dim in reversed(dims[1:]):
            strides.insert(0, strides[0] * dim)
        count = len(dims)
        self.call(
            "norm_memory_desc_create_with_strides",
            ctypes.byref(desc),
            count,
            (ctypes.c_int64 * count)(*dims),
            TYPES[dtype],
            (ctypes.c_int64 * count)(*strides),
        )
        return desc

    def prepare(self, rms, backward, dtype, epsilon, tensors):
        """A call that executes the problem on arrays, by argument; statistics are f32."""
        data = self.describe(tensors[self.SRC].shape, dtype)
        flags, of_params = self.SCALE | (self.RMS if rms else self.SHIFT), TYPES[dtype]
        desc, primitive = ctypes.c_void_p(), ctypes.c_void_p()
        if backward:
            self.call(
                "norm_layer_normalization_backward_primitive_desc_create_v2",
                *(ctypes.byref(desc), self.engine, self.BACKWARD, data, data, data, None),
                *(of_params, of_params, ctypes.c_float(epsilon), flags, None, None),
            )
        else:
            self.call(
                "norm_layer_normalization_forward_primitive_desc_create_v2",
                *(ctypes.byref(desc), self.engine, self.FORWARD_INFERENCE, data, data, None),
                *(of_params, ctypes.c_float(epsilon), flags, None),
            )
        self.call("norm_primitive_create", ctypes.byref(primitive), desc)
        arguments = (self.Argument * len(tensors))()
        for slot, (arg, array) in zip(arguments, tensors.items()):
            memory, address = ctypes.c_void_p(), ctypes.c_void_p(array.ctypes.data)
            shape = self.describe(array.shape, "f32" if arg in (self.MEAN, self.VARIANCE) else dtype)
            self.call("norm_memory_create", ctypes.byref(memory), shape, self.engine, address)
            slot.arg, slot.memory = arg, memory
        execute, count = self.lib.norm_primitive_execute, ctypes.c_int(len(tensors))
        return lambda: execute(primitive, self.stream, count, arguments)
