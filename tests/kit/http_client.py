"""An HTTP client for plain HTTP on loopback: it does not load the system's certificates, which takes 70
ms."""

from __future__ import annotations

import ssl
from typing import Any

import httpx

NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Trusts no certificate."""


def http_client(url: str, token: str | None = None, **options: Any) -> httpx.AsyncClient:
    """Return an HTTP client of a server on loopback that sends this token, or none."""
    headers = {**options.pop("headers", {})}
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    return httpx.AsyncClient(
        base_url=url, headers=headers, verify=NO_CERTIFICATES, **{"timeout": 60, **options}
    )
