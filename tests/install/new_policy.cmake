# What `vramlab new-policy` writes builds and passes at once, and its policy can be compared.
include(${SOURCE}/steps.cmake)
step(0 ${PREFIX}/bin/vramlab new-policy two-steps --family tuner)
build_and_test(${WORK}/two-steps)
file(READ ${SOURCE}/../../docs/plugins.md document)
step(0 ${PREFIX}/bin/vramlab compare two-steps/scenario.json --plugin build/two-steps.so)
expect("${out}" "${document}")
step(0 ${PREFIX}/bin/vramlab policies two-steps --plugin build/two-steps.so)
expect("from plugin two-steps 0.1.0" "${out}")

# Nothing is overwritten, and what it cannot write it says.
step(2 ${PREFIX}/bin/vramlab new-policy two-steps)
expect("two-steps: is there already." "${out}")
step(2 ${PREFIX}/bin/vramlab new-policy aimd)
expect("there is a policy \"aimd\"" "${out}")
step(2 ${PREFIX}/bin/vramlab new-policy oracle)  # no plugin may add it
expect("there is a policy \"oracle\"" "${out}")
step(2 ${PREFIX}/bin/vramlab new-policy peak)  # `matrix` has a column of that name
expect("there is a policy \"peak\"" "${out}")
step(2 ${PREFIX}/bin/vramlab new-policy Two_Steps)
expect("is not a name for a policy" "${out}")
step(2 ${PREFIX}/bin/vramlab new-policy other --family composer)
expect("new-policy writes tuners only." "${out}")
step(2 ${PREFIX}/bin/vramlab new-policy other --family tuners)
expect("Known: tuner." "${out}")

# Names that are also the skeleton's, CMake's, or those of the headers.
foreach(name my-skeleton tuner test)
  step(0 ${PREFIX}/bin/vramlab new-policy ${name})
  file(REMOVE_RECURSE ${WORK}/build)
  build_and_test(${WORK}/${name})
endforeach()

# The rule that the document changes.
string(REGEX MATCH "\n *move\\(answer, question, [^;]*;" line "${document}")
file(READ ${WORK}/two-steps/two-steps.cpp text)
string(REGEX REPLACE "\n *move\\(answer, question, 1, [^\n]*" "${line}" text "${text}")
file(WRITE ${WORK}/two-steps/two-steps.cpp "${text}")
file(REMOVE_RECURSE ${WORK}/build)
step(0 ${CMAKE_COMMAND} -S ${WORK}/two-steps -B ${WORK}/build -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${PREFIX}
  -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_CXX_FLAGS=${FLAGS} -DCMAKE_BUILD_TYPE=${BUILD_TYPE})
step(0 ${CMAKE_COMMAND} --build ${WORK}/build)
step(0 ${PREFIX}/bin/vramlab compare two-steps/scenario.json --plugin build/two-steps.so)
expect("${out}" "${document}")
