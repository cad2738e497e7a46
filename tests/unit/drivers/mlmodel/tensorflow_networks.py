"""Tiny models and the files they are saved in. Importing this module imports TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf


def save_all(directory: Path) -> None:
    _save_keras(directory)
    _save_functions(directory)


def _save_keras(directory: Path) -> None:
    keras.utils.set_random_seed(1)
    image = keras.Input((8, 8, 3), name="image")
    flat = keras.layers.Flatten()(keras.layers.Conv2D(2, 3)(image))
    scores = keras.layers.Dense(3, activation="softmax")(flat)
    named = keras.Model(image, {"scores": scores, "flat": flat})
    named.save(directory / "named.keras")
    named.export(directory / "exported", verbose=False)
    keras.Model(image, [scores, flat]).save(directory / "listed.keras")

    row = keras.layers.Input((4,), name="row")
    keras.Sequential([row, keras.layers.Dense(2)]).save(directory / "row.keras")
    double = keras.layers.Lambda(lambda x: x * 2)
    keras.Sequential([row, double]).save(directory / "lambda.keras")

    left, right = keras.Input((4,), name="left"), keras.Input((4,), name="right")
    both = keras.layers.Concatenate()([left, right])
    keras.Model([left, right], both).save(directory / "two_inputs.keras")
    keras.Model({"left": left, "right": right}, both).save(directory / "two_named_inputs.keras")


def _save_functions(directory: Path) -> None:
    def save(name: str, **signatures: Any) -> None:
        module = tf.Module()
        module.kept = list(signatures.values())
        tf.saved_model.save(module, str(directory / name), signatures=signatures)

    double = _function(lambda x: x * 2, x=tf.TensorSpec([None], tf.float32))
    save("only", any_name=double)
    save("two", first=double, second=double)
    save("none")
    save("open", serving_default=_function(lambda x: x * 2, x=tf.TensorSpec(None, tf.float32)))
    save("texts", serving_default=_function(lambda x: x, x=tf.TensorSpec([None], tf.string)))
    save(
        "many",
        serving_default=_function(
            lambda x: {f"output_{number}": x + number for number in range(12)},
            x=tf.TensorSpec([None], tf.float32),
        ),
    )
    save(
        "sum",
        serving_default=_function(
            lambda x, y: x + y,
            x=tf.TensorSpec([None], tf.float32),
            y=tf.TensorSpec([None], tf.float32),
        ),
    )
    save(
        "types",
        serving_default=_function(
            lambda x, flag: {
                "halved": tf.where(flag, x / 2, x),
                "positive": x > 0,
                "size": tf.shape(x),
            },
            x=tf.TensorSpec([None], tf.float16),
            flag=tf.TensorSpec([], tf.bool),
        ),
    )


def _function(call: Callable[..., Any], **specs: Any) -> Any:
    return tf.function(call, autograph=False).get_concrete_function(
        **{name: tf.TensorSpec(spec.shape, spec.dtype, name) for name, spec in specs.items()}
    )
