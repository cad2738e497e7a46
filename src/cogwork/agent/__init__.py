"""The agent: keeps a machine's server installed, running and current.

Versions of the server and of the agent are installed beside each other (`slots`), and a symbolic
link names the current one.

1. `release` reads releases: tar archives of wheels, whose manifest is signed.
   `slots/installer.py` makes a virtual environment of one, offline. A slot appears complete or
   not at all.
2. `supervision/supervisor.py` owns the server. It saves a trial before it switches, and a
   failure before it switches back, so `slots/recovery.py` can finish whatever a power cut
   interrupts. `supervision/health.py` is the health gate. The server outlives the agent, which
   finds it again by its process ID. Under systemd it is a service of its own
   (`supervision/systemd_server.py`), otherwise a process of the agent
   (`supervision/child_server.py`). `installation` writes both services, in place of what ran the
   machine before (`installation/predecessor.py`).
3. `updates/updater.py` asks a source (`updates/cloud_source.py`, `updates/folder_source.py`),
   installs at any time, and switches when `window/permission.py` allows it: the calendar, and
   the maintenance sensor through `/restart_status`. `updates/downgrade.py` (pure) refuses
   versions below the highest `minimum_version` of a signed release, and versions older than the
   current one without permission.
4. `launcher.py` starts the agent and returns to the former one if the new one fails. It is
   packed into a file that needs only the standard library, and no update replaces it. It is the
   main process of the service, and reports to systemd.
"""
