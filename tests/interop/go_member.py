"""Members by franz-go (kgo) for tests, built with Go where it is installed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.interop.client_suites.franz_go import MODULE
from tests.interop.client_suites.kit import Unavailable, fetch, home, settle
from tests.interop.java_kit import PrintingMember

SOURCE = Path(__file__).with_name("go") / "member.go"


def built() -> Path:
    """Return the program of go/member.go. Raises Unavailable without Go or network."""
    if shutil.which("go") is None:
        raise Unavailable("Go is not installed")
    text = SOURCE.read_bytes()
    folder = home() / f"go-member-{MODULE.rpartition('@')[2]}"
    if not (folder / "member").exists() or (folder / "member.go").read_bytes() != text:
        shutil.rmtree(folder, ignore_errors=True)
        part = home() / f"go-member-part-{os.getpid()}"
        part.mkdir(parents=True, exist_ok=True)
        (part / "go.mod").write_text("module member\n\ngo 1.24\n")
        (part / "member.go").write_bytes(text)
        module, _, version = MODULE.partition("@")
        fetch(["go", "get", f"{module}/pkg/kgo@{version}"], part, GOFLAGS="-mod=mod")
        fetch(["go", "build", "-o", str(part / "member"), "."], part, GOFLAGS="-mod=mod")
        settle(part, folder)
    return folder / "member"


class GoMember(PrintingMember):
    """`protocol`: classic (cooperative-sticky) or consumer (KIP-848)."""

    def __init__(self, program: Path, bootstrap: str, group: str, topic: str, protocol: str) -> None:
        super().__init__([str(program), bootstrap, group, topic, protocol])
