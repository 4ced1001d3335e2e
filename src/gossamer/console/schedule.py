"""Schedule: at which times a crawl runs again, in the local time of the machine."""

import re
from datetime import datetime, time, timedelta

import msgspec

from gossamer.model.verbs import RefusedError

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
LETTERS_MIN = 3
"""A weekday may be cut to as many letters."""
MONTH_DAY_MAX = 28
"""The last day that every month has."""
FORMS = (
    "'every day at 3:00', 'every Monday at 3', 'every Monday and Thursday at 18:30', 'every weekday at 6' or "
    f"'every month on day 1 at 3' (days 1 to {MONTH_DAY_MAX})"
)
_CLOCK = re.compile(r"([01]?[0-9]|2[0-3])(?::([0-5][0-9]))?(am|pm)?")
_CRON = re.compile(r"([0-5]?[0-9]) ([01]?[0-9]|2[0-3]) [*?] \* ([*?0-7]|[a-z]{3})")
_PLAIN = {"daily": "every day at 3", "weekly": "every Monday at 3", "monthly": "every month on day 1 at 3"}
"""Meanings of single words, named as in cron and systemd."""
_ZONES = frozenset(("utc", "gmt", "z", "cet", "cest"))
_OFTEN = re.compile(r"every\b.*\b(?:second|minute|hour)s?|hourly|@hourly")


class CrawlSchedule(msgspec.Struct, frozen=True):
    """Days and a time of day."""

    weekdays: tuple[int, ...]
    """From 0, Monday; empty: by the day of the month."""
    month_day: int
    at: time

    def next_after(self, now: float) -> float:
        """Return the next time after `now`, both in seconds since 1970.

        A time of day that the change to summer time skips comes an hour later; of one that occurs twice, the first is
        taken.
        """
        day = datetime.fromtimestamp(now).date()  # noqa: DTZ006 - local time is meant
        while True:  # A day of the month is at most 31 days away.
            instant = datetime.combine(day, self.at).timestamp()
            is_on = day.weekday() in self.weekdays or day.day == self.month_day
            if is_on and instant > now:
                return instant
            day += timedelta(days=1)


def read_schedule(text: str) -> CrawlSchedule:
    """Return the schedule that a text such as `every Monday at 3` says. Raises RefusedError: it says none."""
    words = text.lower().replace(",", " ").replace(" am", "am").replace(" pm", "pm").split()
    at = _time_of(words[-1]) if words else None
    if at is not None and words[0] == "every" and words[-2] == "at":
        days = [word for word in words[1:-2] if word != "and"]
        is_monthly = days[:3] == ["month", "on", "day"] and len(days) == 4 and re.fullmatch("[0-9]{1,2}", days[3])
        if is_monthly and 1 <= int(days[3]) <= MONTH_DAY_MAX:
            return CrawlSchedule((), int(days[3]), at)
        weekdays = [number for word in days for number in _weekdays(word)]
        if days and all(_weekdays(word) for word in days):
            return CrawlSchedule(tuple(weekdays), 0, at)
    raise RefusedError(f"{text!r} is no schedule; write {_meant(words)}")


def _meant(words: list[str]) -> str:
    """Return the schedule that was probably meant by one of cron or by a word, else all forms."""
    written = " ".join(words)
    if cron := _CRON.fullmatch(written):
        minute, hour, day = cron.groups()
        names = [WEEKDAYS[int(day) - 1]] if day.isdigit() else [name for name in WEEKDAYS if name.startswith(day)]
        return f"'every {names[0].capitalize() if names else 'day'} at {hour}:{minute:0>2}'"
    if plain := _PLAIN.get("".join(words).removeprefix("@")):
        return f"{plain!r}"
    if words[-1:] and words[-1] in _ZONES:
        return f"the time without {words[-1].upper()}: it is of the server's time zone, which `zone` of the list names"
    often = '; a crawl with crawl.mode = "continuous" fetches changed pages more often than daily'
    return FORMS + (often if _OFTEN.fullmatch(written) else "")


def _time_of(word: str) -> time | None:
    """Return a time of day, such as `18:30`, `6:30pm` or `3`; None for another text."""
    clock = _CLOCK.fullmatch(word)
    if clock is None:
        return None
    hour = int(clock[1])
    if clock[3] is not None:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if clock[3] == "pm" else 0)
    return time(hour, int(clock[2] or 0))


def _weekdays(word: str) -> range | list[int]:
    if word == "day":
        return range(7)
    if word == "weekday":
        return range(5)
    return [number for number, name in enumerate(WEEKDAYS) if len(word) >= LETTERS_MIN and name.startswith(word)]
