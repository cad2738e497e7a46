"""The command line of `cogwork-server`, parsed like Go's flag package."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.server.main import EXIT_USAGE, main
from cogwork.server.options import (
    EXIT_CODES,
    OPTIONS,
    Option,
    Options,
    UsageError,
    format_usage,
    list_option_warnings,
    parse,
)

CONFIG_ARGS = ("-config", "m.json")
CONFIG_OPTIONS = Options(config=Path("m.json"))
SWITCHES = [option for option in OPTIONS if option.placeholder is None and option.name != "help"]
VALUE_OPTIONS = [option for option in OPTIONS if option.placeholder is not None]
PORT_OPTION = next(option for option in OPTIONS if option.name == "port")
PATH_OPTIONS = [option for option in VALUE_OPTIONS if option is not PORT_OPTION]

EXPECTED_NAMES = (
    *("allow-insecure-creds", "config", "cpuprofile", "debug", "disable-mdns", "dump-resources"),
    *("ftdc", "log-file", "network-check", "no-tls", "output-telemetry"),
    *(
        "port",
        "reveal-sensitive-config-diffs",
        "shareddir",
        "untrusted-env",
        "version",
        "webprofile",
    ),
    *("webrtc", "aix-install", "aix-uninstall"),
)

FORMS = {
    ("-config", "m.json"): CONFIG_OPTIONS,
    ("--config", "m.json"): CONFIG_OPTIONS,
    ("-config=m.json",): CONFIG_OPTIONS,
    ("--config=m.json",): CONFIG_OPTIONS,
    ("-config", "a=b"): Options(config=Path("a=b")),
    ("-config=a=b",): Options(config=Path("a=b")),
    ("-config", "-debug"): Options(config=Path("-debug")),
    ("-config", "--"): Options(config=Path("--")),
    ("-config", "-"): Options(config=Path("-")),
    ("-config", "a", "-config", "m.json"): CONFIG_OPTIONS,
    (*CONFIG_ARGS, "--"): CONFIG_OPTIONS,
    (*CONFIG_ARGS, "-debug"): replace(CONFIG_OPTIONS, debug=True),
    (*CONFIG_ARGS, "--debug"): replace(CONFIG_OPTIONS, debug=True),
    (*CONFIG_ARGS, "-debug=true"): replace(CONFIG_OPTIONS, debug=True),
    (*CONFIG_ARGS, "-debug=false"): CONFIG_OPTIONS,
    (*CONFIG_ARGS, "-debug", "-debug=false"): CONFIG_OPTIONS,
    (*CONFIG_ARGS, "-debug=false", "--debug"): replace(CONFIG_OPTIONS, debug=True),
    ("-debug", *CONFIG_ARGS): replace(CONFIG_OPTIONS, debug=True),
    (*CONFIG_ARGS, "-ftdc=false", "-webrtc=0"): replace(CONFIG_OPTIONS, ftdc=False, webrtc=False),
    (*CONFIG_ARGS, "-log-file="): CONFIG_OPTIONS,
    (*CONFIG_ARGS, "-log-file", ""): CONFIG_OPTIONS,
    (*CONFIG_ARGS, "-port", "8081"): replace(CONFIG_OPTIONS, port=8081),
    (*CONFIG_ARGS, "--port=0"): replace(CONFIG_OPTIONS, port=0),
    (*CONFIG_ARGS, "-port="): CONFIG_OPTIONS,
    ("-version",): Options(version=True),
    ("-dump-resources", "r.json"): Options(dump_resources=Path("r.json")),
    ("--aix-install",): Options(aix_install=True),
    ("-aix-uninstall",): Options(aix_uninstall=True),
    ("-h",): Options(help=True),
    ("--h",): Options(help=True),
    ("-help",): Options(help=True),
    ("--help",): Options(help=True),
    ("-debug", "-h", "-no-such-option", "stray"): Options(help=True),
}

FAULTS = {
    (): "missing required option: -config FILE",
    ("-debug",): "missing required option: -config FILE",
    ("-config=",): "missing required option: -config FILE",
    ("-version=false",): "missing required option: -config FILE",
    ("-config",): "-config requires a value; write -config FILE",
    (*CONFIG_ARGS, "--shareddir"): "-shareddir requires a value; write -shareddir DIR",
    (*CONFIG_ARGS, "-port", "99999"): "-port: 99999 is not a port; ports range from 0 to 65535",
    (*CONFIG_ARGS, "-port=http"): "-port: http is not a port; ports range from 0 to 65535",
    (*CONFIG_ARGS, "-port"): "-port requires a value; write -port PORT",
    ("-confg", "m.json"): 'unknown option -confg; did you mean "-config"?',
    ("--Config=m.json",): 'unknown option --Config; did you mean "-config"?',
    ("-disable_mdns",): 'unknown option -disable_mdns; did you mean "-disable-mdns"?',
    ("-zzz",): "unknown option -zzz",
    ("-\x1b[2J",): "unknown option -�[2J",
    ("---debug",): 'invalid option "---debug"; write options like -debug or --debug',
    ("-=x",): 'invalid option "-=x"; write options like -debug or --debug',
    ("--=x",): 'invalid option "--=x"; write options like -debug or --debug',
    ("-debug=yes",): ('invalid value "yes" for -debug; write -debug=true or -debug=false'),
    ("-debug=",): 'invalid value "" for -debug; write -debug=true or -debug=false',
    ("-ftdc", "false", *CONFIG_ARGS): (
        'unexpected argument "false"; write -ftdc=false, with an equals sign'
    ),
    (
        "m.json",
    ): 'unexpected argument "m.json"; if it is the configuration file, write -config m.json',
    ("-",): 'unexpected argument "-"; if it is the configuration file, write -config -',
    ("-debug", "--", "m.json"): (
        'unexpected argument "m.json"; if it is the configuration file, write -config m.json'
    ),
    ("-config", "my", "machine.json"): (
        'unexpected argument "machine.json"; quote values that contain spaces'
    ),
    (*CONFIG_ARGS, "--", "-debug"): (
        'unexpected argument "-debug"; quote values that contain spaces'
    ),
}


@pytest.mark.parametrize(("argv", "options"), FORMS.items(), ids=map(" ".join, FORMS))
def test_every_form_is_parsed(argv: tuple[str, ...], options: Options) -> None:
    assert parse(argv) == options


@pytest.mark.parametrize(("argv", "sentence"), FAULTS.items(), ids=map(repr, FAULTS))
def test_usage_error_has_advice(argv: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(argv)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("option", "path", "sentence"),
    [
        ("-log-file", "none/a.log", "-log-file: the directory {}/none does not exist; create it"),
        ("-log-file", "file/a.log", "-log-file: the directory {}/file does not exist; create it"),
        ("-log-file", ".", "-log-file {} is a directory; give the name of a file"),
        ("-shareddir", "none", "-shareddir: the directory {}/none does not exist; give the one"),
        ("-shareddir", "file", "-shareddir: the directory {}/file does not exist; give the one"),
    ],
)
def test_directory_that_does_not_exist_is_a_usage_error(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], option: str, path: str, sentence: str
) -> None:
    (tmp_path / "file").touch()
    assert main([*CONFIG_ARGS, option, str(tmp_path / path)]) == EXIT_USAGE
    assert sentence.format(tmp_path) in capfd.readouterr().err
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("word", ["1", "t", "T", "true", "TRUE", "True"])
def test_values_for_true(word: str) -> None:
    assert parse([*CONFIG_ARGS, f"-debug={word}"]).debug


@pytest.mark.parametrize("word", ["0", "f", "F", "false", "FALSE", "False"])
def test_values_for_false(word: str) -> None:
    assert not parse([*CONFIG_ARGS, f"-webrtc={word}"]).webrtc


@pytest.mark.parametrize("word", ["tRUE", "yes", "no", "on", "off", "2", " true", "true "])
def test_other_boolean_values_raise(word: str) -> None:
    with pytest.raises(UsageError, match="invalid value"):
        parse([*CONFIG_ARGS, f"-debug={word}"])


def test_all_options_are_defined() -> None:
    assert {option.name for option in OPTIONS} == {*EXPECTED_NAMES, "help"}
    assert [option.attribute for option in OPTIONS] == sorted(f.name for f in fields(Options))
    on = {option.name for option in OPTIONS if option.default is True}
    assert on == {"ftdc", "webrtc"}
    assert all(option.default is None for option in VALUE_OPTIONS)


def set_option(options: Options, option: Option, value: bool | int | Path) -> Options:
    changes: dict[str, Any] = {option.attribute: value}
    return replace(options, **changes)


assignments = st.one_of(
    st.tuples(st.sampled_from(SWITCHES), st.booleans()),
    st.tuples(st.sampled_from(PATH_OPTIONS), st.text(min_size=1).map(Path)),
    st.tuples(st.just(PORT_OPTION), st.integers(2, 65535)),
)


@given(st.lists(assignments), st.data())
def test_last_value_of_an_option_counts(
    wanted: list[tuple[Option, bool | int | Path]], data: st.DataObject
) -> None:
    words, expected = list(CONFIG_ARGS), CONFIG_OPTIONS
    for option, value in wanted:
        words += data.draw(st.sampled_from(_spellings(option.name, value)))
        expected = set_option(expected, option, value)
    assert parse(words) == expected


def _spellings(name: str, value: bool | int | Path) -> list[list[str]]:
    if value is True:
        return [[f"-{name}"], [f"--{name}"], [f"-{name}=1"], [f"--{name}=True"]]
    if value is False:
        return [[f"-{name}=f"], [f"--{name}=FALSE"]]
    return [[f"-{name}", f"{value}"], [f"--{name}={value}"]]


@given(st.lists(st.text(alphabet="-=hd a\0\x1b\udcff") | st.sampled_from(["-config", "--debug"])))
def test_any_arguments_are_parsed_or_raise_one_line(words: list[str]) -> None:
    message = ""
    try:
        options = parse(words)
    except UsageError as error:
        message = str(error)
    else:
        assert options.config or options.dump_resources or options.help or options.version
    assert message.isprintable()


class TestOptionWarnings:
    @pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
    def test_unsupported_option_has_a_warning(self, option: Option) -> None:
        value = Path("x") if option.default is None else not option.default
        written = f"-{option.name}=false" if value is False else f"-{option.name}"
        assert list_option_warnings(set_option(Options(), option, value)) == (
            [f"{written} has no effect yet: {option.unsupported_reason}"]
            if option.unsupported_reason
            else []
        )

    def test_default_values_have_no_warning(self) -> None:
        assert list_option_warnings(Options()) == []
        assert (
            list_option_warnings(
                parse([*CONFIG_ARGS, "-ftdc", "-webrtc=true", "-no-tls=false", "-debug"])
            )
            == []
        )

    def test_warnings_are_in_the_order_of_the_table(self) -> None:
        assert list_option_warnings(
            parse([*CONFIG_ARGS, "-webprofile", "-cpuprofile", "x", "-webrtc=false"])
        ) == [
            "-cpuprofile has no effect yet: profiling is planned for a later release",
            "-webprofile has no effect yet: profiling is planned for a later release",
        ]


class TestUsage:
    def test_usage_fits_a_terminal(self) -> None:
        lines = format_usage().splitlines()
        assert lines[0] == "usage: cogwork-server -config FILE [options]"
        assert max(map(len, lines)) <= 80
        assert all(line == line.rstrip() and line.isprintable() for line in lines)

    def test_usage_lists_every_option_in_order(self) -> None:
        text = " ".join(format_usage().split())
        places = [text.index(f" {option.usage} {option.description}") for option in OPTIONS]
        assert places == sorted(places)

    def test_usage_ends_with_the_exit_codes(self) -> None:
        assert list(EXIT_CODES) == [0, 1, 2]
        assert format_usage().endswith(
            "exit codes:\n  0  stopped on request\n  1  failure\n  2  usage error"
        )


def test_options_module_imports_only_the_standard_library() -> None:
    code = (
        "import sys\nimport cogwork.server.options\n"
        "print({'pydantic', 'grpc', 'viam', 'asyncio'} & sys.modules.keys() or 'nothing')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout == "nothing\n"
