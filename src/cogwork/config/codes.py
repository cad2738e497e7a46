"""Every diagnostic has a code that never changes its meaning, and a page that explains it."""

from __future__ import annotations

import enum
from dataclasses import dataclass


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

    @property
    def severity(self) -> Severity:
        return Severity.WARNING if self.id.startswith("W") else Severity.ERROR


NOT_JSON = Code(
    "E001",
    "not JSON",
    "The text is not JSON, so nothing in it can be read. The machine keeps the configuration it "
    "runs; at start it uses the last one that was applied. Besides plain JSON, // comments and "
    "trailing commas are accepted.",
    '{ "components": [ }',
    '{ "components": [] }',
)
UNREADABLE = Code(
    "E002",
    "cannot be read",
    "The file does not exist, is a directory, is larger than 16 MiB, is not UTF-8, or may not be "
    "read by this user. Check the path after -config and the file's permissions.",
    "cogwork config check machin.json",
    "cogwork config check machine.json",
)
DUPLICATE_KEY = Code(
    "E003",
    "the same key twice",
    "One object has the same key twice. The first one counts. Remove or rename the other.",
    '{ "debug": true, "debug": false }',
    '{ "debug": true }',
)
WRONG_TYPE = Code(
    "E101",
    "wrong type",
    "A value has another type than the field wants. Numbers and booleans stand without quotes; "
    "a list stands in [ ], an object in { }.",
    '"width_px": "wide"',
    '"width_px": 640',
)
MISSING_FIELD = Code(
    "E102",
    "a required field is missing",
    "The object lacks a field it cannot do without. The message names it.",
    '{ "api": "rdk:component:sensor", "model": "fake" }',
    '{ "name": "temperature", "api": "rdk:component:sensor", "model": "fake" }',
)
UNKNOWN_KEY = Code(
    "E103",
    "unknown key",
    "Nobody reads this key; most often it is a typing error. It is ignored, and the rest of the "
    "object is used as it is.",
    '"atributes": {}',
    '"attributes": {}',
)
BAD_VALUE = Code(
    "E104",
    "a value that is not allowed",
    "The type is right, the value is not: out of range, not one of the choices, or not of the "
    "form the field wants. The message says what is allowed.",
    '"type": "lokal"',
    '"type": "local"',
)
BAD_DURATION = Code(
    "E105",
    "not a duration",
    "A duration is a number with a unit, in quotes: ns, us, ms, s, m or h, also several in a row.",
    '"refresh_interval": "10 seconds"',
    '"refresh_interval": "10s"',
)
BAD_NAME = Code(
    "E201",
    "a name that is not allowed",
    "A name starts with a letter or a digit and goes on with letters, digits, - and _; at most 60 "
    "characters for a resource or a remote, 200 for a module or a package. The characters : and + "
    "are kept for remotes and tracks.",
    '"name": "left arm"',
    '"name": "left-arm"',
)
DUPLICATE_NAME = Code(
    "E202",
    "the same name twice",
    "Two entries have the same name (for resources: the same name and API). The first one stays, "
    "the second is ignored. Rename one of them.",
    '"name": "cam" … "name": "cam"',
    '"name": "cam" … "name": "cam2"',
)
BAD_API = Code(
    "E203",
    "not an API",
    "An API has three parts: namespace, component or service, and subtype. APIs of the namespace "
    "rdk are a fixed list; your own live in your own namespace.",
    '"api": "camera"',
    '"api": "rdk:component:camera"',
)
BAD_MODEL = Code(
    "E204",
    "not a model",
    "A model is a bare word for a built-in model, or namespace:family:name for one of a module.",
    '"model": "acme:arm"',
    '"model": "acme:arms:gripper"',
)
UNKNOWN_MODEL = Code(
    "E206",
    "nobody provides this model",
    "No built-in model and no plug-in has this name under this API, and the file has no module "
    "that could bring it. The resource stays unhealthy until something provides the model.",
    '"api": "rdk:component:sensor", "model": "fkae"',
    '"api": "rdk:component:sensor", "model": "fake"',
)
MISSING_DEPENDENCY = Code(
    "E301",
    "a dependency that is not configured",
    "The resource depends on one that the file does not have. It stays unhealthy until the other "
    "one is configured. Also dependencies named inside attributes count.",
    '"depends_on": ["amr"]',
    '"depends_on": ["arm"]',
)
AMBIGUOUS_DEPENDENCY = Code(
    "E302",
    "a dependency that could be several resources",
    "Resources of different APIs share this name. Write the full name.",
    '"depends_on": ["front"]',
    '"depends_on": ["rdk:component:camera/front"]',
)
CIRCULAR_DEPENDENCY = Code(
    "E303",
    "a circle of dependencies",
    "Each resource of the circle waits for the next, so none can be built. The message names the "
    "whole circle; take one dependency out of it.",
    'a: "depends_on": ["b"], b: "depends_on": ["a"]',
    'a: "depends_on": ["b"], b: "depends_on": []',
)
CIRCULAR_OPTIONAL = Code(
    "W304",
    "an optional dependency that would close a circle",
    "The resource could use another one that, directly or not, depends on it. It is built without "
    "it.",
    "a wants b, b needs a",
    "only b needs a",
)
BAD_PATTERN = Code(
    "E401",
    "not a pattern",
    "A pattern of the `log` section is a logger name with * for anything, or a regular "
    "expression. This one can be read as neither. The entry is ignored.",
    '"pattern": "rdk.resource_manager.("',
    '"pattern": "rdk.resource_manager.*"',
)
BAD_LEVEL = Code(
    "E402",
    "not a log level",
    "The levels are debug, info, warn and error. The setting is ignored.",
    '"level": "verbose"',
    '"level": "debug"',
)
MISSING_FILE = Code(
    "E403",
    "a file that does not exist",
    "The configuration names a file that is not there. Relative paths start at the directory the "
    "server is started in; write an absolute one to be sure.",
    '"tls_cert_file": "cert.pm"',
    '"tls_cert_file": "/etc/cogwork/cert.pem"',
)
HALF_SET = Code(
    "E404",
    "one half of a pair",
    "Two fields only make sense together (certificate and key, key and its id) and only one of "
    "them is set. Set both or none.",
    '"tls_cert_file": "/etc/cogwork/cert.pem"',
    '"tls_cert_file": "/etc/cogwork/cert.pem", "tls_key_file": "/etc/cogwork/key.pem"',
)
BAD_PLACEHOLDER = Code(
    "E501",
    "a placeholder that cannot be filled",
    "${packages.TYPE.NAME} stands for the directory of a package of this file, "
    "${environment.NAME} for a variable of the server's environment. What cannot be filled is "
    "left as it is, and the resource is unhealthy.",
    '"model_path": "${packages.ml_model.detecter}/model.tflite"',
    '"model_path": "${packages.ml_model.detector}/model.tflite"',
)
UNSET_VARIABLE = Code(
    "W501",
    "an environment variable that is not set",
    "The text refers to a variable of the environment that is not set; empty text takes its "
    "place. Set it, or write a default: ${NAME:-default}. A literal $ is written $$.",
    '"video_path": "$CAMERA"',
    '"video_path": "${CAMERA:-/dev/video0}"',
)
OPEN_TO_ALL = Code(
    "W502",
    "open to the network without authentication",
    "The server would listen on every interface and let anyone who reaches it drive the machine. "
    "Bind to localhost, or add an api-key handler to `auth`.",
    '"network": { "bind_address": ":8080" }',
    '"network": { "bind_address": "localhost:8080" }',
)

CODES: dict[str, Code] = {
    code.id: code
    for code in (
        NOT_JSON,
        UNREADABLE,
        DUPLICATE_KEY,
        WRONG_TYPE,
        MISSING_FIELD,
        UNKNOWN_KEY,
        BAD_VALUE,
        BAD_DURATION,
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
        BAD_LEVEL,
        MISSING_FILE,
        HALF_SET,
        UNSET_VARIABLE,
        BAD_PLACEHOLDER,
        OPEN_TO_ALL,
    )
}
