"""Records as indented JSON; imports little, for commands that scripts call often."""

from __future__ import annotations

import os
from typing import Any

import msgspec


def encode_json(value: Any) -> str:
    """A record as indented JSON text."""
    return encode_json_bytes(value).decode()


def encode_json_bytes(value: Any) -> bytes:
    """A record as indented JSON text in UTF-8, which ends in a newline."""
    try:
        text = msgspec.json.encode(value)
    except UnicodeEncodeError:  # a file name that is not valid UTF-8
        text = msgspec.json.encode(_escape_bytes(msgspec.to_builtins(value)))
    return msgspec.json.format(text, indent=2) + b"\n"


def _escape_bytes(value: Any) -> Any:
    r"""`value` with bytes that are not valid UTF-8 escaped as in \xff."""
    if isinstance(value, dict):
        return {key: _escape_bytes(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_escape_bytes(item) for item in value]
    if isinstance(value, str):
        return os.fsencode(value).decode("utf-8", "backslashreplace")
    return value
