"""Errors: what is raised across rooms."""

from __future__ import annotations


class ConfigError(Exception):
    """What the operator can mend; one line that says how."""
