"""How the native module was built: commit, target and profile."""

from __future__ import annotations

from dataclasses import dataclass

from ssdlab._native import __commit__, __profile__, __target__


@dataclass(frozen=True)
class NativeBuild:
    """A build of the native module.

    `commit` is that of the checkout, with `+` if files differed from it; "" outside a checkout.
    `target` is Rust's name of the platform. `profile` is `release`, or `debug`, which is slow.
    """

    commit: str = __commit__
    target: str = __target__
    profile: str = __profile__

    def __str__(self) -> str:
        """In a few words, as `--version` prints it."""
        commit = f"commit {self.commit}" if self.commit else "commit unknown"
        return f"{commit}, {self.profile} build for {self.target}"
