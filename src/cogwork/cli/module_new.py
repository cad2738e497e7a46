"""`cogwork module new`: a package that runs in a process of its own and in that of a server."""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import keyword
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cogwork.cli.terminal import FINE, USAGE, complain
from cogwork.config.apis import PUBLIC_APIS
from cogwork.config.diagnose import did_you_mean
from cogwork.core.errors import CogworkError, InvalidName
from cogwork.graph.name import Api, ModelName

TEMPLATES = Path(__file__).parent / "templates"
_WRITTEN = ("motor", "sensor")
"""Components of which there is a class that works."""
_WITHOUT_A_CLASS = frozenset({"base_remote_control", "data_manager", "shell", "video"})
"""Services that the SDK has no class for."""
_SILENT = frozenset({"get_readings"})
"""Methods of which some classes of the SDK have one that answers nothing."""
_TAKEN = frozenset({"cogwork", "main", "tests", "viam"})
_CALLS = {"sensor": "get_readings", "motor": "set_power '{\"power_pct\": 0.5}'"}


class NoModule(CogworkError):
    """What the author asked for cannot be written."""


def new(arguments: argparse.Namespace) -> int:
    directory = Path(arguments.directory or arguments.name)
    try:
        plan = planned(arguments.name, arguments.api, arguments.model)
        write(directory, files_of(plan, directory.absolute()))
    except (NoModule, InvalidName) as error:
        complain(str(error))
        return USAGE
    print(f"wrote {directory}: {plan.model}, {plan.noun}. What next:")
    for command, meaning in _next(plan, directory):
        print(f"  {command:58}  {meaning}")
    return FINE


@dataclass(frozen=True, slots=True)
class Plan:
    name: str
    api: Api
    model: ModelName

    @property
    def package(self) -> str:
        return self.name.replace("-", "_").lower()

    @property
    def file(self) -> str:
        return self.api.subtype

    @property
    def noun(self) -> str:
        """The API, as people say it."""
        return f"{_article(self.api.subtype)} {self._bare_noun}"

    @property
    def class_name(self) -> str:
        return _camel(f"{self.model.family}_{self.model.name}")

    @property
    def is_written(self) -> bool:
        return self.api.kind == "component" and self.api.subtype in _WRITTEN

    def words(self) -> dict[str, str]:
        """What stands in the templates between two @."""
        contract_file, contract = _contract(self.api)
        return {
            "project": self.name,
            "package": self.package,
            "file": self.file,
            "class": self.class_name,
            "model": str(self.model),
            "noun": self._bare_noun,
            "article": _article(self.api.subtype),
            "Article": _article(self.api.subtype).capitalize(),
            "contract_file": contract_file,
            "contract": contract,
        }

    @property
    def _bare_noun(self) -> str:
        words = self.api.subtype.replace("_", " ")
        return f"{words} service" if self.api.kind == "service" else words


def planned(name: str, api: str, model: str | None) -> Plan:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name):
        raise NoModule(
            f'"{name}" cannot be the name of a package: start with a letter, and go on with '
            "letters, digits, - and _"
        )
    known = _known_api(api)
    named = ModelName.parse(model or f"acme:{name}:{known.subtype}")
    if named.is_builtin:
        raise NoModule(
            f'"{model}" is a built-in model; write one of yours, such as acme:demo:motor'
        )
    plan = Plan(name, known, named)
    if plan.package in _TAKEN | sys.stdlib_module_names or keyword.iskeyword(plan.package):
        raise NoModule(f'the name "{name}" is taken in Python: choose another')
    return plan


def files_of(plan: Plan, directory: Path) -> Mapping[str, str]:
    words = plan.words()
    resource = {"name": plan.api.subtype, "api": str(plan.api), "model": str(plan.model)}
    resources = {f"{plan.api.kind}s": [resource]}
    module = {"name": plan.name, "executable_path": str(directory / "run.sh")}
    if plan.is_written:
        written = _filled(f"{plan.file}.py", words)
    else:
        written = _filled("other.py", {**words, **_base_words(plan.api)})
    return {
        "meta.json": _json(
            {
                "module_id": f"{plan.model.namespace}:{plan.name}",
                "description": f"{plan.model}, {plan.noun}.",
                "entrypoint": "run.sh",
                "models": [{"api": str(plan.api), "model": str(plan.model)}],
            }
        ),
        "run.sh": _filled("run.sh", words),
        "main.py": _filled("main.py", words),
        "pyproject.toml": _filled("pyproject.toml", words),
        f"{plan.package}/__init__.py": _filled("package.py", words),
        f"{plan.package}/{plan.file}.py": written,
        f"tests/test_{plan.file}.py": _filled("test.py", words),
        "machine.json": _json({"modules": [module], **resources}),
        # On a port of its own, so that both ways run beside one another.
        "machine-in-process.json": _json(
            {"network": {"bind_address": "localhost:8081"}, **resources}
        ),
    }


def write(directory: Path, files: Mapping[str, str]) -> None:
    """All of them, into a folder of their own."""
    try:
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            raise NoModule(f"{directory} is there already: give another name, or --directory")
        for path, text in files.items():
            file = directory / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            if file.suffix == ".sh":
                file.chmod(0o755)
    except OSError as error:
        raise NoModule(f"{directory} cannot be written to: {error.strerror}") from error


def _next(plan: Plan, directory: Path) -> Iterator[tuple[str, str]]:
    call = _CALLS.get(plan.api.subtype, "get_status") if plan.is_written else "get_status"
    yield f"cogwork module run {directory}", "run it, and again whenever you save"
    yield f"cogwork call {plan.api.subtype} {call}", "use it, from another terminal"
    unwritten = "" if plan.is_written else ": it fails until the methods are written"
    yield f"python -m pytest {directory}", f"test it{unwritten}"


def _known_api(text: str) -> Api:
    """By its whole name or its last word; components first."""
    for api in PUBLIC_APIS:
        if text in (str(api), api.subtype) and _is_in_the_sdk(api):
            return api
    known = [api for api in PUBLIC_APIS if _is_in_the_sdk(api)]
    hint = did_you_mean(text, [api.subtype for api in known]) or (
        f"there are {', '.join(api.subtype for api in known)}"
    )
    raise NoModule(f'the SDK has no class for the API "{text}"; {hint}')


def _is_in_the_sdk(api: Api) -> bool:
    return api.kind == "component" or api.subtype not in _WITHOUT_A_CLASS


def _contract(api: Api) -> tuple[str, str]:
    """The file and the class of its contract."""
    if api.subtype == "generic" and api.kind == "service":
        return "generic_service", "GenericServiceContract"
    kind = "MLModel" if api.subtype == "mlmodel" else _camel(api.subtype)
    return api.subtype, f"{kind}Contract"


def _base_words(api: Api) -> dict[str, str]:
    base = _base(api)
    unwritten = base.__abstractmethods__ | (_SILENT & {*vars(base)})
    methods = [getattr(base, name) for name in base.__dict__ if name in unwritten]
    inherited = [getattr(base, name) for name in sorted(unwritten - {*vars(base)})]
    return {
        "base": base.__name__,
        "base_module": base.__module__.rpartition(".")[0],
        "methods": "".join(map(_unwritten, [*methods, *inherited])),
    }


def _base(api: Api) -> Any:
    """The SDK's class of an API."""
    importlib.import_module("cogwork.resource.sdk")  # ahead of whatever else imports the SDK
    package = {"input_controller": "input", "world_state_store": "worldstatestore"}.get(
        api.subtype, api.subtype
    )
    try:
        importlib.import_module(f"viam.{api.kind}s.{package}")
    except ModuleNotFoundError as error:
        raise NoModule(f"the SDK needs {error.name} for that: pip install {error.name}") from error
    from viam.resource.registry import Registry
    from viam.resource.types import API

    return Registry.lookup_api(API(api.namespace, api.kind, api.subtype)).resource_type


def _unwritten(method: Any) -> str:
    word = "async def" if inspect.iscoroutinefunction(method) else "def"
    purpose = _first_sentence(method)
    lines = [
        "",
        f"    {word} {method.__name__}({', '.join(_parameters(method))}):",
        *([f'        """{purpose}"""'] if purpose else []),
        f'        raise unwritten("{method.__name__}")',
        "",
    ]
    return "\n".join(lines)


def _parameters(method: Any) -> Iterator[str]:
    """As the SDK passes them, without what hardly anybody uses."""
    marked = False
    for each in inspect.signature(method).parameters.values():
        if each.name in ("extra", "timeout", "metadata") or each.kind is each.VAR_KEYWORD:
            continue
        if each.kind is each.KEYWORD_ONLY and not marked:
            marked = True
            yield "*"
        if each.kind is each.VAR_POSITIONAL:
            marked = True
            yield f"*{each.name}"
        elif each.default is each.empty:
            yield each.name
        else:
            simple = each.default is None or isinstance(each.default, bool | int | float | str)
            yield f"{each.name}={each.default!r}" if simple else f"{each.name}=None"
    yield "**_"


def _first_sentence(method: Any) -> str:
    text = " ".join((inspect.getdoc(method) or "").partition("\n\n")[0].split())
    sentence = re.split(r"(?<=\.)\s", text)[0].replace('"""', "").replace("\\", "").strip(' "')
    return sentence if len(sentence) <= 80 else f"{sentence[:77].rsplit(' ', 1)[0]}…"


def _filled(template: str, words: Mapping[str, str]) -> str:
    text = (TEMPLATES / f"{template}.txt").read_text()
    for word, meaning in words.items():
        text = text.replace(f"@{word}@", meaning)
    return text


def _json(value: Any) -> str:
    return f"{json.dumps(value, indent=2)}\n"


def _camel(text: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"[_-]+", text))


def _article(noun: str) -> str:
    return "an" if noun[0] in "aeio" else "a"
