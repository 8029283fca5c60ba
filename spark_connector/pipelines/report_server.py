"""Serves the report of group_activity, drawn again from the tables for each reader who comes.

    python -m rota.spark_connector.pipelines.report_server activity --listen 127.0.0.1:8090

Laws
    The page is drawn at most once in REFRESH_S, by one thread; other readers get the last one.
    While there are no tables, or one cannot be read, the answer is 503 with the reason, and the server goes on.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from rota.client.log import logger
from rota.spark_connector.pipelines.report import DAYS, DAYS_HELP, add_tables_arguments, page
from rota.transport import standard_streams

REFRESH_S: Final = 30.0
_log = logger("rota.spark")


class DrawnPage:
    """The last page. `draw` makes a new one; raises ValueError (also OptionError) or OSError when there
    are no tables, or one that cannot be read."""

    def __init__(self, draw: Callable[[], str], refresh_s: float = REFRESH_S) -> None:
        self._draw, self._refresh_s = draw, refresh_s
        self._lock = threading.Lock()
        self._body = b""
        self._drawn_at_s = 0.0

    def body(self) -> bytes:
        """The page in UTF-8, at most REFRESH_S old. Raises as `draw`."""
        with self._lock:
            if not self._body or time.monotonic() - self._drawn_at_s > self._refresh_s:
                self._body, self._drawn_at_s = self._draw().encode(), time.monotonic()
            return self._body


def make_server(host: str, port: int, drawn: DrawnPage) -> ThreadingHTTPServer:
    """A server that answers GET / with the page, and nothing else. Port 0: a free one."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # http.server's name
            if self.path != "/":
                self.send_error(404, "the report is at /")
                return
            try:
                body = drawn.body()
            except (ValueError, OSError) as error:  # ValueError: an OptionError, or a file that pyarrow cannot read
                self.send_error(503, "no report yet", str(error))
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in http.server
            _log.debug("Report", request=format % args)

    return ThreadingHTTPServer((host, port), Handler)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until it is interrupted."""
    standard_streams.open_standard_streams()
    return standard_streams.exit_code(
        lambda: _serve(arguments), lambda why: standard_streams.print_on_stderr(f"report_server: {why}")
    )


def _serve(arguments: Sequence[str] | None) -> int:
    parser = argparse.ArgumentParser(prog="report_server", description=(__doc__ or "").partition("\n")[0])
    add_tables_arguments(parser)
    parser.add_argument("--listen", default="127.0.0.1:8090", metavar="HOST:PORT", help="(%(default)s)")
    parser.add_argument("--groups", default="", help="with commas (those with the highest lag)")
    parser.add_argument("--title", default="Consumer groups")
    parser.add_argument("--days", type=int, default=DAYS, metavar="N", help=DAYS_HELP)
    given = parser.parse_args(arguments)
    groups = [group for group in given.groups.split(",") if group]
    host, _, port = given.listen.rpartition(":")
    if not port.isdigit():
        parser.error(f"--listen {given.listen}: it must be HOST:PORT, as in 127.0.0.1:8090")
    shown = {"groups": groups, "title": given.title, "days": given.days, "namespace": given.namespace}
    drawn = DrawnPage(lambda: page(given.output, **shown))
    with make_server(host, int(port), drawn) as server:
        print(f"report at http://{host}:{server.server_address[1]}/", file=sys.stderr, flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
