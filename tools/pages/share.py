"""What an installation has below share/: manual pages, shell completions, licences of its crates.

Usage: PYTHONPATH=tools:python python -m pages.share FOLDER

A wheel and the Debian package install the result; bash, zsh, fish and man find it there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from typer import completion

from pages import manual
from pages.commands import PROGRAM

COMPLETIONS: Final = {
    "bash": f"bash-completion/completions/{PROGRAM}",
    "zsh": f"zsh/site-functions/_{PROGRAM}",
    "fish": f"fish/vendor_completions.d/{PROGRAM}.fish",
}
# zsh loads the file as the function _ssdlab at the first Tab: that call must complete, too.
_FIRST_TAB: Final = f'\n[ "$funcstack[1]" != _{PROGRAM} ] || _{PROGRAM}_completion "$@"'


def files() -> Iterator[tuple[str, str]]:
    """Paths below share/ and contents."""
    for name, text in manual.pages().items():
        yield f"man/man1/{name}", text
    for shell, path in COMPLETIONS.items():
        script = completion.get_completion_script(  # type: ignore[attr-defined]  # not in __all__
            prog_name=PROGRAM, complete_var=f"_{PROGRAM.upper()}_COMPLETE", shell=shell
        )
        yield path, script + (_FIRST_TAB if shell == "zsh" else "") + "\n"


def main(folder: Path) -> None:
    """Write the files."""
    for path, text in files():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
