"""Writing a small ONNX graph. Owns the few messages of onnx.proto3 that it takes (protobuf wire format:
field number and type, then length and bytes), so that training needs no `onnx` and no protobuf.

Invariant: the same weights give the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from exo.core.base.files import write_atomic
from numpy.typing import NDArray

FLOAT, FLOAT16, INT64 = 1, 10, 7  # TensorProto.DataType
IR, OPSET = 8, 17  # understood since onnxruntime 1.12
Shape = Sequence[int | str]


def node(kind: str, inputs: Sequence[str], output: str, **attributes: int) -> bytes:
    """A NodeProto; attributes are integers alone."""
    found = [_text(1, each) for each in inputs] + [_text(2, output), _text(4, kind)]
    for name, value in attributes.items():
        # AttributeProto: name 1, i 3, type 20 (INT is 2)
        found.append(_bytes(5, _text(1, name) + _number(3, value) + _number(20, 2)))
    return b"".join(found)


def tensor(name: str, value: NDArray[np.generic]) -> bytes:
    """A TensorProto of float32, float16 or int64."""
    kind = {"float32": FLOAT, "float16": FLOAT16, "int64": INT64}[value.dtype.name]
    dims = b"".join(_number(1, size) for size in value.shape)
    little = value.astype(value.dtype.newbyteorder("<"))
    return dims + _number(2, kind) + _text(8, name) + _bytes(9, little.tobytes())


def write(
    path: Path,
    nodes: Sequence[bytes],
    tensors: Sequence[bytes],
    inputs: dict[str, Shape],
    outputs: dict[str, Shape],
) -> None:
    """Write a ModelProto. Inputs and outputs are float32; a text in a shape is a size that may differ."""
    graph = b"".join(_bytes(1, each) for each in nodes) + _text(2, "exo-decide")
    graph += b"".join(_bytes(5, each) for each in tensors)
    graph += b"".join(_bytes(11, _value(*each)) for each in inputs.items())
    graph += b"".join(_bytes(12, _value(*each)) for each in outputs.items())
    opset = _bytes(8, _text(1, "") + _number(2, OPSET))
    write_atomic(path, _number(1, IR) + _text(2, "exo") + _bytes(7, graph) + opset)


def _value(name: str, shape: Shape) -> bytes:
    """A ValueInfoProto."""
    dims = b"".join(
        _bytes(1, _number(1, each) if isinstance(each, int) else _text(2, each)) for each in shape
    )
    return _text(1, name) + _bytes(2, _bytes(1, _number(1, FLOAT) + _bytes(2, dims)))


def _text(field: int, text: str) -> bytes:
    return _bytes(field, text.encode())


def _bytes(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
