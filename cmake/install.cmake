# What `cmake --install` leaves: the command, the CUDA module, the public headers, the libraries of runtime.h, and a package
# for those who build against them.
#
# find_package(millrace) gives the target millrace::headers and the function millrace_add_plugin: all that a plugin
# needs. find_package(millrace COMPONENTS runtime) gives millrace::runtime to applications, and looks for the libraries
# that it is made of. Both work against an installed prefix and against the build folder (-Dmillrace_DIR=build), from
# the same template.
include(CMakePackageConfigHelpers)

set_target_properties(millrace_headers PROPERTIES EXPORT_NAME headers)
install(TARGETS millrace_headers EXPORT millraceTargets)
install(DIRECTORY runtime/include/millrace DESTINATION include)
install(EXPORT millraceTargets NAMESPACE millrace:: DESTINATION lib/cmake/millrace)

set_target_properties(millrace_embed PROPERTIES EXPORT_NAME runtime)
install(TARGETS millrace_embed millrace_exec millrace_plan millrace_graph millrace_plugin millrace_memory millrace_device
                millrace_observe millrace_handlers millrace_warnings
        EXPORT millraceRuntimeTargets ARCHIVE DESTINATION lib/millrace)
install(EXPORT millraceRuntimeTargets NAMESPACE millrace:: DESTINATION lib/cmake/millrace)
if(TARGET millrace)
  install(TARGETS millrace RUNTIME DESTINATION bin)
endif()
if(TARGET millrace_cuda)
  install(TARGETS millrace_cuda LIBRARY DESTINATION lib/millrace) # where embed/device_module.cpp looks
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
