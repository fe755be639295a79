"""Logging in by OpenID Connect: what is asked of the provider, and what its answer does.

A subject that is joined to a person logs that person in; the address that the provider says then means
nothing. Any other subject needs a verified address, once:

- of an account with a password: the password is asked for (`join`);
- of an account that nobody has ever logged in to: the operator or a member has made it for that address;
- of no account: the invitation whose link the person opened, or a domain that the operator has named.

An account that has another way in, and one that is joined to another subject, is joined to nobody by its
address. Where a person has a second factor, it is asked for after the provider as after a password.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

import asyncpg

from pillarbox.kernel.ids import Ids
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.postgres.database import Connection, transaction
from pillarbox.kernel.security.rate_limit import Windows, key_for
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.wire.email_address import EmailAddress, NotAnAddress, email_address
from pillarbox.people import queries, sessions
from pillarbox.people.accounts import AddressTaken
from pillarbox.people.audit import Act, Actor, record
from pillarbox.people.factors import passkey_queries
from pillarbox.people.factors.factor_logins import with_way
from pillarbox.people.logins import LoginRefused, Logins, ProvenPassword, TooManyTries, network_of
from pillarbox.people.membership import invitations
from pillarbox.people.openid import login_state, openid_queries
from pillarbox.people.openid.failures import OpenIdFailure, OpenIdReason
from pillarbox.people.openid.login_state import LoginPurpose, LoginState, PendingJoin
from pillarbox.people.openid.new_accounts import NewAccounts
from pillarbox.people.openid.provider import Provider
from pillarbox.people.openid.provider_subject import ProviderSubject, verified_address
from pillarbox.people.queries import Person
from pillarbox.people.sessions import SessionOrigin, SessionStage
from pillarbox.people.visitors import Visitor

log = get("openid")

WAY: Final = "openid"
WINDOW: Final = 300.0
PER_NETWORK: Final = 60
LONGEST_CODE: Final = 4096
LONGEST_ERROR: Final = 60


class ProviderAnswer(NamedTuple):
    """The parameters with which the provider sends a browser back."""

    state: str
    code: str | None
    error: str | None
    issuer: str | None


class OpenIdRefused(NamedTuple):
    """Nobody was logged in, and nothing was joined. `to` is where the person wanted to go."""

    reason: OpenIdReason
    to: str | None = None


class OpenIdSession(NamedTuple):
    """A session by its new token. `purpose` is why the provider was asked; `has_accepted` says that the login
    has accepted the invitation that it came from."""

    token: str
    stage: SessionStage
    purpose: LoginPurpose
    to: str | None
    has_accepted: bool = False


class PasswordNeeded(NamedTuple):
    """The account has a password, which is asked for once; the browser keeps `token` until then."""

    token: str


OpenIdOutcome = OpenIdSession | PasswordNeeded | OpenIdRefused | TooManyTries


@dataclass(frozen=True, slots=True)
class BrowserRequest:
    """A request of a browser: when, from where, the token of its cookie, its session, and who it is."""

    at: datetime
    origin: SessionOrigin
    browser: str | None
    session: str | None
    visitor: Visitor | None

    def actor(self, person_id: UUID | None = None, email: str | None = None) -> Actor:
        address, agent = self.origin
        return Actor(person_id=person_id, name=email, address=address, user_agent=agent)


@dataclass(frozen=True, slots=True)
class OpenIdLogins:
    """Sends people to the provider, and lets them in when they come back."""

    pool: asyncpg.Pool
    ids: Ids
    windows: Windows
    ring: KeyRing
    logins: Logins
    provider: Provider
    new_accounts: NewAccounts

    @property
    def issuer(self) -> str:
        return self.provider.client.issuer

    async def begin(
        self, asking: BrowserRequest, purpose: LoginPurpose, to: str | None
    ) -> str | OpenIdRefused:
        """Return the URL at which the provider asks the person who they are. Nothing is counted: any page can
        let browsers begin, and would shut their network out."""
        assert asking.browser is not None
        person_id = None if asking.visitor is None else asking.visitor.person_id
        state = LoginState(purpose, to, None if purpose is LoginPurpose.LOGIN else person_id, asking.at)
        text = login_state.seal_state(self.ring, asking.browser, state)
        parameters = {
            "state": text,
            "nonce": login_state.nonce_of(asking.browser, text),
            "code_challenge": login_state.challenge_of(login_state.verifier_of(asking.browser, text)),
        }
        if purpose is LoginPurpose.CONFIRM:
            # Who is logged in at the provider all day proves nothing by that.
            parameters |= {"prompt": "login", "max_age": "0"}
        try:
            return await self.provider.authorization_url(asking.at, parameters)
        except OpenIdFailure as failure:
            log.warning("openid.begin_failed", reason=failure.reason.value, detail=failure.detail)
            return OpenIdRefused(failure.reason, to)

    async def receive(self, asking: BrowserRequest, answer: ProviderAnswer) -> OpenIdOutcome:
        """Do what the answer of the provider says, once. An answer that is of no login of this browser is
        neither counted nor recorded: any page can let browsers send such ones."""
        state = None
        if asking.browser is not None:
            state = login_state.open_state(self.ring, asking.browser, answer.state, asking.at)
        if state is None:
            return OpenIdRefused(OpenIdReason.STATE)
        window = key_for(f"openid answers from {network_of(asking.origin.address)}")
        taken = self.windows.take(window, PER_NETWORK, WINDOW)
        if not taken.allowed:
            return TooManyTries(taken.reset)
        try:
            await self._take_state(asking, answer, state)
            subject = await self._subject(asking, answer)
            outcome = await self._act(asking, state, subject)
        except OpenIdFailure as failure:
            await self._record_refusal(asking, failure)
            return OpenIdRefused(failure.reason, state.to)
        self.windows.give_back(window)
        return outcome

    async def pending_join(
        self, asking: BrowserRequest, token: str | None
    ) -> tuple[PendingJoin, Person] | None:
        """Return what waits for a password in this browser, and whose password it is."""
        if asking.browser is None or token is None:
            return None
        join = login_state.open_join(self.ring, asking.browser, token, asking.at)
        person = None if join is None else await queries.person(self.pool, join.person_id)
        return None if join is None or person is None or person.disabled_at else (join, person)

    async def join(
        self, asking: BrowserRequest, token: str | None, password: str, device: str | None
    ) -> OpenIdSession | OpenIdRefused | TooManyTries | LoginRefused:
        """Join the subject that waits to the account, whose password this is, and log in. Raises
        PasswordHashingBusy."""
        found = await self.pending_join(asking, token)
        if found is None:
            return OpenIdRefused(OpenIdReason.STATE)
        pending, person = found
        proven = await self.logins.prove(asking.at, person.email, password, asking.origin, device)
        if not isinstance(proven, ProvenPassword):
            return proven
        try:
            return await self._joined_by_password(asking, pending, proven)
        except OpenIdFailure as failure:
            await self._record_refusal(asking, failure)
            return OpenIdRefused(failure.reason, pending.to)

    # Steps ---------------------------------------------------------------------------------------

    async def _take_state(self, asking: BrowserRequest, answer: ProviderAnswer, state: LoginState) -> None:
        """Take the state of the login that the answer belongs to (RFC 9700, 4.4 and 4.7)."""
        hash_ = login_state.state_hash(answer.state)
        if not await openid_queries.use_state(self.pool, hash_, state.ends_at):
            raise OpenIdFailure(OpenIdReason.STATE, "used before")
        if state.purpose is not LoginPurpose.LOGIN:
            visitor = asking.visitor
            if visitor is None or visitor.person_id != state.person_id:
                raise OpenIdFailure(OpenIdReason.STATE, "another person is logged in")

    async def _subject(self, asking: BrowserRequest, answer: ProviderAnswer) -> ProviderSubject:
        """Return who the provider says the person is."""
        metadata = await self.provider.metadata(asking.at)
        # An answer of another provider is never taken to this one (RFC 9207, 2.4).
        if answer.issuer != metadata.issuer and (answer.issuer is not None or metadata.names_itself):
            raise OpenIdFailure(OpenIdReason.ANSWER, "iss of the answer")
        if answer.error is not None:
            raise OpenIdFailure(OpenIdReason.DENIED, answer.error[:LONGEST_ERROR])
        if not answer.code or len(answer.code) > LONGEST_CODE:
            raise OpenIdFailure(OpenIdReason.ANSWER, "no code")
        assert asking.browser is not None
        verifier = login_state.verifier_of(asking.browser, answer.state)
        tokens = await self.provider.exchange(asking.at, answer.code, verifier)
        nonce = login_state.nonce_of(asking.browser, answer.state)
        claims = await self.provider.claims(asking.at, tokens, nonce)
        said = claims
        if claims.email is None and tokens.access_token is not None:
            known = await openid_queries.person_of_subject(self.pool, self.issuer, claims.subject)
            if known is None:
                said = await self.provider.userinfo(asking.at, tokens.access_token, claims.subject) or claims
        return ProviderSubject(
            issuer=self.issuer,
            subject=claims.subject,
            email=said.email if said.is_verified else None,
            name=said.name,
            authenticated_at=claims.authenticated_at,
        )

    async def _act(
        self, asking: BrowserRequest, state: LoginState, subject: ProviderSubject
    ) -> OpenIdSession | PasswordNeeded:
        if state.purpose is LoginPurpose.CONFIRM:
            return await self._confirmed(asking, state, subject)
        if state.purpose is LoginPurpose.CONNECT:
            return await self._connected(asking, state, subject)
        try:
            async with transaction(self.pool) as conn:
                return await self._logged_in(conn, asking, state, subject)
        except AddressTaken:
            raise OpenIdFailure(OpenIdReason.STATE, "another login was faster", subject.email) from None

    async def _logged_in(
        self, conn: Connection, asking: BrowserRequest, state: LoginState, subject: ProviderSubject
    ) -> OpenIdSession | PasswordNeeded:
        person_id = await openid_queries.person_of_subject(conn, subject.issuer, subject.subject)
        if person_id is not None:
            return await self._begun(conn, asking, person_id, subject, state.to)
        address = verified_address(subject)
        person = await queries.person_of_address(conn, address.address)
        if person is not None and person.disabled_at is not None:
            raise OpenIdFailure(OpenIdReason.DISABLED, email=address.shown)
        if person is not None:
            if await openid_queries.link_of(conn, person.id, subject.issuer) is not None:
                raise OpenIdFailure(OpenIdReason.OTHER_SUBJECT, email=address.shown)
            if person.password is not None:
                return self._password_needed(asking, state, subject, person.id, address)
            passkeys = await passkey_queries.of_person(conn, person.id)
            if passkeys or person.last_login_at is not None:
                raise OpenIdFailure(OpenIdReason.OTHER_WAY, email=address.shown)
        came = await self.new_accounts.admit(
            conn, asking.at, asking.origin, subject, person, _invitation(state.to)
        )
        await self._link(conn, asking, came.person_id, subject, address)
        begun = await self._begun(conn, asking, came.person_id, subject, state.to)
        if came.invited_to is None:
            return begun
        await sessions.look_at(conn, begun.token, came.invited_to)
        return begun._replace(has_accepted=True)

    def _password_needed(
        self,
        asking: BrowserRequest,
        state: LoginState,
        subject: ProviderSubject,
        person_id: UUID,
        address: EmailAddress,
    ) -> PasswordNeeded:
        assert asking.browser is not None
        join = PendingJoin(person_id, subject.subject, address.shown, state.to)
        return PasswordNeeded(login_state.seal_join(self.ring, asking.browser, join, asking.at))

    async def _joined_by_password(
        self, asking: BrowserRequest, pending: PendingJoin, proven: ProvenPassword
    ) -> OpenIdSession:
        address = email_address(pending.email)
        # The account may have got another address since the provider answered.
        if proven.person.id != pending.person_id or proven.key != address.address:
            raise OpenIdFailure(OpenIdReason.STATE, "another address", pending.email)
        subject = ProviderSubject(self.issuer, pending.subject, pending.email)
        async with transaction(self.pool) as conn:
            if await proven.lock(conn) is None:
                raise OpenIdFailure(OpenIdReason.STATE, "changed meanwhile", pending.email)
            await self._link(conn, asking, pending.person_id, subject, address)
            return await self._begun(conn, asking, pending.person_id, subject, pending.to)

    async def _link(
        self,
        conn: Connection,
        asking: BrowserRequest,
        person_id: UUID,
        subject: ProviderSubject,
        address: EmailAddress,
    ) -> None:
        """Join the subject to the person; raises OpenIdFailure where either is joined already."""
        is_linked = await openid_queries.link(
            conn, subject.issuer, subject.subject, person_id, address.shown, asking.at
        )
        if not is_linked:
            raise OpenIdFailure(OpenIdReason.OTHER_SUBJECT, email=address.shown)
        person = await queries.person(conn, person_id)
        actor = asking.actor(person_id, None if person is None else person.email)
        details = {"issuer": subject.issuer, "subject": subject.subject}
        await record(
            conn,
            asking.at,
            Act.OPENID_JOINED,
            team_id=None,
            actor=actor,
            target=address.shown,
            details=details,
        )

    async def _begun(
        self,
        conn: Connection,
        asking: BrowserRequest,
        person_id: UUID,
        subject: ProviderSubject,
        to: str | None,
    ) -> OpenIdSession:
        """Begin a session of the person who is joined to the subject."""
        email = await queries.lock(conn, person_id)
        if email is None:
            raise OpenIdFailure(OpenIdReason.DISABLED, email=subject.email)
        # Read after the lock: a second factor may have been added, or the subject parted, just before.
        person = await queries.person(conn, person_id)
        is_joined = await openid_queries.mark_used(
            conn, subject.issuer, subject.subject, person_id, asking.at
        )
        if person is None or not is_joined:
            raise OpenIdFailure(OpenIdReason.STATE, "parted meanwhile", subject.email)
        if asking.session is not None:
            await sessions.end(conn, asking.session)
        stage = SessionStage.PENDING if person.has_totp else SessionStage.FULL
        session_id = self.ids.new()
        token = await sessions.begin(
            conn, asking.at, session_id, person_id, [WAY], asking.origin, stage=stage
        )
        if token is None:
            raise OpenIdFailure(OpenIdReason.DISABLED, email=subject.email)
        if stage is SessionStage.FULL:
            await queries.mark_login(conn, person_id, asking.at)
            actor = asking.actor(person_id, email)
            details = {"ways": [WAY]}
            await record(conn, asking.at, Act.LOGIN_SUCCEEDED, team_id=None, actor=actor, details=details)
        return OpenIdSession(token=token, stage=stage, purpose=LoginPurpose.LOGIN, to=to)

    async def _confirmed(
        self, asking: BrowserRequest, state: LoginState, subject: ProviderSubject
    ) -> OpenIdSession:
        """Confirm the visitor's session, where the subject is joined to them and has just proved itself."""
        proved_at, began = subject.authenticated_at, state.began_at.timestamp()
        if proved_at is not None and proved_at < began - login_state.CLOCKS_DIFFER:
            raise OpenIdFailure(OpenIdReason.OLD_PROOF, email=subject.email)
        visitor = self._visitor(asking)
        if proved_at is None and await self._has_own_proof(visitor.person_id):
            raise OpenIdFailure(OpenIdReason.UNDATED_PROOF, email=subject.email)
        async with transaction(self.pool) as conn:
            is_joined = await openid_queries.mark_used(
                conn, subject.issuer, subject.subject, visitor.person_id, asking.at
            )
            if not is_joined:
                raise OpenIdFailure(OpenIdReason.OTHER_PERSON, email=subject.email)
            return await self._renewed(conn, asking, state)

    async def _has_own_proof(self, person_id: UUID) -> bool:
        """Return whether the person can prove here who they are: without the provider's session."""
        person = await queries.person(self.pool, person_id)
        if person is not None and person.password is not None:
            return True
        return bool(await passkey_queries.of_person(self.pool, person_id))

    async def _connected(
        self, asking: BrowserRequest, state: LoginState, subject: ProviderSubject
    ) -> OpenIdSession:
        """Join the subject to the visitor, whose address the provider must have verified."""
        visitor, address = self._visitor(asking), verified_address(subject)
        if address.address != _key(visitor.email):
            raise OpenIdFailure(OpenIdReason.OTHER_PERSON, "another address", address.shown)
        async with transaction(self.pool) as conn:
            await self._link(conn, asking, visitor.person_id, subject, address)
            return await self._renewed(conn, asking, state)

    async def _renewed(self, conn: Connection, asking: BrowserRequest, state: LoginState) -> OpenIdSession:
        visitor = self._visitor(asking)
        ways = with_way(visitor.ways, WAY)
        token = await sessions.renew(conn, asking.at, sessions.token_hash(visitor.token), ways)
        if token is None:
            raise OpenIdFailure(OpenIdReason.STATE, "logged out meanwhile")
        return OpenIdSession(token, SessionStage.FULL, state.purpose, state.to)

    def _visitor(self, asking: BrowserRequest) -> Visitor:
        assert asking.visitor is not None
        return asking.visitor

    async def _record_refusal(self, asking: BrowserRequest, failure: OpenIdFailure) -> None:
        details = {"way": WAY, "reason": failure.reason.value, "detail": failure.detail}
        await record(
            self.pool,
            asking.at,
            Act.LOGIN_FAILED,
            team_id=None,
            actor=asking.actor(),
            target=failure.email,
            details=details,
        )
        log.info("openid.refused", reason=failure.reason.value)


def _invitation(to: str | None) -> str | None:
    """Return the token of the invitation that a login came from."""
    if to is None or not to.startswith(invitations.PATH):
        return None
    return to.removeprefix(invitations.PATH).partition("?")[0]


def _key(email: str) -> str | None:
    try:
        return email_address(email).address
    except NotAnAddress:
        return None
