"""The file systems of paths and URLs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from rota.spark_connector.errors import OptionError
from rota.spark_connector.pipelines.locations import file_system, has_files


def test_paths_and_urls(tmp_path: Path) -> None:
    assert file_system(f"{tmp_path}/")[1] == str(tmp_path)
    assert file_system(tmp_path.as_uri())[1] == str(tmp_path)
    (tmp_path / "x").touch()
    assert has_files(tmp_path.as_uri())


def test_a_secret_in_a_url_is_not_in_the_error() -> None:
    with pytest.raises(OptionError, match=r"wasbs://\.\.\.@bucket/x") as refused:
        file_system("wasbs://name:planted@bucket/x")
    assert "planted" not in str(refused.value)


@pytest.mark.parametrize(
    "location", ["dbfs:/x", "dbfs:///x", "wasbs://c@account/x", "file://host/x", "file:x", "ftp://host/x"]
)
def test_a_url_that_is_not_supported_is_refused_and_not_taken_as_a_local_path(location: str) -> None:
    with pytest.raises(OptionError, match=f"{location}'; it must be a local path, or a URL of file, s3"):
        file_system(location)


def test_a_store_that_cannot_be_reached_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """As hdfs without libjvm, whose error has a line for each place that was searched."""

    def refuse(uri: str) -> None:
        raise OSError(f"Unable to load libjvm\ndlopen of {uri} failed")

    monkeypatch.setattr(
        "rota.spark_connector.pipelines.locations.fs", SimpleNamespace(FileSystem=SimpleNamespace(from_uri=refuse))
    )
    with pytest.raises(OptionError, match=r"'hdfs://nn/x'; .* JAVA_HOME.* \(Unable to load libjvm\)$"):
        file_system("hdfs://nn/x")


def test_a_url_is_the_place_that_hadoop_has_for_it() -> None:
    """Its URLs have no escapes: the folder of file:/a%20b has a percent sign in its name."""
    for url in ("file:/tmp/a%20b c", "file:///tmp/a%20b c/", "/tmp/a%20b c"):
        assert file_system(url)[1] == "/tmp/a%20b c"
    assert file_system("gs://bucket/a%20b c/")[1] == "bucket/a%20b c"
    for scheme in ("s3", "s3a"):  # a region, so that none is looked up
        url = f"{scheme}://bucket/a%20b c?region=us-east-1&endpoint_override=http%3A%2F%2F127.0.0.1%3A9000"
        assert file_system(url)[1] == "bucket/a%20b c"
    assert file_system("lake/12:30")[1] == "lake/12:30"
