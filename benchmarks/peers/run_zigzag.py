"""Runs ZigZag on a folder of its files: `python run_zigzag.py search|widest|replay FOLDER`; prints JSON.

Belongs to the environment of ZigZag and imports nothing of SparseMap. A search writes the mapping as `mapping.yaml`
with a complete order of loops, and the places of the loops as `loops.yaml`. A replay takes the loops of `loops.yaml`."""

import json
import logging
import sys
from pathlib import Path

import yaml
from zigzag.api import get_hardware_performance_zigzag
from zigzag.cost_model.cost_model import CostModelEvaluation
from zigzag.datatypes import LayerDim, LayerOperand
from zigzag.mapping.temporal_mapping import TemporalMapping, TemporalMappingType
from zigzag.parser.accelerator_factory import AcceleratorFactory
from zigzag.parser.accelerator_validator import AcceleratorValidator
from zigzag.parser.mapping_validator import MappingValidator
from zigzag.parser.workload_factory import LayerNodeFactory
from zigzag.parser.workload_validator import WorkloadValidator
from zigzag.stages.mapping.spatial_mapping_conversion import SpatialMappingConversionStage

LINKS = {"I": "I1", "W": "I2", "O": "O"}


def checked(validator, folder, name):
    own = validator(yaml.safe_load((folder / name).read_text()))
    if not own.validate():
        sys.exit(f"{folder / name} is not valid for ZigZag")
    return own.normalized_data


def replay(folder):
    """The cost of the mapping with exactly the loops of `loops.yaml`."""
    accelerator = AcceleratorFactory(checked(AcceleratorValidator, folder, "accelerator.yaml")).create()
    row = checked(WorkloadValidator, folder, "workload.yaml")[0]
    layer = LayerNodeFactory(row, checked(MappingValidator, folder, "mapping.yaml")).create()
    layer.spatial_mapping.oa_dim_sizes = accelerator.operational_array.dimension_sizes
    stage = SpatialMappingConversionStage([None], accelerator=accelerator, layer=layer)
    spatial, whole = stage.convert_user_spatial_mapping(layer.spatial_mapping)
    loops = yaml.safe_load((folder / "loops.yaml").read_text())
    levels = {LayerOperand(op): [[(LayerDim(d), n) for d, n in own] for own in rows] for op, rows in loops.items()}
    temporal = TemporalMapping(levels, layer, TemporalMappingType.UNEVEN)
    return CostModelEvaluation(
        accelerator=accelerator,
        layer=layer,
        spatial_mapping=spatial,
        spatial_mapping_int=whole,
        temporal_mapping=temporal,
    )


def search(folder, widest):
    """The best mapping by EDP, with defaults or with the widest working settings."""
    names = [str(folder / name) for name in ("workload.yaml", "accelerator.yaml", "mapping.yaml")]
    more = {"lpf_limit": 7, "nb_spatial_mappings_generated": 6, "enable_mix_spatial_mapping": True} if widest else {}
    kept = {"dump_folder": str(folder / "out"), "pickle_filename": str(folder / "out" / "cmes.pickle")}
    *_, cmes = get_hardware_performance_zigzag(*names, opt="EDP", loma_show_progress_bar=False, **kept, **more)
    whole, layers = cmes[0]
    if len(layers) > 1:  # several layers, of which this script writes no mapping
        return whole
    cme = layers[0][0]
    used = cme.layer.spatial_mapping
    arrays = {dim.name: [f"{d.name}, {n}" for d, n in own.items() if n > 1] for dim, own in used.items()}
    loops = {op.name: [[[d.name, n] for d, n in own] for own in rows]
             for op, rows in cme.temporal_mapping.mapping_dic_origin.items()}  # fmt: skip
    order = [loop for own in loops["O"] for loop in own]
    row = {"name": "default", "spatial_mapping": {name: own for name, own in arrays.items() if own},
           "temporal_ordering": order, "memory_operand_links": LINKS}  # fmt: skip
    (folder / "mapping.yaml").write_text(yaml.safe_dump([row], sort_keys=False))
    (folder / "loops.yaml").write_text(yaml.safe_dump(loops, sort_keys=False))
    return cme


def main():
    what, folder = sys.argv[1], Path(sys.argv[2])
    logging.disable(logging.CRITICAL)
    cme = replay(folder) if what == "replay" else search(folder, what == "widest")
    counts = {}
    for op, rows in cme.memory_word_access.items() if hasattr(cme, "memory_operand_links") else ():
        mem_op = cme.memory_operand_links.layer_to_mem_op(op)
        memories = cme.accelerator.memory_hierarchy.get_memory_levels(mem_op)
        for memory, access in zip(memories, rows, strict=False):  # a layer may end in an inner memory
            for way, value in access.data.items():
                action = "read" if str(way).startswith("rd") else "write"
                key = f"{memory.memory_instance.name}/{op.name}/{action}"
                width = memory.get_max_bandwidth(mem_op, way) or 0
                counts[key] = counts.get(key, 0) + value * width
    cycles = float(cme.latency_total2)
    print(json.dumps({"energy_pj": float(cme.energy_total), "cycles": cycles, "bits": counts}))


if __name__ == "__main__":
    main()
