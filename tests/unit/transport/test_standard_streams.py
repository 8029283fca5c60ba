"""Law CL3 for any program; tests/unit/cli/test_main.py has it for the command `rota`."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest

from rota.transport import standard_streams

PROGRAM = """
import sys
from rota.transport.standard_streams import exit_code, open_standard_streams, print_on_stderr
def command():
    print("output"); print_on_stderr("an error")
    return 3
open_standard_streams()
sys.exit(exit_code(command, print_on_stderr))
"""


@pytest.mark.parametrize(
    ("streams", "code", "output"),
    [
        ("2>&1", 3, "an error\noutput\n"),
        (">/dev/full", 1, "an error\nstandard output: No space left on device\n"),
        ("2>&1 1</dev/null", 1, "an error\nstandard output: Bad file descriptor\n"),
        ("2>/dev/full", 3, "output\n"),
        (">&- 2>&-", 3, ""),
    ],
)
def test_cl3_only_an_output_that_cannot_be_written_changes_the_exit_code(streams: str, code: int, output: str) -> None:
    command = ["sh", "-c", f'exec "$@" {streams}', "sh", sys.executable, "-c", PROGRAM]
    environment = {**os.environ, "PYTHONUNBUFFERED": ""}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=60)
    assert (done.returncode, done.stdout + done.stderr) == (code, output)


@pytest.mark.parametrize(("encoding", "output"), [("latin-1", "\xe4 \\u2026\n"), ("utf-8", "\xe4 \u2026\n")])
def test_cl3_a_character_that_the_output_does_not_have_is_escaped(encoding: str, output: str) -> None:
    program = PROGRAM.replace('print("output")', 'print("\\xe4 \\u2026")')
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, env=environment, check=False, timeout=60
    )
    assert (done.returncode, done.stdout.decode(encoding)) == (3, output)


def test_an_error_of_a_file_is_not_one_of_the_output() -> None:
    for of_file in (OSError(errno.ENOSPC, "No space left on device", "file"), OSError(errno.EIO, "of a file")):

        def command(failure: OSError = of_file) -> int:
            raise failure

        with pytest.raises(OSError, match="file"):
            standard_streams.exit_code(command, print)
