"""A program that loads a TensorFlow Lite file, so that an invalid file does not crash the server.

    python tflite_crash_probe.py < model.tflite

LiteRT checks that a file is a flatbuffer, and trusts most of its content: one wrong number may make
LiteRT read beyond its memory. Ordinary errors are ignored here, because the server reports them.
"""

from __future__ import annotations

import contextlib
import sys


def main() -> None:
    import numpy as np
    from ai_edge_litert.interpreter import Interpreter

    # Rewind: the server has read the header, and both processes share the position in the file.
    sys.stdin.buffer.seek(0)
    interpreter = Interpreter(model_content=sys.stdin.buffer.read())
    interpreter.allocate_tensors()
    inputs = interpreter.get_input_details()
    if any((each["shape_signature"] < 0).any() for each in inputs):
        return  # Sizes are dynamic, and none is known to be supported.
    for each in inputs:
        interpreter.set_tensor(each["index"], np.zeros(each["shape"], each["dtype"]))
    interpreter.invoke()


if __name__ == "__main__":
    with contextlib.suppress(Exception):
        main()
