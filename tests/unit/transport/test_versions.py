import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.client.errors import Unsupported
from rota.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse, FinalizedFeatureKey
from rota.protocol.registry import APIS
from rota.transport.versions import NO_FEATURES, Features, finalized_features, newest, version_ranges

FETCH = 1  # we know 4 to 18


def test_the_newest_that_both_know() -> None:
    assert newest("b", {FETCH: range(4, 13)}, FETCH) == 12
    assert newest("b", {FETCH: range(4, 40)}, FETCH) == 18
    assert newest("b", {FETCH: range(4, 19)}, FETCH, high=11) == 11


def test_ranges_of_an_answer_include_both_ends() -> None:
    assert version_ranges([ApiVersion(api_key=1, min_version=4, max_version=6)]) == {1: range(4, 7)}


@pytest.mark.parametrize(
    ("known", "low", "high", "reply"),
    [
        ({}, 0, None, "broker 1 does not serve Fetch: this needs a newer broker"),
        (
            {FETCH: range(4)},
            0,
            None,
            "serves Fetch in version 0-3, and version 4-18 is needed: this needs a newer broker",
        ),
        ({FETCH: range(4, 12)}, 12, None, "version 12-18 is needed: this needs a newer broker"),
        (
            {FETCH: range(20, 22)},
            0,
            None,
            "serves Fetch in version 20-21, and version 4-18 is needed: this needs an older",
        ),
        ({FETCH: range(12, 19)}, 0, 11, "version 4-11 is needed: this needs an older broker"),
        ({FETCH: range(4, 19)}, 0, 3, "a version that this library does not have is needed"),
    ],
)
def test_without_a_common_version_the_error_names_the_ranges_of_both(
    known: dict[int, range], low: int, high: int | None, reply: str
) -> None:
    with pytest.raises(Unsupported, match=reply):
        newest("1", known, FETCH, low, high)


@given(first=st.integers(0, 30), count=st.integers(1, 10), low=st.integers(0, 30), high=st.integers(0, 30))
def test_the_newest_common_version_is_chosen(first: int, count: int, low: int, high: int) -> None:
    theirs = range(first, first + count)
    common = [item for item in APIS[FETCH].versions if item in theirs and low <= item <= high]
    try:
        picked = newest("b", {FETCH: theirs}, FETCH, low, high)
    except Unsupported:
        assert not common
    else:
        assert picked == max(common)


def test_finalized_features_are_valid_with_their_epoch() -> None:
    levels = (FinalizedFeatureKey(name="transaction.version", max_version_level=2, min_version_level=1),)
    answer = ApiVersionsResponse(finalized_features_epoch=4, finalized_features=levels)
    assert finalized_features(answer) == Features(4, {"transaction.version": 2})
    assert finalized_features(ApiVersionsResponse(finalized_features=levels)) == NO_FEATURES
