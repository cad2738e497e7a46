"""A machine's side of a cloud: its configuration, certificate, logs and keys.

`joined_source.py` takes the place of the file as the source of configurations if the file names a
cloud. It stores the last configuration, so that the machine starts without its cloud.
`machine_link.py` owns the connection: notices of changes (`follow_link.py`), the access list
(`access_link.py`), the certificate, the log from the spool, and requests to restart.
`auth/access_list.py` (pure) is the access list, and `auth/granted_access.py` identifies clients by
it; `server/login.py` joins it with the logins of the configuration.
"""
