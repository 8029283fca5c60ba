"""The texts say what is visible and what to do."""

from __future__ import annotations

from rota.spark_connector.two_phase.errors import SHOWN_MAX, DecidedTransactionLost, PreparedTransactionLost


def test_they_name_a_few_transactions_and_count_the_others() -> None:
    ids = [f"id-{number}" for number in range(SHOWN_MAX + 2)]
    text = str(PreparedTransactionLost("q", 3, ids))
    assert "transactions id-0, id-1, id-2, id-3, id-4 and 2 more ended before" in text
    assert "none of its records is visible" in text


def test_a_loss_names_the_way_out() -> None:
    text = str(DecidedTransactionLost("q", 3, "decisions", ["id-0"], 2))
    assert "2 of its transactions are visible" in text
    assert "record with the key q and no value to partition 0 of decisions" in text
