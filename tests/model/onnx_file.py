"""Writes small .onnx files for tests: the few messages of ONNX's protobuf that a network of a few nodes needs."""
import struct

FLOAT, INT64, STRING, DOUBLE = 1, 7, 8, 11  # TensorProto.DataType
OPSET, IR_VERSION = 13, 8


def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while True:
        out.append(number & 0x7F | (0x80 if number > 0x7F else 0))
        number >>= 7
        if not number:
            return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def message(field, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def value_info(name, dtype, shape):
    """A ValueInfoProto; an extent that is a word is left open."""
    dims = b"".join(message(1, message(2, d) if isinstance(d, str) else number(1, d)) for d in shape)
    return message(1, name) + message(2, message(1, number(1, dtype) + message(2, dims)))


def attribute(name, value):
    """Of one whole number, or of several."""
    if isinstance(value, int):
        return message(1, name) + number(3, value) + number(20, 2)
    return message(1, name) + b"".join(number(8, v) for v in value) + number(20, 7)


def node(kind, inputs, outputs, **attributes):
    return (b"".join(message(1, name) for name in inputs) + b"".join(message(2, name) for name in outputs)
            + message(4, kind) + b"".join(message(5, attribute(*one)) for one in attributes.items()))


def constant(name, shape, values, dtype=FLOAT):
    raw = struct.pack(f"<{len(values)}{'f' if dtype == FLOAT else 'q'}", *values)
    return b"".join(number(1, d) for d in shape) + number(2, dtype) + message(8, name) + message(9, raw)


def network(nodes, inputs, outputs, constants=()):
    """The bytes of a file; inputs and outputs are (name, type, shape)."""
    graph = (b"".join(message(1, one) for one in nodes) + message(2, "test")
             + b"".join(message(5, one) for one in constants)
             + b"".join(message(11, value_info(*one)) for one in inputs)
             + b"".join(message(12, value_info(*one)) for one in outputs))
    return number(1, IR_VERSION) + message(7, graph) + message(8, message(1, "") + number(2, OPSET))
