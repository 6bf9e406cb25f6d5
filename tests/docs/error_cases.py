"""Inputs that are wrong, by group: files, a command or a script, and what is wrong with them.

`errors.txt` has each with the message that it gets; `test_error_messages.py` writes and checks that file.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs


@attrs.frozen
class Case:
    """One wrong input."""

    title: str
    files: Mapping[str, str]
    """Text by path; written before the command runs."""
    command: str
    """After `sparsemap`; or a script, if it has several lines or ends in a parenthesis."""

    @property
    def script(self) -> bool:
        return self.command.endswith(")")


def workload(lines: str = "", **changed: str) -> str:
    """A matrix product with some of its keys changed."""
    keys = {
        "kind": '"workload"',
        "name": '"layer"',
        "einsum": '"Z[m, n] = P[m, k] * Q[k, n]"',
        "dims": "{ m = 64, k = 256, n = 64 }",
        "density": "{ P = 0.5, Q = 0.3 }",
    } | changed
    return "".join(f"{key} = {value}\n" for key, value in keys.items() if value) + lines


def hardware(**changed: str) -> str:
    """Two levels and compute units with some keys changed."""
    keys = {
        "kind": '"hardware"',
        "name": '"chip"',
        "levels": '[\n  { name = "DRAM", class = "dram", bandwidth = "16 GB/s" },\n'
        '  { name = "GLB", class = "sram", capacity = "128 KB", fanout = 16 },\n]',
    } | changed
    return "".join(f"{key} = {value}\n" for key, value in keys.items() if value)


def levels(second: str) -> str:
    return '[\n  { name = "DRAM", class = "dram", bandwidth = "16 GB/s" },\n' + f"  {{ {second} }},\n]"


def check(title: str, name: str, text: str) -> Case:
    return Case(title, {name: text}, f"check {name}")


def layer(title: str, **changed: str) -> Case:
    return check(title, "layer.toml", workload(**changed))


def chip(title: str, **changed: str) -> Case:
    return check(title, "chip.toml", hardware(**changed))


def spec(title: str, kind: str, text: str) -> Case:
    return check(title, f"{kind}.toml", f'kind = "{kind}"\nname = "mine"\n{text}')


def plugin(title: str, code: str, command: str = "list format --plugin-dir mine") -> Case:
    return Case(title, {"mine/plug/__init__.py": code}, command)


HEAD = "import attrs\nfrom sparsemap import {names}, hookimpl\n\n\n@attrs.frozen(kw_only=True)\n"
FORMAT = HEAD.format(names="Format") + "class Mine(Format):\n{body}\n\n@hookimpl\ndef {hook}():\n    return {result}\n"
DESIGN = (
    'kind = "design"\nworkload = "matmul-32x64x48"\nhardware = "edge"\n\n[mapping]\n{mapping}\n\n[formats]\nP = ["bitmask"]\n'
    'Q = ["bitmask"]\nZ = ["uncompressed"]\n\n[gate_skip]\n{places}\n'
)
MAPPING = 'L1_T = ["n=3"]\nL2_T = ["m=2", "k=8"]\nL2_S = ["m=16", "n=16"]\nL3_T = ["k=8"]'
PLACES = 'GLB = "none"\nPEB = "none"\nMAC = "gate-both"'


def design(title: str, mapping: str = MAPPING, places: str = PLACES, command: str = "show") -> Case:
    return Case(title, {"design.toml": DESIGN.format(mapping=mapping, places=places)}, f"{command} design.toml")


STUDY = 'kind = "study"\nname = "s"\nworkloads = ["mm1"]\nhardware = ["edge"]\n'

GROUPS: dict[str, list[Case]] = {
    "On the command line": [
        Case("A name with a slip", {}, "search mm33 cloud"),
        Case("A hardware in the place of a workload", {}, "search cloud mm3"),
        Case("A file that is not there", {"layer.toml": workload()}, "search lyer.toml edge"),
        Case("A file of another kind", {"chip.toml": hardware()}, "search chip.toml edge"),
        Case("An unknown verb", {}, "serch mm3 cloud"),
        Case("An objective of unknown quantities", {}, 'search mm3 cloud --objective "energy_pj * delayy"'),
        Case("An unknown searcher", {}, "search mm3 cloud --searcher spasemap"),
        Case("An unknown space", {}, "search mm3 cloud --space papr"),
        Case("An unknown kind", {}, "list formts"),
        Case("An unknown piece", {}, "list format bitmsk"),
        Case("A plugin folder that is not there", {}, "list format --plugin-dir nowhere"),
        Case("A spec that is no design", {"layer.toml": workload()}, "show layer.toml"),
    ],
    "TOML": [
        check("No TOML", "layer.toml", 'kind = "workload"\nname = layer\n'),
        check("A key twice", "layer.toml", workload() + 'name = "again"\n'),
        check("No kind", "layer.toml", workload(kind="")),
        check("An unknown kind", "layer.toml", workload(kind='"worklod"')),
        check("No name", "layer.toml", workload(name="")),
        layer("An unknown number format", word_bits='{ Q = "mxfp5", Z = 32 }'),
    ],
    "Workloads": [
        layer("A key with a slip", dims="", dim="{ m = 64, k = 256, n = 64 }"),
        layer("An einsum that is none", einsum='"Z[m, n] = P[m, k Q[k, n]"'),
        layer("A dimension without a size", dims="{ m = 64, k = 256 }"),
        layer("A size with a slip", dims="{ m = 64, k = 256, nn = 64 }"),
        layer("Sizes that are none", dims="{ m = 0, k = -3, n = 4.5 }"),
        layer("A tensor without a density", density="{ P = 0.5 }"),
        layer("A density above one", density="{ P = 1.5, Q = 0.3 }"),
        layer("A density in percent as text", density='{ P = "50 %", Q = 0.3 }'),
        layer("A key of a density with another name", density='{ P = { type = "banded", width = 4 }, Q = 0.3 }'),
        layer("A density model that needs more than its name", density='{ P = "banded", Q = 0.3 }'),
        layer("More nonzeros than words", density='{ P = { type = "n-of-m", n = 5, m = 4 }, Q = 0.3 }'),
        layer("A data file that is not there", density='{ P = { type = "data", file = "weights.npy" }, Q = 0.3 }'),
    ],
    "Hardware": [
        chip("A key with a slip", levels=levels('name = "GLB", class = "sram", capcity = "128 KB"')),
        chip("A capacity without a unit", levels=levels('name = "GLB", class = "sram", capacity = 128')),
        chip("An unknown unit", levels=levels('name = "GLB", class = "sram", capacity = "128 KBit"')),
        chip("A bandwidth that is no rate", levels=levels('name = "GLB", class = "sram", bandwidth = "51.2 Gbps"')),
        chip("A clock without a unit", clock='"800"'),
        chip("An unknown class of memory", levels=levels('name = "GLB", class = "sarm", capacity = "128 KB"')),
        chip("No instances", levels=levels('name = "GLB", class = "sram", fanout = 0')),
        chip("Two levels of one name", levels=levels('name = "DRAM", class = "sram", capacity = "1 KB"')),
        chip("An unknown technology", technology='"7nm"'),
        chip("A file where a name belongs", technology='"chip.toml"'),
        chip("A compute unit with a slip", compute="{ gate_skp = true }"),
        chip("No levels", levels="[]"),
        check(
            "A change of a level that is not there",
            "chip.toml",
            'kind = "hardware"\nname = "chip"\nextends = "edge"\nlevels.L2.capacity = "1 MB"\n',
        ),
    ],
    "Formats, mechanisms, spaces, searchers, studies": [
        spec("A name in an expression", "format", 'compressed = true\nbits = "fibers * lenght"\n'),
        spec("An expression that is none", "format", 'compressed = true\nbits = "fibers * (length"\n'),
        spec("Text for true or false", "format", 'compressed = "yes"\nbits = "fibers"\n'),
        spec("Blocks of a format that is not compressed", "format", 'compressed = false\nblock = 4\nbits = "fibers"\n'),
        spec("An unknown action", "mechanism", 'action = "skp"\nfilters = [{ target = "P", leader = "Q" }]\n'),
        spec(
            "A tensor that leads itself", "mechanism", 'action = "skip"\nfilters = [{ target = "P", leader = "P" }]\n'
        ),
        spec("A candidate with a slip", "space", 'extends = "paper"\n[formats]\ncandidates = ["bitmsk"]\n'),
        spec("A segment that is not listed", "space", 'extends = "paper"\n[orderss]\ntype = "cantor"\n'),
        spec("A column that nobody provides", "space", 'segments = ["orders"]\n[orders]\ntype = "cantor"\n'),
        spec("A searcher without a type", "searcher", "population = 10\n"),
        spec("A share above one", "searcher", 'type = "memetic"\ncrossover_rate = 1.5\n'),
        spec("An operator of another kind", "searcher", 'type = "memetic"\ncrossover = "segment-moves"\n'),
        check("A spec that extends itself", "format.toml", 'kind = "format"\nname = "mine"\nextends = "mine"\n'),
        check(
            "Names in a study",
            "study.toml",
            STUDY.replace('"mm1"]', '"mm1", "mm99"]\nnetworks = ["vgg61"]').replace('"edge"', '"egde"'),
        ),
        check("A study without seeds", "study.toml", STUDY + "seeds = []\n"),
        Case("A study without a folder", {"study.toml": STUDY}, "run study.toml"),
    ],
    "Designs": [
        design("Bounds that do not multiply up", MAPPING.replace("k=8", "k=9", 1)),
        design("A loop that is none", MAPPING.replace("n=3", "n:3")),
        design("An unknown mapping level", MAPPING.replace("L3_T", "L4_T")),
        design("An unknown dimension", MAPPING.replace("n=3", "x=3")),
        design("An unknown place", places=PLACES.replace("PEB", "PE")),
        design("An unknown mechanism", places=PLACES.replace("gate-both", "gate-bth")),
        design("Too many instances", MAPPING.replace("n=16", "n=48").replace('L1_T = ["n=3"]', "L1_T = []")),
        design("Nobody knows the report", command="show brakdown"),
    ],
    "Plugins": [
        plugin("A module that cannot be imported", "from sparsemap import Formt\n"),
        plugin(
            "A hook with a slip",
            FORMAT.format(body='    type_name = "mine"\n', hook="register_format", result="[Mine]"),
        ),
        plugin("A class without a name", FORMAT.format(body="    pass\n", hook="register_formats", result="[Mine]")),
        plugin(
            "No list",
            FORMAT.format(body='    type_name = "mine"\n', hook="register_formats", result="Mine"),
        ),
        plugin(
            "A field without a type",
            FORMAT.format(
                body='    type_name = "mine"\n    compressed = True\n', hook="register_formats", result="[Mine]"
            ),
        ),
        Case(
            "A name that is taken",
            {"mine/bitmask.toml": 'kind = "format"\nname = "bitmask"\ncompressed = true\nbits = "fibers * length"\n'},
            "list format --plugin-dir mine",
        ),
        plugin(
            "A searcher that raises",
            HEAD.format(names="Searcher")
            + 'class Mine(Searcher):\n    type_name = "mine"\n\n    def search(self, space, budget, rng):\n'
            "        yield space.sample(budget / 10, rng)\n\n\n@hookimpl\ndef register_searchers():\n    return [Mine]\n",
            "search mm1 edge --searcher mine --plugin-dir mine",
        ),
        plugin(
            "A searcher that yields too few genes",
            HEAD.format(names="Searcher")
            + 'class Mine(Searcher):\n    type_name = "mine"\n\n    def search(self, space, budget, rng):\n'
            "        yield space.sample(10, rng)[:, 1:]\n\n\n@hookimpl\ndef register_searchers():\n    return [Mine]\n",
            "search mm1 edge --searcher mine --plugin-dir mine",
        ),
    ],
    "From Python": [
        Case("A budget of nothing", {}, 'search(load_problem("mm1", "edge"), budget=0)'),
        Case("Genomes of another shape", {}, 'evaluate(load_problem("mm1", "edge"), np.zeros((4, 3), np.int64))'),
        Case("Genes out of their bounds", {}, 'evaluate(load_problem("mm1", "edge"), np.full((1, 32), 99))'),
        Case("A key in a table", {}, 'load_problem("mm1", {"extends": "edge", "levls": []})'),
    ],
}
