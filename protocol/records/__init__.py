"""Record batches, magic 2: headers, checksums, codecs, records.

`batch` sees a batch from outside (what a broker needs), `record` from inside, `codecs` compresses, `fast` holds the
loops that are compiled where a C compiler is there. `COMPILED` says whether they are.
"""

from __future__ import annotations

from typing import Final

from rota.protocol.records import fast

COMPILED: Final = not (fast.__file__ or "").endswith(".py")
