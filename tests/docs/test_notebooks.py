"""The notebooks run as they stand, and print what is stored with them."""

import re
from pathlib import Path

import pytest
from doc_blocks import difference

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))


def printed(notebook) -> str:
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    texts = [output.get("text") or output["data"]["text/plain"] for output in outputs]
    return re.sub(r"\x1b\[[\d;]*m", "", "\n".join(texts))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_prints_what_it_shows(path: Path) -> None:
    for module in ("ipykernel", "matplotlib", "pandas", "scipy"):
        pytest.importorskip(module)
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    notebook = nbformat.read(path, 4)
    stored = printed(notebook)
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(path.parent)}}).execute()
    problem = difference(stored, printed(notebook), loose=True)
    assert not problem, f"{problem}\n--- stored\n{stored}\n--- printed\n{printed(notebook)}"
