"""The HTTP interface of a machine: the control page, its endpoints, and camera images.

`http.py` is the application. `browser_guard.py` is middleware that refuses requests from pages of
other web sites, and `http_login.py` requires a login. Status, page, history and images are computed
once for all waiting clients (`coalescing.py`). Log readers are throttled, so that they do not block
the event loop (`core/limits/loop_throttle.py`).

`static_site.py` serves the control page to everybody: the page itself asks for a login. `make
page` builds `web` into `site`; `web/README.md` says how the page is made.
"""
