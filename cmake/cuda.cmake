# The CUDA module: millrace_cuda.so beside the program, loaded at run time where there is a driver. Nothing else links CUDA.
include(CheckLanguage)
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX} AND EXISTS /usr/local/cuda/bin/nvcc)
  set(CMAKE_CUDA_COMPILER /usr/local/cuda/bin/nvcc) # where NVIDIA's packages put it, on the PATH or not
endif()
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  message(STATUS "nvcc not found: the CUDA module is not built")
  return()
endif()
# Machine code for what is common in servers, and forms that drivers compile for what is older and for what is newer.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
  set(CMAKE_CUDA_ARCHITECTURES 75-virtual 90)
endif()
enable_language(CUDA)
if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION) # CMake 3.25 does not know that nvcc has C++20
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
find_package(CUDAToolkit REQUIRED)

# nvcc's 554 is about a conversion to the own type, which payload.h constrains away.
function(millrace_cuda_options target)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/runtime ${CMAKE_SOURCE_DIR}/runtime/include ${CMAKE_SOURCE_DIR})
  target_compile_options(
    ${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;--diag-suppress=554;-Xcompiler=-Wall>"
                      "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wshadow;-Wconversion>"
                      "$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${MILLRACE_WERROR}>>:-Werror>")
  # Kernels of several files have helpers of one name. Before 3.31 CMake compiles CUDA file by file in any case.
  set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
endfunction()

# The kernels of handlers, compiled once for the module and for their test.
file(GLOB kernel_sources CONFIGURE_DEPENDS handlers/gpu/*.cu)
# Distances in pixels need no root or quotient that is right to the last bit.
set_source_files_properties(handlers/gpu/mark_kernels.cu PROPERTIES COMPILE_OPTIONS "-prec-sqrt=false;-prec-div=false;-ftz=true")
add_library(millrace_kernels OBJECT ${kernel_sources})
millrace_cuda_options(millrace_kernels)

file(GLOB cuda_sources CONFIGURE_DEPENDS runtime/device/cuda/*.cpp runtime/device/cuda/*.cu)
list(APPEND cuda_sources runtime/device/pinned_ranges.cpp)
add_library(millrace_cuda MODULE ${cuda_sources} $<TARGET_OBJECTS:millrace_kernels>)
millrace_cuda_options(millrace_cuda)
# The runtime of CUDA goes into the module, so that it asks for no library but the driver's, when it is loaded.
target_link_libraries(millrace_cuda PRIVATE millrace_observe CUDA::cudart_static ${CMAKE_DL_LIBS} rt Threads::Threads)
target_link_options(millrace_cuda PRIVATE LINKER:--exclude-libs,ALL LINKER:--no-undefined)
set_target_properties(millrace_cuda PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
set_target_properties(millrace_kernels millrace_cuda PROPERTIES CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden
                                                                VISIBILITY_INLINES_HIDDEN ON)
