"""The options of `cogwork-server`, written as Go programs write them.

`Options` is what a command line asks for. The parser, the help text and `docs/reference/options.md`
are made from the table `OPTIONS`.
"""

from __future__ import annotations

import textwrap
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cogwork.config.diagnose import did_you_mean, said
from cogwork.core.errors import CogworkError


class UsageError(CogworkError):
    """The command line cannot be understood."""

    status = "INVALID_ARGUMENT"


@dataclass(frozen=True, slots=True)
class Options:
    aix_install: bool = False
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
    reveal_sensitive_config_diffs: bool = False
    shareddir: Path | None = None
    untrusted_env: bool = False
    version: bool = False
    webprofile: bool = False
    webrtc: bool = True

    @property
    def runs_a_machine(self) -> bool:
        """Whether it asks for nothing else instead."""
        return not (
            self.aix_install
            or self.dump_resources
            or self.help
            or self.network_check
            or self.version
        )


Value = bool | Path | None


@dataclass(frozen=True, slots=True)
class Option:
    name: str
    placeholder: str | None
    """What stands for its value; None for a switch, which is on or off."""
    effect: str
    later: str | None = None
    """Why it has no effect yet, for an option whose subject comes with a later release."""

    @property
    def attribute(self) -> str:
        """The field of `Options`."""
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
    Option(
        "aix-install",
        None,
        "install the server as a service of the system",
        later="installing comes with a later release",
    ),
    Option(
        "allow-insecure-creds",
        None,
        "allow sending credentials over plaintext",
        later="credentials and remotes come with a later release",
    ),
    Option("config", "FILE", "the configuration of the machine to run"),
    Option(
        "cpuprofile",
        "FILE",
        "write a CPU profile of the whole run to FILE",
        later="profiling comes with a later release",
    ),
    Option("debug", None, "log at debug level"),
    Option(
        "disable-mdns",
        None,
        "do not announce the server by multicast DNS",
        later="this release announces nothing by multicast DNS",
    ),
    Option("dump-resources", "FILE", "write what it can build to FILE as JSON, and exit"),
    Option(
        "ftdc",
        None,
        "always capture diagnostic data",
        later="this release captures no diagnostic data",
    ),
    Option("help", None, "print the options and exit"),
    Option(
        "log-file",
        "FILE",
        "write the log to FILE and rotate it; as JSON if it ends in .jsonl",
    ),
    Option(
        "network-check",
        None,
        "check the network and exit",
        later="network checks come with a later release",
    ),
    Option(
        "no-tls",
        None,
        "serve without TLS, even with a certificate",
        later="this release has no TLS and always serves plaintext",
    ),
    Option(
        "output-telemetry",
        None,
        "print metrics and spans",
        later="telemetry comes with a later release",
    ),
    Option(
        "reveal-sensitive-config-diffs",
        None,
        "log what changes in the configuration, secrets as stars",
    ),
    Option(
        "shareddir",
        "DIR",
        "where the static files of the web pages are",
        later="web pages come with a later release",
    ),
    Option(
        "untrusted-env",
        None,
        "run no processes, no shell and no modules",
    ),
    Option("version", None, "print the version and exit"),
    Option(
        "webprofile",
        None,
        "serve a profiler over HTTP",
        later="profiling comes with a later release",
    ),
    Option(
        "webrtc",
        None,
        "prefer WebRTC connections",
        later="WebRTC comes with a later release, and all connections are direct",
    ),
)
EXIT_CODES = {0: "asked to stop", 1: "failure", 2: "wrong usage"}

_BY_NAME = {option.name: option for option in OPTIONS}
_HELP = ("h", "help")
_TRUTHS = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}


def parse(argv: Sequence[str]) -> Options:
    """What the words after the program's name ask for; said twice, the last counts."""
    options = _read(argv)
    if options.runs_a_machine and options.config is None:
        raise UsageError("which machine to run is not said; write -config machine.json")
    return options


def notes(options: Options) -> list[str]:
    """A sentence for each option that is set and has no effect yet."""
    return [
        f"{_as_set(option, value)} has no effect yet: {option.later}"
        for option in OPTIONS
        if (value := getattr(options, option.attribute)) != option.default and option.later
    ]


def _as_set(option: Option, value: Value) -> str:
    return f"-{option.name}=false" if value is False else f"-{option.name}"


def _read(argv: Sequence[str]) -> Options:
    words = deque(argv)
    values: dict[str, Any] = {}
    option = None
    while words and _looks_like_an_option(words[0]):
        word = words.popleft()
        if word == "--":
            break
        name, value = _split(word)
        if name in _HELP:
            # Whoever asks for help may not know the rest yet, so nothing else is looked at.
            return Options(help=True)
        option = _known(name, word)
        values[option.attribute] = _value(option, value, words)
    if words:
        raise UsageError(_stray(words[0], option, "config" in values))
    return Options(**values)


def _looks_like_an_option(word: str) -> bool:
    return word.startswith("-") and word != "-"


def _split(word: str) -> tuple[str, str | None]:
    name, equals, value = word.removeprefix("-").removeprefix("-").partition("=")
    if not name or name.startswith("-"):
        raise UsageError(f'"{said(word)}" is not an option; write one like -debug or --debug')
    return name, value if equals else None


def _known(name: str, word: str) -> Option:
    option = _BY_NAME.get(name)
    if option is None:
        hint = did_you_mean(f"-{name}", (f"-{known}" for known in _BY_NAME))
        written = said(word.partition("=")[0])
        raise UsageError(f"there is no option {written}; {hint or _LIST_OF_ALL}")
    return option


_LIST_OF_ALL = "`cogwork-server -h` lists them all"


def _value(option: Option, value: str | None, following: deque[str]) -> Value:
    if option.placeholder is None:
        return _truth(option, value)
    if value is None:
        if not following:
            raise UsageError(f"-{option.name} needs a value; write {option.usage}")
        value = following.popleft()
    # An empty value is Go's way to say that there is none.
    return Path(value) if value else None


def _truth(option: Option, value: str | None) -> bool:
    if value is None:
        return True
    if value not in _TRUTHS:
        raise UsageError(
            f'-{option.name} is true or false, not "{said(value)}"; '
            f"write -{option.name}=true or -{option.name}=false"
        )
    return _TRUTHS[value]


def _stray(word: str, before: Option | None, has_config: bool) -> str:
    problem = f'"{said(word)}" is out of place'
    if before is not None and before.placeholder is None and word in _TRUTHS:
        return f"{problem}; write -{before.name}={word}, with an equals sign"
    if not has_config:
        return f"{problem}; if it is the configuration, write -config {said(word)}"
    return f"{problem}; a value with spaces needs quotes, and {_LIST_OF_ALL}"


_WIDTH = 80
_EFFECTS_AT = 25


def usage() -> str:
    """The text of -h."""
    return "\n".join(
        (
            "usage: cogwork-server -config FILE [options]",
            "",
            "Runs the machine that FILE describes, and follows FILE when it changes.",
            "",
            *(line for option in OPTIONS for line in _help(option)),
            "",
            "An option is written -x or --x, its value -x=VALUE or -x VALUE. A switch is",
            "turned off by -x=false. What is marked (later) is accepted, and has no effect",
            "before a later release.",
            "",
            "exit codes:",
            *(f"  {code}  {meaning}" for code, meaning in EXIT_CODES.items()),
        )
    )


def _help(option: Option) -> list[str]:
    head = f"  {option.usage}"
    remarks = ["on by default"] * (option.default is True) + ["later"] * bool(option.later)
    text = f"{option.effect} ({', '.join(remarks)})" if remarks else option.effect
    indent = " " * _EFFECTS_AT
    lines = textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=indent)
    if len(head) + 2 > _EFFECTS_AT:
        return [head, *lines]
    return [head.ljust(_EFFECTS_AT) + lines[0].lstrip(), *lines[1:]]
