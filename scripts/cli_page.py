"""The reference page of the command line, from the parsers."""

from __future__ import annotations

from collections.abc import Sequence

from cogwork.cli.command_tree import HELP, Argument, Command, programs, walk
from cogwork.cli.exit_codes import EXIT_CODES

_INTRO = """\
# Command line

`cogwork` checks configurations and looks after running machines. `cogwork-server` runs a machine.
Every command prints this help with `-h`, and `man cogwork` shows it, too.

## Complete with Tab

Add a line to the file that your shell reads when it starts:

- bash, `~/.bashrc`: `eval "$(cogwork completion bash)"`
- zsh, `~/.zshrc`, after `compinit`: `eval "$(cogwork completion zsh)"`
- fish, `~/.config/fish/config.fish`: `cogwork completion fish | source`

## Name the machine

Commands that talk to a machine take its address with `--address`, such as `192.0.2.7:8080`. To give
it only once, set the environment variable `COGWORK_ADDRESS`. Without both, it is `localhost:8080`.

## Exit codes

Every command of `cogwork` uses the same exit codes. An error is one sentence on standard error.

| code | meaning |
|---|---|
{exit_codes}

## Commands

"""


def cli_page() -> str:
    cogwork, server = programs()
    leaves = [command for command in walk(cogwork) if not command.commands]
    return (
        _INTRO.format(exit_codes=_exit_codes())
        + _contents(leaves)
        + "\n".join(map(_section, leaves))
        + f"\n## {server.name}\n\n{_body(server)}\n"
        + "[Options of cogwork-server](options.md) has their defaults and what is without effect.\n"
    )


def _exit_codes() -> str:
    return "\n".join(f"| {code} | {_cell(meaning)} |" for code, meaning in EXIT_CODES.items())


def _contents(commands: Sequence[Command]) -> str:
    rows = (f"| [`{each.name}`](#{_anchor(each)}) | {_cell(each.summary)} |" for each in commands)
    return "| command | |\n|---|---|\n" + "\n".join(rows) + "\n\n"


def _anchor(command: Command) -> str:
    return "-".join(command.words)


def _section(command: Command) -> str:
    return f"### {command.name}\n\n{command.sentence}\n\n{_body(command)}"


def _body(command: Command) -> str:
    text = f"```text\n{command.usage}\n```\n"
    arguments = [each for each in command.arguments if not HELP.intersection(each.flags)]
    ordered = sorted(arguments, key=lambda argument: bool(argument.flags))
    if ordered:
        text += "\n" + "".join(map(_item, ordered))
    return text + (f"\n{command.notes}\n" if command.notes else "")


def _item(argument: Argument) -> str:
    # Not a row of a table: renderers disagree on vertical bars in code there.
    return f"- `{argument.usage}`: {argument.meaning}\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
