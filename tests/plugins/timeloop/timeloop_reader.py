"""Reads an exported folder as Timeloop v3.0.3 does, into a case of the reference model (`conformance/`).

Whatever Timeloop would refuse or silently take for something else fails an assertion here.
"""

import re
from pathlib import Path
from typing import Any

import yaml

STORAGE_ACTIONS = {
    f"{kind}_{part}{action}"
    for kind in ("random", "gated", "skipped")
    for part in ("", "metadata_")
    for action in ("read", "fill", "update")
} | {"decompression_count", "compression_count"}
DENSITY_TYPES = {"hypergeometric": "uniform", "fixed-structured": "structured", "banded": "banded"}
ACTION_TYPES = {"gating": "gate", "skipping": "skip"}


def load(folder: Path) -> dict[str, Any]:
    """All files, joined as text the way Timeloop joins them."""
    files = sorted(folder.glob("*.yaml"))
    text = "\n".join(path.read_text("utf-8") for path in files)
    loaded = yaml.safe_load(text)
    assert len(loaded) == len(files), "two files have the same key"
    return loaded


def read_case(folder: Path) -> dict[str, Any]:
    tree = load(folder)
    levels, mac, word_bits, metadata_width = read_architecture(tree)
    workload = read_problem(tree["problem"])
    mapping = read_mapping(tree["mapping"], levels, mac, list(workload["dims"]), list(workload["tensors"]))
    hardware = {"word_bits": word_bits, "metadata_width_bits": metadata_width, "levels": levels, "mac": mac}
    name = mac.pop("name")
    sparse = read_sparse(tree.get("sparse_optimizations", {"targets": []}), levels, name, list(workload["tensors"]))
    return {"workload": workload, "hw": hardware, "mapping": mapping, "sparse": sparse}


def instances_of(component: dict[str, Any]) -> tuple[str, int]:
    match = re.fullmatch(r"(\w+)(?:\[0\.\.(\d+)\])?", component["name"])
    assert match
    count = int(match[2] or 0) + 1
    mesh = component["attributes"]["meshX"] * component["attributes"]["meshY"]
    assert mesh == count
    return match[1], count


def energies(tree: dict[str, Any]) -> dict[str, dict[str, float]]:
    assert tree["ERT"]["version"] == 0.3
    found = {}
    for table in tree["ERT"]["tables"]:
        actions = {row["name"]: row["energy"] for row in table["actions"]}
        assert all(isinstance(energy, float) and energy >= 0 for energy in actions.values())
        assert len(actions) == len(table["actions"])
        found[table["name"].rpartition(".")[2]] = actions
    areas = {table["name"].rpartition(".")[2] for table in tree["ART"]["tables"]}
    assert areas == set(found)
    return found


def read_architecture(tree: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], int, int]:
    architecture, energy = tree["architecture"], energies(tree)
    assert architecture["version"] == 0.3
    (system,) = architecture["subtree"]
    *storage, compute = system["local"]
    levels: dict[str, Any] = {}
    for component in storage:
        name, instances = instances_of(component)
        attributes, actions = component["attributes"], energy[name]
        assert set(actions) == STORAGE_ACTIONS
        assert attributes["block-size"] == attributes["cluster-size"] == 1
        for key in ("wire-energy", "router-energy", "energy-per-hop", "energy-per-ingress", "addr-gen-energy"):
            assert attributes[key] == 0.0
        depth, metadata_depth = attributes.get("depth"), attributes.get("metadata_storage_depth")
        assert (component["class"] == "DRAM") == (depth is None) == (metadata_depth is None)
        bits = None if metadata_depth is None else metadata_depth * attributes["metadata_storage_width"]
        assert depth is None or (depth < 2**32 and bits < 2**32)
        assert actions["random_fill"] == actions["random_update"]
        assert actions["random_metadata_fill"] == actions["random_metadata_update"]
        levels[name] = {
            "instances": instances,
            "capacity_words": depth,
            "metadata_capacity_bits": bits,
            "read_bw": attributes.get("read_bandwidth"),
            "write_bw": attributes.get("write_bandwidth"),
            "energy": {
                "read": actions["random_read"],
                "write": actions["random_fill"],
                "metadata_read": actions["random_metadata_read"],
                "metadata_write": actions["random_metadata_fill"],
                **{key: value for key, value in actions.items() if key.startswith(("gated", "skipped"))},
            },
        }
    (word_bits,) = {component["attributes"]["word-bits"] for component in storage}
    (metadata_width,) = {component["attributes"]["metadata_storage_width"] for component in storage}
    assert compute["class"] == "compute"
    name, instances = instances_of(compute)
    actions = energy[name]
    macs = {"compute": actions["mac_random"], "gated": actions["mac_gated"], "skipped": actions["mac_skipped"]}
    return levels, {"name": name, "instances": instances, "energy": macs}, word_bits, metadata_width


def read_problem(problem: dict[str, Any]) -> dict[str, Any]:
    shape, instance = problem["shape"], problem["instance"]
    assert all(re.fullmatch("[A-Za-z]", dim) for dim in shape["dimensions"])
    coefficients = {row["name"]: row["default"] for row in shape.get("coefficients", [])}
    assert not set(coefficients) & set(instance)
    tensors = {}
    for space in shape["data-spaces"]:
        assert space["projection"]
        projection = [[[dim, *map(coefficients.__getitem__, c)] for dim, *c in rank] for rank in space["projection"]]
        given = instance["densities"][space["name"]]
        density: dict[str, Any] = {"type": DENSITY_TYPES[given["distribution"]]}
        if "band_width" in given:
            density["half_width"] = given["band_width"]
        else:
            density["value"] = given["density"]
        tensors[space["name"]] = {
            "proj": [[[dim, c[0] if c else 1] for dim, *c in rank] for rank in projection],
            "density": density,
        } | ({"output": True} if space.get("read-write") else {})
    return {"dims": {dim: instance[dim] for dim in shape["dimensions"]}, "tensors": tensors}


def read_mapping(
    directives: list[dict[str, Any]], levels: dict[str, Any], mac: dict[str, Any], dims: list[str], tensors: list[str]
) -> dict[str, Any]:
    names = list(levels)
    instances = [*(level["instances"] for level in levels.values()), mac["instances"]]
    found: dict[str, Any] = {}
    bypass = {}
    for directive in directives:
        level = names.index(directive["target"])
        if directive["type"] == "bypass":
            assert set(directive.get("keep", [])) | set(directive.get("bypass", [])) == set(tensors)
            if "bypass" in directive:
                bypass[names[level]] = directive["bypass"]
            continue
        factors = {dim: int(bound) for dim, bound in re.findall(r"([A-Za-z]+) *= *([0-9]+)", directive["factors"])}
        assert set(factors) == set(directive["permutation"]) == set(dims)
        assert len(directive["permutation"]) == len(dims)
        key = f"L{level + 1}_{'S' if directive['type'] == 'spatial' else 'T'}"
        assert key not in found
        found[key] = [[dim, factors[dim]] for dim in reversed(directive["permutation"])]
        if directive["type"] == "spatial":
            assert instances[level + 1] > instances[level]
            assert directive["split"] == len(dims)  # all on X
            assert directive["no_link_transfer"] == tensors
    return found | ({"bypass": bypass} if bypass else {})


def read_sparse(sparse: dict[str, Any], levels: dict[str, Any], compute: str, tensors: list[str]) -> dict[str, Any]:
    ranks: dict[str, Any] = {tensor: {name: [] for name in levels} for tensor in tensors}
    actions: dict[str, Any] = {}
    unit = "none"
    for target in sparse["targets"]:
        assert len(target) > 1
        if target["name"] == compute:
            ((only,),) = (row.values() for row in target["compute-optimization"])
            unit = ACTION_TYPES[only]
            continue
        for space in target.get("representation-format", {}).get("data-spaces", []):
            ranks[space["name"]][target["name"]] = [
                [rank["format"], rank["metadata-word-bits"], rank["payload-word-bits"]] for rank in space["ranks"]
            ]
        for action in target.get("action-optimization", []):
            (option,) = action["options"]
            row = {"type": ACTION_TYPES[action["type"]], "target": option["target"], "on": option["condition-on"]}
            actions.setdefault(target["name"], []).append(row)
    return {"ranks": ranks, "actions": actions, "compute": unit}
