"""The slice of people: logging in. The pages are drawn by the dashboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pillarbox.kernel.ids import Ids
from pillarbox.kernel.network.host_addresses import DnsAddresses
from pillarbox.kernel.network.outbound import Outbound
from pillarbox.kernel.security.rate_limit import Windows
from pillarbox.kernel.security.secrets import KeyRing
from pillarbox.kernel.slices import Background, Container, Retention, RetentionItem, Slice, Stop
from pillarbox.kernel.work.jobs import Handler
from pillarbox.people.addresses.own_address import OwnAddress
from pillarbox.people.audit.personal_data import PERSONAL_DATA
from pillarbox.people.audit.retention import INVITATIONS_KEPT, AuditRetention
from pillarbox.people.collectors import KEPT, PeopleCollector
from pillarbox.people.factors.factor_logins import FactorLogins
from pillarbox.people.factors.factor_queries import SEEDS
from pillarbox.people.factors.passkeys import Passkeys, RelyingParty
from pillarbox.people.factors.second_factor import SecondFactor
from pillarbox.people.invariants import INVARIANTS
from pillarbox.people.known_devices import KnownDevices
from pillarbox.people.logins import Logins
from pillarbox.people.lost_passwords import JOB_MAIL, LostPasswords, PasswordMail
from pillarbox.people.mails import SystemMail
from pillarbox.people.membership.invitations import Invitations
from pillarbox.people.openid.new_accounts import NewAccounts
from pillarbox.people.openid.openid_logins import OpenIdLogins
from pillarbox.people.openid.own_openid import OwnOpenId
from pillarbox.people.openid.policy import OpenIdPolicy
from pillarbox.people.openid.provider import Provider
from pillarbox.people.own_account import OwnAccount
from pillarbox.people.passwords import Passwords
from pillarbox.people.sessions import IDLE, LONGEST
from pillarbox.people.set_up import SetUp
from pillarbox.people.settings import AUDIT_RETENTION_DAYS


def _passwords(kit: Container) -> Passwords:
    return Passwords(kit.runtime.shared_memory, kit.clock)


def _logins(kit: Container) -> Logins:
    needs = kit.need(Ids), kit.need(Windows), kit.need(Passwords), kit.need(KnownDevices)
    return Logins(kit.pool, *needs, are_passwords_closed=kit.need(OpenIdPolicy).is_only)


def _factor_logins(kit: Container) -> FactorLogins:
    needs = kit.need(Ids), kit.need(Windows), kit.need(SecondFactor), kit.need(Passkeys)
    return FactorLogins(kit.pool, *needs, are_passkeys_closed=kit.need(OpenIdPolicy).is_only)


def _openid_logins(kit: Container) -> OpenIdLogins | None:
    policy = kit.need(OpenIdPolicy)
    if policy.issuer is None:
        return None
    addresses, trust = DnsAddresses(kit.resolver), kit.externals.trust
    provider = Provider.of(kit.settings, addresses, kit.need(Outbound), trust=trust)
    needs = kit.need(Ids), kit.need(Windows), kit.need(KeyRing), kit.need(Logins)
    return OpenIdLogins(kit.pool, *needs, provider, NewAccounts(kit.need(Ids), policy))


def _own_openid(kit: Container) -> OwnOpenId:
    return OwnOpenId(kit.pool, kit.need(OpenIdPolicy))


def _own_account(kit: Container) -> OwnAccount:
    return OwnAccount(kit.pool, kit.need(Passwords), kit.need(SecondFactor), kit.need(Passkeys))


def _own_address(kit: Container) -> OwnAddress:
    mail: SystemMail = kit.need(SystemMail)  # type: ignore[type-abstract]
    return OwnAddress(kit.pool, kit.need(Windows), mail, kit.settings.public_url)


def _set_up(kit: Container) -> SetUp:
    is_closed = kit.need(OpenIdPolicy).is_only
    return SetUp(kit.pool, kit.need(Ids), kit.need(Passwords), are_passwords_closed=is_closed)


def _lost_passwords(kit: Container) -> LostPasswords:
    return LostPasswords(kit.pool, kit.need(Ids), kit.need(Windows), kit.need(Passwords))


def _invitations(kit: Container) -> Invitations:
    mail: SystemMail | None = kit.find(SystemMail)  # type: ignore[type-abstract]
    return Invitations(
        kit.pool,
        kit.need(Ids),
        kit.need(Passwords),
        mail,
        kit.settings.public_url,
        are_passwords_closed=kit.need(OpenIdPolicy).is_only,
    )


def _jobs(kit: Container) -> Mapping[str, Handler]:
    mail: SystemMail = kit.need(SystemMail)  # type: ignore[type-abstract]
    return {JOB_MAIL: PasswordMail(mail, kit.need(Ids), kit.settings.public_url).run}


def _background(kit: Container) -> Sequence[Background]:
    passwords = kit.need(Passwords)

    async def close(_: float) -> None:
        passwords.close()

    return [Background(stop=(Stop.THREADS, close))]


SLICE = Slice(
    name="people",
    provides={
        Passwords: _passwords,
        Logins: _logins,
        OpenIdPolicy: lambda kit: OpenIdPolicy.of(kit.settings),
        OpenIdLogins: _openid_logins,
        OwnOpenId: _own_openid,
        KnownDevices: lambda kit: KnownDevices(kit.need(KeyRing)),
        FactorLogins: _factor_logins,
        OwnAccount: _own_account,
        OwnAddress: _own_address,
        SecondFactor: lambda kit: SecondFactor(kit.need(KeyRing)),
        Passkeys: lambda kit: Passkeys(RelyingParty.of_url(kit.settings.public_url)),
        SetUp: _set_up,
        LostPasswords: _lost_passwords,
        Invitations: _invitations,
    },
    jobs=_jobs,
    retention=[
        Retention(
            [
                RetentionItem("sessions of people without use", IDLE),
                RetentionItem("sessions of people", LONGEST),
                RetentionItem(
                    "links for setting up, invitations, passwords and addresses, challenges, states of "
                    "logins: after they end",
                    KEPT,
                ),
            ],
            lambda kit: PeopleCollector(kit.pool, kit.clock).periodic(),
        ),
        Retention(
            [
                RetentionItem("the log of acts", AUDIT_RETENTION_DAYS),
                RetentionItem("invitations that nobody accepted", INVITATIONS_KEPT),
            ],
            lambda kit: AuditRetention(kit.pool, kit.clock, kit.settings[AUDIT_RETENTION_DAYS]).periodic(),
        ),
    ],
    background=_background,
    invariants=INVARIANTS,
    sealed=[SEEDS],
    personal_data=PERSONAL_DATA,
)
