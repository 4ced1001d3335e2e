"""Confinement: the files that the process of a crawl may open in a sandbox, and why there is no sandbox."""

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from gossamer.config.gather import CERTIFICATES
from gossamer.config.sections import Config, key_of, keys
from gossamer.model.errors import ConfigError
from gossamer.options import Section, to_table
from gossamer.world.sandbox import Rights, landlock_version

SYSTEM = (
    "/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/nix/store", "/gnu/store", "/proc", "/sys/devices",
    "/sys/fs/cgroup", "/sys/kernel/mm", "/dev/urandom", "/dev/random", "/dev/zero", "/run/systemd/resolve",
    "/run/resolvconf",
)  # fmt: skip
"""Programs, libraries, and facts about the system."""
ETC = (
    "alternatives", "ca-certificates", "chromium", "chromium.d", "crypto-policies", "fonts", "gai.conf", "group",
    "host.conf", "hosts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "locale.alias", "localtime", "machine-id",
    "mime.types", "nsswitch.conf", "passwd", "pki/ca-trust", "pki/tls/certs", "pki/tls/cert.pem", "protocols",
    "resolv.conf", "services", "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf", "timezone",
)  # fmt: skip
"""Names in /etc; others are secrets."""
DEVICES = (os.devnull, "/dev/tty")
CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
STORE_VARIABLES = ("GOOGLE_APPLICATION_CREDENTIALS", "AWS_WEB_IDENTITY_TOKEN_FILE", "AZURE_FEDERATED_TOKEN_FILE")
"""Variables that name files of credentials for object stores."""
STORE_FILES = ("~/.config/gcloud/application_default_credentials.json",)
SNAP = ("/snap/", "/usr/bin/snap")
SPILL = "state/spill"
REFERENCE = "file:"


def why_unconfined(config: Config) -> str:
    """Return why the process of a crawl gets no sandbox although `process.sandbox` is not off; empty: it gets one.
    Raises ConfigError: `process.sandbox` is on, and that is not possible.
    """
    wanted = config.process.sandbox
    if not landlock_version():
        why = "this system has no Landlock (Linux 5.19 or newer, enabled at boot)"
    elif config.cluster.workers > 1:
        why = "the shards of cluster.workers have no sandbox yet"
    elif config.frontier.more_seeds_command:
        why = "frontier.more_seeds_command runs a program of yours"
    elif wanted == "auto" and (name := next(own_components(config), "")):
        why = f"{name} is a component of your own, which may open more"
    elif config.crawl.render != "never" and not _renders_confined(config):
        why = "browsers need another sandbox here, for which a program takes root's rights"
    else:
        return ""
    if wanted == "on":
        raise ConfigError(f'process.sandbox = "on" is not possible: {why}; set it to "auto" or "off"')
    return why


def _renders_confined(config: Config) -> bool:
    """Return whether browsers start in a process that cannot gain rights. snapd, which starts some, must."""
    from gossamer.features.render.browser import probe  # noqa: PLC0415 - most crawls have no browsers

    program = config.render.find_program()
    is_snap = program is not None and os.path.realpath(program).startswith(SNAP)
    return not is_snap and (config.render.unsandboxed or not probe(config.render))


def has_confined_workers(config: Config) -> bool:
    """Return whether processes of modules have no network and write temporary files only, in a sandboxed crawl."""
    return config.process.sandbox == "on" or not any(own_components(config))


def own_components(config: Config) -> Iterator[str]:
    """Yield the names of components that are not ours."""
    process = config.process
    named = [
        *(name for _, name in config.components.entries()), *process.modules,
        *(name for names in process.types.values() for name in names),
        config.revisit.policy if config.crawl.mode == "continuous" else "",
    ]  # fmt: skip
    if any(named):
        from gossamer.features.revisit.policies import POLICIES  # noqa: PLC0415
        from gossamer.stages.process.choice import MODULES  # noqa: PLC0415 - most crawls name none

        yield from (name for name in named if name and name not in MODULES and name not in POLICIES)


def rights_of(config: Config, directory: Path) -> Rights:
    """Return the paths that the process of a crawl in `directory` may open."""
    directory = directory.absolute()
    reads = [*SYSTEM, *(f"/etc/{name}" for name in ETC), *_interpreter()]
    writes = [str(directory), *DEVICES, *_link_targets(str(directory), str(directory / "state"))]
    scratch = [str(directory / SPILL)]
    for key in keys():
        use = key_of(key).path
        if use in ("", "component"):
            continue
        paths = [os.path.abspath(path) for path in _texts(config.value(key))]  # noqa: PTH100 - of no Path is it needed
        if use == "replaced":  # The kernel allows a file, not its path: for a new file its folder must be allowed.
            paths = [str(Path(path).parent) for path in paths]
        allowed = writes if use == "written" else reads
        allowed += paths
    reads += _files_in_rules(config)
    reads += [file for name in own_components(config) if (file := name.rpartition(":")[0]).endswith(".py")]
    reads += [found for name in CERTIFICATE_VARIABLES if (found := os.environ.get(name))]
    stores = [place for place in (config.archive.store, config.state.checkpoint_uri) if place]
    writes += [unquote(urlsplit(place).path) for place in stores if place.startswith("file:")]
    if any(not place.startswith("file:") for place in stores):
        reads += [found for name in STORE_VARIABLES if (found := os.environ.get(name))]
        reads += [str(Path(name).expanduser()) for name in STORE_FILES]
    if config.crawl.render != "never":
        # A browser makes its own sandbox through /proc, and as root runs as a user who cannot enter each directory.
        writes.append("/proc")
        scratch.append(tempfile.gettempdir())
        reads += [str(Path(found).resolve().parent) for found in [config.render.find_program()] if found]
    return Rights(tuple(reads), tuple(writes), tuple(scratch), config.crawl.render != "never")


def _interpreter() -> list[str]:
    """Return the folders of Python and its packages, with targets of links that some installers make."""
    places = [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix, *filter(None, sys.path)]
    return [*dict.fromkeys(places), *_link_targets(*filter(None, sys.path))]


def _link_targets(*folders: str) -> list[str]:
    """Return the targets of links in folders. A confined process makes no links in a crawl's directory."""
    found = []
    for folder in folders:
        if os.path.isdir(folder):  # noqa: PTH112 - of some hundred names, as the system lists them
            found += [os.path.realpath(entry.path) for entry in os.scandir(folder) if entry.is_symlink()]
    return found


def _texts(value: object) -> list[str]:
    match value:
        case str():
            return [value] if value else []
        case tuple() | list():
            return [text for text in value if isinstance(text, str) and text]
    return []


def _files_in_rules(config: Config) -> Iterator[str]:
    values = [config.fetch.proxy, config.proxies.urls, config.fetch.headers, config.request.rules, config.login.rules]
    waiting: list[tuple[str, object]] = [("", value) for value in values]
    while waiting:
        name, value = waiting.pop()
        match value:
            case Section():
                waiting += to_table(value).items()
            case Mapping():
                waiting += ((str(key), one) for key, one in value.items())
            case str() if name in CERTIFICATES and value:
                yield value
            case str() if value.startswith(REFERENCE):
                yield value.removeprefix(REFERENCE)
