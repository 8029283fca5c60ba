"""What may be given for a record."""

from __future__ import annotations

import pytest

from rota.client.errors import IllegalArgument, IllegalUse
from rota.client.producer.records import plain_bytes, plain_headers


@pytest.mark.parametrize("given", [b"abc", bytearray(b"abc"), memoryview(b"abc")])
def test_anything_like_bytes_is_bytes(given: object) -> None:
    assert plain_bytes("value", given) == b"abc"


def test_none_stays() -> None:
    assert plain_bytes("value", None) is None


def test_a_str_value_is_refused_with_a_remedy() -> None:
    with pytest.raises(IllegalUse, match=r"value is bytes or None, not str: give value\.encode\(\)"):
        plain_bytes("value", "abc")
    with pytest.raises(IllegalUse, match="not dict"):
        plain_bytes("value", {})


def test_headers_keep_their_order_and_may_repeat() -> None:
    assert plain_headers([("a", b"1"), ("a", None)]) == (("a", b"1"), ("a", None))
    assert plain_headers({"a": bytearray(b"1")}) == (("a", b"1"),)


@pytest.mark.parametrize("given", [[("a", "text")], [(b"a", b"1")], [b"a"], 5, [("a",)]])
def test_headers_of_another_kind_are_refused(given: object) -> None:
    with pytest.raises((IllegalUse, IllegalArgument), match=r"header"):
        plain_headers(given)


def test_nc14_the_name_of_a_header_can_be_written() -> None:
    assert plain_headers([("é\udcff", b"1")])[0][0] == "é\udcff", "as a consumer read it"
    with pytest.raises(IllegalUse, match="half of a surrogate pair"):
        plain_headers([("\ud800", b"1")])
