// The part of ONNX Runtime's C interface that is used here.
//
// OrtGetApiBase() gives a table of functions whose order is published and only ever grows, so a place in it is a
// contract: 9 is Run. The places below are those of onnxruntime_c_api.h; no header of ONNX Runtime is needed to build.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace::model::onnx {

// Types of the library, which gives only pointers to them.
struct Status;
struct Env;
struct Session;
struct SessionOptions;
struct RunOptions;
struct Value;
struct TypeInfo;
struct ShapeInfo;
struct MemoryInfo;
struct Allocator;

constexpr uint32_t kApiVersion = 16; // the oldest that is taken is ONNX Runtime 1.16

struct ApiBase {
  const void* const* (*get_api)(uint32_t version); // null: the library is older than that
  const char* (*get_version)();
};

// Places in the table, and their types. A function that returns a status returns null if all went well.
template <int kPlace, class F>
struct Function {
  static constexpr int place = kPlace;
  using type = F*;
};
using GetErrorCode = Function<1, int(const Status*)>;
using GetErrorMessage = Function<2, const char*(const Status*)>;
using CreateEnv = Function<3, Status*(int log_level, const char* id, Env**)>;
using CreateSession = Function<7, Status*(const Env*, const char* path, const SessionOptions*, Session**)>;
using Run =
    Function<9, Status*(Session*, const RunOptions*, const char* const* input_names, const Value* const* inputs,
                        size_t input_count, const char* const* output_names, size_t output_count, Value** outputs)>;
using CreateSessionOptions = Function<10, Status*(SessionOptions**)>;
using SetIntraOpNumThreads = Function<24, Status*(SessionOptions*, int)>;
using SetInterOpNumThreads = Function<25, Status*(SessionOptions*, int)>;
using SessionGetInputCount = Function<30, Status*(const Session*, size_t*)>;
using SessionGetOutputCount = Function<31, Status*(const Session*, size_t*)>;
using SessionGetInputTypeInfo = Function<33, Status*(const Session*, size_t, TypeInfo**)>;
using SessionGetOutputTypeInfo = Function<34, Status*(const Session*, size_t, TypeInfo**)>;
using SessionGetInputName = Function<36, Status*(const Session*, size_t, Allocator*, char**)>;
using SessionGetOutputName = Function<37, Status*(const Session*, size_t, Allocator*, char**)>;
using CreateRunOptions = Function<39, Status*(RunOptions**)>;
using RunOptionsSetTerminate = Function<46, Status*(RunOptions*)>;
using RunOptionsUnsetTerminate = Function<47, Status*(RunOptions*)>;
using CreateTensorWithData = Function<49, Status*(const MemoryInfo*, void* data, size_t bytes, const int64_t* shape,
                                                  size_t rank, int type, Value**)>;
using CastTypeInfoToTensorInfo = Function<55, Status*(const TypeInfo*, const ShapeInfo**)>;
using GetTensorElementType = Function<60, Status*(const ShapeInfo*, int*)>;
using GetDimensionsCount = Function<61, Status*(const ShapeInfo*, size_t*)>;
using GetDimensions = Function<62, Status*(const ShapeInfo*, int64_t*, size_t)>;
using GetTensorTypeAndShape = Function<65, Status*(const Value*, ShapeInfo**)>;
using CreateCpuMemoryInfo = Function<69, Status*(int allocator_type, int memory_type, MemoryInfo**)>;
using AllocatorFree = Function<76, Status*(Allocator*, void*)>;
using GetAllocatorWithDefaultOptions = Function<78, Status*(Allocator**)>;
using ReleaseStatus = Function<93, void(Status*)>;
using ReleaseMemoryInfo = Function<94, void(MemoryInfo*)>;
using ReleaseSession = Function<95, void(Session*)>;
using ReleaseValue = Function<96, void(Value*)>;
using ReleaseRunOptions = Function<97, void(RunOptions*)>;
using ReleaseTypeInfo = Function<98, void(TypeInfo*)>;
using ReleaseShapeInfo = Function<99, void(ShapeInfo*)>;
using ReleaseSessionOptions = Function<100, void(SessionOptions*)>;
using AddSessionConfigEntry = Function<130, Status*(SessionOptions*, const char* key, const char* value)>;

constexpr int kNoModel = 4, kInvalidProtobuf = 7, kNotImplemented = 9, kInvalidGraph = 10; // from GetErrorCode
constexpr int kLogFatal = 4, kArenaAllocator = 1, kDefaultMemory = 0;

} // namespace millrace::model::onnx
