"""The parameters of an experiment, declared once as an annotated dataclass.

The fields of a subclass of `Parameters` define the command-line options and their help, the
arguments of the Python API, the entry `options` of a run's manifest, the command that repeats a
run, and labels in reports. This module and all `parameters` modules import nothing slow:
`ssdlab run --help` loads every one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Final, get_args, get_type_hints

from ssdlab.errors import UsageError
from ssdlab.units import (
    exact_size,
    format_duration,
    format_size,
    nearest_multiples,
    parse_duration,
    parse_size,
)

MIB: Final = 1 << 20

Size = int | str
"""Bytes, or a text with a unit: "512MiB"."""
Duration = float | str
"""Seconds, or a text with a unit: "5min"."""


@dataclass(frozen=True)
class Spelling:
    """Converts a value from and to its text on the command line.

    `read` raises UsageError with the option's name. `choices` are the allowed texts, if there are
    only a few.
    """

    read: Callable[[str], Any]
    write: Callable[[Any], str]
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Parameter:
    """Describes a field of `Parameters`: `Annotated[TYPE, Parameter(help, ...)]`.

    `option` is the option's name if it is not --NAME, or "--on/--off" for a flag. `also` are other
    spellings that are accepted. `off` is the flag that turns off a field that is on by default.
    `argument` makes it a positional argument. `label` names it in reports; `key` is its key in
    stored parameters, with its unit. `least`, `most` and `step` bound a size in bytes or a duration
    in seconds.
    """

    help: str
    option: str = ""
    also: tuple[str, ...] = ()
    off: str = ""
    argument: bool = False
    metavar: str | None = None
    spelling: Spelling | None = None
    label: str = ""
    key: str = ""
    least: int = 0
    most: float | None = None
    step: int = 1


@dataclass(frozen=True)
class Field:
    """A field of `Parameters`: name, type, default (`dataclasses.MISSING` if it has none)."""

    name: str
    type: Any
    default: Any
    parameter: Parameter

    @property
    def option(self) -> str:
        """The option's name, such as `--drive-writes`; the metavar of a positional argument."""
        if self.parameter.argument:
            return self.parameter.metavar or self.name.upper()
        return self.parameter.option or f"--{self.name.replace('_', '-')}"

    @property
    def is_size(self) -> bool:
        """Whether values are sizes, in bytes or with a unit."""
        return self.type in (Size, Size | None)

    @property
    def is_duration(self) -> bool:
        """Whether values are durations, in seconds or with a unit."""
        return bool(self.type == Duration)

    def write(self, value: Any) -> str:
        """A value as text of the command line."""
        if self.parameter.spelling is not None:
            return self.parameter.spelling.write(value)
        if isinstance(value, str):
            return value
        if self.is_size:
            return exact_size(value)
        return f"{value!r}s" if self.is_duration else str(value)


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """The parameters of an experiment. The docstring of a subclass is the help of its command.

    The subclass has the experiment's name (`Aging` for `aging`) and is in the module `parameters`
    of the experiment's package. `example` is shown below the help. `sized_by` is the field with
    the number of bytes used on the target. `on_twins_only` forbids real drives.
    """

    example: ClassVar[str] = ""
    sized_by: ClassVar[str] = "size"
    on_twins_only: ClassVar[bool] = False

    @classmethod
    def experiment(cls) -> str:
        """The experiment's name."""
        return cls.__name__.lower()

    @classmethod
    def described_fields(cls) -> Mapping[str, Field]:
        """The fields by name, in order of definition."""
        hints = get_type_hints(cls, include_extras=True)
        described = {}
        for field in fields(cls):
            kind, parameter = get_args(hints[field.name])[:2]
            described[field.name] = Field(field.name, kind, field.default, parameter)
        return described

    @classmethod
    def size_option(cls) -> str:
        """The option or file that determines the size; named in errors about free space."""
        field = cls.described_fields().get(cls.sized_by)
        return cls.sized_by if field is None else field.option

    @classmethod
    def labels(cls) -> dict[str, str]:
        """Labels for reports, by the key of the stored value."""
        described = [field.parameter for field in cls.described_fields().values()]
        return {parameter.key: parameter.label for parameter in described if parameter.label}

    def options(self) -> dict[str, str | bool]:
        """The parameters that differ from their defaults, as options of the command line."""
        changed: dict[str, str | bool] = {}
        for field in self.described_fields().values():
            value = getattr(self, field.name)
            if value == field.default:
                continue
            if value is True:
                changed[field.option] = True
            elif value is False:
                changed[field.parameter.off or field.option.partition("/")[2]] = True
            else:
                changed[field.option] = field.write(value)
        return changed

    def size_bytes(
        self, default: int, name: str = "size", *, most: int | None = None, why_most: str = ""
    ) -> int:
        """A size in bytes, or `default` if it was not given.

        `most` is an upper limit that depends on the target; `why_most` explains it in the error.

        Raises:
            UsageError: not a size, or out of the bounds of its annotation.
        """
        field = self.described_fields()[name]
        value, bounds = getattr(self, name), field.parameter
        size = default if value is None else _parse(value, parse_size, field)
        if size < bounds.least or size % bounds.step or (most is not None and size > most):
            upper = "" if most is None else f" and at most {format_size(most)}{why_most}"
            text = value if isinstance(value, str) else f"{size} bytes"
            nearest = nearest_multiples(size, bounds.step, bounds.least, most)
            advice = f"; give {nearest}" if nearest else ""
            raise UsageError(
                f"{field.option} is {text}; it must be a multiple of {format_size(bounds.step)}, "
                f"at least {format_size(bounds.least)}{upper}{advice}"
            )
        return size

    def seconds(self, name: str) -> float:
        """The seconds of a duration.

        Raises:
            UsageError: not a duration, or longer than its annotation allows.
        """
        field, value = self.described_fields()[name], getattr(self, name)
        seconds = float(_parse(value, parse_duration, field))
        most = float("inf") if field.parameter.most is None else field.parameter.most
        if not 0 <= seconds < float("inf") or seconds > most:
            upper = f"up to {format_duration(most)}" if most < float("inf") else "0 or more"
            text = value if isinstance(value, str) else f"{value} s"
            raise UsageError(f"{field.option} is {text}; it must be {upper}, such as 5min")
        return seconds


def _parse(value: Any, parse: Callable[[str], Any], field: Field) -> Any:
    """A number as it is, or a text parsed; an error names the option."""
    if not isinstance(value, str):
        return value
    try:
        return parse(value)
    except UsageError as error:
        raise UsageError(f"{field.option}: {error}") from error


def percentages(option: str) -> Spelling:
    """Spells shares (0 to 1) as percentages: `7%,15%,28%`."""

    def read(text: str) -> tuple[float, ...]:
        words = [word.strip() for word in text.split(",") if word.strip()]
        try:
            shares = tuple(float(word.removesuffix("%")) / 100 for word in words)
        except ValueError:
            shares = ()
        if len(shares) < len(words) or not all(word.endswith("%") for word in words):
            raise UsageError(
                f"{option} is {text!r}; it must be percentages separated by commas: 7%,15%,28%"
            )
        return shares

    return Spelling(read, lambda shares: ",".join(f"{round(100 * s, 9):g}%" for s in shares))


def _names(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


NAMES: Final = Spelling(_names, ",".join)
"""Names separated by commas."""

SIZE_HELP: Final = "Size of the test file or region."
Quick = Annotated[bool, Parameter("Smaller and shorter; less exact.")]
