"""The server of the report, over HTTP."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rota.spark_connector.pipelines.report import table
from rota.spark_connector.pipelines.report_server import DrawnPage, main, make_server


@contextmanager
def serving(drawn: DrawnPage) -> Iterator[str]:
    with make_server("127.0.0.1", 0, drawn) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def status(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_the_page_is_drawn_once_for_several_readers() -> None:
    pages = iter(["<p>one</p>", "<p>two</p>"])
    with serving(DrawnPage(lambda: next(pages))) as url:
        assert [status(url + "/") for _ in range(2)] == [(200, "<p>one</p>")] * 2
    with serving(DrawnPage(iter(["1", "2"]).__next__, refresh_s=-1)) as url:
        assert [status(url + "/")[1] for _ in range(2)] == ["1", "2"]


def test_no_tables_yet_is_an_answer_and_not_the_end(tmp_path: Path) -> None:
    with serving(DrawnPage(lambda: str(table(str(tmp_path), "lag")))) as url:
        code, text = status(url + "/")
        assert code == 503
        assert f"{tmp_path}/lag" in text
        assert status(url + "/")[0] == 503


def test_a_file_that_is_not_complete_yet_is_an_answer_too(tmp_path: Path) -> None:
    """As one that a compaction copies at that moment."""
    file = tmp_path / "lag" / "day=2026-01-01" / "batch_id=1" / "part.parquet"
    file.parent.mkdir(parents=True)
    file.write_text("PAR1")
    with serving(DrawnPage(lambda: str(table(str(tmp_path), "lag")))) as url:
        assert status(url + "/")[0] == 503


def test_another_path_is_not_found() -> None:
    with serving(DrawnPage(str)) as url:
        assert status(url + "/../etc/passwd")[0] == 404


def test_an_address_without_a_port_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["activity", "--listen", "localhost"])
    assert "it must be HOST:PORT" in capsys.readouterr().err
