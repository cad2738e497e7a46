"""The file of a PyTorch model: a zip archive that is read without unpickling anything.

torch.save writes pickles, which can run any code on loading, so they are rejected. The other
formats are TorchScript and programs of torch.export; the content of the file decides which of the
two it has. In both, everything that would run Python or access files is rejected.

A model may carry metadata in an extra file of its archive. Ours is the manifest, `cogwork.json`:

    {"inputs": [{"name": "image", "dtype": "float32", "shape": [-1, 3, 224, 224]}],
     "outputs": ["scores"], "labels": ["cat", "dog"], "description": "..."}

Omitted values are determined from the model or stay unknown. The extra file of Ultralytics is
`config.txt`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from torch._C import PyTorchFileReader

from cogwork.drivers.mlmodel.engine import BadModel

_MANIFEST = "extra/cogwork.json"
_ULTRALYTICS_METADATA = "extra/config.txt"
_PICKLE_MAGIC = b"\x80"
"""First byte of files written by torch.save before PyTorch 1.6."""


class TorchFileKind(Enum):
    SCRIPT = "TorchScript"
    PROGRAM = "torch.export"


class ManifestTensor(BaseModel):
    name: str
    shape: tuple[Annotated[int, Field(ge=-1)], ...]
    dtype: str = "float32"


class ModelManifest(BaseModel):
    """The content of `cogwork.json` in a model file."""

    model_config = ConfigDict(frozen=True)

    inputs: tuple[ManifestTensor, ...] = ()
    outputs: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    description: str = ""


class TorchArchive:
    """The archive, read with torch's own reader, so that torch sees exactly what is checked
    here."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._reader = PyTorchFileReader(path)
            self._record_names = frozenset(self._reader.get_all_records())
        except (RuntimeError, ValueError) as error:
            raise (
                _pickle_error(path) if _is_pickle(path) else invalid_model_error(path, error)
            ) from error
        self.kind = self._detect_kind()

    def __contains__(self, name: str) -> bool:
        return name in self._record_names

    def read(self, name: str) -> bytes:
        try:
            return self._reader.get_record(name)
        except RuntimeError as error:
            raise invalid_model_error(self.path, error) from error

    def read_json(self, name: str) -> Any:
        try:
            return json.loads(self.read(name))
        except (ValueError, RecursionError) as error:
            raise invalid_model_error(self.path, error) from error

    def read_manifest(self) -> ModelManifest:
        if _MANIFEST not in self:
            return ModelManifest()
        try:
            return ModelManifest.model_validate_json(self.read(_MANIFEST))
        except ValidationError as error:
            problem = error.errors()[0]
            location = ".".join(map(str, problem["loc"]))
            raise BadModel(
                f"the cogwork.json in {self.path} is invalid: {location}: {problem['msg']}; fix "
                "it, and export the model again"
            ) from error

    def read_ultralytics_metadata(self) -> Mapping[str, Any]:
        """Return the metadata; a model with invalid metadata still runs."""
        try:
            metadata = (
                json.loads(self.read(_ULTRALYTICS_METADATA))
                if _ULTRALYTICS_METADATA in self
                else {}
            )
        except (ValueError, RecursionError):
            return {}
        return metadata if isinstance(metadata, dict) else {}

    def reject_file_access(self) -> None:
        """Raise BadModel if the code of a TorchScript model could access files."""
        for name in self._record_names:
            if name.lower().startswith("code/") and _accesses_files(self.read(name)):
                raise BadModel(
                    f"{self.path} is rejected: its code accesses files of this computer "
                    "(torch.save or torch.from_file); export the model without these calls"
                )

    def _detect_kind(self) -> TorchFileKind:
        if any(name.startswith("data/aotinductor/") for name in self._record_names):
            raise BadModel(
                f"{self.path} contains a compiled library, which is never loaded: {_EXPORT_HINT}, "
                "without AOTInductor"
            )
        if "models/model.json" in self._record_names:
            return TorchFileKind.PROGRAM
        # Reject files of PyTorch 1.0: in them, `model.json` determines which records are code.
        if "constants.pkl" in self._record_names and not _has_ignoring_case(
            self._record_names, "model.json"
        ):
            return TorchFileKind.SCRIPT
        if "data.pkl" in self._record_names:
            raise _pickle_error(self.path)
        raise invalid_model_error(self.path, ValueError("the archive does not contain a model"))


_EXPORT_HINT = (
    "export the model with torch.export.save(torch.export.export(model, (example,)), path) or "
    "torch.jit.save(torch.jit.script(model), path)"
)
_FILE_ACCESS = re.compile(rb"\.(?:[\s\\]|#[^\n]*\n)*(?:save|from_file|load_tensor)\b")
_GETATTR_CALL = re.compile(rb'\bgetattr\((?!torch\b|ops\b)[A-Za-z_][\w.]*, "[^"\\]*"\)')
"""The form in which torch writes attributes with numeric names.

Code with other calls of `getattr` is rejected: the name of a file function could hide in them.
"""
_MAX_DEPTH = 100
"""Maximum nesting of attribute accesses. Code with deeper nesting is rejected."""


def invalid_model_error(path: str, error: Exception) -> BadModel:
    return BadModel(
        f"{path} is not a model that PyTorch can run: {format_error(error)}; check that the file "
        f"is complete, or {_EXPORT_HINT}"
    )


def format_error(error: Exception) -> str:
    """Return the relevant line of an error.

    Errors inside a model start with a traceback, so their last line is relevant. The first line of
    any other error is relevant.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    message = lines[-1] if "TorchScript interpreter" in lines[0] else lines[0]
    return _ERROR_NOISE.split(message.removeprefix("RuntimeError: "))[0][:300]


_ERROR_NOISE = re.compile(r"\. This is an internal|\.? +\(Could this error message be improved")


def _pickle_error(path: str) -> BadModel:
    return BadModel(
        f"{path} contains pickled Python objects (torch.save), which could run any code and are "
        f"never loaded: {_EXPORT_HINT}"
    )


def _is_pickle(path: str) -> bool:
    try:
        with Path(path).open("rb") as file:
            return file.read(1) == _PICKLE_MAGIC
    except OSError:
        return False


def _has_ignoring_case(names: frozenset[str], expected: str) -> bool:
    """Return whether the name exists. Ignores case, as torch does."""
    return any(name.lower() == expected for name in names)


def _accesses_files(code: bytes) -> bool:
    plain = code
    for _ in range(_MAX_DEPTH):
        plain, count = _GETATTR_CALL.subn(b"_", plain)
        if not count:
            break
    return b"getattr" in plain or _FILE_ACCESS.search(plain) is not None
