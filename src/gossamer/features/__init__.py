"""Features: what a crawl does without, each a folder or a module. `assembly/middleware.py` lists those of a visit."""
