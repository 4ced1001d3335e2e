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

A crawl takes its values from a TOML file (`--config FILE`), from options, and from `--set section.key=value`; later ones
override earlier ones. Repeatable options replace the file's list. Relative paths in a file begin at the file.
`--set section.key=none` unsets a key. An unknown key is an error that names the line and the nearest right name.

| command | purpose |
| --- | --- |
| `gossamer init` | write a file that explains every key |
| `gossamer config check FILE` | check a file |
| `gossamer config show DIR` | show what a crawl runs with, and where each value comes from |
| `gossamer config schema` | print the JSON schema |

Keys marked *live* can change while the crawl runs: `gossamer set DIR section.key=value`
([guide](../how-to/monitoring.md#change-keys-of-a-running-crawl)). `make docs` writes this page from the code.
"""


TABLE = "| key | default | live | what | option |\n| --- | --- | --- | --- | --- |"
HOSTS = """\
Each key is a host's name as in a URL, its value a table; all keys are live (`gossamer host DIR HOST delay_s=5`):

```toml
[host."example.org"]
delay_s = 0.2
per_host = 4
```
"""


def markdown() -> str:
    """Return docs/reference/configuration.md."""
    parts = [HEAD]
    options = {flag.key: f"`--{flag.option}`" for flag in FLAGS if flag.key != "progress.form"}
    schema = Config.model_json_schema()
    for section, model in sections().items():
        parts.append(f"## `[{section}]`\n\n{summary(model)}\n")
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
