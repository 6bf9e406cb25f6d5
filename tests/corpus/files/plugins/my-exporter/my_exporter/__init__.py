"""The loops of a design as CSV."""
import attrs
from sparsemap import Exporter, hookimpl


@attrs.frozen(kw_only=True)
class MyExporter(Exporter):
    """Loops from the outermost to the innermost, as CSV."""

    type_name = "my-exporter"
    file_name = "loops.csv"

    def text(self, result, problem, width=80):
        lines = ["level,dimension,bound"]
        for loop in result.best.design.loops:
            lines.append(f"{problem.mapping_levels[loop.group].name},{loop.dim},{loop.bound}")
        return "\n".join(lines) + "\n"


@hookimpl
def register_exporters():
    return [MyExporter]
