"""What MkDocs does for the site beside mkdocs.yml: it takes in what lies outside of docs/.

Pages are written for a reader of the repository, so their links lead to files of it. In the site
the notebooks of examples/ are pages under examples/, and other files, as far as pages lead to them,
copies under repository/.
"""

import json
import os
import re
from pathlib import Path

from mkdocs.structure.files import File

DOCS = Path(__file__).parent
ROOT = DOCS.parent
_LINK = re.compile(r"\[([^][]*)\]\((?!https?:)([^)#\s]+)(#[^)\s]*)?\)")
_FENCED = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)


def on_files(files, config):
    """Add the notebooks, and the files to which pages lead, and those to which these lead."""
    for path in sorted(ROOT.glob("examples/*.ipynb")):
        text, pictures = notebook_page(path)
        files.append(File.generated(config, _place(path), content=text))
        for name, picture in pictures.items():
            files.append(File.generated(config, f"examples/{name}", content=picture))
    pages = [Path(file.abs_src_path) for file in files.documentation_pages() if file.abs_src_path]
    known = set(pages)
    for page in pages:  # grows
        for _, link, _ in _LINK.findall(page.read_text()):
            path = (page.parent / link).resolve()
            if path in known or path.is_relative_to(DOCS) or not path.is_file():
                continue
            known.add(path)
            if path.suffix != ".ipynb":
                files.append(File.generated(config, _place(path), abs_src_path=str(path)))
            if path.suffix == ".md":
                pages.append(path)
    return files


def on_page_markdown(markdown, page, config, files):
    """Turn links to files of the repository into those to their places in the site."""
    uri = page.file.src_uri
    examples = uri.startswith("examples/")
    folder = ROOT / "examples" if examples else Path(page.file.abs_src_path).parent

    def turned(found):
        text, link, anchor = found.groups()
        path = (folder / link).resolve()
        if examples and not path.exists():  # a picture of the page
            return found[0]
        if path.is_dir():  # there is no page to lead to
            return text
        place = os.path.relpath(_place(path), os.path.dirname(uri))
        return f"[{text}]({place}{anchor or ''})"

    parts = _FENCED.split(markdown)
    return "".join(part if n % 2 else _LINK.sub(turned, part) for n, part in enumerate(parts))


def notebook_page(path):
    """Return a notebook as Markdown, and its pictures by name."""
    parts, pictures = [], {}
    for cell in json.loads(path.read_text())["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            picture = "".join(output.get("data", {}).get("image/svg+xml", ""))
            if picture:
                name = f"{path.stem}_{len(pictures) + 1}.svg"
                pictures[name] = picture
                parts.append(f"![The board]({name})")
            elif output["output_type"] == "stream":
                parts.append(f"```text\n{''.join(output['text'])}```")
    return "\n\n".join(parts), pictures


def _place(path):
    """Return where a file of the repository is in the site."""
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS).as_posix()
    place = path.relative_to(ROOT).as_posix()
    return place.replace(".ipynb", ".md") if path.suffix == ".ipynb" else f"repository/{place}"
