"""Files are read within limits and written whole; tables and numbers become text in one way."""

import csv
import errno
import math
import os
import signal
import zipfile
from pathlib import Path

import numpy as np
import pytest

from sparsemap import writing
from sparsemap.arrays import read_arrays
from sparsemap.csv_files import csv_text, read_csv
from sparsemap.errors import SpecError
from sparsemap.files import aligned, percent, read_bytes, times
from sparsemap.markdown import markdown_table
from sparsemap.writing import check_writable, is_temporary, replacing, temporary, write_text, write_texts


def said(path, limit=100):
    with pytest.raises(SpecError) as caught:
        read_bytes(path, limit)
    return str(caught.value)


def test_only_regular_files_of_a_sane_size_are_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.toml").write_bytes(b"x" * 101)
    os.mkfifo("pipe")
    os.symlink("/dev/zero", "zeros")
    assert read_bytes("a.toml", 101) == b"x" * 101
    assert said("a.toml") == "a.toml: has 101 bytes, expected at most 100"
    assert said("b.toml") == "b.toml: no such file"
    assert said(".") == ".: is a folder, expected a file"
    assert said("pipe") == "pipe: is a device or pipe, expected a file"
    assert said("zeros") == "zeros: is a device or pipe, expected a file"
    assert said("x" * 5000).endswith("cannot be read: File name too long")
    assert said("a\0b") == "'a\\x00b': cannot be read: embedded null byte"


def test_a_failed_write_leaves_the_old_file_alone_and_names_it(tmp_path):
    path = tmp_path / "new" / "a.txt"
    write_text(path, "old")
    with pytest.raises(OSError) as caught, replacing(path) as temporary:
        temporary.write_text("half")
        assert is_temporary(temporary)
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.filename == str(path)
    assert [entry.read_text() for entry in path.parent.iterdir()] == ["old"]


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_writes_stays(tmp_path):
    """Files and folders, of whatever name: nobody else writes the same ones again."""
    (tmp_path / ".own.tmp").write_text("no temporary file of ours")
    if not (child := os.fork()):
        with replacing(tmp_path / "a.txt") as file, temporary(tmp_path / "b", folder=True) as folder:
            (folder / "c.txt").write_text(file.name)
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    os.mkfifo(tmp_path / ".pipe.0123abcd.tmp")
    assert len([path for path in tmp_path.iterdir() if is_temporary(path)]) == 3
    write_text(tmp_path / "d.txt", "done")
    assert {path.name for path in tmp_path.iterdir()} == {".own.tmp", "d.txt"}
    with replacing(tmp_path / "e.txt") as file, temporary(tmp_path / "f", folder=True) as folder:
        if not (child := os.fork()):
            writing._SWEPT.clear()
            write_text(tmp_path / "g.txt", "beside")
            os._exit(0)
        os.waitpid(child, 0)
        assert file.exists() and folder.is_dir() and (tmp_path / "g.txt").exists()
        file.write_text("whole")
    assert {path.name for path in tmp_path.iterdir()} == {".own.tmp", "d.txt", "e.txt", "g.txt"}


def test_a_folder_that_nobody_may_list_is_written_to(tmp_path, monkeypatch):
    def denied(self):
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    monkeypatch.setattr(Path, "iterdir", denied)
    write_text(tmp_path / "a.txt", "whole")
    assert (tmp_path / "a.txt").read_text() == "whole"


def test_of_several_files_the_one_that_fails_is_named(tmp_path):
    with pytest.raises(OSError) as caught:
        write_texts({tmp_path / "a": "1", tmp_path / ("b" * 300): "2", tmp_path / "c": "3"})
    assert caught.value.filename == str(tmp_path / ("b" * 300))
    assert not list(tmp_path.iterdir())


def test_csv_has_all_keys_full_precision_and_nothing_for_no_number(tmp_path):
    rows = [{"a": 0.1, "b": "x,y"}, {"a": math.inf, "c": None}, {"a": 3, "c": math.nan}]
    write_text(tmp_path / "a.csv", csv_text(rows))
    assert (tmp_path / "a.csv").read_text() == 'a,b,c\n0.1,"x,y",\n,,\n3,,\n'
    assert read_csv(tmp_path / "a.csv")[0] == {"a": "0.1", "b": "x,y", "c": ""}
    assert csv_text([], ["a"]) == "a\n"


def test_cells_that_a_spreadsheet_would_compute_are_quoted_and_numbers_are_not(tmp_path):
    odd = ["=cmd|calc", "@SUM(1+1)", "+1+1", "-x", "\tx", "'=1", "''@x"]
    plain = ["-1.5", "+3", "-1e-5", "-", "'x", "x=1", "-.5", ""]
    write_text(tmp_path / "a.csv", csv_text([{"x": text, "n": -1.5, "i": -3} for text in (*odd, *plain)]))
    with open(tmp_path / "a.csv", newline="") as file:
        cells = [row["x"] for row in csv.DictReader(file)]
    assert cells == [*(f"'{text}" for text in odd), *plain]
    assert {(row["n"], row["i"]) for row in read_csv(tmp_path / "a.csv")} == {("-1.5", "-3")}
    assert [row["x"] for row in read_csv(tmp_path / "a.csv")] == [*odd, *plain]


def test_names_break_no_table_and_bring_no_html():
    rows = [["a|b", "<script>x</script>"], ["c\nd", "<1 % < 2"]]
    assert markdown_table(rows) == (
        "| a\\|b | &lt;script>x&lt;/script> |\n| ---- | -----------------------: |\n"
        "| c d  |                 <1 % < 2 |\n"
    )


def test_a_folder_that_cannot_be_written_is_found_at_once(tmp_path):
    check_writable(tmp_path / "new/folder")
    assert list(tmp_path.rglob("*")) == [tmp_path / "new", tmp_path / "new/folder"]
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        check_writable(tmp_path / "file")


def test_tables_are_aligned():
    rows = [["a", "1", "note"], ["long", "20", ""]]
    assert aligned(rows, "<><") == ["a       1   note", "long   20"]
    assert markdown_table(rows, "<><") == "| a    |  1 | note |\n| ---- | -: | ---- |\n| long | 20 |      |\n"


def test_shares_do_not_look_like_nothing_or_all_when_they_are_not():
    assert [percent(x) for x in (0, 0.001, 0.5, 0.999, 1)] == ["0 %", "<1 %", "50 %", "99 %", "100 %"]
    assert [percent(x, 1) for x in (0.0001, 0.1234, 0.9999, math.nan)] == ["<0.1 %", "12.3 %", "99.9 %", "-"]


def test_ratios_have_about_three_digits():
    assert [times(x) for x in (0.5, 12.34, 1234.5, math.nan, None)] == ["0.50x", "12.3x", "1,234x", "-", "-"]


@pytest.mark.parametrize("flags", [0x01, 0x20, 0x40])
def test_archives_that_python_cannot_unpack_are_told(flags: int, tmp_path: Path) -> None:
    """Encrypted ones, and those of patched data."""
    path = tmp_path / "x.npz"
    np.savez_compressed(path, a=np.ones((4, 4)))
    data = bytearray(path.read_bytes())
    data[6] |= flags
    data[data.index(b"PK\x01\x02") + 8] |= flags
    path.write_bytes(data)
    with pytest.raises(SpecError, match=r"x\.npz: cannot be read"):
        read_arrays(path)


def test_a_header_that_is_no_python_is_told(tmp_path):
    header = b"{'descr': '<f4', Hshape': (4,), }".ljust(117) + b"\n"
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as members:
        members.writestr("a.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(SpecError, match=r"x\.npz: cannot be read"):
        read_arrays(tmp_path / "x.npz")
