"""The report of a campaign while it runs: the same page, from this machine to this machine, to look at only."""

from __future__ import annotations

import hmac
import json
import os
import re
import secrets
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from deepcruiser.errors import DeepCruiserError, InputError, reason
from deepcruiser.report.data import Gathering
from deepcruiser.report.inputs import INPUT_FILE
from deepcruiser.report.page import gathered, rendered, section, shown

HOST = "127.0.0.1"
_WAITING = b"<!doctype html><meta http-equiv=refresh content=1><title>DeepCruiser</title><p>The seeds are being run."


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = os.name == "posix"  # on Windows it would share the port with another program

    def __init__(self, folder: str | os.PathLike[str], port: int) -> None:
        super().__init__((HOST, port), _Handler)
        self.token = secrets.token_urlsafe(9)
        self.folder = folder
        self._campaign: Gathering | None = None
        self._one_at_a_time = threading.Lock()

    def page(self, *, seen: tuple[str, str] | None = None) -> dict[str, Any] | None:
        """What the folder tells by now; None if that has been `seen`: so many runs, and in that state."""
        with self._one_at_a_time:
            if self._campaign is None:
                self._campaign = Gathering(self.folder)
            else:
                self._campaign.update()
            if seen == tuple(map(str, self._campaign.moment)):
                return None
            return {**shown(gathered([self._campaign]), [self._campaign]), "live": True}


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        _, token, *rest = address.path.split("/", 2) if address.path.count("/") > 1 else ("", "", "")
        # A page elsewhere that makes its own name point here sends that name: only ours gets an answer.
        hosts = {f"{name}:{self.server.server_port}" for name in (HOST, "localhost")}
        if self.headers.get("Host") not in hosts or not hmac.compare_digest(token.encode(), self.server.token.encode()):
            return self._answer(HTTPStatus.NOT_FOUND)
        what = rest[0] if rest else ""
        try:
            if what == "":
                page = self.server.page()
                assert page is not None  # as nothing was seen
                html = rendered(page, sounds={}, links=[""], live=True)
                return self._answer(HTTPStatus.OK, html.encode(errors="backslashreplace"), "text/html; charset=utf-8")
            if what == "data.json":
                asked = parse_qs(address.query)
                page = self.server.page(seen=(asked.get("runs", [""])[0], asked.get("state", [""])[0]))
                if page is None:
                    return self._answer(HTTPStatus.NO_CONTENT)
                told = {"page": page, "html": {name: section(name, page) for name in ("summary", "transformations")}}
                return self._answer(HTTPStatus.OK, json.dumps(told).encode(), "application/json")
            if INPUT_FILE.fullmatch(what) and what.endswith(".flac"):
                with open(os.path.join(self.server.folder, what), "rb") as file:
                    return self._sound(file.read())
        except DeepCruiserError:
            if what == "":  # it has only just begun
                return self._answer(HTTPStatus.OK, _WAITING, "text/html; charset=utf-8")
            return self._answer(HTTPStatus.NO_CONTENT)
        except OSError:
            pass
        return self._answer(HTTPStatus.NOT_FOUND)

    def _sound(self, data: bytes) -> None:
        """A sound or the part of it that was asked for: players ask for parts, and Safari plays nothing else."""
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked is None or int(asked[1]) >= len(data):
            return self._answer(HTTPStatus.OK, data, "audio/flac", {"Accept-Ranges": "bytes"})
        first, last = int(asked[1]), min(int(asked[2] or len(data)), len(data) - 1)
        where = {"Accept-Ranges": "bytes", "Content-Range": f"bytes {first}-{last}/{len(data)}"}
        return self._answer(HTTPStatus.PARTIAL_CONTENT, data[first : last + 1], "audio/flac", where)

    def _answer(
        self, status: HTTPStatus, body: bytes = b"", kind: str = "text/plain", more: Mapping[str, str] | None = None
    ) -> None:
        with suppress(ConnectionError):  # who asked has gone
            self.send_response(status)
            headers = {"Content-Type": kind, "Content-Length": str(len(body)), "Cache-Control": "no-store"}
            headers |= more or {}
            headers |= {
                "X-Content-Type-Options": "nosniff",
                "X-Frame-Options": "DENY",
                "Referrer-Policy": "no-referrer",
            }
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """The terminal belongs to the campaign."""


@contextmanager
def serving(folder: str | os.PathLike[str], port: int = 0) -> Iterator[str]:
    """Show the campaign in a folder at the address that this gives, until the block ends; port 0 is any that is free.

    Only this machine can reach it, and only who knows the address, of which a part is drawn at random. Requests read
    the folder, and nothing else happens to it.
    """
    try:
        server = _Server(folder, port)
    except (OSError, OverflowError) as error:
        raise InputError(f"cannot show the campaign on port {port}: {reason(error)}; give another, or 0") from None
    thread = threading.Thread(target=server.serve_forever, daemon=True, name="the live page")
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_port}/{server.token}/"
    finally:
        server.shutdown()
        server.server_close()
