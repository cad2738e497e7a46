"""The options of `cogwork-server`, in the syntax of Go programs.

`Options` holds a parsed command line. The parser, the help text and `docs/reference/options.md` are
generated from the table `OPTIONS`.
"""

from __future__ import annotations

import textwrap
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cogwork.config.check.diagnostics import did_you_mean, sanitize_message
from cogwork.core.errors import CogworkError
from cogwork.net.address import parse_port


class UsageError(CogworkError):
    """The command line is invalid."""

    status = "INVALID_ARGUMENT"


class NoConfigOption(UsageError):
    """The command line names no configuration file."""


@dataclass(frozen=True, slots=True)
class Options:
    aix_install: bool = False
    aix_uninstall: bool = False
    allow_insecure_creds: bool = False
    config: Path | None = None
    cpuprofile: Path | None = None
    debug: bool = False
    disable_mdns: bool = False
    dump_resources: Path | None = None
    ftdc: bool = True
    help: bool = False
    log_file: Path | None = None
    network_check: bool = False
    no_tls: bool = False
    output_telemetry: bool = False
    port: int | None = None
    reveal_sensitive_config_diffs: bool = False
    shareddir: Path | None = None
    untrusted_env: bool = False
    version: bool = False
    webprofile: bool = False
    webrtc: bool = True

    @property
    def runs_machine(self) -> bool:
        """Whether to run a machine; False for options such as -help, which do something else."""
        return not (
            self.aix_install
            or self.aix_uninstall
            or self.dump_resources
            or self.help
            or self.network_check
            or self.version
        )


Value = bool | int | Path | None


@dataclass(frozen=True, slots=True)
class Option:
    name: str
    placeholder: str | None
    """Placeholder of the value in the help text; None for a switch."""
    description: str
    unsupported_reason: str | None = None
    """The reason why the option has no effect yet; None if it has an effect."""

    @property
    def attribute(self) -> str:
        """Name of the option's field in `Options`."""
        return self.name.replace("-", "_")

    @property
    def default(self) -> Value:
        value: Value = getattr(_DEFAULTS, self.attribute)
        return value

    @property
    def usage(self) -> str:
        if self.name == "help":
            return "-h, -help"
        return f"-{self.name} {self.placeholder}" if self.placeholder else f"-{self.name}"


_DEFAULTS = Options()

OPTIONS = (
    Option("aix-install", None, "install this executable as a system service, or update it"),
    Option(
        "aix-uninstall",
        None,
        "remove the system service; the configuration and the data stay",
    ),
    Option(
        "allow-insecure-creds",
        None,
        "accept credentials from other computers over plaintext",
    ),
    Option("config", "FILE", "configuration file of the machine to run"),
    Option(
        "cpuprofile",
        "FILE",
        "write a CPU profile of the whole run to FILE",
        unsupported_reason="profiling is planned for a later release",
    ),
    Option("debug", None, "log at debug level"),
    Option(
        "disable-mdns",
        None,
        "do not let clients find the machine by name over mDNS",
    ),
    Option(
        "dump-resources", "FILE", "write all models and their attributes to FILE as JSON and exit"
    ),
    Option(
        "ftdc",
        None,
        "always capture diagnostic data",
        unsupported_reason="this release does not capture diagnostic data",
    ),
    Option("help", None, "print the options and exit"),
    Option(
        "log-file",
        "FILE",
        "write the log to FILE and rotate it; as JSON if FILE ends in .jsonl",
    ),
    Option(
        "network-check",
        None,
        "check the network and exit",
        unsupported_reason="network checks are planned for a later release",
    ),
    Option(
        "no-tls",
        None,
        "serve without TLS, even with a certificate",
    ),
    Option(
        "output-telemetry",
        None,
        "print metrics and spans",
        unsupported_reason="telemetry is planned for a later release",
    ),
    Option("port", "PORT", "port to listen on instead of the configured one; 0 for any free port"),
    Option(
        "reveal-sensitive-config-diffs",
        None,
        "log configuration changes including secrets, to standard output or the log file only; "
        "without this option, they are logged at debug level with secrets masked",
    ),
    Option(
        "shareddir",
        "DIR",
        "directory with the files of another control page",
    ),
    Option(
        "untrusted-env",
        None,
        "do not run processes, shells or modules, except modules of COGWORK_TRUSTED_NAMESPACES",
    ),
    Option("version", None, "print the version and exit"),
    Option(
        "webprofile",
        None,
        "serve a profiler over HTTP",
        unsupported_reason="profiling is planned for a later release",
    ),
    Option(
        "webrtc",
        None,
        "let clients connect over WebRTC; with -webrtc=false, they connect directly",
    ),
)
EXIT_CODES = {0: "stopped on request", 1: "failure", 2: "usage error"}

_BY_NAME = {option.name: option for option in OPTIONS}
_HELP = ("h", "help")
_BOOLEANS = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}


def parse(argv: Sequence[str]) -> Options:
    """Parse the arguments that follow the program name. Raise UsageError.

    If an option is repeated, the last value applies.
    """
    options = _parse_words(argv)
    if options.runs_machine and options.config is None:
        raise NoConfigOption("missing required option: -config FILE")
    return options


def check_paths(options: Options) -> None:
    """Raise UsageError if a directory does not exist. It is not created, because its name may be
    mistyped."""
    log_file, shareddir = options.log_file, options.shareddir
    if log_file is not None and log_file.is_dir():
        raise UsageError(
            f"-log-file {_quote_path(log_file)} is a directory; give the name of a file"
        )
    if log_file is not None and not log_file.parent.is_dir():
        raise UsageError(
            f"-log-file: the directory {_quote_path(log_file.parent)} does not exist; create it, "
            "or give a file in another directory"
        )
    if shareddir is not None and not shareddir.is_dir():
        raise UsageError(
            f"-shareddir: the directory {_quote_path(shareddir)} does not exist; give the one with "
            "the index.html of your control page, or leave the option out for the built-in page"
        )


def _quote_path(path: Path) -> str:
    return sanitize_message(str(path.absolute()))


def list_option_warnings(options: Options) -> list[str]:
    """Return a warning for each used option that has no effect yet."""
    return [
        f"{_format_option(option, value)} has no effect yet: {option.unsupported_reason}"
        for option in OPTIONS
        if (value := getattr(options, option.attribute)) != option.default
        and option.unsupported_reason
    ]


def _format_option(option: Option, value: Value) -> str:
    return f"-{option.name}=false" if value is False else f"-{option.name}"


def _parse_words(argv: Sequence[str]) -> Options:
    words = deque(argv)
    values: dict[str, Any] = {}
    option = None
    while words and _is_option(words[0]):
        word = words.popleft()
        if word == "--":
            break
        name, value = _split_option(word)
        if name in _HELP:
            # A user who asks for help may not know the syntax yet, so the rest is not validated.
            return Options(help=True)
        option = _find_option(name, word)
        values[option.attribute] = _parse_value(option, value, words)
    if words:
        raise UsageError(_unexpected_argument_message(words[0], option, "config" in values))
    return Options(**values)


def _is_option(word: str) -> bool:
    return word.startswith("-") and word != "-"


def _split_option(word: str) -> tuple[str, str | None]:
    name, equals, value = word.removeprefix("-").removeprefix("-").partition("=")
    if not name or name.startswith("-"):
        raise UsageError(
            f'invalid option "{sanitize_message(word)}"; write options like -debug or --debug'
        )
    return name, value if equals else None


def _find_option(name: str, word: str) -> Option:
    option = _BY_NAME.get(name)
    if option is None:
        hint = did_you_mean(f"-{name}", (f"-{known}" for known in _BY_NAME))
        written = sanitize_message(word.partition("=")[0])
        raise UsageError(f"unknown option {written}" + (f"; {hint}" if hint else ""))
    return option


def _parse_value(option: Option, value: str | None, following: deque[str]) -> Value:
    if option.placeholder is None:
        return _parse_bool(option, value)
    if value is None:
        if not following:
            raise UsageError(f"-{option.name} requires a value; write {option.usage}")
        value = following.popleft()
    # As in Go, an empty value means that the option is not set.
    if not value:
        return None
    return _parse_port(value) if option.name == "port" else Path(value)


def _parse_port(value: str) -> int:
    try:
        return parse_port(value, least=0)
    except ValueError as error:
        raise UsageError(f"-port: {sanitize_message(str(error))}") from error


def _parse_bool(option: Option, value: str | None) -> bool:
    if value is None:
        return True
    if value not in _BOOLEANS:
        raise UsageError(
            f'invalid value "{sanitize_message(value)}" for -{option.name}; '
            f"write -{option.name}=true or -{option.name}=false"
        )
    return _BOOLEANS[value]


def _unexpected_argument_message(word: str, before: Option | None, has_config: bool) -> str:
    problem = f'unexpected argument "{sanitize_message(word)}"'
    if before is not None and before.placeholder is None and word in _BOOLEANS:
        return f"{problem}; write -{before.name}={word}, with an equals sign"
    if not has_config:
        return f"{problem}; if it is the configuration file, write -config {sanitize_message(word)}"
    return f"{problem}; quote values that contain spaces"


_WIDTH = 80
_DESCRIPTION_COLUMN = 25


def format_usage() -> str:
    """Return the help text."""
    return "\n".join(
        (
            "usage: cogwork-server -config FILE [options]",
            "",
            "Run the machine that FILE describes, and apply FILE again whenever it changes.",
            "",
            *(line for option in OPTIONS for line in _format_option_help(option)),
            "",
            "Write an option as -x or --x, and its value as -x=VALUE or -x VALUE. Turn a",
            "switch off with -x=false. Options marked (later) are accepted, but have no",
            "effect until a later release.",
            "",
            "exit codes:",
            *(f"  {code}  {meaning}" for code, meaning in EXIT_CODES.items()),
        )
    )


def _format_option_help(option: Option) -> list[str]:
    head = f"  {option.usage}"
    remarks = ["on by default"] * (option.default is True) + ["later"] * bool(
        option.unsupported_reason
    )
    text = f"{option.description} ({', '.join(remarks)})" if remarks else option.description
    indent = " " * _DESCRIPTION_COLUMN
    lines = textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=indent)
    if len(head) + 2 > _DESCRIPTION_COLUMN:
        return [head, *lines]
    return [head.ljust(_DESCRIPTION_COLUMN) + lines[0].lstrip(), *lines[1:]]
