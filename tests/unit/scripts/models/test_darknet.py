from __future__ import annotations

import struct

import numpy as np
import pytest
from scripts.models.darknet import Shape, read_weights

NORMALIZED, PLAIN = Shape(2, 3, 1), Shape(1, 2, 3, is_normalized=False)


def weights(*arrays: object, minor: int = 2) -> bytes:
    images = struct.pack("<q" if minor >= 2 else "<i", 32_013_312)
    header = struct.pack("<3i", 0, minor, 0) + images
    return header + b"".join(np.asarray(array, "<f4").tobytes() for array in arrays)


@pytest.mark.parametrize("minor", [1, 2])
def test_batch_normalization_is_folded_into_the_convolution(minor: int) -> None:
    random = np.random.default_rng(1)
    bias, scale, mean, variance = random.random((4, 2))
    kernel, last_bias, last = random.random((2, 3)), random.random(1), random.random((2, 3, 3))
    data = weights(bias, scale, mean, variance, kernel, last_bias, last, minor=minor)
    first, second = read_weights(data, [NORMALIZED, PLAIN])
    x = random.random(3)
    expected = (kernel @ x - mean) / np.sqrt(variance) * scale + bias
    found = first.kernel[:, :, 0, 0] @ x + first.bias
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    np.testing.assert_allclose(second.kernel, last[None], rtol=1e-6)
    np.testing.assert_allclose(second.bias, last_bias, rtol=1e-6)


def test_weights_of_another_model_are_refused() -> None:
    with pytest.raises(ValueError, match="3 weights remain"):
        list(read_weights(weights(np.zeros(22)), [PLAIN]))
    with pytest.raises(ValueError, match="reshape"):
        list(read_weights(weights(np.zeros(18)), [PLAIN]))
