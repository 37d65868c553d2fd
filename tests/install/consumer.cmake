# A project that uses every component, and a plugin of its own.
include(${SOURCE}/steps.cmake)
build_and_test(${SOURCE}/consumer)
