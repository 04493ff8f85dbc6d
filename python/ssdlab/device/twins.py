"""Twins: drives in virtual time, created from the text of a profile; served by NBD and NVMe/TCP."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any, Final, Literal

import msgspec

from ssdlab._native import Drive, Server, describe_profile
from ssdlab.device.recorded import recorded
from ssdlab.errors import TargetError, UsageError
from ssdlab.units import format_size

CAPACITY_MAX: Final = 1 << 62
"""Largest capacity of a twin in bytes: addresses have 32 bits, byte counts 64."""


def open_twin(
    name: str, profile: str, capacity_bytes: int | None = None, *, seed: int = 0
) -> Drive:
    """A new twin of a profile, scaled to `capacity_bytes` if given.

    The seed determines random choices in the model, such as victims.

    Raises:
        TargetError: the profile is invalid; the message has its name, the key and allowed values.
    """
    with _errors_with_name(name, capacity_bytes):
        drive = Drive.twin(profile, capacity_bytes, seed=seed)
    return recorded(drive, profile, capacity_bytes, seed)


def open_mirror(
    name: str, profile: str, capacity_bytes: int | None = None, *, seed: int = 0
) -> Drive:
    """Two new twins of a profile as RAID 1, each scaled to `capacity_bytes` if given.

    Raises:
        TargetError: as `open_twin`.
    """
    with _errors_with_name(name, capacity_bytes):
        return Drive.mirror(profile, capacity_bytes, seed=seed)


def describe_twin(name: str, profile: str, capacity_bytes: int | None = None) -> dict[str, Any]:
    """Describes a profile's twin: model, sizes in bytes, number of dies, spare and more.

    Raises:
        TargetError: as `open_twin`.
    """
    with _errors_with_name(name, capacity_bytes):
        return describe_profile(profile, capacity_bytes)


@contextlib.contextmanager
def _errors_with_name(name: str, capacity_bytes: int | None) -> Iterator[None]:
    scaled = "" if capacity_bytes is None else f" scaled to {format_size(capacity_bytes)}"
    if capacity_bytes is not None and not 0 < capacity_bytes <= CAPACITY_MAX:
        raise TargetError(
            f"{name}{scaled}: the capacity must be 1 B to {format_size(CAPACITY_MAX)}"
        )
    try:
        yield
    except TargetError as error:
        raise TargetError(f"{name}{scaled}: {error}") from error


class ServeOptions(msgspec.Struct, frozen=True):
    """Options of a server.

    `address`: NBD listens here, a socket path (unix) or `host:port` (tcp; port 0 takes a free one);
    None: no NBD. `nvme_tcp`: NVMe/TCP listens on this `host:port`; with `dhchap_secret`
    (`DHHC-1:NN:BASE64:`) hosts must authenticate. `control`: path of the control socket (see
    `Control`). `data`: sparse file with the content, which outlives the server; None: memory.
    `log`: a new file that gets each change, in the format of dm-log-writes. `pace`: seconds of the
    drive's clock per second; None: as fast as possible. `tls`: folder with server-cert.pem and
    server-key.pem; NBD clients must use TLS, and with `tls_verify_peer` present a certificate
    signed by its ca-cert.pem.

    Limits: `max_connections` of NBD and NVMe together (None: 2000, or fewer if the limit of open
    files is lower); `payload_memory_bytes` for payloads being received, over all connections;
    `handshake_timeout_s` for a handshake, and for each piece of a payload.
    """

    name: str
    kind: Literal["unix", "tcp"]
    address: str | None
    nvme_tcp: str | None = None
    dhchap_secret: str | None = None
    capacity_bytes: int | None = None
    control: str | None = None
    data: str | None = None
    log: str | None = None
    pace: float | None = None
    seed: int = 0
    tls: str | None = None
    tls_verify_peer: bool = False
    max_connections: int | None = None
    payload_memory_bytes: int = 128 << 20
    handshake_timeout_s: float = 10.0


def serve(profile: str, options: ServeOptions) -> Server:
    """Starts a server for the twin of a profile's text; it runs until `stop`.

    Raises:
        TargetError: the profile is invalid.
        UsageError: an address or file cannot be used, or the secret is not valid.
    """
    try:
        return Server.start(profile, msgspec.json.encode(options).decode())
    except TargetError as error:
        raise TargetError(f"{options.name}: {error}") from error
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error.strerror or str(error)
        addresses = " and ".join(filter(None, (options.address, options.nvme_tcp)))
        raise UsageError(
            f"{options.name} cannot be served: {error.filename or addresses}: {reason}; "
            "give free sockets and ports, a data file of the drive's size, and a new log file"
        ) from error
