"""The certificate of the TLS listeners: the operator's, or a self-signed one for first runs.

A file that changes is used for the next handshake, without a restart (TLS-07). One that cannot be used is
reported, and the last good one stays.
"""

from __future__ import annotations

import contextlib
import os
import ssl
import uuid
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from pillarbox.kernel.clock import Clock
from pillarbox.kernel.observability.log import get
from pillarbox.kernel.observability.loop_failures import LoopFailures
from pillarbox.kernel.observability.metrics import LEAST, Gauge, Labels
from pillarbox.kernel.settings.settings import ConfigError

log = get("tls")

FOLDER = "tls"
SELF_MADE = "self-made.pem"
LIFETIME = timedelta(days=365)
RENEWED_BEFORE = timedelta(days=30)
WARNED_BEFORE = timedelta(days=14)
EARLIER = timedelta(hours=1)
"""Clocks of clients may be late."""

LONGEST_COMMON_NAME = 64
LOOK_EVERY = 10.0
WARN_EVERY = timedelta(days=1)

VALID = Gauge(
    "pillarbox_tls_certificate_seconds",
    "How long the certificate of the listeners is still valid, by protocol: http, smtp.",
    ("listener",),
    over=LEAST,
)

Stamp = tuple[tuple[int, int, int], ...]


class Certificate:
    """A certificate with its key in files, as a TLS context for servers."""

    def __init__(self, chain: Path, key: Path, clock: Clock) -> None:
        self._chain = chain
        self._key = key
        self._clock = clock
        self._seen = self._stamp()
        self._warned: datetime | None = None
        self.context = server_context(chain, key)
        """For the next handshake."""
        self.expires_at = expiry(chain)

    def refresh(self) -> bool:
        """Look at the files; True when they had changed and are used from now on."""
        self._warn()
        stamp = self._stamp()
        if stamp == self._seen:
            return False
        self._seen = stamp
        try:
            context, expires_at = server_context(self._chain, self._key), expiry(self._chain)
        except (OSError, ValueError) as trouble:
            log.error("tls.certificate_unusable", trouble=type(trouble).__name__)
            return False
        self.context, self.expires_at, self._warned = context, expires_at, None
        log.info("tls.certificate_loaded", expires_at=expires_at.isoformat())
        return True

    @property
    def seconds_left(self) -> float:
        """How long it is still valid; negative once it is not."""
        return (self.expires_at - self._clock.now()).total_seconds()

    async def watch(self) -> None:
        """Look for a renewed certificate regularly, until cancelled."""
        failures = LoopFailures("tls.watch")
        while True:
            await self._clock.sleep(max(LOOK_EVERY, failures.pause))
            await failures.attempt(self._look())

    async def _look(self) -> None:
        self.refresh()

    def _warn(self) -> None:
        now = self._clock.now()
        if self.expires_at - now > WARNED_BEFORE or (self._warned and now - self._warned < WARN_EVERY):
            return
        self._warned = now
        log.warning("tls.certificate_expires", expires_at=self.expires_at.isoformat())

    def _stamp(self) -> Stamp:
        return (_stamp(self._chain), _stamp(self._key))


_watched: dict[Labels, Certificate] = {}


def watch_expiry(listener: str, certificate: Certificate) -> None:
    """Show Prometheus how long this certificate is valid."""
    _watched[(listener,)] = certificate
    VALID.read = lambda: {labels: one.seconds_left for labels, one in _watched.items()}


def server_context(chain: Path, key: Path) -> ssl.SSLContext:
    """Return a context for TLS 1.2 and newer, without compression and renegotiation (TLS-06)."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    # An encrypted key would make OpenSSL ask on the terminal.
    context.load_cert_chain(chain, key, password=_no_password)
    return context


def refuse_unusable(chain: Path, key: Path) -> None:
    """Raise ConfigError where a server cannot show this certificate with this key; the sentence says why."""
    try:
        content, private = chain.read_bytes(), key.read_bytes()
    except OSError as error:
        raise ConfigError(f"--tls-cert or --tls-key cannot be read: {error.strerror}.") from None
    certificates = _certificates(chain, content)
    public = _public_key(key, private)
    matching = [index for index, found in enumerate(certificates) if found.public_key() == public]
    if not matching:
        raise ConfigError(
            f"The key in {key} (--tls-key) is not that of the certificate in {chain} (--tls-cert)."
        )
    if matching[0]:
        raise ConfigError(
            f"The server's own certificate must be the first in {chain} (--tls-cert); it is number "
            f"{matching[0] + 1}."
        )
    try:
        server_context(chain, key)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or str(error)
        raise ConfigError(f"The certificate of --tls-cert cannot be used with its key: {reason}.") from None


def _certificates(chain: Path, content: bytes) -> Sequence[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(content)
    except (ValueError, UnsupportedAlgorithm):
        hint = (
            " but a private key: --tls-cert and --tls-key may be swapped" if b"PRIVATE KEY" in content else ""
        )
        raise ConfigError(f"{chain} (--tls-cert) holds no certificate in PEM form{hint}.") from None


def _public_key(key: Path, content: bytes) -> object:
    """Return the public key of a file with a private one."""
    try:
        return serialization.load_pem_private_key(content, None).public_key()
    except TypeError:
        raise ConfigError(
            f"The private key in {key} (--tls-key) is encrypted; store it without a password."
        ) from None
    except (ValueError, UnsupportedAlgorithm):
        hint = (
            " but a certificate: --tls-cert and --tls-key may be swapped" if b"CERTIFICATE" in content else ""
        )
        raise ConfigError(f"{key} (--tls-key) holds no private key in PEM form{hint}.") from None


def renewing_context(certificate: Certificate) -> ssl.SSLContext:
    """Return a context for a server that keeps the one it was given: each handshake is done with the
    certificate's own context of that moment."""

    def of_the_moment(handshake: ssl.SSLObject | ssl.SSLSocket, _: str | None, __: ssl.SSLContext) -> None:
        handshake.context = certificate.context

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Called for every client, also for one that names no server.
    context.sni_callback = of_the_moment
    return context


def expiry(chain: Path) -> datetime:
    """Return when the first certificate of the file ends."""
    return x509.load_pem_x509_certificate(chain.read_bytes()).not_valid_after_utc


def self_made(data: Path, hostname: str, now: datetime) -> Path:
    """Return a file with key and certificate for this host name, made when there is none that serves.

    Several processes may ask at once: the first that has it written wins, and all use the same.
    """
    path = data / FOLDER / SELF_MADE
    if not _serves(path, hostname, now):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _put(path, _made(hostname, now), unless=lambda: _serves(path, hostname, now))
        log.debug("tls.certificate_made", hostname=hostname)
    return path


def _serves(path: Path, hostname: str, now: datetime) -> bool:
    try:
        found = x509.load_pem_x509_certificate(path.read_bytes())
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (OSError, ValueError, x509.ExtensionNotFound):
        return False
    is_current = found.not_valid_before_utc <= now < found.not_valid_after_utc - RENEWED_BEFORE
    return is_current and hostname in names.get_values_for_type(x509.DNSName)


def _made(hostname: str, now: datetime) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hostname[:LONGEST_COMMON_NAME])])
    names: list[x509.GeneralName] = [x509.DNSName(found) for found in dict.fromkeys((hostname, "localhost"))]
    names += [x509.IPAddress(ip_address(found)) for found in ("127.0.0.1", "::1")]
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - EARLIER)
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return private + made.public_bytes(serialization.Encoding.PEM)


def _put(path: Path, content: bytes, *, unless: Callable[[], bool]) -> None:
    draft = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        try:
            os.link(draft, path)
        except FileExistsError:
            if not unless():
                draft.rename(path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            draft.unlink()


def _stamp(path: Path) -> tuple[int, int, int]:
    try:
        found = path.stat()
    except OSError:
        return (0, 0, 0)
    return (found.st_ino, found.st_size, found.st_mtime_ns)


def _no_password() -> str:
    raise ssl.SSLError("the private key is encrypted")
