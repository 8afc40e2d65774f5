"""Run before either program: what it starts gets the machine's own libraries.

The release's are found by LD_LIBRARY_PATH, which children inherit: on a newer Debian, systemctl or apt would then load
an older libcrypto than they were built for, and end at once. The loader of this process has read the variable already.
"""

import os

if "LD_LIBRARY_PATH_ORIG" in os.environ:
    os.environ["LD_LIBRARY_PATH"] = os.environ.pop("LD_LIBRARY_PATH_ORIG")
else:
    os.environ.pop("LD_LIBRARY_PATH", None)
# A program of a release that another one starts finds its own libraries.
os.environ["PYINSTALLER_RESET_ENVIRONMENT"] = "1"
