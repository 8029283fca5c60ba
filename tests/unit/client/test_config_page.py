from dataclasses import fields
from pathlib import Path

from rota.client.config import AdminConfig, ClientConfig, ConsumerConfig, ProducerConfig
from rota.client.config_page import page

DOCS = Path(__file__).parents[3] / "docs"


def test_the_page_is_fresh() -> None:
    """`make docs` writes it."""
    assert (DOCS / "CLIENT_SETTINGS.md").read_text() == "\n".join(page()) + "\n"


def test_every_setting_has_one_row() -> None:
    rows = [line.split("|")[1].strip(" `") for line in page() if line.startswith("| `")]
    every = {field.name for config in (ClientConfig, ConsumerConfig, ProducerConfig) for field in fields(config)}
    assert sorted(rows) == sorted(every)
    assert {field.name for field in fields(AdminConfig)} == {field.name for field in fields(ClientConfig)}


def test_no_cell_breaks_its_table() -> None:
    assert {line.count("|") for line in page() if line.startswith("| `")} == {5}
