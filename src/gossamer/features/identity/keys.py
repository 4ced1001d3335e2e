"""Keys: Ed25519 key pairs in one private file, their rotation, and which one signs now.

The file is a JSON Web Key Set (RFC 7517) with the private member `d` (RFC 8037, section 2). A key is named by its
thumbprint (RFC 7638; RFC 8037, appendix A.3), as the Web Bot Auth draft demands of `keyid` and `kid`.
"""

from __future__ import annotations

import base64
import hashlib
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from gossamer.model.decodable import decodable
from gossamer.model.errors import ConfigError
from gossamer.world.files import stamp_of, write_whole
from gossamer.world.inputs import read_input

LOOK_S = 60.0
"""How often a running crawl looks whether its key file has changed."""
LEAD_S = 86_400.0
"""Time from a rotation to the new key's first signature: verifiers may keep an older directory as long."""
OVERLAP_S = 86_400.0
"""How long an old key stays in the directory after its last signature: no signature is valid for longer."""
KEYS_MAX = 16
"""Keys in one file. Verifiers bound the number of keys that they search."""
SEED_BYTES = 32
"""Of a private key of Ed25519 (RFC 8032, section 5.1.5), any of which will do."""


class _Jwk(msgspec.Struct, omit_defaults=True):
    """A private key as the file has it."""

    kty: Literal["OKP"]
    crv: Literal["Ed25519"]
    kid: str
    x: str
    d: str
    nbf: int = 0
    exp: int = 0


@decodable
class _JwkSet(msgspec.Struct):
    keys: list[_Jwk]


class SigningKey:
    """One key pair. Its text form shows the public part alone."""

    def __init__(self, private: bytes, begins_at: int = 0, ends_at: int = 0) -> None:
        """`private` is the seed. Between the two times (Unix seconds, 0 is no bound) the key is valid."""
        # Here alone: crawls that do not sign, and pages about a crawl, do without cryptography.
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415

        self._private = Ed25519PrivateKey.from_private_bytes(private)
        self.sign = self._private.sign
        """Signs bytes: 64 bytes, about 25 µs."""
        self.x = base64url(self._private.public_key().public_bytes_raw())
        self.id = thumbprint(self.x)
        self.begins_at = begins_at
        self.ends_at = ends_at

    def __repr__(self) -> str:
        return f"Key({self.id})"

    def is_listed(self, now: float) -> bool:
        """Return whether the key belongs in the directory."""
        return not self.ends_at or now < self.ends_at

    def ending(self, at: int) -> SigningKey:
        """Return the same key pair, valid until an instant."""
        return SigningKey(self._private.private_bytes_raw(), self.begins_at, at)

    def as_jwk(self) -> _Jwk:
        """Return the private form, for the key file alone."""
        secret = base64url(self._private.private_bytes_raw())
        return _Jwk("OKP", "Ed25519", self.id, self.x, secret, self.begins_at, self.ends_at)


def thumbprint(x: str) -> str:
    """Return the name of an Ed25519 public key: the SHA-256 of its required members in order, as base64url."""
    return base64url(hashlib.sha256(f'{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}'.encode()).digest())


def base64url(data: bytes) -> str:
    """Return base64url without padding (RFC 7515, section 2)."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def new_keys(path: Path, now: float) -> SigningKey:
    """Write a key file with one new key that is valid at once. Raises ConfigError: the file exists, or cannot be
    written.
    """
    if path.exists():
        raise ConfigError(f"{path} exists; `gossamer identity rotate` adds a key to it, or name another file")
    key = _make_key(int(now))
    _write(path, [key])
    return key


def read_keys(path: Path) -> list[SigningKey]:
    """Return the keys of a file, in its order. Raises ConfigError: it is missing, is no key file, or others may read
    it.
    """
    try:
        mode = path.stat().st_mode
        data = read_input(path)
    except OSError as error:
        raise ConfigError(
            f"cannot read the key file {path}: {error.strerror}; `gossamer identity new` makes one"
        ) from None
    if stat.S_IMODE(mode) & 0o077:
        raise ConfigError(f"{path} holds a private key and others may read it; run `chmod 600 {path}`")
    try:
        found = msgspec.json.decode(data, type=_JwkSet).keys
        keys = [SigningKey(base64.urlsafe_b64decode(one.d + "=="), one.nbf, one.exp) for one in found]
    except (ValueError, msgspec.MsgspecError):
        keys = []
        found = []
    if not keys or len(keys) > KEYS_MAX or [key.x for key in keys] != [one.x for one in found]:
        raise ConfigError(f"{path} is no key file; `gossamer identity new` makes one")
    return keys


def rotate_keys(path: Path, now: float, *, at_once: bool = False) -> SigningKey:
    """Add a key to a file and return it. The new key signs after `LEAD_S`, when every verifier can know it.

    The old keys stay in the directory until `OVERLAP_S` after that. Expired keys leave the file. `at_once`, for a key
    that was disclosed: the new key signs now, and the old ones leave the file. Raises ConfigError: as `read_keys`; or
    the new key of an earlier rotation is not valid yet.
    """
    keys = [key for key in read_keys(path) if key.is_listed(now)]
    if at_once:
        key = _make_key(int(now))
        _write(path, [key])
        return key
    if any(key.begins_at > now for key in keys):
        raise ConfigError(f"{path} has a key that begins later; wait until it signs, or use --now")
    key = _make_key(int(now + LEAD_S))
    ends_at = int(now + LEAD_S + OVERLAP_S)
    _write(path, [*(one if one.ends_at else one.ending(ends_at) for one in keys), key])
    return key


def signing_key(keys: Sequence[SigningKey], now: float) -> SigningKey:
    """Return the key that signs now: of those that are valid the one that began last."""
    begun = [key for key in keys if key.begins_at <= now and key.is_listed(now)] or keys
    return max(begun, key=lambda key: key.begins_at)


class KeyFile:
    """The keys of a file that may change while a crawl runs."""

    def __init__(self, path: Path, now: float) -> None:
        """Raises ConfigError: as `read_keys`."""
        self._path = path
        self._stamp = stamp_of(path)
        self._keys = read_keys(path)
        self._look_at = now + LOOK_S
        self._key = signing_key(self._keys, now)

    def key(self, now: float) -> SigningKey:
        """Return the key that signs now. Looks at the file once a minute; one that cannot be read changes nothing."""
        if now >= self._look_at:
            self._look_at = now + LOOK_S
            stamp = stamp_of(self._path)
            if stamp != self._stamp:
                with suppress(ConfigError):  # Out of reach: the keys in memory are still the operator's.
                    self._keys = read_keys(self._path)
                    self._stamp = stamp
            self._key = signing_key(self._keys, now)
        return self._key


def _make_key(begins_at: int) -> SigningKey:
    return SigningKey(os.urandom(SEED_BYTES), begins_at)


def _write(path: Path, keys: Sequence[SigningKey]) -> None:
    data = msgspec.json.format(msgspec.json.encode(_JwkSet([key.as_jwk() for key in keys])), indent=2)
    try:
        write_whole(path, data + b"\n", private=True)
    except OSError as error:
        raise ConfigError(f"cannot write the key file {path}: {error.strerror}; name another file") from None
