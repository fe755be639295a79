"""An authenticator of passkeys in software: what a browser would answer, and ways to answer wrongly.

The octets are put together from the paragraphs of Web Authentication, not by the library that checks them.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import cbor2
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256

PRESENT, VERIFIED, ATTESTED = 0x01, 0x04, 0x40


def text_of(octets: bytes) -> str:
    return urlsafe_b64encode(octets).rstrip(b"=").decode("ascii")


def octets_of(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass(slots=True)
class PasskeyDevice:
    """One passkey. `options` of its calls are the JSON that a page gives to the browser."""

    origin: str
    id: bytes
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    count: int = 0
    flags: int = PRESENT | VERIFIED
    user: bytes = b""

    def makes(self, options: str, **changed: Any) -> str:
        """Return the answer to `navigator.credentials.create`."""
        wanted = json.loads(options)
        self.user = octets_of(wanted["user"]["id"])
        client = self._client("webauthn.create", wanted["challenge"], changed)
        numbers = self.key.public_key().public_numbers()
        cose = {1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32, "big"), -3: numbers.y.to_bytes(32, "big")}
        data = (
            self._data(changed.get("party", wanted["rp"]["id"]), ATTESTED)
            + bytes(16)
            + len(self.id).to_bytes(2, "big")
            + self.id
            + cbor2.dumps(cose)
        )
        attestation = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})
        return self._answer({"attestationObject": attestation, "clientDataJSON": client}, ["internal"])

    def signs(self, options: str, **changed: Any) -> str:
        """Return the answer to `navigator.credentials.get`."""
        wanted = json.loads(options)
        client = self._client("webauthn.get", wanted["challenge"], changed)
        data = self._data(changed.get("party", wanted["rpId"]), 0)
        signature = self.key.sign(data + sha256(client).digest(), ec.ECDSA(SHA256()))
        answer = {"clientDataJSON": client, "authenticatorData": data, "signature": signature}
        return self._answer({**answer, "userHandle": changed.get("user", self.user)})

    def _client(self, kind: str, challenge: str, changed: dict[str, Any]) -> bytes:
        said = {"type": kind, "challenge": challenge, "origin": self.origin, "crossOrigin": False}
        said.update({name: value for name, value in changed.items() if name in said})
        return json.dumps(said).encode()

    def _data(self, party: str, flags: int) -> bytes:
        if self.count:
            self.count += 1
        return sha256(party.encode()).digest() + bytes((self.flags | flags,)) + self.count.to_bytes(4, "big")

    def _answer(self, response: dict[str, bytes], transports: list[str] | None = None) -> str:
        shown: dict[str, Any] = {name: text_of(octets) for name, octets in response.items()}
        if transports is not None:
            shown["transports"] = transports
        said = {"id": text_of(self.id), "rawId": text_of(self.id), "type": "public-key", "response": shown}
        return json.dumps({**said, "clientExtensionResults": {}})
