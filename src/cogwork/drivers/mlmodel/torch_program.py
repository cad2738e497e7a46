"""Programs of torch.export, taken apart and put together again before torch reads them.

torch.export.load runs Python that a file brings with it: in pickles of sample inputs and of
weights, in the formulas of its shapes and in its guards, which are evaluated, and in its names,
which become source. So only what a program consists of is taken over, every text of it held
against what torch writes there, and what a run can do without is left behind: all pickles, all
guards, and what is told of the source the program came from.
"""

from __future__ import annotations

import io
import json
import re
import threading
from collections.abc import Iterator
from typing import Any

from torch._C import PyTorchFileWriter
from torch.export import ExportedProgram
from torch.fx import GraphModule

from cogwork.drivers.mlmodel.engine import BadModel
from cogwork.drivers.mlmodel.torch_archive import TorchArchive, not_whole

_MODEL = "models/model.json"
_PARTS = (
    ("data/weights/", "model_weights_config.json", re.compile(r"weight_[0-9]+")),
    ("data/constants/", "model_constants_config.json", re.compile(r"tensor_[0-9]+")),
)
_SAMPLES = "data/sample_inputs/model.pt"
_ONE_AT_A_TIME = threading.Lock()
"""What reads programs keeps its state in the module."""


def load_program(archive: TorchArchive) -> tuple[ExportedProgram, GraphModule]:
    """With what runs it. Raises BadModel."""
    records = dict(_records(archive))
    with _ONE_AT_A_TIME:
        # It brings a compiler along: whoever runs TorchScript does without.
        from torch.export.pt2_archive._package import load_pt2

        try:
            program = load_pt2(_archive_of(records)).exported_programs["model"]
            # Guards would be made into source; the shapes are checked all the same.
            return program, program.module(check_guards=False)
        # It is Python all the way, and raises whatever it stumbles over.
        except Exception as error:
            raise not_whole(archive.path, error) from error


def _archive_of(records: dict[str, bytes]) -> io.BytesIO:
    file = io.BytesIO()
    writer = PyTorchFileWriter(file)
    for name, data in records.items():
        writer.write_record(name, data, len(data))
    writer.write_end_of_file()
    file.seek(0)
    return file


def _records(archive: TorchArchive) -> Iterator[tuple[str, bytes]]:
    for name in ("archive_format", "archive_version"):
        yield name, archive.read(name)
    yield _MODEL, _checked_json(archive, _MODEL)
    yield _SAMPLES, b""
    for folder, config, expected in _PARTS:
        yield folder + config, _checked_json(archive, folder + config)
        for path in _tensors(archive, folder + config, expected):
            yield folder + path, archive.read(folder + path)


def _tensors(archive: TorchArchive, config: str, expected: re.Pattern[str]) -> set[str]:
    try:
        parts = list(archive.read_json(config)["config"].values())
        pickled = any(each["use_pickle"] is not False for each in parts)
        paths = {each["path_name"] for each in parts}
        known = all(expected.fullmatch(path) for path in paths)
    except (LookupError, TypeError, AttributeError) as error:
        raise not_whole(archive.path, error) from error
    if pickled or not known:
        raise BadModel(
            f"{archive.path} is refused: it holds pickled Python objects, which could run "
            "anything; export the model with plain tensors as its weights"
        )
    return paths


def _checked_json(archive: TorchArchive, name: str) -> bytes:
    read = archive.read_json(name)
    try:
        return json.dumps(_checked(read, "")).encode()
    except _Unexpected as found:
        raise BadModel(
            f"{archive.path} is refused: it says {found} where no program of plain tensors does, "
            "and torch could run that; export the model anew"
        ) from None
    except RecursionError as error:
        raise not_whole(archive.path, error) from error


class _Unexpected(ValueError):
    pass


def _checked(value: Any, key: str) -> Any:
    match value:
        case {"type": str(), "index": int() | None, **rest} if not rest:
            return {"type": "cpu", "index": None}  # wherever the model was trained
        case dict():
            return {
                _text("", name): type(each)() if _left_behind(name, value) else _checked(each, name)
                for name, each in value.items()
            }
        case list():
            return [_checked(each, key) for each in value]
        case str():
            return _text(key, value)
    return value


def _left_behind(name: str, parent: dict[str, Any]) -> bool:
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
_FREE = ("as_string", "as_strings")
"""Arguments of operators, which become literals."""


def _text(key: str, text: str) -> str:
    if key in _FREE:
        return text
    if key in ("in_spec", "out_spec"):
        return _tree(text)
    expected = {"target": _OPERATOR, "as_operator": _OPERATOR, "expr_str": _FORMULA}.get(key, _NAME)
    if not expected.fullmatch(text):
        raise _Unexpected(json.dumps(text[:80]))
    return text


_BRANCHES = ("builtins.tuple", "builtins.list", "builtins.dict", "collections.OrderedDict")


def _tree(text: str) -> str:
    """How the inputs and outputs are nested: JSON in JSON."""
    try:
        protocol, root = json.loads(text)
        if protocol == 1 and _is_tree(root):
            return text
    except (ValueError, TypeError, AttributeError, RecursionError):
        pass
    raise _Unexpected(json.dumps(text[:80]))


def _is_tree(node: dict[str, Any]) -> bool:
    kind, context, branches = node.get("type"), node.get("context"), node.get("children_spec")
    if not isinstance(branches, list) or not all(map(_is_tree, branches)):
        return False
    if kind is None:
        return context is None and not branches
    names = json.loads(context or "")
    return kind in _BRANCHES and (
        names is None or all(isinstance(each, str) and _NAME.fullmatch(each) for each in names)
    )
