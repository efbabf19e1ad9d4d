// NumPy's files: headers and the order of elements against the description of the format, and the two handlers.
#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <numeric>
#include <random>
#include <thread>

#include "builtin.h"
#include "fifo.h"
#include "handlers/file/open.h"
#include "handlers/tensor/npy.h"
#include "scratch.h"
#include "tests/seed.h"

using namespace millrace;
using namespace millrace::handlers;
using millrace::testing::Result;
using millrace::testing::TableTest;
using millrace::testing::Value;

namespace {

// A file as the format's description says it: version, dictionary, elements.
std::string npy_file(const std::string& dictionary, const std::string& elements, uint8_t major = 1) {
  std::string file = "\x93NUMPY";
  file += static_cast<char>(major);
  file += '\0';
  for (size_t i = 0; i < (major == 1 ? 2u : 4u); ++i) file += static_cast<char>(dictionary.size() >> (8 * i));
  return file + dictionary + elements;
}
std::string dictionary(const std::string& descr, const std::string& shape, bool fortran = false) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + shape +
         ", }\n";
}

template <class T>
std::string bytes_of(const std::vector<T>& elements) {
  return {reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T)};
}
template <class T>
std::vector<T> elements_of(const Result& result) {
  const auto elements = result.tensor("out").elements<T>();
  return {elements.begin(), elements.end()};
}

std::string refusal(const ScratchFolder& folder, const std::string& file, const std::string& stacked = "false") {
  TableTest reader(builtin("tensor.from_npy"), {{"path", folder.write("x.npy", file)}, {"stacked", stacked}});
  CHECK(reader.start() == MR_ERROR);
  const std::string start = "cannot read '" + (folder / "x.npy") + "': ";
  REQUIRE(reader.error().starts_with(start));
  return reader.error().substr(start.size());
}

} // namespace

// ---- the format
// --------------------------------------------------------------------------------------------------------

TEST_CASE("headers are those that numpy.save writes") {
  const std::string fixed("\x93NUMPY\x01\x00\x76\x00", 10);
  const auto padded = [&](const std::string& text) {
    return fixed + text + std::string(117 - text.size(), ' ') + "\n";
  };
  const std::vector<int64_t> none, one = {3}, two = {2, 3};
  CHECK(npy_header(dtype_of<float>(), two, 128) ==
        padded("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"));
  CHECK(npy_header(dtype_of<uint8_t>(), one, 128) ==
        padded("{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }"));
  CHECK(npy_header(dtype_of<int64_t>(), none, 128) ==
        padded("{'descr': '<i8', 'fortran_order': False, 'shape': (), }"));
  CHECK(npy_header(dtype_of<double>(), one).size() % 64 == 0);
}

TEST_CASE("what is written as a header is read as the same, for every dtype") {
  const ScratchFolder folder;
  const std::vector<int64_t> shape = {7, 0, 1'000'000};
  for (const DType dtype : {dtype_of<uint8_t>(), dtype_of<int8_t>(), dtype_of<uint16_t>(), dtype_of<int16_t>(),
                            dtype_of<uint32_t>(), dtype_of<int32_t>(), dtype_of<uint64_t>(), dtype_of<int64_t>(),
                            DType{MR_DTYPE_FLOAT, 16, 1}, dtype_of<float>(), dtype_of<double>()}) {
    REQUIRE(npy_has(dtype));
    const File file = open_to_read(folder.write("x", npy_header(dtype, shape)));
    const NpyHeader header = read_npy_header(file.get());
    CHECK(header.dtype == dtype);
    CHECK(header.shape == shape);
    CHECK(!header.fortran_order);
    CHECK(!header.big_endian);
    CHECK(header.data_offset % 64 == 0);
  }
  CHECK(!npy_has({MR_DTYPE_BFLOAT, 16, 1}));
  CHECK(!npy_has({MR_DTYPE_FLOAT, 8, 1}));
  CHECK(!npy_has({MR_DTYPE_FLOAT, 32, 4}));
  CHECK(!npy_has({MR_DTYPE_UINT, 4, 1}));
}

TEST_CASE("dictionaries are read in any order and spacing, with either quote") {
  const NpyHeader header =
      parse_npy_dictionary("  {\"shape\":(3 , 4L,),'fortran_order' : True, \"descr\":\">i2\"}   \n");
  CHECK(header.shape == std::vector<int64_t>{3, 4});
  CHECK(header.fortran_order);
  CHECK(header.big_endian);
  CHECK(header.dtype == dtype_of<int16_t>());
}

TEST_CASE("elements come into row-major order from any strides") {
  const std::vector<int64_t> shape = {2, 3, 4};
  std::vector<uint16_t> source(24), target(24);
  std::iota(source.begin(), source.end(), uint16_t{0});
  const auto check = [&](const std::vector<int64_t>& strides, int64_t first) {
    copy_row_major(reinterpret_cast<const uint8_t*>(source.data() + first), shape, strides, 2,
                   reinterpret_cast<uint8_t*>(target.data()));
    size_t i = 0;
    for (int64_t a = 0; a < 2; ++a)
      for (int64_t b = 0; b < 3; ++b)
        for (int64_t c = 0; c < 4; ++c) CHECK(target[i++] == first + a * strides[0] + b * strides[1] + c * strides[2]);
  };
  check({12, 4, 1}, 0);
  check(fortran_strides(shape), 0);
  CHECK(fortran_strides(shape) == std::vector<int64_t>{1, 2, 6});
  check({-12, 4, -1}, 15);
  check({0, 1, 0}, 5);
  const std::vector<int64_t> none;
  copy_row_major(reinterpret_cast<const uint8_t*>(source.data() + 9), none, none, 2,
                 reinterpret_cast<uint8_t*>(target.data()));
  CHECK(target[0] == 9);
}

TEST_CASE("bytes of elements are turned round") {
  std::vector<uint8_t> bytes = {1, 2, 3, 4, 5, 6, 7, 8};
  swap_bytes(bytes, 4);
  CHECK(bytes == std::vector<uint8_t>{4, 3, 2, 1, 8, 7, 6, 5});
  swap_bytes(bytes, 1);
  CHECK(bytes[0] == 4);
}

// ---- reading
// -----------------------------------------------------------------------------------------------------------

TEST_CASE("one file is a stack of ticks, or one value where that is said") {
  const ScratchFolder folder;
  const std::string path =
      folder.write("x.npy", npy_file(dictionary("<i4", "(2, 3)"), bytes_of<int>({0, 1, 2, 3, 4, 5})));
  TableTest stack(builtin("tensor.from_npy"), {{"path", path}});
  CHECK(elements_of<int>(stack.tick()) == std::vector{0, 1, 2});
  CHECK(elements_of<int>(stack.tick()) == std::vector{3, 4, 5});
  CHECK(stack.tick().end());
  CHECK(stack.facts().tick_count == 2);
  CHECK(stack.format("out").rank == 1);
  REQUIRE(stack.reset() == MR_OK);
  CHECK(elements_of<int>(stack.tick()) == std::vector{0, 1, 2});
  TableTest whole(builtin("tensor.from_npy"), {{"path", path}, {"stacked", "false"}});
  const Result result = whole.tick();
  CHECK(elements_of<int>(result) == std::vector{0, 1, 2, 3, 4, 5});
  CHECK(result.tensor("out").shape()[1] == 3);
  CHECK(whole.tick().end());
}

TEST_CASE("a FIFO gives the values of its stack as a file does, and says type and shape before anything runs") {
  const ScratchFolder folder;
  const std::string path = fifo(folder);
  const std::string file = npy_file(dictionary(">i4", "(2, 3)"), std::string("\0\0\0\1\0\0\0\2\0\0\0\3", 12) +
                                                                     std::string("\0\0\0\4\0\0\0\5\0\0\0\6", 12));
  TableTest stack(builtin("tensor.from_npy"), {{"path", path}});
  std::thread writer = feeder(path, file);
  REQUIRE(stack.start() == MR_OK);
  CHECK(stack.facts().waits == 1);
  CHECK(stack.facts().tick_count == 2);
  CHECK(stack.format("out").rank == 1);
  CHECK(elements_of<int>(stack.tick()) == std::vector{1, 2, 3});
  CHECK(elements_of<int>(stack.tick()) == std::vector{4, 5, 6});
  CHECK(stack.tick().end());
  writer.join();
  stack.stop();
  TableTest whole(builtin("tensor.from_npy"), {{"path", path}, {"stacked", "false"}});
  writer = feeder(path, npy_file(dictionary("<i4", "(2, 3)", true), bytes_of<int>({0, 3, 1, 4, 2, 5})));
  CHECK(elements_of<int>(whole.tick()) == std::vector{0, 1, 2, 3, 4, 5});
  CHECK(whole.tick().end());
  writer.join();
  whole.stop();
  TableTest cut(builtin("tensor.from_npy"), {{"path", path}});
  writer = feeder(path, file.substr(0, file.size() - 5));
  CHECK(cut.tick().ok());
  CHECK(cut.tick().error ==
        "cannot read '" + path + "': it breaks off: its shape says 2 values, and 1 were there and 7 bytes of the next");
  writer.join();
  cut.stop();
  for (const std::string& bad :
       {std::string("nothing of NumPy"), file.substr(0, 20), npy_file(dictionary("<f8", "(1, 99999999999)"), "")}) {
    TableTest refused(builtin("tensor.from_npy"), {{"path", path}});
    writer = feeder(path, bad);
    CHECK(refused.start() == MR_ERROR);
    CHECK(refused.error().starts_with("cannot read '" + path + "': it"));
    writer.join();
  }
}

TEST_CASE("Fortran's order, big-endian numbers, booleans, no dimension and versions 2 and 3 are read") {
  const ScratchFolder folder;
  const auto read = [&](const std::string& file) {
    TableTest reader(builtin("tensor.from_npy"), {{"path", folder.write("x.npy", file)}, {"stacked", "false"}});
    Result result = reader.tick();
    REQUIRE_MESSAGE(result.ok(), result.error);
    return result;
  };
  const std::string fortran = npy_file(dictionary("<i2", "(2, 3)", true), bytes_of<int16_t>({0, 3, 1, 4, 2, 5}));
  CHECK(elements_of<int16_t>(read(fortran)) == std::vector<int16_t>{0, 1, 2, 3, 4, 5});
  const std::string big = npy_file(dictionary(">u4", "(2,)"), std::string("\0\0\1\2\x80\0\0\0", 8));
  CHECK(elements_of<uint32_t>(read(big)) == std::vector<uint32_t>{0x102, 0x80000000});
  const std::string both = npy_file(dictionary(">u2", "(2, 2)", true), std::string("\0\1\0\3\0\2\0\4", 8));
  CHECK(elements_of<uint16_t>(read(both)) == std::vector<uint16_t>{1, 2, 3, 4});
  CHECK(elements_of<uint8_t>(read(npy_file(dictionary("|b1", "(3,)"), std::string("\0\1\1", 3)))) ==
        std::vector<uint8_t>{0, 1, 1});
  CHECK(elements_of<double>(read(npy_file(dictionary("<f8", "()"), bytes_of<double>({-0.5})))) == std::vector{-0.5});
  for (const uint8_t major : {uint8_t{2}, uint8_t{3}})
    CHECK(elements_of<float>(read(npy_file(dictionary("<f4", "(1,)"), bytes_of<float>({2.5f}), major))) ==
          std::vector{2.5f});
  CHECK(read(npy_file(dictionary("<f2", "(4,)"), std::string(8, 'x'))).tensor("out").dtype() ==
        DType{MR_DTYPE_FLOAT, 16, 1});
  CHECK(elements_of<float>(read(npy_file(dictionary("<f4", "(0, 5)"), ""))).empty());
}

TEST_CASE("numbered files come at the ticks of their numbers, and have one type and shape") {
  const ScratchFolder folder;
  const auto one = [&](const std::string& name, float value) {
    folder.write(name, npy_file(dictionary("<f4", "(1,)"), bytes_of<float>({value})));
  };
  one("a0001.npy", 1);
  one("a0003.npy", 3);
  TableTest reader(builtin("tensor.from_npy"), {{"path", folder / "a%04d.npy"}});
  std::vector<float> values;
  for (Result result = reader.tick(); !result.end(); result = reader.tick()) {
    REQUIRE(result.ok());
    values.push_back(result.has("out") ? elements_of<float>(result).at(0) : -1);
  }
  CHECK(values == std::vector<float>{-1, 1, -1, 3});
  CHECK(reader.facts().tick_count == 4);
  folder.write("a0004.npy", npy_file(dictionary("<f4", "(2,)"), bytes_of<float>({1, 2})));
  reader.stop();
  for (int i = 0; i < 4; ++i) REQUIRE(reader.tick().ok());
  CHECK(reader.tick().error ==
        "cannot read '" + (folder / "a0004.npy") + "': its type or shape is not the first file's");
  TableTest none(builtin("tensor.from_npy"), {{"path", folder / "b%04d.npy"}});
  CHECK(none.start() == MR_ERROR);
  CHECK(none.error() ==
        "cannot read '" + (folder / "b%04d.npy") + "': there is no file of this name with a number in it");
}

TEST_CASE("files that hold no plain numbers are refused by what they hold") {
  const ScratchFolder folder;
  CHECK(refusal(folder, npy_file(dictionary("|O", "(2,)"), "")) == "it holds Python objects ('|O'), not numbers");
  CHECK(refusal(folder, npy_file("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", "")) ==
        "its elements are structures, not numbers");
  for (const char* descr : {"<c8", "<c16", "<U8", "|S3", "<M8[s]", "|V8", "f4", "", "<f12"})
    CHECK_MESSAGE(refusal(folder, npy_file(dictionary(descr, "(2,)"), "")).ends_with("', which are no plain numbers"),
                  descr);
  for (const char* descr : {"<f1", "<i3", "<u0", "|b2", "<f9", "<i/"})
    CHECK_MESSAGE(refusal(folder, npy_file(dictionary(descr, "(2,)"), "")).ends_with("of no known size"), descr);
}

TEST_CASE("damaged, cut and foreign files are refused with what is wrong") {
  const ScratchFolder folder;
  const std::string good = npy_file(dictionary("<f4", "(2, 2)"), std::string(16, 'x'));
  CHECK(refusal(folder, "PNG, not NUMPY") == "it is no .npy file");
  CHECK(refusal(folder, good.substr(0, 7)) == "it breaks off in its header");
  CHECK(refusal(folder, good.substr(0, 40)) == "it breaks off in its header");
  CHECK(refusal(folder, good.substr(0, good.size() - 1)) == "it breaks off: its shape says 16 bytes, and there are 15");
  CHECK(refusal(folder, npy_file(dictionary("<f4", "(2, 2)"), "", 4)) ==
        "its format version is 4, and 1 to 3 are known");
  CHECK(refusal(folder, npy_file(dictionary("<f4", "(4000000000, 4000000000)"), "")) ==
        "its header is damaged: its shape is larger than any file");
  CHECK(refusal(folder, npy_file(dictionary("<f4", "(-1,)"), "")) == "its header is damaged: a dimension is no number");
  CHECK(refusal(folder, npy_file(dictionary("<f4", "(1,1,1,1,1,1,1,1,1)"), std::string(4, 'x'))) ==
        "its values have 9 dimensions, and tensors at most 8");
  CHECK(refusal(folder, npy_file("{'descr': '<f4'}", "")) == "its header is damaged: something is missing");
  CHECK(refusal(folder, npy_file("{'descr': '<f4", "")) == "its header is damaged: a quote is not closed");
  CHECK(refusal(folder, npy_file("{'a': 1}", "")) == "its header is damaged: it says 'a'");
  CHECK(refusal(folder, "") == "the file is empty");
  CHECK(refusal(folder, npy_file(dictionary("<f4", "()"), "1234"), "true") ==
        "it holds a single number, so there is nothing stacked; stacked=false gives it");
  CHECK(refusal(folder, npy_file(dictionary("<f4", "(2, 2)", true), std::string(16, 'x')), "true") ==
        "a stack in Fortran's order cannot be read tick by tick; save it with order='C'");
  std::filesystem::remove(folder / "x.npy");
  TableTest missing(builtin("tensor.from_npy"), {{"path", folder / "x.npy"}});
  CHECK(missing.start() == MR_ERROR);
  CHECK(missing.error().ends_with("there is no such file"));
}

TEST_CASE("no cut and no changed byte of a header does more than refuse or read") {
  const ScratchFolder folder;
  const std::string whole = npy_header(dtype_of<int32_t>(), std::vector<int64_t>{2, 3}) + std::string(24, 'x');
  const uint32_t seed = random_seed();
  INFO("seed ", seed);
  std::mt19937 random(seed);
  int read = 0;
  for (int round = 0; round < 300; ++round) {
    std::string file = whole;
    if (round % 3 == 0)
      file.resize(random() % whole.size());
    else
      file[random() % 70] = static_cast<char>(random());
    TableTest reader(builtin("tensor.from_npy"), {{"path", folder.write("x", file)}, {"stacked", "false"}});
    const Result result = reader.tick();
    if (!result.ok()) CHECK(result.error.starts_with("cannot read '"));
    read += result.ok();
  }
  CHECK(read < 300);
}

// ---- writing
// -----------------------------------------------------------------------------------------------------------

TEST_CASE("values are stacked in one file, which tensor.from_npy gives again") {
  const ScratchFolder folder;
  const std::string path = folder / "new/folder/x.npy";
  TableTest writer(builtin("tensor.to_npy"), {{"path", path}});
  for (int16_t i = 0; i < 12; ++i) {
    const auto first = static_cast<int16_t>(i * 10);
    writer.input("in", testing::tensor<int16_t>({1, 2}, {first, static_cast<int16_t>(first + 1)}));
    REQUIRE(writer.tick().ok());
  }
  REQUIRE(writer.drain() == MR_OK);
  CHECK(folder.text("new/folder/x.npy").find("'shape': (12, 1, 2), }") != std::string::npos);
  CHECK(writer.tick().error == "'" + path + "' is closed");
  TableTest reader(builtin("tensor.from_npy"), {{"path", path}});
  for (int16_t i = 0; i < 12; ++i) {
    const Result result = reader.tick();
    REQUIRE(result.tensor("out").shape().size() == 2);
    CHECK(elements_of<int16_t>(result)[1] == i * 10 + 1);
  }
  CHECK(reader.tick().end());
}

TEST_CASE("with a number in the path each tick that has a value leaves a file, with shapes of its own") {
  const ScratchFolder folder;
  TableTest writer(builtin("tensor.to_npy"), {{"path", folder / "{index}.npy"}});
  writer.input("in", testing::tensor<float>({2}, {1, 2}));
  REQUIRE(writer.tick().ok());
  writer.input("in", Value());
  REQUIRE(writer.tick().ok());
  writer.input("in", testing::tensor<float>({}, {7}));
  REQUIRE(writer.tick().ok());
  REQUIRE(writer.drain() == MR_OK);
  CHECK(!std::filesystem::exists(folder / "000001.npy"));
  const std::vector<int64_t> two = {2}, none;
  CHECK(folder.text("000000.npy") == npy_header(dtype_of<float>(), two) + bytes_of<float>({1, 2}));
  CHECK(folder.text("000002.npy") == npy_header(dtype_of<float>(), none) + bytes_of<float>({7}));
}

TEST_CASE("strides do not matter for what is written") {
  const ScratchFolder folder;
  const Value transposed = testing::tensor<uint8_t>({3, 2}, {0, 1, 2, 3, 4, 5});
  transposed.raw().as.tensor.strides[0] = 1;
  transposed.raw().as.tensor.strides[1] = 3;
  TableTest writer(builtin("tensor.to_npy"), {{"path", folder / "%d.npy"}});
  writer.input("in", transposed);
  REQUIRE(writer.tick().ok());
  CHECK(folder.text("0.npy").ends_with(std::string({0, 3, 1, 4, 2, 5})));
}

TEST_CASE("a stack of nothing is an empty array of the shape that was planned") {
  const ScratchFolder folder;
  TableTest writer(builtin("tensor.to_npy"), {{"path", folder / "x.npy"}});
  writer.input("in", testing::tensor<double>({4}));
  REQUIRE(writer.start() == MR_OK);
  REQUIRE(writer.drain() == MR_OK);
  CHECK(folder.text("x.npy").find("'<f8', 'fortran_order': False, 'shape': (0, 4), }") != std::string::npos);
  TableTest reader(builtin("tensor.from_npy"), {{"path", folder / "x.npy"}});
  CHECK(reader.tick().end());
}

TEST_CASE("tensors that cannot be stacked, have no name in NumPy or nowhere to go are refused") {
  const ScratchFolder folder;
  TableTest stack(builtin("tensor.to_npy"), {{"path", folder / "x.npy"}});
  stack.input("in", testing::tensor<float>({4}));
  REQUIRE(stack.tick().ok());
  stack.input("in", testing::tensor<float>({3}));
  CHECK(stack.tick().error.starts_with("the tensors differ in type or shape, so they cannot be stacked"));
  stack.input("in", testing::tensor<int>({4}));
  CHECK(!stack.tick().ok());
  const Value brain = testing::tensor<uint16_t>({4});
  brain.raw().as.tensor.dtype_code = MR_DTYPE_BFLOAT;
  TableTest nameless(builtin("tensor.to_npy"), {{"path", folder / "y.npy"}});
  nameless.input("in", brain);
  CHECK(nameless.start() == MR_ERROR);
  CHECK(nameless.error() == "input 'in' does not take this format");
  const std::string inside = folder.write("file", "x") + "/{index}.npy";
  TableTest nowhere(builtin("tensor.to_npy"), {{"path", inside}});
  nowhere.input("in", testing::tensor<float>({4}));
  CHECK(nowhere.tick().error == "cannot write '" + (folder / "file") + "/000000.npy': Not a directory");
  TableTest output(builtin("tensor.to_npy"), {{"path", "-"}});
  output.input("in", testing::tensor<float>({4}));
  CHECK(output.start() == MR_ERROR);
  CHECK(output.error() == "tensor.to_npy writes files, and '-' is standard output");
  TableTest twice(builtin("tensor.to_npy"), {{"path", "%d%d"}});
  twice.input("in", testing::tensor<float>({4}));
  CHECK(twice.start() == MR_ERROR);
  CHECK(twice.error() == "'%d%d' has two places for a number");
}

TEST_CASE("a full disk is told, at the latest at the end" * doctest::skip(!std::filesystem::exists("/dev/full"))) {
  TableTest full(builtin("tensor.to_npy"), {{"path", "/dev/full"}});
  full.input("in", testing::tensor<float>({4}));
  const bool told = full.tick().status == MR_ERROR || full.drain() == MR_ERROR;
  CHECK(told);
  CHECK(full.error() == "cannot write '/dev/full': No space left on device (at byte 0)");
}
