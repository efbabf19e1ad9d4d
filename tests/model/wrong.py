#!/usr/bin/env python3
"""Networks that cannot be used: compares what the command says of each with a transcript in wrong/.

usage: wrong.py MILLRACE [--update]

Each case makes its files in a folder of its own, and `millrace check` refuses the pipeline; two are found out only in a
run. The words of ONNX Runtime differ from version to version and are left out of the transcripts. Without it in
media/models (`./dev models`) only the cases that need no engine are looked at, and a line says so.
"""
import array
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

sys.path[:0] = map(str, pathlib.Path(__file__).resolve().parents[:2])
from onnx_file import FLOAT, INT64, STRING, constant, message, network, node, number, value_info  # noqa: E402
from run import ENGINE, write_npy  # noqa: E402
from transcript import difference  # noqa: E402

TRANSCRIPTS = pathlib.Path(__file__).resolve().parent / "wrong"
INVALID_PIPELINE, RUN_FAILED = 3, 1
CASES_MIN = 25
SECONDS_MAX = 120


def floats(*numbers):
    return array.array("f", numbers).tobytes()


def scaled(shape=("rows", 3), extra=()):
    """y = 2x."""
    return network([node("Mul", ["x", "two"], ["y"]), *extra], [("x", FLOAT, shape)], [("y", FLOAT, shape)],
                   [constant("two", [1], [2.0])])


def of_two(outputs=("sum", "difference")):
    return network([node("Add", ["left", "right"], ["sum"]), node("Sub", ["left", "right"], ["difference"])],
                   [("left", FLOAT, ["rows", 3]), ("right", FLOAT, ["rows", 3])],
                   [(name, FLOAT, ["rows", 3]) for name in outputs])


def with_a_list():
    """Its output is a list of tensors."""
    a_list = message(1, "y") + message(2, message(4, message(1, message(1, number(1, FLOAT)))))
    graph = (message(1, node("SequenceConstruct", ["x"], ["y"])) + message(2, "test")
             + message(11, value_info("x", FLOAT, [1, 3])) + message(12, a_list))
    return number(1, 8) + message(7, graph) + message(8, message(1, "") + number(2, 13))


def of_another_domain():
    graph = (message(1, node("Blend", ["x"], ["y"]) + message(7, "com.acme")) + message(2, "test")
             + message(11, value_info("x", FLOAT, [1, 3])) + message(12, value_info("y", FLOAT, [1, 3])))
    return number(1, 8) + message(7, graph) + message(8, message(1, "") + number(2, 13)) + message(
        8, message(1, "com.acme") + number(2, 1))


def of_rows_of_32():
    """Its columns are folded into rows of 32."""
    return network([node("Reshape", ["x", "shape"], ["y"])], [("x", FLOAT, ["rows", "columns"])],
                   [("y", FLOAT, ["folded", 32])], [constant("shape", [2], [-1, 32], INT64)])


def picking():
    """y = six[x]: x says which of six numbers are taken; there is no ninth."""
    return network([node("Gather", ["six", "x"], ["y"])], [("x", INT64, [2])], [("y", FLOAT, [2])],
                   [constant("six", [6], [1.0] * 6)])


def growing():
    """It works on as many numbers as x says, and gives their sum."""
    return network([node("ConstantOfShape", ["x"], ["many"]), node("ReduceSum", ["many"], ["y"], keepdims=1)],
                   [("x", INT64, [2])], [("y", FLOAT, [1, 1])])


def summing():
    return network([node("ReduceSum", ["x"], ["y"], keepdims=0)], [("x", FLOAT, [1, 3])], [("y", FLOAT, [])])


ROW = ("<f4", (1, 1, 3), floats(1, 2, 3))  # one tick of float32 [1, 3]


class Case:
    def __init__(self, file=b"", path="net.onnx", params="", inputs="tensor: x", outputs=("tensor",), x=ROW, engine=True,
                 run=False, library=None):
        self.file, self.path, self.params, self.inputs, self.outputs = file, path, params, inputs, outputs
        self.x, self.engine, self.run, self.library = x, engine, run, library

    def make(self, folder):
        if self.file is not None:
            (folder / self.path).write_bytes(self.file)
        write_npy(folder / "x.npy", *self.x)
        sinks = "".join(f"  sink{i}: {{ type: null.sink, input: net.{port} }}\n" for i, port in enumerate(self.outputs))
        params = f", {self.params}" if self.params else ""
        (folder / "p.yaml").write_text(f"""version: 1
handlers:
  x: {{ type: tensor.from_npy, path: x.npy }}
  net:
    {{ type: model.run, inputs: {{ {self.inputs} }}{params},
      path: {self.path} }}
{sinks}""")


def without_engine(path, **more):
    return Case(b"x", path, engine=False, **more)


def beside_another(folder):
    (folder / "detector.onnx").write_bytes(scaled())


LONG = ("<i8", (3, 2), array.array("q", [1, 2, 3, 4, 5, 9]).tobytes())
HUGE = ("<i8", (1, 2), array.array("q", [1 << 30, 1 << 30]).tobytes())

CASES = {
    # which file
    "no_such_file": Case(None, engine=False),
    "name_misspelled": Case(None, "detecter.onnx", engine=False),
    "folder": Case(None, ".", engine=False),
    # which engine
    "exported_program": without_engine("net.pt2"),
    "weights_alone": without_engine("net.safetensors"),
    "built_for_one_gpu": without_engine("net.engine"),
    "of_tensorflow_lite": without_engine("net.tflite"),
    "ending_unknown": without_engine("net.bin"),
    "engine_not_here": Case(scaled(), engine=False, library="/nowhere.so"),
    "engine_is_another_library": Case(scaled(), engine=False, library="libm.so.6"),
    # no network, or one that cannot be computed
    "empty_file": Case(),
    "another_kind_of_file": Case(b"%PDF-1.4 no network"),
    "truncated": Case(scaled()[:-20]),
    "operator_unknown": Case(network([node("Frobnicate", ["x"], ["y"])], [("x", FLOAT, [1, 3])], [("y", FLOAT, [1, 3])])),
    "operator_of_another_domain": Case(of_another_domain()),
    "operator_without_its_input": Case(network([node("Mul", ["x", "gone"], ["y"])], [("x", FLOAT, [1, 3])],
                                               [("y", FLOAT, [1, 3])])),
    # names and numbers
    "one_input_of_two": Case(of_two()),
    "two_inputs_of_one": Case(scaled(), inputs="tensor: x, tensor2: x"),
    "input_misspelled": Case(of_two(), inputs="tensor: x, tensor2: x", params="input_names: 'rihgt, left'"),
    "input_named_twice": Case(of_two(), inputs="tensor: x, tensor2: x", params="input_names: 'left, left'"),
    "output_misspelled": Case(of_two(), inputs="tensor: x, tensor2: x", params="outputs: 'sum, diference'"),
    "output_not_there": Case(scaled(), params="outputs: boxes"),
    "one_output_too_many": Case(scaled(), outputs=("tensor", "tensor2")),
    "five_outputs": Case(of_two(), inputs="tensor: x, tensor2: x", params="outputs: 'sum, sum, sum, sum, sum'"),
    # types and shapes
    "whole_numbers": Case(scaled(), x=("<i8", (1, 1, 3), array.array("q", [1, 2, 3]).tobytes())),
    "double": Case(scaled(), x=("<f8", (1, 1, 3), struct.pack("<3d", 1, 2, 3))),
    "one_dimension_more": Case(scaled(), x=("<f4", (1, 1, 1, 3), floats(1, 2, 3))),
    "one_dimension_less": Case(scaled(), x=("<f4", (1, 3), floats(1, 2, 3))),
    "another_extent": Case(scaled(), x=("<f4", (1, 1, 4), floats(1, 2, 3, 4))),
    "more_rows_than_the_file_allows": Case(scaled((1, 3)), x=("<f4", (1, 2, 3), floats(1, 2, 3, 4, 5, 6))),
    "size_that_does_not_fold": Case(of_rows_of_32()),
    "output_without_dimensions": Case(summing()),
    # values that are none
    "output_is_a_list": Case(with_a_list()),
    "output_is_text": Case(network([node("Cast", ["x"], ["y"], to=STRING)], [("x", FLOAT, [1, 3])],
                                   [("y", STRING, [1, 3])])),
    "input_is_text": Case(network([node("Identity", ["x"], ["y"])], [("x", STRING, [1])], [("y", STRING, [1])])),
    # while it computes
    "third_call_fails": Case(picking(), x=LONG, run=True),
    "too_little_memory": Case(growing(), x=HUGE, run=True),
}


def said_of(millrace, name, case):
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        if name == "name_misspelled":
            beside_another(folder)
        case.make(folder)
        command = ["run", "--quiet", "--threads", "1", "p.yaml"] if case.run else ["check", "p.yaml"]
        library = case.library or (str(ENGINE) if ENGINE else "")
        done = subprocess.run([millrace, *command], cwd=folder, capture_output=True, text=True, timeout=SECONDS_MAX,
                              stdin=subprocess.DEVNULL, env={**os.environ, "MILLRACE_ONNXRUNTIME": library})
        said = done.stderr.replace(str(folder), "FOLDER")
        return done.returncode, re.sub(r"(?s)(ONNX Runtime: ).*?(?= \(\S+ on \w+ \[|\n  at |\Z)", r"\1…", said)


def main():
    millrace, update = str(pathlib.Path(sys.argv[1]).resolve()), "--update" in sys.argv[2:]
    found, left_out = [], 0
    for name, case in CASES.items():
        if case.engine and not ENGINE:
            left_out += 1
            continue
        code, said = said_of(millrace, name, case)
        expected_code = RUN_FAILED if case.run else INVALID_PIPELINE
        if code != expected_code:
            found.append(f"{name}: the exit code is {code}, expected {expected_code}\n{said}")
        if not said.startswith("error MR09"):
            found.append(f"{name}: it has no code of networks\n{said}")
        if differs := difference(TRANSCRIPTS / f"{name}.txt", said, update):
            found.append(differs)
    for stray in {path.stem for path in TRANSCRIPTS.glob("*.txt")} - CASES.keys():
        found.append(f"{stray}.txt belongs to no case")
    if len(CASES) < CASES_MIN:
        found.append(f"{len(CASES)} cases, expected at least {CASES_MIN}")
    if left_out:
        print(f"left out: {left_out} cases that need ONNX Runtime, which `./dev models` fetches")
    print("\n".join(found) if found else f"{len(CASES) - left_out} wrong networks are refused in the right words")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
