"""Tries a TensorFlow Lite file in a process of its own, which it may bring down.

    python tflite_trial.py < model.tflite

LiteRT checks that a file is a flatbuffer, and believes most of what is in it: with one wrong number
it may read beyond its memory. Where the engine only complains, so does it in the server, in words.
"""

from __future__ import annotations

import contextlib
import sys


def main() -> None:
    import numpy as np
    from ai_edge_litert.interpreter import Interpreter

    # The server has read on from where it is.
    sys.stdin.buffer.seek(0)
    interpreter = Interpreter(model_content=sys.stdin.buffer.read())
    interpreter.allocate_tensors()
    inputs = interpreter.get_input_details()
    if any((each["shape_signature"] < 0).any() for each in inputs):
        return  # Nobody promised that it runs on the smallest of sizes.
    for each in inputs:
        interpreter.set_tensor(each["index"], np.zeros(each["shape"], each["dtype"]))
    interpreter.invoke()


if __name__ == "__main__":
    with contextlib.suppress(Exception):
        main()
