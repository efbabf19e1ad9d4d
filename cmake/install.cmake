# `cmake --install`: the command with its manual, licence, examples and schema; the CUDA module; and for those who build
# against millrace the public headers, the libraries of runtime.h and file_run.h and a package. Plugins install themselves (plugin.cmake).
#
# Each file belongs to a component, and each component becomes a package of its own (package.cmake): millrace, dev, cuda,
# and one a plugin.
#
# find_package(millrace) gives the target millrace::headers and the function millrace_add_plugin: all that a plugin
# needs. find_package(millrace COMPONENTS runtime) gives millrace::runtime to applications, and looks for the libraries
# that it is made of. Both work against an installed prefix and against the build folder (-Dmillrace_DIR=build), from
# the same template.
include(CMakePackageConfigHelpers)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME dev)

set_target_properties(millrace_headers PROPERTIES EXPORT_NAME headers)
install(TARGETS millrace_headers EXPORT millraceTargets)
install(DIRECTORY runtime/include/millrace DESTINATION include)
install(EXPORT millraceTargets NAMESPACE millrace:: DESTINATION lib/cmake/millrace)

set_target_properties(millrace_compose PROPERTIES EXPORT_NAME runtime)
install(TARGETS millrace_compose millrace_node millrace_fleet millrace_net_system millrace_embed millrace_exec millrace_net millrace_plan millrace_batch millrace_graph millrace_plugin millrace_memory
                millrace_device millrace_observe millrace_handlers millrace_warnings
        EXPORT millraceRuntimeTargets ARCHIVE DESTINATION lib/millrace)
install(EXPORT millraceRuntimeTargets NAMESPACE millrace:: DESTINATION lib/cmake/millrace)
if(TARGET millrace)
  install(TARGETS millrace RUNTIME DESTINATION bin COMPONENT millrace)
  install(TARGETS millrace-bench RUNTIME DESTINATION bin COMPONENT dev) # it has the runtime once more: 6 MB
  install(DIRECTORY examples/cluster examples/data examples/embed examples/machines examples/model examples/nodes examples/pipelines
                    examples/plugin examples/plugin_clock examples/plugin_cuda examples/plugin_model
          DESTINATION share/millrace/examples COMPONENT millrace USE_SOURCE_PERMISSIONS PATTERN build EXCLUDE)
  install(FILES docs/reference/pipeline.schema.json DESTINATION share/millrace COMPONENT millrace)
  install(FILES LICENSE DESTINATION share/doc/millrace COMPONENT millrace)
  find_package(Python3 QUIET COMPONENTS Interpreter)
  if(Python3_FOUND AND NOT MILLRACE_SANITIZE)
    add_custom_command(
      OUTPUT ${CMAKE_BINARY_DIR}/millrace.1
      COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/cmake/man_page.py $<TARGET_FILE:millrace> ${CMAKE_BINARY_DIR}/millrace.1
      DEPENDS millrace ${CMAKE_SOURCE_DIR}/cmake/man_page.py
      COMMENT "Writing millrace.1 from what --help says")
    add_custom_target(man_page ALL DEPENDS ${CMAKE_BINARY_DIR}/millrace.1)
    install(FILES ${CMAKE_BINARY_DIR}/millrace.1 DESTINATION share/man/man1 COMPONENT millrace)
  endif()
endif()
if(TARGET millrace_cuda)
  install(TARGETS millrace_cuda LIBRARY DESTINATION lib/millrace COMPONENT cuda) # where embed/device_module.cpp looks
endif()

configure_package_config_file(cmake/millraceConfig.cmake.in ${CMAKE_BINARY_DIR}/millraceConfig.cmake
                              INSTALL_DESTINATION lib/cmake/millrace)
# Until 1.0 a plugin's ABI version must match exactly, and so must the package's.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/millraceConfigVersion.cmake COMPATIBILITY ExactVersion)
install(FILES ${CMAKE_BINARY_DIR}/millraceConfig.cmake ${CMAKE_BINARY_DIR}/millraceConfigVersion.cmake cmake/plugin.cmake
              cmake/plugin.map DESTINATION lib/cmake/millrace)

# The build folder as a package.
export(EXPORT millraceTargets NAMESPACE millrace:: FILE ${CMAKE_BINARY_DIR}/millraceTargets.cmake)
export(EXPORT millraceRuntimeTargets NAMESPACE millrace:: FILE ${CMAKE_BINARY_DIR}/millraceRuntimeTargets.cmake)
configure_file(cmake/plugin.cmake ${CMAKE_BINARY_DIR}/plugin.cmake COPYONLY)
configure_file(cmake/plugin.map ${CMAKE_BINARY_DIR}/plugin.map COPYONLY)

include(cmake/package.cmake)
