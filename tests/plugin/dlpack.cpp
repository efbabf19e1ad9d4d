// DLPack both ways: the bytes stay where they are, and every tensor is deleted once.
#include "millrace/dlpack.h"

#include <doctest/doctest.h>

#include "millrace/testing.h"

namespace mr = millrace;

namespace {

// As a library would make one: rows of 3 floats, of which 2 columns are used, behind 4 bytes of something else.
struct LibraryTensor {
  std::vector<float> elements{-1, 1, 2, 0, 3, 4, 0};
  int64_t shape[2] = {2, 2};
  int64_t strides[2] = {3, 1};
  int deleted = 0;
  mr::dlpack::ManagedTensor managed{};
  LibraryTensor() {
    managed.dl_tensor = {elements.data(), {mr::dlpack::kCpu, 0}, 2, {MR_DTYPE_FLOAT, 32, 1}, shape, strides, 4};
    managed.manager_ctx = this;
    managed.deleter = [](mr::dlpack::ManagedTensor* self) {
      ++static_cast<LibraryTensor*>(self->manager_ctx)->deleted;
    };
  }
};

struct Adopts final : mr::Handler {
  mr::Output<mr::Tensor> out{*this, "out"};
  LibraryTensor* library = nullptr;
  void process(mr::Tick& tick, mr::Cpu&) { mr::adopt_dlpack(out, tick, &library->managed); }
};

TEST_CASE("an adopted tensor is the library's own bytes, and is deleted once, after the last reader") {
  LibraryTensor library;
  mr::testing::HandlerTest<Adopts> test;
  test.handler().library = &library;
  {
    const mr::testing::Result result = test.tick();
    REQUIRE(result.ok());
    CHECK(result.state("out") == MR_OUTPUT_ADOPTED);
    const mr::TensorView view = result.tensor("out");
    CHECK(view.data() == reinterpret_cast<const uint8_t*>(library.elements.data() + 1));
    CHECK(view.shape()[0] == 2);
    CHECK(view.strides()[0] == 3);
    CHECK(view.header().extent_bytes == 5 * sizeof(float));
    CHECK(library.deleted == 0);
  }
  CHECK(library.deleted == 1);
}

TEST_CASE("strides may be missing, and an empty tensor has no bytes") {
  LibraryTensor library;
  library.managed.dl_tensor.strides = nullptr;
  mr::testing::HandlerTest<Adopts> test;
  test.handler().library = &library;
  CHECK(test.tick().tensor("out").strides()[0] == 2);
  library.shape[0] = 0;
  CHECK(test.tick().tensor("out").header().extent_bytes == 0);
  CHECK(library.deleted == 2);
}

TEST_CASE("a tensor that cannot be adopted is deleted at once, with a sentence") {
  const auto refused = [](void (*change)(mr::dlpack::TensorInfo&)) {
    LibraryTensor library;
    change(library.managed.dl_tensor);
    mr::testing::HandlerTest<Adopts> test;
    test.handler().library = &library;
    const mr::testing::Result result = test.tick();
    CHECK(result.status == MR_ERROR);
    CHECK(library.deleted == 1);
    return result.error;
  };
  CHECK(refused([](auto& t) { t.device.device_type = mr::dlpack::kCuda; }) == "the tensor is on another device");
  CHECK(refused([](auto& t) { t.ndim = 9; }) == "a tensor has at most 8 dimensions");
  CHECK(refused([](auto& t) { t.strides[0] = -3; }) == "a tensor's shape and strides are not negative");
  CHECK(refused([](auto& t) { t.dtype.bits = 4; }) == "the tensor's elements are no whole bytes");
}

TEST_CASE("a tensor given to a library is described in place, and its description is freed by its deleter") {
  const mr::testing::Value value = mr::testing::tensor<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  mr::dlpack::ManagedTensor* managed = mr::to_dlpack(value.tensor());
  CHECK(managed->dl_tensor.data == value.data());
  CHECK(managed->dl_tensor.ndim == 2);
  CHECK(managed->dl_tensor.shape[1] == 3);
  CHECK(managed->dl_tensor.strides[0] == 3);
  CHECK(managed->dl_tensor.dtype.bits == 32);
  CHECK(managed->dl_tensor.device.device_type == mr::dlpack::kCpu);
  managed->deleter(managed); // the leak checker of a sanitized build watches this
}

// A library's own type, with an enumeration of its own, in the specification's words.
enum TheirDeviceType { theirCpu = 1 };
struct TheirManagedTensor {
  struct {
    void* data;
    struct {
      TheirDeviceType device_type;
      int32_t device_id;
    } device;
    int32_t ndim;
    struct {
      uint8_t code, bits;
      uint16_t lanes;
    } dtype;
    int64_t* shape;
    int64_t* strides;
    uint64_t byte_offset;
  } dl_tensor;
  void* manager_ctx;
  void (*deleter)(TheirManagedTensor*);
};

TEST_CASE("a library's own DLManagedTensor serves as well") {
  const mr::testing::Value value = mr::testing::tensor<uint8_t>({4});
  auto* managed = mr::to_dlpack<TheirManagedTensor>(value.tensor());
  CHECK(managed->dl_tensor.data == value.data());
  CHECK(managed->dl_tensor.device.device_type == theirCpu);
  managed->deleter(managed);
}

} // namespace
