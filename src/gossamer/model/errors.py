"""Errors: the operator's."""


class ConfigError(Exception):
    """What the operator can mend; one line that says how."""
