"""The diagnostic codes. A code never changes its meaning, and the reference explains each one."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace


class Severity(enum.StrEnum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Code:
    id: str
    title: str
    explanation: str
    wrong: str
    right: str
    is_lowered: bool = False
    """Whether this error is shown as a warning."""

    @property
    def severity(self) -> Severity:
        is_warning = self.is_lowered or self.id.startswith("W")
        return Severity.WARNING if is_warning else Severity.ERROR

    def lower(self) -> Code:
        """Return the code of the same fault as a warning."""
        return replace(self, is_lowered=True)


NOT_JSON = Code(
    "E001",
    "invalid JSON",
    "The text is not valid JSON, so nothing in it can be used. A running machine keeps its current "
    "configuration; a machine that starts uses the last configuration that was applied. // "
    "comments and trailing commas are allowed.",
    '{ "components": [ }',
    '{ "components": [] }',
)
UNREADABLE = Code(
    "E002",
    "unreadable file",
    "The file does not exist, is a directory, is larger than 16 MiB, is not UTF-8, or is not "
    "readable by this user. Check the path after -config and the permissions of the file.",
    "cogwork config check machin.json",
    "cogwork config check machine.json",
)
DUPLICATE_KEY = Code(
    "E003",
    "duplicate key",
    "An object has the same key twice. The first one is used. Remove or rename the second.",
    '{ "debug": true, "debug": false }',
    '{ "debug": true }',
)
MORE_FAULTS = Code(
    "W004",
    "too many faults to show",
    "Only the 200 most severe faults of the file are shown. Fix those first; the rest are shown "
    "afterwards. No line of such a file is quoted, because it might contain a mistyped secret.",
    "200 errors and 19800 more",
    "no faults",
)
WRONG_TYPE = Code(
    "E101",
    "wrong type",
    "The value does not have the type that the field expects. Write numbers and booleans without "
    "quotes, a list in [ ] and an object in { }.",
    '"width_px": "wide"',
    '"width_px": 640',
)
MISSING_FIELD = Code(
    "E102",
    "missing field",
    "The object lacks a required field. The message names it.",
    '{ "api": "rdk:component:sensor", "model": "fake" }',
    '{ "name": "temperature", "api": "rdk:component:sensor", "model": "fake" }',
)
UNKNOWN_KEY = Code(
    "E103",
    "unknown key",
    "The key is not defined here; most often it is a typo. It is ignored, and the rest of the "
    "object is used.",
    '"atributes": {}',
    '"attributes": {}',
)
BAD_VALUE = Code(
    "E104",
    "invalid value",
    "The value has the right type, but it is out of range, not one of the choices or not in the "
    "format that the field expects. The message lists what is allowed.",
    '"type": "lokal"',
    '"type": "local"',
)
BAD_DURATION = Code(
    "E105",
    "invalid duration",
    "A duration is a quoted number with a unit: ns, us, ms, s, m or h. Several can be combined, "
    'such as "1h30m".',
    '"refresh_interval": "10 seconds"',
    '"refresh_interval": "10s"',
)
OTHER_CASE = Code(
    "W106",
    "key in other letter case",
    "The key is written in other letter case than it is defined. It is used, because the existing "
    "product uses it, too. Write it as defined, so that editors and other programs find it.",
    '"Components": []',
    '"components": []',
)
IGNORED_VALUE = Code(
    "W107",
    "value without effect",
    "The value, or a part of it, is valid but not used. The message says which part, and why.",
    '"input_image_mean_value": [0.5, 0.5, 0.5, 0.5]',
    '"input_image_mean_value": [0.5, 0.5, 0.5]',
)
BAD_NAME = Code(
    "E201",
    "invalid name",
    "A name starts with a letter or a digit and continues with letters, digits, - and _. It has at "
    "most 60 characters for a resource or a remote and 200 for a module, a process or a package. "
    "The characters : and + are reserved for remotes and tracks.",
    '"name": "left arm"',
    '"name": "left-arm"',
)
DUPLICATE_NAME = Code(
    "E202",
    "duplicate name",
    "Two entries have the same name (for resources: the same name and API). The first one is used, "
    "and the second is ignored. Rename one of them.",
    '"name": "cam" … "name": "cam"',
    '"name": "cam" … "name": "cam2"',
)
BAD_API = Code(
    "E203",
    "unknown API",
    "An API has three parts: the namespace, component or service, and the subtype. The APIs of the "
    "namespace rdk are fixed; use a namespace of your own for custom APIs.",
    '"api": "camera"',
    '"api": "rdk:component:camera"',
)
BAD_MODEL = Code(
    "E204",
    "invalid model",
    "A built-in model is a single word; a model of a module is namespace:family:name.",
    '"model": "acme:arm"',
    '"model": "acme:arms:gripper"',
)
UNKNOWN_MODEL = Code(
    "E206",
    "unknown model",
    "No built-in model and no plug-in has this name for this API, and the file has no module that "
    "could provide it. The resource stays unhealthy until the model is available.",
    '"api": "rdk:component:sensor", "model": "fkae"',
    '"api": "rdk:component:sensor", "model": "fake"',
)
MISSING_DEPENDENCY = Code(
    "E301",
    "missing dependency",
    "The resource depends on a resource that is not configured. It stays unhealthy until the "
    "dependency is configured. Names in attributes are dependencies, too.",
    '"depends_on": ["amr"]',
    '"depends_on": ["arm"]',
)
AMBIGUOUS_DEPENDENCY = Code(
    "E302",
    "ambiguous dependency",
    "Several resources of different APIs have this name. Write the full name.",
    '"depends_on": ["front"]',
    '"depends_on": ["rdk:component:camera/front"]',
)
CIRCULAR_DEPENDENCY = Code(
    "E303",
    "dependency cycle",
    "Each resource of the cycle waits for the next one, so none can be built. The message names "
    "the whole cycle; remove one of its dependencies.",
    'a: "depends_on": ["b"], b: "depends_on": ["a"]',
    'a: "depends_on": ["b"], b: "depends_on": []',
)
CIRCULAR_OPTIONAL = Code(
    "W304",
    "optional dependency in a cycle",
    "The optional dependency depends, directly or indirectly, on the resource itself. The resource "
    "is built without it.",
    "a wants b, b needs a",
    "only b needs a",
)
BAD_PATTERN = Code(
    "E401",
    "invalid pattern",
    "A pattern of the `log` section is a logger name with * as a wildcard, or a regular "
    "expression. This one is neither. The entry is ignored.",
    '"pattern": "rdk.resource_manager.("',
    '"pattern": "rdk.resource_manager.*"',
)
UNMATCHED_PATTERN = Code(
    "W401",
    "pattern that matches nothing",
    "No resource, module or logger of the server has a name that the pattern of a `log` entry "
    "matches. A pattern matches the whole name of a logger, the full or short name of a resource "
    "(`rdk:component:sensor/m1`, `m1`), its dotted name (`rdk.components.sensor`), or the name of "
    "a module. To match another logger of a module, write `rdk.modmanager.<module>.<logger>`.",
    '"pattern": "rdk.component.*"',
    '"pattern": "rdk.components.*"',
)
BAD_LEVEL = Code(
    "E402",
    "invalid log level",
    "The levels are debug, info, warn and error. The setting is ignored.",
    '"level": "verbose"',
    '"level": "debug"',
)
MISSING_FILE = Code(
    "E403",
    "missing file",
    "The configuration names a file that does not exist. A relative path refers to the directory "
    "of the configuration file, or else to the working directory of the server. In a configuration "
    "from a cloud, write absolute paths.",
    '"tls_cert_file": "cert.pm"',
    '"tls_cert_file": "/etc/cogwork/cert.pem"',
)
INCOMPLETE_PAIR = Code(
    "E404",
    "incomplete pair",
    "Two fields must be set together (a certificate and its key, a key and its ID), but only one "
    "of them is set. Set both or neither.",
    '"tls_cert_file": "/etc/cogwork/cert.pem"',
    '"tls_cert_file": "/etc/cogwork/cert.pem", "tls_key_file": "/etc/cogwork/key.pem"',
)
INCOMPLETE_PROTECTION = Code(
    "E405",
    "client certificates cannot be checked",
    "The file accepts client certificates (`tls_auth_entities`), but they cannot be checked: that "
    "needs TLS, and the authority that signs them. The server does not start, and a running "
    "machine refuses the change. Name the files, or let clients log in with an API key.",
    '"auth": { "tls_auth_entities": ["client.example"] }',
    '"network": { "tls_cert_file": "cert.pem", "tls_key_file": "key.pem", "tls_client_ca_file": '
    '"ca.pem" }, "auth": { "tls_auth_entities": ["client.example"] }',
)
UNSUPPORTED = Code(
    "W406",
    "not supported by this release",
    "The file configures something that this release does not have: "
    "data capture, tracing or the profiler. It has no effect, and the rest of the file is used.",
    '"tracing": { "enabled": true, "console": true }',
    '"tracing": {}',
)
NO_PACKAGE_SOURCE = Code(
    "W407",
    "package without a source",
    "The package is not on this computer, and the file does not say where it comes from. What uses "
    "it waits until its files are there. Name the address of an archive or a folder as `url`, or "
    "join the machine to a cloud that has the package.",
    '"packages": [{ "name": "detector", "package": "acme/detector", "version": "1.2.3" }]',
    '"packages": [{ "name": "detector", "url": "https://models.example.org/detector-1.2.3.tar.gz" '
    "}]",
)
NO_REGISTRY = Code(
    "E408",
    "registry module without a cloud",
    "Only a cloud knows where the program of a module of the registry is, so the module is not "
    "started. Join a cloud that has the module, or set the path of its program or archive.",
    '"modules": [{ "name": "acme", "type": "registry", "module_id": "acme:arm" }]',
    '"modules": [{ "name": "acme", "executable_path": "/opt/acme/run.sh" }]',
)
BAD_PLACEHOLDER = Code(
    "E501",
    "unresolved placeholder",
    "${packages.TYPE.NAME} is replaced by the directory of a package of this file, and "
    "${environment.NAME} by an environment variable of the server. A placeholder that cannot be "
    "resolved is left as it is, and the resource is unhealthy. A process is not started.",
    '"model_path": "${packages.ml_model.detecter}/model.tflite"',
    '"model_path": "${packages.ml_model.detector}/model.tflite"',
)
NOT_SCALAR = Code(
    "E502",
    "variable is not a JSON value",
    "Outside of a string, the value of an environment variable must be exactly one JSON number, "
    "string literal, true, false or null. Anything else could add keys to the file, so the file is "
    "refused. Put a variable that contains text in quotes.",
    '"port": ${PORT} with PORT=80, "debug": true',
    '"port": ${PORT} with PORT=80',
)
NOT_TAKEN_OVER = Code(
    "W409",
    "not taken over from viam-server",
    "The file uses a setting or a model of viam-server that is different here, or does not exist. "
    "The message says why, and what to do instead; `Coming from viam-server` in the documentation "
    "lists all of them. `cogwork config migrate FILE` writes a copy without the settings that have "
    "no effect.",
    '"triggers": [{ "name": "online", "event": { "type": "part_online" } }]',
    "no triggers",
)
UNSET_VARIABLE = Code(
    "W501",
    "environment variable not set",
    "The file refers to an environment variable that is not set; it is replaced by empty text. Set "
    "it, or write a default: ${NAME:-default}. Write a literal $ as $$.",
    '"video_path": "$CAMERA"',
    '"video_path": "${CAMERA:-/dev/video0}"',
)
OPEN_TO_ALL = Code(
    "W502",
    "open to the network without authentication",
    "The address can be reached from other computers, and clients need not log in. Without "
    "`insecure_without_auth`, the machine listens on localhost instead; with it, anyone who can "
    "reach the address can control the machine. Require a login.",
    '"network": { "bind_address": ":8080" }',
    '"network": { "bind_address": ":8080" }, '
    '"auth": { "handlers": [{ "type": "api-key", "config": { "keys": ["a"], "a": "…" } }] }',
)
OPEN_MODULE = Code(
    "W503",
    "module open to every local process",
    "With `tcp_mode`, the module listens on a local TCP port without authentication: every program "
    "and every user of this computer can call it. Otherwise, the module listens on a Unix socket "
    "that only the user of the server can access.",
    '{ "name": "acme", "executable_path": "/opt/acme/run", "tcp_mode": true }',
    '{ "name": "acme", "executable_path": "/opt/acme/run" }',
)
PLAINTEXT_ADDRESS = Code(
    "W504",
    "an address without TLS",
    "The machine has a certificate, but `grpc_address` serves plaintext: others on the network can "
    "read what is sent there, and logins from other computers are refused. Only `bind_address` "
    "uses the certificate.",
    '"network": { "tls_cert_file": "cert.pem", "tls_key_file": "key.pem", '
    '"grpc_address": ":9090" }',
    '"network": { "tls_cert_file": "cert.pem", "tls_key_file": "key.pem", '
    '"grpc_address": "localhost:9090" }',
)
CERTIFICATE_DATES = Code(
    "W505",
    "TLS certificate expired or expires soon",
    "The certificate is not valid at present, or will not be soon. Clients refuse a machine whose "
    "certificate is not valid. Replace the file; `cogwork certs local` renews a certificate that "
    "it created. The machine uses the new file at once.",
    '"network": { "tls_cert_file": "expired.pem", "tls_key_file": "key.pem" }',
    '"network": { "tls_cert_file": "cert.pem", "tls_key_file": "key.pem" }',
)

CODES: dict[str, Code] = {
    code.id: code
    for code in (
        NOT_JSON,
        UNREADABLE,
        DUPLICATE_KEY,
        MORE_FAULTS,
        WRONG_TYPE,
        MISSING_FIELD,
        UNKNOWN_KEY,
        BAD_VALUE,
        BAD_DURATION,
        OTHER_CASE,
        IGNORED_VALUE,
        BAD_NAME,
        DUPLICATE_NAME,
        BAD_API,
        BAD_MODEL,
        UNKNOWN_MODEL,
        MISSING_DEPENDENCY,
        AMBIGUOUS_DEPENDENCY,
        CIRCULAR_DEPENDENCY,
        CIRCULAR_OPTIONAL,
        BAD_PATTERN,
        UNMATCHED_PATTERN,
        BAD_LEVEL,
        MISSING_FILE,
        INCOMPLETE_PAIR,
        INCOMPLETE_PROTECTION,
        UNSUPPORTED,
        NO_PACKAGE_SOURCE,
        NO_REGISTRY,
        NOT_TAKEN_OVER,
        UNSET_VARIABLE,
        BAD_PLACEHOLDER,
        NOT_SCALAR,
        OPEN_TO_ALL,
        OPEN_MODULE,
        PLAINTEXT_ADDRESS,
        CERTIFICATE_DATES,
    )
}
