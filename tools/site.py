"""A hook of mkdocs: the site also has files that live outside of docs/, and links to them work.

CHANGELOG.md and benchmarks/README.md become pages. Each other file that a page links to as `../PATH` (a test of the
gallery, a dashboard) is copied to `source/PATH`.
"""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PAGES = {"CHANGELOG.md": "CHANGELOG.md", "benchmarks/README.md": "FIGURES.md"}
"""Files of the repository that are pages of the site, with the page's path."""

LINK_OUT = re.compile(r"\]\(\.\./([^)#\s]+)")
LINK_IN = re.compile(r"\]\((?:\.\./)?docs/")


def target(path: str) -> str:
    """The path in the site of a file that stands at `path` in the repository, outside of docs/."""
    return PAGES.get(path, f"source/{path}")


def rewritten(markdown: str) -> str:
    """The text of a page of docs/ with its links to files outside of docs/ changed to those of the site."""
    return LINK_OUT.sub(lambda link: f"]({target(link[1])}", markdown)


def rewritten_from_outside(markdown: str) -> str:
    """The text of one of PAGES with its links to docs/ changed to those of the site."""
    return LINK_IN.sub("](", markdown)


def linked_files(docs: Path) -> set[str]:
    """The paths of all files outside of docs/ that its pages link to."""
    return {path for page in docs.glob("*.md") for path in LINK_OUT.findall(page.read_text())}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for path in sorted({*linked_files(Path(config.docs_dir)), *PAGES}):
        files.append(File.generated(config, target(path), abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    uri = page.file.src_uri
    if uri in PAGES.values():
        return rewritten_from_outside(markdown)
    return rewritten(markdown) if "/" not in uri else markdown
