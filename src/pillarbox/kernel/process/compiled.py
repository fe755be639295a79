"""Modules that were compiled to C, loaded in place of their sources while those are unchanged.

`script/compile` makes them, as the package `pillarbox_compiled` beside the other packages; a wheel for one
platform may bring it. It names the sources that it was made from and their digest. Compiled modules call each
other without looking anything up, and rely on the types of what they import, so one source that is changed
sends all of them back to Python. What runs is what the sources say (docs/decisions/0119).

The variable `COMPILED_PILLARBOX=off` does without them. It is no setting: it is read while the program is
loaded, and by the fork server, which gets no variable of the settings.

This module is imported before all others and imports little.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from pathlib import Path
from types import ModuleType

PACKAGE = "pillarbox_compiled"
VARIABLE = "COMPILED_PILLARBOX"
OFF = "off"
LIBRARY = f"{PACKAGE}__mypyc"
"""All of the code; the modules take theirs out of it."""


class CompiledFinder:
    """Finds the modules of one build; none of them once a source differs."""

    def __init__(
        self, folder: Path, suffix: str, modules: Sequence[str], sources: Sequence[str], digest: str
    ):
        self.folder = folder
        self.suffix = suffix
        self.modules = frozenset(modules)
        self.sources = sources
        self.digest = digest
        self._is_current: bool | None = None

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if (name not in self.modules and name != LIBRARY) or not self.is_current():
            return None
        file = str(self.folder / f"{name}{self.suffix}")
        spec = ModuleSpec(name, ExtensionFileLoader(name, file), origin=file)
        spec.has_location = True
        return spec

    def is_current(self) -> bool:
        """Whether the sources are those that were compiled. Asked once: what is loaded stays loaded."""
        if self._is_current is None:
            root = Path(__file__).parents[3]
            self._is_current = (
                self.suffix in EXTENSION_SUFFIXES and digest_of(root, self.sources) == self.digest
            )
        return self._is_current


def digest_of(root: Path, sources: Sequence[str]) -> str | None:
    """What stands for these sources and their names; None where one is missing."""
    whole = hashlib.sha256()
    for source in sources:
        try:
            octets = (root / source).read_bytes()
        except OSError:
            return None
        whole.update(f"{source} {len(octets)}\n".encode())
        whole.update(octets)
    return whole.hexdigest()


def finder(environment: Mapping[str, str]) -> CompiledFinder | None:
    """What finds the compiled modules that are there, if they are wanted."""
    if environment.get(VARIABLE) == OFF:
        return None
    try:
        made = importlib.import_module(PACKAGE)
        return CompiledFinder(Path(made.__path__[0]), made.SUFFIX, made.MODULES, made.SOURCES, made.DIGEST)
    except Exception:
        # Whatever is wrong with what was compiled, the program has its sources.
        return None


def use() -> None:
    """From now on modules are found compiled, where they are."""
    found = finder(os.environ)
    if found is not None and not any(isinstance(other, CompiledFinder) for other in sys.meta_path):
        sys.meta_path.insert(0, found)


def used() -> str:
    """What this process runs, in words."""
    finders = [found for found in sys.meta_path if isinstance(found, CompiledFinder)]
    if not finders:
        return "no modules are compiled"
    if not finders[0].is_current():
        return "compiled modules are of other sources and not used"
    return f"{len(finders[0].modules)} modules are compiled"
