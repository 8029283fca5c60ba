"""Which start of the machine a folder was used in: what a killed process has written is still there, what a machine
without power had not flushed is not."""

from __future__ import annotations

from pathlib import Path
from typing import Final

BOOT_FILE: Final = ".rota_boot"
BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")  # another one after each start of the machine


def boot_id() -> str:
    """Return the id of this start of the machine; "" where the system has none."""
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""


def was_written_in_this_boot(folder: Path) -> bool:
    """Whether the file in this folder names the present start of the machine. Raises OSError."""
    present = boot_id()
    try:
        return bool(present) and (folder / BOOT_FILE).read_bytes().strip() == present.encode()
    except FileNotFoundError:
        return False
