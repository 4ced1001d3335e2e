"""Whole answers: what people type in their second hour, and every word of the answer."""

from __future__ import annotations

import gzip

from gossamer.config import Config, effective_toml

SEED = "http://127.0.0.1:9/"
MORE = {
    "page.html": b"",
    "site.wacz": b"",
    "site.warc.gz": b"",
    "packed.wacz": b"",
    "several/one/crawl.toml": effective_toml(Config()).encode(),
    "halfway/crawl.toml": effective_toml(Config()).encode(),
    "halfway/state": b"",
    "site.har": b"{}",
    "wide-be.txt": "http://127.0.0.1/\r\n".encode("utf-16-be"),
    "sheet.xlsx": b"PK\x03\x04\xff",
    "report.pdf": b"%PDF-1.4\n\xff",
    "feed.xml": b'<?xml version="1.0"?>\n<rss version="2.0"><channel/></rss>\n',
    "seeds.yaml": b"seeds:\n  - url: http://127.0.0.1/\n",
    "spider.py": b"import scrapy\n",
    "grouped.toml": b"[politeness]\ndelay_s_min = 1.000,5\n",
    "with-unit.toml": b"[politeness]\ndelay_s_min = 1,5s  # a second and a half\n",
    "packed.txt.gz": gzip.compress(b"example.org/a\n", mtime=0),
    "wide.txt": "http://127.0.0.1/\r\n".encode("utf-16"),
    "windows.txt": b"\xef\xbb\xbfhttp://127.0.0.1/a\r\nhttp//127.0.0.1/b\r\n",
    "scrapy.toml": b'[extract.page.fields]\ntitle = "h1::text"\n',
    "smart.toml": "[operator]\ncontact = \u201cme@example.org\u201d\n".encode(),
    "drive.toml": b'[output]\ndirectory = "C:\\Users\\me"\n',
    "twice.toml": b"[limits]\nmax_pages = 3\nmax_pages = 4\n",
    "headings.toml": b"[limits]\nmax_pages = 3\n[scope]\n[limits]\nmax_bytes = 4\n",
    "null.toml": b"[limits]\nmax_pages = null\n",
    "apart.toml": b"[limits]\nmax_pages = 1'000\n",
    "arabic.toml": "[limits]\nmax_pages = \u0663\n".encode(),
    "point.toml": b"[limits]\nmax_pages = 1.000\n",
    "colon.toml": b"[limits]\nmax_pages: 3\n",
    "quote.toml": b'[seeds]\nurls = ["http://127.0.0.1/", "http://127.0.0.1/b]\n',
    "scrapy.cfg": b"[settings]\ndefault = project.settings\n",
    "two.txt": b"http://127.0.0.1/a http://127.0.0.1/b\n",
    "tables.toml": b"[[limits]]\nmax_pages = 3\n",
    "unclosed.toml": b"[operator]\ncontact = 'you@example.org\n[limits]\nmax_pages = 3\n",
    "list.toml": b'seeds = ["http://127.0.0.1:9/"]\n',
    "slashes.toml": b"// few\n[limits]\nmax_pages = 3\n",
    "comma.toml": b'[scope]\ninclude = ["a" "b"]\n',
    "regex.toml": b'[scope]\ninclude = ["\\d+"]\n',
    "inline.toml": b'fetch = {headers = {X = "1",}}\n',
    "blank.toml": b"[limits]\nmax_pages 3\n",
    "thousand.toml": b"[limits]\nmax_pages = 1,000\n",
    "semicolon.toml": b"[limits]\nmax_pages = 3;\n",
    "json.toml": b'{"limits": {"max_pages": 3}}\n',
    "marked.toml": b"\xef\xbb\xbf[limits]\nmax_page = 3\n",
    "zero.toml": b"[limits]\nmax_pages = 03\n",
    "decimal.toml": b"[politeness]\ndelay_s_min = 1,5\n",
    "dash.toml": "[limits]\nmax_pages = 3 \u2014 few\n".encode(),
    "attr.toml": b'[extract.page.fields]\nlink = "a::attr(href)"\n',
}
LOCAL = ["crawl", SEED, "--allow-private"]
FORMATS = "parquet, jsonl, csv, markdown, cdxj, wacz, pagefiles, mirror, duckdb, sqlite, datasets, chunks or bulk"
ANSWERS = [
    (
        ["archive", SEED, "--max-page", "30"],
        "no option --max-page for gossamer archive; did you mean --max-pages? gossamer archive --help lists them",
    ),
    (
        ["export", "crawled", "--to", "wacz"],
        "missing option '--output' / '-o'; write gossamer export DIR --to FORMAT -o PATH",
    ),
    (["export", "crawled"], "missing option '--to'; write gossamer export DIR --to FORMAT -o PATH"),
    (["export", "--to", "csv", "-o", "x.csv"], "missing argument 'DIR'; write gossamer export DIR --to FORMAT -o PATH"),
    (["export", "crawled", "--to", "a.b", "-o", "x"], f"--to a.b: expected {FORMATS}"),
    (["export", "crawled", "--to", "json", "-o", "x"], f"--to json: expected {FORMATS}; did you mean jsonl?"),
    (["export", "crawled", "--to", "dataset", "-o", "x"], f"--to dataset: expected {FORMATS}; did you mean datasets?"),
    (
        ["export", "crawled", "--to", "warc", "-o", "x"],
        f"--to warc: expected {FORMATS}; the WARC files are in DIR/warc",
    ),
    (
        ["export", "crawled", "--to", "html", "-o", "x"],
        (
            f"--to html: expected {FORMATS}; mirror makes a copy that opens without a network, and gossamer "
            "report DIR --html FILE the report"
        ),
    ),
    (["export", "crawled", "--to", "CSV", "-o", "x"], f"--to CSV: expected {FORMATS}; did you mean csv?"),
    (
        ["export", "crawled", "--to", "csv", "-o", "missing/x.csv"],
        "there is no directory missing; make it, or name another with -o",
    ),
    (
        ["export", "crawled", "--to", "csv", "-o", "crawled"],
        "crawled is the crawl itself, or holds it; name another place with -o",
    ),
    (
        ["export", "crawled", "--to", "csv", "-o", "x.csv", "--table", "link"],
        "no table link: the crawl has pages, links",
    ),
    (["export", "crawled", "--to", "csv", "-o", "x.csv", "--memory", "1"], "--memory: at least 64 MB are needed"),
    (["export", "crawled", "--to"], "option '--to' requires an argument; gossamer export --help says more"),
    (
        ["export", "crawled", "--to", "jsonl", "-o", "x.csv"],
        "-o x.csv: --to jsonl makes another kind of file; write --to csv, or name it x.jsonl",
    ),
    (
        ["export", "crawled", "--to", "sqlite", "-o", "x.sqlite.gz"],
        "-o x.sqlite.gz: sqlite is not compressed by its name, as jsonl, csv and cdxj are; name it x.sqlite",
    ),
    (
        ["export", "crawled", "--to", "parquet", "-o", "x.csv"],
        "-o x.csv: parquet makes a folder of files; name one, such as -o x",
    ),
    (
        ["export", "crawled", "--to", "csv", "-o", "folder/"],
        "-o folder/: csv makes one file; name it, such as -o folder/pages.csv",
    ),
    (["export", "crawled", "--to", "csv", "-o", "x.csv", "--limit", "0"], "--limit 0: expected 1 or more"),
    (["export", "crawled", "--to", "csv", "-o", "-", "--limit", "-3"], "--limit -3: expected 1 or more"),
    (
        ["export", "crawled", "--to", "wacz", "-o", "x", "--limit", "3"],
        "--limit: jsonl and csv of one process can be cut short; leave it out",
    ),
    (["verify", "site.wacz"], "site.wacz is an archive: gossamer import site.wacz -o DIR makes a crawl of it"),
    (["report", "site.warc.gz"], "site.warc.gz is an archive: gossamer import site.warc.gz -o DIR makes a crawl of it"),
    (
        ["verify", "crawled", "--depp"],
        "no option --depp for gossamer verify; did you mean --deep? gossamer verify --help lists them",
    ),
    (
        ["status", "several"],
        (
            "several holds no crawl (it has no crawl.toml); name one in it, such as several/one, or list "
            "all of them: gossamer serve --folder several"
        ),
    ),
    (
        ["serve", "several"],
        (
            "several holds no crawl (it has no crawl.toml); name one in it, such as several/one, or list "
            "all of them: gossamer serve --folder several"
        ),
    ),
    *(
        (
            command,
            (
                "halfway/state is not a directory: put the crawl's own in its place, or restore a checkpoint "
                "(docs/how-to/checkpoints.md)"
            ),
        )
        for command in (
            ["status", "halfway"],
            ["metrics", "halfway"],
            ["pause", "halfway"],
            ["resume", "halfway"],
            ["serve", "--port", "0", "halfway"],
            ["forget", "halfway", "page"],
            ["scale", "halfway", "--workers", "2"],
            ["report", "halfway"],
            ["verify", "halfway"],
        )
    ),
    (["status"], "missing argument 'DIR'; write gossamer status DIR"),
    (["why", "crawled"], "missing argument 'URL'; write gossamer why DIR URL"),
    (
        ["why", "crawled", "./guide.html"],
        "the URL './guide.html' has no scheme; a path cannot be crawled: give an address such as https://example.org/",
    ),
    (["search", "crawled"], 'the query is empty; name words, or a "phrase" in quotes'),
    (["report", "crawled", "--html"], "option '--html' requires an argument; gossamer report --help says more"),
    (["check", SEED, "--fail-on", "none"], "--fail-on none: expected error, warning, notice"),
    (
        ["check", SEED, "--fail-on", "Warning"],
        "--fail-on Warning: expected error, warning, notice; did you mean warning?",
    ),
    *(
        (
            ["check", SEED, "--since", since],
            f"--since {since}: expected the directory of a check; --baseline takes a CSV file",
        )
        for since in ("missing", "yesterday", "2026-01-31")
    ),
    (
        ["check", SEED, "--csv", "missing/f.csv"],
        "there is no directory missing; make it, or name another file than missing/f.csv",
    ),
    (
        ["check", SEED, "--allow-private", "-o", "crawled"],
        "crawled holds a crawl of other seeds or segments; -o DIR starts another",
    ),
    (
        [*LOCAL, "-o", "crawled"],
        "crawled already holds a crawl: gossamer resume crawled continues it, -o DIR starts another",
    ),
    (
        ["archive", SEED, "--allow-private", "-o", "packed"],
        "there is packed.wacz, of an earlier archive; delete or move it, or name another -o DIR",
    ),
    (
        ["archive", SEED, "--allow-private", "-o", "site.wacz"],
        (
            "-o site.wacz: a crawl makes a directory, which gossamer export turns into files; name a "
            "directory with -o DIR, as in -o site"
        ),
    ),
    (
        [*LOCAL, "-o", "items.json"],
        (
            "-o items.json: a crawl makes a directory, which gossamer export turns into files; name a "
            "directory with -o DIR, as in -o items"
        ),
    ),
    (
        ["crawl", SEED, "-o", "--allow-private"],
        "--output or -o has no value before --allow-private; write --output DIR",
    ),
    (["check", SEED, "--html", "--junit"], "--html has no value before --junit; write --html FILE"),
    (["report", "crawl", "--html", "--quiet"], "--html has no value before --quiet; write --html FILE"),
    (["export", "crawl", "--to", "-o", "pages.csv"], "--to has no value before -o; write --to FORMAT"),
    ([*LOCAL, "--exclude", "--max-pages", "3"], "--exclude has no value before --max-pages; write --exclude RE"),
    ([*LOCAL, "-o"], "option '-o' requires an argument; gossamer crawl --help says more"),
    *(
        (
            ["crawl", seed],
            (
                f"the seed '{seed}' has a * in its host; a seed is one address: name that of one host, and visit all "
                "hosts of its domain with --scope domain"
            ),
        )
        for seed in ("*.a.test", "https://*.a.test/x")
    ),
    (
        [*LOCAL, "--include", "*.pdf"],
        (
            "--include: the pattern '*.pdf' is not a regular expression (RE2): no argument for repetition operator: *; "
            "for the glob write '\\\\.pdf$'"
        ),
    ),
    *(
        (
            [*LOCAL, "--exclude", f"/{bare}/{flags}"],
            f"--exclude: the pattern {f'/{bare}/{flags}'!r} matches nothing; leave out the slashes around it: {bare!r}",
        )
        for bare, flags in ((r"\.pdf$", "i"), ("^https://docs", ""))
    ),
    (
        ["report", "crawled", "-o", "x.html"],
        "no option -o for gossamer report; use --html FILE; gossamer report --help lists them",
    ),
    (["crawl", "localhost:8080"], "the seed 'localhost:8080' has no scheme; did you mean http://localhost:8080/ ?"),
    (
        ["crawl", "./site"],
        "the seed './site' has no scheme; a path cannot be crawled: give an address such as https://example.org/",
    ),
    (
        ["crawl", "file:///etc/hostname"],
        (
            "the seed 'file:///etc/hostname' has the scheme 'file'; --set "
            '\'scope.schemes=["http","https","file"]\' has it visited'
        ),
    ),
    (["crawl", "--seeds", "wide.txt"], "HERE/wide.txt is UTF-16; save it as UTF-8"),
    (
        ["crawl", "--seeds", "packed.txt.gz", "--contact", "a@b.example"],
        "HERE/packed.txt.gz line 1: the seed 'example.org/a' has no scheme; did you mean https://example.org/a ?",
    ),
    (
        ["crawl", "--seeds", "windows.txt"],
        "seed http://127.0.0.1/a is at a private address; add --allow-private to visit those",
    ),
    (
        [*LOCAL, "--scope", "Host"],
        "--scope \"Host\": expected 'prefix', 'host', 'domain' or 'any'; did you mean 'host'?",
    ),
    ([*LOCAL, "--max-pages", "1,000"], '--max-pages "1,000": expected a whole number; write 1000'),
    *(
        (
            [*LOCAL, "--set", f"limits.max_pages={typed}"],
            f"--set: limits.max_pages is {shown}, expected a whole number{says}",
        )
        for typed, shown, says in (
            ("1.000", '"1.000"', "; write 1000"),
            ("1 000", '"1 000"', "; write 1000"),
            ("1'000", '"1\'000"', "; write 1000"),
            ("\uff13", '"\\uff13"', "; write 3"),
            ("NaN", '"NaN"', "; write none for no limit"),
            ("1e400", "Infinity", "; write none for no limit"),
        )
    ),
    (
        ["config", "check", "point.toml"],
        'point.toml line 2: limits.max_pages is "1.000", expected a whole number; write 1000',
    ),
    (
        ["config", "check", "apart.toml"],
        (
            "apart.toml is not TOML: expected newline or end of document after a statement (at line 2, column 14); "
            "write max_pages = 1000"
        ),
    ),
    (
        ["config", "check", "arabic.toml"],
        "arabic.toml is not TOML: invalid value (at line 2, column 13); write max_pages = 3",
    ),
    *(
        (["search", "crawled", "word", "--limit", typed], f"--limit {typed}: expected a whole number")
        for typed in ("1.000", "\u0663")
    ),
    (
        [*LOCAL, "--max_pages", "3"],
        "no option --max_pages for gossamer crawl; did you mean --max-pages? gossamer crawl --help lists them",
    ),
    (["runspider", "spider.py"], "no command 'runspider'; did you mean crawl? gossamer --help lists them"),
    (["run", SEED], "no command 'run'; did you mean crawl? gossamer --help lists them"),
    (
        [*LOCAL, "-max-pages", "3"],
        ("no option -max-pages for gossamer crawl; did you mean --max-pages? gossamer crawl --help lists them"),
    ),
    (
        [*LOCAL, "--set", '{"limits":{"max_pages":3}}'],
        '--set {"limits":{"max_pages":3}}: write --set section.key=value',
    ),
    ([*LOCAL, "--set", 'limits={"max_pages":3}'], "--set limits: write --set section.key=value"),
    ([*LOCAL, "--set", "limits.max_pages:3"], "--set limits.max_pages:3: write --set limits.max_pages=3"),
    ([*LOCAL, "--set", "limits.max_pages", "3"], "--set limits.max_pages: write --set limits.max_pages=VALUE"),
    (
        [*LOCAL, "--set", 'scope.include=["/guide/'],
        '--set scope.include: ["/guide/ is not TOML: Unterminated string (at end of document)',
    ),
    (
        [*LOCAL, "--set", "scope.include=/guide/"],
        '--set: scope.include is "/guide/", expected a list, such as ["a", "b"]; write ["/guide/"]',
    ),
    (
        [*LOCAL, "--set", "DOWNLOAD_DELAY=1"],
        "--set DOWNLOAD_DELAY: write --set section.key=value; the key is politeness.delay_s_min",
    ),
    (
        ["--quiet", "crawl", SEED],
        (
            "no option --quiet for gossamer; it follows a command: gossamer crawl http://127.0.0.1:9/ --quiet; "
            "gossamer --help lists them"
        ),
    ),
    (
        ["config", "check", "scrapy.toml"],
        (
            "scrapy.toml: extract.page.fields.title: css: 'h1::text' is not a CSS selector that lexbor "
            'knows; write "h1", which gives the text'
        ),
    ),
    (
        ["config", "check", "attr.toml"],
        (
            "attr.toml: extract.page.fields.link: css: 'a::attr(href)' is not a CSS selector that lexbor "
            'knows; write { css = "a", attribute = "href" }, in Python css("a").attribute("href")'
        ),
    ),
    (
        ["changes", "crawled", "--since", "yesterday"],
        "--since yesterday: expected a time such as 2026-01-31, 2026-01-31T12:00 or 12h (s, m, h, d, w ago)",
    ),
    (["sample", "crawled", "-n", "0"], "--size 0: expected 1 or more"),
    (
        ["import", "missing.warc.gz", "-o", "x"],
        "missing.warc.gz: there is no archive; name a file, folder, glob, list of paths or s3://BUCKET/PATH",
    ),
    (["import", "seeds.txt", "-o", "x"], "seeds.txt is no WARC, ARC, WACZ or HAR file"),
    (
        ["import", "https://e.example/x.warc.gz", "-o", "x"],
        "https://e.example/x.warc.gz is no address of a store (s3://, gs://, az://); download it, and import the file",
    ),
    (["fetch", SEED], "seed http://127.0.0.1:9/ is at a private address; add --allow-private to visit those"),
    # Of Scrapy, wget, curl, lychee, browsertrix and Crawl4AI.
    (
        [*LOCAL, "--cookie", "sid=ok"],
        (
            "no option --cookie for gossamer crawl; --set 'request.https://HOST/={headers = {Cookie = "
            '"env:NAME"}}\' sends cookies, and --cookies FILE reads a file of them; gossamer crawl --help lists them'
        ),
    ),
    (
        [*LOCAL, "-H", "X-Name: value"],
        (
            "no option -H for gossamer crawl; -H of wget is --scope SCOPE here, that of curl --set "
            "'fetch.headers={X-Name = \"value\"}'; gossamer crawl --help lists them"
        ),
    ),
    (
        [*LOCAL, "--logfile", "x.log"],
        "no option --logfile for gossamer crawl; logs are in DIR/logs; gossamer crawl --help lists them",
    ),
    (
        [*LOCAL, "--crawlId", "x"],
        (
            "no option --crawlId for gossamer crawl; the name of a crawl is that of its output directory; "
            "gossamer crawl --help lists them"
        ),
    ),
    (
        [*LOCAL, "--extraHops", "1"],
        (
            "no option --extraHops for gossamer crawl; scope.outlinks requests pages of other sites for their "
            "status alone; gossamer crawl --help lists them"
        ),
    ),
    (
        [*LOCAL, "--proxies", "a,b"],
        (
            "no option --proxies for gossamer crawl; use --set 'proxies.urls={any = [\"http://HOST:PORT\"]}'; "
            "gossamer crawl --help lists them"
        ),
    ),
    (
        [*LOCAL, "--accept-status", "200"],
        (
            "no option --accept-status for gossamer crawl; every status is recorded in the pages table; gossamer "
            "check URL judges links; gossamer crawl --help lists them"
        ),
    ),
    (
        [*LOCAL, "--screenshot"],
        (
            "no option --screenshot for gossamer crawl; use --set 'render.page_records=[\"view\"]' with --render "
            "always; gossamer crawl --help lists them"
        ),
    ),
    (
        [*LOCAL, "--impersonate", "chrome"],
        (
            "no option --impersonate for gossamer crawl; Gossamer imitates no browser and avoids no block; "
            "gossamer crawl --help lists them"
        ),
    ),
    (
        [*LOCAL, "--css-selector", "h1"],
        (
            "no option --css-selector for gossamer crawl; rules in the configuration extract fields: "
            '[extract.NAME.fields] TITLE = "h1"; gossamer crawl --help lists them'
        ),
    ),
    (
        [*LOCAL, "--no-cache"],
        (
            "no option --no-cache for gossamer crawl; a crawl fetches each URL once; gossamer fetch URL and "
            "gossamer shell URL read one page; gossamer crawl --help lists them"
        ),
    ),
    (
        [*LOCAL, "--set", "AUTOTHROTTLE_ENABLED=True"],
        "--set AUTOTHROTTLE_ENABLED: write --set section.key=value; the key is politeness.delay_s_min",
    ),
    (
        [*LOCAL, "--set", 'proxies.urls=["http://p:1"]'],
        '--set: proxies.urls is "[redacted]", expected a section of keys, such as {any = ["http://HOST:PORT"]}',
    ),
    (
        [*LOCAL, "--set", 'proxies.urls.de=["http://p:1"]'],
        "--set: no key proxies.urls.de; names in a table are written at once: 'proxies.urls={de = …}'",
    ),
    (
        [*LOCAL, "--set", "proxies.urls={de=[]}"],
        "--set: proxies: urls: de has no proxy; add one, or leave the label out",
    ),
    (
        [*LOCAL, "--set", "fetch.headers=X-Name: value"],
        '--set: fetch.headers is "[redacted]", expected a section of keys, such as {NAME = "a"}',
    ),
    (
        ["check", SEED, "--exclude-mail"],
        (
            "no option --exclude-mail for gossamer check; addresses of e-mail are not checked; gossamer check "
            "--help lists them"
        ),
    ),
    (
        ["check", SEED, "--base-url", "."],
        (
            "no option --base-url for gossamer check; a check reads over HTTP: serve files first, as with python "
            "-m http.server; gossamer check --help lists them"
        ),
    ),
    (
        ["check", "."],
        "'.' is a directory, not a URL; serve its folder, as with python -m http.server, and give that address",
    ),
    (["crawl", "urls.txt"], "the seed 'urls.txt' has no scheme; to read seeds from a file, write --seeds urls.txt"),
    (["parse", "x"], "no command 'parse'; did you mean shell? gossamer --help lists them"),
    (["bench", "x"], "no command 'bench'; did you mean demo? gossamer --help lists them"),
    (["stats", "x"], "no command 'stats'; did you mean report? gossamer --help lists them"),
    (["kill", "x"], "no command 'kill'; did you mean stop? gossamer --help lists them"),
    (["graph", "x"], "no command 'graph'; did you mean rank? gossamer --help lists them"),
    (["signin", "x"], "no command 'signin'; did you mean login? gossamer --help lists them"),
    (
        ["settings"],
        (
            "no command 'settings'; gossamer config show DIR prints the configuration of a crawl; gossamer "
            "--help lists them"
        ),
    ),
    (
        ["logs", "x"],
        "no command 'logs'; logs are in DIR/logs; gossamer status DIR shows a crawl; gossamer --help lists them",
    ),
    (
        ["log", "x"],
        "no command 'log'; logs are in DIR/logs; gossamer status DIR shows a crawl; gossamer --help lists them",
    ),
    (
        ["diff", "a", "b"],
        (
            "no command 'diff'; gossamer changes DIR lists changed pages; gossamer serve --folder FOLDER "
            "compares two crawls; gossamer --help lists them"
        ),
    ),
    (
        ["sitemap", "x"],
        (
            "no command 'sitemap'; a crawl reads sitemaps itself; --set discovery.sitemaps=always searches for "
            "them; gossamer --help lists them"
        ),
    ),
    (["version"], "no command 'version'; gossamer --version prints it; gossamer --help lists them"),
    (
        ["sql", "x"],
        (
            "no command 'sql'; gossamer search DIR QUERY finds pages; gossamer export DIR --to duckdb -o FILE "
            "takes SQL; gossamer --help lists them"
        ),
    ),
    (
        ["cron"],
        "no command 'cron'; gossamer serve --folder FOLDER runs crawls by a schedule; gossamer --help lists them",
    ),
    (
        ["screenshot", "x"],
        (
            "no command 'screenshot'; a rendered crawl keeps pictures: --render always --set "
            "'render.page_records=[\"view\"]'; gossamer --help lists them"
        ),
    ),
    (
        ["proxy"],
        (
            "no command 'proxy'; --set fetch.proxy=URL has a crawl use a proxy, and --set proxies.urls=… a pool "
            "of them; gossamer --help lists them"
        ),
    ),
    # Of word processors, shells and other systems; of other programs.
    ([*LOCAL, "\u2014max-pages", "3"], "\u2014max-pages begins with a typographic dash; type --max-pages"),
    (["status", "\u2013json"], "\u2013json begins with a typographic dash; type --json"),
    (["resume", "crawled", "\u2212o", "x"], "\u2212o begins with a typographic dash; type -o"),
    (
        ["crawl", "\u201chttp://127.0.0.1:9/\u201d"],
        (
            "the seed '\\u201chttp://127.0.0.1:9/\\u201d' has no scheme; leave the quotation marks out: "
            "http://127.0.0.1:9/"
        ),
    ),
    (
        ["crawl", "'http://127.0.0.1:9/'"],
        ("the seed \"'http://127.0.0.1:9/'\" has no scheme; leave the quotation marks out: http://127.0.0.1:9/"),
    ),
    (
        ["crawl", "<http://127.0.0.1:9/>"],
        ("the seed '<http://127.0.0.1:9/>' has no scheme; leave the quotation marks out: http://127.0.0.1:9/"),
    ),
    (
        ["crawl", "http://127.0.0.1:9/,http://127.0.0.1:9/"],
        (
            "the seed 'http://127.0.0.1:9/,http://127.0.0.1:9/' holds two addresses, with ',' between "
            "them; give them as two"
        ),
    ),
    (
        ["crawl", "http://127.0.0.1:9/ http://127.0.0.1:9/", "--allow-private"],
        (
            "the seed 'http://127.0.0.1:9/ http://127.0.0.1:9/' holds two addresses, with ' ' between "
            "them; give them as two"
        ),
    ),
    (
        ["crawl", "--allow-private", "--seeds", "two.txt"],
        (
            "HERE/two.txt line 1: the seed 'http://127.0.0.1/a http://127.0.0.1/b' holds two "
            "addresses, with ' ' between them; give them as two"
        ),
    ),
    (
        [*LOCAL, "-o", "~/crawl"],
        ('~/crawl: the shell replaces ~ only at the beginning of a word without quotes; write "$HOME/crawl"'),
    ),
    (
        [*LOCAL, "--output=~/crawl"],
        ('--output=~/crawl: the shell replaces ~ only at the beginning of a word without quotes; write "$HOME/crawl"'),
    ),
    (
        ["resume", "~/crawl"],
        ('~/crawl: the shell replaces ~ only at the beginning of a word without quotes; write "$HOME/crawl"'),
    ),
    (
        ["crawl", "--seeds", "~/seeds.txt"],
        ('~/seeds.txt: the shell replaces ~ only at the beginning of a word without quotes; write "$HOME/seeds.txt"'),
    ),
    (
        [*LOCAL, "-o", "$HOME/crawl"],
        (
            "-o $HOME/crawl: $ is replaced by the shell only outside of single quotes; name a "
            "directory of this system with -o DIR, as in -o crawl"
        ),
    ),
    (
        [*LOCAL, "-o", "C:\\crawls\\a"],
        ("-o C:\\crawls\\a: a path of Windows; name a directory of this system with -o DIR, as in -o crawl"),
    ),
    (
        ["crawl", "C:\\site\\index.html"],
        (
            "the seed 'C:\\\\site\\\\index.html' has no scheme; a path cannot be crawled: give an address "
            "such as https://example.org/"
        ),
    ),
    (
        [*LOCAL, "-o", "crawl\r"],
        ("'crawl' has a carriage return after it; save the script with the line ends of Unix (LF)"),
    ),
    (
        ["stop", "crawled\r"],
        ("'crawled' has a carriage return after it; save the script with the line ends of Unix (LF)"),
    ),
    (["crawl", "://127.0.0.1/"], "the seed '://127.0.0.1/' has no scheme; did you mean http://127.0.0.1/ ?"),
    (
        [*LOCAL, ">"],
        (
            "the seed '>' has no scheme; this is for a shell, and was not read by one: leave it out, "
            "or write it without quotation marks"
        ),
    ),
    (
        [*LOCAL, "&&"],
        (
            "the seed '&&' has no scheme; this is for a shell, and was not read by one: leave it out, "
            "or write it without quotation marks"
        ),
    ),
    (
        [*LOCAL, " --quiet"],
        (
            "the seed '--quiet' has no scheme; write options as words of their own, and filters as "
            "--include RE and --exclude RE; give an address such as https://example.org/"
        ),
    ),
    (
        ["crawl", "+*.pdf"],
        (
            "the seed '+*.pdf' has no scheme; write options as words of their own, and filters as "
            "--include RE and --exclude RE; give an address such as https://example.org/"
        ),
    ),
    (
        [*LOCAL, "--include", "(?!x)a"],
        (
            "--include: the pattern '(?!x)a' is not a regular expression (RE2): invalid perl "
            "operator: (?!; RE2 looks neither ahead nor back: leave pages out with a pattern to "
            "exclude"
        ),
    ),
    (
        [*LOCAL, "--max-time", "forever"],
        (
            '--max-time "forever": expected a number of seconds, or a time with its unit, such as '
            "500ms, 90s or 1h30m; leave it out for no limit"
        ),
    ),
    ([*LOCAL, "--max-pages", "\u22123"], '--max-pages "\\u22123": expected a whole number; leave it out for no limit'),
    ([*LOCAL, "--max-pages", "\u201c3\u201d"], '--max-pages "\\u201c3\\u201d": expected a whole number; write 3'),
    (
        [*LOCAL, "--delay", "1,5"],
        (
            '--delay "1,5": expected a number of seconds, or a time with its unit, such as 500ms, 90s or 1h30m; '
            "write 1.5"
        ),
    ),
    (
        [*LOCAL, "--set", "scope.languages=en, de"],
        '--set: scope.languages is "en, de", expected a list, such as ["a", "b"]; write ["en", "de"]',
    ),
    (
        ["config", "check", "zero.toml"],
        (
            "zero.toml is not TOML: expected newline or end of document after a statement (at line 2, column 14); "
            "write max_pages = 3"
        ),
    ),
    (
        ["config", "check", "decimal.toml"],
        (
            "decimal.toml is not TOML: expected newline or end of document after a statement (at line 2, column 16); "
            "write delay_s_min = 1.5"
        ),
    ),
    (
        ["config", "check", "dash.toml"],
        (
            "dash.toml is not TOML: expected newline or end of document after a statement (at line 2, column 15); "
            "a comment begins with #"
        ),
    ),
    (
        ["crawl", "--seeds", "https://example.org/urls.txt"],
        (
            "cannot read seeds from HERE/https:/example.org/urls.txt: No such file or directory; save what is at the "
            "address, and name that file"
        ),
    ),
    (
        ["serve", "crawled", "-p", "80"],
        "no option -p for gossamer serve; use --port N; gossamer serve --help lists them",
    ),
    ([*LOCAL, "--max-pages", "0"], "--max-pages 0: expected 1 or more; leave it out for no limit"),
    (
        [*LOCAL, "--max-bytes", "unlimited"],
        (
            '--max-bytes "unlimited": expected a whole number of bytes, or one with its unit, such as '
            "512MiB or 4GiB; leave it out for no limit"
        ),
    ),
    (
        [*LOCAL, "--serve", "0.0.0.0:8000"],
        (
            "--serve 0.0.0.0:8000: expected a port, as in --serve 8000; --set console.address=IP "
            "listens on another address than 127.0.0.1"
        ),
    ),
    (
        ["config", "check", "smart.toml"],
        ('smart.toml is not TOML: invalid value (at line 2, column 11); write contact = "me@example.org"'),
    ),
    (
        ["config", "check", "drive.toml"],
        ("drive.toml is not TOML: invalid hex value (at line 2, column 18); write directory = 'C:\\Users\\me'"),
    ),
    (
        ["config", "check", "twice.toml"],
        ("twice.toml is not TOML: a key is there twice (at line 3, column 14); remove one of its lines"),
    ),
    (
        ["config", "check", "headings.toml"],
        ("headings.toml is not TOML: [limits] is there twice (at line 4, column 8); write its keys below one heading"),
    ),
    (
        ["config", "check", "null.toml"],
        ("null.toml is not TOML: invalid value (at line 2, column 13); leave max_pages out for its default"),
    ),
    (
        ["config", "check", "colon.toml"],
        (
            "colon.toml is not TOML: expected '=' after a key in a key/value pair (at line 2, column "
            "10); write max_pages = 3"
        ),
    ),
    (
        ["config", "check", "quote.toml"],
        ("quote.toml is not TOML: illegal character '\\n' (at line 2, column 50); close the quotation mark"),
    ),
    (
        ["config", "check", "scrapy.cfg"],
        "scrapy.cfg is not TOML, as configurations are; gossamer init writes an example",
    ),
    ([*LOCAL, "--set", "robots.obey=no"], '--set: robots.obey is "no", expected true or false; write false'),
    ([*LOCAL, "--set", "robots.obey=False"], '--set: robots.obey is "False", expected true or false; write false'),
    (["resume", ""], "a path is empty, as that of a variable that is not set; name a file or directory"),
    (["resume", SEED], ("http://127.0.0.1:9/ is an address, and a path of this machine is expected")),
    (
        ["config", "check", "https://example.org/x.toml"],
        ("https://example.org/x.toml is an address, and a path of this machine is expected"),
    ),
    (
        ["why", SEED, "crawled"],
        ("http://127.0.0.1:9/ is an address, and a path of this machine is expected; write gossamer why DIR URL"),
    ),
    (["serve", "8000"], "no directory 8000; for a port write gossamer serve --port 8000"),
    (["serve", "crawled", "8000"], ("8000: a port is given by an option; write gossamer serve DIR --port 8000")),
    (
        ["crawl", "ftp//files.example.org/"],
        ("the seed 'ftp//files.example.org/' has no scheme; did you mean ftp://files.example.org/ ?"),
    ),
    (["resume", "crawled/crawl.toml"], "crawled/crawl.toml is a part of a crawl; name the whole: crawled"),
    (["status", "crawled/state"], "crawled/state is a part of a crawl; name the whole: crawled"),
    (["export", "crawled", "--to", "excel", "-o", "x"], f"--to excel: expected {FORMATS}; csv opens in spreadsheets"),
    (
        ["export", "crawled", "--to", "huggingface", "-o", "x"],
        f"--to huggingface: expected {FORMATS}; datasets has the form of a data set of the Hub",
    ),
    (["--hepl"], "no option --hepl for gossamer; did you mean --help? gossamer --help lists them"),
    (["-help"], "no option -help for gossamer; did you mean --help? gossamer --help lists them"),
    (
        ["crawl", "--halp"],
        ("no option --halp for gossamer crawl; did you mean --help? gossamer crawl --help lists them"),
    ),
    (
        ["report", "crawled", "--csv", "x"],
        (
            "no option --csv for gossamer report; gossamer export DIR --to csv -o PATH writes the tables, and --json "
            "prints the figures; gossamer report --help lists them"
        ),
    ),
    (
        ["status", "crawled", "-q"],
        (
            "no option -q for gossamer status; exit status 0 says that it could be read; --json has the state; "
            "gossamer status --help lists them"
        ),
    ),
    (
        ["serve", "crawled", "-q"],
        "no option -q for gossamer serve; requests are not logged; a proxy does that; gossamer serve --help lists them",
    ),
    (
        ["crawl", "-A", "pdf", SEED],
        (
            "no option -A for gossamer crawl; -A of wget is --include RE here, that of curl --set "
            "'operator.agent=NAME'; gossamer crawl --help lists them"
        ),
    ),
    (
        ["crawl", "-X", "POST", SEED],
        (
            "no option -X for gossamer crawl; -X of wget is --exclude RE here; seeds.requests_file "
            "lists requests with method and body, as -X of curl sends; gossamer crawl --help lists "
            "them"
        ),
    ),
    (
        ["crawl", "-d", "a=b", SEED],
        (
            "no option -d for gossamer crawl; -d of wget is --set logs.level=debug here; "
            "seeds.requests_file lists requests with method and body; gossamer crawl --help lists "
            "them"
        ),
    ),
    (
        ["crawl", "-L", SEED],
        (
            "no option -L for gossamer crawl; redirects are always followed; -L of Scrapy is "
            "--set logs.level=debug here; gossamer crawl --help lists them"
        ),
    ),
    (
        ["crawl", "-a", "x=y", SEED],
        (
            "no option -a for gossamer crawl; --set section.key=value sets any key; a spider has no "
            "arguments here; gossamer crawl --help lists them"
        ),
    ),
    (
        ["crawl", "--healthCheckPort", "1", SEED],
        (
            "no option --healthCheckPort for gossamer crawl; gossamer status DIR shows the state of a "
            "crawl; --serve has /metrics too; gossamer crawl --help lists them"
        ),
    ),
    (
        ["crawl", "--diskUtilization", "90", SEED],
        (
            "no option --diskUtilization for gossamer crawl; watch.disk_free_bytes_min pauses a crawl "
            "before its disk is full; gossamer crawl --help lists them"
        ),
    ),
    (
        ["crawl", "--blockAds", SEED],
        (
            "no option --blockAds for gossamer crawl; scope.exclude leaves addresses out, such as "
            "those of advertisements; gossamer crawl --help lists them"
        ),
    ),
    (
        ["crawl", "--pidfile", "x", SEED],
        (
            "no option --pidfile for gossamer crawl; gossamer stop DIR ends a crawl without its "
            "process id; gossamer crawl --help lists them"
        ),
    ),
    (
        ["crawl", "--ext-depth=2", SEED],
        (
            "no option --ext-depth for gossamer crawl; scope.outlinks requests pages of other sites "
            "for their status alone; gossamer crawl --help lists them"
        ),
    ),
    (
        ["check", SEED, "--no-warnings"],
        (
            "no option --no-warnings for gossamer check; --fail-on error leaves warnings out of the "
            "exit status; gossamer check --help lists them"
        ),
    ),
    (
        ["check", SEED, "--require-https"],
        (
            "no option --require-https for gossamer check; links from https to http are always "
            "faults; gossamer check --help lists them"
        ),
    ),
    (
        ["check", SEED, "--dump"],
        (
            "no option --dump for gossamer check; --csv FILE lists the faults, and the tables of the "
            "crawl all links; gossamer check --help lists them"
        ),
    ),
    (
        ["check", SEED, "--suggest"],
        (
            "no option --suggest for gossamer check; gossamer changes DIR and gossamer search DIR "
            "QUERY find earlier pages; gossamer check --help lists them"
        ),
    ),
    (
        ["check", SEED, "--github-token", "x"],
        (
            "no option --github-token for gossamer check; links of GitHub are requested as all others "
            "are; gossamer check --help lists them"
        ),
    ),
    (
        ["-r", SEED],
        (
            f"no option -r for gossamer; options follow a command: gossamer crawl {SEED} [OPTIONS]; gossamer "
            "--help lists them"
        ),
    ),
    (
        ["--depth", "3", SEED],
        (
            f"no option --depth for gossamer; options follow a command: gossamer crawl {SEED} [OPTIONS]; "
            "gossamer --help lists them"
        ),
    ),
    (
        ["-l", "2", "example.org/x"],
        (
            "no option -l for gossamer; options follow a command: gossamer crawl example.org/x [OPTIONS]; "
            "gossamer --help lists them"
        ),
    ),
    (
        ["crawl", SEED, "--head"],
        (
            "no option --head for gossamer crawl; gossamer fetch URL --headers shows them; a crawl requests "
            "whole pages; gossamer crawl --help lists them"
        ),
    ),
    (
        ["crawl", SEED, "-I"],
        (
            "no option -I for gossamer crawl; gossamer fetch URL --headers shows them; a crawl requests "
            "whole pages; gossamer crawl --help lists them"
        ),
    ),
    (
        ["crawl", SEED, "--data", "a=1"],
        (
            "no option --data for gossamer crawl; seeds.requests_file lists requests with method and body; "
            "gossamer crawl --help lists them"
        ),
    ),
    (
        ["crawl", SEED, "--location"],
        (
            "no option --location for gossamer crawl; redirects are always followed; scope.hops_max "
            "bounds them; gossamer crawl --help lists them"
        ),
    ),
    (
        ["check", SEED, "--exclude-loopback"],
        (
            "no option --exclude-loopback for gossamer check; --allow-private checks addresses of this "
            "machine and its network; gossamer check --help lists them"
        ),
    ),
    (
        ["check", SEED, "-f", "json"],
        (
            "no option -f for gossamer check; --html, --csv, --json-file, --junit, --sarif and --markdown "
            "write files; gossamer check --help lists them"
        ),
    ),
    (
        ["check", SEED, "--skip-tls-verification"],
        (
            "no option --skip-tls-verification for gossamer check; use --set fetch.verify_tls=false; "
            "gossamer check --help lists them"
        ),
    ),
    (
        ["check", SEED, "--exclude-external"],
        (
            "no option --exclude-external for gossamer check; links to other sites are always checked; "
            "--set scope.outlinks=false leaves them out; gossamer check --help lists them"
        ),
    ),
    (
        ["check", SEED, "--allow-private", "-o", "report.html"],
        (
            "-o report.html: a crawl makes a directory, and --html, --csv, --json-file, --junit, --sarif and "
            "--markdown name files; name a directory with -o DIR, as in -o report"
        ),
    ),
    (
        ["crawl", SEED, "--allow-private", "-o", "out.jsonl:jsonlines"],
        (
            "-o out.jsonl:jsonlines: a crawl makes a directory, which gossamer export turns into files; name a "
            "directory with -o DIR, as in -o out"
        ),
    ),
    (["crawl", "-"], "the seed '-' has no scheme; to read seeds from standard input, write --seeds -"),
    (["crawl", "@urls.txt"], "the seed '@urls.txt' has no scheme; to read seeds from a file, write --seeds urls.txt"),
    (
        ["check", "page.html"],
        ("'page.html' is a file, not a URL; serve its folder, as with python -m http.server, and give that address"),
    ),
    (
        ["crawl", SEED, "--allow-private", "--max-depth=-1"],
        "--max-depth -1: expected 0 or more; leave it out for no limit",
    ),
    (
        ["crawl", SEED, "--format", "csv"],
        (
            "no option --format for gossamer crawl; gossamer export DIR --to FORMAT -o PATH writes other "
            "formats after the crawl; gossamer crawl --help lists them"
        ),
    ),
    (
        ["crawl", SEED, "-k"],
        ("no option -k for gossamer crawl; use --set fetch.verify_tls=false; gossamer crawl --help lists them"),
    ),
    (
        ["crawl", SEED, "-np"],
        (
            "no option -n for gossamer crawl; -np is --scope prefix here, -nv is --quiet, and gossamer "
            "resume DIR fetches no page again; gossamer crawl --help lists them"
        ),
    ),
    (
        ["crawl", SEED, "--limit-rate=20k"],
        (
            "no option --limit-rate for gossamer crawl; there is no limit on bytes a second; --concurrency "
            "and --delay slow a crawl down; gossamer crawl --help lists them"
        ),
    ),
    # Of curl, wget, lychee, muffet, linkchecker and shells; copied from texts.
    (
        ["crawl", "http://127.0.0.1:9/{a,b}", "--allow-private"],
        (
            "the seed 'http://127.0.0.1:9/{a,b}' is one address, and {a,b} stands for several in curl and "
            "shells: give each of them, or write %7Ba%2Cb%7D for a literal one"
        ),
    ),
    (
        ["crawl", "http://127.0.0.1:9/?page=[1-10]", "--allow-private"],
        (
            "the seed 'http://127.0.0.1:9/?page=[1-10]' is one address, and [1-10] stands for several in curl"
            " and shells: give each of them, or write %5B1-10%5D for a literal one"
        ),
    ),
    (
        ["crawl", "http://127.0.0.1:9/{1..10}.html", "--allow-private"],
        (
            "the seed 'http://127.0.0.1:9/{1..10}.html' is one address, and {1..10} stands for several in "
            "curl and shells: give each of them, or write %7B1..10%7D for a literal one"
        ),
    ),
    (
        ["crawl", "http://127.0.0.1:9/*", "--allow-private"],
        (
            "the seed 'http://127.0.0.1:9/*' is one address, and the pages that it links to are found: leave "
            "the * out, or write %2A for a literal one"
        ),
    ),
    (
        ["check", "README.md"],
        (
            "the seed 'README.md' has no scheme; there is no such file; for a page give its whole address, "
            "and for a host https://readme.md/"
        ),
    ),
    (
        ["check", "sitemap.xml"],
        (
            "the seed 'sitemap.xml' has no scheme; there is no such file; for a page give its whole address, "
            "and for a host https://sitemap.xml/"
        ),
    ),
    (
        ["check", "docs.rs"],
        (
            "the seed 'docs.rs' has no scheme; there is no such file; for a page give its whole address, and "
            "for a host https://docs.rs/"
        ),
    ),
    (
        ["check", "several"],
        ("'several' is a directory, not a URL; serve its folder, as with python -m http.server, and give that address"),
    ),
    (
        ["crawl", "http://127.0.0.1:9/a,", "--allow-private"],
        (
            "the seed 'http://127.0.0.1:9/a,' is one address, and , at its end is often of the text around "
            "it: leave it out, or write %2C for a literal one"
        ),
    ),
    (
        ["crawl", "http://127.0.0.1:9/a).", "--allow-private"],
        (
            "the seed 'http://127.0.0.1:9/a).' is one address, and ) at its end is often of the text around "
            "it: leave it out, or write %29 for a literal one"
        ),
    ),
    (
        ["crawl", "http://127.0.0.1:9/?a=1&amp;b=2", "--allow-private"],
        (
            "the seed 'http://127.0.0.1:9/?a=1&amp;b=2' is one address, and &amp; is an & in the source of a "
            "page: write that, or write %26amp%3B for a literal one"
        ),
    ),
    (
        ["crawl", "[site](http://127.0.0.1:9/)"],
        "the seed '[site](http://127.0.0.1:9/)' has no scheme; did you mean http://127.0.0.1:9/ ?",
    ),
    (
        ["crawl", "view-source:http://127.0.0.1:9/"],
        ("the seed 'view-source:http://127.0.0.1:9/' has the scheme 'view-source'; did you mean http://127.0.0.1:9/ ?"),
    ),
    (
        ["crawl", "hxxp://127.0.0.1:9/"],
        "the seed 'hxxp://127.0.0.1:9/' has the scheme 'hxxp'; did you mean http://127.0.0.1:9/ ?",
    ),
    (
        ["crawl", "http%3A%2F%2F127.0.0.1%3A9%2F"],
        "the seed 'http%3A%2F%2F127.0.0.1%3A9%2F' has no scheme; did you mean http://127.0.0.1:9/ ?",
    ),
    (
        ["crawl", "$URL"],
        (
            "the seed '$URL' has no scheme; this is for a shell, and was not read by one: leave it out, or "
            "write it without quotation marks"
        ),
    ),
    (
        ["crawl", "me@example.org"],
        ("the seed 'me@example.org' has no scheme; an address of e-mail says who you are: --contact me@example.org"),
    ),
    (
        ["crawl", "C:/site/index.html"],
        (
            "the seed 'C:/site/index.html' has no scheme; a path cannot be crawled: give an address such as "
            "https://example.org/"
        ),
    ),
    (
        ["crawl", "quotes"],
        (
            "the seed 'quotes' has no scheme; give an address such as https://example.org/, and for a host of"
            " your network https://quotes/"
        ),
    ),
    (
        ["crawl", "docs/"],
        (
            "the seed 'docs/' has no scheme; give an address such as https://example.org/, and for a host of "
            "your network https://docs/"
        ),
    ),
    (
        [*LOCAL, "--set", "limits.max_pages=3", "limits.max_bytes=9"],
        (
            "the seed 'limits.max_bytes=9' has no scheme; a key is set by --set, which takes one: --set "
            "limits.max_bytes=9"
        ),
    ),
    (
        [*LOCAL, "--", "--max-pages", "3"],
        "--max-pages stands behind --, where every word is an argument; write options before it",
    ),
    (
        [*LOCAL, "--max-pages\xa03"],
        "'--max-pages\\xa03' has a no-break space, as texts of the web do; type a space in its place",
    ),
    ([*LOCAL, "--max-pages", "1.000"], '--max-pages "1.000": expected a whole number; write 1000'),
    (
        [*LOCAL, "-o", "-"],
        "-o -: a crawl is more than one file; name a directory of this system with -o DIR, as in -o crawl",
    ),
    (
        [*LOCAL, "-F", "a=b"],
        (
            "no option -F for gossamer crawl; forms are sent by [login.NAME] and by seeds.requests_file, as "
            "-F of curl does; gossamer crawl --help lists them"
        ),
    ),
    (
        [*LOCAL, "-fsSL"],
        (
            "no option -f for gossamer crawl; a failed request is a row of the table pages; exit status 3 "
            "says that no seed could be fetched; gossamer crawl --help lists them"
        ),
    ),
    (
        [*LOCAL, "-w", "2"],
        (
            "no option -w for gossamer crawl; -w of wget is --delay S here, that of curl gossamer fetch URL "
            "--headers; gossamer crawl --help lists them"
        ),
    ),
    (
        [*LOCAL, "-b", "cookies.txt"],
        (
            "no option -b for gossamer crawl; --set 'request.https://HOST/={headers = {Cookie = \"env:NAME\"}}'"
            " sends cookies, and --cookies FILE reads a file of them; gossamer crawl --help lists them"
        ),
    ),
    (
        [*LOCAL, "-K", "x"],
        (
            "no option -K for gossamer crawl; options can be in a TOML file: gossamer crawl -c FILE; -K "
            "of wget is gossamer mirror URL here; gossamer crawl --help lists them"
        ),
    ),
    (
        [*LOCAL, "--no-cookies"],
        (
            "no option --no-cookies for gossamer crawl; cookies of servers are dropped unless --set "
            "cookies.enabled=true; gossamer crawl --help lists them"
        ),
    ),
    (
        [*LOCAL, "--http2"],
        ("no option --http2 for gossamer crawl; use --set fetch.http_versions=1.1; gossamer crawl --help lists them"),
    ),
    (
        [*LOCAL, "--buffer-size", "8"],
        ("no option --buffer-size for gossamer crawl; buffers are part of --memory; gossamer crawl --help lists them"),
    ),
    (
        [*LOCAL, "--dry-run"],
        (
            "no option --dry-run for gossamer crawl; a crawl with --max-pages 10 tries its settings, and "
            "gossamer config show DIR prints them; gossamer crawl --help lists them"
        ),
    ),
    (
        [*LOCAL, "--bfs"],
        (
            "no option --bfs for gossamer crawl; --set frontier.priority=NAME chooses the order: "
            "breadth_first, best_first, in_links; gossamer crawl --help lists them"
        ),
    ),
    (
        [*LOCAL, "--subdomains"],
        (
            "no option --subdomains for gossamer crawl; --scope domain visits subdomains too; gossamer crawl "
            "--help lists them"
        ),
    ),
    ([*LOCAL, "-V"], "no option -V for gossamer crawl; gossamer --version prints it; gossamer crawl --help lists them"),
    (
        [*LOCAL, "-*"],
        (
            "no option -* for gossamer crawl; filters are regular expressions: --include RE and --exclude RE;"
            " gossamer crawl --help lists them"
        ),
    ),
    (
        ["check", SEED, "--buffer-size", "8192"],
        ("no option --buffer-size for gossamer check; buffers are part of --memory; gossamer check --help lists them"),
    ),
    (
        ["check", SEED, "--ro"],
        (
            "no option --ro for gossamer check; --max-depth 1 checks the seeds and what they link to; gossamer "
            "check --help lists them"
        ),
    ),
    (
        ["check", SEED, "--filter-level", "3"],
        (
            "no option --filter-level for gossamer check; --fail-on SEVERITY says from which on the exit "
            "status is 1; gossamer check --help lists them"
        ),
    ),
    (
        ["check", SEED, "--skip-external"],
        (
            "no option --skip-external for gossamer check; --set scope.outlinks=false leaves links to other "
            "sites out; gossamer check --help lists them"
        ),
    ),
    (
        ["check", SEED, "--index-files", "index.html"],
        (
            "no option --index-files for gossamer check; a check reads over HTTP: serve files first, as with "
            "python -m http.server; gossamer check --help lists them"
        ),
    ),
    (
        ["check", SEED, "--github-actions"],
        (
            'no option --github-actions for gossamer check; --markdown "$GITHUB_STEP_SUMMARY" and --sarif '
            "FILE are for GitHub; gossamer check --help lists them"
        ),
    ),
    (
        ["check", SEED, "-X", "GET"],
        (
            "no option -X for gossamer check; a check requests whole pages, for their fragments; gossamer "
            "check --help lists them"
        ),
    ),
    (["ps"], "no command 'ps'; did you mean status? gossamer --help lists them"),
    (
        ["jq", "crawled"],
        ("no command 'jq'; gossamer export DIR --to FORMAT -o PATH writes other formats; gossamer --help lists them"),
    ),
    # TOML that is half of another language.
    (["config", "check", "unclosed.toml"], ("unclosed.toml is not TOML: close the quotation mark in line 2")),
    (
        ["config", "check", "list.toml"],
        (
            'list.toml line 1: seeds is ["http://127.0.0.1:9/"], expected a section; write the list as '
            "urls = [\u2026] below a line [seeds]"
        ),
    ),
    (
        ["config", "check", "tables.toml"],
        (
            'tables.toml: limits is [{"max_pages": 3}], expected a section of keys, which [NAME] begins: [[NAME]] '
            "begins a list"
        ),
    ),
    (
        ["config", "check", "slashes.toml"],
        "slashes.toml is not TOML: invalid statement (at line 1, column 1); a comment begins with #",
    ),
    (
        ["config", "check", "comma.toml"],
        (
            "comma.toml is not TOML: unclosed array (at line 2, column 16); write a comma between the values of a "
            "list, and a ] behind them"
        ),
    ),
    (
        ["config", "check", "regex.toml"],
        "regex.toml is not TOML: unescaped '\\' in a string (at line 2, column 15); write include = ['\\d+']",
    ),
    (
        ["config", "check", "inline.toml"],
        (
            "inline.toml is not TOML: invalid initial character for a key part (at line 1, column 29); leave out the "
            "comma before }"
        ),
    ),
    (
        ["config", "check", "blank.toml"],
        (
            "blank.toml is not TOML: expected '=' after a key in a key/value pair (at line 2, column 11); write "
            "max_pages = 3"
        ),
    ),
    (
        ["config", "check", "thousand.toml"],
        (
            "thousand.toml is not TOML: expected newline or end of document after a statement (at line 2, column 14); "
            "write max_pages = 1000"
        ),
    ),
    (
        ["config", "check", "semicolon.toml"],
        (
            "semicolon.toml is not TOML: expected newline or end of document after a statement (at line 2, column 14); "
            "write max_pages = 3"
        ),
    ),
    (["config", "check", "json.toml"], "json.toml is not TOML, as configurations are; gossamer init writes an example"),
    (["config", "check", "marked.toml"], "marked.toml line 2: no key limits.max_page; did you mean limits.max_pages?"),
    (
        ["crawl", "feed://example.org/rss"],
        "the seed 'feed://example.org/rss' has the scheme 'feed'; did you mean https://example.org/rss ?",
    ),
    (
        ["crawl", SEED, "--unix-socket", "/run/x"],
        (
            "no option --unix-socket for gossamer crawl; a crawl connects by TCP, not to socket files: "
            "serve on 127.0.0.1, and use --allow-private; gossamer crawl --help lists them"
        ),
    ),
    (
        ["check", SEED, "--scheme", "https"],
        (
            "no option --scheme for gossamer check; --set 'scope.schemes=[\"https\"]' visits this scheme alone; "
            "gossamer check --help lists them"
        ),
    ),
    (
        ["add", SEED],
        (
            "no command 'add'; gossamer seed DIR URL adds an address to a running crawl; gossamer archive URL packs a "
            "site; gossamer --help lists them"
        ),
    ),
    (
        ["search", "crawled", "crawler", "-n", "3"],
        "no option -n for gossamer search; use --limit N; gossamer search --help lists them",
    ),
    (["search", "crawler", "crawled"], "the directory comes first; write gossamer search crawled crawler"),
    (
        ["export", "crawled", "--to", "elasticsearch", "-o", "x"],
        f"--to elasticsearch: expected {FORMATS}; bulk has documents for Elasticsearch and OpenSearch",
    ),
    (
        ["export", "crawled", "--to", "chunks", "--unique", "-o", "x"],
        (
            "no option --unique for gossamer export; each attempt is a row, and the view latest of --to duckdb and "
            "sqlite has the last of each URL; --dedupe leaves copies out of texts; gossamer export --help lists them"
        ),
    ),
    (
        ["changes", "crawled", "-o", "changes.jsonl"],
        (
            "no option -o for gossamer changes; --json prints lines for programs, and > FILE keeps them; gossamer "
            "changes --help lists them"
        ),
    ),
    (
        ["resume", "crawled", "--refetch"],
        (
            "no option --refetch for gossamer resume; a resume fetches no page again: gossamer crawl SEED -o DIR "
            "begins another crawl, and --mode continuous revisits pages; gossamer resume --help lists them"
        ),
    ),
    (
        ["scale", "crawled", "--shards", "3"],
        "no option --shards for gossamer scale; use --workers N; gossamer scale --help lists them",
    ),
    (
        ["scale", "crawled", "--workers", "+1"],
        (
            "invalid value for '--workers': expected the number of all shards, such as 3, not '+1'; gossamer scale "
            "--help says more"
        ),
    ),
    (
        [*LOCAL, "--set", "archive.store_options={allow_http=true}"],
        '--set: archive.store_options.allow_http is "[redacted]", expected a text, in quotes, such as "a"',
    ),
    # Numbers of other countries and of TOML; files of the wrong kind.
    ([*LOCAL, "--max-pages", "1.000,5"], '--max-pages "1.000,5": expected a whole number'),
    ([*LOCAL, "--max-pages", "1,5"], '--max-pages "1,5": expected a whole number'),
    ([*LOCAL, "--max-pages", "1,5k"], '--max-pages "1,5k": expected a whole number; write 1.5k'),
    *(
        (
            [*LOCAL, "--delay", text],
            (
                f'--delay "{text}": expected a number of seconds, or a time with its unit, such as 500ms, 90s or '
                "1h30m; write 1000.5"
            ),
        )
        for text in ("1.000,5", "1,000.5", "1 000,5")
    ),
    (
        [*LOCAL, "--delay", "NaN"],
        "--delay NaN: expected a finite number; leave it out for the delay of politeness.preset",
    ),
    ([*LOCAL, "--max-pages", "NaN"], '--max-pages "NaN": expected a whole number; leave it out for no limit'),
    (
        ["config", "check", "grouped.toml"],
        (
            "grouped.toml is not TOML: expected newline or end of document after a statement (at line 2, column 20); "
            "write delay_s_min = 1000.5"
        ),
    ),
    (
        ["config", "check", "with-unit.toml"],
        (
            "with-unit.toml is not TOML: expected newline or end of document after a statement (at line 2, column "
            '16); write delay_s_min = "1.5s"'
        ),
    ),
    *(
        (
            [*LOCAL, "--set", f"fetch.proxy={proxy}"],
            "fetch.proxy is not the URL of a proxy; write http://HOST:PORT, https://, socks5:// or socks5h://",
        )
        for proxy in ("x", "proxy.example.org", "[::1]", "socks4://proxy:1080")
    ),
    (
        [*LOCAL, "--set", "proxies.urls={any = ['x']}"],
        "proxies.urls.any is not the URL of a proxy; write http://HOST:PORT, https://, socks5:// or socks5h://",
    ),
    (["export", "crawled", "--to", "json", "-o", "-"], f"--to json: expected {FORMATS}; did you mean jsonl?"),
    (
        ["export", "crawled", "--to", "sqlite", "-o", "/dev/null"],
        "-o: sqlite cannot be written to standard output, a pipe or a device; jsonl and csv can",
    ),
    *(
        (
            ["export", "crawled", "--to", "jsonl", "--cluster", "127.0.0.1:9", "-o", output],
            f"-o {output}: with --cluster, name a folder that all machines see, or a URI of a store",
        )
        for output in ("-", "/dev/null", "x.jsonl.gz", "s3://bucket/x.csv.zst")
    ),
    *(
        (["crawl", name], f"'{name}' is a file, not a URL; gossamer import {name} -o DIR makes a crawl of it")
        for name in ("site.wacz", "site.har")
    ),
    *(
        (
            ["crawl", "--seeds", name],
            f"HERE/{name} is an archive: gossamer import HERE/{name} -o DIR makes a crawl of it",
        )
        for name in ("site.wacz", "site.har")
    ),
    (["crawl", "crawled"], "'crawled' is a directory, not a URL; gossamer resume crawled continues the crawl in it"),
    (
        ["crawl", "crawled/crawl.toml"],
        "'crawled/crawl.toml' is a file, not a URL; if it is a configuration, write -c crawled/crawl.toml",
    ),
    (
        ["crawl", "--seeds", "crawled/crawl.toml"],
        (
            "HERE/crawled/crawl.toml line 3: a file of seeds has one URL a line; a configuration is TOML, and read by "
            "-c FILE"
        ),
    ),
    (
        ["crawl", "--seeds", "seeds.yaml"],
        "HERE/seeds.yaml line 1: a file of seeds has one URL a line; a configuration is TOML, and read by -c FILE",
    ),
    (["crawl", "--seeds", "wide-be.txt"], "HERE/wide-be.txt line 1: a zero byte, as UTF-16 has; save it as UTF-8"),
    (
        ["crawl", "--seeds", "sheet.xlsx"],
        "HERE/sheet.xlsx is a ZIP archive, as WACZ is; a text file in UTF-8 is expected",
    ),
    (["crawl", "--seeds", "report.pdf"], "HERE/report.pdf is a PDF; a text file in UTF-8 is expected"),
    ([*LOCAL, "-c", "sheet.xlsx"], "sheet.xlsx is a ZIP archive, as WACZ is; a text file in UTF-8 is expected"),
    (
        ["crawl", "--seeds", "feed.xml"],
        ("HERE/feed.xml line 1: this is XML, and not a sitemap; to read a feed, give its address as a seed"),
    ),
    *(
        ([*LOCAL, "-c", name], f"{name} is not TOML, as configurations are; gossamer init writes an example")
        for name in ("spider.py", "two.txt")
    ),
    ([*LOCAL, "-o=out"], "-o=out: write -o out"),
    (["crawl", "http:127.0.0.1:9/"], "the seed 'http:127.0.0.1:9/' has no scheme; did you mean http://127.0.0.1:9/ ?"),
    (["status", "crawled", "other"], "too many arguments: other; gossamer status --help says more"),
    (
        [*LOCAL, "--http3"],
        (
            "no option --http3 for gossamer crawl; HTTP/2 is the newest version here: --set fetch.http_versions=2; "
            "gossamer crawl --help lists them"
        ),
    ),
    (
        [*LOCAL, "--no-sandbox"],
        (
            "no option --no-sandbox for gossamer crawl; use --set render.unsandboxed=true; gossamer crawl --help "
            "lists them"
        ),
    ),
    (
        [*LOCAL, "--overwrite"],
        (
            "no option --overwrite for gossamer crawl; -o NEW starts another crawl, and gossamer resume DIR continues "
            "one; gossamer crawl --help lists them"
        ),
    ),
    (
        [*LOCAL, "--include", "*"],
        (
            "--include: the pattern '*' is not a regular expression (RE2): no argument for repetition operator: *; "
            "for the glob write '.*'"
        ),
    ),
]

HABITS: dict[tuple[str, ...], dict[str, str]] = {
    ("export", "crawled", "--to", "csv", "-o", "x"): {
        "--chunk-overlap": "chunks follow headings and paragraphs, and do not overlap",
        "--columns": "the format duckdb takes any SQL",
        "--delimiter": "csv is as in RFC 4180",
        "--since": "use --where with a condition",
        "--gzip": "a name that ends in .gz or .zst is compressed so",
        "--head": "use --limit N",
    },
    ("search", "crawled", "word"): {
        "--sort": "the best results come first",
        "--offset": "--limit N prints more results",
        "--index": "--build makes the index",
        "--fuzzy": "all words must be found",
        "--quietly": "gossamer search --help lists them",
    },
    ("changes", "crawled"): {
        "--until": "select(.at <",
        "--limit": "select(.at <",
        "--host": "| grep HOST keeps those of a host",
        "--rss": "gossamer watch URL reports changes",
    },
    ("status", "crawled"): {
        "--shard": "--json has each shard under shards",
        "--host": "gossamer report DIR has figures by host",
        "--tail": "gossamer serve DIR shows rates over time",
        "-o": "> FILE keeps it",
        "--no-color": "output has no colors",
    },
    ("check", SEED, "--allow-private"): {
        "--diff": "--since DIR names the directory of an earlier check",
        "--rules": "all kinds of faults are looked for",
        "--min-severity": "--fail-on SEVERITY is error, warning or notice",
        "--stdin": "use --seeds FILE, or - for standard input",
    },
    ("serve", "crawled"): {
        "--open": "it prints the address with the token",
        "--ssl-keyfile": "console.public_url names the address of your proxy",
        "--daemon": "nohup or a service manager",
        "--workers": "one process serves",
    },
    ("scale", "crawled", "--workers", "2"): {"--replicas": "use --workers N", "--auto": "--workers auto takes one"},
    ("config", "check", "seeds.txt"): {"--strict": "each mistake is a line, with status 2"},
    ("config", "show", "crawled"): {"--section": "| grep ^limits"},
    ("segment", "build", "crawled", "-o", "x"): {"--topN": "use --per-host N", "--parts": "use --split N"},
    ("fetch", SEED): {"--silent": "it prints the page alone", "--data-raw": "seeds.requests_file of a crawl"},
    ("corpus", SEED): {"--chunk-size": "--to chunks -o PATH --chunk-tokens N", "--license": "--permitted ai-train"},
    ("watch", SEED): {"--slack": "use --command CMD", "--price": "[extract.NAME] names what is watched"},
    ("forget", "crawled", "a.test"): {
        "--older-than": "pages are chosen by address alone",
        "--preview": "use --dry-run",
    },
    ("crawl", SEED): {
        "--max-pages-per-host": "budget.host_pages divides it",
        "--proxy-user": "--set fetch.proxy=env:NAME",
        "--https-only": "visits this scheme alone",
        "--webhook": "gossamer watch URL reports changes",
        "--statsFilename": "logs are in DIR/logs",
        "--s3": "--set archive.store=s3://BUCKET/PREFIX",
    },
}
"""Options of other programs at our commands, and what is in their answers."""
