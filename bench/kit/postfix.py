"""Postfix as the peer: an instance of its own in a folder, on high ports, with or without OpenDKIM."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from bench.kit import tools
from bench.kit.server import DOMAIN

SESSIONS = 20
BYTES = 4096
SELECTOR = "peer"

MASTER = """\
127.0.0.1:{port} inet n - n - - smtpd
pickup    unix  n - n 60  1 pickup
cleanup   unix  n - n -   0 cleanup
qmgr      unix  n - n 300 1 qmgr
tlsmgr    unix  - - n 1000? 1 tlsmgr
rewrite   unix  - - n -   - trivial-rewrite
bounce    unix  - - n -   0 bounce
defer     unix  - - n -   0 bounce
trace     unix  - - n -   0 bounce
verify    unix  - - n -   1 verify
flush     unix  n - n 1000? 0 flush
proxymap  unix  - - n -   - proxymap
smtp      unix  - - n -   - smtp
relay     unix  - - n -   - smtp
showq     unix  n - n -   - showq
error     unix  - - n -   - error
retry     unix  - - n -   - error
discard   unix  - - n -   - discard
local     unix  - n n -   - local
virtual   unix  - n n -   - virtual
lmtp      unix  - - n -   - lmtp
anvil     unix  - - n -   1 anvil
scache    unix  - - n -   1 scache
postlog   unix-dgram n - n - 1 postlogd
"""

MAIN = """\
compatibility_level = 3.6
queue_directory = {folder}/queue
data_directory = {folder}/state
command_directory = /usr/sbin
daemon_directory = {daemons}
mail_owner = postfix
setgid_group = postdrop
myhostname = mta.{domain}
mydestination =
local_recipient_maps =
alias_maps =
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
mynetworks = 127.0.0.0/8
relayhost = [127.0.0.1]:{relay}
smtp_tls_security_level = none
smtpd_tls_security_level = none
smtpd_recipient_restrictions = permit_mynetworks, reject
maillog_file_prefixes = {folder}
maillog_file = {folder}/maillog
"""

HELD = "smtpd_client_restrictions = check_client_access static:HOLD\n"
SIGNED = "smtpd_milters = unix:{folder}/milter/socket\nmilter_default_action = tempfail\n"

OPENDKIM = """\
Mode s
Syslog no
UMask 000
UserID postfix
Socket local:{folder}/milter/socket
PidFile {folder}/milter/pid
Domain {domain}
Selector {selector}
KeyFile {folder}/milter/key.pem
RequireSafeKeys false
Canonicalization relaxed/relaxed
OversignHeaders From
InternalHosts 127.0.0.1
"""


@dataclass(frozen=True, slots=True)
class Postfix:
    """A running instance. `public_key` is the record's text when mails are signed."""

    folder: Path
    port: int
    public_key: str | None

    def offer(self, mails: int, *, reused: bool = False) -> float:
        """Put mails in with smtp-source; seconds until the last was acknowledged. `reused` keeps its
        connections from mail to mail."""
        command = [tools.program("smtp-source"), "-s", str(SESSIONS), "-m", str(mails), "-l", str(BYTES)]
        command += ["-d"] if reused else []
        command += ["-f", f"news@{DOMAIN}", "-t", "reader@inbox.example", f"127.0.0.1:{self.port}"]
        began = time.monotonic()
        subprocess.run(command, check=True, timeout=1200, stdout=subprocess.DEVNULL)
        return time.monotonic() - began

    @property
    def held(self) -> int:
        """Mails that are kept and not delivered."""
        return sum(len(files) for _, _, files in os.walk(self.folder / "queue" / "hold"))


@contextmanager
def postfix(folder: Path, *, relay: int, held: bool = False, signed: bool = False) -> Iterator[Postfix]:
    """Postfix with its own queue; `held` keeps what comes in, `signed` sends it through OpenDKIM."""
    tools.need("postfix", "smtp-source", *(["opendkim"] if signed else []))
    if os.geteuid() != 0:
        raise tools.Missing("Postfix can only be started by root")
    port = tools.free_port()
    folder.mkdir(mode=0o755)
    folder.parent.chmod(0o755)
    for name, owner in (("queue", "root"), ("state", "postfix"), ("milter", "postfix"), ("etc", "root")):
        (folder / name).mkdir(mode=0o755)
        os.chown(folder / name, pwd.getpwnam(owner).pw_uid, 0)
    settings = MAIN.format(folder=folder, daemons=daemons(), domain=DOMAIN, relay=relay)
    settings += (HELD if held else "") + (SIGNED.format(folder=folder) if signed else "")
    (folder / "etc" / "main.cf").write_text(settings)
    (folder / "etc" / "master.cf").write_text(MASTER.format(port=port))
    if Path("/etc/postfix/dynamicmaps.cf").exists():
        shutil.copy("/etc/postfix/dynamicmaps.cf", folder / "etc")
    if not signed:
        with _running(folder, port):
            yield Postfix(folder, port, None)
        return
    public_key = write_key(folder / "milter" / "key.pem")
    (folder / "milter" / "conf").write_text(OPENDKIM.format(folder=folder, domain=DOMAIN, selector=SELECTOR))
    command = [tools.program("opendkim"), "-f", "-x", str(folder / "milter" / "conf")]
    with tools.child(command, folder / "opendkim.log"):
        tools.wait_for((folder / "milter" / "socket").exists, f"opendkim ({folder / 'opendkim.log'})")
        with _running(folder, port):
            yield Postfix(folder, port, public_key)


@contextmanager
def _running(folder: Path, port: int) -> Iterator[None]:
    command = [tools.program("postfix"), "-c", str(folder / "etc")]
    log = folder / "postfix.log"
    with log.open("wb") as output:
        started = subprocess.run([*command, "start"], stdout=output, stderr=output, timeout=60)
    if started.returncode:
        raise tools.Missing(f"Postfix does not start: {log.read_text(errors='replace').strip()[-300:]}")
    try:
        tools.wait_for(lambda: tools.answers(port), "Postfix")
        yield
    finally:
        with log.open("ab") as output:
            subprocess.run([*command, "stop"], stdout=output, stderr=output, timeout=120)


def daemons() -> str:
    """Where this Postfix has its daemons."""
    output = subprocess.run(
        [tools.program("postconf"), "-d", "-h", "daemon_directory"],
        capture_output=True,
        text=True,
        timeout=20,
    )
    return output.stdout.strip()


def write_key(path: Path) -> str:
    """A fresh RSA-2048 key for OpenDKIM; returns the public half in base64."""
    key = rsa.generate_private_key(65537, 2048)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
    path.chmod(0o600)
    os.chown(path, pwd.getpwnam("postfix").pw_uid, 0)
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return "".join(public.decode().splitlines()[1:-1])
