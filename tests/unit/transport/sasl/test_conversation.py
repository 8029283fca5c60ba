from rota.protocol import scram
from rota.transport.sasl.conversation import Conversation
from rota.transport.sasl.oauthbearer import OauthbearerConversation
from rota.transport.sasl.plain import PlainConversation
from rota.transport.sasl.scram import ScramConversation


def test_every_mechanism_begins_with_a_message_of_the_client() -> None:
    conversations: list[Conversation] = [
        PlainConversation("u", "p"),
        ScramConversation(scram.SHA_512, "u", "p", "n"),
        OauthbearerConversation("t", {}),
    ]
    assert all(conversation.first() for conversation in conversations)
