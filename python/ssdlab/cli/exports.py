"""The options --html, --markdown and --csv: files, or standard output, with a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from ssdlab.cli.output import require_file, write_out
from ssdlab.errors import UsageError

if TYPE_CHECKING:
    from ssdlab.records import Run
    from ssdlab.report.group import GroupReport

STDOUT: Final = Path("-")

Html = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write one HTML file; - is stdout, with nothing else."),
]
Markdown = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write Markdown; - is stdout, with nothing else."),
]
Csv = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write the rows as CSV; - is stdout, with nothing else."),
]


@dataclass(frozen=True)
class Exports:
    """The files to write; `STDOUT` means standard output."""

    html: Path | None = None
    markdown: Path | None = None
    csv: Path | None = None

    @property
    def names(self) -> list[str]:
        """The names of the requested outputs."""
        return list(self._paths)

    @property
    def use_stdout(self) -> bool:
        """Whether one of them is standard output, which then has nothing else."""
        return STDOUT in self._paths.values()

    @property
    def _paths(self) -> dict[str, Path]:
        paths = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: path for name, path in paths.items() if path is not None}

    def check(self, *, json: bool) -> None:
        """Check before a long measurement that the files can be written.

        Raises:
            UsageError: a directory is missing, or two outputs share standard output.
        """
        for name, path in self._paths.items():
            if path != STDOUT:
                require_file(f"--{name}", path)
        on_stdout = [f"--{name} -" for name, path in self._paths.items() if path == STDOUT]
        on_stdout += ["--json"] if json else []
        if len(on_stdout) > 1:
            raise UsageError(
                f"{' and '.join(on_stdout)} both print on standard output; give one of them a file"
            )

    def write(
        self,
        runs: Sequence[Run],
        group: GroupReport | None = None,
        rows: Iterable[Mapping[str, Any]] | None = None,
    ) -> list[Path]:
        """Write the outputs; returns the files. `rows` are those of the CSV [the measures].

        Raises:
            UsageError: a file cannot be written.
        """
        from ssdlab.report.html import html_page, put
        from ssdlab.report.markdown import as_markdown, measures_of, rows_as_csv

        written = []
        for name, path in self._paths.items():
            if name == "html":
                text = html_page(list(runs), group)
            elif name == "markdown":
                text = as_markdown(runs, group)
            else:
                text = rows_as_csv(measures_of(runs) if rows is None else rows)
            if path == STDOUT:
                write_out(text)
            else:
                put(path, text)
                written.append(path.resolve())
        return written

    def show(
        self,
        group: GroupReport,
        runs: Sequence[Run],
        rows: Iterable[Mapping[str, Any]],
        document: Any = None,
        places: Sequence[str] = (),
    ) -> None:
        """Write the outputs, and print the report and its places, or else `document` as JSON.

        Raises:
            UsageError: a file cannot be written.
        """
        from rich.console import Console

        from ssdlab.json_text import encode_json
        from ssdlab.report import render_group

        written = self.write(runs, group, rows)
        if document is not None:
            write_out(encode_json(document))
        elif not self.use_stdout:
            console = Console()
            render_group(group, console)
            for place in (*places, *written):
                console.print(f" {place}", markup=False, highlight=False, soft_wrap=True)


NO_EXPORTS: Final = Exports()
