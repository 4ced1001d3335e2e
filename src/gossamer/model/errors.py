"""Errors: what the operator can mend."""


class ConfigError(Exception):
    """What the operator can mend; one line that says how."""
