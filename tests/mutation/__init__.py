"""Mutants by sample: small changes of frontier, engine, revisit, state and cluster, and how many the tests find.

    make mutants [COUNT=300] [SEED=1]

The operators are those of cosmic-ray, applied in the bodies of functions: constants, defaults and options are values
to choose, and a weaker assertion changes nothing. One process collects the tests. A copy of it runs them all and notes
which lines each of them reaches. One more copy for each mutant replaces the code of the functions concerned, in memory
alone, and runs the tests that reach the line: those of the package first, the fastest first, until one fails.
`known.toml` lists the survivors that are known, each with its reason.
"""

PACKAGES = ("stages/frontier", "engine", "features/revisit", "state", "cluster")
"""Folders of the package, and of its tests."""
