import pytest

from rota.transport.sasl.login import PASSWORD_MECHANISMS, PasswordLogin, TokenLogin
from rota.transport.sasl.tokens import TokenCache


@pytest.mark.parametrize("mechanism", PASSWORD_MECHANISMS)
async def test_each_conversation_of_a_password_is_new(mechanism: str) -> None:
    login = PasswordLogin(mechanism, "alice", "planted")
    first, second = (await login.conversation()).first(), (await login.conversation()).first()
    assert (b"planted" in first) == (mechanism == "PLAIN")
    assert (first == second) == (mechanism == "PLAIN"), "the nonce of SCRAM is used once"
    assert "planted" not in repr(login)


async def test_a_conversation_of_a_token() -> None:
    async def token() -> str:
        return "a.b.c"

    login = TokenLogin(TokenCache(token))
    assert login.mechanism == "OAUTHBEARER"
    assert b"Bearer a.b.c" in (await login.conversation()).first()
