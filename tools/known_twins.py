"""Small twins with known parameters, for tests and benches."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssdlab.device import describe_twin

MIB = 1 << 20


@dataclass(frozen=True)
class KnownTwin:
    """A small drive; sizes are bytes, or text with a unit.

    `flash`, `ftl` and `slc` are TOML lines.
    """

    capacity: int = 512 * MIB
    spare: float = 0.10
    dies: int = 4
    planes: int = 1
    pages_per_block: int = 16
    read: str = '["50 us", "65 us", "80 us"]'
    program: str = "700 us"
    link: str = "2000 MiB/s"
    buffer: str = "1 MiB"
    capacitors: bool = False
    ftl: str = 'victim = "greedy"'
    slc: str = ""
    unit: str = "4 KiB"
    flash: str = ""

    @property
    def text(self) -> str:
        """The profile as TOML."""
        slc = f"[slc]\n{self.slc}\n" if self.slc else ""
        return f"""[drive]
model = "known"
capacity = "{self.capacity} B"
interface = "nvme"
[link]
bandwidth = "{self.link}"
read_overhead = "20 us"
write_overhead = "4 us"
max_transfer = "256 KiB"
[flash]
channels = {self.dies}
dies_per_channel = 1
planes = {self.planes}
page = "16 KiB"
pages_per_block = {self.pages_per_block}
read = {self.read}
program = "{self.program}"
erase = "3500 us"
channel_bandwidth = "533 MB/s"
{self.flash}
[ftl]
mapping_unit = "{self.unit}"
spare = {self.spare}
{self.ftl}
[buffer]
size = "{self.buffer}"
power_loss_protection = {str(self.capacitors).lower()}
{slc}"""

    def describe(self) -> dict[str, Any]:
        """The geometry that the model derives from the profile."""
        return describe_twin("known", self.text)

    @property
    def usable_spare(self) -> float:
        """Hidden / all flash, without the three superblocks that garbage collection occupies.

        These are two in reserve and the one being filled (docs/models/collection.md).
        """
        geometry = self.describe()
        usable = (int(geometry["superblocks"]) - 3) * int(geometry["superblock_bytes"])
        return 1 - self.capacity / usable

    def target(self, folder: Path) -> str:
        """Write the profile into `folder`; returns its TARGET."""
        path = folder / "known.toml"
        path.write_text(self.text)
        return f"twin:{path}"
