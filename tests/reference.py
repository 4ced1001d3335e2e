"""Write the reference of configuration keys from their declarations: `python -m tests.reference`."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import NODEFAULT

from gossamer.config.flags import FLAGS
from gossamer.config.sections import key_of, sections
from gossamer.config.toml import summary, to_toml
from gossamer.options import DeclaredKey, NamedSection, keys_of, rule_type

PAGE = Path(__file__).parents[1] / "docs/reference/configuration.md"
HEAD = """\
# Configuration

A crawl takes its values from a TOML file (`--config FILE`), from options, and from `--set section.key=value`; later
ones override earlier ones. Repeatable options replace the file's list. Relative paths in a file are relative to its
directory. Times and sizes may have [units](commands.md#units). `--set section.key=none` unsets a key. An unknown key is
an error that names the line and the nearest valid name.

| command | purpose |
| --- | --- |
| `gossamer init` | write a file that explains the most important keys |
| `gossamer config check FILE` | check a file |
| `gossamer config show DIR` | show the values of a crawl, and where each comes from |
| `gossamer config schema` | print the JSON schema |

Keys marked *live* can change while the crawl runs: `gossamer set DIR section.key=value`
([guide](../how-to/monitoring.md#change-keys-of-a-running-crawl)). `make docs` writes this page from the code.

[Expert keys](#expert-keys) are limits, intervals and sizes that crawls rarely need to change.
"""
EXPERT = """\
## Expert keys

Set them like other keys. Their defaults are measured or follow a standard; a crawl rarely needs other values.
"""


TABLE = "| key | default | live | meaning | option |\n| --- | --- | --- | --- | --- |"
HOSTS = """\
Each key is a host's name as in a URL, its value a table; all keys are live (`gossamer host DIR HOST delay_s=5`):

```toml
[host."example.org"]
delay_s = 0.2
per_host = 4
```
"""
REQUESTS = """\
If several rules cover a URL, the most specific one wins, for each value separately: a longer path before a shorter
one, then `example.org`, then `.example.org`. A key without scheme covers http and https, and sends secrets over https
only
([guide](../how-to/login.md)).

```toml
[request."https://example.org/reports/"]
basic = { user = "crawler", password = "env:REPORTS_PASSWORD" }
```
"""
LOGINS = """\
[Behind a login](../how-to/login.md) has examples.
"""
RULES = {"host": HOSTS, "request": REQUESTS, "login": LOGINS}
"""Text of the page for sections whose keys are names."""
EXTRACT = """\
[Items](items.md) lists the keys of each table. For example:

```toml
[extract.book]
urls = ["/catalogue/"]
fields = { title = "h1", price = { css = ".price", type = "number" } }
```
"""


def markdown() -> str:
    """Return the page."""
    return "\n".join([HEAD, *lines_of_sections("##", expert=False), EXPERT, *lines_of_sections("###", expert=True)])


def lines_of_sections(heading: str, *, expert: bool) -> Iterator[str]:
    """Yield each section with its keys for experts, or its other keys."""
    options = {flag.key: f"`--{flag.option}`" for flag in FLAGS if flag.key != "progress.style"}
    for section, model in sections().items():
        about = summary(model)
        if section in RULES and issubclass(model, NamedSection):
            about = f"{about}\n\n{RULES[section]}".rstrip()
            model = rule_type(model)
        if section == "extract" and not expert:
            yield f"{heading} `[{section}]`\n\n{about}\n\n{EXTRACT}"
        fields = {key: field for key, field in keys_of(model).items() if field.key.basic != expert}
        if not fields:
            continue
        yield f"{heading} `[{section}]`" + (" for experts" if expert else f"\n\n{about}") + "\n"
        yield TABLE
        for key, field in fields.items():
            what = field.key.what.replace("|", "\\|")
            what += "." if field.choices and not what.endswith(".") else ""
            choices = f" One of {', '.join(f'`{value}`' for value in field.choices)}." if field.choices else ""
            live = "live" if key_of(f"{section}.{key}").live else ""
            option = options.get(f"{section}.{key}", "")
            yield f"| `{key}` | {default_of(field)} | {live} | {what}{choices} | {option} |"
        yield ""


def default_of(field: DeclaredKey) -> str:
    if field.default is NODEFAULT:
        return "required"
    return "" if field.default is None else f"`{to_toml(field.default)}`".replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(markdown(), encoding="utf-8")
