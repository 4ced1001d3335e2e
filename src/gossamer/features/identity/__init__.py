"""Identity: proof of who sends a request, and a page about the crawl.

Takes    a key file, the address of the key directory, the parts of a request, the time
Gives    headers that sign a request, the key directory with its own signatures
Keeps    the key pairs in memory; the private keys in one file that only its owner reads
Imports  model, world
Touches  the key file
Never    sends anything, or shows a private key
"""
