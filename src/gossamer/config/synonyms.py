"""Synonyms: what other crawlers call an option or a key, and what it is here."""

from __future__ import annotations

import re

from gossamer.config.flags import FLAGS

_KEYS = {
    "seeds.file": "input-file i file urls url-file urls-file url-list list seed-file seedfile start-urls from-file",
    "output.directory": "output-dir output-directory out out-dir outdir dir directory directory-prefix P dest path "
    "save-dir collection files-store",
    "limits.max_pages": "limit pages max-urls max-page page-limit pagelimit closespider-pagecount "
    "max-requests-per-crawl max-documents topn",
    "limits.max_time_s": "time-limit timelimit max-duration duration closespider-timeout max-crawl-time",
    "limits.max_bytes": "quota Q size-limit sizelimit max-size max-download-size max-bytes-download",
    "operator.agent": "user-agent useragent agent U A user-agent-string user-agent-suffix ua",
    "operator.contact": "email mail from contact-email operator-contact-url operator-from contact-url",
    "politeness.delay_s_min": "wait w download-delay crawl-delay rate rate-limit requests-per-second rps sleep "
    "page-extra-delay min-delay delay-ms random-wait waitretry fetcher-server-delay autothrottle-start-delay",
    "politeness.per_host": "host-connections connections-per-host max-connection-per-server "
    "concurrent-requests-per-domain concurrent-requests-per-host per-domain threads-per-queue",
    "politeness.preset": "politeness-policy polite",
    "crawl.concurrency": "threads thread jobs j parallel parallelism max-concurrency concurrent "
    "concurrent-requests num-threads connections max-connections c sockets max-toe-threads",
    "scope.depth_max": "depth level l recursion-level depth-limit maxdepth max-hops recursive-depth max-link-hops",
    "scope.scope": "span-hosts H no-parent np scope-type domain-scope same-domain allowed-domains domains-allowed "
    "ext-links stay-on-host restrict",
    "scope.exclude": "reject R reject-regex block blacklist denylist deny filter exclude-regex blockrules "
    "exclude-directories X scope-exclude-rx",
    "scope.include": "accept accept-regex allow allowlist include-regex include-directories I match scope-include-rx",
    "scope.exclude_hosts": "exclude-domains exclude-hosts blocked-domains deny-domains",
    "scope.whitelist_file": "whitelist domain-list allowed-domains-file",
    "scope.hops_max": "max-redirect max-redirs max-redirects redirects redirect-max-times http-redirect-max "
    "follow-redirects location",
    "scope.embeds": "page-requisites p requisites assets resources embedded",
    "scope.media_types": "mime mime-type mimetype media-type content-type content-types accept-mime-types",
    "scope.languages": "language lang languages-allowed",
    "scope.url_bytes_max": "max-url-length urllength-limit url-length",
    "fetch.request_s_max": "timeout T read-timeout download-timeout max-time-per-request page-load-timeout "
    "request-timeout http-timeout fetch-timeout page-timeout navigation-timeout timeout-seconds",
    "fetch.connect_s_max": "connect-timeout connection-timeout",
    "resolve.timeout_s": "dns-timeout resolver-timeout",
    "resolve.servers": "dns-servers dns-server nameserver nameservers resolver",
    "resolve.family": "ipv4 ipv6 inet4-only inet6-only prefer-family 4 6",
    "fetch.proxy": "proxy proxy-server http-proxy https-proxy x proxy-url socks5",
    "fetch.headers": "header headers default-request-headers extra-headers additional-headers custom-header referer",
    "crawl.render": "behaviors headless driver wait-until javascript browser playwright splash",
    "cookies.file": "profile cookies load-cookies cookie-jar save-cookies",
    "request": "cookie b bearer token",
    "fetch.verify_tls": "insecure k no-check-certificate no-verify verify-ssl ssl-verify ignore-https-errors "
    "check-certificate",
    "fetch.ca_bundle": "ca-certificate cacert ca-directory capath ca-bundle",
    "fetch.body_bytes_max": "max-filesize max-file-size maxfilesize download-maxsize content-limit max-body-size "
    "http-content-limit body-limit max-content-length",
    "fetch.http_versions": "http2 http1.1 http-version http1-1",
    "fetch.accept_language": "accept-language",
    "fetch.content_codings": "accept-encoding compression compressed",
    "fetch.logins_file": "netrc netrc-file ftp-user ftp-password",
    "frontier.attempts_max": "tries t retry retries retry-times max-retries retry-count max-request-retries "
    "retry-max max-tries",
    "frontier.retry_s_first": "retry-delay retry-wait retry-delay-seconds",
    "robots.obey": "ignore-robots robots robotstxt-obey robotstxt no-robotstxt obey-robots robots-txt "
    "respect-robots-txt robots-policy",
    "discovery.sitemaps": "sitemap sitemaps use-sitemap usesitemap sitemap-urls",
    "revisit.interval_s_mean": "interval recrawl-interval fetch-interval refresh revisit-interval",
    "archive.warc": "warc delete-after",
    "archive.warc_gzip_level": "compression-level compress gzip",
    "logs.level": "verbose v debug d log-level loglevel L logging logger vv",
    "console.port": "port http-port listen screencastport",
    "memory.budget_bytes": "ram memory-limit max-memory heap mem-limit memusage-limit-mb",
    "cluster.workers": "processes procs shards nodes instances",
    "process.links_max": "max-links links-limit max-outlinks",
    "url.rules": "normalize normalization canonicalize url-normalizers",
}
_SENTENCES = {
    "recursive r follow follow-links crawl": "a crawl always follows links; --scope and --max-depth bound it",
    "continue resume C no-clobber nc checkpoint jobdir save-state overwrite force": "gossamer resume DIR "
    "continues a crawl",
    "format export to output-format O feeds text generatecdx": "gossamer export DIR --to FORMAT -o PATH writes other "
    "formats after the crawl",
    "silent q no-verbose no-progress nolog": "--quiet shows errors only",
    "s": "--quiet shows errors only, and --set section.key=value sets a key",
    "e execute": "--no-robots ignores robots.txt, and --set section.key=value sets a key",
    "n": "-np is --scope prefix here, -nv is --quiet, and gossamer resume DIR fetches no page again",
    "user u password http-user http-password auth http-auth login credentials": """use --set \
'request.https://HOST/={basic = {user = "NAME", password = "env:NAME"}}'""",
    "warc-file warc-cdx combine-warc": "a crawl always writes WARC files, below the directory that --output names",
    "generate-wacz wacz": "gossamer archive URL writes a WACZ package, and gossamer export DIR --to wacz makes one of "
    "any crawl",
    "mirror m N timestamping": "gossamer mirror URL writes files that open without a network; --mode continuous "
    "fetches changed pages again",
    "spider": "gossamer check URL finds broken links",
    "url urls-to-crawl": "URLs are arguments, as in gossamer crawl URL",
    "post-data post-file method": "seeds.requests_file lists requests with method and body",
    "convert-links K backup-converted E adjust-extension html-extension": "gossamer mirror URL writes files that open "
    "without a network",
    "D": "--scope domain follows links within the domains of the seeds; scope.only_hosts lists others",
    "progress show-progress stats": "--json prints progress as JSON lines",
    "background daemon": "use `&`, nohup or a service manager; gossamer status DIR shows the crawl",
    "limit-rate bandwidth bwlimit max-rate throttle": "there is no limit on bytes a second; --concurrency and --delay "
    "slow a crawl down",
}
_COMMANDS = {
    "crawl": "runspider spider run start get download scrape wget",
    "gossamer serve DIR shows archived pages, and gossamer export DIR --to mirror writes files for a browser": "replay "
    "view wayback browse playback",
    "gossamer serve DIR shows a crawl in a browser, gossamer serve --folder FOLDER several": "dashboard ui web gui "
    "server monitor list ls crawls",
    "gossamer check URL finds broken links": "linkcheck links lychee audit lint validate",
    "gossamer init writes a configuration file": "startproject genspider new create",
    "gossamer export DIR --to FORMAT -o PATH writes other formats": "convert dump save parquet csv jsonl wacz chunks "
    "duckdb sqlite",
    "gossamer resume DIR continues a crawl": "continue restart",
    "gossamer report DIR and gossamer status DIR show the figures of a crawl": "statistics info summary show",
    "gossamer forget DIR PATTERN removes pages of a crawl": "delete remove rm purge",
}
COMMANDS = {word: name for name, words in _COMMANDS.items() for word in words.split()}
"""What other programs call a command: a command of ours, or a clause."""
_OWN = {
    "address": "host bind listen ip interface hostname",
    "chunk-tokens": "chunk-size max-tokens tokens chunk-length tokens-max",
    "where": "filter query sql condition",
    "to": "type as form",
}
OWN = {word: f"--{name}" for name, words in _OWN.items() for word in words.split()}
"""Options of commands that set no key."""
_CHECK = {
    "--html, --csv, --json-file, --junit, --sarif and --markdown write files": "format output-format "
    "output-type report F",
    "fragments and links to other sites are checked in any case; --set scope.outlinks=false leaves "
    "these out": "check-extern external include-fragments check-anchors anchors fragments include-external",
    "--exclude RE leaves links out, and --baseline FILE accepts known faults": "accept ignore-url ignore skip "
    "exclude-path no-follow-url exclude-url ignore-urls ignore-status-codes accepted-status-codes",
}
CHECK = {word: sentence for sentence, words in _CHECK.items() for word in words.split()}
"""What checkers of links call an option."""
BY_WORD = {flag.option: flag.key for flag in FLAGS} | {
    word: key for key, words in _KEYS.items() for word in words.split()
}
SENTENCES = {word: sentence for words, sentence in _SENTENCES.items() for word in words.split()}
EXAMPLES = {
    "archive.warc": "archive.warc=false",
    "fetch.headers": """'fetch.headers={X-Name = "value"}'""",
    "request": """'request.https://HOST/={headers = {Cookie = "env:NAME"}}'""",
    "fetch.proxy": "fetch.proxy=env:NAME or fetch.proxy=URL",
    "fetch.verify_tls": "fetch.verify_tls=false",
    "logs.level": "logs.level=debug",
    "operator.agent": "'operator.agent=NAME'",
    "resolve.family": "resolve.family=ipv4",
    "scope.exclude_hosts": """'scope.exclude_hosts=["HOST"]'""",
    "scope.languages": """'scope.languages=["en"]'""",
    "scope.media_types": """'scope.media_types=["text/html"]'""",
    "discovery.sitemaps": "discovery.sitemaps=always",
}
"""How to write values that are more than a number or a word."""
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_OPTIONS = {flag.key: f"--{flag.option}" + (f" {flag.metavar}" if flag.metavar else "") for flag in reversed(FLAGS)}


def equivalent_of(name: str, *, as_option: bool) -> str:
    """Return the equivalent of another program's option or key, as a clause; empty if it is not known.

    `name` is without dashes and section. `as_option`: the clause names an option instead of a key.
    """
    word = name if len(name) == 1 else name.lower().replace("_", "-")
    spaced = name if len(name) == 1 else _HUMP.sub("-", name).lower().replace("_", "-")
    stems = [one.removesuffix(end) for one in (word, spaced) for end in ("", "-s", "-ms", "-max", "-min", "-seconds")]
    for stem in stems:
        if stem in SENTENCES:
            return SENTENCES[stem]
        if stem in BY_WORD:
            key = BY_WORD[stem]
            option = _OPTIONS.get(key)
            if as_option:
                return f"use {option}" if option else f"use --set {EXAMPLES.get(key, f'{key}=VALUE')}"
            return f"the key is {key}"
    return ""
