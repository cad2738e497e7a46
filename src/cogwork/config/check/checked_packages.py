"""The packages of a configuration: their directories, and the entries that refer to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cogwork.config.check.diagnostic_collector import DiagnosticCollector
from cogwork.config.check.diagnostics import Effect
from cogwork.config.check.load_context import LoadContext
from cogwork.config.check.packages import (
    find_expected_paths,
    is_inside,
    locate_packages,
    warn_missing_packages,
)
from cogwork.config.schema import codes
from cogwork.config.schema.cloud import CloudConfig
from cogwork.config.schema.machine import PackageConfig
from cogwork.config.text.placeholders import PackagePath, fill_placeholders
from cogwork.config.text.positions import Json, Pointer


class CheckedPackages:
    def __init__(self, context: LoadContext, diagnostics: DiagnosticCollector) -> None:
        self._context = context
        self._diagnostics = diagnostics
        self._paths: dict[str, PackagePath] = {}
        self.present: frozenset[str] = frozenset()
        """The names of the packages that are installed on this computer."""
        self._expected_paths: frozenset[str] = frozenset()
        """The directories of packages that the machine will download."""
        self._users: dict[Pointer, set[str]] = {}

    @property
    def users(self) -> Mapping[Pointer, frozenset[str]]:
        """The names of the packages that each resource, module or process refers to, by JSON
        pointer."""
        return {at: frozenset(names) for at, names in self._users.items() if names}

    def locate(
        self, packages: list[PackageConfig], pointers: Sequence[Pointer], cloud: CloudConfig | None
    ) -> None:
        paths = self._paths = locate_packages(packages, self._context.home)
        present = self.present = frozenset(
            name for name, each in paths.items() if self._diagnostics.has_directory(each.path)
        )
        warn_missing_packages(packages, pointers, paths, present, cloud, self._diagnostics)
        self._expected_paths = find_expected_paths(packages, paths, present, cloud)

    def fill_placeholders(
        self,
        item: Json,
        at: Pointer,
        keys: tuple[str, ...],
        effect: Effect = Effect.UNHEALTHY,
    ) -> tuple[Json, bool]:
        """Fill in the placeholders under `keys`. Return the item, and whether every placeholder was
        valid.

        `effect` is the effect of an invalid placeholder on the machine.
        """
        is_complete = True
        if not isinstance(item, dict):
            return item, is_complete
        for key in keys:
            if key not in item:
                continue
            value, faults = fill_placeholders(
                item[key],
                self._paths,
                self._context.environment,
                self._users.setdefault(at, set()).add,
            )
            if value is not item[key]:
                item = {**item, key: value}
            for fault in faults:
                is_complete = False
                self._diagnostics.add(
                    codes.BAD_PLACEHOLDER, fault.message, (*at, key, *fault.pointer), effect
                )
        return item, is_complete

    def require_file(self, text: str, at: Pointer, *, or_folder: bool = False) -> str:
        """Return the path of a file. Report the file if it is missing, unless it belongs to a
        package that the machine will download."""
        if is_inside(text, self._expected_paths):
            return text
        return self._diagnostics.require_file(text, at, Effect.UNHEALTHY, or_folder=or_folder)
