"""Published parameters become networks whose counts are those of closed forms."""

import pytest
from closed_forms import GROUPED, HEADS, MIXTRAL, PUBLISHED, counts, deepseek_v2_lite, grouped
from sparsemap_plugins.language_models.block import CACHED, spread
from sparsemap_plugins.language_models.parts import chunks, parts_of
from sparsemap_plugins.language_models.points import Point
from sparsemap_plugins.language_models.widths import Widths

from sparsemap import SpecError
from sparsemap.pieces.loading import load
from sparsemap.problem.network import nodes_of, weights_of

SIX = ("llama3-8b", "llama3-70b", "qwen3-8b", "mixtral-8x7b", "mistral-7b-v0.1", "deepseek-v2-lite")
TINY = {"type": "language-model", "layers": 2, "hidden": 256, "heads": 8, "feed_forward": 512, "vocabulary": 1000}


@pytest.fixture(scope="module")
def registry():
    return load()


def nodes(registry, model, point, **bits):
    """By part: its count and its nodes, with checked shapes."""
    parts = parts_of(model, point, Widths.of(16, **bits))
    return {part.name: (part.count, nodes_of(registry.build("network", part.table), registry)) for part in parts}


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_the_published_ones_within_one_per_cent(registry, name):
    """Norms and biases, less than a hundredth, are left out."""
    assert registry.get("language-model", name).parameters == pytest.approx(PUBLISHED[name], rel=0.01)


@pytest.mark.parametrize("name", SIX)
def test_parameters_are_those_of_the_closed_form(registry, name):
    blocks = deepseek_v2_lite()[0] if name == "deepseek-v2-lite" else grouped(*GROUPED.get(name, MIXTRAL))[0]
    assert registry.get("language-model", name).parameters == blocks + 2 * HEADS[name]


@pytest.mark.parametrize("name", SIX)
@pytest.mark.parametrize(
    ("phase", "tokens", "batch"), [("decode", 2048, 1), ("decode", 8192, 16), ("decode", 1, 4), ("prefill", 2048, 1)]
)
def test_macs_and_weights_and_cache_of_a_step_equal_the_closed_form(registry, name, phase, tokens, batch):
    """16 x 6 rows spread over 48 of 64 experts, two each, where the closed form lets all 64 work: see below."""
    model = registry.get("language-model", name)
    found = nodes(registry, model, Point(phase, tokens, batch)).values()
    macs = sum(count * sum(node.macs for node in some) for count, some in found)
    weights = sum(count * weights_of(some) for count, some in found)
    expected = counts(name, tokens, batch, phase)
    if name == "deepseek-v2-lite" and batch == 16:
        expected = expected[0], expected[1] - 26 * (64 - 48) * 3 * 2048 * 1408, expected[2]
    cache = model.layers * batch * model.seen(tokens) * model.cache_words
    assert (macs, weights, cache) == expected


def test_rows_spread_over_as_few_experts_as_hold_the_rows():
    even = [
        spread(rows, [load] * count) for rows, count, load in ((6, 64, 1), (96, 64, 0.1), (99, 64, 7), (4096, 8, 1))
    ]
    assert even == [{1: 6}, {2: 48}, {2: 50}, {512: 8}]
    assert spread(100, [0.1, 0.3, 0.2, 0.1, 0.3]) == {30: 2, 20: 1, 10: 2} and spread(4, [5, 0, 3, 1]) == {3: 1, 2: 1}


MOE = {**TINY, "name": "moe", "experts": {"count": 4, "active": 2, "size": 128}}


def test_skewed_experts_multiply_rows_by_their_loads_and_read_the_weights_of_busy_ones(registry):
    """64 tokens choose two experts each, by loads of 4, 2, 2 and 0: 64, 32 and 32 rows, each with three matrices."""

    def counted(**own):
        model = registry.build("language-model", {**MOE, "experts": {**MOE["experts"], **own}})
        _, some = nodes(registry, model, Point("prefill", 64, 1))["expert-block"]
        return [node for node in some if "expert" in node.name and node.loops], some

    skewed, every = counted(loads=[2, 4, 0, 2])
    assert sum(node.macs for node in skewed) == 3 * 256 * 128 * (64 + 32 + 32) == sum(x.macs for x in counted()[0])
    assert weights_of(skewed) == 3 * 256 * 128 * 3
    assert len({node.content for node in skewed}) == 2 * 2, "a search of up and down for each number of rows"
    sent = next(node for node in every if node.name == "sent")
    assert sent.shape == (128, 256) and not any(node.piece.moves for node in every if node.name.startswith("sent-"))
    same, plain = (
        [(x.name, x.content, x.inputs, x.shape) for x in counted(**own)[1]] for own in ({"loads": [7] * 4}, {})
    )
    assert same == plain


def test_an_encoder_has_neither_cache_nor_decoder_head(registry):
    bert, vit = (registry.get("language-model", name) for name in ("bert-base-uncased", "vit-base-patch16"))
    assert bert.cache_words == vit.cache_words == 0
    assert list(nodes(registry, bert, Point("encode", 384, 2))) == ["block"]
    found = nodes(registry, vit, Point("encode", vit.image.tokens, 2))
    macs = sum(count * sum(node.macs for node in some) for count, some in found.values())
    per_block = 197 * (4 * 768 * 768 + 2 * 768 * 3072) + 2 * 197 * 197 * 768
    assert macs == 2 * (196 * 3 * 256 * 768 + 12 * per_block + 768 * 1000)


def test_a_window_limits_what_decode_reads_and_prefill_works_in_chunks(registry):
    """A chunk sees itself and the chunk before: twice the window for each query, in place of the whole prompt."""
    model = registry.get("language-model", "mistral-7b-v0.1")
    _, block = nodes(registry, model, Point("decode", 32768, 1))["block"]
    assert next(node for node in block if node.name == "scores").loops.sizes["n"] == 4096
    assert chunks(32768, 4096) == [(4096, 4096), *[(4096, 8192)] * 7]
    assert chunks(6000, 1024) == [(1200, 1200), *[(1200, 2400)] * 4] and chunks(5003, 4096) == [(5003, 5003)]
    assert chunks(4096, 4096) == [(512, seen) for seen in range(512, 4097, 512)]
    found = nodes(registry, model, Point("prefill", 32768, 1))
    (first, least), (count, attention) = found["attention-4096"], found["attention-8192"]
    assert (first, count) == (32 * 8, 32 * 8 * 7)
    assert attention[2].macs == 2 * least[2].macs == 4 * 4096 * 8192 * 128


def test_a_prompt_without_a_divisor_has_a_shorter_last_chunk(registry):
    """A prime number of tokens: 40,009, and 10,007 with a window of 4,096; a few tokens are chunks of one."""
    for tokens, window, first in ((40009, 0, 5056), (10007, 4096, 4096), (5, 0, 1), (7, 0, 1), (100, 0, 13)):
        every = chunks(tokens, window)
        assert sum(queries for queries, _ in every) == tokens and {queries for queries, _ in every[:-1]} <= {first}
        assert 0 < every[-1][0] <= first and all(queries <= seen <= tokens for queries, seen in every)
        assert len(every) <= 8 and (window or every[-1][1] == tokens)
    assert chunks(10007, 4096) == [(4096, 4096), (4096, 8192), (1815, 5911)]
    model = registry.get("language-model", "llama3-8b")
    _, some = nodes(registry, model, Point("prefill", 40009, 1))["attention-40009"]
    assert sum(node.macs for node in some) == 2 * 4 * (40009 - 7 * 5056) * 40009 * 128


def test_a_long_prompt_meets_its_keys_in_blocks_of_equal_layers(registry):
    """Eight chunks of 4,096 queries see one to eight blocks of as many keys; from the second on, contexts are added."""
    model = registry.get("language-model", "llama3-8b")
    found = nodes(registry, model, Point("prefill", 32768, 1))
    blocks = {name: some for name, (_, some) in found.items() if name.startswith("attention-")}
    assert len(blocks) == 8
    for turn, (name, some) in enumerate(blocks.items(), 1):
        assert name == f"attention-{4096 * turn}" and sum(node.macs for node in some) == turn * 2 * 4 * 4096**2 * 128
        kinds = [getattr(node.piece, "type_name", "") for node in some]
        assert (kinds.count("softmax"), kinds.count("add")) == (turn, turn - 1)
        assert len({node.content for node in some if node.macs}) == 2
        assert all(node.piece.scaled for node in some if getattr(node.piece, "type_name", "") == "add")


def test_the_cache_is_written_once_per_token_and_read_as_a_whole(registry):
    """Decoding with 16 sequences: 15 x 16 rows come from DRAM beside 16 new ones, which the operation `cache` writes."""
    for name, made in (("llama3-8b", ("keys", "values")), ("deepseek-v2-lite", ("latents",))):
        model = registry.get("language-model", name)
        found = nodes(registry, model, Point("decode", 16, 16))
        own = {node.name: node for node in found["block"][1]}
        assert [own[each].piece.rows for each in made] == [16 * 15] * len(made)
        assert own["cache"].shape == (16, model.cache_words)
        assert {layer for layer in CACHED if layer in own} >= {"scores", "context"}


def test_widths_of_the_hardware_are_left_out_and_others_are_packed_in_its_words():
    widths = Widths.of(16)
    assert widths.key(widths.activation, widths.weight, widths.activation) == {}
    eight = Widths.of(16, weight=8, activation=8)
    assert eight.key(8, eight.weight, 8) == {"word_bits": dict.fromkeys("PQZ", 8)} and eight.cache == 8


def test_other_widths_are_a_table_by_tensor_with_the_share_of_a_scale():
    widths = Widths.of(16, weight=4, cache=8, group=128)
    assert widths.key(16, widths.weight, 16) == {"word_bits": {"P": 16, "Q": 4.125, "Z": 16}}
    assert widths.key(16, widths.cache, 16) == {"word_bits": {"P": 16, "Q": 8, "Z": 16}}


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"heads": 7}, "heads = 7 does not divide hidden = 256; give head_size"),
        ({"kv_heads": 3}, "kv_heads = 3 does not divide heads = 8"),
        ({"layers": 0}, "layers: is 0, expected at least 1"),
        ({"hiden": 3}, "hiden: unknown key; did you mean 'hidden'?"),
        ({"vocabulary": 0}, "vocabulary is missing, expected tokens, or an image"),
        ({"experts": {"count": 4, "active": 5, "size": 8}}, "experts: active = 5, expected at most count = 4"),
        ({"experts": {"count": 4, "active": 1, "size": 8, "dense_first": 3}}, "expected at most layers = 2"),
        ({"experts": {**MOE["experts"], "loads": [3, 1]}}, "experts: loads has 2 numbers, expected count = 4"),
        (
            {"experts": {**MOE["experts"], "loads": [1, 1, 1, 4]}},
            "loads[3] is 4 of 7, expected more than 0, and of all at most",
        ),
        ({"experts": {**MOE["experts"], "loads": [0] * 4}}, "loads[0] is 0 of 0, expected more than 0"),
        ({"experts": {**MOE["experts"], "loads": [1, 1, 1, -1]}}, "experts.loads: is -1.0, expected at least 0"),
        ({"image": {"size": 224, "patch": 16, "classes": 10}}, "image is for an encoder, expected encoder = true"),
        ({"image": {"size": 224, "patch": 15, "classes": 10}}, "image: patch = 15 does not divide size = 224"),
    ],
)
def test_wrong_parameters_are_told_with_key_and_value(registry, changes, fault):
    with pytest.raises(SpecError) as caught:
        registry.build("language-model", {**TINY, **changes})
    assert fault in str(caught.value) and "\n" not in str(caught.value)
