"""XXH3 of each length class; the values are those of the reference implementation (xxHash 0.8)."""

from __future__ import annotations

import pytest

from rota.coordinator.consumer_group.xxh3 import xxh3_64

VALUES = {
    0: 0x2D06800538D394C2,
    1: 0xC44BDFF4074EECDB,
    2: 0xD6645FC3051A9457,
    3: 0x5F4299FC161C9CBB,
    4: 0x60DAB036A58211F2,
    7: 0x0CD2084A62406B69,
    8: 0x3A1C2D7C85AF88F8,
    9: 0xE9612598145BB9DC,
    15: 0x55ECEDC2B87BB042,
    16: 0x8355E3A6F61770DB,
    17: 0x9EF341A99DE37328,
    32: 0x3523581FE96E4C05,
    33: 0xE68C56BA88991E58,
    64: 0x6187EB9089B0ED55,
    65: 0x6928C76CE90422D0,
    96: 0x278A3E12EA046DFB,
    97: 0xE7220282DC4E14F4,
    128: 0x85C6174C7FF4C46B,
    129: 0xEC7642B431BA3E5A,
    200: 0xF42A8864FEAF0703,
    240: 0x375A384D957FE865,
    241: 0x02E8CD95421C6D02,
    255: 0x074191BAF9C49567,
    256: 0x44F5D90DACDE463A,
    1024: 0xE5D78BAFA45B2AA5,
    1025: 0xE95C42288F28186E,
    1088: 0x1A848D807034C403,
    2048: 0x25339063DB861586,
    2049: 0x6C9600C0E506E2AE,
    5000: 0xB418500FC42320EE,
}


@pytest.mark.parametrize(("size", "value"), VALUES.items())
def test_the_hash_is_that_of_the_reference(size: int, value: int) -> None:
    assert xxh3_64(bytes(i % 251 for i in range(size))) == value
