"""What sizes are laid out as, by fan-outs and by what the cost model expects of tiles."""

import attrs
import pytest
from sparsemap_plugins.encodings.padding import richer

import sparsemap
from sparsemap.primes import divisors
from sparsemap.problem import design_file
from sparsemap.searching.written import read_result

ODD = {
    "technology": "12nm-recommended",
    "compute": {"name": "MAC", "gate_skip": True},
    "levels": [
        {"name": "DRAM", "class": "dram", "bandwidth": "32 GB/s"},
        {"name": "GLB", "class": "sram", "capacity": "1 MB", "fanout": 42, "gate_skip": True},
        {"name": "PEB", "class": "sram", "capacity": "16 KB", "fanout": 36, "gate_skip": True},
    ],
}


def test_sizes_that_fill_the_fan_outs_badly_are_padded_to_many_small_factors():
    """730 = 2 * 5 * 73 leaves 42 and 36 instances mostly idle; the paper's space keeps it."""
    assert sparsemap.load_problem("mm3", ODD, "full").padded == dict.fromkeys("mkn", (730, 756))
    assert sparsemap.load_problem("mm3", ODD, "paper").padded == {}
    assert sparsemap.load_problem("mm1", "edge", "full").padded == {}


def test_fan_outs_that_sizes_fill_keep_the_sizes():
    even = {**ODD, "levels": [{**level, **({"fanout": 10} if "fanout" in level else {})} for level in ODD["levels"]]}
    assert sparsemap.load_problem("mm3", even, "full").padded == {}


def test_padding_by_fan_outs_finds_better_designs():
    prime = {"extends": "full", "tiling": {"type": "prime-factors", "padding": "prime"}}
    found, before = (
        sparsemap.search(sparsemap.load_problem("mm3", ODD, space), budget=400, seed=0).best.score
        for space in ("full", prime)
    )
    assert found < before


def test_what_fills_the_fan_outs_has_many_divisors():
    """1024 has 11, 1020 has 24; of 757 and 331 none near has 1.5 times as many as 768 and 336."""
    product = {"name": "primes", "einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": {"m": 1009, "k": 757, "n": 331}}
    made = sparsemap.load_problem({**product, "density": {"P": 0.2, "Q": 0.2}}, "mobile")
    assert made.padded == {"m": (1009, 1020), "k": (757, 768), "n": (331, 336)}


def test_sizes_with_more_divisors():
    assert richer(730) == (732, 744, 756) and richer(2048) == (2052, 2100, 2160) and richer(12) == ()
    for size in (17, 124, 730):
        every = range(size + 1, size + size // 8 + 1)
        better = [n for n in every if all(len(divisors(n)) > len(divisors(m)) for m in range(size, n))]
        assert list(richer(size)) == better


@pytest.mark.parametrize(
    ("workload", "padded"),
    [("mm3", {"m": (730, 756)}), ("mm14", {"n": (2048, 2160)}), ("mm1", {}), ("conv4", {})],
)
def test_sizes_are_laid_out_for_tiles_that_fit(workload, padded):
    """On edge, whose buffer is read anew for every tile that is too small: 2048 = 3 * 683 words would fit, 2 * 1024 do not."""
    assert sparsemap.load_problem(workload, "edge").padded == padded


def test_tiles_that_fit_are_those_of_better_designs():
    prime = {"extends": "full", "tiling": {"type": "prime-factors", "padding": "prime"}}
    for workload, share in (("mm3", 0.9), ("mm14", 0.6)):
        found, before = (
            sparsemap.search(sparsemap.load_problem(workload, "edge", space), budget=500, seed=0).best.score
            for space in ("full", prime)
        )
        assert found < share * before


def test_other_cost_models_spaces_and_aims_keep_their_sizes():
    assert sparsemap.load_problem("mm3", "edge", cost_model="timeloop").padded == {}
    assert sparsemap.load_problem("mm3", "cloud", cost_model="timeloop").padded == dict.fromkeys("mkn", (730, 735))
    assert sparsemap.load_problem("mm3", "edge", space="paper").padded == {}
    assert sparsemap.load_problem("mm3", "edge", objective="pareto:energy,delay").padded == {}
    smooth = {"extends": "full", "tiling": {"type": "prime-factors", "padding": "smooth"}}
    assert sparsemap.load_problem("mm3", "edge", smooth).padded == dict.fromkeys("mkn", (730, 735))


def test_the_outlook_is_near_the_bound():
    """Of sizes as they are and of larger ones; nothing is below `least`."""
    given = sparsemap.load_problem("mm3", "edge", "paper", cost_model="physical")
    sizes = [given.sizes, {**given.sizes, "m": 735}, {**given.sizes, "m": 756}]
    largest = given.laid_out({**given.sizes, "m": 756})
    outlook = largest.cost_model.outlook(largest)
    least, *expected = (float((e.energy_pj * e.cycles).min()) for e in (outlook.least, *outlook.of(sizes)))
    assert all(least <= one for one in expected)
    for one, own in zip(expected, sizes, strict=True):
        assert 0.95 < one / given.laid_out(own).bound <= 1.0 + 1e-9


def test_a_saved_design_keeps_its_sizes_and_says_why(tmp_path):
    found = sparsemap.search(sparsemap.load_problem("mm3", "edge"), budget=200, seed=0)
    why = "for tiles that fit: 0.88x of edp expected"
    assert found.padded == {"m": (730, 756)} and found.why_padded == why
    assert f"padded   m 730 -> 756 ({why})" in found.report("summary")
    found.write(tmp_path)
    loaded = design_file.load(tmp_path, found.best.problem.registry)
    assert loaded.problem.padded == found.padded and loaded.problem.space.why_padded == why
    assert loaded.problem.evaluator.evaluate_designs(loaded.batch).energy_pj[0] == found.best.energy_pj
    assert read_result(tmp_path)["why_padded"] == why


@pytest.mark.slow
def test_a_search_on_odd_fan_outs_ends_near_its_bound():
    """Sizes of 730 on five levels with fan-outs 3, 6, 7 and 12."""
    rooms = {"GLB": ("1 MB", 3), "MID": ("128 KB", 6), "PEB": ("16 KB", 7), "REG": ("512 B", 12)}
    common = {"gate_skip": True, "double_buffered": True}
    kind = {"REG": "regfile"}
    inner = [
        {"name": name, "class": kind.get(name, "sram"), "capacity": room, "fanout": count, **common}
        for name, (room, count) in rooms.items()
    ]
    outer = ODD["levels"][0] | {"bandwidth": "16 GB/s"}
    hardware = {**ODD, "technology": "12nm", "levels": [outer, *inner]}
    found = sparsemap.search(sparsemap.load_problem("mm3", hardware), budget=2000, seed=0)
    assert 1.0 <= found.gap < 1.35


def test_a_search_without_a_bound_has_the_sizes_of_one_with_a_bound():
    """Designs of a layer with tensors on chip, searched briefly, are those of its long search."""
    down = {"type": "linear", "m": 197, "k": 3072, "n": 768}
    brief = attrs.evolve(sparsemap.load_problem(down, "edge"), bounded=False)
    assert brief.sizes == {"m": 198, "k": 3072, "n": 780}
