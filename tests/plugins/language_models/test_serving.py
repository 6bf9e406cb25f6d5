"""Steps of a served model: bytes and times against closed forms, shared searches, files, and messages."""

import csv
import json
import math
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner
from closed_forms import counts, least_seconds
from sparsemap_plugins.language_models import serving
from sparsemap_plugins.language_models.parts import parts_of
from sparsemap_plugins.language_models.points import Point
from sparsemap_plugins.language_models.searches import Searches
from sparsemap_plugins.language_models.serving import points_of, served
from sparsemap_plugins.language_models.steps import Roofline
from sparsemap_plugins.language_models.widths import Widths

from sparsemap.cli.main import cli
from sparsemap.pieces.loading import load

FAST = {
    "extends": "mobile", "name": "fast",
    "levels": {
        "DRAM": {"bandwidth": "4096 GB/s"},
        "GLB": {"read_bandwidth": "65536 words/cycle", "write_bandwidth": "65536 words/cycle"},
    },
}  # fmt: skip
"""A chip whose memories keep all 16,384 multipliers busy."""
SMALL = """kind = "language-model"
name = "small"
layers = 3
hidden = 512
heads = 8
kv_heads = 2
feed_forward = 1024
vocabulary = 2000
"""


HOW = {"searcher": None, "space": None, "objective": "edp", "cost_model": None, "seed": 0}


def serve(hardware, points, budget):
    registry = load()
    return served(registry, registry.get("language-model", "llama3-8b"), hardware, points, {}, budget=budget, **HOW)


@pytest.fixture(scope="module")
def decoded():
    return serve("mobile", [Point("decode", 1024, 1), Point("decode", 2048, 16)], budget=10)


def run(*words, code=0):
    outcome = CliRunner().invoke(cli, [str(word) for word in words])
    assert outcome.exit_code == code, outcome.output
    return outcome


def test_decode_takes_the_time_of_weights_and_cache_within_two_per_cent(decoded):
    """32 GB/s of DRAM and 16,384 multipliers at 1 GHz."""
    for step in decoded.steps:
        macs, weights, cache = counts("llama3-8b", step.point.tokens, step.point.batch, "decode")
        bound = least_seconds(macs, 2 * weights, 2 * cache, 16_384, 1e9, 32e9)
        assert bound <= step.seconds <= 1.02 * bound
        assert step.roofline.seconds == pytest.approx(bound) and step.roofline.binding == "bandwidth"
        assert step.limit[0] == "bandwidth of DRAM"


def test_decode_moves_weights_once_for_all_sequences_and_the_cache_of_each(decoded):
    """Each step reads all rows and writes one row per sequence, or reads all but the new rows; weights have no metadata."""
    for step in decoded.steps:
        _, weights, cache = counts("llama3-8b", step.point.tokens, step.point.batch, "decode")
        row = cache / step.point.tokens
        assert step.moved["weights"] == pytest.approx(2 * weights, rel=1e-3)
        assert 2 * cache <= step.moved["cache"] * (1 + 1e-6) and step.moved["cache"] <= 2 * (cache + 2 * row)
        assert step.moved["activations"] < 0.02 * sum(step.moved.values())


def test_weights_of_4_bits_take_a_quarter_of_the_time_of_16_bits_plus_scales(decoded):
    """A 16-bit scale per 128 weights: 4.125 / 16 of the time of the weights; a cache of 8 bits takes half."""
    registry = load()
    model, point = registry.get("language-model", "llama3-8b"), Point("decode", 1024, 1)
    bits = {"weight": 4, "group": 128, "cache": 8}
    (narrow,) = served(registry, model, "mobile", [point], bits, budget=10, **HOW).steps
    wide, seconds = decoded.steps[0], 32e9
    _, weights, cache = counts("llama3-8b", 1024, 1, "decode")
    assert narrow.moved["weights"] == pytest.approx(wide.moved["weights"] * 4.125 / 16, rel=1e-3)
    assert narrow.moved["cache"] == pytest.approx(wide.moved["cache"] / 2, rel=0.01)
    of_weights = narrow.seconds - cache / seconds
    assert of_weights == pytest.approx((wide.seconds - 2 * cache / seconds) * 4.125 / 16, rel=0.01)
    assert weights * 4.125 / 8 / seconds <= of_weights


def test_weights_in_a_number_format_move_their_bits_and_pay_for_decoders(small):
    """`--weight-bits int4-g128` moves as many bits as 4 with `--group 128`, and multiplies every weight by its scale."""
    words = (*small[:-1], 4, "--context", "64", "--phase", "decode", "--json")
    named, bits = (
        json.loads(run(*words, *more).stdout)
        for more in (("--weight-bits", "int4-g128"), ("--weight-bits", 4, "--group", 128))
    )
    assert named["bits"] == bits["bits"] == {"weight": 4.125, "cache": 16, "activation": 16}
    assert named["number_formats"] == {"weight": "int4-g128"} and "number_formats" not in bits
    (one,), (other,) = named["steps"], bits["steps"]
    assert one["least_weight_bytes"] == other["least_weight_bytes"]
    assert one["weights_bytes_per_token"] == pytest.approx(other["weights_bytes_per_token"], rel=1e-3)
    scaled_pj = (
        load().get("technology", "12nm-recommended").mac_pj(16, "compute") * one["least_weight_bytes"] * 8 / 4.125
    )
    assert one["energy_per_token_j"] - other["energy_per_token_j"] >= 0.9e-12 * scaled_pj
    assert (
        "weights int4-g128, cache mxfp8, activations 16 bits"
        in run(*words[:-1], "--weight-bits", "int4-g128", "--cache-bits", "mxfp8").stdout
    )


def test_weights_with_2_of_4_move_half_of_the_words_and_two_bits_for_each():
    """16 bits of data and 2 of place per nonzero; the head is dense. The roofline counts the nonzeros alone."""
    registry = load()
    table = tomllib.loads(SMALL)
    model = registry.build("language-model", table)
    half = {"type": "n-of-m", "n": 2, "m": 4}
    point = Point("decode", 64, 1)
    (step,) = served(registry, model, "mobile", [point], {}, density=half, budget=60, **HOW).steps
    blocks, head = model.parameters - 2 * 512 * 2000, 512 * 2000
    assert step.moved["weights"] == pytest.approx(blocks * (16 + 2) / 2 / 8 + 2 * head, rel=0.02)
    assert step.roofline.weight_bytes == blocks + 2 * head


def test_prefill_on_a_chip_with_fast_memories_takes_the_time_of_its_products_within_two_per_cent():
    (step,) = serve(FAST, [Point("prefill", 512, 1)], budget=20).steps
    macs, weights, cache = counts("llama3-8b", 512, 1, "prefill")
    bound = least_seconds(macs, 2 * weights, 2 * cache, 16_384, 1e9, 4096e9)
    assert bound <= step.seconds <= 1.02 * bound and step.roofline.binding == "compute"
    assert step.row()["time_to_first_token_s"] == step.seconds and step.per_s == 512 / step.seconds


def test_attention_of_a_long_prompt_takes_the_time_of_its_products_within_a_tenth(monkeypatch):
    """Rows of 32,768 scores do not fit beside keys and values; blocks of keys do, and contexts stay on chip between them."""

    def last_chunk(*given):
        return parts_of(*given)[-2:-1]

    monkeypatch.setattr(serving, "parts_of", last_chunk)
    (step,) = serve("mobile", [Point("prefill", 32768, 1)], budget=40).steps
    macs = 32 * 8 * 8 * 2 * 4 * 4096**2 * 128
    assert step.roofline.macs == macs and macs / 16_384e9 <= step.seconds <= 1.1 * macs / 16_384e9
    row = 2 * 4 * 4096 * 128
    assert step.moved["activations"] <= 32 * 8 * row * 2 * (8 + 1), "queries of each block, and one context"


def test_the_roofline_multiplies_each_layer_in_its_fastest_mode():
    """Weights of 4 bits take a quarter of the cycles of 16, products of activations and cache all of them."""
    registry = load()
    model, point, widths = (
        registry.build("language-model", tomllib.loads(SMALL)),
        Point("prefill", 64, 1),
        Widths.of(16, 4),
    )
    seconds, points = {}, {point: parts_of(model, point, widths)}
    for hardware in ("mobile", "mobile-narrow"):
        parts = Searches.of(registry, hardware, points, Path("unused"), budget=1, **HOW).points[point]
        plan = parts[0].whole.plan
        roofline = Roofline.of(model, point, widths, parts, plan.problem(plan.cells[0]).chip)
        seconds[hardware] = roofline.compute_s
    attention = 3 * 2 * sum(4 * 8 * seen * 64 for seen in range(8, 65, 8)) * 2 / 16_384e9
    assert seconds["mobile-narrow"] == pytest.approx(attention + (seconds["mobile"] - attention) / 4)


def test_exponentials_of_an_encoder_are_those_of_softmax_and_gelu():
    """A unit with 1 pJ per exponential alone: a GELU per inner word, and a softmax of all scores of each head."""
    registry = load()
    text = SMALL.replace("kv_heads = 2", "gated = false\nencoder = true")
    model, (layers, tokens, inner, heads) = registry.build("language-model", tomllib.loads(text)), (3, 32, 1024, 8)
    energy, seconds = {}, {}
    for name, cycles in (("none", None), ("wide", 0.0), ("slow", 1000.0)):
        unit = {} if cycles is None else {"vector": {"lanes": 1, "pj": {"exponential": 1.0}}}
        if unit:
            unit["vector"]["cycles"] = {"exponential": cycles, "division": 0.0, "other": 0.0}
        chip = {"extends": "mobile", "name": name, **unit}
        (step,) = served(registry, model, chip, [Point("encode", tokens, 1)], {}, budget=2, **HOW).steps
        energy[name], seconds[name], limit = step.energy_pj, step.seconds, step.limit[0]
    exponentials = layers * (tokens * inner + heads * tokens**2)
    assert energy["wide"] - energy["none"] == pytest.approx(exponentials) and seconds["wide"] == seconds["none"]
    busy = 1000e-9 * exponentials
    assert busy <= seconds["slow"] <= busy + seconds["none"] and limit == "vector units"


def test_contexts_add_searches_of_attention_alone():
    """Projections, feed-forward network and head are searched once for all contexts, scores and context for each."""
    registry, folder = load(), Path("unused")
    model = registry.get("language-model", "qwen3-8b")

    def names(contexts):
        points = points_of(model, contexts, (1,), "decode")
        parts = {point: parts_of(model, point, Widths.of(16)) for point in points}
        found = Searches.of(registry, "mobile", parts, folder, budget=1, **HOW)
        return {Path(cell.folder).name for cell in found.cells}

    one, more = names((1024,)), names((1024, 2048, 4096))
    assert one < more and {name.partition("-")[0] for name in more - one} == {"scores", "context"}
    assert len(more - one) <= 2 * 4  # alone, and with tensors on chip


@pytest.fixture
def small(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(SMALL, "utf-8")
    return ("run", "small.toml", "--hardware", "edge-16gbps", "--budget", 20)


def test_a_run_writes_table_json_and_figure_and_goes_on_with_more_contexts(small):
    small = (*small, "--phase", "decode")
    first = run(*small, "--context", "64", "--out", "out")
    assert "DRAM 9" in first.stdout and "small on edge-16gbps" in first.stdout
    done = {path.name for path in Path("out", "layers").iterdir()}
    stamps = {name: Path("out", "layers", name, "result.json").stat().st_mtime_ns for name in done}
    run(*small, "--context", "64,128", "--out", "out")
    assert stamps == {name: Path("out", "layers", name, "result.json").stat().st_mtime_ns for name in done}
    table = json.loads(Path("out/serving.json").read_text("utf-8"))
    assert (
        table["format"] == "sparsemap serving 1"
        and table["parameters"] == 3 * (512 * 64 * 20 + 3 * 512 * 1024) + 2 * 512 * 2000
    )
    rows = list(csv.DictReader(Path("out/serving.csv").read_text("utf-8").splitlines()))
    assert [(row["phase"], row["context"], row["batch"]) for row in rows] == [
        ("decode", "64", "1"),
        ("decode", "128", "1"),
    ]
    assert all(
        math.isclose(float(row["tokens_per_s"]), step["tokens_per_s"])
        for row, step in zip(rows, table["steps"], strict=True)
    )
    assert {path.name for path in Path("out").glob("serving.*")} == {
        "serving.csv",
        "serving.json",
        "serving.png",
        "serving.svg",
    }
    block = Path("out/decode-128-x1/block")
    assert (block / "fused.csv").is_file() and (block / "q_proj/design.toml").is_file()
    Path("other.toml").write_text(SMALL.replace("small", "other"), "utf-8")
    refused = run("run", "other.toml", *small[2:], "--out", "out", code=2).output
    assert refused.startswith("out has the results of small; give another folder with --out, or --overwrite")


def test_jobs_change_nothing(small):
    words = (*small[:-1], 4, "--context", "32", "--phase", "decode", "--json")
    alone, both = (json.loads(run(*words, *more).stdout) for more in ((), ("--jobs", 2)))
    assert alone == both and [step["phase"] for step in alone["steps"]] == ["decode"]


DENSE = {"extends": "mobile", "name": "dense", "levels": {"GLB": {"gate_skip": False}, "PEB": {"gate_skip": False}}}
DENSE |= {"compute": {"gate_skip": False}}
UNITS = {"extends": "mobile", "name": "units", "units": {"formats": {"P": ["bitmask"]}, "mechanisms": {}}}
BUILT = {"formats": {"Q": ["bitmask"]}, "mechanisms": {"PEB": ["skip-p-by-q"]}}
NARROW = "multipliers work on 16-bit words: "
NARROW += "`compute.modes = [{ bits = [16, 4], macs = 4 }]` multiplies 16-bit by 4-bit words faster"


@pytest.mark.parametrize(
    ("hardware", "density", "bits", "hints"),
    [
        ("mobile", {"type": "n-of-m", "n": 2, "m": 4}, {}, []),
        (DENSE, 1.0, {}, []),
        (DENSE, 0.5, {}, ["zeros of weights take time: `compute = { gate_skip = true }` skips them"]),
        (
            UNITS, 0.5, {},
            ["zeros of weights take time: `units.mechanisms.MAC` lists what skips them, and move: `units.formats.Q` lists "
             "formats without them"],
        ),
        ({**UNITS, "units": BUILT}, 0.5, {}, []),
        (FAST, 1.0, {"weight": 4, "group": 128}, [NARROW]),
        ("mobile-narrow", 1.0, {"weight": 4}, []),
        ({**FAST, "vector": {"lanes": 256}}, 1.0, {}, []),
    ],
)  # fmt: skip
def test_a_unit_that_the_chip_lacks_is_named_with_its_key(hardware, density, bits, hints):
    """Arithmetic between layers is free without a vector unit, on all chips but the last."""
    registry = load()
    model, point = (
        registry.build("language-model", tomllib.loads(SMALL)),
        [Point("prefill" if bits else "decode", 64, 1)],
    )
    free = ["arithmetic of softmax, norms and activations is free: `vector = { lanes = 256 }` counts it"]
    found = served(registry, model, hardware, point, bits, density=density, budget=1, **HOW)
    assert list(found.hints) == [*hints, *([] if "vector" in hardware else free)] == found.to_dict()["hints"]


def test_lengths_add_a_mean_row_of_tokens_over_seconds_without_a_search(small):
    """Of 4 requests 3 have 32 tokens and 1 has 64: totals by hand, also for the roofline of each length."""
    Path("lengths.csv").write_text("length,count\n32,2\n64,1\n32,1\n", "utf-8")
    words = (*small[:-1], 4, "--batch", 2, "--json")
    plain, mean, same = (
        json.loads(run(*words, *more).stdout)
        for more in (("--context", "32,64"), ("--lengths", "32:0.75,64:0.25"), ("--lengths", "lengths.csv"))
    )
    assert mean == same and mean["searches"] == plain["searches"] and mean["lengths"] == {"32": 0.75, "64": 0.25}
    assert [(row["phase"], row["context"], row["lengths"]) for row in mean["steps"]] == [
        (phase, context, lengths) for phase in ("prefill", "decode") for context, lengths in ((32, 1), (64, 1), (40, 2))
    ]
    assert [row for row in mean["steps"] if row["lengths"] == 1] == plain["steps"]
    for (short, long, both), tokens in zip((mean["steps"][:3], mean["steps"][3:]), ((32, 64), (2, 2)), strict=True):
        total = 0.75 * tokens[0] + 0.25 * tokens[1]
        assert both["seconds"] == pytest.approx(0.75 * short["seconds"] + 0.25 * long["seconds"])
        assert both["tokens_per_s"] == pytest.approx(total / both["seconds"])
        least = [count / row["roofline_tokens_per_s"] for count, row in zip(tokens, (short, long), strict=True)]
        assert both["roofline_tokens_per_s"] == pytest.approx(total / (0.75 * least[0] + 0.25 * least[1]))
        for key in ("energy_per_token_j", "weights_bytes_per_token", "cache_bytes_per_token"):
            parts = 0.75 * tokens[0] * short[key] + 0.25 * tokens[1] * long[key]
            assert both[key] == pytest.approx(parts / total)
    shown = run(*words[:-1], "--phase", "decode", "--lengths", "32:3,64:1", "--out", "out").stdout
    assert "mean 40" in shown
    rows = list(csv.DictReader(Path("out/serving.csv").read_text("utf-8").splitlines()))
    assert [(row["context"], row["lengths"]) for row in rows] == [("32", "1"), ("64", "1"), ("40.0", "2")]


MOE = SMALL.replace('"small"', '"moe"') + "experts = { count = 4, active = 2, size = 256 }\n"


def test_a_trace_of_experts_decides_macs_and_bytes_of_weights_and_even_loads_change_nothing(tmp_path, monkeypatch):
    """Four sequences choose eight times: 4, 2 and 2 rows by the trace; weights of three experts cross DRAM, once each."""
    monkeypatch.chdir(tmp_path)
    Path("moe.toml").write_text(MOE, "utf-8")
    Path("trace.csv").write_text("expert,tokens\n0,25\n1,50\n2,0\n3,25\n", "utf-8")
    words = (
        "run",
        "moe.toml",
        "--hardware",
        "mobile",
        "--context",
        16,
        "--phase",
        "decode",
        "--batch",
        4,
        "--budget",
        8,
    )
    plain, even, skewed = (
        json.loads(run(*words, "--json", *more).stdout)
        for more in ((), ("--experts", "3,3,3,3"), ("--experts", "trace.csv"))
    )
    assert (even["steps"], even["searches"]) == (plain["steps"], plain["searches"])
    assert (plain["expert_loads"], skewed["expert_loads"]) == ([], [25, 50, 0, 25])
    (one,), (other,) = even["steps"], skewed["steps"]
    expert = 3 * 512 * 256
    assert (
        other["macs"]
        == one["macs"]
        == 3 * (4 * (512 * 64 * 20 + 512 * 4) + 8 * expert + 4 * 2 * 8 * 64 * 16) + 4 * 512 * 2000
    )
    assert one["least_weight_bytes"] - other["least_weight_bytes"] == 2 * 3 * expert
    for step in (one, other):
        assert step["least_weight_bytes"] <= 4 * step["weights_bytes_per_token"] <= 1.1 * step["least_weight_bytes"]
    assert "busiest of 4 experts: 2x the mean" in run(*words, "--experts", "trace.csv").stdout


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (("small.toml", "--hardware", "mobile", "--experts", "1,2"), "--experts: small has no experts"),
        (("small.toml", "--hardware", "mobile", "--lengths", "1k"), "'1k' is no length with a share; expected 1k:0.5,4k:0.3"),
        (("small.toml", "--hardware", "mobile", "--lengths", "1k:0"), "'0' is no share above 0"),
        (("small.toml", "--hardware", "mobile", "--lengths", "0:1"), "'0' is no number from 1 on"),
        (("small.toml", "--hardware", "mobile", "--lengths", "odd.csv"), "odd.csv: no column 'length', found expert, tokns"),
        (
            ("small.toml", "--hardware", "mobile", "--lengths", "1k:1", "--context", "1k"),
            "--lengths: give either lengths or --context",
        ),
        (("vit-base-patch16", "--hardware", "mobile", "--lengths", "64:1"), "--lengths: vit-base-patch16 reads one image"),
        (("mixtral-8x7b", "--hardware", "mobile", "--experts", "1,2"), "--experts: loads has 2 numbers, expected count = 8"),
        (("mixtral-8x7b", "--hardware", "mobile", "--experts", "1,x"), "'x' is no number from 0 on; expected tokens of each"),
        (("mixtral-8x7b", "--hardware", "mobile", "--experts", "no.csv"), "no file no.csv"),
        (("mixtral-8x7b", "--hardware", "mobile", "--experts", "odd.csv"), "odd.csv: no column 'tokens', found expert, tokns"),
        (("llama3-8", "--hardware", "mobile"), "no language-model 'llama3-8'; did you mean 'llama3-8b'?"),
        (("llama3-8b", "--hardware", "mobil"), "no hardware 'mobil'; did you mean 'mobile'?"),
        (("llama3-8b", "--hardware", "mobile", "--context", "4k,0"), "'--context': '0' is no number from 1 on"),
        (("llama3-8b", "--hardware", "mobile", "--phase", "encode"), "phase is 'encode', and llama3-8b has prefill, decode"),
        (("vit-base-patch16", "--hardware", "mobile", "--context", "64"), "--context: vit-base-patch16 reads one image"),
        (("bert-base-uncased", "--hardware", "mobile", "--cache-bits", "8"), "--cache-bits: bert-base-uncased is an encoder"),
        (("llama3-8b", "--hardware", "mobile", "--weights", "4:2"), "'4:2' is no share of nonzeros; expected 0.5 or 2:4"),
        (("llama3-8b", "--hardware", "mobile", "--weight-bits", "int5"), "nvfp4), found 'int5'; did you mean 'int8'?"),
        (("llama3-8b", "--hardware", "mobile", "--weight-bits", "99"), "'--weight-bits': 99 is not in the range 1 to 64"),
        (
            ("llama3-8b", "--hardware", "mobile", "--weight-bits", "mxfp4", "--group", "64"),
            "--group: --weight-bits mxfp4 says how many weights share a scale; expected bits",
        ),
        (("llama3-8b",), "Missing option '--hardware'"),
    ],
)  # fmt: skip
def test_wrong_words_are_told_in_a_line(words, fault, small):
    Path("odd.csv").write_text("expert,tokns\n0,3\n", "utf-8")
    assert fault in run("run", *words, code=2).output


def test_heads_that_do_not_divide_are_told_with_file_and_value(small):
    Path("small.toml").write_text(SMALL.replace("heads = 8", "heads = 7"), "utf-8")
    output = run(*small, code=2).output
    assert output.startswith("small.toml: heads = 7 does not divide hidden = 512; give head_size")
