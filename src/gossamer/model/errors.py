"""Errors: what the operator can mend."""


class ConfigError(Exception):
    """What the operator can mend; one line that says how."""


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
