"""The file of a PyTorch model: a zip archive that is read without unpickling anything.

What torch.save writes is a pickle, which can run anything while it is read: it is refused, and so
is all else in the other kinds of files that would run Python or reach the computer's files. Those
kinds are TorchScript and the programs of torch.export; which of them a file is, its content says.

A model may carry notes, in an extra file of its archive. Ours is `cogwork.json`:

    {"inputs": [{"name": "image", "dtype": "float32", "shape": [-1, 3, 224, 224]}],
     "outputs": ["scores"], "labels": ["cat", "dog"], "description": "..."}

Whatever is left out is found out, or stays unknown. `config.txt` is what Ultralytics writes.
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

_NOTE = "extra/cogwork.json"
_ULTRALYTICS = "extra/config.txt"
_PICKLE = b"\x80"
"""How a file begins that was written by torch.save before PyTorch 1.6."""


class Kind(Enum):
    SCRIPT = "TorchScript"
    PROGRAM = "torch.export"


class TensorNote(BaseModel):
    name: str
    shape: tuple[Annotated[int, Field(ge=-1)], ...]
    dtype: str = "float32"


class Note(BaseModel):
    """What the file says of the model in words of ours."""

    model_config = ConfigDict(frozen=True)

    inputs: tuple[TensorNote, ...] = ()
    outputs: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    description: str = ""


class TorchArchive:
    """Read as torch itself reads it: what is checked here is what torch gets to see."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._reader = PyTorchFileReader(path)
            self._names = frozenset(self._reader.get_all_records())
        except (RuntimeError, ValueError) as error:
            raise _pickled(path) if _is_pickle(path) else not_whole(path, error) from error
        self.kind = self._kind()

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def read(self, name: str) -> bytes:
        try:
            return self._reader.get_record(name)
        except RuntimeError as error:
            raise not_whole(self.path, error) from error

    def read_json(self, name: str) -> Any:
        try:
            return json.loads(self.read(name))
        except (ValueError, RecursionError) as error:
            raise not_whole(self.path, error) from error

    def note(self) -> Note:
        if _NOTE not in self:
            return Note()
        try:
            return Note.model_validate_json(self.read(_NOTE))
        except ValidationError as error:
            fault = error.errors()[0]
            place = ".".join(map(str, fault["loc"]))
            raise BadModel(
                f"the cogwork.json in {self.path} cannot be used: {place}: {fault['msg']}; correct "
                "it, and export the model anew"
            ) from error

    def ultralytics(self) -> Mapping[str, Any]:
        """A model without readable notes still runs."""
        try:
            notes = json.loads(self.read(_ULTRALYTICS)) if _ULTRALYTICS in self else {}
        except (ValueError, RecursionError):
            return {}
        return notes if isinstance(notes, dict) else {}

    def refuse_reach(self) -> None:
        """Raises BadModel where the code of a TorchScript model could reach files."""
        for name in self._names:
            if name.lower().startswith("code/") and _reaches_files(self.read(name)):
                raise BadModel(
                    f"{self.path} is refused: its code reads or writes files of this computer "
                    "(torch.save or torch.from_file); export the model without that"
                )

    def _kind(self) -> Kind:
        if any(name.startswith("data/aotinductor/") for name in self._names):
            raise BadModel(
                f"{self.path} holds a compiled library, which is never loaded: {_HOW}, and not "
                "with AOTInductor"
            )
        if "models/model.json" in self._names:
            return Kind.PROGRAM
        # In files of PyTorch 1.0, `model.json` says where the code is.
        if "constants.pkl" in self._names and not _has(self._names, "model.json"):
            return Kind.SCRIPT
        if "data.pkl" in self._names:
            raise _pickled(self.path)
        raise not_whole(self.path, ValueError("the archive holds no model"))


_HOW = (
    "export the model with torch.export.save(torch.export.export(model, (example,)), path) or "
    "torch.jit.save(torch.jit.script(model), path)"
)
_FILES = re.compile(rb"\.(?:[\s\\]|#[^\n]*\n)*(?:save|from_file|load_tensor)\b")
_ATTRIBUTE = re.compile(rb'\bgetattr\((?!torch\b|ops\b)[A-Za-z_][\w.]*, "[^"\\]*"\)')
"""As torch writes it where the name of a part is a number. Other forms could hide a name."""


def not_whole(path: str, error: Exception) -> BadModel:
    return BadModel(
        f"{path} is not a model that PyTorch can run: {words(error)}; check that the file is "
        f"whole, or {_HOW}"
    )


def words(error: Exception) -> str:
    """Errors inside a model tell the way through its code first; others, much of themselves."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    said = lines[-1] if "TorchScript interpreter" in lines[0] else lines[0]
    return _OF_ITSELF.split(said.removeprefix("RuntimeError: "))[0][:300]


_OF_ITSELF = re.compile(r"\. This is an internal|\.? +\(Could this error message be improved")


def _pickled(path: str) -> BadModel:
    return BadModel(
        f"{path} holds pickled Python objects (torch.save), which could run anything and are never "
        f"loaded: {_HOW}"
    )


def _is_pickle(path: str) -> bool:
    try:
        with Path(path).open("rb") as file:
            return file.read(1) == _PICKLE
    except OSError:
        return False


def _has(names: frozenset[str], wanted: str) -> bool:
    """As torch looks for it, whatever the case."""
    return any(name.lower() == wanted for name in names)


def _reaches_files(code: bytes) -> bool:
    before = b""
    plain = code
    while plain != before:
        before, plain = plain, _ATTRIBUTE.sub(b"_", plain)
    return b"getattr" in plain or _FILES.search(plain) is not None
