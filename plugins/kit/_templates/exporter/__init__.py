"""A report, `plugin-name`."""

import attrs

from sparsemap import Exporter, hookimpl


@attrs.frozen(kw_only=True)
class PluginName(Exporter):
    """Loops from the outermost to the innermost, as CSV."""

    type_name = "plugin-name"
    file_name = "plugin-name.csv"

    def text(self, result, problem, width=80):
        lines = ["level,dimension,bound"]
        for loop in result.found.design.loops:
            lines.append(f"{problem.mapping_levels[loop.group].name},{loop.dim},{loop.bound}")
        return "\n".join(lines) + "\n"


@hookimpl
def register_exporters():
    return [PluginName]
