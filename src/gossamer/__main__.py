"""`python -m gossamer` is `gossamer`."""

from gossamer.cli.entry import main

main()
