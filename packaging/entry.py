"""Entry point of the executable, equivalent to the wheel's `cogwork-server`.

Where the server runs one of its modules in another process, it starts `sys.executable -m module`.
That is this executable, so it accepts `-m` as Python does, for its own modules.
"""

import os
import sys
from pathlib import Path

# The file that unpacked this program. Modules and other child processes do not inherit it.
_packed = os.environ.pop("COGWORK_PACKED_FILE", None)

if sys.argv[1:2] == ["-m"] and "".join(sys.argv[2:3]).startswith("cogwork."):
    from runpy import run_module

    _module = sys.argv[2]
    del sys.argv[1:3]
    run_module(_module, run_name="__main__", alter_sys=True)
else:
    from cogwork.server.main import run

    run(Path(_packed) if _packed else None)
