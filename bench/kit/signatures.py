"""Whether a mail on the wire has a DKIM signature that dkimpy accepts."""

from __future__ import annotations

import importlib.util


def fault_of(content: bytes, domain: str, selector: str, public_key: str) -> str:
    """Empty when the signature verifies; `content` is what followed DATA, dots still doubled."""
    if b"dkim-signature:" not in content.partition(b"\r\n\r\n")[0].lower():
        return "the mail is not signed"
    if importlib.util.find_spec("dkim") is None:
        return ""
    import dkim  # type: ignore[import-untyped]

    raw = content.replace(b"\r\n..", b"\r\n.") + b"\r\n"
    record = f"v=DKIM1; k=rsa; p={public_key}".encode()
    place = f"{selector}._domainkey.{domain}.".encode()

    def answer(name: bytes, timeout: int = 5) -> bytes | None:
        return record if name == place else None

    return "" if dkim.verify(raw, dnsfunc=answer) else "the signature does not verify"
