"""A small project of Timeloop, part by part: what importing tests read, and what the fuzzer changes."""

PROBLEM = """
problem:
  shape:
    name: product
    dimensions: [A, B, C]
    data-spaces:
      - {name: X, projection: [[[A]], [[C]]]}
      - {name: Y, projection: [[[C]], [[B]]]}
      - {name: S, projection: [[[A]], [[B]]], read-write: true}
  instance: {A: 8, B: 12, C: 6, densities: {X: {distribution: hypergeometric, density: 0.5}}}
"""
TREE = """
architecture:
  version: 0.3
  subtree:
    - name: chip
      attributes: {technology: 45nm}
      local:
        - {name: Far, class: DRAM, attributes: {width: 32, datawidth: 8, read_bandwidth: 4, write_bandwidth: 4}}
        - {name: Mid, class: SRAM, attributes: {depth: 256, width: 8, datawidth: 8, metadata_storage_width: 8,
           metadata_storage_depth: 64}}
      subtree:
        - name: PE[0..7]
          local:
            - {name: Near, class: regfile, attributes: {depth: 16, width: 8, datawidth: 8, metadata_storage_width: 8}}
            - {name: Unit, class: intmac, attributes: {datawidth: 8}}
"""
NODES = """
architecture:
  version: 0.4
  nodes:
    - !Container {name: chip, attributes: {technology: 45nm}}
    - !Component
      name: Far
      class: DRAM
      attributes: {width: 32, datawidth: 8, read_bandwidth: 4, write_bandwidth: 4}
    - !Component
      name: Mid
      class: SRAM
      attributes: {depth: 256, width: 8, datawidth: 8, metadata_storage_width: 8, metadata_storage_depth: 64}
    - !Container
      name: PE
      spatial: {meshX: 4, meshY: 2}
    - !Component
      name: Near
      class: regfile
      attributes: {depth: 16, width: 8, datawidth: 8, metadata_storage_width: 8}
    - !Component {name: Unit, class: intmac, attributes: {datawidth: 8}}
"""
ENERGIES = """
ERT:
  version: 0.3
  tables:
    - {name: chip.Far, actions: [{name: read, energy: 400}, {name: write, energy: 480}, {name: idle, energy: 0}]}
    - {name: chip.Mid, actions: [{name: read, energy: 4}, {name: write, energy: 5}, {name: idle, energy: 0.5}]}
    - {name: "chip.PE[0..7].Near", actions: [{name: read, energy: 1}, {name: write, energy: 1}, {name: idle, energy: 0}]}
    - {name: "chip.PE[0..7].Unit", actions: [{name: mac_random, energy: 2}, {name: mac_gated, energy: 0.25}]}
"""
MAPPING = """
mapping:
  - {target: Far, type: temporal, factors: A=2 B=0 C=1, permutation: BAC}
  - {target: Mid, type: temporal, factors: A=1 B=2 C=3, permutation: CBA}
  - {target: Mid, type: spatial, factors: A=4 B=1 C=2, permutation: CAB, split: 1}
  - {target: Near, type: temporal, factors: A=1 B=3 C=1, permutation: BAC}
  - {target: Near, type: bypass, keep: [S], bypass: [X, Y]}
"""
