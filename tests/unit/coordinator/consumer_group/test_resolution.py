"""Slices of the resolution of regular expressions, and their bounds."""

from __future__ import annotations

from rota.coordinator.consumer_group.regular_expression import NAME_WORK_MAX, compile_expression
from rota.coordinator.consumer_group.resolution import SLICE_WORK_MAX, WORK_MIN, WORK_PER_NAME, Resolution, work_max_of

EXPENSIVE = "(a|b)*a(a|b){60}"  # its states at a name are those of the 60 characters before
NAMES = [f"topic-{n}" for n in range(300)]


def resolution(*expressions: str, names: list[str] = NAMES) -> Resolution:
    return Resolution(expressions, names, lambda name: name != "topic-7", 5)


def test_the_topics_are_those_that_match_and_may_be_described() -> None:
    begun = resolution("topic-.", "none")
    while not begun.run_slice():
        pass
    assert begun.found == {
        "topic-.": frozenset(name for name in NAMES[:10] if name != "topic-7"),
        "none": frozenset(),
    }
    assert begun.run_slice(), "nothing is left"


def test_a_slice_ends_with_the_step_that_takes_it_to_its_bound() -> None:
    """RX3."""
    expression = "((t?o?p?i?c?-?){20}[0-9]?){5}"
    begun, slices = resolution(expression), 1
    while not begun.run_slice():
        slices += 1
    work = compile_expression(expression)
    for name in NAMES:
        work.matches(name)
    assert slices >= work.work // (SLICE_WORK_MAX + NAME_WORK_MAX)
    assert slices > 1


def test_an_expression_has_a_bound_for_all_its_names() -> None:
    """RX3. Each name is just below the bound of one match."""
    names = [f"{pow(3, 200 + n):b}".replace("0", "a").replace("1", "b")[-249:] for n in range(400)]
    begun = resolution(EXPENSIVE, "topic-1", names=names)
    slices = 1
    while not begun.run_slice():
        slices += 1
    assert begun.expensive == [EXPENSIVE]
    assert slices <= 3 * WORK_MIN // SLICE_WORK_MAX


def test_the_bound_grows_with_the_number_of_topics() -> None:
    assert work_max_of(1) == WORK_MIN
    assert work_max_of(100_000) == 100_000 * WORK_PER_NAME
