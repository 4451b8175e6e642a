"""Writes python.safetensors with the format's own implementation.

    pip install safetensors==0.8.0 numpy && python python.py

The test TestReadsPythonsFile reads the file. numpy has no bfloat16, so its bits
are given as they are.
"""

import numpy as np
from safetensors import TensorSpec, serialize_file

half = np.array([0.5, -2.0, 65504.0, 2.0**-24, np.inf], dtype="<f2")
single = np.arange(6, dtype="<f4").reshape(2, 3) / np.float32(4) - np.float32(1)
bf16 = np.array([[0x3F80, 0xC000], [0x7F7F, 0x0001]], dtype="<u2")  # 1, -2, largest, smallest
scalar = np.array(3.25, dtype="<f4")


def spec(dtype, array):
    return TensorSpec(dtype=dtype, shape=array.shape, data_ptr=array.ctypes.data, data_len=array.nbytes)


serialize_file(
    {
        "half": spec("float16", half),
        "layer.weight": spec("float32", single),
        "bf16": spec("bfloat16", bf16),
        "scalar": spec("float32", scalar),
    },
    "python.safetensors",
    {"maker": "python", "text": 'quotes " and \u00fcml\u00e4ute'},
)
