from __future__ import annotations

import io
import os
import pickle

import numpy as np
import pytest
from scripts.models.checkpoint import read_checkpoint


def test_it_reads_what_torch_writes() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    weights = torch.arange(24.0).reshape(2, 3, 4)
    state = {
        "weight": weights,
        "turned": weights.permute(2, 0, 1),
        "part": weights[1],
        "count": torch.tensor(7),
    }
    file = io.BytesIO()
    torch.save(state, file, _use_new_zipfile_serialization=False)
    found = read_checkpoint(file.getvalue())
    assert list(found) == list(state)
    for name, tensor in state.items():
        np.testing.assert_array_equal(found[name], tensor.numpy(), strict=True)


def test_it_runs_nothing_of_a_checkpoint() -> None:
    class Hostile:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.system, ("true",)

    with pytest.raises(pickle.UnpicklingError, match=r"unexpected class \w+\.system"):
        read_checkpoint(pickle.dumps(Hostile(), protocol=2))


def test_another_file_is_refused() -> None:
    with pytest.raises(ValueError, match="not a checkpoint"):
        read_checkpoint(pickle.dumps(1) * 5)
