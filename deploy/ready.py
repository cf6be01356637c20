"""Ends with 0 where the service of this machine is ready: for a health check. READY_URL says where, if not below.

Its certificate is not checked: it is for the name that others call, and nothing is sent but a request for /ready.
"""

import os
import ssl
import sys
import urllib.request

URL = os.environ.get("READY_URL", "https://127.0.0.1:8443/ready")

try:
    with urllib.request.urlopen(URL, timeout=10, context=ssl._create_unverified_context()) as reply:
        sys.exit(0 if reply.status == 200 else 1)
except OSError:
    sys.exit(1)
