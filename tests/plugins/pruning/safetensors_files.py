"""Files of safetensors for tests, of any type."""

import json


def write_safetensors(path, arrays, **more):
    """`arrays` has type, shape and bytes by name; `more` goes to the header."""
    table, words = dict(more), b""
    for name, (dtype, shape, raw) in arrays.items():
        table[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [len(words), len(words) + len(raw)]}
        words += raw
    header = json.dumps(table).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + words)
