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
