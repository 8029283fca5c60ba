from rota.transport.sasl.login import PasswordLogin
from rota.transport.security import PLAINTEXT, Security


def test_plain_text_has_neither_tls_nor_sasl() -> None:
    assert (PLAINTEXT.tls, PLAINTEXT.login) == (None, None)


def test_a_login_is_shown_without_its_password() -> None:
    assert "planted" not in repr(Security(None, PasswordLogin("PLAIN", "alice", "planted")))
