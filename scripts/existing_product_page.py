"""Renders docs/coming-from-viam-server.md: what is different with an existing configuration."""

from __future__ import annotations

from collections.abc import Iterable

from cogwork.config.schema.existing_product.attributes import ATTRIBUTES
from cogwork.config.schema.existing_product.behavior import BEHAVIOR
from cogwork.config.schema.existing_product.difference import Difference, Treatment
from cogwork.config.schema.existing_product.models import BUILTIN_INSTEAD, MISSING_MODELS
from cogwork.config.schema.existing_product.sections import SECTION_KEYS

_HEAD = """# Coming from viam-server

A configuration that was written for viam-server runs here as far as possible. Check it:

```sh
cogwork config check machine.json
```

Each line names one thing that is different, what the machine does with it, and what to do instead.
Errors are mistakes, or something that is missing on this computer; what is only different is a
warning. The last line says how many resources would run.

```sh
cogwork config migrate machine.json
```

This writes a cleaned copy beside the file: without the settings that have no effect, and with the
keys as they are defined here. The same runs with both files, and the file itself stays as it is.
With `-o NEW`, the copy gets another name.

To move machines with their cloud and their agent, see [Move a fleet](guides/move-a-fleet.md).

This page is generated from the tables that the check uses.

## What is read as before

- `namespace` and `type` instead of `api`, and `api` and `model` as objects.
- Services without a name or a model, which are named `builtin`.
- Keys in other letter case, except in free-form objects such as `env`, and in the attributes of
  modules. If a key also exists as it is defined, that one counts. `config migrate` writes them as
  they are defined.
- Zeros and empty values of settings that are not set, such as `"width_px": 0` or `"encoder": ""`.
- Numbers in quotes, in attributes.
- `disabled`, on resources, modules, remotes, processes, jobs and packages.
- Placeholders (`${packages.…}`, `${environment.…}`), and environment variables (`$NAME`,
  `${NAME:-default}`).
"""
_TREATMENTS = {
    Treatment.NO_EFFECT: "no effect",
    Treatment.NOT_TAKEN_OVER: "not taken over",
    Treatment.REQUIRED: "not taken over; the resource does not run",
    Treatment.RENAMED: "taken over",
}
_SECTIONS = {"": "the top level"}


def render_existing_product_page(inactive: Iterable[str]) -> str:
    """Render the page. `inactive`: the settings that are read, but have no effect."""
    return "".join(
        (
            _HEAD,
            _render_settings(inactive),
            _render_attributes(),
            _render_models(),
            _render_modules(),
            _render_behavior(),
        )
    )


def _render_settings(inactive: Iterable[str]) -> str:
    by_row: dict[Difference, list[str]] = {}
    for section, rows in SECTION_KEYS.items():
        for row in rows:
            by_row.setdefault(row, []).append(_SECTIONS.get(section, f"`{section}`"))
    lines = [
        _row(f"`{row.path}`", ", ".join(sections), _TREATMENTS[row.treatment], _explain(row))
        for row, sections in by_row.items()
    ]
    for path in inactive:
        *sections, key = path.split(".")
        where = f"`{sections[0]}`" if sections else _SECTIONS[""]
        lines.append(_row(f"`{key}`", where, "no effect", "This release does not support it."))
    head = _row("setting", "in", "here", "why, and what to do instead")
    return f"\n## Settings\n\n{head}|---|---|---|---|\n{''.join(lines)}"


def _render_attributes() -> str:
    lines = [
        _row(f"`{row.path}`", f"{api} `{model}`", _TREATMENTS[row.treatment], _explain(row))
        for (api, model), rows in ATTRIBUTES.items()
        for row in rows
    ]
    head = _row("attribute", "of", "here", "why, and what to do instead")
    return f"\n## Attributes of built-in models\n\n{head}|---|---|---|---|\n{''.join(lines)}"


def _render_models() -> str:
    lines = [
        _row(f"{row.subtype} `{row.model}`", _sentence(row.reason), _sentence(row.advice))
        for row in MISSING_MODELS
    ]
    head = _row("model", "why", "what to do instead")
    return (
        "\n## Built-in models that do not exist here\n\n"
        "A resource with one of these models is unhealthy and says why; all others run.\n\n"
        f"{head}|---|---|---|\n{''.join(lines)}"
    )


def _render_modules() -> str:
    lines = [_row(f"`{module}`", f"`{model}`") for module, model in BUILTIN_INSTEAD.items()]
    return (
        "\n## Modules of the registry\n\n"
        "Without a cloud, the machine cannot download modules of the registry. Download the "
        "module, and write the path\nof its program or archive as `executable_path`; or join a "
        "cloud that has it. Some are not needed:\n\n"
        f"{_row('module', 'built-in model that does the same')}|---|---|\n{''.join(lines)}"
    )


def _render_behavior() -> str:
    lines = [_row(row.subject, row.before, row.here) for row in BEHAVIOR]
    head = _row("subject", "viam-server", "here")
    return f"\n## What the machine does differently\n\n{head}|---|---|---|\n{''.join(lines)}"


def _explain(row: Difference) -> str:
    if row.treatment is Treatment.RENAMED:
        return f"It is called `{row.new_key}` here."
    return " ".join(_sentence(each) for each in (row.reason, row.advice) if each)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _row(*cells: str) -> str:
    return f"| {' | '.join(each.replace('|', chr(92) + '|') for each in cells)} |\n"
