# What every target of the project shares: C++20, warnings as errors, reproducible floating point.
include(GNUInstallDirs)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

add_library(vramlab_options INTERFACE)
target_include_directories(vramlab_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(vramlab_options INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wpedantic -Werror
  -Wno-missing-field-initializers  # designated initialisers leave the rest at its default on purpose
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>  # g++ 12 warns wrongly about "text" + std::string (GCC bug 105651)
  $<$<CXX_COMPILER_ID:Clang>:-fsized-deallocation>  # as g++ does by itself: HeapCount is exact with it
  -fno-semantic-interposition  # libraries are position-independent, and still inline what they call themselves
  -ffp-contract=off)  # results must not depend on whether a compiler fuses multiply and add

# With CMAKE_UNITY_BUILD, the sources of a folder are compiled together, twelve at most unless VRAMLAB_JOINED says
# otherwise: headers are parsed and templates instantiated once for all of them, which more than halves a full build.
# Names of a folder's sources must then differ, local ones too.
function(vramlab_join_sources target)
  if(NOT VRAMLAB_JOINED)
    set(VRAMLAB_JOINED 12)
  endif()
  foreach(source ${ARGN})
    get_filename_component(folder ${source} DIRECTORY)
    string(REGEX REPLACE "[^a-z]+" "_" folder "in_${folder}")
    math(EXPR group "0${count_of_${folder}} / ${VRAMLAB_JOINED}")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${group})
    math(EXPR count_of_${folder} "0${count_of_${folder}} + 1")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()

# vramlab_library(memory SOURCES a.cpp b.cpp LINK vramlab::core): the target vramlab::memory of one folder.
# PRIVATE_LINK names what only its sources need.
function(vramlab_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;PRIVATE_LINK" ${ARGN})
  add_library(vramlab_${name} STATIC ${ARG_SOURCES})
  add_library(vramlab::${name} ALIAS vramlab_${name})
  target_link_libraries(vramlab_${name} PUBLIC ${ARG_LINK} PRIVATE $<BUILD_INTERFACE:vramlab_options> ${ARG_PRIVATE_LINK})
  target_include_directories(vramlab_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/vramlab>)
  target_compile_features(vramlab_${name} PUBLIC cxx_std_20)
  if(NOT EMSCRIPTEN)
    set_target_properties(vramlab_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)  # part of shared libraries: capi, plugins
  endif()
  vramlab_join_sources(vramlab_${name} ${ARG_SOURCES})
endfunction()

# For a library that fits, counts or prints, once a run or less: g++ compiles it in three fifths to four fifths of the
# time. What steps and replays go through (sim, models, policies, recordings) keeps the level of the build.
function(vramlab_build_quickly target)
  if(EMSCRIPTEN)  # a page is fetched, so what is rarely passed through is small
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Oz>)
    return()
  endif()
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# Defines VRAMLAB_SOURCE_DIR for those sources alone that use it, where sources are compiled one by one: the others
# compile alike in every checkout, so that checkouts share them through ccache.
function(vramlab_name_source_folder target)
  if(CMAKE_UNITY_BUILD)
    target_compile_definitions(${target} PRIVATE VRAMLAB_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    return()
  endif()
  foreach(source ${ARGN})
    file(STRINGS ${CMAKE_CURRENT_SOURCE_DIR}/${source} uses REGEX VRAMLAB_SOURCE_DIR LIMIT_COUNT 1)
    if(uses)
      set_property(SOURCE ${source} APPEND PROPERTY COMPILE_DEFINITIONS VRAMLAB_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    endif()
  endforeach()
endfunction()

# vramlab_test(memory SOURCES a_test.cpp LINK vramlab::memory): the test program test_memory, one ctest case a TEST.
# PROPERTIES are those of every case, PRECOMPILE heavy headers that most of the sources include.
function(vramlab_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;PROPERTIES;PRECOMPILE" ${ARGN})
  add_executable(test_${name} ${ARG_SOURCES})
  target_link_libraries(test_${name} PRIVATE ${ARG_LINK} vramlab_options GTest::gmock_main)
  target_compile_options(test_${name} PRIVATE -O0)  # what is tested keeps its own level; tests compile in two thirds of the time
  list(LENGTH ARG_SOURCES sources)
  if(sources GREATER 3 AND NOT CMAKE_UNITY_BUILD)  # parsing the test library is half of what a test takes to compile
    target_precompile_headers(test_${name} PRIVATE <gmock/gmock.h> <gtest/gtest.h> ${ARG_PRECOMPILE})
    # g++ 12 forgets which precompiled headers are the system's, and warns wrongly about std::string in them.
    target_compile_options(test_${name} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread>)
  endif()
  vramlab_name_source_folder(test_${name} ${ARG_SOURCES})
  vramlab_join_sources(test_${name} ${ARG_SOURCES})
  gtest_discover_tests(test_${name} TEST_PREFIX ${name}. DISCOVERY_TIMEOUT 60 PROPERTIES ${ARG_PROPERTIES})
endfunction()
