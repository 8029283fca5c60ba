"""One process at a time runs the job of a checkpoint: a second one would take the micro-batch of the first for one that
was interrupted, and write it again.

Laws
    The lock ends with its process, whatever ends that. A checkpoint that is no local folder has none; nor has one on a
    mounted file system that knows no locks, with a warning.
"""

from __future__ import annotations

import errno
import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyarrow import fs

from rota.client.log import logger
from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines.locations import file_system

LOCK: Final = "job.lock"  # in the folder of the checkpoint, where Spark leaves it alone
_NO_LOCKS: Final = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)  # NFS without its lock service, FUSE
_log = logger("rota.spark")


@contextmanager
def locked(checkpoint: str) -> Iterator[None]:
    """While the job runs. Raises OptionError when it runs elsewhere."""
    files, path = file_system(checkpoint)
    if not isinstance(files, fs.LocalFileSystem):
        yield
        return
    files.create_dir(path)
    with open(f"{path}/{LOCK}", "a", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            expected = "the checkpoint of a job that does not run: another process is running it"
            raise OptionError("--checkpoint", checkpoint, expected) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            _log.warning("The file system has no locks: a second process could run this job", checkpoint=checkpoint)
        yield
