"""Runs before the server: gives back the environment that the executable was started with.

PyInstaller's loader points LD_LIBRARY_PATH at the bundled libraries and leaves notes to itself.
This process has read them by now. A child process would take our libssl for its own, and another
executable made by PyInstaller would take the notes for its own.
"""

import os

_given = os.environ.pop("LD_LIBRARY_PATH_ORIG", None)
if _given is None:
    os.environ.pop("LD_LIBRARY_PATH", None)
else:
    os.environ["LD_LIBRARY_PATH"] = _given
for _name in [name for name in os.environ if name.startswith("_PYI_")]:
    del os.environ[_name]
