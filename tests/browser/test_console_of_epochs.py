"""The console's page of a group of the consumer protocol (KIP-848), and a member that is removed there."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.browser.conftest import Served, broker_process, violations

GROUP, TOPIC = "epochs", "orders"
QUICK = {
    "group_consumer_min_heartbeat_interval_ms": "100",
    "group_consumer_heartbeat_interval_ms": "100",
    "group_consumer_assignment_interval_ms": "0",
}


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """A group of two members of which the second joined later."""
    with broker_process(**QUICK) as found:
        found.members.create(TOPIC, 4)
        for name in ("first", "second"):
            found.members.join(GROUP, name, TOPIC, group_protocol="consumer")
        yield found


def opened(page: Page, served: Served, group: str) -> Page:
    page.goto(f"{served.url}/#/group/{group}")
    expect(page.get_by_role("heading", name=f"Group {group}")).to_be_visible()
    return page


def why(page: Page, text: str) -> Locator:
    """The rebalance whose first sentence has that text, with the others shown."""
    found = page.locator("details.rebalance").filter(has_text=re.compile(text)).first
    expect(found).to_be_visible()
    if found.get_attribute("open") is None:
        found.locator("summary").click()
    return found


def test_the_page_shows_causes_moves_and_who_had_to_revoke(page: Page, served: Served) -> None:
    opened(page, served, GROUP)
    joined = why(page, r"left group epoch \d+ because member second \(127\.0\.0\.1\) joined")
    expect(joined).to_contain_text("The broker assigned the partitions with uniform")
    expect(joined).to_contain_text("Partitions: 2 gained, 2 lost, 2 kept (")
    expect(joined).to_contain_text(re.compile(r"member first \(127\.0\.0\.1\) lost orders-\d orders-\d"))
    expect(joined).to_contain_text(re.compile(r"member second \(127\.0\.0\.1\) gained orders-\d orders-\d"))
    expect(joined).to_contain_text("the slowest to revoke some was member first (127.0.0.1), in ")
    expect(page.locator("svg.timeline text.cause").first).to_have_text("member-joined")
    expect(page.locator("svg.timeline rect.reconciling title").first).to_have_text(
        re.compile("Waiting for members to revoke and take partitions"), use_inner_text=False
    )
    owners = page.locator("svg.timeline rect[class^=o]")
    expect(owners.first).to_be_attached()
    assert len({owners.nth(at).get_attribute("class") for at in range(owners.count())}) == 2
    expect(page.get_by_role("list", name="Colours")).to_contain_text("waiting for members to revoke")
    assert violations(page) == []


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_is_removed_after_a_question_and_joins_again(page: Page, served: Served, protocol: str) -> None:
    group = f"removed-{protocol}"
    served.members.join(group, f"{protocol}-member", TOPIC, group_protocol=protocol)
    opened(page, served, group)
    members = page.get_by_role("region", name="Members and the partitions")
    page.get_by_role("button", name=f"Remove {protocol}-member").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(f"Remove {protocol}-member from {group}?")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)
    expect(members).to_contain_text(f"{protocol}-member")
    page.get_by_role("button", name=f"Remove {protocol}-member").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove", exact=True).click()
    expect(page.locator("#notice")).to_contain_text(f"{protocol}-member was removed")
    expect(
        page.locator("details.rebalance").filter(has_text=re.compile("left[.].*removed in the console"))
    ).to_be_visible()
    expect(members).to_contain_text(f"{protocol}-member")  # it runs still
    served.members.leave(f"{protocol}-member")
    expect(members).to_have_count(0)
