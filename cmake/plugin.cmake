# millrace_add_plugin(name SOURCES … LINK …): one shared library build/plugins/NAME.so that exports its entry alone.
#
# The same function serves the plugins of this tree, and others through find_package(millrace). `cmake --install`
# puts the library where the millrace of that prefix looks for plugins.
set(MILLRACE_PLUGIN_EXPORTS ${CMAKE_CURRENT_LIST_DIR}/plugin.map)
function(millrace_add_plugin name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} MODULE ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE millrace::headers ${ARG_LINK})
  target_link_options(${name} PRIVATE -Wl,--version-script=${MILLRACE_PLUGIN_EXPORTS})
  set_target_properties(${name} PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
                        LINK_DEPENDS ${MILLRACE_PLUGIN_EXPORTS} LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/plugins)
  install(TARGETS ${name} LIBRARY DESTINATION lib/millrace/plugins)
endfunction()
