"""Loading: where plugins and specs come from, in which order, and what is said about those that do not work.

Each test writes its plugins into a folder of its own and loads them alone (`builtin=False`), unless it is about the
built-in ones.
"""

import os
import sys
from textwrap import dedent

import attrs
import numpy as np
import pytest
import sparsemap_specs
from calls import at_most
from quick import load_anew as load

from sparsemap.errors import PluginError, SparseMapError, SpecError
from sparsemap.pieces import contracts, hookspecs
from sparsemap.pieces.contracts import Fiber
from sparsemap.pieces.registry import Plugin
from sparsemap.spec import toml_io

WORD_BITMASK = '''
    """A bitmask in whole words of memory: the last word of a fiber is filled up."""
    import attrs
    import numpy as np
    from sparsemap import Format, hookimpl

    @attrs.frozen(kw_only=True)
    class WordBitmask(Format):
        type_name = "word-bitmask"
        word: int = attrs.field(default=8, validator=attrs.validators.ge(1))

        def metadata_bits(self, fiber):
            return fiber.fibers * np.ceil(fiber.length / self.word) * self.word

    @hookimpl
    def register_formats():
        return [WordBitmask]
'''

BITMASK_IN_BYTES = """
    kind = "format"
    name = "bitmask-in-bytes"
    type = "word-bitmask"
    compressed = true
    word = 8
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes a file below the working directory of the test."""
    monkeypatch.chdir(tmp_path)

    def write(path, text):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(dedent(text))

    return write


def alone(*plugin_dirs, **options):
    return load(plugin_dirs, builtin=False, **{"env": {}, **options})


def said(*plugin_dirs, **options):
    with pytest.raises(SparseMapError) as caught:
        alone(*plugin_dirs, **options)
    return str(caught.value)


def format_plugin(body="", hook="register_formats()", returns="[Mine]"):
    """A plugin with one format class."""
    return f"""
        import attrs
        from sparsemap import Format, hookimpl

        @attrs.frozen(kw_only=True)
        class Mine(Format):
            type_name = "mine"
            {body}

        @hookimpl
        def {hook}:
            return {returns}
    """


# -------------------------------------------------------------------------------------------------- a plugin folder


def test_a_folder_with_python_and_toml_brings_a_new_format(write):
    write("my-plugins/word_bitmask/__init__.py", WORD_BITMASK)
    write("my-plugins/word_bitmask/bytes.toml", BITMASK_IN_BYTES)
    registry = alone("my-plugins")
    piece = registry.get("format", "bitmask-in-bytes")
    ones = np.ones(2)
    fiber = Fiber(2 * ones, np.array([64.0, 65.0]), ones, ones, ones, ones)
    assert piece.compressed and piece.metadata_bits(fiber).tolist() == [128.0, 144.0]
    assert registry.names("format") == ("bitmask-in-bytes", "word-bitmask")


def test_every_piece_and_plugin_remembers_its_file_and_version(write):
    write("my-plugins/word_bitmask/__init__.py", '__version__ = "0.3"\n' + dedent(WORD_BITMASK))
    write("my-plugins/word_bitmask/specs/bytes.toml", BITMASK_IN_BYTES)
    registry = alone("my-plugins")
    origin = registry.origin("format", "bitmask-in-bytes")
    assert (origin.plugin, origin.version) == ("word_bitmask", "0.3")
    assert origin.file == os.path.join("my-plugins", "word_bitmask", "specs", "bytes.toml")
    file = os.path.join("my-plugins", "word_bitmask", "__init__.py")
    assert registry.origin("format", "word-bitmask").file == file
    [plugin] = registry.plugins
    assert plugin == Plugin("word_bitmask", file, "0.3", ("register_formats",), plugin.contents)
    assert plugin.contents and not any(built_in.contents for built_in in load(env={}).plugins)


@pytest.mark.parametrize("given", ["my-plugins", "my-plugins/chips"])
def test_a_plugin_may_be_toml_only(write, given):
    write("my-plugins/chips/small.toml", 'kind = "hardware"\nname = "small"\nlevels = [{ name = "DRAM" }]')
    registry = alone(given)
    assert registry.get("hardware", "small").levels[0]["name"] == "DRAM"
    assert [plugin.name for plugin in registry.plugins] == ["chips"]


def test_the_folder_given_may_be_the_plugin_and_its_own_modules_are_imported_relatively(write):
    write("blocked/__init__.py", "from .formats import register_formats\n")
    write("blocked/formats.py", WORD_BITMASK)
    write("blocked/pyproject.toml", "[project]\nname = 'blocked'\n")
    assert alone("blocked").names("format") == ("word-bitmask",)


def test_folders_of_the_same_name_in_two_places_do_not_get_mixed_up(write):
    write("a/formats/__init__.py", format_plugin())
    write("b/formats/__init__.py", format_plugin('note: str = "b"'))
    assert not hasattr(alone("a").get("format", "mine"), "note")
    assert alone("b").get("format", "mine").note == "b"


def test_plugin_folders_come_from_the_environment_too_and_twice_is_once(write):
    write("a/one/__init__.py", format_plugin())
    write("b/two/x.toml", 'kind = "format"\nname = "two"\ntype = "mine"')
    registry = alone("a", env={"SPARSEMAP_PLUGIN_DIRS": os.pathsep.join(["a", "b"])})
    assert registry.names("format") == ("mine", "two")
    assert [plugin.name for plugin in registry.plugins] == ["one", "two"]


def test_hidden_and_private_folders_are_left_alone(write):
    write("p/.git/x.toml", "not toml")
    write("p/_drafts/__init__.py", "1 / 0")
    write("p/good/__init__.py", format_plugin())
    write("p/good/_old/x.toml", "not toml")
    assert alone("p").names("format") == ("mine",)


def test_a_folder_that_is_not_there_or_holds_no_plugin_is_named(write):
    write("empty/readme.txt", "")
    assert said("nowhere", "empty").splitlines() == [
        "nowhere: no such plugin folder",
        "empty: no plugin in this folder; expected sub-folders with __init__.py or TOML files, or TOML files",
    ]


# ------------------------------------------------------------------------------------------- installed plugins, files


@pytest.fixture
def installed(write, tmp_path, monkeypatch):
    """A pip-installed package `sparse-demo` with an entry point and a folder of specs."""
    write(
        "site/sparse_demo/__init__.py",
        dedent(WORD_BITMASK)
        + dedent("""
            from pathlib import Path

            @hookimpl
            def register_specs():
                return [Path(__file__).parent / "specs"]
        """),
    )
    write("site/sparse_demo/specs/bytes.toml", BITMASK_IN_BYTES)
    write("site/sparse_demo-0.7.dist-info/METADATA", "Metadata-Version: 2.1\nName: sparse-demo\nVersion: 0.7\n")
    write("site/sparse_demo-0.7.dist-info/entry_points.txt", "[sparsemap]\ndemo = sparse_demo\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    yield
    sys.modules.pop("sparse_demo", None)


def test_an_installed_package_is_found_by_its_entry_point_with_its_version(installed):
    registry = load(env={})
    plugin = next(plugin for plugin in registry.plugins if plugin.name == "demo")
    assert plugin.version == "0.7" and plugin.hooks == ("register_formats", "register_specs")
    assert registry.origin("format", "bitmask-in-bytes").version == "0.7"


def test_a_disabled_package_is_not_even_imported(installed):
    registry = load(env={"SPARSEMAP_DISABLE": "other, demo"})
    assert "demo" not in [plugin.name for plugin in registry.plugins]
    assert "sparse_demo" not in sys.modules


def test_an_installed_package_that_cannot_be_imported_is_named(installed, write):
    write("site/sparse_demo/__init__.py", "import not_there_at_all")
    with pytest.raises(PluginError) as caught:
        load(env={})
    assert str(caught.value) == (
        "sparse_demo: plugin 'demo': cannot be imported: ModuleNotFoundError: No module named 'not_there_at_all' "
        "(site/sparse_demo/__init__.py, line 1); SPARSEMAP_DISABLE=demo goes on without it"
    )


def test_specs_given_by_path_come_last(write):
    write("mine/good/__init__.py", format_plugin())
    write("one.toml", 'kind = "format"\nname = "one"\ntype = "mine"')
    write("more/two.toml", 'kind = "format"\nname = "two"\nextends = "one"')
    registry = alone("mine", specs=["one.toml", "more"])
    assert registry.names("format") == ("mine", "one", "two")
    assert registry.origin("format", "one").plugin == "command line"


# --------------------------------------------------------------------------------------------- classes by their name


def by_name(
    write,
    formats=WORD_BITMASK,
    returns='{"word-bitmask": "formats:WordBitmask"}',
    hook="register_formats",
    folder="mine",
):
    write(
        f"{folder}/late/__init__.py",
        f"""
        from sparsemap import hookimpl

        @hookimpl
        def {hook}():
            return {returns}
        """,
    )
    write(f"{folder}/late/formats.py", formats)


def test_a_class_that_is_registered_by_name_is_imported_when_it_is_asked_for(write, tmp_path):
    by_name(write)
    write("mine/late/bytes.toml", BITMASK_IN_BYTES)
    registry = alone("mine")
    assert registry.type_names("format") == ("word-bitmask",) and registry.has("format", "bitmask-in-bytes")
    assert registry.type_origin("format", "word-bitmask").plugin == "late"
    file = str(tmp_path / "mine/late/formats.py")
    assert file not in [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    assert registry.get("format", "bitmask-in-bytes").word == 8
    assert file in [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    assert registry.names("format") == ("bitmask-in-bytes", "word-bitmask")


def test_loading_imports_no_class_that_is_registered_by_name(write):
    by_name(write, formats="1 / 0")
    assert alone("mine").type_names("format") == ("word-bitmask",)


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (
            {"formats": "x = 1\n\n1 / 0"},
            "mine/late/__init__.py: plugin 'late': register_formats: 'word-bitmask' at 'formats:WordBitmask' cannot be "
            "imported: ZeroDivisionError: division by zero (mine/late/formats.py, line 3); SPARSEMAP_DISABLE=late goes "
            "on without it",
        ),
        (
            {"returns": '{"word-bitmask": "formts:WordBitmask"}'},
            "mine/late/__init__.py: plugin 'late': register_formats: 'word-bitmask' at 'formts:WordBitmask' cannot be "
            "imported: ModuleNotFoundError: No module named ",
        ),
        (
            {"returns": '{"word-bitmask": "formats:Bitmask"}'},
            "mine/late/__init__.py: plugin 'late': register_formats: there is no class 'Bitmask' in its module 'formats'",
        ),
        (
            {"returns": '{"word-bitmask": "formats:np"}'},
            "mine/late/__init__.py: plugin 'late': register_formats: 'np' is not a class; expected classes, not instances",
        ),
        (
            {"returns": '{"words": "formats:WordBitmask"}'},
            "mine/late/formats.py, line 7: plugin 'late', class WordBitmask: register_formats: has the type_name "
            "'word-bitmask', and is registered as 'words'",
        ),
        (
            {"hook": "register_mechanisms"},
            "mine/late/formats.py, line 7: plugin 'late', class WordBitmask: register_mechanisms: is not derived from "
            "Mechanism",
        ),
    ],
)
def test_what_is_wrong_with_a_class_by_name_is_told_with_its_line_when_it_is_asked_for(write, options, fault):
    by_name(write, **options)
    registry = alone("mine")
    kind = "mechanism" if "hook" in options else "format"
    [name] = registry.type_names(kind)
    for asked in (lambda: registry.get(kind, name), lambda: registry.names(kind), lambda: registry.types(kind)):
        with pytest.raises(PluginError) as caught:
            asked()
        assert str(caught.value).startswith(fault)


@pytest.mark.parametrize(
    ("returns", "fault"),
    [
        (
            '{"word-bitmask": "WordBitmask"}',
            "register_formats returned 'word-bitmask' = 'WordBitmask', expected the name",
        ),
        (
            '{"word-bitmask": 3}',
            "register_formats returned 'word-bitmask' = 3, expected the name of a type and its place",
        ),
        ('{"": "formats:WordBitmask"}', "register_formats returned '' = 'formats:WordBitmask', expected the name of a"),
    ],
)
def test_a_table_by_name_that_is_none_is_told_at_once(write, returns, fault):
    by_name(write, returns=returns)
    assert said("mine").startswith(f"mine/late/__init__.py: plugin 'late': {fault}")


def test_a_table_of_operators_has_a_table_per_kind(write):
    by_name(write, returns='{"word-bitmask": "formats:WordBitmask"}', hook="register_operators")
    assert said("mine") == (
        "mine/late/__init__.py: plugin 'late': register_operators returned 'word-bitmask' = 'formats:WordBitmask', "
        "expected a table by name, with a table for each kind of init, crossover, mutation, selection"
    )
    by_name(write, returns='{"mutation": {"mine": "formats:Mine"}}', hook="register_operators", folder="right")
    assert alone("right").type_names("mutation") == ("mine",)


def test_a_name_that_is_taken_is_found_without_being_asked_for(write):
    by_name(write)
    write("mine/other/__init__.py", format_plugin().replace('"mine"', '"word-bitmask"'))
    text = (
        "type 'word-bitmask' of format is defined twice: mine/late/__init__.py and mine/other/__init__.py. Rename one"
    )
    assert said("mine").startswith(text)
    write("wins/other/__init__.py", format_plugin("override = True").replace('"mine"', '"word-bitmask"'))
    assert alone("mine/late", "wins").type("format", "word-bitmask").__name__ == "Mine"


# ------------------------------------------------------------------------------------------------ what can go wrong


def test_a_name_that_is_taken_names_both_files(write):
    write("mine/a/__init__.py", format_plugin())
    write("mine/a/x.toml", 'kind = "format"\nname = "x"\ntype = "mine"')
    write("mine/b/x.toml", 'kind = "format"\nname = "x"\ntype = "mine"')
    text = "format 'x' is defined twice: mine/a/x.toml and mine/b/x.toml. Rename one, or set override = true"
    assert said("mine").startswith(text)


def test_two_plugins_with_one_type_name_are_both_named(write):
    write("mine/a/__init__.py", format_plugin())
    write("mine/b/__init__.py", format_plugin())
    assert "type 'mine' of format is defined twice: mine/a/__init__.py and mine/b/__init__.py" in said("mine")


def test_two_plugins_of_one_name_are_both_named(write):
    write("a/same/__init__.py", format_plugin())
    write("b/same/__init__.py", format_plugin())
    assert said("a", "b") == (
        "b/same/__init__.py: plugin 'same': has the name of the plugin in a/same/__init__.py; rename one"
    )


def test_a_misspelt_hook_is_reported_with_the_nearest(write):
    write("mine/typo/__init__.py", format_plugin(hook="register_format()"))
    assert said("mine") == (
        "mine/typo/__init__.py: plugin 'typo': no hook 'register_format'; did you mean 'register_formats'?"
    )


def test_a_wrong_argument_of_a_hook_is_reported_with_the_right_ones(write):
    write("mine/typo/__init__.py", format_plugin(hook="register_formats(registry)"))
    assert said("mine") == (
        "mine/typo/__init__.py: plugin 'typo': hook register_formats(registry) has an argument that the hook does not "
        "pass; expected register_formats()"
    )


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        (
            "import not_there_at_all",
            "ModuleNotFoundError: No module named 'not_there_at_all' (mine/bad/__init__.py, line 1)",
        ),
        ("x = 1\n\n1 / 0", "ZeroDivisionError: division by zero (mine/bad/__init__.py, line 3)"),
        ("def f(:\n", "SyntaxError: invalid syntax (__init__.py, line 1)"),
        ("import sys\nsys.exit(2)", "SystemExit: 2 (mine/bad/__init__.py, line 2)"),
    ],
)
def test_a_plugin_that_fails_to_import_says_where_and_how_to_go_on(write, body, cause):
    write("mine/bad/__init__.py", body)
    assert said("mine") == (
        f"mine/bad/__init__.py: plugin 'bad': cannot be imported: {cause}; SPARSEMAP_DISABLE=bad goes on without it"
    )
    assert alone("mine", env={"SPARSEMAP_DISABLE": "bad"}).plugins == ()


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"returns": "Mine"}, "register_formats returned class Mine"),
        ({"returns": "None"}, "register_formats returned None, expected a list of classes derived from Format"),
        ({"returns": "1 / 0"}, "register_formats raised ZeroDivisionError: division by zero (mine/"),
        ({"returns": "[Mine()]"}, "register_formats: is not a class; expected classes, not instances"),
        ({"returns": "[int]"}, "class int: register_formats: is not derived from Format"),
        (
            {"returns": "[Format]"},
            "plugin 'wrong', class Format: register_formats: is not derived from Format",
        ),
        (
            {"hook": "register_searchers()"},
            "line 5: plugin 'wrong', class Mine: register_searchers: is not derived from Searcher",
        ),
        (
            {"hook": "register_operators()"},
            "line 5: plugin 'wrong', class Mine: register_operators: is not derived from Init or Crossover or",
        ),
        ({"body": 'type_name = ""'}, "line 5: plugin 'wrong', class Mine: register_formats: has no type_name"),
        (
            {"body": "\n\nclass Sub(Mine):\n    block: int = 8", "returns": "[Sub]"},
            "line 10: plugin 'wrong', class Sub: register_formats: has fields (block) but no @attrs.frozen(kw_only=True)",
        ),
    ],
)
def test_what_a_hook_must_not_return_is_reported_with_plugin_and_class(write, options, fault):
    body = options.pop("body", "")
    text = dedent(format_plugin("@@", **options)).replace("@@", body)
    write("mine/wrong/__init__.py", text)
    message = said("mine")
    assert message.startswith("mine/wrong/__init__.py") and fault in message


def test_everything_wrong_with_all_plugins_and_specs_is_said_at_once(write):
    write("mine/a/__init__.py", "1 / 0")
    write("mine/b/__init__.py", format_plugin(hook="register_format()"))
    write("mine/c/bad.toml", "kind = ")
    write("mine/c/worse.toml", 'kind = "formt"\n')
    lines = said("mine", "nowhere").splitlines()
    assert [line.split(":")[0] for line in lines] == [
        "mine/a/__init__.py", "nowhere", "mine/b/__init__.py",
        "mine/c/bad.toml", "mine/c/worse.toml", "mine/c/worse.toml",
    ]  # fmt: skip
    assert lines[-1] == "mine/c/worse.toml: kind: no kind 'formt'; did you mean 'format'?"


def test_a_field_that_is_set_without_a_type_is_told_with_its_line(write):
    write("mine/wrong/__init__.py", format_plugin("compressed = True"))
    assert said("mine").startswith(
        "mine/wrong/__init__.py: plugin 'wrong': cannot be imported: TypeError: class Mine sets field 'compressed' "
        "without a type; write `compressed: bool = True` (mine/wrong/__init__.py, line 6)"
    )
    write("right/right/__init__.py", format_plugin("compressed: bool = True"))
    assert alone("right").types("format")["mine"](name="mine").compressed


def test_a_design_in_a_plugin_folder_is_no_spec(write):
    write("mine/greeting/__init__.py", "")
    write("mine/greeting/out/design.toml", 'kind = "design"\nname = "mm1-cloud"\n')
    write("mine/design.toml", 'kind = "design"\nname = "mm1-cloud"\n')
    assert [plugin.name for plugin in alone("mine").plugins] == ["greeting", "mine"]
    with pytest.raises(SpecError, match="no kind 'design'"):
        alone(specs=["mine/design.toml"])


def test_wrong_specs_alone_are_a_spec_error(write):
    write("bad.toml", "a = 1\nb 2\n")
    with pytest.raises(SpecError, match=r"^bad.toml: line 2, column 3: is not TOML"):
        alone(specs=["bad.toml"])


# ------------------------------------------------------------------------------------------------- hooks and speed


def test_observers_and_commands_are_called_through_the_registry(write):
    write(
        "mine/watch/__init__.py",
        """
        from sparsemap import hookimpl

        @hookimpl
        def search_finished(result):
            result.append("seen")
        """,
    )
    seen = []
    alone("mine").hook.search_finished(result=seen, problem=None)
    assert seen == ["seen"]


def test_every_register_hook_has_a_contract_or_a_meaning_of_its_own():
    hooks = {name for name in vars(hookspecs) if name.startswith("register_")}
    assert hooks - hookspecs.CONTRACTS.keys() == {"register_specs", "register_commands"}
    assert all(getattr(hookspecs, name).__doc__ for name in hooks)


CITY = """
    import attrs
    from sparsemap.pieces.contracts import Piece

    @attrs.frozen(kw_only=True)
    class City(Piece):
        kind = "city"
        type_name = "city"
        people: int = attrs.field(validator=attrs.validators.ge(1))
"""


def test_a_plugin_may_bring_a_kind_of_its_own_with_specs(write):
    write(
        "my/cities/__init__.py",
        'from sparsemap import hookimpl\n\n@hookimpl\ndef register_kinds():\n    return {"city": "city:City"}\n',
    )
    write("my/cities/city.py", CITY)
    write("my/cities/small.toml", 'kind = "city"\nname = "small"\npeople = 20')
    registry = alone("my")
    assert "city" in registry.kinds() and registry.get("city", "small").people == 20
    with pytest.raises(SpecError, match=r"people: is 0, expected at least 1"):
        registry.build("city", {"people": 0})
    with pytest.raises(SpecError, match=r"no city 'smal'; did you mean 'small'\?"):
        registry.get("city", "smal")


@pytest.mark.parametrize(
    ("returned", "fault"),
    [
        ("['city']", "register_kinds: is not a class; expected classes, not instances"),
        ("{'city': 3}", "register_kinds returned 'city' = 3, expected the name of a type and its place"),
        ("{'city': 'city:Town'}", "there is no class 'Town' in its module 'city'"),
    ],
)
def test_a_wrong_kind_of_a_plugin_is_told(write, returned, fault):
    write(
        "my/cities/__init__.py",
        f"from sparsemap import hookimpl\n\n@hookimpl\ndef register_kinds():\n    return {returned}\n",
    )
    write("my/cities/city.py", CITY)
    with pytest.raises(SparseMapError) as caught:
        alone("my").build("city", {"people": 1})
    assert fault in str(caught.value)


def test_the_built_in_plugins_are_plugins_like_any_other():
    registry = load(env={})
    assert all(plugin.version for plugin in registry.plugins)
    assert all(registry.get(kind, name).kind == kind for kind in registry.kinds() for name in registry.names(kind))
    assert {"hardware", "space", "study", "workload", "format"} <= set(registry.kinds())


def test_every_class_of_a_built_in_plugin_is_at_the_place_that_it_registers():
    registry = load(env={})
    for kind in registry.kinds():
        assert all(cls.type_name == name and cls.kind == kind for name, cls in registry.types(kind).items())


@pytest.mark.parametrize("name", sorted({name for names in hookspecs.CONTRACTS.values() for name in names}))
def test_a_class_of_a_plugin_may_do_without_slots(name):
    contract = getattr(contracts, name)
    lacking = {key: None for key, field in attrs.fields_dict(contract).items() if field.default is attrs.NOTHING}

    @attrs.frozen(kw_only=True, slots=False)
    class Mine(contract):
        type_name = "mine"

    with attrs.validators.disabled():
        assert Mine(name="own", **lacking).name == "own"


def test_a_built_in_spec_is_read_when_it_is_asked_for(monkeypatch):
    read, own = [], toml_io.read
    monkeypatch.setattr(toml_io, "read", lambda path, *more: read.append(path.name) or own(path, *more))
    registry = load()
    assert len(read) < 20 and "bitmask.toml" not in read and "bitmask" in registry.names("format")
    registry.get("format", "bitmask")
    assert read[-1] == "bitmask.toml" and registry.origin("format", "bitmask").file.endswith("bitmask.toml")


@pytest.mark.parametrize(
    ("rest", "fault"),
    [
        ("this is no TOML", "odd.toml: line 3, column 6: is not TOML: "),
        ("extends = 3", "odd.toml: extends: expected text, found 3"),
        ("compresed = true", "odd.toml: compresed: unknown key; did you mean 'compressed'?"),
        ('name = "other"', "odd.toml: line 3, column 15: is not TOML: "),
    ],
)
def test_what_is_wrong_with_a_built_in_spec_is_told_when_it_is_asked_for(write, monkeypatch, rest, fault):
    write("more/odd.toml", f'kind = "format"\nname = "odd"\n{rest}\n')
    monkeypatch.setattr(sparsemap_specs, "__path__", [*sparsemap_specs.__path__, "more"])
    registry = load()
    with pytest.raises(SpecError) as caught:
        registry.get("format", "odd")
    assert fault in str(caught.value)


def test_a_spec_with_the_name_of_a_built_in_one_is_told_with_both_files(write):
    write("mine.toml", 'kind = "format"\nname = "bitmask"\nextends = "run-length"')
    with pytest.raises(SpecError, match=r"format 'bitmask' is defined twice: .*bitmask.toml and mine.toml"):
        load(specs=["mine.toml"])
    write("mine.toml", 'kind = "format"\nname = "bitmask"\nextends = "run-length"\noverride = true')
    registry = load(specs=["mine.toml"])
    assert registry.get("format", "bitmask").lists == registry.get("format", "run-length").lists


def test_loading_everything_is_little_work():
    load(env={})
    with at_most(100_000):
        load(env={})
