"""The console in a real browser, on a live broker with real clients."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from playwright.sync_api import Browser, Page, expect
from tests.browser.conftest import Served, broker_process, violations, violations_of_themes
from tools.peer.certificates import Authority

GROUP, TOPIC = "billing", "orders"
HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'
PAGES = ["#/", "#/topics", f"#/topic/{TOPIC}", "#/groups", f"#/group/{GROUP}"]


@pytest.fixture(scope="module", autouse=True)
def work(served: Served) -> Iterator[None]:
    """A group with a history: a second member joined, a third one joined and left."""
    served.members.create(TOPIC, 6)
    for number in range(40):
        served.members.produce(TOPIC, b'{"order": %d, "items": ["book"]}' % number, key=b"customer-%d" % (number % 7))
    for name in ("worker-1", "worker-2", "worker-3"):
        served.members.join(GROUP, name, TOPIC)
    served.members.leave("worker-3")
    yield
    for name in ("worker-1", "worker-2"):
        served.members.leave(name)


def opened(page: Page, served: Served, path: str) -> Page:
    page.goto(f"{served.url}/{path}")
    expect(page.locator("table, .quiet").first).to_be_visible()
    return page


def test_the_cluster_is_shown(page: Page, served: Served) -> None:
    opened(page, served, "#/")
    expect(page.get_by_role("heading", name="Cluster")).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("controller"))).to_be_visible()
    expect(page.locator("#connection")).to_have_text("live")


def test_a_topic_is_found_from_the_list_and_its_records_by_offset_time_and_key(page: Page, served: Served) -> None:
    opened(page, served, "#/topics")
    page.get_by_role("link", name=TOPIC, exact=True).click()
    expect(page.get_by_role("heading", name=f"Topic {TOPIC}")).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("cleanup.policy"))).to_be_visible()
    records = page.get_by_role("region", name="Records of partition")
    partition = page.locator("select[name=partition]")
    page.get_by_label("From offset").fill("0")
    for number in range(6):
        partition.select_option(str(number))
        page.get_by_role("button", name="Show").click()
        expect(page.get_by_text(f"are in partition {number}.")).to_be_visible()
        if records.count():
            break
    expect(records.get_by_role("row").nth(1)).to_contain_text('"book"')
    page.get_by_label("From offset").fill("")
    page.get_by_label("or from time").fill("2001-01-01T00:00:00")
    page.get_by_label("Key contains").fill("customer")
    page.get_by_role("button", name="Show").click()
    expect(records.get_by_role("row").nth(1)).to_contain_text("customer-")
    page.get_by_label("Key contains").fill("nobody")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("No record is there.")).to_be_visible()


def test_a_group_shows_members_why_timeline_and_lag(page: Page, served: Served) -> None:
    opened(page, served, f"#/group/{GROUP}")
    members = page.get_by_role("region", name="Members and the partitions")
    expect(members.get_by_role("row")).to_have_count(3)
    expect(members).to_contain_text("worker-1")
    expect(page.get_by_role("img", name=re.compile("Timeline from .* rebalances"))).to_be_visible()
    expect(page.locator("svg.timeline text.cause").first).to_have_text(re.compile("member-"))
    expect(page.locator("svg.timeline rect.stable").first).to_be_attached()
    owners = page.locator("svg.timeline rect[class^=o]")
    expect(owners.first).to_be_attached()
    assert len({owners.nth(at).get_attribute("class") for at in range(owners.count())}) >= 2
    why = page.locator("details.rebalance").filter(has_text="worker-3")  # other tests make more
    expect(why.first).to_be_visible()
    why.first.locator("summary").click()
    expect(why.first.locator("p").first).to_be_visible()
    expect(page.locator(".uplot canvas")).to_be_visible()
    expect(page.get_by_role("region", name="Lag by partition").get_by_role("row")).to_have_count(7)


def test_a_page_changes_by_itself_when_the_group_does(page: Page, served: Served) -> None:
    opened(page, served, f"#/group/{GROUP}")
    members = page.get_by_role("region", name="Members and the partitions")
    expect(members.get_by_role("row")).to_have_count(3)
    served.members.join(GROUP, "worker-4", TOPIC)
    expect(members).to_contain_text("worker-4")
    served.members.leave("worker-4")
    expect(members).not_to_contain_text("worker-4")


def test_offsets_are_reset_after_a_preview(page: Page, served: Served) -> None:
    served.members.join("once", "reader", TOPIC)
    served.members.leave("reader")
    opened(page, served, "#/group/once")
    page.get_by_role("button", name="Reset offsets").click()
    dialog = page.get_by_role("dialog")
    dialog.locator("select[name=to]").select_option("earliest")
    dialog.get_by_role("button", name="Show what would change").click()
    expect(dialog.get_by_role("region", name="What would be committed")).to_be_visible()
    dialog.get_by_role("button", name="Reset", exact=True).click()
    expect(page.locator("#notice")).to_contain_text("were reset")
    lag = page.get_by_role("region", name="Lag by partition")
    expect(lag.get_by_role("row").nth(1)).to_contain_text("0")
    page.get_by_role("button", name="Delete the group").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="Groups")).to_be_visible()
    expect(page.get_by_role("link", name="once", exact=True)).to_have_count(0)


def test_a_refused_action_shows_its_reason(page: Page, served: Served) -> None:
    opened(page, served, f"#/group/{GROUP}")
    page.get_by_role("button", name="Delete the group").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("alert")).to_contain_text("NON_EMPTY_GROUP")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_topic_is_created(page: Page, served: Served) -> None:
    opened(page, served, "#/topics")
    page.get_by_role("button", name="Create a topic").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("made-in-the-console")
    dialog.get_by_label("Partitions").fill("3")
    dialog.get_by_role("button", name="Create").click()
    expect(page.get_by_role("link", name="made-in-the-console")).to_be_visible()


def test_text_of_users_is_never_html(page: Page, served: Served) -> None:
    served.members.produce("hostile", HOSTILE.encode(), key=HOSTILE.encode())
    served.members.join(HOSTILE, HOSTILE, "hostile")
    opened(page, served, "#/topic/hostile")
    expect(page.get_by_role("region", name="Records of partition")).to_contain_text(HOSTILE)
    opened(page, served, "#/groups")
    page.get_by_role("link", name=HOSTILE).click()
    expect(page.get_by_role("region", name="Members and the partitions")).to_contain_text(HOSTILE)
    served.members.leave(HOSTILE)
    assert page.evaluate("() => window.hacked") is None
    assert page.locator("main img[src], main script").count() == 0


@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing_wrong(page: Page, served: Served, path: str) -> None:
    opened(page, served, path)
    assert violations_of_themes(page) == []


def test_axe_finds_nothing_wrong_in_a_dialog(page: Page, served: Served) -> None:
    opened(page, served, f"#/group/{GROUP}")
    page.get_by_role("button", name="Reset offsets").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert violations(page) == []


@pytest.mark.parametrize("path", PAGES)
def test_a_narrow_screen_scrolls_in_one_direction(page: Page, served: Served, path: str) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    opened(page, served, path)
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


def test_the_console_is_used_with_the_keyboard_alone(page: Page, served: Served) -> None:
    opened(page, served, "#/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    for _ in range(4):
        page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Groups")).to_be_focused()
    page.keyboard.press("Enter")
    link = page.get_by_role("link", name=GROUP, exact=True)
    expect(link).to_be_visible()
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("Tab")
    for _ in range(page.locator("main table a").count()):  # other tests have groups, too
        page.keyboard.press("Tab")
        if link.evaluate("link => link === document.activeElement"):
            break
    expect(link).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=f"Group {GROUP}")).to_be_visible()


def test_the_chosen_theme_stays(page: Page, served: Served) -> None:
    page.emulate_media(color_scheme="light")
    opened(page, served, "#/")
    page.get_by_role("button", name="Dark or light").click()
    page.reload()
    assert page.evaluate("() => document.documentElement.dataset.theme") == "dark"


def test_a_read_only_console_offers_no_action(chromium: Browser) -> None:
    with broker_process(rota_http_read_only="true") as served:
        served.members.create("t", 1)
        served.members.join("g", "m", "t")
        page = chromium.new_page()
        for path in ("#/topics", "#/group/g"):
            opened(page, served, path)
            actions = page.locator("main button").filter(has_text=re.compile("Create|Reset|Delete|Remove"))
            expect(actions).to_have_count(0)
        page.close()


def test_a_user_logs_in_acts_and_logs_out(chromium: Browser) -> None:
    settings = {"rota_http_login": "true", "rota_scram_bootstrap_users": "alice=planted"}
    with broker_process(**settings) as served, chromium.new_context() as context:
        page = context.new_page()
        page.goto(served.url)
        page.get_by_label("User").fill("alice")
        page.get_by_label("Password").fill("wrong")
        page.get_by_role("dialog").get_by_role("button", name="Log in").click()
        expect(page.get_by_role("alert")).to_have_text("the user or the password is wrong")
        page.get_by_label("Password").fill("planted")
        page.get_by_role("dialog").get_by_role("button", name="Log in").click()
        expect(page.locator("#user")).to_have_text("alice (operator)")
        page.goto(f"{served.url}/#/topics")
        page.get_by_role("button", name="Create a topic").click()
        page.get_by_label("Name").fill("made-by-alice")
        page.get_by_role("dialog").get_by_role("button", name="Create").click()
        expect(page.get_by_role("link", name="made-by-alice")).to_be_visible()
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_label("Password")).to_be_visible()


def test_over_tls_a_user_reads_what_its_acls_allow_and_acts_on_nothing(chromium: Browser, tmp_path: Path) -> None:
    store = Authority(tmp_path).issue("console", hosts=("127.0.0.1",)).keystore
    settings = {
        "rota_http_tls": "true",
        "rota_http_login": "true",
        "ssl_keystore_location": str(store),
        "rota_scram_bootstrap_users": "alice=planted",
        "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super_users": "User:ANONYMOUS",
    }
    with broker_process(**settings) as served, chromium.new_context(ignore_https_errors=True) as context:
        for topic in ("open", "secret"):
            served.members.create(topic, 1)
        allow(served.address, ResourceType.BROKER, "kafka-cluster", AclOperation.DESCRIBE)
        allow(served.address, ResourceType.TOPIC, "open", AclOperation.READ)
        page = context.new_page()
        page.goto(served.url)
        page.get_by_label("User").fill("alice")
        page.get_by_label("Password").fill("planted")
        page.get_by_role("dialog").get_by_role("button", name="Log in").click()
        expect(page.locator("#user")).to_have_text("alice (read-only)")
        page.goto(f"{served.url}/#/topics")
        expect(page.get_by_role("link", name="secret")).to_be_visible()  # DESCRIBE on the cluster shows all topics
        expect(page.get_by_role("button", name="Create a topic")).to_have_count(0)
        (cookie,) = context.cookies()
        assert (cookie["secure"], cookie["httpOnly"], cookie["sameSite"]) == (True, True, "Strict")
        read = {name: page.request.get(f"{served.url}/api/records?topic={name}").status for name in ("open", "secret")}
        assert read == {"open": 200, "secret": 403}
        action = """token => fetch("/api/actions/create-topic", {
            method: "POST", body: '{"topic": "x", "partitions": 1}',
            headers: {"content-type": "application/json", "x-rota-action": token}}).then(answer => answer.status)"""
        token = page.request.get(f"{served.url}/session").json()["action_token"]
        assert page.evaluate(action, token) == 403


def allow(address: str, kind: ResourceType, name: str, operation: AclOperation) -> None:
    """Create an ACL of alice."""
    pattern = ResourcePatternType.LITERAL
    acl = AclBinding(kind, name, pattern, "User:alice", "*", operation, AclPermissionType.ALLOW)
    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.create_acls([acl]).values():
        future.result(30)
