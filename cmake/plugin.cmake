# millrace_add_plugin(name SOURCES … LINK …): one shared library build/plugins/NAME.so that exports its entry alone.
#
# The same function serves the plugins of this tree, and others through find_package(millrace). `cmake --install`
# puts the library where the millrace of that prefix looks for plugins.
#
# A project that chooses neither a build type nor an optimisation level gets the build type Release. Without -O the body of
# a handler takes about nine times as long, and nothing would say so.
set(MILLRACE_PLUGIN_EXPORTS ${CMAKE_CURRENT_LIST_DIR}/plugin.map)
function(millrace_choose_build_type)
  get_property(has_several_types GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
  if(has_several_types OR CMAKE_BUILD_TYPE OR "${CMAKE_CXX_FLAGS}" MATCHES "(^| )-O")
    return()
  endif()
  message(STATUS "No build type was chosen: Release is taken")
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
endfunction()

function(millrace_add_plugin name)
  millrace_choose_build_type()
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} MODULE ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE millrace::headers ${ARG_LINK})
  target_link_options(${name} PRIVATE -Wl,--version-script=${MILLRACE_PLUGIN_EXPORTS})
  set_target_properties(${name} PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
                        LINK_DEPENDS ${MILLRACE_PLUGIN_EXPORTS} LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/plugins)
  install(TARGETS ${name} LIBRARY DESTINATION lib/millrace/plugins)
endfunction()
