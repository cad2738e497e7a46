"""Every diagnostic: its code, position, message and effect on the rest of the configuration."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
from pydantic import JsonValue
from tests.unit.config.workshop import (
    HOME,
    REGISTRY,
    CameraAttributes,
    codes_of,
    diagnostics_of,
    load_config,
    parse_markers,
    sensor,
    spec_of,
)

from cogwork.config.check.diagnostics import Effect
from cogwork.config.check.diff import find_blocked
from cogwork.config.check.loader import LoadedConfig, LocatedDiagnostic, load_unreadable
from cogwork.config.check.packages import locate_package
from cogwork.config.schema import codes
from cogwork.config.schema.codes import Code
from cogwork.config.schema.module import ModuleConfig
from cogwork.config.text.file import Unreadable
from cogwork.config.text.positions import format_pointer
from cogwork.graph.name import Api, ModelName, Reference
from cogwork.logs.levels import Level

COMPLETE = Path(__file__).parents[1] / "complete.json"

REFUSED, UNHEALTHY, IGNORED = Effect.REFUSED, Effect.UNHEALTHY, Effect.IGNORED


class Case(NamedTuple):
    """The mark « is the position that the diagnostic points to."""

    code: Code
    text: str
    message: str
    effect: Effect
    hint: str | None = None


S = '"api": "rdk:component:sensor", "model": "fake"'
A_SENSOR = '{"name": "a", "api": "rdk:component:sensor", "model": "fake"}'
CAMERA = '"name": "cam", "api": "rdk:component:camera", "model": "test"'
VISION = '"name": "eyes", "api": "rdk:service:vision", "model": "test"'


def components(*items: str) -> str:
    return '{"components": [\n' + ",\n".join(items) + "\n]}"


CASES = [
    Case(codes.NOT_JSON, '{\n  "components": «[ }', "expected ] to close the list", REFUSED),
    Case(
        codes.NOT_JSON,
        '{\n  "debug": true«\n  "log": []\n}',
        'a comma or } after the value of "debug"',
        REFUSED,
        "add a comma here",
    ),
    Case(codes.NOT_JSON, "«", "an empty text", REFUSED, "write at least {}"),
    Case(
        codes.DUPLICATE_KEY, '{"debug": true,\n «"debug": false}', 'duplicate key "debug"', IGNORED
    ),
    Case(codes.WRONG_TYPE, "«[]", "expected an object at the top", REFUSED),
    Case(codes.WRONG_TYPE, '{"debug": «"yes"}', 'true or false, got the string "yes"', IGNORED),
    Case(codes.WRONG_TYPE, '{"revision": «5}', "expected a string, got the number 5", IGNORED),
    Case(codes.WRONG_TYPE, '{"network": «[]}', "expected an object, got a list", REFUSED),
    Case(codes.WRONG_TYPE, '{"cloud": «7}', "expected an object, got a number", REFUSED),
    Case(codes.WRONG_TYPE, '{"auth": {"handlers": «{}}}', "a list, got an object", REFUSED),
    Case(codes.WRONG_TYPE, '{"components": «{}}', '"components" must be a list', IGNORED),
    Case(codes.WRONG_TYPE, '{"jobs": «"x"}', '"jobs" must be a list', IGNORED),
    Case(codes.WRONG_TYPE, '{"modules": [«null]}', "expected an object, got null", IGNORED),
    Case(codes.WRONG_TYPE, components("  «5"), "expected an object, got the number 5", UNHEALTHY),
    Case(
        codes.WRONG_TYPE,
        components(f'{{{CAMERA}, "attributes": {{"width": «"wide"}}}}'),
        'expected an integer, got the string "wide"',
        UNHEALTHY,
    ),
    Case(
        codes.WRONG_TYPE,
        components(f'{{{CAMERA}, "attributes": {{"rate": «"nan"}}}}'),
        "expected a number",
        UNHEALTHY,
    ),
    Case(
        codes.WRONG_TYPE,
        components(f'{{"name": "a", {S}, "depends_on": ["b", «5]}}', f'{{"name": "b", {S}}}'),
        "expected a string, got the number 5",
        UNHEALTHY,
    ),
    Case(
        codes.WRONG_TYPE,
        components('«{"name": "a", "type": 5, "model": "fake"}'),
        "expected a string, got the number 5",
        UNHEALTHY,
    ),
    Case(codes.MISSING_FIELD, components("«{" + S + "}"), '"name" is missing', UNHEALTHY),
    Case(codes.MISSING_FIELD, components('«{"name": "a"}'), '"api" is missing', UNHEALTHY),
    Case(codes.MISSING_FIELD, '{"cloud": «{"secret": "x"}}', '"id" is missing', REFUSED),
    Case(
        codes.MISSING_FIELD,
        '{"cloud": {"id": "i", "api_key": «{"id": "x"}}}',
        '"key" is missing',
        REFUSED,
    ),
    Case(
        codes.MISSING_FIELD,
        '{"modules": [«{"name": "m"}]}',
        '"executable_path" is missing; a local module',
        IGNORED,
    ),
    Case(
        codes.MISSING_FIELD,
        '{"modules": [«{"name": "m", "type": "registry"}]}',
        '"module_id" is missing; a registry module',
        IGNORED,
    ),
    Case(
        codes.MISSING_FIELD,
        '{"auth": {"handlers": [«{"type": "api-key", "config": {}}]}}',
        '"keys" is missing',
        REFUSED,
    ),
    Case(codes.OTHER_CASE, '{«"Debug": true}', "is used as", IGNORED, 'write "debug"'),
    Case(
        codes.IGNORED_VALUE,
        components(
            '{"name": "m", "type": "motor", "model": "gpio", "attributes": {"board": "b", '
            '"pins": {"a": "1", "b": "2"}, "ticks_per_rotation": «5}}',
            '{"name": "b", "type": "board", "model": "fake"}',
        ),
        "no effect without an encoder",
        IGNORED,
        'name the encoder of the motor as "encoder"',
    ),
    Case(
        codes.NOT_TAKEN_OVER,
        '{\n  «"triggers": [{}]\n}',
        "nothing watches for events",
        IGNORED,
        'let a program call the machine and send the notification, such as an entry of "processes"',
    ),
    Case(
        codes.NOT_TAKEN_OVER,
        components('{"name": "g", "type": "movement_sensor", "model": «"merged"}'),
        "readings of several sensors are not merged",
        UNHEALTHY,
        "name the sensor that has the reading wherever this one is used, or write a driver that "
        "merges them",
    ),
    Case(
        codes.UNKNOWN_KEY,
        '{\n  «"componets": []}',
        'unknown key "componets"',
        IGNORED,
        'did you mean "components"?',
    ),
    Case(
        codes.UNKNOWN_KEY,
        components(f'{{"name": "a", {S}, «"atributes": {{}}}}'),
        'unknown key "atributes"',
        IGNORED,
        'did you mean "attributes"?',
    ),
    Case(
        codes.UNKNOWN_KEY,
        components(f'{{"name": "a", {S}, "attributes": {{«"x": 1}}}}'),
        'unknown key "x"',
        IGNORED,
        "known keys: faults, readings, start",
    ),
    Case(
        codes.UNKNOWN_KEY,
        '{"network": {"sessions": {«"heartbeat": "2s"}}}',
        'unknown key "heartbeat"',
        IGNORED,
        'did you mean "heartbeat_window"?',
    ),
    Case(
        codes.BAD_VALUE,
        '{"modules": [{"name": "m", "executable_path": "/bin/acme", "type": «"lokal"}]}',
        'expected "local" or "registry", got the string "lokal"',
        IGNORED,
        'did you mean "local"?',
    ),
    Case(
        codes.BAD_VALUE,
        components(f'{{{CAMERA}, "attributes": {{"width": «0}}}}'),
        "greater than or equal to 1, got the number 0",
        UNHEALTHY,
    ),
    Case(codes.BAD_VALUE, '{"network": {"bind_address": «"here"}}', "host:port", REFUSED),
    Case(codes.BAD_VALUE, '{"network": {"bind_address": «"a:99999"}}', "host:port", REFUSED),
    Case(codes.BAD_VALUE, '{"network": {"allowed_hosts": [«"http://a"]}}', "scheme", REFUSED),
    Case(codes.BAD_VALUE, '{"network": {"allowed_hosts": ["a", «"b:80"]}}', "port", REFUSED),
    Case(
        codes.BAD_VALUE,
        '{"network": {"sessions": {"heartbeat_window": «"2m"}}}',
        "between 30ms and 1m",
        REFUSED,
    ),
    Case(
        codes.BAD_VALUE,
        '{"network": {"traffic_tunnel_endpoints": [{"port": «0}]}}',
        "greater than or equal to 1",
        REFUSED,
    ),
    Case(
        codes.BAD_VALUE,
        '{"auth": {"handlers": [{"type": «"external", "config": {"keys": ["a"], "a": "b"}}]}}',
        'expected "api-key"',
        REFUSED,
    ),
    Case(
        codes.BAD_VALUE,
        '{"maintenance": {"sensor_name": «"safe", "maintenance_allowed_key": "ok"}}',
        "the full name of a sensor",
        IGNORED,
    ),
    Case(
        codes.BAD_VALUE,
        '{"services": [{"name": "s", "api": "rdk:service:generic", "model": "broken",'
        ' "attributes": «{}}]}',
        "validation failed with KeyError",
        UNHEALTHY,
    ),
    Case(
        codes.BAD_DURATION,
        '{"cloud": {"id": "i", "secret": "s",\n"refresh_interval": «"10 seconds"}}',
        '"10 seconds" is not a duration',
        REFUSED,
    ),
    Case(
        codes.BAD_DURATION,
        '{"modules": [{"name": "m", "executable_path": "/bin/acme",\n'
        ' "first_run_timeout": «"1y"}]}',
        '"1y" is not a duration',
        IGNORED,
    ),
    Case(codes.BAD_NAME, components(f'{{"name": «"left arm", {S}}}'), "starts with", UNHEALTHY),
    Case(codes.BAD_NAME, components(f'{{"name": «"a:b", {S}}}'), "a name starts with", UNHEALTHY),
    Case(codes.BAD_NAME, components(f'{{"name": «"a+b", {S}}}'), "a name starts with", UNHEALTHY),
    Case(
        codes.BAD_NAME, components(f'{{"name": «"{"x" * 61}", {S}}}'), "the limit is 60", UNHEALTHY
    ),
    Case(
        codes.BAD_NAME,
        '{"packages": [{"package": "a/b", "name": «"' + "x" * 201 + '"}]}',
        "the limit is 200",
        IGNORED,
    ),
    Case(
        codes.BAD_NAME,
        '{"modules": [«{"name": "parent", "executable_path": "/bin/acme"}]}',
        'the name "parent" is reserved',
        IGNORED,
    ),
    Case(
        codes.BAD_NAME,
        components(f'{{"name": "a", {S}, "depends_on": [«"camera/x"]}}'),
        '"camera/x" is not a full resource name; write it like "rdk:component:camera/belt"',
        UNHEALTHY,
    ),
    Case(
        codes.DUPLICATE_NAME,
        components(A_SENSOR, f'{{"name": «"a", {S}}}'),
        'the name "a" is already in use',
        IGNORED,
    ),
    Case(
        codes.DUPLICATE_NAME,
        '{"processes": [{"id": "p", "name": "x"},\n {"id": «"p", "name": "y"}]}',
        'the name "p" is already in use',
        IGNORED,
    ),
    Case(
        codes.DUPLICATE_NAME,
        '{"auth": «{"handlers": [{"type": "api-key", "config": {"keys": ["a"], "a": "b"}},'
        ' {"type": "api-key", "config": {"keys": ["a"], "a": "b"}}]}}',
        "two handlers have the same type",
        REFUSED,
    ),
    Case(
        codes.BAD_API,
        components('{"name": "a", "api": «"camera", "model": "fake"}'),
        '"camera" is not an API',
        UNHEALTHY,
    ),
    Case(
        codes.BAD_API,
        components('{"name": "a", "api": «"rdk:component:camra", "model": "test"}'),
        'unknown API "rdk:component:camra"',
        UNHEALTHY,
        'did you mean "rdk:component:camera"?',
    ),
    Case(
        codes.BAD_API,
        components('«{"name": "a", "api": "rdk:service:generic", "model": "fake"}'),
        'rdk:service:generic is not a component; move it to "services"',
        UNHEALTHY,
    ),
    Case(
        codes.BAD_API,
        components('«{"name": "a", "api": "acme:gizmo:x", "model": "a:b:c"}'),
        'acme:gizmo:x is not a component; the second part must be "component"',
        UNHEALTHY,
    ),
    Case(
        codes.BAD_API,
        components(
            '{"name": "a", "api": «{"namespace": "rdk", "type": "component"}, "model": "x"}'
        ),
        "exactly the keys namespace, type, subtype",
        UNHEALTHY,
    ),
    Case(
        codes.BAD_API,
        components(
            '{"name": "a", "model": "fake", "api": «{"namespace": "a:b", "type": "component",'
            ' "subtype": "sensor"}}'
        ),
        "is not an API",
        UNHEALTHY,
    ),
    Case(
        codes.BAD_MODEL,
        components('{"name": "a", "api": "rdk:component:sensor", "model": «"acme:arm"}'),
        '"acme:arm" is not a model',
        UNHEALTHY,
    ),
    Case(
        codes.BAD_MODEL,
        components('{"name": "a", "api": "rdk:component:sensor", "model": «{"name": "x"}}'),
        "exactly the keys namespace, model_family, name",
        UNHEALTHY,
    ),
    Case(
        codes.UNKNOWN_MODEL,
        components('{"name": "a", "api": "rdk:component:sensor", "model": «"fkae"}'),
        'unknown model "fkae" for rdk:component:sensor',
        UNHEALTHY,
        'did you mean "fake"?',
    ),
    Case(
        codes.UNKNOWN_MODEL,
        components('{"name": "a", "api": "rdk:component:sensor", "model": «"bme280"}'),
        'unknown model "bme280" for rdk:component:sensor',
        UNHEALTHY,
        "models of rdk:component:sensor: fake, serial, system",
    ),
    Case(
        codes.UNKNOWN_MODEL,
        components('{"name": "a", "api": "rdk:component:arm", "model": «"acme:arms:one"}'),
        'unknown model "acme:arms:one" for rdk:component:arm',
        UNHEALTHY,
        'install the plug-in, or add the module that provides it to "modules"',
    ),
    Case(
        codes.MISSING_DEPENDENCY,
        components(f'{{"name": "arm", {S}}}', f'{{"name": "b", {S}, "depends_on": [«"amr"]}}'),
        '"b" depends on "amr", which is not configured',
        UNHEALTHY,
        'did you mean "arm"?',
    ),
    Case(
        codes.MISSING_DEPENDENCY,
        f'{{"services": [{{{VISION}, "attributes":\n {{"camera": «"cam"}}}}]}}',
        '"eyes" depends on "rdk:component:camera/cam"',
        UNHEALTHY,
    ),
    Case(
        codes.MISSING_DEPENDENCY,
        f'{{"services": [{{{VISION}, "attributes":\n {{"extra_cameras": [«"cam"]}}}}]}}',
        '"eyes" depends on "rdk:component:camera/cam"',
        UNHEALTHY,
    ),
    Case(
        codes.MISSING_DEPENDENCY,
        f'{{"services": [{{{VISION}, "attributes":\n {{"regions": [{{"camera": «"cam"}}]}}}}]}}',
        '"eyes" depends on "rdk:component:camera/cam"',
        UNHEALTHY,
    ),
    Case(
        codes.MISSING_DEPENDENCY,
        f'{{"services": [{{{VISION}, "attributes":\n {{"helper": «"nobody"}}}}]}}',
        '"eyes" depends on "nobody"',
        IGNORED,
    ),
    Case(
        codes.MISSING_DEPENDENCY,
        f'{{"components": [{A_SENSOR}], "services": [{{{VISION}, "attributes":'
        ' {"lamp": «"a"}}]}',
        '"eyes" depends on "rdk:component:switch/a"',
        IGNORED,
    ),
    Case(
        codes.MISSING_DEPENDENCY,
        '{"maintenance": {"sensor_name": «"rdk:component:sensor/safe",'
        ' "maintenance_allowed_key": "ok"}}',
        '"rdk:component:sensor/safe" is not configured',
        IGNORED,
    ),
    Case(
        codes.MISSING_DEPENDENCY,
        f'{{"components": [{{"name": "arm", {S}}}], "jobs": [{{"name": "j", "schedule": "1s",'
        ' "resource": «"amr", "method": "M"}]}',
        '"amr" is not configured',
        IGNORED,
        'did you mean "arm"?',
    ),
    Case(
        codes.AMBIGUOUS_DEPENDENCY,
        components(
            f'{{"name": "front", {S}}}',
            '{"name": "front", "api": "rdk:component:camera", "model": "test"}',
            f'{{"name": "b", {S}, "depends_on": [«"front"]}}',
        ),
        'several resources: write "rdk:component:sensor/front" or "rdk:component:camera/front"',
        UNHEALTHY,
    ),
    Case(
        codes.AMBIGUOUS_DEPENDENCY,
        f'{{"components": [{A_SENSOR}, {{"name": "a", "api": "rdk:component:camera", "model":'
        f' "test"}}], "services": [{{{VISION}, "attributes": {{"helper": «"a"}}}}]}}',
        'depends on "a", which matches several resources',
        IGNORED,
    ),
    Case(
        codes.CIRCULAR_DEPENDENCY,
        components(
            f'{{"name": "a", {S}, "depends_on": [«"b"]}}',
            f'{{"name": "b", {S}, "depends_on": ["rdk:component:sensor/c"]}}',
            f'{{"name": "c", {S}, "depends_on": ["a"]}}',
        ),
        'circular dependency: "a" -> "b" -> "c" -> "a"',
        UNHEALTHY,
        "remove one of these dependencies",
    ),
    Case(
        codes.CIRCULAR_DEPENDENCY,
        components(f'{{"name": "a", {S}, "depends_on": [«"a"]}}'),
        '"a" depends on itself',
        UNHEALTHY,
        "remove this dependency",
    ),
    Case(
        codes.CIRCULAR_DEPENDENCY,
        f'{{"components": [{{{CAMERA}, "depends_on": [«"eyes"]}}],\n'
        f'"services": [{{{VISION}, "attributes": {{"camera": "cam"}}}}]}}',
        'circular dependency: "cam" -> "eyes" -> "cam"',
        UNHEALTHY,
        "remove one of these dependencies",
    ),
    Case(
        codes.CIRCULAR_OPTIONAL,
        f'{{"components": [{{{CAMERA}, "depends_on": ["eyes"]}}],\n'
        f'"services": [{{{VISION}, "attributes": {{"helper": «"cam"}}}}]}}',
        '"cam" depends on "eyes", so "eyes" is built without "cam"',
        IGNORED,
    ),
    Case(
        codes.BAD_PATTERN,
        '{"log": [{"pattern": «"rdk.(", "level": "info"}]}',
        "neither a wildcard nor a regular expression",
        IGNORED,
    ),
    Case(
        codes.BAD_PATTERN,
        '{"log": [{"pattern": «"a{99999}", "level": "info"}]}',
        "neither a wildcard nor a regular expression",
        IGNORED,
    ),
    Case(codes.BAD_PATTERN, '{"log": [{"pattern": «"", "level": "info"}]}', "is empty", IGNORED),
    Case(
        codes.UNMATCHED_PATTERN,
        '{"log": [{"pattern": «"rdk.networkin", "level": "info"}]}',
        'the pattern "rdk.networkin" matches no resource, module or logger of the server',
        IGNORED,
        'did you mean "rdk.networking"?',
    ),
    Case(
        codes.UNMATCHED_PATTERN,
        f'{{"components": [{{"name": "a", {S}}}],\n'
        '"log": [{"pattern": «"rdk.services.*", "level": "info"}]}',
        'the pattern "rdk.services.*" matches no',
        IGNORED,
    ),
    Case(
        codes.BAD_LEVEL,
        '{"log": [{"pattern": "a", "level": «"verbose"}]}',
        '"verbose" is not a log level; the levels are debug, info, warn, error',
        IGNORED,
    ),
    Case(
        codes.BAD_LEVEL,
        components(f'{{"name": "a", {S}, "log_configuration": {{"level": «"loud"}}}}'),
        '"loud" is not a log level',
        IGNORED,
    ),
    Case(
        codes.MISSING_FILE,
        '{"network": {"tls_cert_file": «"/etc/crt.pem", "tls_key_file": "/etc/key.pem"}}',
        'file "/etc/crt.pem" does not exist',
        REFUSED,
    ),
    Case(
        codes.MISSING_FILE,
        '{"modules": [{"name": "m", "executable_path": «"/bin/acne"}]}',
        'file "/bin/acne" does not exist',
        UNHEALTHY,
    ),
    Case(
        codes.MISSING_FILE,
        f'{{"services": [{{{VISION}, "attributes": {{"label_path": «"/data/l.txt"}}}}]}}',
        'file "/data/l.txt" does not exist',
        UNHEALTHY,
    ),
    Case(
        codes.MISSING_FILE,
        f'{{"services": [{{{VISION}, "attributes": {{"label_path": «"~nobody-here/l"}}}}]}}',
        'file "~nobody-here/l" does not exist',
        UNHEALTHY,
    ),
    Case(
        codes.INCOMPLETE_PAIR,
        '{"network": «{"tls_cert_file": "/etc/cert.pem"}}',
        '"tls_key_file" is missing; a certificate and its key must be set together',
        REFUSED,
    ),
    Case(
        codes.INCOMPLETE_PAIR,
        '{"network": «{"tls_key_file": "/etc/key.pem"}}',
        '"tls_cert_file" is missing',
        REFUSED,
    ),
    Case(
        codes.INCOMPLETE_PAIR,
        '{"cloud": «{"id": "i", "secret": "s", "tls_private_key": "k"}}',
        '"tls_certificate" is missing',
        REFUSED,
    ),
    Case(
        codes.INCOMPLETE_PAIR,
        '{"cloud": «{"id": "i"}}',
        '"id" requires "api_key" or "secret"',
        REFUSED,
    ),
    Case(
        codes.INCOMPLETE_PAIR,
        '{"auth": {"handlers": [«{"type": "api-key", "config": {"keys": ["a"]}}]}}',
        'item 1 of "keys" has no field with its key',
        REFUSED,
    ),
    Case(
        codes.BAD_PLACEHOLDER,
        components(f'{{{CAMERA}, "attributes": {{"password": «"${{environment.PW}}"}}}}'),
        "the environment variable PW is not set",
        UNHEALTHY,
    ),
    Case(
        codes.BAD_PLACEHOLDER,
        '{"packages": [{"name": "det", "package": "a/b"}], "services": [{'
        + VISION
        + ', "attributes": {"label_path": «"${packages.ml_model.dett}/l"}}]}',
        'unknown package "dett"; did you mean ${packages.ml_model.det}?',
        UNHEALTHY,
    ),
    Case(
        codes.BAD_PLACEHOLDER,
        '{"modules": [{"name": "m", "executable_path": "/bin/acme",\n'
        ' "env": {"A": «"${packages.x}"}}]}',
        'unknown package "x"',
        UNHEALTHY,
    ),
    Case(
        codes.UNSET_VARIABLE,
        '{"revision": "«$REVISION"}',
        "the environment variable REVISION is not set",
        IGNORED,
        "set it, or write ${REVISION:-default}",
    ),
    Case(
        codes.INCOMPLETE_PROTECTION,
        '{"auth": {"tls_auth_entities": «["machine.example"]}}',
        '/auth/tls_auth_entities enables client certificates, but "network" has no',
        REFUSED,
        'set "tls_cert_file", or remove "tls_auth_entities"',
    ),
    Case(
        codes.INCOMPLETE_PROTECTION,
        '{"network": {"tls_cert_file": "/etc/cert.pem", "tls_key_file": "/etc/key.pem", '
        '"tls_client_ca_file": "/etc/key.pem", "no_tls": true}, '
        '"auth": {"tls_auth_entities": «["m.example"]}}',
        '/auth/tls_auth_entities enables client certificates, but "no_tls" is set',
        REFUSED,
        'remove "no_tls", or remove "tls_auth_entities"',
    ),
    Case(
        codes.PLAINTEXT_ADDRESS,
        '{"auth": {"handlers": [{"type": "robot-location-secret", "config": {"secret": "x"}}]}, '
        '"network": {"tls_cert_file": "/etc/cert.pem", "tls_key_file": "/etc/key.pem", '
        '"grpc_address": «":9090"}}',
        "this address serves plaintext; only bind_address uses the certificate",
        IGNORED,
        'remove "grpc_address", or bind it to localhost',
    ),
    Case(
        codes.UNKNOWN_KEY,
        '{"auth": {«"handlrs": []}}',
        'unknown key "handlrs"',
        REFUSED,
        'did you mean "handlers"?',
    ),
    Case(
        codes.OPEN_TO_ALL,
        '{"network": {"bind_address": «":8080"}}',
        '":8080" is not used: without login, the machine listens on localhost only',
        IGNORED,
        'require a login with "auth", or set "insecure_without_auth" in "network"',
    ),
    Case(
        codes.OPEN_TO_ALL,
        '{"network": {"grpc_address": «"192.0.2.7:80"}}',
        '"192.0.2.7:80" is not used',
        IGNORED,
        'require a login with "auth", or set "insecure_without_auth" in "network"',
    ),
    Case(
        codes.OPEN_TO_ALL,
        '{"network": {"bind_address": «"[::]:80", "insecure_without_auth": true}}',
        'anyone who reaches "[::]:80" can control this machine',
        IGNORED,
        'require a login with "auth"',
    ),
    Case(
        codes.OPEN_MODULE,
        '{"modules": [{"name": "m", "executable_path": "/bin/acme", "tcp_mode": «true}]}',
        'every local process can call module "m"',
        IGNORED,
        'remove "tcp_mode" unless the module cannot use a Unix socket',
    ),
    Case(
        codes.UNSUPPORTED,
        '{«"cloud": {"id": "i", "secret": "s"}}',
        "the machine does not connect to a cloud, because app_address is missing",
        IGNORED,
        "add the address of the cloud, such as https://fleet.example.org",
    ),
    Case(
        codes.BAD_VALUE,
        '{"processes": [{"id": "p", "name": "x", "stop_signal": «"SIGSTOPP"}]}',
        '"SIGSTOPP" is not a signal; write a signal such as "SIGTERM" or 15',
        IGNORED,
    ),
    Case(
        codes.BAD_VALUE,
        '{"processes": [{"id": "p", "name": "x", "stop_signal": «0}]}',
        '"0" is not a signal',
        IGNORED,
    ),
    Case(
        codes.BAD_PLACEHOLDER,
        '{"processes": [{"id": "p", "name": "rm", "args": ["-r", «"${environment.NONE_SUCH}/x"]}]}',
        "the environment variable NONE_SUCH is not set",
        IGNORED,
    ),
    Case(
        codes.NO_REGISTRY,
        '{"modules": [«{"name": "m", "type": "registry", "module_id": "acme:m"}]}',
        'module "m" has no "executable_path": for a registry module',
        UNHEALTHY,
    ),
    Case(
        codes.NO_PACKAGE_SOURCE,
        '{"packages": [«{"name": "det", "package": "acme/det", "version": "1.2"}]}',
        'package "det" is missing, and has no source to download it from',
        IGNORED,
        'add its "url", join a cloud that has it, or put its files into '
        f"{HOME}/packages/data/ml_model/acme-det-1_2",
    ),
    Case(
        codes.UNSUPPORTED,
        components(f'{{"name": "a", {S}, "service_configs": [«{{"type": "data_manager"}}]}}'),
        "this release does not capture data",
        IGNORED,
    ),
    Case(
        codes.UNSUPPORTED,
        components(f'{{"name": "a", {S}, "service_configs": [«{{"type": "weather"}}]}}'),
        'this release has no service for "weather"',
        IGNORED,
    ),
    Case(
        codes.UNSUPPORTED,
        '{«"tracing": {"enabled": true, "console": true}}',
        "this release does not trace calls",
        IGNORED,
    ),
    Case(
        codes.UNSUPPORTED,
        '{«"enable_web_profile": true}',
        "this release does not have a profiler",
        IGNORED,
    ),
]


def test_unused_sections_are_not_reported() -> None:
    load = load_config(
        {
            "cloud": None,
            "remotes": [],
            "processes": [],
            "packages": [],
            "tracing": {"enabled": True, "otlpendpoint": ""},
            "enable_web_profile": False,
            "components": [sensor("a", service_configs=[])],
        }
    )
    assert codes_of(load) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.code.id}-{case.message[:30]}")
def test_diagnostic_has_message_hint_and_position(case: Case) -> None:
    text, (position,) = parse_markers(case.text)
    fault = _first_diagnostic(load_config(text), case.code)
    assert fault.excerpt is not None
    assert fault.excerpt.position == position
    assert case.message in fault.diagnostic.message
    assert fault.diagnostic.effect is case.effect
    if case.hint is not None:
        assert fault.diagnostic.hint == case.hint


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.code.id}-{case.message[:30]}")
def test_only_cloud_network_and_auth_errors_refuse_the_file(case: Case) -> None:
    text, _ = parse_markers(case.text)
    load = load_config(text)
    assert load.is_refused == (case.effect is REFUSED)
    if load.is_refused and case.code not in (codes.NOT_JSON, codes.OPEN_TO_ALL):
        first = load.result.diagnostics[0].location.pointer[:1]
        assert first in ((), ("cloud",), ("network",), ("auth",))


def _first_diagnostic(load: LoadedConfig, code: Code) -> LocatedDiagnostic:
    faults = [fault for fault in load.diagnostics if fault.diagnostic.code is code]
    assert faults, f"{code.id} was not found, but {codes_of(load)}"
    return faults[0]


def test_every_diagnostic_code_has_a_case() -> None:
    # E002 is about a file: see test_unreadable_file_is_refused. E502 needs an environment: see
    # test_loader.
    # W004 has no position: see test_mutations. W505 needs a certificate: see test_certs.
    elsewhere = {"E002", "E502", "W004", "W505"}
    assert {case.code.id for case in CASES} == codes.CODES.keys() - elsewhere


def test_unreadable_file_is_refused() -> None:
    load = load_unreadable(Unreadable("there is no such file"))
    assert load.is_refused
    assert load.has_errors


def test_complete_file_has_only_the_login_error_and_unsupported_sections() -> None:
    load = load_config(COMPLETE.read_text())
    assert [code for code in codes_of(load) if code != "W406"] == ["E405"]
    unsupported = [
        format_pointer(found.location.pointer)
        for found in diagnostics_of(load)
        if found.code is codes.UNSUPPORTED
    ]
    assert unsupported == [
        "/remotes/0/service_configs/0",
        "/components/0/service_configs/0",
        "/components/0/service_configs/1",
        "/tracing",
    ]
    config = load.result.config
    left_out = [
        name
        for name in type(config).model_fields
        if getattr(config, name) in (None, [], "", type(config).model_fields[name].default)
        and name not in ("enable_web_profile", "disable_log_deduplication")
    ]
    assert left_out == []
    assert len(load.result.specs) == 5
    assert all(spec.fault is None for spec in load.result.specs)


def test_all_diagnostics_are_reported_in_text_order() -> None:
    text, positions = parse_markers(
        '{«"foo": 1,\n'
        ' "components": [{"name": «"a b", "api": «"x", "model": «"y:z"},\n'
        f'   {{"name": "b", {S}, "depends_on": [«"c"],\n'
        ' "attributes": {«"d": 1, "readings": «5}}],\n'
        ' "network": {"bind_address": «"x", «"y": 1},\n'
        ' "log": [{"pattern": «"(", "level": «"e"}],\n'
        ' "revision": "«$NO",\n'
        ' «"foo": 2}'
    )
    load = load_config(text)
    assert [fault.excerpt and fault.excerpt.position for fault in load.diagnostics] == positions
    expected = "E103 E201 E203 E204 E301 E103 E101 E104 E103 E401 E402 W501 E003"
    assert " ".join(codes_of(load)) == expected


API_FORMS: list[dict[str, JsonValue]] = [
    {"api": "rdk:component:sensor"},
    {"api": {"namespace": "rdk", "type": "component", "subtype": "sensor"}},
    {"type": "sensor"},
    {"type": "sensor", "namespace": "rdk"},
    {"type": "sensor", "namespace": None},
    {"type": "sensor", "api": None},
    {"type": "camera", "api": "rdk:component:sensor"},
]
MODEL_FORMS: list[JsonValue] = [
    "fake",
    "rdk:builtin:fake",
    {"namespace": "rdk", "model_family": "builtin", "name": "fake"},
]


@pytest.mark.parametrize("api", API_FORMS)
@pytest.mark.parametrize("model", MODEL_FORMS)
def test_all_api_and_model_forms_are_equivalent(
    api: dict[str, JsonValue], model: JsonValue
) -> None:
    load = load_config({"components": [{"name": "a", "model": model, **api}]})
    assert codes_of(load) == []
    (spec,) = load.result.specs
    assert spec.name.api == Api.parse("rdk:component:sensor")
    assert spec.model == ModelName("rdk", "builtin", "fake")


def test_legacy_namespace_field_sets_the_api_namespace() -> None:
    module: JsonValue = {"name": "m", "executable_path": "/bin/acme"}
    old: JsonValue = {"name": "a", "namespace": "acme", "type": "claw", "model": "acme:claws:x"}
    load = load_config({"modules": [module], "components": [old]})
    assert codes_of(load) == []
    assert str(load.result.specs[0].name) == "acme:component:claw/a"


def test_service_name_and_model_default_to_builtin() -> None:
    load = load_config({"services": [{"api": "rdk:service:generic", "model": "fake"}]})
    assert codes_of(load) == []
    assert str(load.result.specs[0].name) == "rdk:service:generic/builtin"
    load = load_config({"services": [{"type": "motion"}]})
    assert load.result.specs[0].model == ModelName("rdk", "builtin", "builtin")


def test_null_counts_as_absent() -> None:
    nothing: dict[str, JsonValue] = dict.fromkeys(
        ("attributes", "depends_on", "frame", "log_configuration", "service_configs", "namespace")
    )
    load = load_config(
        {
            "cloud": None,
            "modules": None,
            "network": {"bind_address": None, "sessions": None},
            "debug": None,
            "revision": None,
            "components": [sensor("a", **nothing)],
        }
    )
    assert codes_of(load) == []
    assert load.result.config.network.bind_address == ""


def test_service_config_type_may_be_a_short_name() -> None:
    configs: JsonValue = [{"type": "data_manager"}, {"type": "rdk:service:data_manager"}]
    load = load_config({"components": [sensor("a", service_configs=configs)]})
    assert [found.message for found in diagnostics_of(load)] == [
        "this release does not capture data"
    ] * 2


def test_quoted_number_is_accepted() -> None:
    camera: JsonValue = {
        "name": "c",
        "api": "rdk:component:camera",
        "model": "test",
        "attributes": {"width": "800", "rate": "2.5"},
    }
    load = load_config({"components": [camera]})
    assert codes_of(load) == []
    assert load.result.specs[0].settings == CameraAttributes(width=800, rate=2.5)


def test_unknown_keys_at_every_depth_leave_the_resource_usable() -> None:
    load = load_config(
        {
            "components": [
                {
                    **sensor("a", attributes={"readings": {"x": 1}, "odd": [1, {"deep": 2}]}),
                    "odd": 1,
                    "frame": {
                        "parent": "world",
                        "odd": 1,
                        "translation": {"x": 1, "odd": 2},
                        "orientation": {"type": "quaternion", "odd": 2},
                    },
                    "log_configuration": {"level": "warn", "odd": 1},
                    "service_configs": [{"type": "data_manager", "odd": 1}],
                }
            ]
        }
    )
    assert codes_of(load) == [*["E103"] * 6, "W406", "E103"]
    assert all(diagnostic.effect is IGNORED for diagnostic in diagnostics_of(load))
    assert spec_of(load, "a").fault is None
    (config,) = load.result.config.components
    assert config.frame is not None
    assert config.frame.translation.x == 1
    assert config.log_configuration is not None
    assert config.log_configuration.level is Level.WARN


@pytest.mark.parametrize(
    "bad",
    ["loud", 5, {}, {"level": "loud"}, {"level": 5}, {"level": "info", "x": 1, "level2": 2}, []],
    ids=repr,
)
def test_bad_log_configuration_is_ignored(bad: JsonValue) -> None:
    load = load_config({"components": [sensor("a", log_configuration=bad)]})
    assert codes_of(load)
    assert all(diagnostic.effect is IGNORED for diagnostic in diagnostics_of(load))
    assert spec_of(load, "a").fault is None


def test_bad_log_level_leaves_the_module_usable() -> None:
    load = load_config(
        {"modules": [{"name": "m", "executable_path": "/bin/acme", "log_level": "loud", "x": 1}]}
    )
    assert sorted(codes_of(load)) == ["E103", "E402"]
    assert load.result.config.modules == [ModuleConfig(name="m", executable_path="/bin/acme")]


@pytest.mark.parametrize(
    "broken",
    [
        {"model": 5},
        {"model": "a:b"},
        {"depends_on": 5},
        {"depends_on": ["a/b"]},
        {"attributes": []},
        {"attributes": {"readings": 5}},
        {"attributes": {"readings": {"a": "${environment.NO}"}}},
        {"frame": {}},
        {"name": "left arm"},
        {"name": "x" * 61},
    ],
    ids=repr,
)
def test_broken_resource_keeps_its_spec_with_the_fault(broken: dict[str, JsonValue]) -> None:
    load = load_config({"components": [{**sensor("a"), **broken}, sensor("b")]})
    assert not load.is_refused
    first, second = load.result.specs
    assert first.name.name == broken.get("name", "a")
    assert first.fault is not None
    assert diagnostics_of(load)[0].message in first.fault
    assert "(at /components/0" in first.fault
    assert second.fault is None


def test_broken_service_without_a_name_keeps_its_spec() -> None:
    load = load_config(
        {"services": [{"api": "rdk:service:generic", "model": "fake", "depends_on": 5}]}
    )
    (spec,) = load.result.specs
    assert str(spec.name) == "rdk:service:generic/builtin"
    assert spec.fault is not None


def test_missing_dependency_model_or_file_does_not_fault_the_spec() -> None:
    load = load_config(
        {
            "components": [
                sensor("a", depends_on=["nobody"]),
                {"name": "b", "api": "rdk:component:sensor", "model": "bme280"},
            ],
            "services": [
                {
                    "name": "v",
                    "api": "rdk:service:vision",
                    "model": "test",
                    "attributes": {"label_path": "/nowhere"},
                }
            ],
        }
    )
    assert codes_of(load) == ["E301", "E206", "E403"]
    assert [spec.fault for spec in load.result.specs] == [None, None, None]


def test_spec_fault_lists_every_fault_of_the_resource() -> None:
    load = load_config({"components": [{**sensor("a"), "depends_on": 5, "frame": 6}]})
    fault = spec_of(load, "a").fault
    assert fault is not None
    assert "number 5 (at /components/0/depends_on); " in fault
    assert "number 6 (at /components/0/frame)" in fault


def test_duplicate_name_keeps_the_first_and_shows_both_positions() -> None:
    text, (first, second) = parse_markers(
        f'{{"components": [\n  {{"name": «"a", {S}, "attributes": {{"readings": {{"n": 1}}}}}},\n'
        f'  {{"name": «"a", {S}, "attributes": {{"readings": {{"n": 2}}}}}}]}}'
    )
    load = load_config(text)
    (fault,) = load.diagnostics
    assert fault.excerpt is not None
    assert fault.excerpt.position == second
    assert [spot and spot.position for spot in fault.related_excerpts] == [first]
    (spec,) = load.result.specs
    assert getattr(spec.settings, "readings", None) == {"n": 1}


def test_same_name_in_components_and_services_makes_one_spec() -> None:
    load = load_config({"components": [sensor("a")], "services": [sensor("a")]})
    assert sorted(codes_of(load)) == ["E202", "E203"]
    assert len(load.result.specs) == 1


def test_same_name_with_different_apis_makes_two_resources() -> None:
    generic: JsonValue = {"name": "a", "api": "rdk:component:generic", "model": "fake"}
    load = load_config({"components": [sensor("a"), generic]})
    assert codes_of(load) == []
    assert len(load.result.specs) == 2


@pytest.mark.parametrize(
    ("section", "items"),
    [
        ("modules", {"name": "x", "executable_path": "/bin/acme"}),
        ("remotes", {"name": "x", "address": "h:1"}),
        ("packages", {"name": "x", "url": "https://models.example/x.tar.gz"}),
        ("processes", {"id": "x", "name": "p"}),
        ("jobs", {"name": "x", "schedule": "1s", "resource": "a", "method": "M"}),
    ],
)
def test_duplicate_name_in_a_section_keeps_the_first(
    section: str, items: dict[str, JsonValue]
) -> None:
    load = load_config({section: [items, {**items}], "components": [sensor("a")]})
    assert [code for code in codes_of(load) if code != "W406"] == ["E202"]
    assert len(getattr(load.result.config, section)) == 1


def test_placeholders_of_a_process_are_filled() -> None:
    package: JsonValue = {
        "name": "tool",
        "package": "acme/tool",
        "version": "1",
        "type": "archive",
    }
    process: JsonValue = {
        "id": "p",
        "name": "${packages.archive.tool}/run",
        "args": ["${environment.FOLDER}/a", "b"],
        "cwd": "${environment.FOLDER}",
        "env": {"X": "${environment.FOLDER}"},
    }
    load = load_config(
        {"packages": [package], "processes": [process]}, environment={"FOLDER": "/data"}
    )
    (filled,) = load.result.config.processes
    assert filled.name == f"{HOME}/packages/data/archive/acme-tool-1/run"
    assert (filled.args, filled.cwd, filled.env) == (["/data/a", "b"], "/data", {"X": "/data"})


def test_process_with_an_unresolved_placeholder_is_left_out() -> None:
    processes: JsonValue = [
        {"id": "a", "name": "${environment.NONE}"},
        {"id": "b", "name": "true"},
    ]
    load = load_config({"processes": processes})
    assert codes_of(load) == ["E501"]
    assert [process.id for process in load.result.config.processes] == ["b"]


def test_cycle_diagnostic_shows_every_dependency_of_the_cycle() -> None:
    text, positions = parse_markers(
        components(
            f'{{"name": "out", {S}, "depends_on": ["a"]}}',
            f'{{"name": "a", {S}, "depends_on": ["free", «"b"]}}',
            f'{{"name": "b", {S}, "depends_on": [«"c"]}}',
            f'{{"name": "c", {S}, "depends_on": [«"a"]}}',
            f'{{"name": "free", {S}}}',
        )
    )
    (fault,) = load_config(text).diagnostics
    spots = [fault.excerpt, *fault.related_excerpts]
    assert [spot and spot.position for spot in spots] == positions
    assert [related.message for related in fault.diagnostic.related] == [
        '"b" depends on the next resource here',
        '"c" depends on the next resource here',
    ]


def test_two_cycles_make_two_diagnostics() -> None:
    load = load_config(
        {
            "components": [
                sensor("a", depends_on=["b"]),
                sensor("b", depends_on=["a"]),
                sensor("c", depends_on=["d"]),
                sensor("d", depends_on=["c"]),
            ]
        }
    )
    assert codes_of(load) == ["E303", "E303"]


def test_attribute_dependencies_are_added_to_depends_on() -> None:
    cameras: list[JsonValue] = [
        {"name": name, "api": "rdk:component:camera", "model": "test"} for name in "abc"
    ]
    load = load_config(
        {
            "components": [*cameras, sensor("h")],
            "services": [
                {
                    "name": "v",
                    "api": "rdk:service:vision",
                    "model": "test",
                    "depends_on": ["h"],
                    "attributes": {
                        "camera": "a",
                        "extra_cameras": ["rdk:component:camera/b"],
                        "regions": [{"camera": "c"}],
                        "helper": "h",
                        "lamp": "",
                    },
                }
            ],
        }
    )
    camera = Api.parse("rdk:component:camera")
    spec = spec_of(load, "v")
    assert set(spec.needs) == {Reference("h"), *(Reference(name, camera) for name in "abc")}
    assert spec.wants == (Reference("h"),)


def test_unknown_dependency_is_accepted_when_a_remote_is_configured() -> None:
    load = load_config(
        {
            "remotes": [{"name": "r", "address": "h:1"}],
            "components": [sensor("a", depends_on=["r:b", "c"])],
            "jobs": [{"name": "j", "schedule": "1s", "resource": "r:b", "method": "M"}],
        }
    )
    assert codes_of(load) == []
    # With a single remote, the name may omit it.
    assert spec_of(load, "a").needs == (Reference("r:b"), Reference("r:c"))


def test_dependency_names_its_remote_if_there_are_several() -> None:
    """Otherwise, it would depend on the connections which machine a resource moves."""
    load = load_config(
        {
            "remotes": [{"name": "r", "address": "h:1"}, {"name": "q", "address": "h:2"}],
            "components": [sensor("a", depends_on=["c", "b", "builtin"]), sensor("b")],
        }
    )
    assert spec_of(load, "a").needs == (Reference("c"), Reference("b"), Reference("builtin"))


def test_unknown_namespaced_model_is_accepted_when_a_module_is_configured() -> None:
    module: JsonValue = {"name": "m", "executable_path": "/bin/acme"}
    arm: JsonValue = {"name": "a", "api": "rdk:component:arm", "model": "acme:arms:one"}
    assert codes_of(load_config({"modules": [module], "components": [arm]})) == []
    missing: JsonValue = {"name": "a", "api": "rdk:component:arm", "model": "nope"}
    assert codes_of(load_config({"modules": [module], "components": [missing]})) == ["E206"]


def test_placeholders_in_module_fields_are_filled() -> None:
    path = f"{HOME}/packages/data/ml_model/acme-det-1_2_3"
    load = load_config(
        {
            "packages": [{"name": "det", "package": "acme/det", "version": "1.2.3"}],
            "modules": [
                {
                    "name": "m",
                    "executable_path": "${packages.ml_model.det}/run",
                    "env": {"WHO": "${environment.WHO}"},
                }
            ],
            "components": [
                sensor("a", attributes={"readings": {"x": ["${packages.det}/l", "$${packages.q}"]}})
            ],
        },
        {"WHO": "me"},
        files={f"{path}/run"},
    )
    assert codes_of(load) == ["E501"]
    (module,) = load.result.config.modules
    assert module.executable_path == f"{path}/run"
    assert module.env == {"WHO": "me"}


@pytest.mark.parametrize(
    ("package", "directory"),
    [
        (
            {"package": "acme/det", "version": "1.2.3"},
            f"{HOME}/packages/data/ml_model/acme-det-1_2_3",
        ),
        ({"package": "a/b", "version": "../x"}, f"{HOME}/packages/data/ml_model/a-b-___x"),
        ({"url": "/opt/det/"}, "/opt/det"),
        ({"url": "/opt/det.v2"}, "/opt/det.v2"),
    ],
)
def test_package_directory(package: dict[str, JsonValue], directory: str) -> None:
    load = load_config(
        {
            "packages": [{"name": "det", **package}],
            "components": [sensor("a", attributes={"readings": {"x": "${packages.det}"}})],
        }
    )
    (spec,) = load.result.specs
    assert spec.settings_text == f'{{"readings": {{"x": "{directory}"}}}}'


def test_package_of_another_url_or_hash_has_another_directory() -> None:
    url = "https://models.example/det.tar.gz"
    packages = [{"url": url}, {"url": f"{url}.2"}, {"url": url, "sha256": "0" * 64}]
    load = load_config(
        {"packages": [{"name": f"p{at}", **each} for at, each in enumerate(packages)]}
    )
    found = {str(locate_package(each, Path(HOME))) for each in load.result.config.packages}
    assert len(found) == 3
    assert all(each.startswith(f"{HOME}/packages/data/ml_model/p") for each in found)


@pytest.mark.parametrize(
    "package",
    [
        {},
        {"url": "ftp://models.example/x.tar.gz"},
        {"url": "models/x"},
        {"url": "https:///x"},
        {"url": "https://me:canary@models.example/x.tar.gz"},
        {"url": "https://models.example/x", "sha256": "0123"},
        {"url": "/opt/folder", "sha256": "0" * 64},
    ],
)
def test_package_without_a_usable_source_is_refused(package: dict[str, JsonValue]) -> None:
    load = load_config({"packages": [{"name": "p", **package}]})
    assert load.has_errors
    assert load.result.config.packages == []
    assert all("canary" not in each.message for each in diagnostics_of(load))


@pytest.mark.parametrize("source", ["url", "cloud", "none", "present"])
def test_file_of_a_package_is_missed_only_if_it_will_not_come(source: str) -> None:
    package: dict[str, JsonValue] = {"name": "det", "package": "acme/det", "version": "1"}
    package["type"] = "module"
    if source == "url":
        package["url"] = "https://models.example/det.tar.gz"
    cloud: JsonValue = {"id": "i", "secret": "s", "app_address": "https://fleet.example"}
    files = {f"{HOME}/packages/data/module/acme-det-1/other"} if source == "present" else set()
    load = load_config(
        {
            "packages": [package],
            **({"cloud": cloud} if source == "cloud" else {}),
            "modules": [{"name": "m", "executable_path": "${packages.module.det}/run"}],
        },
        files=files,
    )
    is_missed = source in ("none", "present")
    assert ("E403" in codes_of(load)) == is_missed
    assert ("W407" in codes_of(load)) == (source == "none")
    assert bool(load.result.missing_files) == is_missed


def test_users_of_packages_are_recorded() -> None:
    load = load_config(
        {
            "packages": [
                {"name": name, "package": f"a/{name}", "type": "archive"} for name in ("x", "y")
            ],
            "modules": [
                {
                    "name": "m",
                    "executable_path": "${packages.archive.x}/run",
                    "env": {"A": "${packages.archive.y}:${packages.archive.x}"},
                }
            ],
            "components": [
                sensor("a", attributes={"readings": {"deep": ["${packages.archive.y}"]}}),
                sensor("b", attributes={"readings": {"x": "${packages.archive.z}"}}),
            ],
        }
    )
    assert load.result.package_users == {
        ("modules", 0): {"x", "y"},
        ("components", 0): {"y"},
    }


def test_package_of_another_type_gets_a_hint() -> None:
    load = load_config(
        {
            "packages": [{"name": "m", "package": "a/b", "type": "slam_map"}],
            "components": [sensor("a", attributes={"readings": {"x": "${packages.m}"}})],
        },
        files={f"{HOME}/packages/data/slam_map/a-b-latest/map.pcd"},
    )
    (diagnostic,) = diagnostics_of(load)
    assert diagnostic.message == (
        'package "m" has type slam_map, not ml_model; write ${packages.slam_map.m}'
    )


@pytest.mark.parametrize("path", ["run.sh", "bin/run.sh", "./run.sh", "../run.sh"])
def test_relative_executable_path_is_reported(path: str) -> None:
    load = load_config({"modules": [{"name": "m", "executable_path": path}]})
    (diagnostic,) = diagnostics_of(load)
    assert (diagnostic.code.id, diagnostic.effect) == ("E104", UNHEALTHY)
    assert diagnostic.message == f'"{path}" is not an absolute path'
    assert diagnostic.hint == 'write the whole path, such as "/opt/acme/run.sh"'


def test_registry_module_without_executable_path_is_reported() -> None:
    load = load_config({"modules": [{"name": "m", "type": "registry", "module_id": "acme:m"}]})
    (diagnostic,) = diagnostics_of(load)
    assert (diagnostic.code.id, diagnostic.effect) == ("E408", UNHEALTHY)
    assert "only a cloud can fill it in" in diagnostic.message


def test_unfilled_placeholder_is_not_also_a_missing_file() -> None:
    load = load_config({"modules": [{"name": "m", "executable_path": "${packages.x}/run"}]})
    assert codes_of(load) == ["E501"]


@pytest.mark.parametrize("error", [PermissionError(), OSError(36, "long"), ValueError("null")])
def test_path_that_cannot_be_checked_counts_as_missing(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_error(path: Path) -> Path:
        raise error

    monkeypatch.setattr(Path, "expanduser", raise_error)
    load = load_config({"modules": [{"name": "m", "executable_path": "/bin/acme"}]})
    assert codes_of(load) == ["E403"]


def api_key(**other: JsonValue) -> dict[str, JsonValue]:
    return {"type": "api-key", "config": {"a": "k", "keys": ["a"], **other}}


API_KEY: dict[str, JsonValue] = {"type": "api-key", "config": {"a": "k", "keys": ["a"]}}
SECRET: dict[str, JsonValue] = {"type": "robot-location-secret", "config": {"secret": "s"}}
PUBLIC_KEY: dict[str, JsonValue] = {"kid": "a", "kty": "RSA", "n": "AQAB", "e": "AQAB"}


@pytest.mark.parametrize(
    "auth",
    [
        {"external_auth_config": {"jwks": {"keys": []}}},
        {"external_auth_config": {"jwks": {"keys": [{"kid": "a", "kty": "RSA"}]}}},
        {"external_auth_config": {"jwks": {"keys": [{**PUBLIC_KEY, "kty": "EC"}]}}},
        {"external_auth_config": {"jwks": {"keys": [{**PUBLIC_KEY, "d": "private"}]}}},
        {"tls_auth_entities": ["machine.example"]},
        {"handlrs": [{"type": "api-key"}]},
        {"handlers": [{**API_KEY, "role": {"a": "viewer"}}]},
        {"handlers": [{**API_KEY, "roles": {"a": "vewer"}}]},
        {"handlers": [{**API_KEY, "roles": {"b": "viewer"}}]},
        {"handlers": [{**API_KEY, "names": {"a": "two\nlines"}}]},
        {"handlers": [{"type": "api-key", "config": {"a": "", "keys": ["a"]}}]},
        {"handlers": [{"type": "robot-location-secret", "config": {}}]},
        {"handlers": [{"type": "robot-location-secret", "config": {"secret": 5}}]},
        {"handlers": [{"type": "robot-location-secret", "config": {"secrets": [""]}}]},
        {"handlers": [{"type": "robot-location-secret", "config": {"secrets": [{}]}}]},
        {"handlers": [{**SECRET, "roles": {"a": "viewer"}}]},
        {"handlers": [api_key(roles={"a": "viewer"})]},
        {"handlers": [api_key(Role="viewer")]},
        {"handlers": [api_key(permissions={"a": "viewer"})]},
        {
            "handlers": [
                {
                    "type": "robot-location-secret",
                    "config": {"secret": "s", "roles": {"a": "viewer"}},
                }
            ]
        },
        [],
        "api-key",
        False,
    ],
)
def test_login_that_is_not_valid_is_refused(auth: JsonValue) -> None:
    """Otherwise the machine would be open, or a client would get too many rights."""
    assert load_config({"auth": auth}).is_refused


def test_misplaced_roles_are_explained() -> None:
    (diagnostic,) = diagnostics_of(
        load_config({"auth": {"handlers": [api_key(roles={"a": "viewer"})]}})
    )
    assert diagnostic.location.pointer == ("auth", "handlers", 0, "config")
    assert '"roles" has no effect inside "config"' in diagnostic.message
    assert 'beside "config"' in diagnostic.message


@pytest.mark.parametrize(
    "auth",
    [
        {"handlers": [API_KEY, SECRET]},
        {"handlers": [{**API_KEY, "roles": {"a": "viewer"}}]},
        {"handlers": [{**API_KEY, "names": {"a": "laptop", "removed": "phone"}}]},
        {"handlers": [{"type": "api-key", "config": {"keys": ["roles"], "roles": "the key"}}]},
        {"handlers": [{"type": "robot-location-secret", "config": {"secrets": ["a", "b"]}}]},
        {"handlers": [{"type": "robot-location-secret", "config": {"secrets": [{"secret": "a"}]}}]},
        {"external_auth_config": {"jwks": {"keys": [PUBLIC_KEY]}}},
    ],
)
def test_login_is_accepted(auth: JsonValue) -> None:
    load = load_config({"auth": auth, "network": {"bind_address": ":8080"}})
    assert codes_of(load) == []
    assert load.result.config.auth.is_configured


@pytest.mark.parametrize("auth", [None, {}, {"handlers": []}, {"external_auth_config": None}])
def test_empty_auth_section_is_accepted(auth: JsonValue) -> None:
    assert codes_of(load_config({"auth": auth})) == []


def test_too_deeply_nested_log_pattern_is_an_error() -> None:
    deep = "(" * 3000 + ")" * 3000
    assert codes_of(load_config({"log": [{"pattern": deep, "level": "info"}]})) == ["E401"]


def test_valid_sections_survive_invalid_ones() -> None:
    load = load_config(
        {
            "debug": True,
            "jobs": 5,
            "log": [{"pattern": "(", "level": "info"}, {"pattern": "a", "level": "info"}],
            "remotes": [{"name": "r"}, {"name": "q", "address": "h:1"}],
            "tracing": {"enabled": "yes"},
            "components": [sensor("a")],
        }
    )
    assert not load.is_refused
    config = load.result.config
    assert config.debug
    assert len(config.log) == 1
    assert [remote.name for remote in config.remotes] == ["q"]
    assert spec_of(load, "a").fault is None


@pytest.mark.parametrize("reference", ["builtin", "rdk:service:motion/builtin"])
def test_default_motion_service_needs_no_configuration(reference: str) -> None:
    load = load_config(
        {
            "components": [
                {
                    "name": "a",
                    "api": "rdk:component:sensor",
                    "model": "fake",
                    "depends_on": [reference],
                }
            ],
            "jobs": [{"name": "j", "schedule": "1s", "resource": reference, "method": "DoCommand"}],
        }
    )
    assert codes_of(load) == []


def test_disabled_entries_do_not_run() -> None:
    load = load_config(
        {
            "modules": [{"name": "m", "executable_path": "/missing", "disabled": True}],
            "remotes": [{"name": "r", "address": "x:1", "disabled": True}],
            "processes": [{"id": "p", "name": "/bin/true", "disabled": True}],
            "jobs": [
                {"name": "j", "schedule": "9s", "resource": "s", "method": "X", "disabled": True}
            ],
            "packages": [{"name": "k", "package": "a/b", "disabled": True}],
            "components": [{"name": "s", "type": "sensor", "model": "acme:x:y"}],
        }
    )
    assert load.diagnostics == ()
    config = load.result.config
    assert [*config.remotes, *config.processes, *config.jobs, *config.packages] == []
    assert [each.disabled for each in config.modules] == [True]
    assert [step.name.name for step in find_blocked(load.result, REGISTRY)] == ["s"]
