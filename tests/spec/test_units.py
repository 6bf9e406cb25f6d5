"""Units: what specs may write, what it means in numbers, and how numbers are shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsemap.spec.units import (
    bandwidth_words_per_cycle,
    capacity_bits,
    format_bits,
    format_count,
    format_energy,
    frequency_hz,
)


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("128 KB", 128 * 1024 * 8),
        ("128KB", 128 * 1024 * 8),
        ("16 MB", 16 * 1024**2 * 8),
        ("1.5 KiB", 1536 * 8),
        ("512 bit", 512),
        ("4096 words", 4096 * 16),
        ("1 word", 16),
        ("0 B", 0),
        (0, 0),
    ],
)
def test_a_capacity_counts_in_powers_of_two_and_comes_out_in_bits(text, bits):
    assert capacity_bits(text, word_bits=16) == bits


@pytest.mark.parametrize("value", ["unlimited", None])
def test_an_unlimited_quantity_is_none(value):
    assert capacity_bits(value, word_bits=16) is None
    assert bandwidth_words_per_cycle(value, clock_hz=1e9, word_bits=16) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("16 GB/s", 8),
        ("16 MB/s", 0.008),
        ("128 Gbit/s", 8),
        ("4 words/cycle", 4),
        ("64 bit/cycle", 4),
        ("8 B/cycle", 4),
        ("2e9 words/s", 2),
    ],
)
def test_a_bandwidth_is_decimal_and_comes_out_in_words_per_cycle(text, words):
    assert bandwidth_words_per_cycle(text, clock_hz=1e9, word_bits=16) == pytest.approx(words)


def test_a_bandwidth_may_be_that_of_each_child():
    assert bandwidth_words_per_cycle("3 words/cycle/child", clock_hz=1e9, word_bits=16, children=64) == 192
    with pytest.raises(ValueError, match="not a rate"):
        bandwidth_words_per_cycle("3 words/cycle/children", 1e9, 16, 64)


def test_a_faster_clock_leaves_fewer_words_per_cycle():
    assert bandwidth_words_per_cycle("16 GB/s", clock_hz=2e9, word_bits=16) == 4


@pytest.mark.parametrize(("value", "hertz"), [("1 GHz", 1e9), ("800 MHz", 8e8), ("50 kHz", 5e4), (1e9, 1e9)])
def test_a_frequency_comes_out_in_hertz(value, hertz):
    assert frequency_hz(value) == hertz


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: capacity_bits(4096, 16), "4096 has no unit; .*words"),
        (lambda: capacity_bits("128", 16), "'128' has no unit"),
        (lambda: capacity_bits("128 KBs", 16), "unknown unit 'KBs'; did you mean 'kB'"),
        (lambda: capacity_bits("128 kb", 16), "unknown unit 'kb'; did you mean 'Kbit', or 'KB', eight times as much"),
        (lambda: capacity_bits("lots", 16), "'lots' is not a quantity"),
        (lambda: capacity_bits("-1 KB", 16), "cannot be negative"),
        (lambda: capacity_bits(True, 16), "True is not a quantity"),
        (lambda: bandwidth_words_per_cycle("0 GB/s", 1e9, 16), "must be positive"),
        (lambda: bandwidth_words_per_cycle("-2 words/cycle", 1e9, 16), "must be positive"),
        (lambda: bandwidth_words_per_cycle("16 GB", 1e9, 16), "not a rate per second or per cycle"),
        (lambda: bandwidth_words_per_cycle(4, 1e9, 16), "4 has no unit; .*words/cycle"),
        (lambda: frequency_hz("1 Ghz"), "did you mean 'GHz'"),
        (lambda: frequency_hz("0 Hz"), "must be positive"),
    ],
)
def test_a_wrong_quantity_says_what_is_wrong_and_what_would_do(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("bits", "text"),
    [
        (181 * 1024 * 8, "181 KB"),
        (1536 * 8, "1.5 KB"),
        (12, "12 bit"),
        (16, "2 B"),
        (0, "0 B"),
        (8 * (1024**2 - 1), "1 MB"),
        (None, "unlimited"),
    ],
)
def test_bits_are_shown_as_a_memory_would_be_sold(bits, text):
    assert format_bits(bits) == text


@pytest.mark.parametrize(
    ("count", "text"), [(20_000, "20,000"), (7, "7"), (0.25, "0.25"), (1_230_000, "1.23 M"), (7.45e12, "7.45 T")]
)
def test_counts_are_exact_while_they_are_short(count, text):
    assert format_count(count) == text


@pytest.mark.parametrize(
    ("pj", "text"), [(2, "2 pJ"), (1500, "1.5 nJ"), (2.6e6, "2.6 uJ"), (0.25, "250 fJ"), (0, "0 pJ"), (999.9, "1 nJ")]
)
def test_energies_move_to_the_unit_that_keeps_them_short(pj, text):
    assert format_energy(pj) == text


@given(st.integers(min_value=1, max_value=2**40))
def test_what_is_shown_can_be_read_back_within_half_a_percent(size):
    assert capacity_bits(format_bits(size * 8), word_bits=16) == pytest.approx(size * 8, rel=6e-3)


@given(st.text())
def test_any_text_is_a_quantity_or_a_value_error(text):
    for read in (
        lambda: capacity_bits(text, 16),
        lambda: bandwidth_words_per_cycle(text, 1e9, 16),
        lambda: frequency_hz(text),
    ):
        try:
            read()
        except ValueError as error:
            assert str(error)
