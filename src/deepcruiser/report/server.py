"""The live page: the report of a running campaign, served read-only to browsers on this machine."""

from __future__ import annotations

import hmac
import json
import os
import re
import secrets
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from deepcruiser.errors import DeepCruiserError, InputError, reason
from deepcruiser.files.reading import read_bytes
from deepcruiser.report.data import CampaignData, ReportData
from deepcruiser.report.inputs import INPUT_FILE
from deepcruiser.report.page import render, render_section, render_waiting
from deepcruiser.report.sections import SECTIONS, collect

HOST = "127.0.0.1"
#: Seconds that a client may take for a request, and the number of connections at a time. A browser needs a few.
IDLE_SECONDS, MOST_CONNECTIONS = 10.0, 32


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = os.name == "posix"  # on Windows it would share the port with another program

    def __init__(self, folder: str | os.PathLike[str], port: int) -> None:
        super().__init__((HOST, port), _Handler)
        self.token = secrets.token_urlsafe(9)
        self.folder = folder
        self._campaign: CampaignData | None = None
        self._one_at_a_time = threading.Lock()
        self._free = threading.BoundedSemaphore(MOST_CONNECTIONS)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own; what comes beyond the most connections is closed at once."""
        if not self._free.acquire(blocking=False):
            return self.shutdown_request(request)
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread could be started
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The terminal belongs to the campaign, whatever a client does."""

    def page(self, *, seen: tuple[str, str] | None = None) -> dict[str, Any] | None:
        """The data of the page as of now; None if the browser has `seen` this number of runs, in this state."""
        with self._one_at_a_time:
            if self._campaign is None or self._campaign.record.state == "damaged":  # the database may have been busy
                self._campaign = CampaignData(self.folder)
            else:
                self._campaign.update()
            if seen == tuple(map(str, self._campaign.moment)):
                return None
            return collect(ReportData.of([self._campaign]), page=True)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = IDLE_SECONDS

    def setup(self) -> None:
        super().setup()
        # The time-out is for each part of a request, and a client may send it one byte at a time.
        self._late = threading.Timer(IDLE_SECONDS, self._give_up)
        self._late.daemon = True
        self._late.start()

    def _give_up(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def parse_request(self) -> bool:
        try:
            return super().parse_request()
        finally:
            self._late.cancel()

    def finish(self) -> None:
        self._late.cancel()
        super().finish()

    def do_GET(self) -> None:
        try:
            address = urlsplit(self.path)
        except ValueError:
            return self._answer(HTTPStatus.BAD_REQUEST)
        _, token, *rest = address.path.split("/", 2) if address.path.count("/") > 1 else ("", "", "")
        # Only our own host names are answered: another site's name may resolve to this machine (DNS rebinding).
        hosts = {f"{name}:{self.server.server_port}" for name in (HOST, "localhost")}
        if self.headers.get("Host") not in hosts or not hmac.compare_digest(token.encode(), self.server.token.encode()):
            return self._answer(HTTPStatus.NOT_FOUND)
        what = rest[0] if rest else ""
        try:
            if what == "":
                page = self.server.page()
                assert page is not None
                html = render(page, audio={}, links=[""], live=True)
                return self._answer(HTTPStatus.OK, html.encode(errors="backslashreplace"), "text/html; charset=utf-8")
            if what == "data.json":
                query = parse_qs(address.query)
                page = self.server.page(seen=(query.get("runs", [""])[0], query.get("state", [""])[0]))
                if page is None:
                    return self._answer(HTTPStatus.NO_CONTENT)
                shown = [section.name for section in SECTIONS if section.shown(page)]
                answer = json.dumps({"page": page, "html": _live_sections(page), "sections": shown})
                return self._answer(HTTPStatus.OK, answer.encode(), "application/json")
            if INPUT_FILE.fullmatch(what) and what.endswith(".flac"):
                return self._sound(read_bytes(os.path.join(self.server.folder, what)))
        except DeepCruiserError:
            if what == "":  # the seeds have not all run yet
                html = render_waiting(self.server.folder)
                return self._answer(HTTPStatus.OK, html.encode(errors="backslashreplace"), "text/html; charset=utf-8")
            if what == "data.json":
                return self._answer(HTTPStatus.NO_CONTENT)
        except OSError:
            pass
        return self._answer(HTTPStatus.NOT_FOUND)

    def _sound(self, data: bytes) -> None:
        """Audio, or the range of it that was requested: Safari plays nothing without ranges."""
        requested = re.fullmatch(r"bytes=([0-9]{1,15})-([0-9]{0,15})", self.headers.get("Range", ""))
        if requested is None:
            return self._answer(HTTPStatus.OK, data, "audio/flac", {"Accept-Ranges": "bytes"})
        first, last = int(requested[1]), min(int(requested[2] or len(data)), len(data) - 1)
        if first > last:
            none = {"Content-Range": f"bytes */{len(data)}"}
            return self._answer(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, more=none)
        where = {"Accept-Ranges": "bytes", "Content-Range": f"bytes {first}-{last}/{len(data)}"}
        return self._answer(HTTPStatus.PARTIAL_CONTENT, data[first : last + 1], "audio/flac", where)

    def _answer(
        self, status: HTTPStatus, body: bytes = b"", kind: str = "text/plain", more: Mapping[str, str] | None = None
    ) -> None:
        with suppress(OSError):  # the client has gone, or takes too long
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


def _live_sections(page: dict[str, Any]) -> dict[str, str]:
    """The sections that a template alone renders, as they are now; the others are drawn from the data."""
    templates = [section for section in SECTIONS if section.live and not section.scripts and section.shown(page)]
    return {section.name: render_section(section, page, live=True) for section in templates}


@contextmanager
def serving(folder: str | os.PathLike[str], port: int = 0) -> Iterator[str]:
    """Serve the report of a campaign until the block ends, at the address that this gives; port 0 is any free one.

    Only this machine can reach it, and only with the whole address, part of which is drawn at random. A request reads
    the folder and changes nothing.
    """
    try:
        server = _Server(folder, port)
    except (OSError, OverflowError) as error:
        raise InputError(
            f"cannot serve the report on port {port}: {reason(error)}; use another port, or 0 for any free one"
        ) from None
    thread = threading.Thread(target=server.serve_forever, daemon=True, name="the live page")
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_port}/{server.token}/"
    finally:
        server.shutdown()
        server.server_close()
