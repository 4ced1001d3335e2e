"""Errors: what the operator can mend."""


class ConfigError(Exception):
    """What the operator can mend; one line that says how."""


class CrawlFailedError(Exception):
    """What a crawl cannot go on for, in one line for people; its state is saved."""
