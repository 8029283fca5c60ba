"""What the connector raises names what was wrong."""

from __future__ import annotations

import pytest

from rota.spark_connector.errors import DataLost, OptionError


def test_the_message_has_the_option_its_value_and_the_expected_form() -> None:
    refused = OptionError("subscribe", "", "topics, separated by commas")
    assert str(refused) == "option subscribe is ''; it must be topics, separated by commas"
    assert refused.option == "subscribe"


def test_an_option_error_is_a_value_error_and_lost_data_is_none() -> None:
    assert issubclass(OptionError, ValueError)
    assert not issubclass(DataLost, ValueError)


@pytest.mark.parametrize(
    "option",
    [
        "kafka.ssl.key.password",
        "sasl.jaas.config",
        "kafka.ssl.keystore.key",
        "OAuthToken",
        "clientSecret",
        "ssl_keystore_key",
        "ssl.key.pem",
    ],
)
def test_the_value_of_a_secret_is_hidden(option: str) -> None:
    refused = OptionError(option, "planted", "left out")
    assert str(refused) == f"option {option} is [hidden]; it must be left out"
