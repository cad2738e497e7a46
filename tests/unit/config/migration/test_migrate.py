from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest

from cogwork.config.check.diagnostics import ConfigLocation, Diagnostic, Effect
from cogwork.config.check.fix import Fix, FixKind
from cogwork.config.check.load_context import LoadContext
from cogwork.config.check.loader import LoadedConfig, LocatedDiagnostic, load
from cogwork.config.migration.legacy_forms import find_legacy_forms
from cogwork.config.migration.migrate import Migration, Unparsable, migrate
from cogwork.config.migration.same_machine import runs_the_same
from cogwork.config.migration.source_text import SourceText
from cogwork.config.migration.step import Step, find_fixes
from cogwork.config.schema import codes
from cogwork.config.text.json_reader import read_json
from cogwork.config.text.positions import Pointer
from cogwork.drivers.builtin_models import builtin_models
from cogwork.resource.registry import Registry

REGISTRY = Registry(builtin_models())

OLD = """\
{
  // the belt
  "components": [
    {
      "namespace": "rdk", // older form
      "type": "motor",
      "name": "belt",
      "model": {"namespace": "rdk", "model_family": "builtin", "name": "fake"}
    },
    {"name": "eye", "api": "rdk:component:camera", "type": "camera", "model": "fake"}
  ],
  "services": [{"type": "vision", "name": "find", "model": "color_detector",
    "attributes": {"detect_color": "#ff0000", "hue_tolerance_pct": 0.1, "camera_name": "eye"}}],
  "triggers": [],
  "debug": ${DEBUG:-false},
  "network": {"bind_address": "${HOST}:8080"}
}
"""
FILES = sorted(
    file
    for directory in (Path(__file__).parent / "files", Path(__file__).parents[1] / "existing")
    for file in directory.glob("*.json")
)

NEW = """\
{
  // the belt
  "components": [
    {
      "api": "rdk:component:motor",
      "name": "belt",
      "model": "fake"
    },
    {"name": "eye", "api": "rdk:component:camera", "model": "fake"}
  ],
  "services": [{"api": "rdk:service:vision", "name": "find", "model": "color_detector",
    "attributes": {"detect_color": "#ff0000", "hue_tolerance_pct": 0.1, "camera_name": "eye"}}],
  "debug": ${DEBUG:-false},
  "network": {"bind_address": "${HOST}:8080"}
}
"""


def make_context(environment: Mapping[str, str]) -> LoadContext:
    return LoadContext(REGISTRY, Path("/nowhere"), environment)


CONTEXT = make_context({"HOST": "localhost", "NAME": "belt"})


def with_fixes(*fixes: Fix) -> Callable[[LoadedConfig, SourceText], Iterable[Step]]:
    """Return a function that finds these fixes as long as their places exist."""

    def find(loaded: LoadedConfig, source: SourceText) -> Iterable[Step]:
        del loaded
        found = [
            LocatedDiagnostic(
                Diagnostic(
                    codes.UNSUPPORTED,
                    "it is different here",
                    ConfigLocation(fix.pointer, at_key=True),
                    Effect.IGNORED,
                    fix=fix,
                )
            )
            for fix in fixes
            if is_in(source, fix.pointer)
        ]
        yield from find_fixes(found, source)
        yield from find_legacy_forms(source)

    return find


def is_in(source: SourceText, pointer: Pointer) -> bool:
    return source.start(pointer) != source.start(pointer[:-1])


def describe(migration: Migration) -> list[tuple[int, str, str, str]]:
    return [
        (change.line, change.step.kind.value, change.step.old, change.step.new)
        for change in migration.changes
    ]


def test_fixes_and_older_forms_are_applied_to_the_text() -> None:
    migration = migrate(OLD, CONTEXT, with_fixes(Fix(FixKind.REMOVE, ("triggers",))))
    assert migration.text == NEW
    assert describe(migration) == [
        (6, "replaced", '"namespace": "rdk", "type": "motor"', '"api": "rdk:component:motor"'),
        (
            8,
            "replaced",
            '"model": {"namespace": "rdk", "model_family": "builtin", "n…',
            '"fake"',
        ),
        (10, "removed", '"type": "camera"', ""),
        (12, "replaced", '"type": "vision"', '"api": "rdk:service:vision"'),
        (14, "removed", '"triggers": []', ""),
    ]
    assert runs_the_same(load(OLD, CONTEXT).result, migration.left.result)


def test_second_run_changes_nothing() -> None:
    find = with_fixes(Fix(FixKind.REMOVE, ("triggers",)))
    again = migrate(migrate(OLD, CONTEXT, find).text, CONTEXT, find)
    assert (again.text, again.changes) == (NEW, ())


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_existing_file_runs_the_same_machine_after_one_migration(file: Path) -> None:
    text = file.read_text()
    before, migration = load(text, CONTEXT), migrate(text, CONTEXT)
    assert runs_the_same(before.result, migration.left.result)
    running = {spec.name: spec.settings for spec in before.result.specs if spec.fault is None}
    after = {spec.name: spec.settings for spec in migration.left.result.specs}
    assert running
    assert running.items() <= after.items()
    assert migration.changes
    assert [each for each in migration.left.diagnostics if each.diagnostic.fix is not None] == []
    again = migrate(migration.text, CONTEXT)
    assert (again.text, again.changes) == (migration.text, ())
    reported = str(migration.changes)
    assert "a-secret" not in reported


def test_fix_that_changes_what_runs_is_left() -> None:
    fixes = (
        Fix(FixKind.REMOVE, ("components", 0)),
        Fix(FixKind.REMOVE, ("services", 0, "attributes", "hue_tolerance_pct")),
        Fix(FixKind.REPLACE, ("network", "bind_address"), '"localhost:9090"'),
        Fix(FixKind.RENAME, ("network",), "tracing"),
        Fix(FixKind.REMOVE, ("triggers",)),
    )
    assert migrate(OLD, CONTEXT, with_fixes(*fixes)).text == NEW


@pytest.mark.parametrize("pointer", [("debug",), ("network", "bind_address")])
def test_value_of_a_variable_is_not_replaced(pointer: Pointer) -> None:
    same = {"debug": "false", "bind_address": '"localhost:8080"'}[str(pointer[-1])]
    migration = migrate(OLD, CONTEXT, with_fixes(Fix(FixKind.REPLACE, pointer, same)))
    assert "${DEBUG:-false}" in migration.text
    assert "${HOST}:8080" in migration.text


def test_older_form_with_variables_stays() -> None:
    text = """{"components": [
      {"name": "a", "type": "${KIND:-motor}", "model": "fake"},
      {"name": "b", "type": "motor", "model": {
        "namespace": "rdk", "model_family": "builtin", "name": "${MODEL:-fake}"}}
    ]}"""
    migration = migrate(text, CONTEXT)
    assert migration.text == text.replace('"type": "motor"', '"api": "rdk:component:motor"')


@pytest.mark.parametrize(
    "item",
    [
        '{"name": "a", "type": 1, "model": "fake"}',
        '{"name": "a", "type": "no type", "model": "fake"}',
        '{"name": "a", "type": "motor", "namespace": 5, "model": "fake"}',
        '{"name": "a", "api": "rdk:component:motor", "model": {"name": "fake"}}',
        "5",
    ],
)
def test_invalid_resource_stays_as_it_is(item: str) -> None:
    text = f'{{"components": [{item}], "services": 5}}'
    assert migrate(text, CONTEXT).text == text


def test_rename_keeps_the_value_and_its_comments() -> None:
    text = '{\n  "Debug": true, // while we look for the fault\n  "revision": "a"\n}\n'
    fix = Fix(FixKind.RENAME, ("Revision",), "revision")
    text = text.replace("revision", "Revision")
    migration = migrate(text, CONTEXT, with_fixes(fix))
    assert '"Debug": true, // while we look for the fault' in migration.text


def test_duplicate_keys_are_removed() -> None:
    text = '{"debug": true, "components": [], "debug": false}'
    migration = migrate(text, CONTEXT)
    assert migration.text == '{"debug": true, "components": []}'
    assert describe(migration) == [(1, "removed", '"debug"', "")]
    assert migration.left.diagnostics == ()


def test_fixes_inside_a_removed_value_are_not_reported() -> None:
    text = '{"triggers": [{"name": "t", "event": {}}, {"name": "u"}], "debug": true}'
    fixes = (
        Fix(FixKind.REMOVE, ("triggers", 0, "event")),
        Fix(FixKind.REMOVE, ("triggers",)),
        Fix(FixKind.REMOVE, ("triggers",)),
    )
    migration = migrate(text, CONTEXT, with_fixes(*fixes))
    assert migration.text == '{"debug": true}'
    assert len(migration.changes) == 1


def test_lines_of_later_passes_are_those_of_the_original() -> None:
    text = """{
  "debug": true,
  "first": 1,
  "log": [],
  "second": {
    "third": 3
  }
}"""

    def find(loaded: LoadedConfig, source: SourceText) -> Iterable[Step]:
        value = read_json(loaded.text).value
        assert isinstance(value, dict)
        pointer = ("first",) if "first" in value else ("second",)
        return with_fixes(Fix(FixKind.REMOVE, pointer))(loaded, source)

    migration = migrate(text, CONTEXT, find)
    assert [change.line for change in migration.changes] == [3, 5]


def test_secrets_are_masked_in_the_report() -> None:
    text = '{"cloud_old": {"api_key": "k-123456"}, "password": "p-123456", "url": "${TOKEN}"}'
    fixes = [Fix(FixKind.REMOVE, (key,)) for key in ("cloud_old", "password", "url")]
    migration = migrate(text, make_context({"TOKEN": "t-123456"}), with_fixes(*fixes))
    assert [change.step.old for change in migration.changes] == [
        '"cloud_old": {"api_key": "***"}',
        '"password": "***"',
        '"url": "${TOKEN}"',
    ]


def test_misspelled_secret_is_masked() -> None:
    text = '{"remotes": [{"name": "a", "address": "b:1", "secrt": "hunter2"}]}'
    source = SourceText(text)
    pointer = ("remotes", 0, "secrt")
    (found,) = (
        each for each in load(text, CONTEXT).diagnostics if each.diagnostic.hint is not None
    )
    assert found.diagnostic.location.pointer == pointer
    fixed = Diagnostic(
        found.diagnostic.code,
        found.diagnostic.message,
        found.diagnostic.location,
        found.diagnostic.effect,
        found.diagnostic.hint,
        fix=Fix(FixKind.REMOVE, pointer),
    )
    (step,) = find_fixes([LocatedDiagnostic(fixed)], source)
    assert step.old == '"secrt"'


def test_unknown_key_is_removed_without_showing_its_value() -> None:
    text = """{"components": [
      {"name": "a", "api": "rdk:component:motor", "model": "fake",
       "attributes": {"Pass": "letmein1", "door": {"pin": "letmein2"}}}
    ]}"""
    migration = migrate(text, CONTEXT)
    assert describe(migration) == [
        (3, "removed", '"Pass"', ""),
        (3, "removed", '"door"', ""),
    ]


@pytest.mark.parametrize("key", ["Pass", "passcode", "door_passcode"])
def test_value_of_a_password_is_masked(key: str) -> None:
    migration = migrate(
        f'{{"x": {{"{key}": "letmein"}}}}', CONTEXT, with_fixes(Fix(FixKind.REMOVE, ("x",)))
    )
    assert [change.step.old for change in migration.changes] == [f'"x": {{"{key}": "***"}}']


def test_text_that_is_not_json_is_refused() -> None:
    with pytest.raises(Unparsable) as refused:
        migrate('{"debug": yes}', CONTEXT)
    assert [each.diagnostic.code.id for each in refused.value.diagnostics] == [codes.NOT_JSON.id]
