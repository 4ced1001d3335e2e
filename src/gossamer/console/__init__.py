"""Console: status and control of crawls over HTTP.

Takes    a crawl that answers: in this process, over its socket, or by its files
Gives    a page for people, an ASGI application with its description, and a server for it in the crawl's own loop
Keeps    a token in a file
Imports  api, assembly, config, isolated, model, options, report, world
Touches  a listening socket, crawls' sockets and directories
Never    fetches, believes a caller, or lets one hold more than its bound
"""
