"""`rota produce` and `rota consume` on both brokers: what is sent is what is printed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.kit import Rota


@pytest.fixture
def made(cli: Rota, topic: str) -> str:
    return cli.create(topic, 2)


def rota(cli: Rota, *arguments: str, **given: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "rota", *arguments, "--bootstrap-server", cli.address]
    return subprocess.run(command, capture_output=True, check=False, timeout=60, **given)  # type: ignore[call-overload,no-any-return]


def test_lines_of_standard_input_become_records(cli: Rota, made: str) -> None:
    lines = b"one\n\nthr\xffee\r\nlast"
    sent = rota(cli, "produce", made, "--partition", "1", "--json", input=lines)
    assert (sent.returncode, sent.stderr) == (0, b"")
    assert json.loads(sent.stdout) == {
        "topic": made,
        "records": 4,
        "failed": 0,
        "partitions": [{"partition": 1, "records": 4, "first_offset": 0, "last_offset": 3}],
    }
    read = rota(cli, "consume", made)
    assert (read.returncode, read.stdout, read.stderr) == (0, b"one\n\nthr\xffee\nlast\n", b"")


def test_produce_reads_the_json_of_consume(cli: Rota, made: str, tmp_path: Path) -> None:
    record = {
        "key": "k",
        "value": {"amount": 1, "name": "größe"},
        "headers": [["trace", "1"], ["none", None]],
        "timestamp": 1_700_000_000_000,
    }
    file = tmp_path / "records"
    file.write_text("".join(json.dumps(each) + "\n" for each in (record, {"key": "gone", "value": None})))
    cli.json("produce", made, "--file", str(file), "--input", "json", "--partition", "0")
    first, second = cli.json_lines("consume", made, "--value-format", "json")
    assert first == record | {"topic": made, "partition": 0, "offset": 0, "timestamp_type": "CreateTime"}
    assert (second["key"], second["value"]) == ("gone", None)
    file.write_text(json.dumps(first) + "\n")
    cli.json("produce", made, "--file", str(file), "--input", "json", "--partition", "1", "--value-format", "json")
    (again,) = cli.json_lines("consume", made, "--partition", "1", "--value-format", "json")
    assert again == first | {"partition": 1}


@pytest.mark.parametrize(
    ("arguments", "line", "key", "value"),
    [
        (("--key-separator", ":"), "k:v:w", b"k", b"v:w"),
        (("--key-separator", "\\t"), "k\tv", b"k", b"v"),
        (("--key", "all"), "v", b"all", b"v"),
        (("--value-format", "hex"), "00ff", None, b"\x00\xff"),
        (("--value-format", "base64"), "AP8=", None, b"\x00\xff"),
        (("--value-format", "json"), '{ "a": 1 }', None, b'{"a":1}'),
    ],
)
def test_forms_of_lines(
    cli: Rota, made: str, tmp_path: Path, arguments: tuple[str, ...], line: str, key: bytes | None, value: bytes
) -> None:
    file = tmp_path / "lines"
    file.write_text(f"{line}\n")
    cli.json("produce", made, "--file", str(file), *arguments)
    (read,) = cli.json_lines("consume", made, "--key-format", "hex", "--value-format", "hex")
    assert (read["key"], read["value"]) == (None if key is None else key.hex(), value.hex())


def test_one_record_of_the_command_line_with_all_fields_shown(cli: Rota, made: str) -> None:
    sent = cli("produce", made, "--value", "v", "--key", "k", "--header", "a=b", "--timestamp", "5", "--partition", "1",
               "--compression", "gzip")  # fmt: skip
    assert sent.lines[1].split() == [made, "1", "1", "0", "0"]
    assert cli("consume", made, "--show", "all").out == f"{made}\t1\t0\t5\tk\ta=b\tv\n"
    assert cli("consume", made, "--show", "key,offset").out == "0\tk\n"


def test_a_line_that_is_no_record_is_named_and_the_lines_before_it_were_sent(
    cli: Rota, made: str, tmp_path: Path
) -> None:
    file = tmp_path / "lines"
    file.write_text('{"value":"1"}\n{"valu":"2"}\n')
    refused = cli.fails("produce", made, "--file", str(file), "--input", "json")
    assert refused.code == 2
    assert 'line 2: not an object with a "value"' in refused.err
    assert cli("consume", made).out == "1\n"


def test_a_line_that_is_no_record_does_not_hide_that_lines_before_it_were_not_sent(
    cli: Rota, topic: str, tmp_path: Path
) -> None:
    cli.create(topic, max_message_bytes="100")
    file = tmp_path / "lines"
    file.write_text('{"value":"' + 200 * "1" + '"}\n{"valu":"2"}\n')
    refused = cli.fails("produce", topic, "--file", str(file), "--input", "json")
    assert refused.code == 2
    assert "line 2: not an object" in refused.err
    assert "Of the lines before it 1 was not sent, the first:" in refused.err
    assert "MESSAGE_TOO_LARGE" in refused.err


def test_a_topic_or_partition_that_does_not_exist_is_named(cli: Rota, made: str) -> None:
    refused = cli.fails("produce", made, "--value", "v", "--partition", "9", "--timeout", "2")
    assert refused.code in (1, 4)
    assert f"{made}" in refused.err
    refused = cli.fails("consume", f"{made}-absent", "--timeout", "2")
    assert refused.code in (1, 4)
    assert f"{made}-absent" in refused.err
    refused = cli.fails("consume", made, "--partition", "9")
    assert refused.code == 2
    assert "has no partition 9: it has 0 to 1" in refused.err


@pytest.mark.parametrize(
    ("start", "values"),
    [
        ("earliest", "0 1 2 3 4"),
        ("latest", ""),
        ("3", "3 4"),
        ("5", ""),
        ("-2", "3 4"),
        ("-99", "0 1 2 3 4"),
        ("@1700000002000", "2 3 4"),
        ("@2023-11-14T22:13:23Z", "3 4"),
    ],
)
def test_from_sets_the_start_position_of_consume(cli: Rota, made: str, start: str, values: str) -> None:
    for number in range(5):
        cli.produce(made, [b"%d" % number], timestamp=1_700_000_000_000 + 1000 * number)
    assert cli("consume", made, f"--from={start}").out.split() == values.split()


def test_an_offset_beyond_the_end_is_refused(cli: Rota, topic: str) -> None:
    cli.create(topic, 2)
    cli.produce(topic, [b"0", b"1"], partition=1)
    refused = cli.fails("consume", topic, "--from", "3")
    message = f"rota: --from 3 is beyond the last end of all partitions, 2 of {topic}-1\n"
    assert (refused.code, refused.err) == (2, message)
    refused = cli.fails("consume", topic, "--partition", "0", "--from", "1", "--follow")
    assert (refused.code, refused.err) == (2, f"rota: --from 1 is beyond the end, 0 of {topic}-0\n")
    assert cli("consume", topic, "--from", "2").out == ""


def test_max_ends_it(cli: Rota, made: str) -> None:
    cli.produce(made, [b"1", b"2", b"3"])
    assert cli("consume", made, "--max", "2").out == "1\n2\n"
    assert cli("consume", made, "--max", "2", "--follow", "--from", "earliest").out == "1\n2\n"


def test_consume_in_a_group_commits_the_printed_records(cli: Rota, made: str, group: str) -> None:
    cli.produce(made, [b"1", b"2", b"3"])
    read = ("consume", made, "--group", group, "--from", "earliest", "--max")
    assert cli(*read, "2").out == "1\n2\n"
    assert cli.json("groups", "lag", group)["groups"][0]["lag"] == 1
    assert cli(*read, "1").out == "3\n"


def test_follow_prints_new_records_until_ctrl_c(cli: Rota, made: str) -> None:
    command = [sys.executable, "-m", "rota", "consume", made, "--follow", "--from", "earliest"]
    with subprocess.Popen([*command, "--bootstrap-server", cli.address], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        cli.produce(made, [b"before"])
        assert process.stdout.readline() == b"before\n"
        cli.produce(made, [b"after"])
        assert process.stdout.readline() == b"after\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == b""
    assert process.returncode == 130


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_a_member_in_order(cli: Rota, made: str, group: str, number: signal.Signals, code: int) -> None:
    cli.produce(made, [b"first"])
    command = [sys.executable, "-m", "rota", "consume", made, "--follow", "--group", group, "--from", "earliest"]
    with subprocess.Popen([*command, "--bootstrap-server", cli.address], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"first\n"
        process.send_signal(number)
        assert process.wait(60) == code
    (described,) = cli.json("groups", "describe", group)["groups"]
    assert (described["state"], described["members"]) == ("Empty", [])


def test_a_closed_pipe_ends_consume(cli: Rota, made: str) -> None:
    cli.produce(made, [b"x" * 1000] * 1000)
    command = [sys.executable, "-m", "rota", "consume", made, "--bootstrap-server", cli.address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert len(os.read(process.stdout.fileno(), 10)) == 10
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_ctrl_c_ends_a_produce_that_waits_for_input(cli: Rota, made: str) -> None:
    command = [sys.executable, "-m", "rota", "produce", made, "--bootstrap-server", cli.address]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(b"sent\n")
        process.stdin.flush()
        assert cli("consume", made, "--follow", "--from", "earliest", "--max", "1").out == "sent\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_a_partition_that_a_topic_does_not_have_is_refused_at_once(cli: Rota, topic: str) -> None:
    cli.create(topic, 2)
    with pytest.raises(SystemExit, match="2"):
        cli.fails("produce", topic, "--value", "v", "--partition", "99999999999")
    refused = cli.fails("produce", topic, "--value", "v", "--partition", "2")
    assert (refused.code, f"topic {topic} has no partition 2: it has 0 to 1" in refused.err) == (1, True)
    assert cli("produce", topic, "--value", "v", "--partition", "1").code == 0
