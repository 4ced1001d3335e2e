"""Console: what a running crawl shows and hears over HTTP, on loopback.

Takes    what the api gives of a running crawl
Gives    an ASGI application, and a server for it in the crawl's own loop
Keeps    nothing
Imports  api, config, model; Starlette and uvicorn
Touches  a listening socket
Never    fetches, believes a caller, or lets one hold more than its bound
"""
