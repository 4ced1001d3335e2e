"""Properties are tested without a clock: a busy machine is no failure."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("gossamer", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("gossamer")
