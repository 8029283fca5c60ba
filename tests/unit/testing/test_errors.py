"""What the kit raises."""

from __future__ import annotations

from rota.testing.errors import CommandRefused, NotInTime


def test_a_test_that_waited_in_vain_has_failed_and_a_refused_command_is_an_error() -> None:
    assert issubclass(NotInTime, AssertionError)
    assert not issubclass(CommandRefused, AssertionError)
