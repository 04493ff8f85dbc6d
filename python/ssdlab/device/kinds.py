"""Patterns, arrivals, durability, hints and content of a job, and their JSON encoding."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

WriteHint: TypeAlias = Literal["nothing", "overwrite", "read"] | dict[str, int]

_Fields = TypeVar("_Fields", bound=msgspec.Struct)


class _Kind(msgspec.Struct, frozen=True, tag_field="kind"):
    """Base of the tagged unions: the field `kind` has the tag."""


class Zipf(_Kind, frozen=True, tag="zipf"):
    """Zipf's law: the block of rank n has a probability proportional to 1 / n^theta."""

    theta: float


class Strided(_Kind, frozen=True, tag="strided"):
    """A block every `stride_bytes`; the alignment shifts each further pass (0: by one block)."""

    stride_bytes: int
    alignment_bytes: int = 0


class Aligned(_Kind, frozen=True, tag="aligned"):
    """Random offsets that are multiples of an alignment, whatever the length of the request."""

    alignment_bytes: int


class Extents(_Kind, frozen=True, tag="extents"):
    """Only these extents: (offset on the device, length) in bytes; in order or at random."""

    list: tuple[tuple[int, int], ...]
    random: bool = False


class Listed(_Kind, frozen=True, tag="listed"):
    """The requests of a list, in order: offset and length in bytes, and the hint of a write.

    Hints: "nothing", "overwrite", {"after": offset of any byte of the block that this write
    continues}, {"stream": number}. "read" makes the request a read in a job of writes. The job's
    `block_bytes` is the length of the longest request.
    """

    list: tuple[tuple[int, int, WriteHint], ...]


class Rate(_Kind, frozen=True, tag="rate"):
    """An open loop with `per_s` requests per second, evenly spaced or as a Poisson process."""

    per_s: float
    poisson: bool = False


class FlushEvery(_Kind, frozen=True, tag="flush"):
    """A flush after every `every` completed writes."""

    every: int = 1


class Stream(_Kind, frozen=True, tag="stream"):
    """All writes belong to stream `number` (0 to 255): data with the same expected lifetime."""

    number: int


class Compressible(_Kind, frozen=True, tag="compressible"):
    """Of each 4 KiB, the share `to` (0 to 1) is random bytes, and the remainder zeros."""

    to: float


class Dedupable(_Kind, frozen=True, tag="dedupable"):
    """The share `to` (0 to 1) of the 4 KiB pieces is unique, the others are copies of one."""

    to: float


class Stamped(_Kind, frozen=True, tag="stamped"):
    """Each 512 bytes hold their offset, the run's number and a counter, checked by `verify`."""

    run: int


Pattern: TypeAlias = (
    Literal["sequential", "random", "random_once"] | Zipf | Strided | Aligned | Extents | Listed
)
Arrival: TypeAlias = Literal["closed"] | Rate
Sync: TypeAlias = Literal["none", "durable"] | FlushEvery
Hint: TypeAlias = Literal["none", "append", "overwrite"] | Stream
Content: TypeAlias = Literal["incompressible", "zeros"] | Compressible | Dedupable | Stamped


def encode(fields: msgspec.Struct) -> str:
    """The JSON text of a job or of options, in the format of the native module.

    A tagged union is encoded as `{"zipf": {"theta": 1.1}}`.
    """
    builtins: dict[str, Any] = msgspec.to_builtins(fields)
    for name, value in builtins.items():
        if isinstance(value, dict) and "kind" in value:
            builtins[name] = {value.pop("kind"): value}
    return msgspec.json.encode(builtins).decode()


def decode(text: str, fields: type[_Fields]) -> _Fields:
    """The inverse of `encode`; `fields` is the type.

    Raises:
        msgspec.MsgspecError: the text is of another type or version.
    """
    builtins: dict[str, Any] = msgspec.json.decode(text, type=dict[str, Any])
    for name, value in builtins.items():
        if isinstance(value, dict) and len(value) == 1:
            [(kind, parts)] = value.items()
            if isinstance(parts, dict):
                builtins[name] = {"kind": kind, **parts}
    return msgspec.convert(builtins, fields)
