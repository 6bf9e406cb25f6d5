"""Schemas and the reference of keys: written from the classes, right for every shipped spec."""

import json
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner
from jsonschema import Draft7Validator

from sparsemap.cli import reference, schema
from sparsemap.cli.keys import HEADER, keys_of
from sparsemap.cli.main import cli
from sparsemap.pieces.loading import load
from sparsemap.problem.design_file import KNOWN

ROOT = Path(__file__).parents[2]
SCHEMAS = ROOT / "specs" / "schemas"
"""Where specs look for their schemas: a build writes them, in a clone `sparsemap extra schema --all --out specs/schemas`."""
FILES = [path for folder in ("specs", "plugins") for path in (ROOT / folder).rglob("*.toml")]
SHIPPED = sorted(path for path in FILES if not any(part[0] == "_" for part in path.relative_to(ROOT).parts))
"""Folders with an underscore hold no specs, as for the loader."""


@pytest.fixture(scope="module")
def registry():
    return load(env={})


@pytest.fixture(scope="module")
def schemas(registry):
    return {kind: schema.schema(registry, kind) for kind in schema.kinds(registry)}


VALIDATORS: dict[str, Draft7Validator] = {}
"""By kind; they remember what a schema refers to."""


def mistakes(schemas, text: str) -> list[str]:
    table = tomllib.loads(text)
    validator = VALIDATORS.setdefault(table["kind"], Draft7Validator(schemas[table["kind"]]))
    return [error.message for error in validator.iter_errors(table)]


def test_every_shipped_spec_fits_the_schema_that_it_refers_to(schemas) -> None:
    for found in schemas.values():
        Draft7Validator.check_schema(found)
    for path in SHIPPED:
        text = path.read_text("utf-8")
        first, table = text.partition("\n")[0], tomllib.loads(text)
        assert first.startswith("#:schema "), f"{path}: no `#:schema` on top"
        assert (path.parent / first.split()[1]).resolve() == SCHEMAS / f"{table['kind']}.json", path
        assert mistakes(schemas, text) == [], path


@pytest.mark.parametrize(
    ("spec", "told"),
    {
        "an unknown key": ('kind = "format"\nname = "x"\ncompresed = true', "'compresed' was unexpected"),
        "a missing key": ('kind = "format"\nname = "x"', "'compressed' is a required property"),
        "a wrong type": ('kind = "format"\nname = "x"\ncompressed = 1', "1 is not of type 'boolean'"),
        "a wrong option": ('kind = "mechanism"\nname = "x"\naction = "skp"', "'skp' is not one of"),
        "a limit": ('kind = "searcher"\nname = "x"\ntype = "random"\nbatch = 0', "less than the minimum of 1"),
        "a key of another type": ('kind = "searcher"\nname = "x"\ntype = "random"\ncubes = 1', "'cubes'"),
        "an unknown type": ('kind = "searcher"\nname = "x"\ntype = "randm"', "'randm' is not one of"),
        "no type where there is no default": ('kind = "searcher"\nname = "x"', "not valid under any"),
        "an unknown base": ('kind = "hardware"\nname = "x"\nextends = "edgy"', "'edgy' is not one of"),
        "a level's key": (
            'kind = "hardware"\nname = "x"\nlevels = [{name = "DRAM", class = "dram", capcity = "1 MB"}]',
            "'capcity' was unexpected",
        ),
        "a level's class": (
            'kind = "hardware"\nname = "x"\nlevels = [{name = "DRAM", class = "drum"}]',
            "'drum' is not one of",
        ),
        "a key of a segment": (
            'kind = "space"\nname = "x"\nextends = "paper"\n[formats]\ntype = "rank-formats"\nslot = 1',
            "'slot' was unexpected",
        ),
        "a loop of a design": (
            'kind = "design"\nworkload = "mm1"\nhardware = "edge"\n[mapping]\nL1_T = ["m:2"]',
            "'m:2' does not match",
        ),
    }.values(),
    ids=lambda value: value[:20].replace("\n", " "),
)
def test_a_schema_tells_mistakes(schemas, spec: str, told: str) -> None:
    assert any(told in message for message in mistakes(schemas, spec)), mistakes(schemas, spec)


@pytest.mark.parametrize(
    "spec",
    [
        'kind = "hardware"\nname = "x"\nextends = "edge"\nlevels.GLB.capacity = "512 KB"',
        'kind = "searcher"\nname = "x"\nextends = "sparsemap-paper"\nmutation = { rate = 0.5 }',
        'kind = "space"\nname = "x"\nextends = "paper"\nformats = { candidates = ["bitmask", { extends = "coordinate" }] }',
        'kind = "study"\nname = "x"\nworkloads = ["mine/layer.toml"]\nhardware = ["edge"]\nobjective = "pareto:energy,delay"',
        'kind = "objective"\nname = "x"\nscore = "energy_pj"',
        'kind = "objective"\nname = "x"\ntype = "pareto"\nobjectives = ["energy", "cycles ** 2"]',
    ],
)
def test_a_schema_lets_pass_what_a_spec_may_change_and_name(schemas, spec: str) -> None:
    assert mistakes(schemas, spec) == []


def test_a_key_has_its_meaning_unit_and_default_and_names_are_listed(schemas) -> None:
    level = schemas["hardware"]["properties"]["levels"]["items"]["$ref"].rpartition("/")[2]
    width = schemas["hardware"]["definitions"][level]["properties"]["metadata_width"]
    assert width == {
        "anyOf": [{"type": "integer", "minimum": 1}, {"$ref": "#/definitions/varied"}],
        "description": "Bits of one metadata access. Unit: bit.",
        "default": 32,
    }
    technology = schemas["hardware"]["properties"]["technology"]["anyOf"][0]["anyOf"][0]["$ref"].rpartition("/")[2]
    assert "12nm" in schemas["hardware"]["definitions"][technology]["enum"]


def test_the_schema_of_designs_has_the_keys_of_design_files(schemas) -> None:
    assert set(schemas["design"]["properties"]) == {*KNOWN, "format"}


def test_every_key_says_what_it_is_for(registry) -> None:
    silent = []
    for kind in registry.kinds():
        for name, cls in registry.types(kind).items():
            keys = keys_of(cls)
            inner = [table for key in keys.values() for table in reference.objects(key.type)]
            for owner in (cls, *inner):
                silent += [f"{kind} {name}: {key}" for key, about in keys_of(owner).items()
                           if not about.doc and key not in HEADER]  # fmt: skip
    assert not silent, "keys without a text below them in their class"


def test_the_command_writes_the_schemas_of_all_kinds(schemas, tmp_path) -> None:
    done = CliRunner().invoke(cli, ["extra", "schema", "--all", "--out", str(tmp_path / "schemas")])
    assert done.exit_code == 0, done.output
    written = {path.stem: json.loads(path.read_text("utf-8")) for path in (tmp_path / "schemas").glob("*.json")}
    assert written == schemas


def test_the_committed_reference_is_that_of_the_classes(registry) -> None:
    fresh = reference.text(registry, registry.kinds())
    assert (ROOT / "docs" / "reference.md").read_text("utf-8") == fresh, (
        "run `sparsemap extra schema --all --markdown > docs/reference.md`"
    )
