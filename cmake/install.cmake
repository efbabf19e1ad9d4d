# What `cmake --install` leaves: the command, the public headers, and a package that plugins are built against.
#
# find_package(millrace) gives the target millrace::headers and the function millrace_add_plugin. It works against an
# installed prefix and against the build folder (-Dmillrace_DIR=build), from the same template.
include(CMakePackageConfigHelpers)

set_target_properties(millrace_headers PROPERTIES EXPORT_NAME headers)
install(TARGETS millrace_headers EXPORT millraceTargets)
install(DIRECTORY runtime/include/millrace DESTINATION include)
install(EXPORT millraceTargets NAMESPACE millrace:: DESTINATION lib/cmake/millrace)
if(TARGET millrace)
  install(TARGETS millrace RUNTIME DESTINATION bin)
endif()

configure_package_config_file(cmake/millraceConfig.cmake.in ${CMAKE_BINARY_DIR}/millraceConfig.cmake
                              INSTALL_DESTINATION lib/cmake/millrace)
# Until 1.0 a plugin's ABI version must match exactly, and so must the package's.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/millraceConfigVersion.cmake COMPATIBILITY ExactVersion)
install(FILES ${CMAKE_BINARY_DIR}/millraceConfig.cmake ${CMAKE_BINARY_DIR}/millraceConfigVersion.cmake cmake/plugin.cmake
              cmake/plugin.map DESTINATION lib/cmake/millrace)

# The build folder as a package.
export(EXPORT millraceTargets NAMESPACE millrace:: FILE ${CMAKE_BINARY_DIR}/millraceTargets.cmake)
configure_file(cmake/plugin.cmake ${CMAKE_BINARY_DIR}/plugin.cmake COPYONLY)
configure_file(cmake/plugin.map ${CMAKE_BINARY_DIR}/plugin.map COPYONLY)
