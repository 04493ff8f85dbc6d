"""Twins on the wire: served as block devices, so that any program runs on them."""

from __future__ import annotations

import os
from typing import Literal

import msgspec

from ssdlab._native import Server
from ssdlab.errors import TargetError, UsageError


class ServeOptions(msgspec.Struct, frozen=True):
    """How a twin is served.

    `address` is where NBD's clients come: a socket's path (unix) or `host:port` (tcp; port 0 takes
    a free one), or None; `nvme_tcp` a `host:port` for NVMe's hosts, who have to prove that they
    know `dhchap_secret`, if there is one (`DHHC-1:NN:BASE64:`). `control` is the path of its
    control socket (see `Control`), None for none. Its content lies in memory, or in the sparse file
    `data`, which survives; each of its changes is logged in the new file `log`, as dm-log-writes
    does. `pace` is how many seconds of the drive pass in a second; None for as fast as can be.
    `tls` is a folder with server-cert.pem and server-key.pem: then clients have to encrypt, and
    with `tls_verify_peer` to show a certificate that its ca-cert.pem vouches for.

    What clients may take of this machine: `max_connections` of NBD and NVMe at a time (None: 2000,
    or as many as this process may open files for), `payload_memory_bytes` for payloads that are
    being received on all of them together, and `handshake_timeout_s` for a handshake and for each
    next piece of a payload.
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
    """Starts a server of the twin of a profile's text; it runs until it is stopped.

    Raises:
        TargetError: a wrong profile.
        UsageError: the address or the file cannot be had, or the secret is none.
    """
    try:
        return Server.start(profile, msgspec.json.encode(options).decode())
    except TargetError as error:
        raise TargetError(f"{options.name}: {error}") from error
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error.strerror or str(error)
        places = " and ".join(filter(None, (options.address, options.nvme_tcp)))
        raise UsageError(
            f"{options.name} cannot be served: {error.filename or places}: {reason}; "
            "give sockets and ports that are free, a data file of the drive's size, and a new log"
        ) from error
