"""What the kit raises in tests."""

from __future__ import annotations


class CommandRefused(Exception):
    """The broker under test cannot do that; the message says why."""


class NotInTime(AssertionError):
    """What a test waits for did not come before the deadline; the message has what was there instead."""
