# Writes the files of a folder into a C++ source, so that the program serves them without a file of its own beside it.
#
# HEADER declares `std::span<const PageFile> page_files()` in NAMESPACE.
#
# usage: cmake -DFOLDER=runtime/serve/page -DHEADER=serve/page_files.h -DNAMESPACE=millrace::serve -DOUT=page_bytes.cpp
#              -P page_files.cmake
file(GLOB files ${FOLDER}/*)
list(SORT files)
set(arrays "")
set(table "")
set(number 0)
foreach(file ${files})
  get_filename_component(name ${file} NAME)
  file(READ ${file} bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND arrays "constexpr unsigned char kFile${number}[] = {${bytes}0};\n")
  string(APPEND table "    {\"${name}\", {reinterpret_cast<const char*>(kFile${number}), sizeof kFile${number} - 1}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUT}
     "// The files of a page, written by cmake/page_files.cmake.\n"
     "#include \"${HEADER}\"\n\n"
     "namespace ${NAMESPACE} {\n\nnamespace {\n${arrays}\nconst PageFile kPageFiles[] = {\n${table}};\n\n} // namespace\n\n"
     "std::span<const PageFile> page_files() { return kPageFiles; }\n\n} // namespace ${NAMESPACE}\n")
