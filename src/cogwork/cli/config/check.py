"""`cogwork config check`, `cogwork config diff` and `cogwork config schema`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cogwork.cli.terminal import (
    EXIT_FAILURE,
    EXIT_OK,
    EXIT_USAGE,
    paint,
    print_error,
    print_json,
    print_text,
)
from cogwork.config.check import diagnostic_format
from cogwork.config.check import diff as difference
from cogwork.config.check.load_context import LoadContext
from cogwork.config.check.loader import LoadedConfig, load, load_unreadable
from cogwork.config.schema.codes import UNREADABLE
from cogwork.config.schema.json_schema import machine_schema
from cogwork.config.text.file import MAX_FILE_SIZE, Unreadable, decode_text, read_text
from cogwork.core.paths import cogwork_home
from cogwork.drivers.builtin_models import builtin_models
from cogwork.graph.name import ResourceName
from cogwork.resource.registry import Registry, entry_point_models
from cogwork.serving.certificate import find_certificate_warning


def check(arguments: argparse.Namespace) -> int:
    registry = build_registry()
    loaded = _load(arguments.file, registry, arguments.file)
    missing = _find_missing_libraries(loaded, registry)
    if arguments.json:
        libraries = [{"resource": str(name), "message": why} for name, why in missing.items()]
        report = {**_report(loaded, arguments.file), "missing_libraries": libraries}
        print_json({"file": arguments.file, **report})
        return _exit_code(loaded)
    for fault in loaded.diagnostics:
        print(diagnostic_format.as_text(fault, arguments.file, paint))
    if not _is_unreadable(loaded):
        for name, why in missing.items():
            print_text(f"{name} cannot run on this computer: {why}")
        print(_format_verdict(loaded, arguments.file, registry, missing))
    return _exit_code(loaded)


def _find_missing_libraries(loaded: LoadedConfig, registry: Registry) -> dict[ResourceName, str]:
    """Return, for each resource that lacks a library here, which one."""
    return {
        spec.name: why
        for spec in loaded.result.specs
        if spec.fault is None
        and (why := registry.find_missing_library(spec.name.api, spec.model)) is not None
    }


def diff(arguments: argparse.Namespace) -> int:
    registry = build_registry()
    # The new text would replace the old one, so its relative paths refer to the same directory.
    home = next((each for each in (arguments.old, arguments.new) if Path(each).is_file()), None)
    old, new = (_load(file, registry, home) for file in (arguments.old, arguments.new))
    refused = old.is_refused or new.is_refused
    change = None if refused else difference.diff(old.result, new.result, registry)
    if arguments.json:
        print_json(
            {
                "old": {"file": arguments.old, **_report(old, arguments.old)},
                "new": {"file": arguments.new, **_report(new, arguments.new)},
                "change": difference.as_json(change) if change is not None else None,
            }
        )
    elif change is None:
        for file, side in ((arguments.old, old), (arguments.new, new)):
            _print_if_refused(side, file)
    else:
        print(difference.as_text(change))
        if new.diagnostics:
            found = diagnostic_format.summarize(new.diagnostics)
            print(f"{arguments.new} has {found}; run: cogwork config check {arguments.new}")
    return max(_exit_code(old), _exit_code(new)) if refused else _exit_code(new)


def schema(arguments: argparse.Namespace) -> int:
    del arguments
    print_json(machine_schema(build_registry()))
    return EXIT_OK


def build_registry() -> Registry:
    return Registry([*builtin_models(), *entry_point_models()])


def read_argument(file: str) -> str:
    """Return the text of a file, or of standard input for `-`. Raise Unreadable."""
    if file == "-":
        return decode_text(sys.stdin.buffer.read(MAX_FILE_SIZE + 1))
    return read_text(Path(file))


def _load(file: str, registry: Registry, home: str | None) -> LoadedConfig:
    """Load a text; its relative paths refer to the directory of the file `home`."""
    try:
        text = read_argument(file)
    except Unreadable as error:
        return load_unreadable(error)
    context = LoadContext(
        registry,
        cogwork_home(os.environ),
        os.environ,
        find_certificate_warning=lambda certificate, key: find_certificate_warning(
            certificate, key, time.time()
        ),
    )
    return load(text, context.in_directory_of(home if home != "-" else None))


def _report(loaded: LoadedConfig, file: str) -> dict[str, Any]:
    return {
        "refused": loaded.is_refused,
        "diagnostics": [diagnostic_format.as_json(fault, file) for fault in loaded.diagnostics],
    }


def _exit_code(loaded: LoadedConfig) -> int:
    if _is_unreadable(loaded):
        return EXIT_USAGE
    return EXIT_FAILURE if loaded.has_errors else EXIT_OK


def _is_unreadable(loaded: LoadedConfig) -> bool:
    return any(fault.diagnostic.code is UNREADABLE for fault in loaded.diagnostics)


def _format_verdict(
    loaded: LoadedConfig, file: str, registry: Registry, missing: Mapping[ResourceName, str]
) -> str:
    listed = loaded.result.resource_count
    would = f"{_count_running(loaded, registry, missing)} of {listed} resources would run"
    if not loaded.diagnostics:
        if missing:
            return f"{file} is valid; {would} on this computer"
        return f"{file} is valid: {listed} resource{'' if listed == 1 else 's'}"
    found = diagnostic_format.summarize(loaded.diagnostics)
    # Name the code of the most severe diagnostic for `cogwork explain`.
    worst = min(
        (fault.diagnostic.code for fault in loaded.diagnostics), key=lambda code: code.severity
    )
    explain = f"For details, run: cogwork explain {worst.id}"
    if loaded.is_refused:
        return f"{found}; a machine rejects this file and keeps its configuration. {explain}"
    return f"{found}{f'; {would}' if listed else ''}. {explain}"


def _count_running(
    loaded: LoadedConfig, registry: Registry, missing: Mapping[ResourceName, str]
) -> str:
    """Return the number of resources that would run. Return a range if a module is missing that
    some of the resources may need."""
    fewest, most = (
        len(loaded.result.specs)
        - len(difference.find_blocked(loaded.result, registry, missing, optimistic=optimistic))
        for optimistic in (False, True)
    )
    return str(most) if fewest == most else f"{fewest} to {most}"


def _print_if_refused(loaded: LoadedConfig, file: str) -> None:
    if loaded.is_refused:
        for fault in loaded.diagnostics:
            print_error(diagnostic_format.as_text(fault, file))
        print_error(f"{file} would be rejected; fix it first")
