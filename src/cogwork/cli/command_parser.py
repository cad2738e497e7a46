"""An argument parser that reports errors as one sentence and a hint to the help."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from cogwork.cli.exit_codes import EXIT_USAGE
from cogwork.core.escape import escape


class CommandParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        lines = f"{self.prog}: {escape(message)}", f"for help, run: {self.prog} -h"
        self.exit(EXIT_USAGE, "".join(f"{line}\n" for line in lines))

    def parse_known_args(self, *arguments: Any, **options: Any) -> tuple[Any, list[str]]:
        """Parse the arguments. Report unknown ones here, because argparse omits the command's
        name."""
        parsed, unknown = super().parse_known_args(*arguments, **options)
        if unknown:
            self.error(self._describe_unknown(unknown[0]))
        return parsed, unknown

    def _describe_unknown(self, word: str) -> str:
        if not word.startswith("-"):
            return f'unexpected argument "{word}"; put an argument with spaces in quotes'
        option = word.partition("=")[0]
        return f"unknown option {option}{_suggest(option, self._option_string_actions)}"

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        names = list(map(str, action.choices))
        hint = _suggest(str(value), names) or f"; choose from {', '.join(names)}"
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            self.error(f'unknown command "{value}"{hint}')
        raise argparse.ArgumentError(action, f'invalid value "{value}"{hint}')


def _suggest(word: str, choices: Any) -> str:
    # Imported only after a mistake, so that other commands start fast.
    from cogwork.config.check.diagnostics import did_you_mean

    hint = did_you_mean(word, choices)
    return f"; {hint}" if hint else ""
