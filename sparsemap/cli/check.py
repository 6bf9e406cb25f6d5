"""Checks of `sparsemap check`: a spec file, and everything derived from the file alone."""

from __future__ import annotations

import copy
import json
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from ..errors import Mistake, PluginError, SpecError, listed, unknown
from ..files import shown
from ..pieces import defaults
from ..pieces.contracts import Workload
from ..pieces.data_specs import DESIGN_KIND, Hardware
from ..pieces.faults import OURS, plugin_line
from ..pieces.registry import Origin, Registry
from ..problem import design_file
from ..problem.constraints import broken_of
from ..problem.doubts import doubts
from ..problem.hardware_space import without_area, wrong_choices
from ..problem.load import load_problem, make_problem, objective_of, piece_of
from ..problem.network import nodes_of
from ..problem.problem import OPERANDS, OUTPUT, Problem
from ..problem.project import located
from ..problem.widths import width_of, workload_widths
from ..spec import toml_io
from ..spec.structuring import SpecTable, join
from ..study.cells import MORE, cells_of

logger = logging.getLogger("sparsemap")


TRIED = {"format": "its codec or its formulas are wrong", "mechanism": "its filters are wrong"}
"""Kinds with test runs of their pieces, and the message for a failure."""


def check_files(files: Sequence[str], registry: Registry) -> Iterator[tuple[str, list[Mistake]]]:
    """Mistakes of each spec file; pieces of the files join the registry, so files may name each other's pieces."""
    read = [(file, _read(file)) for file in files]
    for file, table in read:
        if not isinstance(table, Mapping):
            continue
        with suppress(SpecError):  # mistakes are found below
            registry.headed(table, file)
            try:
                registry.add_spec(table, Origin("", shown(file)))
            except SpecError as error:  # a name that is taken is no mistake of a file that is used by its path
                first = registry.origin(table["kind"], table["name"]).file
                if not (os.path.exists(first) and os.path.samefile(first, file)):
                    text = "%s: fine by its path; in a plugin it stops every command: %s"
                    logger.warning(text, shown(file), error)
    tables = [(file, table) for file, table in read if isinstance(table, Mapping)]
    workloads = [(file, table) for file, table in tables if table.get("kind") == Workload.kind]
    for file, table in read:
        check = Check(registry, shown(file), Path(file), workloads)
        yield file, check.table(table) if isinstance(table, Mapping) else table


def check_classes(folders: Sequence[str], registry: Registry) -> dict[str, list[Mistake]]:
    """Mistakes of formats and mechanisms in Python without a spec, by file of the plugin below these folders."""
    found: dict[str, list[Mistake]] = {}
    for kind, name in [(of, name) for of in TRIED for name in registry.names(of)]:
        file = registry.origin(kind, name).file
        if Path(file).suffix == ".py" and any(Path(file).resolve().is_relative_to(Path(x).resolve()) for x in folders):
            check = Check(registry, file, Path(file))
            check.piece(kind, {"type": name})
            found.setdefault(file, []).extend(check.mistakes)
    return found


def _read(file: str) -> Mapping[str, Any] | list[Mistake]:
    try:
        return toml_io.read(file)
    except SpecError as error:
        return list(error.mistakes)


@attrs.define(eq=False)
class Check:
    """The check of a file, as deep as possible without other files."""

    registry: Registry
    file: str
    path: Path
    workloads: Sequence[tuple[str, Mapping[str, Any]]] = ()
    """Files and tables of workloads checked together with the file."""
    mistakes: dict[Mistake, None] = attrs.field(factory=dict, init=False)
    """Mistakes so far, none twice."""
    removed: set[str] = attrs.field(factory=set, init=False)
    """Paths of keys left out to find more mistakes."""

    def attempt(self, work: Callable[[], Any]) -> Any:
        """Runs `work`, collects its mistakes, and returns its result, None after a mistake."""
        try:
            return work()
        except SpecError as error:
            self.mistakes.update(dict.fromkeys(one for one in error.mistakes if one.path not in self.removed))
            return None

    def table(self, table: Mapping[str, Any]) -> list[Mistake]:
        """All mistakes of the table of a spec file."""
        registry, file, kind = self.registry, self.file, table.get("kind")
        if kind == DESIGN_KIND:
            self.attempt(lambda: design_file.structure(table, registry, file))
            return list(self.mistakes)
        if not isinstance(kind, str) or not kind:
            expected = f"expected one of {', '.join(registry.kinds())}"
            return [Mistake(file, "kind", f"missing; {expected}" if kind is None else f"{expected}, found {kind!r}")]
        if kind not in registry.kinds():
            return [Mistake(file, "kind", unknown("kind", kind, registry.kinds()))]
        if not isinstance(table.get("name"), str) or not table["name"]:
            found = f"expected text, found {table['name']!r}" if "name" in table else "missing; expected text"
            self.mistakes[Mistake(file, "name", found)] = None
        own = {key: value for key, value in table.items() if key != "override"}
        name = own["name"] if isinstance(own.get("name"), str) else self.path.stem
        self.piece(kind, {**own, "name": name})
        if kind == Hardware.kind:  # the rest is told as well, as if what is wrong were not there
            while (rest := self.without_mistakes(own)) != own:
                own = rest
                self.piece(kind, {**own, "name": name})
        return list(self.mistakes)

    def piece(self, kind: str, table: Mapping[str, Any]) -> None:
        """Checks the piece of a table, and everything derived from the piece."""
        named = SpecTable.of(table, self.file)  # paths in it are relative to the file
        piece = self.attempt(lambda: self.registry.build(kind, named, self.file))
        if piece is None:
            self.parts(table)
        elif kind in TRIED:
            self.tried(kind, piece)
        elif kind in ("workload", "hardware", "space", "study", "network"):
            getattr(self, kind)(piece)

    def without_mistakes(self, table: Mapping[str, Any]) -> dict[str, Any]:
        """The table without mistaken keys; the missing keys then count as no mistake."""
        rest = copy.deepcopy({**table})
        for mistake in self.mistakes:
            *walk, last = re.findall(r"[\w-]+", mistake.path) or [""]
            place: Any = rest
            for step in walk:
                if isinstance(place, Mapping):
                    place = place.get(step)
                else:
                    named = enumerate(place if isinstance(place, list) else ())
                    place = next((x for i, x in named if step in (str(i), isinstance(x, dict) and x.get("name"))), None)
            if mistake.file == self.file and isinstance(place, dict) and place.pop(last, None) is not None:
                self.removed.add(mistake.path)
        return rest

    def parts(self, table: Mapping[str, Any]) -> None:
        """Checks the inner tables of an invalid piece: tables of other pieces, under a key named like their kind."""
        for kind, tables in table.items():
            if kind in self.registry.kinds() and isinstance(tables, Mapping):
                for name, value in tables.items():
                    if isinstance(value, Mapping):
                        self.attempt(partial(self.registry.build, kind, value, self.file, join(kind, name)))

    def tried(self, kind: str, piece: Any) -> None:
        """Tests a piece. A format must decode random tiles from its bits, and write the expected number of bits; a
        mechanism must filter within its limits."""
        from ..testing import check_format, check_mechanism

        of_format = kind == "format"
        with np.errstate(all="ignore"):
            try:
                (check_format if of_format else check_mechanism)(piece)
            except Exception as error:  # whatever a class of the user raises
                what = str(error).partition("): ")[2] if isinstance(error, AssertionError) else repr(error)
                cause, origin = error.__cause__, self.registry.type_origin(kind, piece.type_name)
                line = cause.mistakes[0].file if isinstance(cause, PluginError) else ""
                if not isinstance(error, AssertionError):
                    line = plugin_line(error.__traceback__, OURS)
                if line and not self.registry.built_in(origin):
                    what += f" ({line})"
                path = piece.name if self.path.suffix not in (".toml", *toml_io.YAML) else ""
                self.mistakes[Mistake(self.file, path, f"{TRIED[kind]}: {what}")] = None
        if of_format and piece.compressed and not piece.decodable and not self.mistakes:
            text = "%s: format '%s' has no codec (`lists` in TOML, or `encode` and `decode`): cost models that pay for what is "
            logger.warning(text + "read refuse it", self.file, piece.name)

    def workload(self, piece: Any) -> None:
        problem = self.partly(workload=piece)
        if self.attempt(lambda: problem.loops):
            self.attempt(lambda: workload_widths(problem))

    def hardware(self, piece: Any) -> None:
        problem = self.partly(hardware=piece)
        levels, technology = self.attempt(lambda: problem.levels), self.attempt(lambda: problem.technology)
        if levels is not None and technology is not None:
            for text in doubts(problem) if not self.removed else ():
                logger.warning("%s: %s", self.file, text)
            chip = self.attempt(lambda: problem.chip)
            for text in piece.constraints if chip is not None else ():
                self.attempt(partial(broken_of, (text,), chip, {}, self.file))
            self.mistakes |= dict.fromkeys(wrong_choices(piece, self.registry, self.file))
        for part, named in attrs.asdict(piece.units, recurse=False).items() if piece.units and not self.removed else ():
            if named is not None and not named:
                logger.warning("%s: units: names no %s, so that none is built: no design uses any", self.file, part)
        for index, table in enumerate(level.memory.word_bits for level in levels or ()):
            for text, bits in table.items() if isinstance(table, Mapping) else ():
                self.attempt(partial(width_of, self.registry, bits, self.file, f"levels[{index}].word_bits.{text}"))
        if levels is not None:
            self.tensors(piece, problem)
        if piece.units and not self.mistakes:
            self.units(piece, [place.name for place in problem.places])
            if free := without_area(piece.units.names, self.registry):
                text = "%s: units: %s takes no area, as its unit_macs is 0"
                logger.warning(text, self.file, listed(free))

    def tensors(self, piece: Any, problem: Problem) -> None:
        """Checks names of tensors in levels: a name in none of the workloads is a mistake, or without any a warning."""
        keys = [(level.index, key) for level in problem.levels for key in ("bypass", "decodes", "double_buffered")]
        found: dict[tuple[int, str], list[SpecError]] = {}
        for file, table in self.workloads:
            with suppress(SpecError):  # told of its own file
                workload = self.registry.build(Workload.kind, SpecTable.of({"name": "", **table}, file), file)
                both = self.partly(workload=workload, hardware=piece)
                for place in keys if both.loops else ():
                    try:
                        both.named(*place)
                    except SpecError as error:
                        found.setdefault(place, []).append(error)
        for errors in found.values():
            if len(errors) == len(self.workloads):
                self.mistakes.update(dict.fromkeys(errors[0].mistakes))
        for index, key in () if self.workloads else keys:
            given = getattr(problem.levels[index].memory, key)
            for text in () if isinstance(given, bool) else given:
                if text.rpartition(":")[2] not in (roles := (*OPERANDS, OUTPUT)):
                    said = f"levels[{index}].{key}: '{text}' is no role ({listed(roles)}): only workloads with a tensor of this "
                    logger.warning("%s: %sname can be searched on this chip", self.file, said)

    def units(self, piece: Any, places: Sequence[str]) -> None:
        """Warns of units without any use in designs, and of units usable with some workloads only."""
        for text in piece.units.formats:
            if text.rpartition(":")[2] not in (roles := (*OPERANDS, OUTPUT)):
                said = "is no role (%s): only workloads with a tensor of this name can be searched on this chip"
                logger.warning(f"%s: units.formats.%s: {said}", self.file, text, listed(roles))
        for place in piece.units.mechanisms:
            if place not in places:
                said = "has no gate_skip, so that no design uses what is built there"
                logger.warning(f"%s: units.mechanisms.%s: {said}", self.file, place)
        for workload in self.registry.names("workload")[:1] if piece.space else ():
            with suppress(SpecError):  # a workload that does not fit the space, which tells of units that it leaves out
                problem = make_problem(self.registry, workload, piece, None, defaults.OBJECTIVE, None)
                problem.files = {**problem.files, "hardware": self.file}
                problem.space.decode(problem.space.sample(1, np.random.default_rng(0)))

    def partly(self, workload: Any = None, hardware: Any = None) -> Problem:
        """A problem with some parts only."""
        missing: Any = None
        files = dict.fromkeys(("workload", "hardware", "space"), self.file)
        return Problem(workload, hardware, missing, missing, missing, self.registry, files)

    def space(self, piece: Any) -> None:
        """Checks a space on some workload and hardware, as far as the segments fit any."""
        some = [self.registry.names(kind) for kind in ("workload", "hardware")]
        if not all(some):
            return
        parts = (some[0][0], some[1][0], piece, defaults.OBJECTIVE, None)
        problem = self.attempt(lambda: make_problem(self.registry, *parts))
        if problem is not None:
            problem.files = {**problem.files, "space": self.file}
            segments = self.attempt(lambda: problem.space.segments)
            if segments is not None and all(segment.fits_all for segment in segments.values()):
                self.attempt(lambda: problem.space.candidates)
                self.attempt(lambda: len(problem.space))

    def study(self, piece: Any, strict: bool = True) -> None:
        several = {
            "workload": "workloads", "network": "networks", "hardware": "hardware", "searcher": "searchers",
            "cost-model": "cost_models", **({} if isinstance(piece.spaces, Mapping) else {"space": "spaces"}),
        }  # fmt: skip
        for kind, key in several.items():
            for index, value in enumerate(getattr(piece, key)):
                self.attempt(partial(self.named, kind, value, f"{key}[{index}]"))
        self.attempt(partial(self.unit_tensors, piece))
        if not self.mistakes:
            self.cells(piece, strict)
        for key, kind in MORE.items():
            for index, names in enumerate(getattr(piece, key)):
                for at, name in enumerate(names):
                    self.attempt(partial(self.named, kind, name, f"{key}[{index}][{at}]"))
        for kind, key in (("space", "space"), ("objective", "objective"), ("cost-model", "cost_model")):
            if value := getattr(piece, key):
                self.attempt(partial(self.named, kind, value, key))
        for searcher, value in piece.spaces.items() if isinstance(piece.spaces, Mapping) else ():
            self.attempt(partial(self.named, "space", value, f"spaces.{searcher}"))
            if searcher not in piece.searchers:
                text = unknown("searcher of this study", searcher, piece.searchers)
                self.mistakes[Mistake(self.file, f"spaces.{searcher}", text)] = None

    def cells(self, piece: Any, strict: bool) -> None:
        """Checks the problems of a study: every workload, and every other combination of parts with a single workload.

        A run (not `strict`) keeps the results of good cells: one good problem ends its check."""
        seen, good, wrong = set[str](), 0, list[Mistake]()
        for cell in self.attempt(lambda: cells_of(piece, Path(), self.path.parent)) or ():
            parts = {key: value for key, value in cell.parts.items() if key != "searcher"}
            some = {key: value for key, value in parts.items() if key != "workload"}
            keys = {json.dumps(part, sort_keys=True, default=str) for part in (parts["workload"], some)}
            if keys <= seen:
                continue
            seen |= keys
            try:
                problem = load_problem(**parts, registry=self.registry)
                _ = problem.space.candidates, problem.tensor_bits  # wrong names are told here
                good += bool(len(problem.space.low))
            except SpecError as error:
                own = (one for one in error.mistakes if not Path(one.file).suffix)
                wrong += [Mistake(self.file, join(one.file, one.path), one.message) for one in own]
                wrong += [one for one in error.mistakes if Path(one.file).suffix]
            if good and not strict:
                return
        self.mistakes |= dict.fromkeys(wrong)

    def unit_tensors(self, piece: Any) -> None:
        """Checks the tensors of hardware units against the workloads of a study; other mistakes are reported elsewhere."""
        base, file = self.path.parent, self.file

        def found(kind: str, values: Sequence[Any]) -> Iterator[Any]:
            for value in values:
                with suppress(SpecError):
                    yield piece_of(self.registry, kind, located(kind, value, base), file)

        workloads = [*found("workload", piece.workloads)]
        for network in found("network", piece.networks):
            with suppress(SpecError):
                workloads += [node.piece for node in nodes_of(network, self.registry, base, file) if node.loops]
        for hardware in found("hardware", piece.hardware):
            for text in hardware.units.formats if hardware.units else ():
                for workload in workloads:
                    problem = self.partly(workload, hardware)
                    if not problem.lacks(text):
                        self.attempt(partial(problem.tensor, text, file, f"{hardware.name}: units.formats.{text}"))

    def network(self, piece: Any) -> None:
        self.attempt(lambda: nodes_of(piece, self.registry, self.path.parent, self.file))

    def named(self, kind: str, value: Any, where: str) -> None:
        """Checks a piece named by a study at a place."""
        try:
            found = located(kind, value, self.path.parent)
            if kind == "objective":
                objective_of(self.registry, found, self.file)
            else:
                piece_of(self.registry, kind, found, self.file)
        except SpecError as error:
            raise SpecError(
                mistake if mistake.file else Mistake(self.file, where, mistake.message) for mistake in error.mistakes
            ) from None
