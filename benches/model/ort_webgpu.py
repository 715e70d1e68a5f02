"""ONNX Runtime with its WebGPU provider, as a peer of vramp's models on a device; protocol.py says how to ask it.

usage: ort_webgpu.py        needs: pip install onnxruntime-webgpu==1.27.0

The provider refuses the software Vulkan driver of Debian 12. scripts/lavapipe25.sh brings a newer one, which vramp
must use as well for a fair comparison:

    scripts/lavapipe25.sh target/mesa25 && source target/mesa25/env.sh
"""

import onnxruntime

from protocol import serve, values

PROVIDER = "WebGpuExecutionProvider"
onnxruntime.set_default_logger_severity(3)


def load(path, shape):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=[PROVIDER, "CPUExecutionProvider"])
    if session.get_providers()[0] != PROVIDER:
        raise RuntimeError(f"{PROVIDER} found no device, so the CPU would be measured")
    feed = {session.get_inputs()[0].name: values(shape)}
    return lambda: session.run(None, feed)


serve(load)
