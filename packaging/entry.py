"""Entry point of the executable, equivalent to the wheel's `cogwork-server`.

Where the server runs one of its modules in another process, it starts `sys.executable -m module`.
That is this executable, so it accepts `-m` as Python does, for its own modules.
"""

import sys

if sys.argv[1:2] == ["-m"] and "".join(sys.argv[2:3]).startswith("cogwork."):
    from runpy import run_module

    _module = sys.argv[2]
    del sys.argv[1:3]
    run_module(_module, run_name="__main__", alter_sys=True)
else:
    from cogwork.server.main import run

    run()
