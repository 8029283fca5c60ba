"""Record batches, magic 2: headers, checksums, codecs, records.

`batch` has batch headers (all that a broker needs), `record` the records of a batch, `codecs` compression, `fast` the
loops that are compiled when a C compiler is available. `COMPILED` is true when they are.
"""

from __future__ import annotations

from typing import Final

from rota.protocol.records import fast

COMPILED: Final = not (fast.__file__ or "").endswith(".py")
