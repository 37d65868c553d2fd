# The installed program finds its data folder, wherever it runs.
include(${SOURCE}/steps.cmake)
step(0 ${PREFIX}/bin/vramlab --version)
step(0 ${PREFIX}/bin/vramlab check ${PREFIX}/share/vramlab/scenarios/ratchet.json)
expect("1 passed, 0 failed" "${out}")
step(0 ${PREFIX}/bin/vramlab check ${PREFIX}/share/vramlab/scenarios/resnet-on-cards.json)
file(READ ${PREFIX}/share/vramlab/scenarios/ratchet.json scenario)
file(WRITE ${WORK}/mine.json "${scenario}")  # its model lies in the data folder alone
step(0 ${PREFIX}/bin/vramlab check mine.json)
expect("1 passed, 0 failed" "${out}")

# The man page and the completions that the program writes, each once.
foreach(file man/man1/vramlab.1 bash-completion/completions/vramlab zsh/vendor-completions/_vramlab fish/vendor_completions.d/vramlab.fish)
  if(NOT EXISTS ${PREFIX}/share/${file})
    message(FATAL_ERROR "share/${file} is not installed")
  endif()
endforeach()
file(GLOB_RECURSE found ${PREFIX}/share/zsh/*)
if(NOT found STREQUAL "${PREFIX}/share/zsh/vendor-completions/_vramlab")
  message(FATAL_ERROR "installed for zsh: ${found}")
endif()

# No folder without a file.
file(GLOB_RECURSE found LIST_DIRECTORIES true ${PREFIX}/*)
foreach(folder ${found})
  if(IS_DIRECTORY ${folder})
    file(GLOB within ${folder}/*)
    if(NOT within)
      message(FATAL_ERROR "${folder} is empty")
    endif()
  endif()
endforeach()
