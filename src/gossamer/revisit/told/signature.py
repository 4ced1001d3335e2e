"""Signature: whether a notification comes from whom we told our secret (WebSub, section 7.1)."""

from __future__ import annotations

import hashlib
import hmac

METHODS = frozenset(("sha1", "sha256", "sha384", "sha512"))


class Check:
    """Takes a body as it comes, in constant memory, and says at its end whether the header signs it."""

    def __init__(self, secret: str, header: str) -> None:
        """`header` is the value of X-Hub-Signature: `method=hex`. Without a secret every body is right."""
        method, _, claimed = header.strip().partition("=")
        method = method.strip().lower()
        self._is_needed = bool(secret)
        self._claimed = claimed.strip().lower().encode("ascii", "replace")
        self._digest = hmac.new(secret.encode(), digestmod=getattr(hashlib, method)) if method in METHODS else None

    def update(self, piece: bytes) -> None:
        """Take the next piece."""
        if self._digest is not None and self._is_needed:
            self._digest.update(piece)

    def is_right(self) -> bool:
        """Compare, in a time that tells nothing."""
        if not self._is_needed:
            return True
        return self._digest is not None and hmac.compare_digest(self._digest.hexdigest().encode(), self._claimed)
