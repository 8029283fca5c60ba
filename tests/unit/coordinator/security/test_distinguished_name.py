"""The names of certificates as Java 17 prints them: each line was made by javax.security.auth.x500.X500Principal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.coordinator.security.distinguished_name import subject_of

NAMES = {
    "CN=Bob,OU=clients,O=X": (
        "302c310a3008060355040a1301583110300e060355040b1307636c69656e7473310c300a06035504031303426f62"
    ),
    r"CN=a\,b\+c\"d\\e\<f\>g\;h\=i\#j,O=\#x": (
        "302b310b3009060355040a0c022378311c301a06035504030c13612c622b6322645c653c663e673b683d69236a"
    ),
    r"CN=\ lead\ ,O=y": "301d310a3008060355040a130179310f300d06035504031306206c65616420",
    "1.2.840.113549.1.9.1=#16056140622e63,CN=ü,C=DE,L=M,ST=S,STREET=st,DC=dc,UID=u,2.5.4.12=#130174,2.5.4.5=#13023132": (  # noqa: E501
        "308195310b3009060355040513023132310a3008060355040c1301743111300f060a0992268993f22c64010113017531123010060a09"
        "92268993f22c64011916026463310b3009060355040913027374310a30080603550408130153310a3008060355040713014d310b3009"
        "060355040613024445310b300906035504030c02c3bc3114301206092a864886f70d01090116056140622e63"
    ),
    r"CN=a\#b": "300e310c300a06035504030c03612362",
    r"CN=\ \ ": "300d310b300906035504030c022020",
    r"CN=\ \ a\ \ ": "3010310e300c06035504030c052020612020",
    r"CN=a\00b": "300e310c300a06035504030c03610062",
    "CN=a\\\r": "300d310b300906035504030c02610d",
    "CN=\t a\n": "300f310d300b060355040313040920610a",
    "CN=": "300b3109300706035504030c00",
    "CN=Bob": "300e310c300a06035504031b03426f62",
    "CN=#1a03426f62": "300e310c300a06035504031a03426f62",
    "CN=#1c04000000fc": "300f310d300b06035504031c04000000fc",
    r"CN=\00B\00o\00b": "3011310f300d06035504031e060042006f0062",
    r"CN=\00 \00a\00\ ": "3011310f300d06035504031e06002000610020",
    "": "30023100",
    "CN=a+OU=b,O=c": "3022310a3008060355040a1301633114300806035504031301613008060355040b130162",
}


def element(tag: int, *parts: bytes) -> bytes:
    content = b"".join(parts)
    length = len(content).to_bytes(1) if len(content) < 128 else b"\x82" + len(content).to_bytes(2)
    return bytes([tag]) + length + content


def certificate(subject: bytes, *, with_version: bool = True) -> bytes:
    """A certificate as far as its subject is concerned."""
    version = [element(0xA0, element(2, b"\2"))] if with_version else []
    fields = [element(2, b"\1"), element(0x30), element(0x30), element(0x30), subject, element(0x30)]
    return element(0x30, element(0x30, *version, *fields))


@pytest.mark.parametrize("with_version", [True, False])
@pytest.mark.parametrize(("name", "subject"), NAMES.items())
def test_a_name_is_that_of_java(name: str, subject: str, with_version: bool) -> None:
    assert subject_of(certificate(bytes.fromhex(subject), with_version=with_version)) == name


def test_a_name_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(ValueError, match="codec"):
        subject_of(certificate(bytes.fromhex("300c310a300806035504031401fc")))


@given(st.binary(max_size=60))
def test_garbage_is_no_certificate(data: bytes) -> None:
    for content in (data, certificate(data)):
        try:
            subject_of(content)
        except ValueError:
            continue
