"""What `script/bench` finds: all measurements, run from the root of the checkout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

if __name__ == "__main__":
    root = Path(__file__).resolve().parents[1]
    sys.exit(subprocess.run([sys.executable, "-m", "bench", *sys.argv[1:]], cwd=root).returncode)
