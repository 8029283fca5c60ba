"""The table of metrics follows Prometheus' rules for names."""

from __future__ import annotations

import re

import pytest

from rota.coordinator.web.families import FAMILIES, Family, Kind, sample_names


@pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda family: family.name)
def test_a_family_has_a_proper_name_and_help(family: Family) -> None:
    assert re.fullmatch(r"rota_[a-z_]+", family.name)
    assert not family.name.endswith(("_total", "_count", "_sum", "_bucket", "_info_total"))
    assert family.help.endswith(".")
    assert not set(family.labels) & {"le", "quantile", "job", "instance"}


def test_the_names_of_samples_have_the_suffixes_of_their_kind() -> None:
    names = sample_names()
    assert {"rota_isr_shrinks_total", "rota_request_latency_seconds_bucket", "rota_leaders"} <= names
    assert "rota_isr_shrinks" not in names
    assert {family.kind for family in FAMILIES.values()} == set(Kind)
