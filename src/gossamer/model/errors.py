"""Errors: the only exceptions that people see."""

from __future__ import annotations


class ConfigError(Exception):
    """What the operator can mend; one line that says how."""
