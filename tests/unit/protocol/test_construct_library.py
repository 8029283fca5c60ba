from __future__ import annotations

import construct

from rota.protocol.construct_library import c


def test_it_is_the_library() -> None:
    assert c is construct
    assert c.Int16sb.parse(b"\x01\x02") == 258
