"""Fill the placeholders `${packages.…}` and `${environment.…}` in parsed values."""

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import NamedTuple

from cogwork.config.text.positions import Json, Pointer

DEFAULT_PACKAGE_TYPE = "ml_model"


class PackagePath(NamedTuple):
    type: str
    path: str


class PlaceholderFault(NamedTuple):
    pointer: Pointer
    placeholder: str
    message: str


def fill_placeholders(
    value: Json,
    packages: Mapping[str, PackagePath],
    environment: Mapping[str, str],
    on_package: Callable[[str], None] = lambda _name: None,
) -> tuple[Json, tuple[PlaceholderFault, ...]]:
    """Fill the placeholders in all strings except keys; leave invalid ones as they are.

    Unchanged values are returned as the same object; the input is never modified. `on_package`
    gets the name of each package that is used.
    """
    filler = _Filler(packages, environment, on_package)
    return filler.fill(value, ()), tuple(filler.faults)


def find_environment_placeholders(text: str) -> list[str]:
    """Return the environment variables that placeholders in the text refer to."""
    found = (_ENVIRONMENT_RE.fullmatch(match[1]) for match in _PLACEHOLDER_RE.finditer(text))
    return [match[1] for match in found if match is not None]


class _Unfillable(Exception):
    pass


# `[^}]*` includes nested `${`, because the next brace closes the outermost one.
_PLACEHOLDER_RE = re.compile(r"\$\{([^}]*+)\}")
_PACKAGES_RE = re.compile(r"packages(\.(?P<type>[^.]+))?\.(?P<name>[\w:/-]+)")
_ENVIRONMENT_RE = re.compile(r"environment\.([\w:/-]+)")


class _Filler:
    def __init__(
        self,
        packages: Mapping[str, PackagePath],
        environment: Mapping[str, str],
        on_package: Callable[[str], None],
    ) -> None:
        self.on_package = on_package
        self.packages = packages
        self.environment = environment
        self.faults: list[PlaceholderFault] = []

    def fill(self, value: Json, pointer: Pointer) -> Json:
        if isinstance(value, str):
            return self._fill_text(value, pointer)
        if isinstance(value, list):
            return self._fill_list(value, pointer)
        if isinstance(value, dict):
            return self._fill_object(value, pointer)
        return value

    def _fill_list(self, items: list[Json], pointer: Pointer) -> Json:
        filled = [self.fill(item, (*pointer, index)) for index, item in enumerate(items)]
        same = all(new is old for new, old in zip(filled, items, strict=True))
        return items if same else filled

    def _fill_object(self, members: dict[str, Json], pointer: Pointer) -> Json:
        filled = {key: self.fill(value, (*pointer, key)) for key, value in members.items()}
        same = all(filled[key] is value for key, value in members.items())
        return members if same else filled

    def _fill_text(self, text: str, pointer: Pointer) -> str:
        if "${" not in text:
            return text
        # Stop at the last brace: searching past it from every `${` would take quadratic time.
        end = text.rfind("}") + 1
        filled = _PLACEHOLDER_RE.sub(lambda match: self._fill_match(match, pointer), text[:end])
        return text if filled == text[:end] else filled + text[end:]

    def _fill_match(self, match: re.Match[str], pointer: Pointer) -> str:
        try:
            return self._look_up(match[1])
        except _Unfillable as fault:
            self.faults.append(PlaceholderFault(pointer, match[0], str(fault)))
            return match[0]

    def _look_up(self, key: str) -> str:
        if package := _PACKAGES_RE.fullmatch(key):
            return self._package_path(package["name"], package["type"] or DEFAULT_PACKAGE_TYPE)
        if variable := _ENVIRONMENT_RE.fullmatch(key):
            return self._environment_value(variable[1])
        raise _Unfillable(
            f"unknown placeholder ${{{key}}};"
            " write ${packages.<type>.<name>} or ${environment.<NAME>}"
        )

    def _package_path(self, name: str, package_type: str) -> str:
        package = self.packages.get(name)
        if package is None:
            raise _Unfillable(f'unknown package "{name}"{self._package_hint(name)}')
        if package.type != package_type:
            raise _Unfillable(
                f'package "{name}" has type {package.type}, not {package_type};'
                f" write ${{packages.{package.type}.{name}}}"
            )
        self.on_package(name)
        return package.path

    def _package_hint(self, name: str) -> str:
        close = get_close_matches(name, self.packages, n=1)
        if not close:
            return '; add it to "packages"'
        return f"; did you mean ${{packages.{self.packages[close[0]].type}.{close[0]}}}?"

    def _environment_value(self, name: str) -> str:
        value = self.environment.get(name)
        if value is None:
            raise _Unfillable(
                f"the environment variable {name} is not set; set it where the server is started"
            )
        return value
