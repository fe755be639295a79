"""Ends with status 0 if the Pillarbox of this container answers, whatever its port, and with TLS or without.

The server notes in its data folder where it listens. One that serves no API is well while it runs.
"""

from __future__ import annotations

import json
import os
import ssl
import sys
import urllib.request
from pathlib import Path

TIMEOUT = 4


def main() -> int:
    """The status; what is wrong stands in the container's log of its health."""
    note = Path(os.environ.get("PILLARBOX_DATA", "/data")) / "run" / "supervisor.json"
    try:
        found = json.loads(note.read_text(encoding="utf-8"))
        os.kill(found["pid"], 0)
        if found["http"] is not None:
            # The certificate is for the public name, and this is the same machine.
            unchecked = ssl._create_unverified_context()  # noqa: S323
            urllib.request.urlopen(f"{found['http']}/health", timeout=TIMEOUT, context=unchecked).close()  # noqa: S310
    except (OSError, ValueError) as problem:
        print(f"not well: {problem}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
