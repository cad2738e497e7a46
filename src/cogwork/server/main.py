"""`cogwork-server`: one machine, for as long as the process lives."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from cogwork import __version__
from cogwork.server import process
from cogwork.server.options import Options, UsageError, notes, parse, usage

FINE = 0
FAILURE = 1
USAGE = 2


def main(argv: Sequence[str] | None = None) -> int:
    try:
        options = parse(sys.argv[1:] if argv is None else argv)
    except UsageError as error:
        print(f"cogwork-server: {error}\n\n{usage()}", file=sys.stderr)
        return USAGE
    if options.help:
        print(usage())
        return FINE
    if options.version:
        print(f"cogwork-server {__version__}")
        return FINE
    if options.dump_resources is not None:
        from cogwork.server.dump import dump_resources

        return dump_resources(options.dump_resources)
    for note in notes(options):
        print(f"cogwork-server: {note}", file=sys.stderr)
    return _run(options) if options.runs_a_machine else FAILURE


def _run(options: Options) -> int:
    assert options.config is not None
    process.prepare(os.environ)
    # After the process is prepared, because these import pydantic and grpc.
    from cogwork.core.clock import SystemClock
    from cogwork.server.log import ServerLog
    from cogwork.server.serve import serve

    clock = SystemClock()
    log = ServerLog(
        clock,
        process.STDOUT,
        os.environ,
        debug=options.debug,
        file=options.log_file,
        show_diffs=options.reveal_sensitive_config_diffs,
    )
    log.open()
    try:
        return process.run(serve(options.config, clock, log, untrusted=options.untrusted_env))
    finally:
        log.close()


if __name__ == "__main__":
    sys.exit(main())
