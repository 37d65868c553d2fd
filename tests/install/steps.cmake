# What the scripts beside this one share.
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})

# Runs a command in WORK and fails with what it printed, unless it ends with `code`. Sets `out` to its output.
function(step code)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY ${WORK} RESULT_VARIABLE result OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT result EQUAL code)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\nended with ${result} instead of ${code}:\n${text}")
  endif()
  set(out "${text}" PARENT_SCOPE)
endfunction()

# Configures and builds the project in `source` with nothing but the prefix to find vramlab in, and runs its tests.
function(build_and_test source)
  step(0 ${CMAKE_COMMAND} -S ${source} -B ${WORK}/build -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${PREFIX}
    -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_CXX_FLAGS=${FLAGS} -DCMAKE_BUILD_TYPE=${BUILD_TYPE})
  step(0 ${CMAKE_COMMAND} --build ${WORK}/build)
  step(0 ${CMAKE_CTEST_COMMAND} --test-dir ${WORK}/build --output-on-failure)
endfunction()

function(expect text found)
  string(FIND "${found}" "${text}" place)
  if(place EQUAL -1)
    message(FATAL_ERROR "\"${text}\" is not in:\n${found}")
  endif()
endfunction()
