# The Debian packages that `./dev package` makes with CPack: the command, what builds against it, the CUDA module, and each
# plugin by itself, so that the command needs neither OpenCV nor FFmpeg. Packages of libraries that a file is linked with
# are found by dpkg-shlibdeps. They fit the release of the distribution that they are made on, which their version names.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME millrace)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "The millrace authors <nobody@millrace.invalid>") # no such domain: RFC 2606
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)

cmake_host_system_information(RESULT distribution QUERY DISTRIB_ID DISTRIB_VERSION_ID)
list(JOIN distribution "" distribution)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1~${distribution})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL)
set(command_of_this_build "millrace (= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")

# The package PACKAGE holds the files of COMPONENT.
function(millrace_package component package section depends summary)
  list(APPEND CPACK_COMPONENTS_ALL ${component})
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} PARENT_SCOPE)
  string(TOUPPER ${component} key)
  set(CPACK_DEBIAN_${key}_PACKAGE_NAME ${package} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_DEPENDS "${depends}" PARENT_SCOPE)
  set(CPACK_COMPONENT_${key}_DESCRIPTION "${summary}" PARENT_SCOPE)
endfunction()

# Labels are drawn with DejaVu; faces are found with OpenCV's cascades. No library's dependency says so.
millrace_package(millrace millrace utils fonts-dejavu-core "A dataflow stream runtime: the command and its built-in handlers")
# Applications link libraries that are archives: what they need in turn is said here.
millrace_package(dev millrace-dev libdevel
  "${command_of_this_build}, libyaml-cpp-dev, nlohmann-json3-dev, libfmt-dev, libspdlog-dev, libfreetype-dev, libssl-dev"
  "Headers and libraries to write plugins for millrace, and applications with it inside; millrace's benchmarks")
if(TARGET media)
  millrace_package(media millrace-plugin-media video "${command_of_this_build}" "Video files and streams for millrace, by FFmpeg's libraries")
endif()
if(TARGET model)
  millrace_package(model millrace-plugin-model utils "${command_of_this_build}"
    "Networks in a pipeline, computed by ONNX Runtime, which is not in this package")
endif()
if(TARGET model_torch)
  millrace_package(model_torch millrace-plugin-model-torch utils
    "${command_of_this_build}, millrace-plugin-model (= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})"
    "TorchScript networks for millrace, computed by libtorch")
endif()
if(TARGET opencv)
  millrace_package(opencv millrace-plugin-opencv video "${command_of_this_build}, opencv-data"
    "Pictures, cameras, windows and detectors for millrace, by OpenCV")
endif()
millrace_package(codebook millrace-plugin-codebook utils "${command_of_this_build}"
  "Codebooks for millrace: anchors that are annealed to vectors, their files, and `millrace codebook`")
millrace_package(volume millrace-plugin-volume utils "${command_of_this_build}"
  "Volumes of files for millrace, and pictures of them, turned in a browser")
if(TARGET codec)
  millrace_package(codec millrace-plugin-codec video "${command_of_this_build}"
    "Pictures as packets of JPEG and H.264 for millrace, by libjpeg-turbo and FFmpeg's libraries")
endif()
if(TARGET viewer)
  millrace_package(viewer millrace-plugin-viewer video "${command_of_this_build}"
    "Pictures of a millrace pipeline in browsers, with pointer and keys back into it")
endif()
if(TARGET millrace_cuda)
  millrace_package(cuda millrace-cuda utils "${command_of_this_build}" "NVIDIA GPUs for millrace; uses the driver that the machine has")
endif()
include(CPack)
