"""`cogwork module new`: create a package that runs as a module or inside the server's process."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import inspect
import json
import keyword
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cogwork.cli.terminal import EXIT_OK, EXIT_USAGE, print_error
from cogwork.config.check.diagnostics import did_you_mean
from cogwork.core.errors import CogworkError, InvalidName
from cogwork.core.os_error_text import write_reason
from cogwork.graph.name import Api, ModelName
from cogwork.graph.public_apis import PUBLIC_APIS

TEMPLATES = Path(__file__).parent / "templates"
_COMPLETE_TEMPLATES = ("motor", "sensor")
"""Components whose template works without changes."""
_STUBBED_METHODS = frozenset({"get_readings"})
"""Methods that some SDK classes implement with an empty stub."""
_RESERVED_NAMES = frozenset({"cogwork", "main", "tests", "viam"})
_EXAMPLE_CALLS = {"sensor": "get_readings", "motor": "set_power '{\"power_pct\": 0.5}'"}


class CannotCreateModule(CogworkError):
    """The requested module cannot be created."""


def new(arguments: argparse.Namespace) -> int:
    directory = Path(arguments.directory or arguments.name)
    try:
        plan = plan_scaffold(arguments.name, arguments.api, arguments.model)
        write_files(directory, render_files(plan, directory.absolute()))
    except (CannotCreateModule, InvalidName) as error:
        print_error(str(error))
        return EXIT_USAGE
    print(f"created {directory} with {plan.model}, {plan.noun}. Next steps:")
    for command, meaning in _next_steps(plan, directory):
        print(f"  {command:58}  {meaning}")
    return EXIT_OK


@dataclass(frozen=True, slots=True)
class Scaffold:
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
        """The API in words, such as `a movement sensor`."""
        return f"{_article(self.api.subtype)} {self._bare_noun}"

    @property
    def class_name(self) -> str:
        return _to_camel_case(f"{self.model.family}_{self.model.name}")

    @property
    def is_complete(self) -> bool:
        return self.api.kind == "component" and self.api.subtype in _COMPLETE_TEMPLATES

    def template_variables(self) -> dict[str, str]:
        """Return the values of the @placeholders@ in the templates."""
        contract_file, contract = _contract_names(self.api)
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


def plan_scaffold(name: str, api: str, model: str | None) -> Scaffold:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name):
        raise CannotCreateModule(
            f'invalid package name "{name}": start with a letter, followed by letters, digits, '
            "- and _"
        )
    known = _find_api(api)
    named = ModelName.parse(model or f"acme:{name}:{known.subtype}")
    if named.is_builtin:
        raise CannotCreateModule(
            f'"{model}" is the name of a built-in model; use your own, e.g. acme:demo:motor'
        )
    plan = Scaffold(name, known, named)
    if plan.package in _RESERVED_NAMES | sys.stdlib_module_names or keyword.iskeyword(plan.package):
        raise CannotCreateModule(f'the name "{name}" is reserved in Python; choose another')
    return plan


def render_files(plan: Scaffold, directory: Path) -> Mapping[str, str]:
    variables = plan.template_variables()
    resource = {"name": plan.api.subtype, "api": str(plan.api), "model": str(plan.model)}
    resources = {f"{plan.api.kind}s": [resource]}
    module = {"name": plan.name, "executable_path": str(directory / "run.sh")}
    if plan.is_complete:
        source = _render_template(f"{plan.file}.py", variables)
    else:
        source = _render_template("other.py", {**variables, **_base_class_variables(plan.api)})
    return {
        "meta.json": _to_json(
            {
                "module_id": f"{plan.model.namespace}:{plan.name}",
                "description": f"{plan.model}, {plan.noun}.",
                "entrypoint": "run.sh",
                "models": [{"api": str(plan.api), "model": str(plan.model)}],
            }
        ),
        "run.sh": _render_template("run.sh", variables),
        "main.py": _render_template("main.py", variables),
        "pyproject.toml": _render_template("pyproject.toml", variables),
        f"{plan.package}/__init__.py": _render_template("package.py", variables),
        f"{plan.package}/{plan.file}.py": source,
        f"tests/test_{plan.file}.py": _render_template("test.py", variables),
        "machine.json": _to_json({"modules": [module], **resources}),
        # Use another port than machine.json, so that both configurations can run at the same time.
        "machine-in-process.json": _to_json(
            {"network": {"bind_address": "localhost:8081"}, **resources}
        ),
    }


def write_files(directory: Path, files: Mapping[str, str]) -> None:
    """Write the files into a new or empty folder."""
    try:
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            raise CannotCreateModule(
                f"{directory} already exists; choose another name or set --directory"
            )
        for path, text in files.items():
            file = directory / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            if file.suffix == ".sh":
                file.chmod(0o755)
    except OSError as error:
        raise CannotCreateModule(f"cannot write to {directory}: {write_reason(error)}") from error


def _next_steps(plan: Scaffold, directory: Path) -> Iterator[tuple[str, str]]:
    call = _EXAMPLE_CALLS.get(plan.api.subtype, "get_status") if plan.is_complete else "get_status"
    yield f"cogwork module run {directory}", "run it, and restart it on changes"
    yield f"cogwork call {plan.api.subtype} {call}", "call it from another terminal"
    incomplete = "" if plan.is_complete else " (fails until the methods are implemented)"
    if importlib.util.find_spec("pytest") is None:
        yield "pip install 'cogwork[contracts]'", "install what the test needs"
    yield f"python -m pytest {directory}", f"test it{incomplete}"


def _find_api(text: str) -> Api:
    """Find an API by its full name or its subtype; components come first."""
    for api in PUBLIC_APIS:
        if text in (str(api), api.subtype) and _has_sdk_class(api):
            return api
    known = [api for api in PUBLIC_APIS if _has_sdk_class(api)]
    hint = did_you_mean(text, [api.subtype for api in known]) or (
        f"choose one of {', '.join(api.subtype for api in known)}"
    )
    raise CannotCreateModule(f'the SDK has no class for the API "{text}"; {hint}')


def _has_sdk_class(api: Api) -> bool:
    return PUBLIC_APIS[api].sdk_client is not None


def _contract_names(api: Api) -> tuple[str, str]:
    """Return the file and the class of the API's contract."""
    if api.subtype == "generic" and api.kind == "service":
        return "generic_service", "GenericServiceContract"
    kind = "MLModel" if api.subtype == "mlmodel" else _to_camel_case(api.subtype)
    return api.subtype, f"{kind}Contract"


def _base_class_variables(api: Api) -> dict[str, str]:
    base = _find_base_class(api)
    abstract = base.__abstractmethods__ | (_STUBBED_METHODS & {*vars(base)})
    methods = [getattr(base, name) for name in base.__dict__ if name in abstract]
    inherited = [getattr(base, name) for name in sorted(abstract - {*vars(base)})]
    return {
        "base": base.__name__,
        "base_module": base.__module__.rpartition(".")[0],
        "methods": "".join(map(_render_stub, [*methods, *inherited])),
    }


def _find_base_class(api: Api) -> Any:
    """Return the SDK's base class of the API."""
    importlib.import_module("cogwork.resource.sdk.clean_import")  # import this before the SDK
    package = {"input_controller": "input", "world_state_store": "worldstatestore"}.get(
        api.subtype, api.subtype
    )
    try:
        importlib.import_module(f"viam.{api.kind}s.{package}")
    except ModuleNotFoundError as error:
        raise CannotCreateModule(
            f"the SDK requires {error.name} for this API; run: pip install {error.name}"
        ) from error
    from viam.resource.registry import Registry
    from viam.resource.types import API

    return Registry.lookup_api(API(api.namespace, api.kind, api.subtype)).resource_type


def _render_stub(method: Any) -> str:
    define = "async def" if inspect.iscoroutinefunction(method) else "def"
    purpose = _first_sentence(method)
    lines = [
        "",
        f"    {define} {method.__name__}({', '.join(_format_parameters(method))}):",
        *([f'        """{purpose}"""'] if purpose else []),
        f'        raise not_implemented("{method.__name__}")',
        "",
    ]
    return "\n".join(lines)


def _format_parameters(method: Any) -> Iterator[str]:
    """Yield the parameters that the SDK passes, without the rarely used ones."""
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


def _render_template(template: str, variables: Mapping[str, str]) -> str:
    text = (TEMPLATES / f"{template}.txt").read_text()
    for name, value in variables.items():
        text = text.replace(f"@{name}@", value)
    return text


def _to_json(value: Any) -> str:
    return f"{json.dumps(value, indent=2)}\n"


def _to_camel_case(text: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"[_-]+", text))


def _article(noun: str) -> str:
    return "an" if noun[0] in "aeio" else "a"
