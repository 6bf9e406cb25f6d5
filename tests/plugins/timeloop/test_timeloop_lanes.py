"""Two set-ups with skipping over spatial loops and with position skipping, beside the numbers of their own evaluator.

The layer and the numbers are of Accelergy-Project/micro22-sparseloop-artifact, fig15, WD-0.25, M128-K1152-N1024-IAD0.44.
"""

import pytest

pytest.importorskip("yaml")

import worked_example
from sparsemap_plugins.timeloop.exporter import tables
from sparsemap_plugins.timeloop.project import import_project

from sparsemap.errors import DesignError
from sparsemap.pieces.loading import load
from sparsemap.problem import design_file
from sparsemap.problem.designs import Design
from sparsemap.spec.yaml_text import yaml_text

PROBLEM = """
problem:
  shape:
    name: product
    dimensions: [M, N, K]
    data-spaces:
      - {name: A, projection: [[[M]], [[K]]]}
      - {name: B, projection: [[[N]], [[K]]]}
      - {name: Z, projection: [[[M]], [[N]]], read-write: true}
  instance: {M: 128, N: 1024, K: 1152, densities: {A: %s, B: %s}}
"""
FAR = """
architecture:
  version: 0.3
  subtree:
    - name: system
      local:
        - {name: DRAM, class: DRAM, attributes: {datawidth: 8, width: 64, metadata_storage_width: 64,
           read_bandwidth: 32, write_bandwidth: 32}}
      subtree:
        - name: SM
          local:
            - {name: SMEM, class: storage, attributes: {datawidth: 8, data_storage_depth: 4096, data_storage_width: 512,
               metadata_storage_depth: 8192, metadata_storage_width: 64, read_bandwidth: 42, write_bandwidth: 42}}
          subtree:
            - name: Part[0..3]
              local:
"""
CONDENSED = """
                - {name: RF, class: storage, attributes: {datawidth: 8, data_storage_depth: 2048, data_storage_width: 8}}
              subtree:
                - name: PE[0..255]
                  local:
                    - {name: LRF, class: storage, attributes: {datawidth: 8, data_storage_depth: 1,
                       data_storage_width: 8, metadata_storage_depth: 1, metadata_storage_width: 8}}
                    - {name: MAC, class: compute, attributes: {datawidth: 8}}
mapping:
  - {target: LRF, type: datatype, keep: [A], bypass: [B, Z]}
  - {target: RF, type: datatype, keep: [Z], bypass: [A, B]}
  - {target: SMEM, type: datatype, keep: [A, B], bypass: [Z]}
  - {target: LRF, type: temporal, factors: M1 N128 K1, permutation: NMK}
  - {target: RF, type: spatial, factors: M16 N1 K32, permutation: KMN}
  - {target: RF, type: temporal, factors: M1 N1 K36, permutation: KMN}
  - {target: SMEM, type: spatial, factors: M4 N1 K1, permutation: MNK}
  - {target: SMEM, type: temporal, factors: M2 N1 K1, permutation: MNK}
  - {target: DRAM, type: temporal, factors: M1 N8 K1, permutation: NMK}
sparse_optimizations:
  targets:
    - name: DRAM
      representation-format: {data-spaces: [{name: A, rank-application-order: inner-to-outer, ranks: &far
        [{format: UOP, payload-word-bits: 0}, {format: UOP, payload-word-bits: 0}, {format: UOP, payload-word-bits: 0},
         {format: UOP, payload-word-bits: 0}, {format: CP, metadata-word-bits: 2}]}]}
    - name: SMEM
      representation-format: {data-spaces: [{name: A, rank-application-order: inner-to-outer, ranks: *far}]}
    - name: RF
      action-optimization: [{type: skipping-spatial, target: B, condition-on: [A]},
                            {type: skipping-spatial, target: Z, condition-on: [A]}]
    - name: LRF
      representation-format: {data-spaces: [{name: A, ranks: [{format: CP, metadata-word-bits: 2}]}]}
"""
PLAIN = "{format: UOP, payload-word-bits: 0}"


def ranks(level, plain):
    """Bitmaps in a tile of the buffer, below uncompressed ranks."""
    of = [
        f"{{name: {t}, rank-application-order: inner-to-outer, ranks: [{', '.join([PLAIN] * plain)}, "
        "{format: B, metadata-word-bits: 1, payload-word-bits: 0, flattened_rankIDs: [[K]]}, "
        f"{{format: B, metadata-word-bits: 0, payload-word-bits: 0, flattened_rankIDs: [[{dim}]]}}, "
        f"{{format: B, metadata-word-bits: 1, flattened_rankIDs: [[{dim}]]}}]}}"
        for t, dim in ("AM", "BN")
    ]
    return f"    - {{name: {level}, representation-format: {{data-spaces: [{', '.join(of)}]}}}}\n"


PACKED = (
    """
                - {name: RF, class: storage, attributes: {datawidth: 8, data_storage_depth: 2048, data_storage_width: 8,
                   metadata_storage_depth: 128, metadata_storage_width: 16}}
                - {name: LRF, class: storage, attributes: {datawidth: 8, data_storage_depth: 64, data_storage_width: 16,
                   metadata_storage_depth: 32, metadata_storage_width: 4}}
                - {name: "MAC[0..255]", class: compute, attributes: {datawidth: 8}}
mapping:
  - {target: LRF, type: datatype, keep: [A, B], bypass: [Z]}
  - {target: RF, type: datatype, keep: [Z], bypass: [A, B]}
  - {target: SMEM, type: datatype, keep: [A, B], bypass: [Z]}
  - {target: LRF, type: spatial, factors: M16 N16 K1, permutation: NMK, no_link_transfer: [A, B, Z]}
  - {target: LRF, type: temporal, factors: M4 N2 K1, permutation: NMK}
  - {target: RF, type: temporal, factors: M1 N1 K1152, permutation: KMN}
  - {target: SMEM, type: spatial, factors: M2 N2 K1, permutation: NMK}
  - {target: SMEM, type: temporal, factors: M1 N2 K1, permutation: NMK}
  - {target: DRAM, type: temporal, factors: M1 N8 K1, permutation: NMK}
sparse_optimizations:
  targets:
"""
    + ranks("DRAM", 5)
    + ranks("SMEM", 3)
    + """    - {name: RF, action-optimization: [{type: skipping, target: Z, condition-on: [A, B]}]}
    - name: LRF
      representation-format: {data-spaces: [
        {name: B, rank-application-order: inner-to-outer, ranks:
         [{format: B, metadata-word-bits: 0, payload-word-bits: 0, flattened_rankIDs: [[N]]},
          {format: B, metadata-word-bits: 1, flattened_rankIDs: [[N]]}]},
        {name: A, rank-application-order: inner-to-outer, ranks:
         [{format: B, metadata-word-bits: 0, payload-word-bits: 0, flattened_rankIDs: [[M]]},
          {format: B, metadata-word-bits: 1, flattened_rankIDs: [[M]]}]}]}
      action-optimization: [{type: position-skipping, target: A, condition-on: []},
                            {type: position-skipping, target: B, condition-on: []}]
"""
)
ERT = """
ERT:
  version: 0.3
  tables:
    - {name: DRAM, actions: [{name: read, energy: 512}, {name: write, energy: 512}, {name: idle, energy: 0}]}
    - {name: SMEM, actions: [{name: read, energy: 285.71464}, {name: write, energy: 316.96744},
       {name: metadata_read, energy: 25.8695}, {name: metadata_write, energy: 19.6486}]}
    - {name: RF, actions: [{name: read, energy: 1.65889}, {name: write, energy: 1.67589},
       {name: gated_read, energy: 0.00006}, {name: gated_write, energy: 0.00006}]}
    - {name: LRF, actions: [{name: read, energy: %s}, {name: write, energy: %s}, {name: metadata_read, energy: %s},
       {name: metadata_write, energy: %s}]}
    - {name: MAC, actions: [{name: mac_random, energy: 0.5608}, {name: mac_gated, energy: 0.01798}]}
"""
EVEN = "{distribution: fixed-structured, density: 0.5}", "{distribution: fixed-structured, density: 1.0}"
UNIFORM = "{distribution: hypergeometric, density: 0.25}", "{distribution: hypergeometric, density: 0.44}"


@pytest.mark.parametrize(
    ("densities", "design", "near", "cycles", "energy_pj"),
    [
        (EVEN, CONDENSED, (0.072, 0.072, 0.072, 0.072), 73728, 173424523.34),
        (UNIFORM, PACKED, (0.49218, 0.49218, 0.18108, 0.18108), 37083, 120883089.12),
    ],
    ids=["condensed", "packed"],
)
def test_dealt_lanes_have_the_cycles_of_the_artifact(tmp_path, densities, design, near, cycles, energy_pj):
    (tmp_path / "a.yaml").write_text(PROBLEM % densities + FAR + design + ERT % near)
    imported = import_project([tmp_path], older=True)
    found = design_file.structure(imported.tables["design"], load(), "imported")
    evaluation = found.problem.cost_model.evaluate(found.batch, found.problem)
    assert evaluation.cycles[0] == cycles
    assert evaluation.energy_pj[0] == pytest.approx(energy_pj, rel=1e-5)


def dealing(registry, place, **mechanism):
    table = worked_example.table(p=0.5, q=0.5, formats=dict.fromkeys("PQ", worked_example.BITMASKS), **{place: "mine"})
    table = {**table, "pieces": {**table["pieces"], "mechanism": {"mine": {"type": "filters", **mechanism}}}}
    found = design_file.structure(table, registry, "dealing")
    return found.problem, found.batch


def test_condensed_lanes_that_are_exported_and_imported_have_the_same_numbers(tmp_path):
    registry = load()
    problem, batch = dealing(registry, "PEB", action="condense", filters=[{"target": "Q", "leader": "P"}])
    found = problem.cost_model.evaluate(batch, problem)
    for name, table in tables(Design(problem, batch)).items():
        (tmp_path / name).write_text(yaml_text(table))
    back = design_file.structure(import_project([tmp_path]).tables["design"], registry, "back")
    again = back.problem.cost_model.evaluate(back.batch, back.problem)
    assert (again.cycles[0], again.energy_pj[0]) == (found.cycles[0], found.energy_pj[0])


@pytest.mark.parametrize(
    ("place", "mechanism", "text"),
    [
        ("PEB", {"action": "pack", "filters": [{"target": "P"}]}, "'pack' of 'mine' is unknown to Timeloop"),
        ("GLB", {"action": "condense", "filters": [{"target": "Q", "leader": "P"}]}, "counts them down twice"),
    ],
)
def test_what_timeloop_cannot_be_told_is_not_exported(place, mechanism, text):
    with pytest.raises(DesignError, match=text):
        tables(Design(*dealing(load(), place, **mechanism)))
