# How everything is compiled: warnings, sanitizers, assertions and the compiler cache, chosen in one place.

# Warnings are errors with the compiler that the project is developed with. Others warn about other things: a newcomer's
# build does not fail on that. Builds with sanitizers do not warn: instrumentation confuses the flow analysis, and the
# warnings are a tenth of a test's compile time.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^12\\." AND NOT MILLRACE_SANITIZE)
  set(MILLRACE_WERROR_DEFAULT ON)
else()
  set(MILLRACE_WERROR_DEFAULT OFF)
endif()
option(MILLRACE_WERROR "warnings are errors" ${MILLRACE_WERROR_DEFAULT})

add_library(millrace_warnings INTERFACE)
if(MILLRACE_SANITIZE)
  # ThreadSanitizer does not see fences. One that it does not see can only make it report too much, and it reports nothing
  # of these: Boost.Asio's stand beside locks, and ours (tests/tidy names the files that may have one) order atomic words
  # and no other memory.
  add_compile_options(-w -fsanitize=${MILLRACE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${MILLRACE_SANITIZE})
else()
  target_compile_options(
    millrace_warnings
    INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion;-Wnon-virtual-dtor;-Woverloaded-virtual>
              $<$<BOOL:${MILLRACE_WERROR}>:-Werror>
              # In a unity build every file is included by one that is compiled, and this warning takes them for headers.
              $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<BOOL:${CMAKE_UNITY_BUILD}>>:-Wno-subobject-linkage>)
endif()
if(MILLRACE_SANITIZE MATCHES undefined)
  # AddressSanitizer reports an access through a null pointer or past an object too. Without these two checks g++ takes a
  # quarter less time for a file.
  add_compile_options(-fno-sanitize=null,object-size)
endif()

# A programmer's mistake is an assertion that holds in release too: CMake's release flags would switch it off.
foreach(flags CMAKE_C_FLAGS_RELEASE CMAKE_CXX_FLAGS_RELEASE CMAKE_C_FLAGS_RELWITHDEBINFO CMAKE_CXX_FLAGS_RELWITHDEBINFO)
  string(REPLACE "-DNDEBUG" "" ${flags} "${${flags}}")
  # Loops that gain from -O3 ask for it themselves; everywhere else it makes GCC 12 warn of copies that are fine.
  string(REPLACE "-O3" "-O2" ${flags} "${${flags}}")
endforeach()

# Everything may become part of a shared library (a plugin, an application), but nobody replaces our functions there:
# without this GCC inlines none of those that have a name outside their file. Clang assumes it anyway.
add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-semantic-interposition>)

# mold takes a third of GNU ld's processor time where there is debugging information. The release build is linked by the
# compiler's own linker: it has none, its links take under a second each, and what ships is linked by what people have.
option(MILLRACE_MOLD "link with mold where it is found" OFF)
if(MILLRACE_MOLD)
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=mold MILLRACE_HAS_MOLD)
  if(MILLRACE_HAS_MOLD)
    add_link_options($<$<LINK_LANGUAGE:C,CXX>:-fuse-ld=mold>)
  endif()
endif()

# Precompiled headers are for builds that compile each file by itself. A unity build reads a header once for many files in
# any case, and a file that forgets an include finds the name in the precompiled header, so other builds go without.
option(MILLRACE_PCH "precompile the headers of exec, plan and their tests" OFF)

# Compiles the HEADER… that most files of TARGET include once for all of them.
function(millrace_precompile target)
  if(MILLRACE_PCH)
    target_precompile_headers(${target} PRIVATE ${ARGN})
    # ccache keeps these files only if g++ leaves the include of the precompiled header in what it preprocesses, and if
    # clang writes no time into that header.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>
                                             "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>")
  endif()
endfunction()

find_program(MILLRACE_CCACHE ccache)
if(MILLRACE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${MILLRACE_CCACHE})
  if(MILLRACE_PCH)
    # ccache cannot see macros that a precompiled header defines, nor __TIME__ in it. Here neither changes without a file.
    list(PREPEND CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros)
  endif()
endif()
