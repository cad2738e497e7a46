"""`cogwork-server`: run one machine."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from cogwork import __version__
from cogwork.core.cut_output import run_until_cut_off
from cogwork.server.missing_config import VIAM_CONFIG, suggest_config
from cogwork.server.options import (
    NoConfigOption,
    Options,
    UsageError,
    check_paths,
    format_usage,
    list_option_warnings,
    parse,
)
from cogwork.server.serve_options import ServeOptions
from cogwork.serving import process

EXIT_OK = 0
EXIT_FAILURE = 1
EXIT_USAGE = 2


def run(packed: Path | None = None) -> NoReturn:
    """Run `main` and end the process without the teardown of the interpreter and the libraries.

    `main` has closed everything. If a driver's thread hangs in native code, it would crash when the
    destructors of its library run.
    """
    code = main(packed=packed)
    for stream in (sys.stdout, sys.stderr):
        # Ignore a stream that is closed, or was never opened.
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)


def main(
    argv: Sequence[str] | None = None,
    packed: Path | None = None,
    viam_config: Path = VIAM_CONFIG,
) -> int:
    """Run the command line, and return the exit code. `packed` is the path of the one-file
    executable; None if the server runs from a Python environment. `viam_config` is a configuration
    to migrate if there is none to run."""
    try:
        options = parse(sys.argv[1:] if argv is None else argv)
        if options.runs_machine:
            check_paths(options)
    except UsageError as error:
        advice = suggest_config(viam_config) if isinstance(error, NoConfigOption) else ""
        lines = f"cogwork-server: {error}", advice, "for help, run: cogwork-server -h"
        print("\n".join(filter(None, lines)), file=sys.stderr)
        return EXIT_USAGE
    if options.help or options.version:
        return run_until_cut_off(lambda: _print_about(options))
    if options.aix_install or options.aix_uninstall:
        from cogwork.server.install import command

        return command.install(packed) if options.aix_install else command.uninstall(packed)
    if options.dump_resources is not None:
        from cogwork.server.dump import dump_resources

        return dump_resources(options.dump_resources)
    for warning in list_option_warnings(options):
        print(f"cogwork-server: {warning}", file=sys.stderr)
    return _run(options, viam_config) if options.runs_machine else EXIT_FAILURE


def _print_about(options: Options) -> int:
    print(format_usage() if options.help else f"cogwork-server {__version__}")
    return EXIT_OK


def _run(options: Options, viam_config: Path) -> int:
    # Do not collect garbage while importing: the imported objects are permanent.
    gc.disable()
    process.prepare(os.environ)
    # Prepare the process before these imports, which load pydantic and grpc.
    from cogwork.core.clock import SystemClock
    from cogwork.server.serve import EXIT_RESTART, serve
    from cogwork.serving.log import ServerLog

    clock = SystemClock()
    log = ServerLog(
        clock,
        process.STDOUT,
        os.environ,
        debug=options.debug,
        file=options.log_file,
        reveal_diffs=options.reveal_sensitive_config_diffs,
    )
    log.open()
    try:
        code = process.run(serve(_make_serve_options(options, viam_config), os.environ, clock, log))
    finally:
        log.close()
    if code == EXIT_RESTART:
        process.start_again()
    return code


def _make_serve_options(options: Options, viam_config: Path) -> ServeOptions:
    assert options.config is not None
    return ServeOptions(
        options.config,
        port=options.port,
        untrusted=options.untrusted_env,
        allow_plaintext_credentials=options.allow_insecure_creds,
        no_tls=options.no_tls,
        webrtc=options.webrtc,
        mdns=not options.disable_mdns,
        shareddir=options.shareddir,
        viam_config=viam_config,
    )


if __name__ == "__main__":
    run()
