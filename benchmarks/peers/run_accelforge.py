"""Runs accelforge on a folder of its files: `python run_accelforge.py search|replay FOLDER`; prints JSON.

Belongs to the environment of accelforge and imports nothing of SparseMap. A search writes the mapping as
`mapping.yaml`."""

import json
import sys
from pathlib import Path

import accelforge as af
from accelforge.frontend.mapper.metrics import Metrics


def plain(node):
    """A node of a found mapping as text of YAML; tiles of the last step are whole numbers."""
    kind = type(node).__name__
    if kind in ("Storage", "Toll"):
        return f"- !{kind} {{component: {node.component}, tensors: [{', '.join(map(str, node.tensors))}]}}"
    if kind in ("Temporal", "Spatial"):
        names = [node.rank_variable] if isinstance(node.rank_variable, str) else sorted(node.rank_variable)
        dims = names[0] if len(names) == 1 else f"[{', '.join(names)}]"
        more = f", component: {node.component}, name: {node.name}" if kind == "Spatial" else ""
        return f"- !{kind} {{rank_variable: {dims}, tile_shape: {int(node.tile_shape)}{more}}}"
    if kind == "Compute":
        return f"- !Compute {{einsum: {node.einsum}, component: {node.component}}}"
    return ""


def lines(node, depth=2):
    """The lines of a node and of the nodes below."""
    kind, own = type(node).__name__, "  " * depth
    if kind in ("Sequential", "Pipeline", "Nested"):
        yield f"{own}- !{kind}"
        yield f"{own}  nodes:"
        for child in node.nodes:
            yield from lines(child, depth + 1)
    elif text := plain(node):
        yield own + text


def main():
    what, folder = sys.argv[1], Path(sys.argv[2])
    names = ["arch.yaml", "workload.yaml", *(["mapping.yaml"] if what == "replay" else [])]
    spec = af.Spec.from_yaml(*(folder / name for name in names))
    if what == "search":
        spec.mapper.metrics = Metrics.ENERGY_DELAY_PRODUCT
        found = spec.map_workload_to_arch(print_progress=False)
        nodes = [line for node in found.mapping(0).nodes for line in lines(node)]
        (folder / "mapping.yaml").write_text("\n".join(["mapping:", "  nodes:", *nodes]) + "\n")
    else:
        spec.model.metrics = Metrics.all_metrics()
        found = spec.evaluate_mapping()
    actions = found.actions(per_component=True, per_tensor=True)
    counts = {"/".join(map(str, key)): float(value) for key, value in actions.items()}
    print(json.dumps({"energy_pj": float(found.energy()) * 1e12, "seconds": float(found.latency()), "counts": counts}))


if __name__ == "__main__":
    main()
