"""The operations that split columns into heads and concatenate heads."""

from __future__ import annotations

from collections.abc import Sequence

from ttnn_emulator.tensors.shapes import TILE_SIZE, div_up
from ttnn_emulator.tensors.spec import Spec
from ttnn_emulator.timing.calls import Call, prices
from ttnn_emulator.timing.families.heads.interleaved import CONCAT, CREATE, rows_of_tiles, tiles_launch
from ttnn_emulator.timing.families.heads.sharded import (
    concat_launch,
    create_launch,
    fetched_launch,
    rows_launch,
)
from ttnn_emulator.timing.launches import Launch
from ttnn_emulator.timing.movement import is_dram, shard_cores
from ttnn_emulator.timing.programs import ProgramRun, times
from ttnn_emulator.timing.shards import is_local

CREATING = {
    "ttnn.experimental.nlp_create_qkv_heads": "NlpCreateHeadsDeviceOperation",
    "ttnn.experimental.nlp_create_qkv_heads_falcon7b": "NlpCreateHeadsFalcon7BDeviceOperation",
    "ttnn.experimental.nlp_create_qkv_heads_vit": "NlpCreateHeadsVitDeviceOperation",
    "ttnn.experimental.nlp_create_qkv_heads_segformer": "NlpCreateHeadsSegformerDeviceOperation",
    "ttnn.experimental.nlp_create_qkv_heads_boltz": "NlpCreateHeadsBoltzDeviceOperation",
    "ttnn.experimental.nlp_create_q_heads_split": "NlpCreateQHeadsSplitDeviceOperation",
    "ttnn.experimental.split_query_key_value_and_split_heads": "SplitFusedQKVAndSplitHeadsDeviceOperation",
    "ttnn.experimental.create_qkv_heads": "CreateQKVHeadsDeviceOperation",
    "ttnn.experimental.create_qkv_heads_from_separate_tensors": "CreateQKVHeadsSeparateTensorsDeviceOperation",
}
JOINING = {
    "ttnn.experimental.nlp_concat_heads": "NLPConcatHeadsDeviceOperation",
    "ttnn.experimental.nlp_concat_heads_boltz": "NLPConcatHeadsBoltzDeviceOperation",
    "ttnn.experimental.concatenate_heads": "ConcatenateHeadsDeviceOperation",
}
# Whether keys are transposed if a call does not say so.
TRANSPOSES = frozenset(
    {
        "ttnn.experimental.nlp_create_qkv_heads",
        "ttnn.experimental.create_qkv_heads",
        "ttnn.experimental.create_qkv_heads_from_separate_tensors",
        "ttnn.experimental.split_query_key_value_and_split_heads",
        "ttnn.experimental.nlp_create_qkv_heads_boltz",
    }
)
SPLIT = "ttnn.experimental.split_query_key_value_and_split_heads"
# Sharded kernels of these fetch heads from other cores; those of others have them in their own L1.
FETCHING = frozenset({"ttnn.experimental.nlp_create_qkv_heads", "ttnn.experimental.nlp_create_qkv_heads_boltz"})


def _sources(call: Call) -> list[Spec]:
    sources = [spec for name, spec in call.inputs if not name.startswith("output")]
    return sources[:2]


@prices(*CREATING)
def create(call: Call) -> Sequence[Launch]:
    code, board = CREATING[call.name], call.board
    sources, outputs = _sources(call), [each for each in call.outputs if each is not None]
    asked = call.arguments.get("transpose_k_heads")
    transposed = (call.name in TRANSPOSES if asked is None else bool(asked)) and len(outputs) > 2
    if is_local(sources[0]) and all(is_local(each) for each in outputs):
        if call.name in FETCHING or len(outputs) < 3:
            return [fetched_launch(code, CREATE, outputs, board)]
        return [
            create_launch(
                code, CREATE, sources[0], outputs, board, transposed=transposed, key_beside=call.name == SPLIT
            )
        ]
    key = outputs[1] if transposed else None
    rows = rows_of_tiles(sources[0])
    return [tiles_launch(code, CREATE, sources, outputs, board, rows=rows, transposed=key)]


@prices(*JOINING)
def concat(call: Call) -> Sequence[Launch]:
    code, source, out = JOINING[call.name], call.tensors[0], call.outputs[0]
    if is_local(source) and is_local(out):
        return [concat_launch(code, CONCAT, source, call.board)]
    return [tiles_launch(code, CONCAT, [source], [out], call.board, rows=rows_of_tiles(source))]


# -- decoding ---------------------------------------------------------------------------------------------------------


@prices("ttnn.experimental.nlp_create_qkv_heads_decode")
def create_for_decoding(call: Call) -> Sequence[Launch]:
    """Every core has a user: it takes the user's row out of the tiles of all heads."""
    source, query = call.tensors[0], call.outputs[0]
    users = max(query.shape[1] if len(query.shape) > 1 else 1, 1)
    columns = div_up(source.padded_shape[-1], TILE_SIZE)
    used = shard_cores(query) or users
    code = "NLPCreateQKVHeadsDecodeDeviceOperation"
    return [rows_launch(code, CREATE, 1, columns, source, call.board, used, in_dram=is_dram(source))]


@prices("ttnn.experimental.nlp_concat_heads_decode")
def concat_for_decoding(call: Call) -> Sequence[Launch]:
    """Every core has a head: it takes the head's row out of the tiles of all users."""
    source, out = call.tensors[0], call.outputs[0]
    users = max(source.shape[1] if len(source.shape) > 1 else 1, 1)
    columns = div_up(source.padded_shape[-1], TILE_SIZE)
    used = shard_cores(out) or max(out.padded_shape[-1] // max(source.padded_shape[-1], 1), 1)
    return [rows_launch("NLPConcatHeadsDecodeDeviceOperation", CONCAT, users, columns, source, call.board, used)]


# -- programs of performance sheets -----------------------------------------------------------------------------------


@times("NlpCreateHeadsDeviceOperation", family=CREATE)
def create_row(run: ProgramRun) -> Launch:
    """A key is transposed if its sizes are those of the value, exchanged."""
    outputs = [each for each in run.outputs if each.volume]
    if is_local(run.inputs[0]) and all(is_local(each) for each in outputs):
        return fetched_launch(run.code, CREATE, outputs, run.board)
    key = None
    if len(outputs) > 2 and outputs[1].shape[-2:] != outputs[2].shape[-2:]:
        key = outputs[1]
    rows = rows_of_tiles(run.inputs[0])
    return tiles_launch(run.code, CREATE, run.inputs, outputs, run.board, rows=rows, transposed=key, cores=run.cores)


@times("NLPConcatHeadsDeviceOperation", family=CONCAT)
def concat_row(run: ProgramRun) -> Launch:
    source, out = run.inputs[0], run.outputs[0]
    if is_local(source) and is_local(out):
        return concat_launch(run.code, CONCAT, source, run.board)
    rows = rows_of_tiles(source)
    return tiles_launch(run.code, CONCAT, [source], [out], run.board, rows=rows, cores=run.cores)
