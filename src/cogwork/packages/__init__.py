"""Packages: versioned directories of files, which the machine gets from elsewhere.

1. `config/check/checked_packages.py` replaces `${packages.…}` by the directory of the package,
   and records who refers to which package.
2. `manager.py` has a task for each package that is missing: it finds the source
   (`archive_locator.py`), runs a `Fetch` (`fetch.py`) in a thread, and retries after a failure.
3. A fetch downloads (`net/http_download.py`), compares the hashes, unpacks
   (`archives/unpacking.py`) into a working directory, and publishes the result by one rename
   (`slot.py`). A directory under its final name is complete.
4. `server/config_applier.py` applies what the packages allow: resources, modules and processes
   run their former settings until their packages are ready (`effective_config.py`, pure), and
   `gate.py`, a provider, answers for resources that wait. Then unused versions are removed
   (`package_store.py`). `server/last_complete_config.py` lets a machine start with its former
   packages.
"""
