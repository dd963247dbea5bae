#!/usr/bin/env python3
"""PyTorch, ONNX Runtime, ggml and candle behind one interface, for compare_frameworks.py.

Each function yields its library's ways to run a case: a name, a call, and a function that returns the last
call's result in f32. A library that is not installed, or does not support the case, yields nothing and puts the
reason in `REASONS`. Arrays are NumPy's, with bfloat16 from ml_dtypes.
A module of compare_frameworks.py, which has the options, and of compare_rows.py.
"""

import ctypes
import pathlib

REASONS = {}


def aligned(np, array):
    """A copy aligned to 64 bytes, as frameworks align their tensors and numpy does not."""
    room = np.empty(array.nbytes + 64, dtype=np.uint8)
    start = -room.ctypes.data % 64
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


class Case:
    """A problem: x, residual and dy of rows x cols, scale and shift, in f32 with values representable in the type.

    With `around` "residual", x and residual are added first; with "quantized", the result is int8 with a scale for
    each row."""

    def __init__(self, np, operation, dtype, shape, epsilon):
        import ml_dtypes

        self.np = np
        self.rms, self.backward, self.around = operation
        self.dtype, self.shape, self.epsilon = dtype, shape, epsilon
        self.type = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f16": np.float16}[dtype]
        random = np.random.default_rng(1)
        rows, cols = shape

        def numbers(*dims):
            exact = random.standard_normal(dims, dtype=np.float32)
            return self.decode(self.encode(exact))

        self.x, self.dy, self.residual = (numbers(rows, cols) for _ in range(3))
        self.scale, self.shift = numbers(cols), numbers(cols)

    def encode(self, array):
        """Converts to the problem's type."""
        return aligned(self.np, array.astype(self.type))

    def decode(self, array):
        """Converts from the problem's type."""
        return aligned(self.np, array.astype(self.np.float32))


def of_libnorm_around(case):
    """This library: the norm of the sum with a residual, or a quantized norm."""
    import libnorm

    np = case.np
    x, residual, scale, shift = map(case.encode, (case.x, case.residual, case.scale, case.shift))
    shift = None if case.rms else shift
    if case.around == "residual":
        norm = libnorm.add_rms_norm if case.rms else libnorm.add_layer_norm
        out = (case.encode(np.zeros_like(case.x)), case.encode(np.zeros_like(case.x)))
        call = lambda: norm(x, residual, scale, shift, case.epsilon, out=out)  # noqa: E731
        return call, lambda: case.decode(out[0])
    norm = libnorm.rms_norm_quantized if case.rms else libnorm.layer_norm_quantized
    out, kept = aligned(np, np.zeros(case.shape, np.int8)), {}

    def call():
        kept["scales"] = norm(x, scale, shift, case.epsilon, out=out)[1]

    return call, lambda: out * kept["scales"]


def of_libnorm(case):
    """This library."""
    import libnorm

    if case.around:
        return of_libnorm_around(case)
    np = case.np
    x, scale, shift = case.encode(case.x), case.encode(case.scale), case.encode(case.shift)
    out, of_cols = case.encode(np.zeros_like(case.x)), case.encode(np.zeros_like(case.scale))
    if not case.backward:
        if case.rms:
            return lambda: libnorm.rms_norm(x, scale, None, case.epsilon, out=out), lambda: case.decode(out)
        return lambda: libnorm.layer_norm(x, scale, shift, case.epsilon, out=out), lambda: case.decode(out)
    dy = case.encode(case.dy)
    if case.rms:
        _, variance = libnorm.rms_norm_training(x, scale, None, case.epsilon)
        outs = (out, of_cols, None)

        def call():
            libnorm.rms_norm_backward(dy, x, variance, scale, None, case.epsilon, out=outs)
    else:
        _, mean, variance = libnorm.layer_norm_training(x, scale, shift, case.epsilon)
        outs = (out, of_cols, case.encode(np.zeros_like(case.shift)))

        def call():
            libnorm.layer_norm_backward(dy, x, mean, variance, scale, shift, case.epsilon, out=outs)

    return call, lambda: case.decode(out)


def of_torch(case, threads):
    """PyTorch's own operations, eager and compiled for the shape."""
    try:
        import torch
        import torch._functorch.config
        import torch.nn.functional as functional
    except ImportError as error:
        REASONS["torch"] = str(error)
        return
    torch.set_num_threads(threads)
    torch._functorch.config.donated_buffer = False
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}[case.dtype]
    arrays = (case.x, case.dy, case.scale, case.shift, case.residual)
    x, dy, scale, shift, residual = (torch.from_numpy(array).to(dtype) for array in arrays)
    cols, kept = x.shape[-1:], {}

    def forward(x, scale, shift):
        if case.rms:
            return functional.rms_norm(x, cols, scale, case.epsilon)
        return functional.layer_norm(x, cols, scale, shift, case.epsilon)

    def around(x, scale, shift, residual):
        if case.around == "residual":
            total = x + residual
            return forward(total, scale, shift), total
        y = forward(x, scale, shift).float()
        scales = y.abs().amax(-1, keepdim=True) / 127
        return torch.round(y / scales).to(torch.int8), scales

    def compiled(function):
        torch.compiler.reset()
        return torch.compile(function, dynamic=False)

    def keep(name, function):
        def call():
            kept[name] = function()

        return name, call, lambda: kept[name].float().numpy()

    if case.around:
        plain = (lambda y, _: y.float()) if case.around == "residual" else (lambda y, by: y.float() * by)
        for name, function in (("torch", around), ("torch.compile", compiled(around))):
            operands = (x, scale, shift, residual)
            call = torch.no_grad()(lambda function=function, operands=operands: function(*operands))
            name, call, _ = keep(name, call)
            yield name, call, lambda name=name: plain(*kept[name]).numpy()
    elif not case.backward:
        for name, function in (("torch", forward), ("torch.compile", compiled(forward))):
            yield keep(name, torch.no_grad()(lambda function=function: function(x, scale, shift)))
    elif not case.rms:
        _, mean, rstd = torch.native_layer_norm(x, cols, scale, shift, case.epsilon)
        op, mask = torch.ops.aten.native_layer_norm_backward, [True, True, True]

        def backward(dy, x, mean, rstd, scale, shift):
            return op(dy, x, cols, mean, rstd, scale, shift, mask)

        for name, function in (("torch", backward), ("torch.compile", compiled(backward))):
            operands = (dy, x, mean, rstd, scale, shift)
            yield keep(name, lambda function=function, operands=operands: function(*operands)[0])
    else:
        # RMSNorm has no backward operation, so autograd computes its gradient.
        x.requires_grad_(), scale.requires_grad_()
        for name, function in (("torch", forward), ("torch.compile", compiled(forward))):
            y = function(x, scale, shift)
            yield keep(
                name,
                lambda y=y: torch.autograd.grad(y, (x, scale), dy, retain_graph=True)[0],
            )


def of_onnx_runtime(case, threads):
    """ONNX Runtime, with inputs and outputs bound."""
    if case.backward or case.around == "quantized":
        return
    try:
        import onnxruntime
        from onnx import TensorProto, helper
    except ImportError as error:
        REASONS["onnxruntime"] = str(error)
        return
    types = {"f32": TensorProto.FLOAT, "bf16": TensorProto.BFLOAT16, "f16": TensorProto.FLOAT16}
    kind = types[case.dtype]
    arrays = {"x": case.x, "scale": case.scale}
    if not case.rms:
        arrays["shift"] = case.shift
    op = ("RMSNormalization", 23) if case.rms else ("LayerNormalization", 17)
    outputs, options, domains = ["y"], {"axis": -1}, [helper.make_opsetid("", op[1])]
    if case.around == "residual":
        op = ("SkipSimplifiedLayerNormalization" if case.rms else "SkipLayerNormalization", 1)
        arrays = {"x": case.x, "residual": case.residual, **{n: a for n, a in arrays.items() if n != "x"}}
        outputs, options = ["y", "", "", "sum"], {"domain": "com.microsoft"}
        domains.append(helper.make_opsetid("com.microsoft", 1))
    tensor = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node(op[0], list(arrays), outputs, epsilon=case.epsilon, **options)],
        "norm",
        [tensor(name, kind, array.shape) for name, array in arrays.items()],
        [tensor(name, kind, case.shape) for name in outputs if name],
    )
    model = helper.make_model(graph, opset_imports=domains)
    model.ir_version = 10
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.log_severity_level = 4

    def value(array):
        if case.dtype == "bf16":
            bits = array.view(case.np.uint16)
            return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, kind)
        return onnxruntime.OrtValue.ortvalue_from_numpy(array)

    encoded = {name: case.encode(array) for name, array in arrays.items()}
    results = {name: case.encode(case.np.zeros(case.shape, dtype=case.np.float32)) for name in outputs if name}
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), settings, providers=["CPUExecutionProvider"]
        )
        binding, values = session.io_binding(), {name: value(a) for name, a in encoded.items()}
        for name, bound in values.items():
            binding.bind_ortvalue_input(name, bound)
        for name, array in results.items():
            binding.bind_ortvalue_output(name, value(array))
        session.run_with_iobinding(binding)
    except Exception as error:  # pylint: disable=broad-except
        REASONS[f"onnxruntime, {op[0]} in {case.dtype}"] = str(error).splitlines()[0]
        return
    # Captured by the closure, so that arrays and values stay alive.
    holds = (encoded, values)
    yield "onnxruntime", lambda: session.run_with_iobinding(binding), lambda: holds and case.decode(results["y"])


class GgmlParameters(ctypes.Structure):
    """ggml_init_params."""

    _fields_ = [("size", ctypes.c_size_t), ("buffer", ctypes.c_void_p), ("none", ctypes.c_bool)]


class GgmlPlan(ctypes.Structure):
    """ggml_cplan."""

    _fields_ = [
        ("work_size", ctypes.c_size_t),
        ("work_data", ctypes.c_void_p),
        ("n_threads", ctypes.c_int),
        ("threadpool", ctypes.c_void_p),
        ("abort_callback", ctypes.c_void_p),
        ("abort_callback_data", ctypes.c_void_p),
        ("use_ref", ctypes.c_bool),
    ]


def load_ggml(folder):
    """Loads ggml's two libraries: base and CPU backend."""
    base = ctypes.CDLL(str(pathlib.Path(folder) / "libggml-base.so"), mode=ctypes.RTLD_GLOBAL)
    cpu = ctypes.CDLL(str(pathlib.Path(folder) / "libggml-cpu.so"))
    pointer, size = ctypes.c_void_p, ctypes.c_int64
    of_two, one = [pointer, pointer, pointer], [pointer, pointer, ctypes.c_float]
    for name, result, arguments in (
        ("ggml_init", pointer, [GgmlParameters]),
        ("ggml_free", None, [pointer]),
        ("ggml_new_tensor_1d", pointer, [pointer, ctypes.c_int, size]),
        ("ggml_new_tensor_2d", pointer, [pointer, ctypes.c_int, size, size]),
        ("ggml_get_data", pointer, [pointer]),
        ("ggml_norm", pointer, one),
        ("ggml_rms_norm", pointer, one),
        ("ggml_mul", pointer, of_two),
        ("ggml_mul_inplace", pointer, of_two),
        ("ggml_add_inplace", pointer, of_two),
        ("ggml_new_graph", pointer, [pointer]),
        ("ggml_build_forward_expand", None, [pointer, pointer]),
    ):
        getattr(base, name).restype, getattr(base, name).argtypes = result, arguments
    cpu.ggml_graph_plan.restype = GgmlPlan
    cpu.ggml_graph_plan.argtypes = [pointer, ctypes.c_int, pointer]
    cpu.ggml_graph_compute.argtypes = [pointer, ctypes.POINTER(GgmlPlan)]
    cpu.ggml_cpu_init()
    return base, cpu


def of_ggml(case, threads, libraries):
    """ggml: RMS_NORM and MUL, which its CPU backend fuses, or NORM, MUL and ADD in place; f32 only."""
    if libraries is None or case.backward or case.around or case.dtype != "f32":
        return
    base, cpu = libraries
    rows, cols = case.shape
    parameters = GgmlParameters(case.x.nbytes * 3 + cols * 8 + (1 << 20), None, False)
    context = base.ggml_init(parameters)
    x = base.ggml_new_tensor_2d(context, 0, cols, rows)
    scale, shift = (base.ggml_new_tensor_1d(context, 0, cols) for _ in range(2))
    for tensor, array in ((x, case.x), (scale, case.scale), (shift, case.shift)):
        ctypes.memmove(base.ggml_get_data(tensor), array.ctypes.data, array.nbytes)
    if case.rms:
        y = base.ggml_mul(context, base.ggml_rms_norm(context, x, case.epsilon), scale)
    else:
        y = base.ggml_mul_inplace(context, base.ggml_norm(context, x, case.epsilon), scale)
        y = base.ggml_add_inplace(context, y, shift)
    graph = base.ggml_new_graph(context)
    base.ggml_build_forward_expand(graph, y)
    plan = cpu.ggml_graph_plan(graph, threads, None)
    work = ctypes.create_string_buffer(max(plan.work_size, 1))
    plan.work_data = ctypes.cast(work, ctypes.c_void_p)

    def result():
        pointer = ctypes.cast(base.ggml_get_data(y), ctypes.POINTER(ctypes.c_float))
        return case.np.ctypeslib.as_array(pointer, case.shape)

    def call(work=work):
        return cpu.ggml_graph_compute(graph, plan)

    yield "ggml", call, result
    base.ggml_free(context)


def load_candle(library):
    """Loads the library built from compare_candle."""
    lib, pointer, size = ctypes.CDLL(str(library)), ctypes.c_void_p, ctypes.c_size_t
    lib.candle_norm_new.restype = pointer
    lib.candle_norm_new.argtypes = [pointer] * 3 + [size, size, ctypes.c_float, ctypes.c_int]
    lib.candle_norm_run.argtypes = lib.candle_norm_free.argtypes = [pointer]
    lib.candle_norm_result.argtypes = [pointer, pointer]
    return lib


def of_candle(case, library):
    """candle's fused operations, which allocate their results."""
    if library is None or case.backward or case.around:
        return
    shift = None if case.rms else case.shift.ctypes.data
    bits = {"f32": 32, "bf16": -16, "f16": 16}[case.dtype]
    places = (case.x.ctypes.data, case.scale.ctypes.data, shift)
    problem = library.candle_norm_new(*places, *case.shape, case.epsilon, bits)
    if not problem or library.candle_norm_run(problem):
        REASONS[f"candle in {case.dtype}"] = "refused"
        return

    def result():
        numbers = case.np.empty(case.shape, dtype=case.np.float32)
        if library.candle_norm_result(problem, numbers.ctypes.data):
            raise RuntimeError("candle has no result")
        return numbers

    yield "candle", lambda: library.candle_norm_run(problem), result
    library.candle_norm_free(problem)


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.parse_args()
    parser.error("this is a module; run scripts/compare_frameworks.py")
