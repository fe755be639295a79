"""Which test files a change touches (docs/decisions/0040), a line each; `--keep` notes that all is well.

What changed is told by the contents of files since the last run that was well, else by `git diff HEAD`.
"""

from __future__ import annotations

import ast
import hashlib
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOTE = ROOT / ".venv" / "caches" / "tested.json"
COMPOSITION = (
    "pillarbox.app",
    "pillarbox.application",
    "pillarbox.cli",
    "pillarbox.worker",
    "pillarbox.fork_server",
    "kit.world",
    "kit.served",
)
"""They import every part. What only they lead to does not count as touched."""


def contents() -> dict[str, str]:
    files = [path for top in ("src", "tests") for path in sorted((ROOT / top).rglob("*")) if path.is_file()]
    kept = [path for path in files if "__pycache__" not in path.parts]
    return {str(path.relative_to(ROOT)): hashlib.sha256(path.read_bytes()).hexdigest() for path in kept}


def changed(now: dict[str, str]) -> set[str]:
    if NOTE.exists():
        before = json.loads(NOTE.read_text(encoding="utf-8"))
        return {path for path in now.keys() | before.keys() if now.get(path) != before.get(path)}
    asked = (("git", "diff", "--name-only", "HEAD"), ("git", "ls-files", "--others", "--exclude-standard"))
    said = [subprocess.run(one, cwd=ROOT, capture_output=True, text=True, check=True).stdout for one in asked]
    return {line for text in said for line in text.splitlines() if line.startswith(("src/", "tests/"))}


def module_of(path: str) -> str:
    name = path.removeprefix("src/").removeprefix("tests/").removesuffix(".py").replace("/", ".")
    return name.removesuffix(".__init__")


def imports(path: Path) -> set[str]:
    """Every module that a file may mean by its imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def touched(paths: set[str], files: list[str]) -> list[str]:
    """Test files that are changed, import what is changed, or lie in the folder of a changed part."""
    graph = {path: imports(ROOT / path) for path in files if path.endswith(".py")}
    reached, found = {module_of(path) for path in paths}, set(paths)
    while more := [path for path, names in graph.items() if path not in found and names & reached]:
        found |= set(more)
        reached |= {name for path in more if not (name := module_of(path)).startswith(COMPOSITION)}
    parts = {
        path.split("/")[2] for path in paths if path.startswith("src/pillarbox/") and path.count("/") > 2
    }
    tests = [path for path in graph if Path(path).name.startswith("test_")]
    return sorted(path for path in tests if path in found or path.split("/")[1] in parts)


if __name__ == "__main__":
    now = contents()
    if "--keep" in sys.argv:
        NOTE.write_text(json.dumps(now), encoding="utf-8")
    else:
        print("\n".join(touched(changed(now), list(now))))
