"""The configuration: from a saved file to the specs of resources.

`source` watches the file, or gets configurations from a cloud (`source/sources.py`).
`source/watcher.py` loads each new text, has it applied, and informs the source whether it was
applied, superseded or refused, and why.

`check/loader.py` substitutes environment variables, parses the text with the position of every
value (`text`), and checks it against `schema`. Every mistake becomes a diagnostic. A file that is
not JSON, or whose `cloud`, `network` or `auth` section is invalid, is refused, and the machine
keeps its configuration. The rest becomes specs, one for each resource; the spec of an invalid
resource contains the reason.

Commands edit the text with `text/json_edit.py`, which keeps comments and format. `migration`
applies the edits that diagnostics carry to a copy of a file of viam-server.

The text of an applied configuration is saved as the last-known-good copy (`source/last_good.py`)
and recorded in the history (`source/config_history.py`). Before the control page
(`source/config_editor.py`) and `cogwork config restore` write the file, they record the author of
the change in the history.
"""
