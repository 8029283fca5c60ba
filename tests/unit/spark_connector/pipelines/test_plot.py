"""What is render, and where."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.spark_connector.pipelines.plot import COLOURS, GROUPS_MAX, HEIGHT, WIDTH, ceiling, chosen, svg

NAMESPACE = "{http://www.w3.org/2000/svg}"


def lines(text: str) -> list[list[tuple[float, float]]]:
    found = re.findall(r'<polyline points="([^"]*)"', text)
    return [[tuple(float(part) for part in point.split(",")) for point in item.split()] for item in found]


def test_more_lag_is_higher_and_later_is_further_right() -> None:
    ((first, second),) = lines(svg({"g": [(0, 10), (60, 100)]}, {}, window_s=60))
    assert first[0] < second[0]
    assert first[1] > second[1]


def test_a_lag_that_is_not_known_is_a_gap() -> None:
    render = svg({"g": [(0, 1), (1, 2), (2, None), (3, 3), (4, 4), (5, None), (6, 1)]}, {}, window_s=1)
    assert [len(item) for item in lines(render)] == [2, 2]
    assert render.count("<circle") == 1


def test_rebalances_are_bars_that_stand_on_each_other() -> None:
    render = svg({}, {"a": [(30, 1), (90, 0)], "b": [(30, 1)]}, window_s=60)
    bars = re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)" fill="#', render)
    bars = [[float(item) for item in bar] for bar in bars if bar[2] != "10"]
    assert len(bars) == 2
    (x1, y1, _, high), (x2, y2, _, _) = bars
    assert x1 == x2
    assert y2 == pytest.approx(y1 - high, abs=0.2)


def test_a_group_has_one_colour() -> None:
    render = svg({"a": [(0, 1), (1, 2)], "b": [(0, 1), (1, 2)]}, {"b": [(0, 1)]}, window_s=1)
    assert render.count(COLOURS[0]) == 2  # the legend and a line
    assert render.count(COLOURS[1]) == 3  # and a bar


def test_too_many_groups_are_counted() -> None:
    lag = {f"g{number:02}": [(0.0, float(number))] for number in range(GROUPS_MAX + 3)}
    names, left_out = chosen(lag, {})
    assert names == [f"g{number:02}" for number in range(3, GROUPS_MAX + 3)]
    assert left_out == 3
    assert "and 3 more" in svg(lag, {}, window_s=1)


def test_names_are_text() -> None:
    render = svg({'<b>&"': [(0, 1)]}, {}, window_s=1, title='"<&>"')
    texts = [item.text for item in ElementTree.fromstring(render).iter(f"{NAMESPACE}text")]
    assert '<b>&"' in texts
    assert '"<&>"' in texts


def test_nothing_is_an_empty_plot() -> None:
    assert ElementTree.fromstring(svg({}, {}, window_s=60)).tag == f"{NAMESPACE}svg"


@pytest.mark.parametrize(("value", "top"), [(0, 1), (1, 1), (1.5, 2), (3, 3), (7, 8), (10, 10), (11, 20), (999, 1000)])
def test_the_scale_ends_at_a_round_number(value: float, top: float) -> None:
    assert ceiling(value) == top


@given(
    st.dictionaries(
        st.text(min_size=1, max_size=5, alphabet=st.characters(exclude_categories=["C"])),
        st.lists(st.tuples(st.floats(0, 2e9), st.floats(0, 1e12)), max_size=6).map(sorted),
        max_size=10,
    )
)
def test_everything_lies_within_the_picture(lag: dict[str, list[tuple[float, float | None]]]) -> None:
    render = svg(lag, {}, window_s=60)
    assert render == svg(lag, {}, window_s=60)
    for line in lines(render):
        assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in line)
