# What a build to WebAssembly takes in place of Debian's shared libraries: scripts/build-web configures it.
#
# Libraries that are headers alone come from /usr/include, through a folder of links: the folder as a whole would bring
# the headers of another C library along. The others are compiled from Debian's source packages, which scripts/setup web
# unpacks into build/web/sources.
set(sources ${PROJECT_BINARY_DIR}/sources)
set(headers ${PROJECT_BINARY_DIR}/headers)
foreach(folder boost yaml-cpp zlib zstd)
  if(NOT EXISTS ${sources}/${folder})
    message(FATAL_ERROR "${sources} has no folder ${folder}: scripts/setup web unpacks it.")
  endif()
endforeach()

enable_language(C)
set(CMAKE_UNITY_BUILD ON)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")
add_compile_options(-w)  # sizes have 32 bits here, and every release build warns about the rest
add_compile_options(-fwasm-exceptions $<$<COMPILE_LANGUAGE:CXX>:-include$<SEMICOLON>${PROJECT_SOURCE_DIR}/web/library.hpp>)
add_link_options(-fwasm-exceptions)

file(MAKE_DIRECTORY ${headers}/bits ${headers}/debug ${headers}/tr1)
file(GLOB gnu /usr/include/c++/*/ext)
list(GET gnu -1 gnu)
get_filename_component(gnu ${gnu} DIRECTORY)
foreach(link boost nlohmann fmt)
  file(CREATE_LINK /usr/include/${link} ${headers}/${link} SYMBOLIC)
endforeach()
file(CREATE_LINK /usr/include/eigen3/Eigen ${headers}/Eigen SYMBOLIC)
# The trees of g++'s library. What its headers take of the rest of that library is in web/library.hpp.
file(CREATE_LINK ${gnu}/ext ${headers}/ext SYMBOLIC)
foreach(name bits/c++config.h bits/cpp_type_traits.h debug/debug.h tr1/functional tr1/type_traits)
  if(NOT EXISTS ${headers}/${name})  # else all is compiled again
    file(WRITE ${headers}/${name} "")
  endif()
endforeach()
include_directories(SYSTEM ${headers})

foreach(target Boost::headers nlohmann_json::nlohmann_json Eigen3::Eigen fmt::fmt)
  add_library(${target} INTERFACE IMPORTED GLOBAL)
endforeach()
target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY)

function(vramlab_from_source target)
  file(GLOB files ${ARGN})
  add_library(${target} STATIC ${files})
  set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
endfunction()

vramlab_from_source(zlib ${sources}/zlib/*.c)
target_include_directories(zlib PUBLIC ${sources}/zlib)
vramlab_from_source(zstd ${sources}/zstd/lib/common/*.c ${sources}/zstd/lib/decompress/*.c ${PROJECT_SOURCE_DIR}/web/no_packing.c)
target_include_directories(zstd PUBLIC ${sources}/zstd/lib)
vramlab_from_source(yaml-cpp ${sources}/yaml-cpp/src/*.cpp)
target_include_directories(yaml-cpp PUBLIC ${sources}/yaml-cpp/include)
target_compile_definitions(yaml-cpp PUBLIC YAML_CPP_STATIC_DEFINE)
vramlab_from_source(boost_program_options ${sources}/boost/libs/program_options/src/*.cpp)
vramlab_from_source(boost_iostreams ${sources}/boost/libs/iostreams/src/gzip.cpp
  ${sources}/boost/libs/iostreams/src/zlib.cpp ${sources}/boost/libs/iostreams/src/zstd.cpp)
target_link_libraries(boost_iostreams PUBLIC zlib zstd)
set_target_properties(yaml-cpp boost_program_options boost_iostreams PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
vramlab_build_quickly(yaml-cpp)
vramlab_build_quickly(boost_program_options)
add_library(Boost::program_options ALIAS boost_program_options)
add_library(Boost::iostreams ALIAS boost_iostreams)
