"""Hostile clients of the live page: it still answers others, and nothing reaches the campaign's terminal."""

from __future__ import annotations

import socket
import struct
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from deepcruiser.report import server
from tests.support import toy


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    toy.campaign(folder, runs=16)
    (folder / "failed" / "000001.flac").write_bytes(bytes(100))
    return folder


@pytest.fixture
def url(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(server._Handler, "timeout", 0.5)
    with server.serving(folder) as url:
        yield url


def connect(url: str, data: bytes) -> socket.socket:
    place = urlsplit(url)
    connection = socket.create_connection((place.hostname or "", place.port or 0), timeout=20)
    connection.sendall(data)
    return connection


def status(url: str, headers: dict[str, str] | None = None) -> int:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers or {}), timeout=20) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_idle_connections_take_a_limited_place_and_time(url: str) -> None:
    idle = [connect(url, b"GET /") for _ in range(2 * server.MOST_CONNECTIONS)]
    closed = [connection.recv(100) for connection in idle[-4:]]  # too many connections: closed at once
    assert closed == [b""] * 4
    for connection in idle:
        assert connection.recv(10_000) == b""  # it timed out
        connection.close()
    assert status(url) == 200


def test_a_request_that_comes_byte_by_byte_is_given_up(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "IDLE_SECONDS", 1.0)
    with connect(url, b"GET / HTTP/1.1\r\nX: ") as client:
        client.settimeout(0.1)
        for _ in range(300):
            with suppress(TimeoutError):
                try:
                    client.sendall(b"a")
                    if client.recv(1) == b"":
                        return
                except (BrokenPipeError, ConnectionResetError):
                    return
    pytest.fail("the connection is still open")


@pytest.mark.parametrize(
    "data",
    [
        b"\0\xff\xfe\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET http://[::1 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 300 + b"\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: caf\xe9\r\n\r\n",
    ],
)
def test_malformed_requests(url: str, data: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    with connect(url, data) as connection:
        while connection.recv(10_000):
            pass
    with connect(url, data) as connection:  # a reset in place of an orderly end
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert status(url) == 200
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("requested", "expected"),
    [
        ("bytes=5-2", 416),
        ("bytes=100-", 416),
        ("bytes=99-", 206),
        ("bytes=0-" + "9" * 5000, 200),
        ("bytes=\u0663-", 200),
        ("bytes=-5", 200),
        ("bytes=0-9,20-29", 200),
    ],
)
def test_ranges(url: str, requested: str, expected: int) -> None:
    assert status(f"{url}failed/000001.flac", {"Range": requested.encode().decode("latin-1")}) == expected
