"""Isolated: runs code that untrusted content can crash in separate processes.

Takes    a suspect page, pages for isolated modules, places of archived pages, or questions to a full-text index or to
         an archive
Gives    what they came to, or one line that says why there is none
Keeps    processes
Imports  archive, assembly, config, engine, export, imports, isolation, model, process, search, world
Touches  a crawl's directory; its own standard input and output
Never    lets a crash, a loop or a full memory reach the process that asked
"""
