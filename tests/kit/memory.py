"""How much memory a process has."""

from __future__ import annotations

import re
from pathlib import Path


def resident(pid: int | str = "self") -> int:
    """Return the resident octets now."""
    [line] = re.findall(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(line) * 1024
