"""Loading a configuration: positions survive substitution, and secrets are not shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue
from tests.unit.config.workshop import (
    codes_of,
    diagnostics_of,
    load_config,
    load_context,
    parse_markers,
    sensor,
)

from cogwork.config.check import diagnostic_format
from cogwork.config.check.loader import LoadedConfig, load_value
from cogwork.config.text.positions import Position
from cogwork.config.text.secrets import is_secret, mask_secrets

CANARY = "CANARY7f3a"


def visible_output(load: LoadedConfig) -> str:
    """Return all texts about the faults that users can see."""
    parts = [
        diagnostic_format.as_text(fault, file)
        for fault in load.diagnostics
        for file in ("m.json", None)
    ]
    parts += [json.dumps(diagnostic_format.as_json(fault, "m.json")) for fault in load.diagnostics]
    parts += [spec.fault or "" for spec in load.result.specs]
    return "\n".join(parts)


def positions(load: LoadedConfig) -> list[Position | None]:
    return [fault.excerpt.position if fault.excerpt else None for fault in load.diagnostics]


# Positions


def test_positions_refer_to_the_text_before_substitution() -> None:
    text, expected = parse_markers(
        '{"revision": "$LONG$LONG", «"debug2": 1,\n'
        ' "debug": ${NUMBER}, "log": [{"pattern": "$LONG", "level": «"${LEVEL}"}],\n'
        ' "network": {"bind_address": «"${EMPTY}x${LONG}", «"y": "$LONG"}}'
    )
    environment = {"LONG": "long " * 30, "NUMBER": "true", "LEVEL": "loud", "EMPTY": ""}
    load = load_config(text, environment)
    assert codes_of(load) == ["E103", "E402", "E104", "E103"]
    assert positions(load) == expected


def test_fault_in_an_unquoted_variable_marks_the_whole_variable() -> None:
    text, (position,) = parse_markers('{"debug": «${DEBUG}}')
    (fault,) = load_config(text, {"DEBUG": "17"}).diagnostics
    assert fault.excerpt is not None
    assert (fault.excerpt.position, fault.excerpt.length) == (position, len("${DEBUG}"))
    assert fault.diagnostic.message == "expected true or false, got the number ${DEBUG}"


def test_unquoted_variable_that_adds_keys_is_refused() -> None:
    text, (position,) = parse_markers('{"network": {"no_tls": «${SWITCH}}}')
    load = load_config(text, {"SWITCH": 'true}, "debug": true, "revision": {"canary": 1'})
    (fault,) = load.diagnostics
    assert load.is_refused
    assert fault.diagnostic.code.id == "E502"
    assert fault.excerpt is not None
    assert fault.excerpt.position == position
    assert "canary" not in diagnostic_format.as_text(fault, "m.json")
    assert not load.result.config.debug


def test_syntax_error_after_a_variable_has_the_right_position() -> None:
    text, expected = parse_markers('{"revision": "$LONG"« "debug": true}')
    assert positions(load_config(text, {"LONG": "x" * 99})) == expected


def test_unset_variable_is_reported_with_the_syntax_error_it_causes() -> None:
    text, expected = parse_markers('{"debug": «$DEBUG«, "revision": ""}')
    load = load_config(text)
    assert codes_of(load) == ["W501", "E001"]
    assert load.is_refused
    assert positions(load)[0] == expected[0]


def test_byte_order_mark_does_not_count_as_a_column() -> None:
    (fault,) = load_config('\ufeff{"debug": 5}').diagnostics
    assert fault.excerpt is not None
    assert fault.excerpt.position == Position(1, 11)
    assert fault.excerpt.line == '{"debug": 5}'
    assert fault.excerpt.line[fault.excerpt.position.column - 1] == "5"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_excerpt_line_has_no_line_ending(end: str) -> None:
    (fault,) = load_config(f'{{{end}"debug": 5{end}}}').diagnostics
    assert fault.excerpt is not None
    assert fault.excerpt.line == '"debug": 5'


def test_excerpt_of_a_very_long_line_is_cut() -> None:
    text = '{"revision": "' + "x" * 100_000 + '", "debug": 5, "z": "' + "y" * 100_000 + '"}'
    for fault in load_config(text).diagnostics:
        assert fault.excerpt is not None
        assert len(fault.excerpt.line) <= 400
        at = fault.excerpt.position.column - 1 - fault.excerpt.skipped
        assert fault.excerpt.line[at:].startswith(("5", '"z"'))


def test_related_positions_are_located() -> None:
    text, (first, second) = parse_markers('{«"debug": true,\n«"debug": false}')
    (fault,) = load_config(text).diagnostics
    assert positions(load_config(text)) == [second]
    assert [spot and spot.position for spot in fault.related_excerpts] == [first]


def test_loaded_text_is_the_text_before_substitution() -> None:
    text = '{"revision": "$REV"}'
    load = load_config(text, {"REV": "r1"})
    assert load.text == text
    assert load.result.config.revision == "r1"


# Secrets

FIELDS: dict[str, str] = {
    "cloud secret": '{"cloud": {"id": "i", "secret": @, %}}',
    "api key": '{"cloud": {"id": "i", "api_key": {"id": "k", "key": @, %}}}',
    "api key itself": '{"cloud": {"id": "i", "api_key": @, %}}',
    "location secret": '{"cloud": {"id": "i", "secret": "s", "location_secret": @, %}}',
    "location secrets": '{"cloud": {"id": "i", "location_secrets": [{"id": "1", "secret": @, %}]}}',
    "list of secrets": '{"cloud": {"id": "i", "location_secrets": [@, @, 5], %}}',
    "private key": '{"cloud": {"id": "i", "secret": "s", "tls_private_key": @, %}}',
    "the whole cloud": '{"cloud": @, %}',
    "mistyped in cloud": '{"cloud": {"id": "i", "secrt": @, %}}',
    "handler key": '{"auth": {"handlers": [{"type": "api-key", "config": {"id1": @, %}}]}}',
    "listed key": '{"auth": {"handlers": [{"type": "api-key", "config": {"keys": [@], %}}]}}',
    "key ids": '{"auth": {"handlers": [{"type": "api-key", "config": {"keys": @, %}}]}}',
    "handler": '{"auth": {"handlers": [@, 5], %}}',
    "the whole auth": '{"auth": @, %}',
    "jwks": '{"auth": {"external_auth_config": {"jwks": {"keys": [{"d": @, %}]}}, "x": 1}}',
    "remote secret": '{"remotes": [{"name": "r", "address": "a", "secret": @, %}]}',
    "payload": '{"remotes": [{"name": "r", "auth": {"credentials": {"payload": @, %}}}]}',
    "credentials": '{"remotes": [{"name": "r", "auth": {"credentials": @, %}}]}',
    "remote auth": '{"remotes": [{"name": "r", "auth": @, %}]}',
    "mistyped in remote": '{"remotes": [{"name": "r", "address": "a", "secrt": @}]}',
    "module env": '{"modules": [{"name": "m", "executable_path": "/x", "env": {"A": @, %}}]}',
    "process env": '{"processes": [{"id": "p", "name": "x", "env": {"A": @, %}}]}',
    "whole env": '{"modules": [{"name": "m", "executable_path": "/x", "env": @, %}]}',
    "mistyped env": '{"modules": [{"name": "m", "executable_path": "/x", "evn": {"A": @}}]}',
    "mistyped auth": '{"atuh": {"handlers": [{"config": {"id1": @}}]}}',
    "mistyped cloud": '{"clod": {"id": "i", "x": @}}',
    "password": '{"components": [{"name": "c", "api": "rdk:component:camera", "model": "test",'
    ' "attributes": {"password": @, %}}]}',
    "escaped key": '{"components": [{"name": "c", "api": "rdk:component:camera", "model": "test",'
    ' "attributes": {"p\\u0061ssword": @, %}}]}',
    "any attribute": '{"components": [{"name": "c", "api": "rdk:component:arm", "model": "a:b:c",'
    ' "attributes": {"login": {"api_token": @, "client_secret": @, %}}}]}',
}
VALUES = [
    f'"{CANARY}"',
    f'"{CANARY} {CANARY} {CANARY}"',
    f'"\\"{CANARY}\\\\"',
    f'["{CANARY}"]',
    f'{{"x": "{CANARY}"}}',
    f'[[5, "{CANARY}"], {{"y": ["{CANARY}"]}}]',
]
FAULTS = ['"zzz": 1', '"zzz": "$UNSET"', '"zzz": 1, "zzz": 2']
BREAKS = [
    f'"{CANARY}" "zzz": 1',
    f'"{CANARY}"; "zzz"',
    f"{CANARY}",
    f"'{CANARY}'",
    f'"{CANARY}',
    f'"{CANARY}\\q"',
    f'"{CANARY}\t"',
    f'"a" "{CANARY}"',
    f'"a" {CANARY}',
    f'"{CANARY}": 1',
    f'["{CANARY}" "b"]',
    f'["a" "{CANARY}"]',
    f'{{"x" "{CANARY}"}}',
    f'{{"x": {CANARY}}}',
    f'\n\n  "{CANARY}" "zzz"',
    f"0{CANARY}",
    f"-{CANARY}",
    f'"line\n{CANARY}\nline"',
]


def _texts(values: list[str], faults: list[str]) -> Iterator[str]:
    for template in FIELDS.values():
        for value in values:
            for fault in faults:
                yield template.replace("@", value).replace("%", fault)


def test_faults_next_to_a_secret_do_not_show_it() -> None:
    for text in _texts(VALUES, FAULTS):
        load = load_config(text)
        assert load.diagnostics, text
        assert CANARY not in visible_output(load), text


def test_faults_next_to_a_secret_on_its_own_line_do_not_show_it() -> None:
    for text in _texts([f"\n{value}\n" for value in VALUES], FAULTS):
        assert CANARY not in visible_output(load_config(text)), text


def test_syntax_errors_at_a_secret_do_not_show_it() -> None:
    for text in _texts(BREAKS, FAULTS[:1]):
        if any(
            mistyped in text for mistyped in ('"r", "address": "a", "secrt"', "evn", "clod", "atuh")
        ):
            continue  # The syntax error comes before the check for mistyped keys.
        load = load_config(text)
        assert codes_of(load) == ["E001"], text
        assert CANARY not in visible_output(load), text


@pytest.mark.parametrize(
    "text",
    [
        '{"cloud": {"id": "i", "secret" "@"}}',
        '{"cloud": {"id": "i", "secret": @}}',
        '{"cloud": {"id": "i", "secret: "@"}}',
        '{"cloud": {"id": "i, "secret": "@"}}',
        '{"cloud": {"id": "i" "secret": "@"}}',
        '{"cloud": {"id": "i", secret: "@"}}',
        "{'cloud': {'id': 'i', 'secret': '@'}}",
        '{"cloud": {"id": "i", "secret"\n"@"}}',
        '{"cloud": {"id": "i", "secret" = "@"}}',
        '{"remotes": [{"name": "r" "secret": "@"}]}',
        '{"remotes": [{"name": "r", "secret" "@"}]}',
        '{"remotes": [{"name": "r, "secret": "@"}]}',
        '{"remotes": [{"name": "r", "secret": "@": 1}]}',
        '{"remotes": [{"name": "r", "secret" "@": 1}]}',
        '{"remotes": [{"name": "r", // "secret": "@"\n 5}]}',
        '{"remotes": [{"name": 5}, /* secret: @ */ 5]}',
        '"secret": "@"',
        'secret: "@"',
        "secret=@",
        '"auth": {"handlers": [{"config": "id": "@", 5 5',
        '{"remotes": [{"name": "r", "password": 0@}]}',
        '{"remotes": [{"name": "r", "password": 012345}]}',
    ],
)
def test_malformed_text_does_not_show_a_secret(text: str) -> None:
    load = load_config(text.replace("@", CANARY))
    assert load.diagnostics
    assert CANARY not in visible_output(load)
    assert "12345" not in visible_output(load)


def test_secret_value_that_contains_a_secret_key_is_masked() -> None:
    hidden = mask_secrets('{"secret": "my-secret-token", "a": "secret", "b": "shown"}')
    assert hidden == '{"secret": "***************", "a": "secret", "b": "shown"}'


@given(st.text(alphabet="{}[],:\"\\/*\n $'ax", max_size=60))
def test_masking_keeps_the_length_and_the_lines(noise: str) -> None:
    for text in (noise, f'{{"secret": "{CANARY}", {noise}', f'{noise}\n{{"secret": {CANARY}'):
        hidden = mask_secrets(text)
        assert len(hidden) == len(text)
        assert hidden.count("\n") == text.count("\n")


def test_masking_long_texts_is_fast() -> None:
    for key in ("secret" * 50_000, '\\"secret' * 30_000, "/*" * 100_000, "\\" * 100_001):
        assert len(mask_secrets(f'{{"{key}": "x", "{key}')) > 100_000


def test_value_of_a_mistyped_secret_key_is_masked() -> None:
    remote = '{"remotes": [{"name": "r", "address": "h:1", "secrt": "x", "y": 1}], "nmae": "shown"}'
    shown = visible_output(load_config(remote))
    assert '"secrt": ***' in shown
    assert '"nmae": "shown"' in shown


def test_values_that_are_not_secret_are_quoted() -> None:
    assert not is_secret(("network", "bind_address"))
    assert not is_secret(("auth", "handlers", 0, "type"))
    assert not is_secret(("cloud", "refresh_interval"))
    assert 'got the string "lokal"' in visible_output(
        load_config({"modules": [{"name": "m", "type": "lokal"}]})
    )


def test_secret_in_a_plugin_validation_error_is_masked() -> None:
    text = {
        "components": [
            {
                "name": "c",
                "api": "rdk:component:camera",
                "model": "test",
                "attributes": {"password": CANARY * 3},
            }
        ]
    }
    load = load_config(json.dumps(text))
    assert codes_of(load) == ["E104"]
    assert "*** is too long" in visible_output(load)
    assert CANARY not in visible_output(load)


# The environment

VISION = '"name": "v", "api": "rdk:service:vision", "model": "test", "attributes":'
FROM_ENVIRONMENT = [
    '{"debug": "$V"}',
    '{"debug": ${V}}',
    '{"debug": $V$V}',
    '{"debug": [${V}]}',
    '{"$V": 1}',
    '{"$V": 1, "$V": 2}',
    '{"revision": "", "$V" 1}',
    '{"log": [{"pattern": "($V", "level": "$V"}]}',
    '{"network": {"bind_address": "$V", "sessions": {"heartbeat_window": "$V"}}}',
    '{"network": {"bind_address": ":8080", "tls_cert_file": "/$V", "tls_key_file": "/x$V"}}',
    '{"modules": [{"name": "m", "type": "$V"}, {"name": "n", "executable_path": "/$V/x"}]}',
    '{"modules": [{"name": "n", "executable_path": "${environment.V}"}]}',
    '{"components": [{"name": "$V", "api": "rdk:component:sensor", "model": "$V"}]}',
    '{"components": [{"name": "$V", "api": "$V", "model": "fake", "attributes": {"$V": 1}}]}',
    '{"components": [{"name": "a", "api": "rdk:component:$V", "model": "$V:x"}]}',
    '{"components": [{"name": "a", "api": "rdk:component:sensor", "model": "fake",'
    ' "depends_on": ["$V", "$V/x", "rdk:component:$V/$V"]}]}',
    '{"components": [{"name": "$V", "api": "rdk:component:sensor", "model": "fake",'
    ' "depends_on": ["$V", "x$V"]}, {"name": "$V", "api": "rdk:component:sensor", "model": "a"}]}',
    '{"services": [{' + VISION + ' {"camera": "$V", "helper": "$V", "label_path": "/$V"}}]}',
    '{"services": [{' + VISION + ' {"label_path": "${environment.V}/a/long/path/to/it"}}]}',
    '{"components": [{"name": "c", "api": "rdk:component:camera", "model": "test", "attributes":'
    ' {"width": "a text so long that nobody would want to read it here at all: $V", "mode": "$V",'
    ' "port": "${environment.V}", "rate": "a text so long that it is cut ${environment.V}"}}]}',
    '{"jobs": [{"name": "j", "schedule": "1s", "resource": "$V", "method": "M"}],'
    ' "maintenance": {"sensor_name": "rdk:component:sensor/$V", "maintenance_allowed_key": "k"}}',
    '{"packages": [{"name": "$V", "package": ""}, {"name": "x", "type": "$V"}]}',
]


@pytest.mark.parametrize("text", FROM_ENVIRONMENT)
@pytest.mark.parametrize("value", [CANARY, CANARY * 20, f"{CANARY} x", f'{CANARY}"'])
def test_environment_value_is_never_shown(text: str, value: str) -> None:
    load = load_config(text, {"V": value})
    assert load.diagnostics
    assert CANARY not in visible_output(load)


def test_variable_name_is_shown_instead_of_its_value() -> None:
    (diagnostic,) = diagnostics_of(
        load_config('{"log": [{"pattern": "a", "level": "$V"}]}', {"V": "loud"})
    )
    assert diagnostic.message.startswith('"$V" is not a log level')


def test_short_environment_values_do_not_garble_the_message() -> None:
    (diagnostic,) = diagnostics_of(
        load_config('{"debug": "$V", "revision": "$W"}', {"V": "true", "W": "a"})
    )
    assert diagnostic.message == 'expected true or false, got the string "$V"'


def test_quoted_variable_cannot_add_keys() -> None:
    load = load_config('{"revision": "$V"}', {"V": 'x", "debug": true, "y": "'})
    assert codes_of(load) == []
    assert not load.result.config.debug


# Values without text, as the cloud sends them


def test_load_value_reports_pointers_without_positions() -> None:
    value: JsonValue = {
        "components": [
            sensor("a", depends_on=["b"]),
            sensor("b", depends_on=["a"]),
            sensor("a", x=1),
        ],
        "network": {"bind_address": "x"},
    }
    load = load_value(value, load_context())
    assert load.is_refused
    assert all(fault.excerpt is None for fault in load.diagnostics)
    shown = {(fault["code"], fault["pointer"]) for fault in _as_json(load)}
    assert shown == {
        ("E303", "/components/0/depends_on/0"),
        ("E202", "/components/2/name"),
        ("E103", "/components/2/x"),
        ("E104", "/network/bind_address"),
    }
    (taken,) = (fault for fault in _as_json(load) if fault["code"] == "E202")
    assert taken["related"] == [{"message": "first used here", "pointer": "/components/0/name"}]
    text = "\n".join(diagnostic_format.as_text(fault, None) for fault in load.diagnostics)
    assert "/components/2/name  error" in text
    assert "/components/0/name  first used here" in text


def _as_json(load: LoadedConfig) -> list[dict[str, JsonValue]]:
    return [diagnostic_format.as_json(fault, None) for fault in load.diagnostics]


def test_load_value_shows_no_secret() -> None:
    for template in FIELDS.values():
        for written in VALUES:
            text = template.replace("@", written).replace("%", '"zzz": 1')
            load = load_value(json.loads(text), load_context())
            assert load.diagnostics, text
            assert CANARY not in visible_output(load), text


@pytest.mark.parametrize("value", [CANARY, CANARY * 20])
def test_load_value_shows_no_environment_value(value: str) -> None:
    attributes: JsonValue = {"width": "${environment.V}", "mode": "${environment.V}"}
    camera: JsonValue = {
        "name": "c",
        "api": "rdk:component:camera",
        "model": "test",
        "attributes": attributes,
    }
    module: JsonValue = {"name": "m", "executable_path": "/opt/${environment.V}"}
    load = load_value({"components": [camera], "modules": [module]}, load_context({"V": value}))
    assert len(load.diagnostics) == 3
    assert CANARY not in visible_output(load)


def test_load_context_has_the_home_directory() -> None:
    assert load_context().home == Path("/home/cog")
