"""What the connector raises. Each message says what was found, what is right and what to do."""

from __future__ import annotations


class OptionError(ValueError):
    """An option that is not known, not of its form, or at odds with another one."""

    def __init__(self, option: str, given: object, right: str) -> None:
        super().__init__(f"option {option} is {given!r}; it must be {right}")
        self.option = option


class DataLost(RuntimeError):
    """Records that the query had still to read are gone from the log, and failOnDataLoss is true."""
