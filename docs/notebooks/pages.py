"""Pages of the notebooks, for the site: cells and the outputs that are stored with them (see `hooks` in mkdocs.yml)."""

import json
import re
from html import unescape
from pathlib import Path


def on_files(files, config):
    from mkdocs.structure.files import File

    for path in sorted(Path(__file__).parent.glob("*.ipynb")):
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=page(path)))
    return files


def on_page_markdown(markdown, page, **_):
    """Links to notebooks lead to their pages; a page of a notebook keeps the one to its file."""
    return markdown if page.file.generated_by else re.sub(r"(notebooks/\w+)\.ipynb\)", r"\1.md)", markdown)


def page(path: Path) -> str:
    """Markdown of a notebook."""
    title, *parts = [part for cell in json.loads(path.read_text("utf-8"))["cells"] for part in parts_of(cell)]
    heading, _, opening = title.partition("\n")
    return "\n\n".join([heading, f"[Download]({path.name}) this page as a notebook.", opening, *parts]) + "\n"


def parts_of(cell):
    text = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return [text]
    return [f"```python\n{text}\n```", *map(output, cell["outputs"])]


def output(found):
    """Text, HTML or a figure; terminal colours are left out."""
    data = found.get("data", {})
    if "image/png" in data:
        return f"![Figure](data:image/png;base64,{data['image/png'].strip()})"
    html = "".join(data.get("text/html", []))
    if html and not html.startswith("<pre"):
        return html
    text = unescape(re.sub("<.*?>", "", html)) or "".join(found.get("text") or data["text/plain"])
    return "```text\n" + re.sub(r"\x1b\[[\d;]*m", "", text).rstrip() + "\n```"
