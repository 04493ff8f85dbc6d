"""Serving twins as block devices (NBD) and NVMe/TCP drives."""

from __future__ import annotations

import os
from typing import Literal

import msgspec

from ssdlab._native import Server
from ssdlab.errors import TargetError, UsageError


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
