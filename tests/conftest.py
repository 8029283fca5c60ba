"""What holds for every test: no verdict of Hypothesis depends on how busy the machine is."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("rota", deadline=None)
settings.load_profile("rota")
