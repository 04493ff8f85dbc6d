"""The commands of `ssdlab run`: one for each experiment, made from its parameters, and `resume`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import MISSING
from pathlib import Path
from typing import Annotated, Any, Final, Literal, cast

import typer
from typer.core import TyperCommand

from ssdlab.cli import exports, options
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
    ("html", exports.Html, None),
    ("markdown", exports.Markdown, None),
    ("csv", exports.Csv, None),
)
"""Options that every experiment has: name, annotation, default."""

WithoutTargets = Callable[[Parameters, OutputOptions], int]


def experiment_command(
    parameters: type[Parameters],
    *,
    command_class: type[TyperCommand] | None = None,
    targets: Any = options.Targets,
    without_targets: WithoutTargets | None = None,
) -> typer.Typer:
    """An app with one command, which runs an experiment on one or more targets.

    `without_targets` makes the targets optional; it is called if none is given.
    """

    def run(**arguments: Any) -> int:
        from ssdlab.cli.run_experiment import run_on_targets

        values = parameters(**_values(parameters, arguments))
        output = OutputOptions(
            **{name: arguments[name] for name in ("out", "json", "quiet", "yes")},
            exports=exports.Exports(*(arguments[name] for name in ("html", "markdown", "csv"))),
        )
        if without_targets is not None and not arguments["targets"]:
            return without_targets(values, output)
        parsed = options.parse_targets(arguments["targets"], arguments["capacity"])
        consent = arguments.get("destroy_data", NO_CONSENT)
        return run_on_targets(values, parsed, consent, output, arguments["seed"])

    own = [_option(field) for field in parameters.described_fields().values()]
    shared = [
        _keyword(name, annotation, default)
        for name, annotation, default in _SHARED
        if not (name == "destroy_data" and parameters.on_twins_only)
    ]
    default = inspect.Parameter.empty if without_targets is None else None
    target = inspect.Parameter("targets", _POSITIONAL, annotation=targets, default=default)
    positional = [parameter for parameter in own if parameter.kind is _POSITIONAL]
    keywords = [parameter for parameter in own if parameter.kind is not _POSITIONAL]
    _set_signature(run, [*positional, target, *keywords, *shared])
    run.__doc__ = parameters.__doc__
    app = typer.Typer(add_completion=False)
    group = "" if without_targets else "run "
    name, epilog = parameters.experiment(), f"Example: ssdlab {group}{parameters.example}"
    app.command(name, cls=command_class, epilog=epilog)(run)
    return app


_POSITIONAL: Final = inspect.Parameter.POSITIONAL_OR_KEYWORD


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, annotation=annotation, default=default)


def _set_signature(run: Any, signature: Sequence[inspect.Parameter]) -> None:
    """Typer reads names and defaults from the signature, and types from the annotations."""
    run.__signature__ = inspect.Signature(signature, return_annotation=int)
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in signature}


def _option(field: Field) -> inspect.Parameter:
    described = field.parameter
    if described.argument:
        argument = typer.Argument(metavar=field.option, help=described.help)
        return inspect.Parameter(field.name, _POSITIONAL, annotation=Annotated[Path, argument])
    default = inspect.Parameter.empty if field.default is MISSING else field.default
    if described.spelling is not None:
        default = described.spelling.write(field.default)
    name = described.off or field.option
    option = typer.Option(name, *described.also, metavar=described.metavar, help=described.help)
    annotation = cast("Any", Annotated)[_type_of(field), option]
    return _keyword(_argument_name(field), annotation, False if described.off else default)


def _argument_name(field: Field) -> str:
    return field.parameter.off.lstrip("-").replace("-", "_") or field.name


def _type_of(field: Field) -> Any:
    spelling = field.parameter.spelling
    if spelling is not None:
        return Literal[spelling.choices] if spelling.choices else str
    if field.is_size or field.is_duration:
        return str | None if field.default is None else str
    return Path if field.type == Path | str else field.type


def _values(parameters: type[Parameters], arguments: dict[str, Any]) -> dict[str, Any]:
    values = {}
    for field in parameters.described_fields().values():
        value = arguments[_argument_name(field)]
        if field.parameter.off:
            value = not value
        elif field.parameter.spelling is not None:
            value = field.parameter.spelling.read(value)
        values[field.name] = value
    return values


app = typer.Typer(add_completion=False)


@app.command(
    name="resume",
    epilog="Example: ssdlab run resume ssdlab-runs/20261121-101500-aging-data-3f2a",
)
def run(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="RUN", help="The folder of a run.", autocompletion=options.complete_run
        ),
    ],
    *,
    destroy_data: options.DestroyData = NO_CONSENT,
    json: options.Json = False,
    quiet: options.Quiet = False,
    yes: options.Yes = False,
    html: exports.Html = None,
    markdown: exports.Markdown = None,
    csv: exports.Csv = None,
) -> int:
    """Resume a run that was interrupted or killed.

    Finished steps are kept. A block device is used in the state that the run left. In a directory
    the test file is created again, so writes are repeated and only finished reads are kept. A twin
    starts from the beginning: the same seed gives the same results.
    """
    from ssdlab.cli.run_experiment import resume_run

    files = exports.Exports(html, markdown, csv)
    output = OutputOptions(folder.parent, json, quiet, yes, exports=files)
    return resume_run(folder, destroy_data, output)
