"""The sanitizer of torch.export programs, which runs before torch loads them.

torch.export.load runs Python code from the file: in pickles of sample inputs and of weights, in
shape expressions and guards, which are evaluated, and in names, which become source code.

So only the parts that make up the program are copied, and each text is checked against the format
that torch writes. Everything that a run does not need is dropped: all pickles, all guards, and the
references to the original source code.
"""

from __future__ import annotations

import io
import json
import re
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from torch._C import PyTorchFileWriter
from torch.export import ExportedProgram
from torch.fx import GraphModule

from cogwork.drivers.mlmodel.engine import BadModel
from cogwork.drivers.mlmodel.torch_archive import TorchArchive, invalid_model_error

_MODEL_RECORD = "models/model.json"
_TENSOR_FOLDERS = (
    ("data/weights/", "model_weights_config.json", re.compile(r"weight_[0-9]+")),
    ("data/constants/", "model_constants_config.json", re.compile(r"tensor_[0-9]+")),
)
_SAMPLE_INPUTS = "data/sample_inputs/model.pt"
_LOAD_LOCK = threading.Lock()
"""torch's loader keeps global state, so only one file is loaded at a time."""


def load_program(archive: TorchArchive) -> tuple[ExportedProgram, GraphModule]:
    """Load the program and the module that runs it, or raise BadModel."""
    records = dict(_safe_records(archive))
    with _LOAD_LOCK:
        read = import_reader()
        try:
            program = read(_write_archive(records)).exported_programs["model"]
            # Do not check the guards: torch would compile them from source. Even without guards,
            # torch checks shapes.
            return program, program.module(check_guards=False)
        # The loader is Python code and may raise any exception.
        except Exception as error:
            raise invalid_model_error(archive.path, error) from error


def import_reader() -> Callable[[io.BytesIO], Any]:
    """Import torch's reader of programs, but not torch's compiler.

    The import happens here because TorchScript models do not need the reader. The compiler would
    import Triton, a library for GPU kernels. Triton contains a copy of LLVM that crashes the
    process if TensorFlow has loaded another copy.
    """
    sys.modules.setdefault("triton", None)  # type: ignore[arg-type] # it cannot be imported then
    from torch.export.pt2_archive._package import load_pt2

    return load_pt2


def _write_archive(records: dict[str, bytes]) -> io.BytesIO:
    file = io.BytesIO()
    writer = PyTorchFileWriter(file)
    for name, data in records.items():
        writer.write_record(name, data, len(data))
    writer.write_end_of_file()
    file.seek(0)
    return file


def _safe_records(archive: TorchArchive) -> Iterator[tuple[str, bytes]]:
    for name in ("archive_format", "archive_version"):
        yield name, archive.read(name)
    yield _MODEL_RECORD, _sanitize_json(archive, _MODEL_RECORD)
    yield _SAMPLE_INPUTS, b""
    for folder, config, expected in _TENSOR_FOLDERS:
        yield folder + config, _sanitize_json(archive, folder + config)
        for path in _tensor_paths(archive, folder + config, expected):
            yield folder + path, archive.read(folder + path)


def _tensor_paths(archive: TorchArchive, config: str, expected: re.Pattern[str]) -> set[str]:
    try:
        parts = list(archive.read_json(config)["config"].values())
        pickled = any(each["use_pickle"] is not False for each in parts)
        paths = {each["path_name"] for each in parts}
        known = all(expected.fullmatch(path) for path in paths)
    except (LookupError, TypeError, AttributeError) as error:
        raise invalid_model_error(archive.path, error) from error
    if pickled or not known:
        raise BadModel(
            f"{archive.path} is rejected: it contains pickled Python objects, which could run any "
            "code; export the model with plain tensors as its weights"
        )
    return paths


def _sanitize_json(archive: TorchArchive, name: str) -> bytes:
    read = archive.read_json(name)
    try:
        return json.dumps(_sanitize(read, "")).encode()
    except _UnexpectedText as found:
        raise BadModel(
            f"{archive.path} is rejected: it contains the unexpected text {found}, which torch "
            "might run as code; export the model again"
        ) from None
    except RecursionError as error:
        raise invalid_model_error(archive.path, error) from error


class _UnexpectedText(ValueError):
    pass


def _sanitize(value: Any, key: str) -> Any:
    match value:
        case {"type": str(), "index": int() | None, **rest} if not rest:
            return {"type": "cpu", "index": None}  # use the CPU, whatever the training device
        case dict():
            return {
                _check_text("", name): type(each)()
                if _is_dropped(name, value)
                else _sanitize(each, name)
                for name, each in value.items()
            }
        case list():
            return [_sanitize(each, key) for each in value]
        case str():
            return _check_text(key, value)
    return value


def _is_dropped(name: str, parent: dict[str, Any]) -> bool:
    if name == "guards_code":
        return "graph_module" in parent
    return name == "metadata" and ("target" in parent or "graph" in parent)


_NAME = re.compile(r"[\w.+-]*", re.ASCII)
_OPERATOR = re.compile(
    r"torch\.ops\.(?:aten|prims|quantized_decomposed|torchvision)\.(?!save\b|from_file\b)\w+\.\w+"
    r"|torch\.ops\.higher_order\.(?:cond|while_loop|wrap_with_(?:set_grad_enabled|autocast))"
    r"|_operator\.(?:getitem|eq|ne|le|ge|lt|gt|neg|pos|mul|add|sub|floordiv|mod|pow|truediv"
    r"|and_|or_|lshift|rshift)"
    r"|math\.(?:ceil|floor|trunc)|torch\._?sym_[a-z_]+",
    re.ASCII,
)
_FORMULA = re.compile(
    r"(?:(?:Symbol|Integer|Float|Rational|Add|Mul|Pow|Max|Min|Abs|floor|ceiling|And|Or|Not"
    r"|Equality|Unequality|GreaterThan|LessThan|StrictGreaterThan|StrictLessThan"
    r"|FloorDiv|ModularIndexing|Where|PythonMod|Mod|CleanDiv|CeilToInt|FloorToInt|CeilDiv|LShift"
    r"|RShift|PowByNatural|FloatPow|FloatTrueDiv|IntTrueDiv|IsNonOverlappingAndDenseIndicator"
    r"|TruncToFloat|TruncToInt|RoundToInt|RoundDecimal|ToFloat|Identity"
    r"|true|false|True|False|positive|nonnegative|negative|integer|real|precision)\b"
    r"|'[\w.+-]*'|\b[0-9]+\b|[-(),= ])*",
    re.ASCII,
)
_FREE_TEXT_KEYS = ("as_string", "as_strings")
"""Keys of operator arguments that may be any text, because torch turns them into literals."""


def _check_text(key: str, text: str) -> str:
    if key in _FREE_TEXT_KEYS:
        return text
    if key in ("in_spec", "out_spec"):
        return _check_tree(text)
    expected = {"target": _OPERATOR, "as_operator": _OPERATOR, "expr_str": _FORMULA}.get(key, _NAME)
    if not expected.fullmatch(text):
        raise _UnexpectedText(json.dumps(text[:80]))
    return text


_CONTAINER_TYPES = ("builtins.tuple", "builtins.list", "builtins.dict", "collections.OrderedDict")


def _check_tree(text: str) -> str:
    """Check the nesting of inputs and outputs, which is JSON inside JSON."""
    try:
        protocol, root = json.loads(text)
        if protocol == 1 and _is_valid_tree(root):
            return text
    except (ValueError, TypeError, AttributeError, RecursionError):
        pass
    raise _UnexpectedText(json.dumps(text[:80]))


def _is_valid_tree(node: dict[str, Any]) -> bool:
    kind, context, branches = node.get("type"), node.get("context"), node.get("children_spec")
    if not isinstance(branches, list) or not all(map(_is_valid_tree, branches)):
        return False
    if kind is None:
        return context is None and not branches
    names = json.loads(context or "")
    return kind in _CONTAINER_TYPES and (
        names is None or all(isinstance(each, str) and _NAME.fullmatch(each) for each in names)
    )
