"""Mutants by sample: small changes of what decides in a crawl, and how many the tests find.

    make mutants [COUNT=300] [SEED=1] [OF=stages/robots [BESIDE="ring lab"]]

The operators are those of cosmic-ray, applied in the bodies of functions: constants, defaults and options are values
to choose, and a weaker assertion changes nothing. One process collects the tests. A copy of it runs them all and notes
which lines each of them reaches. One more copy for each mutant replaces the code of the functions concerned, in memory
alone, and runs the tests that reach the line: those of the package first, the fastest first, until one fails.
`known.toml` lists the survivors that are known, each with its reason. A slice of one package (OF) takes minutes: its
own tests alone are measured, with those of the folders named BESIDE it.
"""

PACKAGES = (
    "stages/frontier",
    "stages/robots",
    "stages/scope",
    "stages/seen",
    "engine",
    "features/revisit",
    "state",
    "cluster",
)
"""Folders of the package, and of its tests, where OF names no other one."""
