"""The console's files: read once, served by their names. They need no build step and no internet.

Law
    WB10 Only the files of the folder are served. All of them together have fewer than FILES_BYTES_MAX bytes.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from starlette.responses import Response
from starlette.routing import Route

if TYPE_CHECKING:
    from starlette.requests import Request

FOLDER: Final = Path(__file__).with_name("static")
FILES_BYTES_MAX: Final = 300_000
TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


def routes() -> list[Route]:
    """Return a path for each file, and `/` for the page."""
    files = {path.relative_to(FOLDER).as_posix(): path for path in FOLDER.rglob("*") if path.suffix in TYPES}
    found = [_route(f"/{name}", path) for name, path in sorted(files.items()) if name != "index.html"]
    return [_route("/", FOLDER / "index.html"), *found]


def _route(url: str, path: Path) -> Route:
    content, media_type = path.read_bytes(), TYPES[path.suffix]
    etag = f'"{sha256(content).hexdigest()[:16]}"'
    headers = {"etag": etag, "cache-control": "no-cache"}

    async def serve(request: Request) -> Response:
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=media_type, headers=headers)

    return Route(url, serve, methods=["GET"])
