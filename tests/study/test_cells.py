"""Cells of a study: what they are called, and where their files go."""

from sparsemap.pieces.data_specs import Study
from sparsemap.study.cells import NUMBERS, cells_of
from sparsemap.study.study import csv_text, markdown_text


def test_files_of_one_name_in_two_folders_are_two_workloads(tmp_path):
    study = Study(name="s", workloads=("a/mm.toml", "b/mm.toml", "mm1", "mm1"), hardware=("edge",))
    cells = cells_of(study, tmp_path)
    assert [cell.workload for cell in cells] == ["a-mm", "b-mm", "mm1"]
    assert len({cell.folder for cell in cells}) == 3


def test_tables_show_missing_numbers_as_such():
    row = {"workload": "a|b", "hardware": "h", "searcher": "s", "seed": 0} | dict.fromkeys(NUMBERS)
    assert markdown_text([row]).splitlines()[2].startswith("| a\\|b ")
    assert csv_text([row]).splitlines()[1] == "a|b,h,s,0,,,,,"
