# vramlab_add_plugin(my_policy my_policy.cpp): a plugin of vramlab, my_policy.so.
#
# It holds its own copy of the little code it shares with the program (option tables, books of a period), which
# has no state, and shows nothing but its one C function.
function(vramlab_add_plugin name)
  add_library(${name} MODULE ${ARGN})
  target_link_libraries(${name} PRIVATE vramlab::contract)
  target_compile_options(${name} PRIVATE -ffp-contract=off)  # as the program: results must not depend on it
  target_compile_options(${name} PRIVATE $<$<CXX_COMPILER_ID:Clang>:-fsized-deallocation>)  # as g++ does by itself
  target_link_options(${name} PRIVATE LINKER:--exclude-libs,ALL)
  set_target_properties(${name} PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()
