"""Requests: what they need on this machine, looked at before anything is started."""

from gossamer.config.sections import Config
from gossamer.stages.fetch.certificates import check_certificate, check_trusted
from gossamer.stages.fetch.credentials import is_reference, proxy_of


def check_requests(config: Config) -> None:
    """Check proxies, and files of certificates. Only the crawl reads what secrets refer to. Raises ConfigError: one is
    no good, or cannot be read.
    """
    rules = config.request.rules
    proxies = {"fetch.proxy": config.fetch.proxy} | {f'request."{at}": proxy': one.proxy for at, one in rules.items()}
    pooled = [(f"proxies.urls.{label}", url) for label, urls in config.proxies.urls.items() for url in urls]
    for key, proxy in (*proxies.items(), *pooled):
        if not is_reference(proxy):
            proxy_of(proxy, key)
    check_trusted(config.fetch)
    for where, rule in rules.items():
        if rule.certificate or rule.certificate_key:
            check_certificate(where, rule.certificate, rule.certificate_key)
