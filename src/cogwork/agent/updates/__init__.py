"""Updates: the sources of new versions, and their download and installation."""
