"""The registry: types and specs in, pieces out; what extends and replaces what; what is said when a name is wrong."""

from typing import ClassVar

import attrs
import pytest

from sparsemap.errors import PluginError, SpecError
from sparsemap.pieces.contracts import Piece
from sparsemap.pieces.registry import Origin, Registry


@attrs.frozen(kw_only=True)
class Memory(Piece):
    kind: ClassVar[str] = "memory"
    default_type: ClassVar[str] = "sram"


@attrs.frozen(kw_only=True)
class Sram(Memory):
    type_name: ClassVar[str] = "sram"
    banks: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    energy: dict[str, float] = attrs.field(factory=dict)
    ports: tuple[str, ...] = ("r", "w")


@attrs.frozen(kw_only=True)
class Cache(Memory):
    type_name: ClassVar[str] = "cache"
    ways: int


@attrs.frozen(kw_only=True)
class Chip(Piece):
    kind: ClassVar[str] = "chip"
    type_name: ClassVar[str] = "chip"
    default_type: ClassVar[str] = "chip"
    main: Memory = attrs.field(factory=Sram)
    others: tuple[Memory, ...] = ()


@attrs.frozen(kw_only=True)
class Step(Piece):
    kind: ClassVar[str] = "step"
    type_name: ClassVar[str] = "half"


@pytest.fixture
def registry():
    registry = Registry()
    for cls in (Sram, Cache, Chip, Step):
        registry.add_type(cls, Origin("memories", "memories.py", "1.2"))
    return registry


def add(registry, file="a.toml", **table):
    registry.add_spec(table, Origin("mine", file))


def said(call):
    with pytest.raises(SpecError) as caught:
        call()
    return str(caught.value)


# ---------------------------------------------------------------------------------------------------- names and types


def test_a_class_whose_fields_have_defaults_is_a_piece_without_toml(registry):
    assert registry.get("memory", "sram") == Sram(name="sram")
    assert registry.names("memory") == ("sram",)
    assert list(registry.types("memory")) == ["cache", "sram"]
    assert registry.kinds() == ("chip", "memory", "step")


def test_a_spec_selects_a_class_by_type_or_gets_the_default_of_its_kind(registry):
    add(registry, kind="memory", name="l1", type="cache", ways=4)
    add(registry, kind="memory", name="glb", banks=8)
    assert registry.get("memory", "l1") == Cache(name="l1", ways=4)
    assert registry.get("memory", "glb") == Sram(name="glb", banks=8)
    assert registry.get("memory", "glb") is registry.get("memory", "glb")


def test_every_piece_remembers_where_it_came_from(registry):
    add(registry, "specs/glb.toml", kind="memory", name="glb")
    assert registry.origin("memory", "glb") == Origin("mine", "specs/glb.toml")
    assert registry.origin("memory", "sram") == Origin("memories", "memories.py", "1.2")
    assert registry.type_origin("memory", "cache").plugin == "memories"


def test_the_spec_of_a_piece_is_its_table_with_everything_resolved(registry):
    add(registry, kind="memory", name="glb", banks=8)
    add(registry, kind="memory", name="big", extends="glb", energy={"read": 2})
    assert registry.spec("memory", "big") == {
        "kind": "memory", "name": "big", "type": "sram", "banks": 8, "energy": {"read": 2}
    }  # fmt: skip
    assert registry.spec("memory", "sram") == {"kind": "memory", "name": "sram", "type": "sram"}


# ------------------------------------------------------------------------------------------------------------ extends


def test_extends_merges_tables_replaces_lists_and_leaves_the_description_behind(registry):
    add(
        registry,
        kind="memory",
        name="glb",
        description="base",
        source="paper",
        ports=["rw"],
        energy={"read": 1, "w": 2},
    )
    add(registry, kind="memory", name="big", extends="glb", banks=4, ports=["r"], energy={"read": 3})
    big = registry.get("memory", "big")
    assert (big.banks, big.ports, big.energy) == (4, ("r",), {"read": 3.0, "w": 2.0})
    assert (big.name, big.description, big.source) == ("big", "", "paper")


def test_a_spec_may_extend_one_that_comes_later_or_a_class(registry):
    add(registry, kind="memory", name="big", extends="glb")
    add(registry, kind="memory", name="glb", extends="cache", ways=2)
    assert registry.get("memory", "big") == Cache(name="big", ways=2)


def test_extending_in_a_circle_is_reported_with_the_circle(registry):
    add(registry, kind="memory", name="a", extends="b")
    add(registry, "b.toml", kind="memory", name="b", extends="a")
    add(registry, "c.toml", kind="memory", name="c", extends="c")
    assert said(lambda: registry.get("memory", "a")) == "a.toml: extends: goes in a circle: a -> b -> a"
    assert said(lambda: registry.get("memory", "c")) == "c.toml: extends: goes in a circle: c -> c"


def test_a_file_may_extend_a_file_beside_it(registry, tmp_path, monkeypatch):
    texts = {
        "glb.toml": 'extends = "sram"\nbanks = 8\ndescription = "base"',
        "big.toml": 'extends = "glb.toml"\nports = ["r"]',
    }
    texts |= {"round.toml": 'extends = "./round.toml"', "odd.toml": 'extends = "none.toml"', "off.toml": "extends = 1"}
    for name, text in texts.items():
        (tmp_path / name).write_text(f'kind = "memory"\n{text}\n')
    big = registry.resolve("memory", tmp_path / "big.toml")
    assert (big.name, big.banks, big.ports) == ("big", 8, ("r",))
    monkeypatch.chdir(tmp_path)
    assert registry.build("memory", {"extends": "glb.toml", "ports": ["r"]}).name == "glb-changed"
    assert said(lambda: registry.resolve("memory", "round.toml")).endswith("round.toml -> round.toml")
    assert said(lambda: registry.resolve("memory", "odd.toml")) == "none.toml: no such file"
    (tmp_path / "far.toml").write_text('kind = "memory"\nextends = "off.toml"\n')
    assert said(lambda: registry.resolve("memory", "far.toml")) == "off.toml: extends: expected text, found 1"


def test_extending_what_is_not_there_names_the_file(registry):
    add(registry, kind="memory", name="big", extends="srm")
    assert said(lambda: registry.get("memory", "big")) == "a.toml: extends: no memory 'srm'; did you mean 'sram'?"


# -------------------------------------------------------------------------------------------- collisions and override


def test_the_same_name_twice_names_both_files_and_the_two_ways_out(registry):
    add(registry, "specs/glb.toml", kind="memory", name="glb")
    assert said(lambda: add(registry, "mine/glb.toml", kind="memory", name="glb")) == (
        "memory 'glb' is defined twice: specs/glb.toml and mine/glb.toml. "
        "Rename one, or set override = true in the one that should win."
    )


@pytest.mark.parametrize("winner_first", [True, False])
def test_override_wins_whichever_comes_first(registry, winner_first):
    tables = [{"banks": 2, "override": True}, {"banks": 1}]
    for table in tables if winner_first else reversed(tables):
        add(registry, kind="memory", name="glb", **table)
    assert registry.get("memory", "glb").banks == 2


def test_a_spec_may_carry_the_name_of_its_own_type_but_not_of_another(registry):
    add(registry, kind="memory", name="sram", banks=2)
    assert registry.get("memory", "sram").banks == 2
    other = Registry()
    for cls in (Sram, Cache):
        other.add_type(cls, Origin("memories", "memories.py"))
    assert "memories.py and a.toml" in said(lambda: add(other, kind="memory", name="sram", type="cache", ways=1))


def test_two_classes_of_one_type_name_collide_unless_one_overrides(registry):
    @attrs.frozen(kw_only=True)
    class Other(Memory):
        type_name: ClassVar[str] = "sram"

    assert said(lambda: registry.add_type(Other, Origin("mine", "other.py"))) == (
        "type 'sram' of memory is defined twice: memories.py and other.py. "
        "Rename one, or set override = true in the one that should win."
    )
    Other.override = True
    registry.add_type(Other, Origin("mine", "other.py"))
    assert type(registry.get("memory", "sram")) is Other


# ----------------------------------------------------------------------------------------------- pieces inside pieces


def test_a_field_typed_as_a_contract_takes_a_name_or_a_table(registry):
    add(registry, kind="memory", name="glb", banks=8)
    add(registry, kind="chip", name="edge", main="glb", others=["sram", {"type": "cache", "ways": 2}, {"banks": 3}])
    edge = registry.get("chip", "edge")
    assert edge.main is registry.get("memory", "glb")
    assert edge.others == (Sram(name="sram"), Cache(name="cache", ways=2), Sram(name="sram", banks=3))


def test_problems_inside_pieces_keep_their_path_and_those_of_other_files_their_file(registry):
    add(registry, "glb.toml", kind="memory", name="glb", banks=0)
    add(registry, "edge.toml", kind="chip", name="edge", main="gbl", others=[{"type": "cache", "wys": 2}, "glb"])
    assert said(lambda: registry.get("chip", "edge")).splitlines() == [
        "edge.toml: main: no memory 'gbl'; did you mean 'glb'?",
        "edge.toml: others[0].wys: unknown key; did you mean 'ways'?",
        "edge.toml: others[0].ways: missing; expected a whole number",
        "glb.toml: banks: is 0, expected at least 1",
    ]


def test_build_takes_a_name_a_table_or_a_piece(registry):
    add(registry, kind="memory", name="glb", banks=8)
    assert registry.build("memory", "glb") is registry.get("memory", "glb")
    assert registry.build("memory", {"banks": 2}) == Sram(name="sram", banks=2)
    assert registry.build("memory", {"name": "L1", "type": "cache", "ways": 2}) == Cache(name="L1", ways=2)
    assert registry.build("memory", Sram()) == Sram()


@pytest.mark.parametrize("key", ["extends", "type"])
def test_an_inline_table_that_changes_a_spec_says_so_in_its_name(registry, key):
    add(registry, kind="memory", name="glb", banks=8, energy={"read": 1})
    changed = registry.build("memory", {key: "glb", "energy": {"write": 2}})
    assert changed == Sram(name="glb-changed", banks=8, energy={"read": 1, "write": 2})
    assert registry.build("memory", {key: "glb"}).name == "glb"
    assert registry.build("memory", {key: "glb", "name": "mine", "banks": 1}).name == "mine"


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("gbl", "x.toml: levels[1]: no memory 'gbl'; did you mean 'glb'?"),
        ({"extends": "gbl"}, "x.toml: levels[1].extends: no memory 'gbl'; did you mean 'glb'?"),
        ({"type": "cach"}, "x.toml: levels[1].type: no memory 'cach'; did you mean 'cache'?"),
        ({"type": 3}, "x.toml: levels[1].type: expected text, found 3"),
        ({"kind": "chip"}, "x.toml: levels[1].kind: expected 'memory', found 'chip'"),
        ({"banks": "2"}, "x.toml: levels[1].banks: expected a whole number, found text '2'"),
        (3, "x.toml: levels[1]: expected the name or the table of a memory, found 3"),
    ],
)
def test_a_wrong_inline_table_is_reported_where_it_stands(registry, value, line):
    add(registry, kind="memory", name="glb")
    assert said(lambda: registry.build("memory", value, "x.toml", "levels[1]")) == line


def test_a_kind_without_a_default_type_asks_for_one(registry):
    assert said(lambda: registry.build("step", {}, "x.toml", "step")) == (
        "x.toml: step.type: missing; known types of step: half"
    )


# -------------------------------------------------------------------------------------------------------- wrong names


def test_an_unknown_name_suggests_the_nearest_or_says_where_it_exists(registry):
    assert said(lambda: registry.get("memory", "sarm")) == "no memory 'sarm'; did you mean 'sram'?"
    assert said(lambda: registry.get("memory", "chip")) == "no memory 'chip'; there is a chip of that name"
    assert (
        said(lambda: registry.get("memory", "zzzz")) == "no memory 'zzzz'; known: sram; as tables with type also cache"
    )
    assert said(lambda: registry.get("memry", "sram")) == "no kind 'memry'; did you mean 'memory'?"


def test_a_class_that_needs_a_spec_is_no_name(registry):
    text = "memory 'cache' is a type that needs ways; give a table with type = 'cache' and these"
    assert said(lambda: registry.get("memory", "cache")) == text


def test_everything_wrong_with_the_head_of_a_spec_is_said_at_once(registry):
    assert said(lambda: add(registry, kind="memry", type=3, override="yes")).splitlines() == [
        "a.toml: name: missing; expected text",
        "a.toml: type: expected text, found 3",
        "a.toml: override: expected true or false, found text 'yes'",
        "a.toml: kind: no kind 'memry'; did you mean 'memory'?",
    ]


def test_a_class_whose_field_types_cannot_be_found_is_the_fault_of_its_file(registry):
    @attrs.frozen(kw_only=True)
    class Vague(Memory):
        type_name: ClassVar[str] = "vague"
        size: "NotImported" = 1  # noqa: F821

    registry.add_type(Vague, Origin("mine", "vague.py"))
    with pytest.raises(
        PluginError,
        match=r"test_registry.py, line \d+: class Vague: name 'NotImported' is not defined; types of fields",
    ):
        registry.get("memory", "vague")


def test_a_class_that_cannot_be_built_is_named_with_its_line(registry):
    @attrs.frozen(kw_only=True)
    class Forgetful(Memory):
        type_name: ClassVar[str] = "forgetful"

        def __attrs_post_init__(self):
            self.rows  # noqa: B018

    registry.add_type(Forgetful, Origin("mine", "forgetful.py"))
    with pytest.raises(
        PluginError, match=r"test_registry.py, line \d+: class Forgetful: cannot be built: AttributeError"
    ):
        registry.get("memory", "forgetful")


@pytest.mark.parametrize(("kind", "name"), [("memory", "glb"), ("chip", "edge")])
def test_a_wrong_spec_disturbs_only_those_who_ask_for_it(registry, kind, name):
    add(registry, kind="memory", name="glb", bank=1)
    add(registry, "c.toml", kind="chip", name="edge", main="glb")
    assert registry.get("memory", "sram")
    assert said(lambda: registry.get(kind, name)) == "a.toml: bank: unknown key; did you mean 'banks'?"


# ------------------------------------------------------------------------------------------------------ specs by path


def test_resolve_takes_a_name_or_the_path_of_a_spec(registry, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wide.toml").write_text("banks = 16\n")
    (tmp_path / "named.toml").write_text('kind = "memory"\nname = "deep"\nextends = "sram"\nbanks = 4\n')
    (tmp_path / "chip.toml").write_text('kind = "chip"\nname = "edge"\n')
    (tmp_path / "wrong.toml").write_text('banks = "many"\n')
    assert registry.resolve("memory", "sram") == Sram(name="sram")
    assert registry.resolve("memory", "wide.toml") == Sram(name="wide", banks=16)
    assert registry.resolve("memory", tmp_path / "named.toml") == Sram(name="deep", banks=4)
    assert said(lambda: registry.resolve("memory", "chip.toml")) == "chip.toml: kind: expected 'memory', found 'chip'"
    assert said(lambda: registry.resolve("memory", "wrong.toml")) == (
        "wrong.toml: banks: expected a whole number, found text 'many'"
    )
    assert said(lambda: registry.resolve("memory", "wid.toml")) == "wid.toml: no such file; did you mean 'wide.toml'?"
    monkeypatch.chdir(tmp_path)
    assert said(lambda: registry.resolve("memory", "wrong")) == "no memory 'wrong'; did you mean 'wrong.toml'?"
