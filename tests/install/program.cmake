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

# Where the program writes its own man page and completions, they are installed.
if(EXISTS ${SOURCE}/../../cli/completion.cpp)
  foreach(file man/man1/vramlab.1 bash-completion/completions/vramlab zsh/vendor-completions/_vramlab fish/vendor_completions.d/vramlab.fish)
    if(NOT EXISTS ${PREFIX}/share/${file})
      message(FATAL_ERROR "share/${file} is not installed")
    endif()
  endforeach()
endif()
