"""ONNX Runtime on the CPU, as a peer of vramp's models; protocol.py says how to ask it.

usage: ort_cpu.py [THREADS]        needs: pip install onnxruntime==1.31.0
"""

import sys

import onnxruntime

from protocol import serve, values

threads = int(sys.argv[1]) if len(sys.argv) > 1 else 1
onnxruntime.set_default_logger_severity(3)


def load(path, shape):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feed = {session.get_inputs()[0].name: values(shape)}
    return lambda: session.run(None, feed)


serve(load)
