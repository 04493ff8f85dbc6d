"""The command of an experiment, made from its parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import MISSING
from pathlib import Path
from typing import Annotated, Any, Final, Literal, cast

import typer
from typer.core import TyperCommand

from ssdlab.cli import options
from ssdlab.cli.options import OutputOptions
from ssdlab.runner.parameters import Field, Parameters
from ssdlab.target import NO_CONSENT, RESULTS

_SHARED: Final[tuple[tuple[str, Any, Any], ...]] = (
    ("capacity", options.Capacity, None),
    ("destroy_data", options.DestroyData, NO_CONSENT),
    ("out", options.Out, RESULTS),
    ("seed", options.Seed, 0),
    ("json", options.Json, False),
    ("quiet", options.Quiet, False),
    ("yes", options.Yes, False),
)
"""Options of every experiment: name, annotation, default."""

WithoutTargets = Callable[[Parameters, OutputOptions], int]


def experiment_command(
    parameters: type[Parameters],
    *,
    command_class: type[TyperCommand] | None = None,
    targets: Any = options.Targets,
    without_targets: WithoutTargets | None = None,
) -> typer.Typer:
    """An app with one command: an experiment on the targets that the user names.

    `without_targets` makes the targets optional; it is called if there are none.
    """

    def run(**given: Any) -> int:
        from ssdlab.cli.run_experiment import conduct

        chosen = parameters(**_values(parameters, given))
        output = OutputOptions(given["out"], given["json"], given["quiet"], given["yes"])
        if without_targets is not None and not given["targets"]:
            return without_targets(chosen, output)
        named = options.parse_targets(given["targets"], given["capacity"])
        consent = given.get("destroy_data", NO_CONSENT)
        return conduct(chosen, named, consent, output, given["seed"])

    own = [_option(field) for field in parameters.described_fields().values()]
    shared = [
        _keyword(name, annotation, default)
        for name, annotation, default in _SHARED
        if not (name == "destroy_data" and parameters.on_twins_only)
    ]
    default = inspect.Parameter.empty if without_targets is None else None
    at = inspect.Parameter("targets", _POSITIONAL, annotation=targets, default=default)
    arguments = [each for each in own if each.kind is _POSITIONAL]
    keywords = [each for each in own if each.kind is not _POSITIONAL]
    _set_signature(run, [*arguments, at, *keywords, *shared])
    run.__doc__ = parameters.__doc__
    app = typer.Typer(add_completion=False)
    words = "" if without_targets else "run "
    name, epilog = parameters.experiment(), f"Example: ssdlab {words}{parameters.example}"
    app.command(name, cls=command_class, epilog=epilog)(run)
    return app


_POSITIONAL: Final = inspect.Parameter.POSITIONAL_OR_KEYWORD


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, annotation=annotation, default=default)


def _set_signature(run: Any, signature: Sequence[inspect.Parameter]) -> None:
    """What typer reads: the signature for names and defaults, the annotations for types."""
    run.__signature__ = inspect.Signature(signature, return_annotation=int)
    run.__annotations__ = {each.name: each.annotation for each in signature}


def _option(field: Field) -> inspect.Parameter:
    shown = field.parameter
    if shown.argument:
        argument = typer.Argument(metavar=field.option, help=shown.help)
        return inspect.Parameter(field.name, _POSITIONAL, annotation=Annotated[Path, argument])
    default = inspect.Parameter.empty if field.default is MISSING else field.default
    if shown.spelling is not None:
        default = shown.spelling.write(field.default)
    option = typer.Option(shown.off or field.option, metavar=shown.metavar, help=shown.help)
    name = shown.off.lstrip("-").replace("-", "_") or field.name
    kind = cast("Any", Annotated)[_type_of(field), option]
    return _keyword(name, kind, False if shown.off else default)


def _type_of(field: Field) -> Any:
    """What typer converts the option's text to."""
    spelling = field.parameter.spelling
    if spelling is not None:
        return Literal[spelling.choices] if spelling.choices else str
    if field.is_size or field.is_duration:
        return str | None if field.default is None else str
    return Path if field.type == Path | str else field.type


def _values(parameters: type[Parameters], given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of the dataclass, from those of the command."""
    values = {}
    for field in parameters.described_fields().values():
        shown = field.parameter
        if shown.off:
            values[field.name] = not given[shown.off.lstrip("-").replace("-", "_")]
        elif shown.spelling is not None:
            values[field.name] = shown.spelling.read(given[field.name])
        else:
            values[field.name] = given[field.name]
    return values
