from __future__ import annotations

from itertools import pairwise

from gossamer.lab.simulate.result import SAMPLES_MAX, Milestones, Sample, Samples

NOTHING = dict.fromkeys(Sample.__struct_fields__, 0.0)


def test_samples_stay_few_and_evenly_spread() -> None:
    samples = Samples()
    while samples.due_s < 50_000:
        samples.add(Sample(**{**NOTHING, "at_s": samples.due_s}))
    instants = [sample.at_s for sample in samples.taken]
    assert SAMPLES_MAX / 3 < len(instants) < SAMPLES_MAX
    gaps = {later - earlier for earlier, later in pairwise(instants)}
    assert gaps == {samples.interval_s}


def test_milestones_tell_when_a_share_was_reached() -> None:
    for pages in (1, 7, 1_000, 1_024, 50_000):
        milestones = Milestones()
        for page in range(1, pages + 1):
            milestones.count_page(page / 10)
        for share in (0.5, 0.9, 1.0):
            assert abs(milestones.time_to_share_s(share) - share * pages / 10) <= max(0.1, pages / 10 / 500)
    assert Milestones().time_to_share_s(0.5) == 0.0
