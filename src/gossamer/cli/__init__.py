"""Cli: the commands, for people at a terminal and for scripts.

Takes    arguments
Gives    progress, answers, an exit status
Keeps    nothing; a crawl's state is in its directory
Imports  api, assembly, check, config, console, export, identity, imports, isolated, lab, model, offline, options,
         plugins, quantities, render, report, state, url, world
Touches  terminal, signals, the crawl's process and its control socket
Never    decides what a crawl does, or shows untrusted text unescaped
"""
