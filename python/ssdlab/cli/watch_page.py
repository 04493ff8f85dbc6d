"""Serves the page of `ssdlab watch --page` to browsers of this machine."""

from __future__ import annotations

import re
import threading
import time
from typing import Final

import msgspec
import typer

from ssdlab.cli.live import Content, LocalServer
from ssdlab.cli.output import write_out
from ssdlab.errors import TargetError
from ssdlab.studio import Recorder, make_watch_page

ANY_PORT: Final = "127.0.0.1:0"
# The page runs and loads only what it has and what this server sends.
_POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
    "connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'"
)
_HEADERS: Final = (
    ("Content-Security-Policy", _POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
)


def serve_page(recorder: Recorder, socket: str, every_s: float, listen: str) -> None:
    """Records and answers until Ctrl-C; after the end of the twin it only answers.

    Raises:
        UsageError: `listen` is not a local HOST:PORT, or is in use.
    """
    page = make_watch_page(recorder, socket, every_s).encode()
    server = LocalServer(listen, lambda path: _content_of(path, page, recorder))
    write_out(f"{server.url}\n")
    threading.Thread(target=_record, args=(recorder, every_s), daemon=True).start()
    server.run()


def _record(recorder: Recorder, every_s: float) -> None:
    next_s = time.monotonic()
    while True:
        next_s = max(next_s + every_s, time.monotonic())
        time.sleep(max(0.0, next_s - time.monotonic()))
        try:
            recorder.take()
        except TargetError as error:
            recorder.end(str(error))
            typer.echo(f"{error}; the page keeps the record until Ctrl-C", err=True)
            return


def _content_of(path: str, page: bytes, recorder: Recorder) -> Content | None:
    if path == "/":
        return Content("text/html; charset=utf-8", page, _HEADERS)
    if (match := re.fullmatch(r"/rows/(\d{1,15})", path)) is not None:
        rows = msgspec.json.encode(recorder.rows(int(match[1])))
        return Content("application/json", rows, _HEADERS)
    if (match := re.fullmatch(r"/frame/(\d{1,15})", path)) is not None:
        frame = recorder.frame(int(match[1]))
        headers = (*_HEADERS, ("Content-Encoding", "gzip"))
        return None if frame is None else Content("application/json", frame, headers)
    return None
