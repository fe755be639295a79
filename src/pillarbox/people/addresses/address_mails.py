"""Writes the mails about a change of the address that somebody logs in with."""

from __future__ import annotations

from typing import Final, NamedTuple


class MailText(NamedTuple):
    """A subject and a text with places."""

    subject: str
    text: str


LINK: Final = MailText(
    "Your login address at Pillarbox",
    """\
Somebody who is logged in as {email} at {site} wants to log in with this address, {new}, from now on.

This link works once, for {minutes} minutes, where {email} is logged in:

{link}

If it was not you, ignore this mail: nothing changes.
""",
)
"""To the new address."""

TAKEN: Final = MailText(
    "Your login address at Pillarbox",
    """\
Somebody who is logged in as {email} at {site} wants to log in with this address, {new}, from now on.

That is not possible, because there is an account with this address already. If it was you, log in with this
address, or take another one for the account {email}.

If it was not you, ignore this mail: nothing changes.
""",
)
"""To the new address, in place of a link, where somebody has it."""

ASKED: Final = MailText(
    "Somebody asks to change your login address at Pillarbox",
    """\
Somebody who is logged in as you at {site} wants to log in with {new} in place of {email}.

Nothing has changed yet. The change is done when a link in a mail to the new address is used.

If it was you, there is nothing to do here.

If it was not you, choose another password now. That ends the change, and logs you out everywhere:

{site}/password/lost
""",
)
"""To the address of before, when a change is asked for."""

CHANGED: Final = MailText(
    "Your login address at Pillarbox has changed",
    """\
The account {email} at {site} logs in with {new} from now on. Its mail, for a lost password too, goes there.

If it was you, there is nothing to do.

If it was not you, tell whoever runs this Pillarbox at once. `pillarbox people disable` shuts the account out,
and `pillarbox people set-address` gives it its address back.
""",
)
"""To the address of before, when it is changed. Commands stand without addresses: a local part may hold what
a shell acts upon."""
