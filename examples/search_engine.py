"""A search engine: `python search_engine.py` crawls a site and answers http://127.0.0.1:8817/?q=words."""

import asyncio
import html
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from gossamer import Crawler
from gossamer.api.search import search_of
from gossamer.model.errors import ConfigError


class Search(BaseHTTPRequestHandler):
    def do_GET(self):
        query = parse_qs(urlsplit(self.path).query).get("q", [""])[0]
        try:
            hits = search_of("site", query).hits if query else ()
        except ConfigError as error:  # A query that is too long or too nested.
            return self.send_error(422, str(error))
        found = (
            f"<p><a href='{html.escape(hit.url)}'>{html.escape(hit.title)}</a><br>{html.escape(hit.snippet)}"
            for hit in hits
        )
        body = f"<form><input name=q value='{html.escape(query)}'></form>{''.join(found)}".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


settings = {"search.enabled": True}
asyncio.run(Crawler("https://docs.example.org/", contact="you@example.org", output="site", settings=settings).run())
ThreadingHTTPServer(("127.0.0.1", 8817), Search).serve_forever()
