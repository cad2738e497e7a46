"""Packages: versioned directories of files, which the machine gets from elsewhere.

1. `config/check/checked_packages.py` replaces `${packages.…}` by the directory of the package, and
   records which parts of the configuration use which package.
2. `manager.py` has a task for each package that is missing: it finds the source
   (`archive_locator.py`), runs a `Fetch` (`fetch.py`) in a thread, and retries after a failure.
3. A fetch downloads (`net/http_download.py`), compares the hashes, unpacks
   (`archives/unpacking.py`) into a working directory, and publishes the result by one rename
   (`slot.py`). A directory under its final name is complete.
4. `server/config_applier.py` applies the settings whose packages are ready. Resources, modules and
   processes whose packages are missing keep their former settings (`effective_config.py`, pure).
   `gate.py` is a provider that reports waiting resources as unavailable. Once all packages are
   ready, unused versions are removed (`package_store.py`). `server/last_complete_config.py` lets a
   machine start with its former packages.
"""
