"""Files of Java properties; tests/property/test_properties_file.py has what may be written in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rota.transport.properties_file import FileRefused, load_properties, parse_properties


def test_the_last_value_of_a_name_counts(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("# comment\nsecurity.protocol = SSL\nsecurity.protocol: SASL_SSL\n")
    assert load_properties(file) == {"security.protocol": "SASL_SSL"}


def test_a_refusal_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_bytes(b"a=\xff")
    with pytest.raises(FileRefused, match="is not UTF-8"):
        load_properties(file)


def test_a_comment_after_a_lone_backslash_is_none_of_its_line() -> None:
    assert parse_properties("\\\n# comment\n\\\n\na=1\\\n  # no comment\n\\\n") == {"a": "1# no comment"}
