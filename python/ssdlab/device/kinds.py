"""The kinds of pattern, arrival, durability and content that have numbers, and their JSON text."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

Said: TypeAlias = Literal["nothing", "overwrite"] | dict[str, int]

_Fields = TypeVar("_Fields", bound=msgspec.Struct)


class _Kind(msgspec.Struct, frozen=True, tag_field="kind"):
    """One of several kinds; `kind` names it in the text."""


class Zipf(_Kind, frozen=True, tag="zipf"):
    """Few blocks often: the one of rank n with a chance in proportion to 1 / n^theta."""

    theta: float


class Strided(_Kind, frozen=True, tag="strided"):
    """A block, a stride further the next; past the end from the start, shifted by the alignment.

    An alignment of 0 is a block.
    """

    stride_bytes: int
    alignment_bytes: int = 0


class Aligned(_Kind, frozen=True, tag="aligned"):
    """Each at a random multiple of an alignment, whatever its length."""

    alignment_bytes: int


class Extents(_Kind, frozen=True, tag="extents"):
    """Only in these extents, each (offset on the device, length) in bytes; in order or random."""

    list: tuple[tuple[int, int], ...]
    random: bool = False


class Listed(_Kind, frozen=True, tag="listed"):
    """The requests of a list in order: offset and length in bytes, what a write says of itself.

    "nothing", "overwrite", {"after": any byte of the block that it goes on after}, or
    {"stream": number}. The job's `block_bytes` is the longest.
    """

    list: tuple[tuple[int, int, Said], ...]


class Rate(_Kind, frozen=True, tag="rate"):
    """An open loop: so many requests a second, evenly or at random (a Poisson process)."""

    per_s: float
    poisson: bool = False


class FlushEvery(_Kind, frozen=True, tag="flush"):
    """A flush after each so many writes that are done."""

    every: int = 1


class Stream(_Kind, frozen=True, tag="stream"):
    """All writes belong to the stream of this number, 0 to 255: thought to die together."""

    number: int


class Compressible(_Kind, frozen=True, tag="compressible"):
    """Of each 4 KiB this share is random bytes, and the rest zeros."""

    to: float


class Dedupable(_Kind, frozen=True, tag="dedupable"):
    """Of the 4 KiB blocks this share is new, the others are copies of one."""

    to: float


class Stamped(_Kind, frozen=True, tag="stamped"):
    """Each 512 bytes carry their offset, the run's number and a count: `verify` reads them back."""

    run: int


Pattern: TypeAlias = (
    Literal["sequential", "random", "random_once"] | Zipf | Strided | Aligned | Extents | Listed
)
Arrival: TypeAlias = Literal["closed"] | Rate
Sync: TypeAlias = Literal["none", "durable"] | FlushEvery
Hint: TypeAlias = Literal["none", "append", "overwrite"] | Stream
Content: TypeAlias = Literal["incompressible", "zeros"] | Compressible | Dedupable | Stamped


def encode(fields: msgspec.Struct) -> str:
    """The JSON text of a job or of options as the native module reads it.

    A kind stands there as `{"zipf": {"theta": 1.1}}`.
    """
    named: dict[str, Any] = msgspec.to_builtins(fields)
    for name, value in named.items():
        if isinstance(value, dict) and "kind" in value:
            named[name] = {value.pop("kind"): value}
    return msgspec.json.encode(named).decode()


def decode(text: str, fields: type[_Fields]) -> _Fields:
    """The fields whose text `encode` gave.

    Raises:
        msgspec.MsgspecError: it is the text of something else, or of another version.
    """
    named: dict[str, Any] = msgspec.json.decode(text, type=dict[str, Any])
    for name, value in named.items():
        if isinstance(value, dict) and len(value) == 1:
            [(kind, parts)] = value.items()
            if isinstance(parts, dict):
                named[name] = {"kind": kind, **parts}
    return msgspec.convert(named, fields)
