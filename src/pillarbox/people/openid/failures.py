"""Why a login by OpenID Connect did not happen."""

from __future__ import annotations

from enum import Enum


class OpenIdReason(Enum):
    """The reason, as the log of acts names it."""

    STATE = "state"
    DENIED = "denied"
    UNREACHABLE = "unreachable"
    ANSWER = "answer"
    TOKEN = "token"  # noqa: S105 - a reason
    UNVERIFIED = "unverified"
    NOT_INVITED = "not_invited"
    NO_TEAM = "no_team"
    DISABLED = "disabled"
    OTHER_SUBJECT = "other_subject"
    OTHER_WAY = "other_way"
    OTHER_PERSON = "other_person"
    OLD_PROOF = "old_proof"
    UNDATED_PROOF = "undated_proof"


class OpenIdFailure(Exception):  # noqa: N818 - an outcome that ends the login
    """The login ends. `detail` is for the log of acts and of the program; no person sees it."""

    def __init__(self, reason: OpenIdReason, detail: str = "", email: str | None = None) -> None:
        super().__init__(f"{reason.value}: {detail}" if detail else reason.value)
        self.reason = reason
        self.detail = detail
        self.email = email
