from hypothesis import given
from hypothesis import strategies as st

from rota.client.network.backoff import JITTER, wait_ms

chances = st.floats(0, 1, exclude_max=True)


def test_it_doubles_up_to_the_longest() -> None:
    assert [wait_ms(failures, 50, 1_000, 0.5) for failures in range(8)] == [0, 50, 100, 200, 400, 800, 1_000, 1_000]


def test_a_longest_wait_below_the_first_is_the_only_one() -> None:
    assert [wait_ms(failures, 100, 10, 0.5) for failures in (1, 2, 3)] == [10, 10, 10]


@given(failures=st.integers(1, 10_000), first=st.integers(0, 10_000), longest=st.integers(0, 100_000), chance=chances)
def test_the_jitter_is_at_most_a_fifth(failures: int, first: int, longest: int, chance: float) -> None:
    plain = wait_ms(failures, first, longest, 0.5)
    assert plain <= longest
    assert plain * (1 - JITTER) <= wait_ms(failures, first, longest, chance) <= plain * (1 + JITTER)


@given(failures=st.integers(1, 100), chance=chances)
def test_more_failures_never_shorten_the_wait(failures: int, chance: float) -> None:
    assert wait_ms(failures, 7, 5_000, chance) <= wait_ms(failures + 1, 7, 5_000, chance)
