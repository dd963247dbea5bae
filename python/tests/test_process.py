"""Bits, threads, the interpreter's lock, forks and leaks."""

import gc
import os
import pathlib
import subprocess
import sys
import threading

import numpy as np
import pytest
from reference import data

import libnorm

ISAS = ["portable", "avx2", "avx512", "avx512_bf16", "avx512_amx", "neon"]


def results():
    """The bytes of all results that depend on the machine in other libraries."""
    x, dy = data((67, 515), "float32"), data((67, 515), "float32", 1)
    scale = data((515,), "float32", 2)
    dst, mean, variance = libnorm.layer_norm_training(x, scale, scale)
    gradients = libnorm.layer_norm_backward(dy, x, mean, variance, scale, scale)
    return [array.tobytes() for array in (dst, mean, variance, *gradients)]


def test_bits_do_not_depend_on_instruction_set_and_threads():
    expected, seen = results(), []
    for isa in ISAS:
        try:
            libnorm.set_max_cpu_isa(isa)
        except NotImplementedError:
            continue
        for threads in (1, 2, 3):
            libnorm.set_num_threads(threads)
            assert libnorm.get_num_threads() == threads
            assert results() == expected, (isa, threads)
        seen.append(libnorm.last_implementation())
    # Processors differ, but the portable code and something else ran.
    assert len(set(seen)) >= 2 and "simd:portable" in seen, seen


def test_bits_do_not_depend_on_the_batch():
    x = data((40, 129), "bfloat16")
    whole = libnorm.rms_norm(x)
    for row in (0, 17, 39):
        assert libnorm.rms_norm(x[row]).tobytes() == whole[row].tobytes()
    assert libnorm.rms_norm(x[::-1].copy())[::-1].tobytes() == whole.tobytes()


def test_what_is_told():
    assert libnorm.__version__.count(".") == 2
    assert libnorm.get_cpu_isa() in ISAS
    told = []

    def first_call():
        told.append((libnorm.last_implementation(), libnorm.last_num_threads()))
        libnorm.layer_norm(np.ones((2, 3), np.float32))
        told.append((libnorm.last_implementation(), libnorm.last_num_threads()))

    thread = threading.Thread(target=first_call)
    thread.start()
    thread.join()
    assert told[0] == (None, 0)
    # A third part of the name denotes a special algorithm, here for short rows. Levels such as avx512_bf16 add
    # instructions that layer normalization does not use.
    simd, level = told[1][0].split(":")[:2]
    assert simd == "simd" and libnorm.get_cpu_isa().startswith(level) and told[1][1] == 1


@pytest.mark.parametrize("function", [libnorm.layer_norm, libnorm.attention])
def test_the_lock_is_released(function):
    shape = (2048, 4096) if function is libnorm.layer_norm else (1, 4, 128, 64)
    inputs = [np.ones(shape, np.float32)] * (1 if function is libnorm.layer_norm else 3)
    out = np.empty(shape, np.float32)
    interval = sys.getswitchinterval()

    def goes_on_during_a_call():
        started, finished = threading.Event(), []

        def work():
            started.set()
            function(*inputs, out=out)
            finished.append(True)

        thread = threading.Thread(target=work)
        thread.start()
        started.wait()
        # The switch interval is long, so the worker released the lock by itself: within the call or at its end.
        in_call = not finished
        thread.join()
        return in_call

    sys.setswitchinterval(1000)
    try:
        assert any(goes_on_during_a_call() for _ in range(50))
    finally:
        sys.setswitchinterval(interval)


def test_threads_compute_at_the_same_time():
    inputs = [data((13, 301), "float32", seed) for seed in range(8)]
    expected = [libnorm.layer_norm(x).tobytes() for x in inputs]
    wrong = []

    def work(x, bits):
        for _ in range(200):
            if libnorm.layer_norm(x).tobytes() != bits:
                wrong.append(bits)

    threads = [threading.Thread(target=work, args=pair) for pair in zip(inputs, expected)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_more_problems_than_primitives_are_kept():
    shapes = [(rows, 16) for rows in range(1, 80)]
    first = [libnorm.rms_norm(data(shape, "float32")).tobytes() for shape in shapes]
    assert [libnorm.rms_norm(data(shape, "float32")).tobytes() for shape in shapes] == first


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_fork():
    program = """
import os, sys, numpy, libnorm
x = numpy.ones((512, 1024), numpy.float32)
x[:, ::2] = 3
libnorm.set_num_threads(2)
expected = libnorm.layer_norm(x).tobytes()
child = os.fork()
if child == 0:
    os._exit(0 if libnorm.layer_norm(x).tobytes() == expected else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_calls_leave_nothing_behind():
    x, out = data((64, 1024), "float32"), np.empty((64, 1024), np.float32)
    references = sys.getrefcount(x), sys.getrefcount(out), sys.getrefcount(None)

    def some_calls():
        for _ in range(300):
            libnorm.layer_norm(x, out=out)
            libnorm.layer_norm_training(x, out=(out, None, None))
            with pytest.raises(ValueError, match="shape"):
                libnorm.layer_norm(x, x)

    def resident():
        gc.collect()
        return int(pathlib.Path("/proc/self/statm").read_text().split()[1])

    some_calls()
    before = resident()
    some_calls()
    # 300 results of 256 kB would be 18 000 pages.
    assert resident() - before < 1000
    assert (sys.getrefcount(x), sys.getrefcount(out)) == references[:2]
    assert abs(sys.getrefcount(None) - references[2]) < 200
