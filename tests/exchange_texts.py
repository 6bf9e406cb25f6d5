"""Small files of accelforge and ZigZag, as their users write them."""

ACCELFORGE = """
arch:
  nodes:
    - !Memory {name: Main, size: inf, actions: [{name: read, energy: 2e-12, throughput: 16e9},
       {name: write, energy: 2e-12, throughput: 16e9}]}
    - !Container {name: Row, spatial: [{name: X, fanout: 4, may_reuse: input}]}
    - !Memory {name: Near, size: 8*1024, component_class: SRAM, spatial: [{name: Y, fanout: 2}], actions: [{name: read}]}
    - !Compute {name: Adder, actions: [{name: compute, energy: 0}]}
    - !Compute {name: MAC, actions: [{name: compute, energy: 3e-13, throughput: 1e9}]}
workload:
  rank_sizes: {N: 8}
  iteration_space_shape: {m: 0 <= m < 4 * 2, k: "0 <= k < 8"}
  bits_per_value: {All: 8, B: 4}
  einsums:
    - name: first
      tensor_accesses:
        - {name: A, projection: [m, k]}
        - {name: B, projection: {K: k, N: n}}
        - {name: C, projection: [m, n], output: true}
    - name: second
      tensor_accesses: [{name: C, projection: [m, n]}, {name: D, projection: [m, n], output: true}]
mapping:
  nodes:
    - !Storage {component: Main, tensors: [A, B, C, D]}
    - !Temporal {rank_variable: m, tile_shape: 4}
    - !Sequential
      nodes:
        - !Nested
          nodes:
            - !Spatial {rank_variable: n, tile_shape: 2, component: Row, name: X}
            - !Storage {component: Near, tensors: [A, B, C]}
            - !Temporal {rank_variable: k, tile_shape: 1}
            - !Temporal {rank_variable: m, tile_shape: 1}
            - !Temporal {rank_variable: n, tile_shape: 1}
            - !Compute {einsum: first, component: MAC}
        - !Nested
          nodes:
            - !Compute {einsum: second, component: Adder}
"""

ZIGZAG = {
    "accelerator.yaml": """
name: small
memories:
  weights:
    {size: 64, r_cost: 0.5, w_cost: 0.5, area: 0, latency: 1, operands: [I2], served_dimensions: [], ports: [
      {name: rw_port_1, type: read_write, bandwidth_min: 8, bandwidth_max: 8, allocation: ['I2, tl', 'I2, fh']}]}
  sums:
    {size: 64, r_cost: 0.5, w_cost: 0.5, area: 0, latency: 1, operands: [O], served_dimensions: [D2], ports: [
      {name: rw_port_1, type: read_write, bandwidth_min: 8, bandwidth_max: 8,
       allocation: ['O, tl', 'O, th', 'O, fh', 'O, fl']}]}
  dram:
    {size: 100000, r_cost: 8, w_cost: 8, area: 0, latency: 1, operands: [I1, I2, O], served_dimensions: [D1, D2], ports: [
      {name: rw_port_1, type: read_write, bandwidth_min: 8, bandwidth_max: 64, allocation: ['I1, tl', 'I2, tl', 'O, fl']}]}
operational_array: {unit_energy: 0.1, unit_area: 0, dimensions: [D1, D2], sizes: [4, 2], systolic_dimensions: [D1]}
""",
    "workload.yaml": """
- {id: 3, operator_type: Conv, equation: 'O[k][ox]+=W[k][c][fx]*I[c][ix]', dimension_relations: [ix=2*ox+1*fx],
   loop_dims: [K, C, OX, FX], loop_sizes: [8, 4, 5, 3], operand_precision: {W: 8, I: 4, O: 8, O_final: 4},
   operand_source: {W: 3, I: 3}, padding: [[1, 1]]}
""",
    "mapping.yaml": """
- name: default
  spatial_mapping: {D1: ['K, 4'], D2: ['C, 2']}
  temporal_ordering: [[OX, 5], [FX, 3], [C, 2], [K, 2]]
  memory_operand_links: {O: O, W: I2, I: I1}
""",
}
