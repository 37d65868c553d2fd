# Completion and man page come from the program's own option tables, at build time; `cmake --install` puts them
# where shells and man look.
include(GNUInstallDirs)
set(documents ${CMAKE_CURRENT_BINARY_DIR}/vramlab.1 ${CMAKE_CURRENT_BINARY_DIR}/vramlab.bash
    ${CMAKE_CURRENT_BINARY_DIR}/_vramlab ${CMAKE_CURRENT_BINARY_DIR}/vramlab.fish)
add_custom_command(OUTPUT ${documents}
  COMMAND vramlab completion man --quiet -o vramlab.1
  COMMAND vramlab completion bash --quiet -o vramlab.bash
  COMMAND vramlab completion zsh --quiet -o _vramlab
  COMMAND vramlab completion fish --quiet -o vramlab.fish
  DEPENDS vramlab WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR} VERBATIM)
add_custom_target(vramlab_documents ALL DEPENDS ${documents})

install(FILES ${CMAKE_CURRENT_BINARY_DIR}/vramlab.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/vramlab.bash
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME vramlab)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/_vramlab DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/vramlab.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
