"""Mail to a bounce address or to the feedback address: it is processed, and never stored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import NamedTuple


class BounceMail(NamedTuple):
    """A report as it came; of a very large one `raw` is the beginning. `token` is the local part of a return
    path (its MAC holds), or empty for mail to the feedback address. `sender` is "" for the null sender.
    `client` is the IP address of the host that brought it and `helo` its name; both are empty for mail that
    came over no network.
    """

    token: str
    recipient: str
    sender: str
    raw: bytes
    at: datetime
    client: str = ""
    helo: str = ""


Bounces = Callable[[BounceMail], Awaitable[object]]
"""Takes one; when it returns, what follows from the report is committed. Raises where that failed: then the
sender is told to try again."""
