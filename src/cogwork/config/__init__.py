"""The configuration: from a saved file to the specs of resources.

`source` watches the file, or gets configurations from a cloud (`source/sources.py`).
`source/watcher.py` loads each new text and has it applied; the source learns whether it was
applied, superseded or refused, and why.

`check/loader.py` substitutes environment variables, parses the text with the position of every
value (`text`), and checks it against `schema`. Every mistake becomes a diagnostic. A file that is
not JSON, or whose `cloud`, `network` or `auth` section is invalid, is refused, and the machine
keeps its configuration. The rest becomes specs, one for each resource; the spec of an invalid
resource contains the reason.

The text of an applied configuration is saved as the last-known-good copy (`source/last_good.py`)
and recorded in the history (`source/config_history.py`). The control page and `cogwork config
restore` announce their author there before they write the file (`source/config_editor.py`).
"""
