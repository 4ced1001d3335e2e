"""Reference: the page about every key, made from the models so that it cannot drift."""

from __future__ import annotations

from pydantic.fields import FieldInfo

from gossamer.config.flags import FLAGS
from gossamer.config.live import is_live
from gossamer.config.sections import Config, sections
from gossamer.config.toml import summary, written
from gossamer.frontier.options import HostOverride, HostsOptions

HEAD = """\
# Configuration

Made from the models by `make docs`; a test compares it. A crawl takes its values from a TOML file (`--config FILE`),
from options, and from `--set section.key=value`; of two values for one key the later of these holds.
`gossamer config show DIR` prints what a crawl runs with and where each value came from, `gossamer config check FILE`
checks a file, `gossamer init` writes one to begin with, `gossamer config schema` prints the JSON schema.
What is not known is an error that names the line and the nearest right name.

Relative paths in a file begin at the file. Repeatable options replace the file's list.
`--set section.key=none` unsets a key.

What is marked live may change while the crawl runs: `gossamer set DIR section.key=value`, see
[live changes](../how-to/monitoring.md).
"""


TABLE = "| key | default | live | what | option |\n| --- | --- | --- | --- | --- |"
HOSTS = """\
Each key is a host's name as in a URL, its value a table; all of it is live (`gossamer host DIR HOST delay_s=5`):

    [host."example.org"]
    delay_s = 0.2
    per_host = 4
"""


def markdown() -> str:
    """Return `docs/reference/configuration.md`."""
    parts = [HEAD]
    options = {flag.key: f"`--{flag.option}`" for flag in FLAGS if flag.key != "progress.form"}
    schema = Config.model_json_schema()
    for section, model in sections().items():
        parts.append(f"## `[{section}]`\n{summary(model)}\n")
        if model is HostsOptions:
            parts.append(HOSTS)
            model = HostOverride
        parts.append(TABLE)
        properties = schema["$defs"][model.__name__]["properties"]
        for key, field in model.model_fields.items():
            what = (field.description or "").replace("|", "\\|")
            choices, live = _choices(properties[key]), "live" if is_live(f"{section}.{key}") else ""
            option = options.get(f"{section}.{key}", "")
            parts.append(f"| `{key}` | {_default(field)} | {live} | {what}{choices} | {option} |")
        parts.append("")
    return "\n".join(parts)


def _default(field: FieldInfo) -> str:
    default = field.get_default(call_default_factory=True)
    return "" if default is None else f"`{written(default)}`".replace("|", "\\|")


def _choices(schema: dict[str, object]) -> str:
    values = schema.get("enum")
    return f" One of {', '.join(f'`{value}`' for value in values)}." if isinstance(values, list) else ""
