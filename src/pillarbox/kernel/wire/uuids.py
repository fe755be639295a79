"""The text of UUIDs in requests."""

from __future__ import annotations

import re

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)


def well_formed(text: str) -> bool:
    """Return whether the text is 8-4-4-4-12 hexadecimal digits, in any case."""
    return _UUID.fullmatch(text) is not None
