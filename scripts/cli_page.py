"""The reference page of the command line, generated from the parsers."""

from __future__ import annotations

from collections.abc import Sequence

from cogwork.cli.command_tree import HELP, Argument, Command, programs, walk
from cogwork.cli.exit_codes import EXIT_CODES

_INTRO = """\
# Command line

`cogwork` checks configurations and looks after running machines and fleets of them.
`cogwork-server` runs a machine, `cogwork-agent` keeps it installed and current, and `cogwork-cloud`
hosts a fleet.
Every command prints this help with `-h`, and `man cogwork` shows it, too.

## Complete with Tab

Add a line to the file that your shell reads when it starts:

- bash, `~/.bashrc`: `eval "$(cogwork completion bash)"`
- zsh, `~/.zshrc`, after `compinit`: `eval "$(cogwork completion zsh)"`
- fish, `~/.config/fish/config.fish`: `cogwork completion fish | source`

The Tab key then completes commands, options and files, and the names of the resources, methods and
modules of the running machine. If no machine answers within a second, there are no names. Nothing
is stored.

## Name the machine

Commands that talk to a machine take its address with `--address`, such as `192.0.2.7:8080`. To give
it only once, set the environment variable `COGWORK_ADDRESS`. Without both, it is `localhost:8080`.

## Look at a server of another make

`cogwork status`, `graph`, `call` and `logs` also take the address of a machine that another server
runs, as far as it speaks the same API over gRPC. They log in with the same API key. One line on
standard error says what such a server does not tell, so that `--json` stays what it is:

- `status` shows the state of the machine and its resources, modules and packages, and the version
  of the server. If the server only lists its resources, their states are unknown, and the command
  exits with 1. With `--json`, what is not known is left out, and `version` says which server it is.
- `graph` draws the resources without their dependencies.
- `call` takes the methods that the server describes by gRPC reflection, or else the methods of the
  SDK.
- `logs` says where to look instead.

`cogwork find` shows each machine once, with the port that other computers reach, however many
names, addresses and ports its server announces.

## Log in to a cloud

The commands of `cogwork fleet` talk to a cloud that `cogwork-cloud` serves. Log in once:

```sh
cogwork fleet login https://fleet.example.org
```

It asks for the ID of an API key and for the key, checks them at the cloud, and stores them so that
only you can read them, in `fleet/login.json` of your Cogwork directory (`~/.cogwork`, or
`COGWORK_HOME`). `cogwork fleet logout` deletes them again. A key never goes on a command line,
where other users can see it: give it with `--key-file FILE`, or with `--key-file -` on standard
input.

If the certificate of the cloud is signed by an authority of your own, add `--ca FILE`. The file is
copied, and `cogwork fleet machine create` tells you to copy it to the machine.

Scripts set three environment variables instead of logging in. They belong together, and come before
a stored login; for an authority of your own, set `SSL_CERT_FILE`, too:

| variable | value |
|---|---|
| `COGWORK_FLEET_ADDRESS` | the URL of the cloud |
| `COGWORK_FLEET_KEY_ID` | the ID of an API key |
| `COGWORK_FLEET_KEY` | the key |

## Name a machine of a cloud

A machine or a part is given by its name or its ID. The name of a machine also means its main part.
If a name is ambiguous, the command lists the IDs that match, and does nothing.

## Change a configuration with others

`cogwork fleet config edit PART` opens your editor, checks the text as `cogwork config check` does,
shows the differences and what the machine would build, change and close, and asks before it saves.
If someone else saves in the meantime, nothing is overwritten: the command keeps your text in a file
and shows how to compare it. To undo a change, find its number and restore an earlier one:

```sh
cogwork fleet config history press
cogwork fleet config restore press 12
```

A script reads the configuration together with its time, and saves only if it is still the same:

```sh
cogwork fleet config show press --json --reveal-secrets > press.json
updated=$(jq -r .last_updated press.json)
jq -r .config press.json | jq '.debug = true' > new.json
cogwork fleet config edit press --file new.json --last-known-update "$updated" --yes
```

With `--yes`, a configuration with errors is never saved. If the server of the machine is of another
make, it may know settings and models that Cogwork does not: what is found is shown as warnings, and
the configuration is saved, unless it is no JSON object or cannot be sent to a machine.

## Exit codes

Every command of `cogwork` uses the same exit codes. An error is one sentence on standard error.

| code | meaning |
|---|---|
{exit_codes}

## Commands

"""


def cli_page() -> str:
    cogwork, server, agent, cloud = programs()
    return (
        _INTRO.format(exit_codes=_exit_codes())
        + _commands(cogwork)
        + "".join(
            f"\n## {each.name}\n\n{each.sentence}\n\n{_commands(each)}" for each in (agent, cloud)
        )
        + f"\n## {server.name}\n\n{_body(server)}\n"
        + "[Options of cogwork-server](options.md) has their defaults and what is without effect.\n"
    )


def _commands(program: Command) -> str:
    leaves = [command for command in walk(program) if not command.commands]
    return _contents(leaves) + "\n".join(map(_section, leaves))


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
    # Do not use a table row, because renderers disagree on vertical bars in code there.
    return f"- `{argument.usage}`: {argument.meaning}\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
