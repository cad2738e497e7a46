"""Runs before the server: restore the environment that the executable was started with.

PyInstaller's loader points LD_LIBRARY_PATH at the bundled libraries and sets variables of its own.
This process has already read them. A child process would load our libssl instead of its own, and
another PyInstaller executable would mistake the variables for its own.
"""

import os

_given = os.environ.pop("LD_LIBRARY_PATH_ORIG", None)
if _given is None:
    os.environ.pop("LD_LIBRARY_PATH", None)
else:
    os.environ["LD_LIBRARY_PATH"] = _given
for _name in [name for name in os.environ if name.startswith("_PYI_")]:
    del os.environ[_name]
