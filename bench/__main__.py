"""Runs measurements in order, each in a process of its own: `python -m bench [--short] [NAME …]`."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
ORDER = (
    "start",
    "accept",
    "deliver",
    "reading",
    "find",
    "pages",
    "editor",
    "imports",
    "suppressions",
    "contacts",
    "audience",
    "broadcasts",
    "broadcast_reports",
    "events",
    "automations",
    "parse",
    "large_mail",
    "inbound",
    "submission",
    "neighbours",
    "idle",
    "backlog",
    "domains",
    "metrics",
    "logs",
    "unsubscribe",
    "tracking",
    "oauth",
    "memory",
    "profile",
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--short", action="store_true", help="small amounts, to see that everything runs")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(ORDER)}; all without it")
    wanted = parser.parse_args(arguments)
    unknown = [name for name in wanted.names if name not in ORDER]
    if unknown:
        parser.error(f"no measurement is called {', '.join(unknown)}; there are {', '.join(ORDER)}")
    flags = ["--short"] if wanted.short else []
    return max(measured(name, flags) for name in wanted.names or ORDER)


def measured(name: str, flags: Sequence[str]) -> int:
    """Run one measurement; 1 when it went wrong or missed a limit."""
    # This folder on the module path would put bench/profile.py before the standard library's.
    environment = {key: text for key, text in os.environ.items() if key != "PYTHONPATH"}
    command = [sys.executable, "-m", f"bench.{name}", *flags]
    return min(1, abs(subprocess.run(command, cwd=ROOT, env=environment).returncode))


if __name__ == "__main__":
    sys.exit(main())
