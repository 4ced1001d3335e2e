"""Features: what a crawl does without, each a folder or a module. `assembly/features.py` lists those of a visit."""
