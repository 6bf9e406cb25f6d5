"""Numbers that a result depends on come from functions of the text, never from NumPy's, the C library's or those of linear
algebra: these choose among variants by processor, and the last bit of a number may decide which design a search finds."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("sparsemap", "plugins")
LEFT_OUT = {
    "sparsemap/inner": "the functions themselves, with the machine's exact ones",
    "sparsemap/testing": "checks of plugins",
    "sparsemap/study": "means over finished searches, for people",
    "plugins/papers": "pages",
    "plugins/pruning": "training, by NumPy or torch",
    "plugins/reports": "pages",
    "plugins/searchers/baselines": "rivals, some of other libraries",
    "plugins/verify": "an execution compared with tolerances",
    "plugins/weight_blocks": "times of a mesh, as a whole",
    "plugins/chips/result.py": "means over finished chips, for people",
}
"""Where other functions are allowed, and why."""
ONLY_SIZES = {
    "sparsemap/problem/space.py": "log10",
    "plugins/searchers/prove.py": "log10",
    "sparsemap/pieces/varied.py": "log",
    "plugins/searchers/screening.py": "erfc",
    "sparsemap/spec/expressions.py": "power",
    "sparsemap/files.py": "**",
    "sparsemap/pieces/contracts/codec.py": "@",
    "plugins/analytic/bound_tiles.py": "@",
    "plugins/densities/footprints.py": "@",
    "plugins/densities/tensor_files.py": "@",
    "plugins/encodings/dataflow.py": "@",
    "sparsemap/spec/units.py": "**",
    "plugins/searchers/surrogate/features.py": "**",
}
"""Functions whose numbers are compared with limits far away, are told, or are whole; powers of negative numbers."""
ELEMENTARY = {
    "cbrt", "cos", "dot", "erf", "erfc", "exp", "exp2", "expm1", "float_power", "gamma", "lgamma", "log", "log10", "log1p",
    "log2", "logaddexp", "matmul", "pow", "power", "sin", "tan", "tanh",
}  # fmt: skip


def used(path: Path) -> set[str]:
    """Elementary functions of NumPy and the C library in a module, with their lines."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Attribute(value=ast.Name(id="np" | "math"), attr=name) if name in ELEMENTARY:
                found.add(f"{name}:{node.lineno}")
            case ast.BinOp(op=ast.MatMult()):
                found.add(f"@:{node.lineno}")
            case ast.BinOp(op=ast.Pow(), right=ast.Constant(value=int())):
                pass
            case ast.BinOp(op=ast.Pow(), left=ast.Constant(value=int())):
                pass
            case ast.BinOp(op=ast.Pow()):
                found.add(f"**:{node.lineno}")
    return found


MODULES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]


def test_results_depend_on_functions_of_the_text_alone():
    wrong = []
    for path in MODULES:
        name = path.relative_to(ROOT).as_posix()
        if any(name == place or name.startswith(f"{place}/") for place in LEFT_OUT):
            continue
        allowed = ONLY_SIZES.get(name, "")
        wrong += [f"{name}: {one}" for one in sorted(used(path)) if one.split(":")[0] != allowed]
    assert not wrong


@pytest.mark.parametrize(
    "text", ["np.log(x)", "math.exp(x)", "x ** 0.5", "x ** y", "2.0 ** x", "x @ y", "np.dot(x, y)"]
)
def test_the_search_for_other_functions_finds_them(text, tmp_path):
    (tmp_path / "one.py").write_text(text)
    assert used(tmp_path / "one.py")
