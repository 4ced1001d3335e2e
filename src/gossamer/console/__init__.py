"""Console: what is seen of crawls over HTTP, and what they are told there.

Takes    a crawl that can be asked: in this process, over its socket, or by its files
Gives    a page for people, an ASGI application with its description, and a server for it in the crawl's own loop
Keeps    a token in a file
Imports  api, config, isolated, model, report, world
Touches  a listening socket, crawls' sockets and directories
Never    fetches, believes a caller, or lets one hold more than its bound
"""
