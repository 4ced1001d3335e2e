"""Errors: mistakes that the operator can fix."""


class ConfigError(Exception):
    """A mistake that the operator can fix; one line that says how."""


class OtherFormatError(ConfigError):
    """A crawl's directory that another version of Gossamer made, in a format that this one does not read."""


class CrawlFailedError(Exception):
    """What a crawl cannot go on for, in one line for people; its state is saved."""


class DamagedError(CrawlFailedError):
    """A file of a crawl that is missing, or does not hold what was written: one line that names it, what is affected
    and what to do.
    """


class ComponentFailedError(CrawlFailedError):
    """A component of the operator's failed, and the crawl cannot go on without it. `trace` says where, in lines."""

    def __init__(self, line: str, trace: str) -> None:
        super().__init__(line)
        self.trace = trace
