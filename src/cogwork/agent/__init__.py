"""The agent, which keeps a machine's server installed, running and up to date.

Versions of the server and of the agent are installed beside each other (`slots`), and a symbolic
link names the current one.

1. `release` reads releases: tar archives of wheels, with a signed manifest. `slots/installer.py`
   installs a release offline, into a virtual environment. Its slot appears complete or not at all.
2. `supervision/supervisor.py` owns the server. Before it switches to a new version, it records on
   disk that the version is on trial; before it switches back, that the version failed. So after a
   power cut during an update, `slots/recovery.py` can choose a usable version.
   `supervision/health.py` is the health gate. The server keeps running when the agent ends, and the
   next agent finds it by its process ID. Under systemd, the server is a service of its own
   (`supervision/systemd_server.py`); otherwise, it is a child process of the agent
   (`supervision/child_server.py`). `installation` installs both services, which replace the program
   that ran the machine before (`installation/predecessor.py`).
3. `updates/updater.py` asks a source for new versions (`updates/cloud_source.py`,
   `updates/folder_source.py`) and installs them at any time. It switches to a version when
   `window/permission.py` allows this, according to the calendar and the maintenance sensor (through
   `/restart_status`). `updates/downgrade.py` (pure) refuses versions below the highest
   `minimum_version` of a signed release, and versions older than the current one without
   permission.
4. `launcher.py` starts the agent, and returns to its former version if a new version fails. The
   launcher is packed into a file that needs only the standard library, and no update replaces it.
   It is the main process of the agent's service, and reports to systemd.
"""
