"""The health check of the container image: does the server answer?

The page at / needs no login. Resources that are not ready do not count: a new container does not
bring back a camera.
"""

import os
import ssl
import sys
import urllib.error
import urllib.request

# Of the server itself, whose certificate may be for another name.
_unverified = ssl.create_default_context()
_unverified.check_hostname = False
_unverified.verify_mode = ssl.CERT_NONE

try:
    address = os.environ.get("COGWORK_PROBE_URL", "http://localhost:8080/")
    urllib.request.urlopen(address, timeout=5, context=_unverified).close()
except urllib.error.HTTPError as error:
    sys.exit(1 if error.code >= 500 else 0)
except OSError as error:
    sys.exit(f"no answer from {address}: {error}")
