"""Write the Homebrew formulas of a release into a tap.

    python packaging/tap.py dist/cogwork-1.2.3.tar.gz dist/tap --base-url https://example.com/v{version}

`Formula/cogwork.rb` installs this version. `Formula/cogwork@1.2.3.rb` installs it when later
versions are out, and formulas of earlier versions stay. With a commit for each release, an older
revision of the tap installs the version of its time.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from pathlib import Path

TEMPLATE = Path(__file__).with_name("homebrew") / "cogwork.rb"
ARCHIVE = re.compile(r"cogwork-(?P<version>\d[\w.]*)\.tar\.gz")
KEG_ONLY = "\n  keg_only :versioned_formula\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("archive", type=Path)
    parser.add_argument("tap", type=Path)
    parser.add_argument(
        "--base-url", required=True, help="where the archive can be downloaded; with {version}"
    )
    options = parser.parse_args()
    match = ARCHIVE.fullmatch(options.archive.name)
    if match is None:
        sys.exit(f"{options.archive} is not a source archive of cogwork; run `make tap`")
    version = match["version"]
    base = options.base_url.replace("{version}", version).rstrip("/")
    digest = hashlib.sha256(options.archive.read_bytes()).hexdigest()
    formulas = options.tap / "Formula"
    formulas.mkdir(parents=True, exist_ok=True)
    for name in ("cogwork", f"cogwork@{version}"):
        text = format_formula(name, f"{base}/{options.archive.name}", digest)
        (formulas / f"{name}.rb").write_text(text, encoding="utf-8")
        print(formulas / f"{name}.rb")
    return 0


def format_formula(name: str, url: str, digest: str) -> str:
    # Ruby reads "#{" in a string as code.
    if not re.fullmatch(r"(https|file)://[^\s\"#\\]+", url):
        sys.exit(f"{url} is not an address that a formula can have; write https://…")
    text = TEMPLATE.read_text(encoding="utf-8").partition("\n")[2]
    for placeholder, value in {
        "CLASS": class_name(name),
        "URL": url,
        "SHA256": digest,
        "KEG_ONLY": KEG_ONLY if "@" in name else "",
    }.items():
        text = text.replace(f"@{placeholder}@", value)
    return text


def class_name(formula: str) -> str:
    """Return the class that Homebrew looks for in the file: `cogwork@1.2.3` has CogworkAT123."""
    name, at, version = formula.partition("@")
    return name.capitalize() + ("AT" + version.replace(".", "") if at else "")


if __name__ == "__main__":
    sys.exit(main())
