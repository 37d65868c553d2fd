# vramlab_static: the program of the same objects with all its libraries inside, for any Linux of this kind of processor.
# Without plugins, which a static program cannot load, and without a card. scripts/package builds it.
set(archives "")
set(missing "")
foreach(name yaml-cpp boost_program_options boost_iostreams z zstd bz2 lzma)
  find_library(VRAMLAB_STATIC_${name} lib${name}.a)
  mark_as_advanced(VRAMLAB_STATIC_${name})
  if(VRAMLAB_STATIC_${name})
    list(APPEND archives ${VRAMLAB_STATIC_${name}})
  else()
    list(APPEND missing lib${name}.a)
  endif()
endforeach()

if(missing)
  list(JOIN missing ", " missing)
  add_custom_target(vramlab_static
    COMMAND ${CMAKE_COMMAND} -E echo "The static program needs ${missing}: scripts/setup package installs them." COMMAND false VERBATIM)
  return()
endif()

# Their files, because the targets would bring the shared libraries along.
set(own "")
foreach(name cli lab comparison report plugins fit recordings files plan runs memory policies contract models core)
  list(APPEND own vramlab_${name})
endforeach()
list(TRANSFORM own REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE own_files)

add_executable(vramlab_static EXCLUDE_FROM_ALL cli/main.cpp cli/no_card.cpp cli/no_ranks.cpp cli/static_program.cpp plugins/counted_new.cpp)
add_dependencies(vramlab_static ${own})
target_include_directories(vramlab_static PRIVATE $<TARGET_PROPERTY:vramlab_cli,INCLUDE_DIRECTORIES>)
target_compile_definitions(vramlab_static PRIVATE VRAMLAB_VERSION="${PROJECT_VERSION}")
target_link_libraries(vramlab_static PRIVATE vramlab_options
  -static -Wl,--start-group ${own_files} -Wl,--end-group ${archives})
set_target_properties(vramlab_static PROPERTIES UNITY_BUILD OFF LINK_DEPENDS "${own_files}")
