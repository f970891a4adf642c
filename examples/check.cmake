# SPDX-License-Identifier: BSL-1.0
# Runs an example and looks for what its source promises:
#   cmake -DPROGRAM= -DFILE= -DSCRATCH= [-DLAUNCHER=] -P check.cmake
# Each line `// output: <regex>` must match what the program prints. Files it writes go to the scratch folder.
cmake_minimum_required(VERSION 3.22)
file(MAKE_DIRECTORY "${SCRATCH}")
execute_process(COMMAND ${LAUNCHER} "${PROGRAM}" WORKING_DIRECTORY "${SCRATCH}" RESULT_VARIABLE failed OUTPUT_VARIABLE output
    ERROR_VARIABLE error)
if(failed)
  message("${output}${error}")
  message(FATAL_ERROR " ended with ${failed}")
endif()
# Not as a CMake list: a regex may hold `;` and single brackets.
file(READ "${FILE}" rest)
string(PREPEND rest "\n")
if(NOT "${rest}" MATCHES "\n[ \t]*// output: ")
  message(FATAL_ERROR " no line `// output: <regex>` says what the program should print")
endif()
while("${rest}" MATCHES "\n[ \t]*// output: ([^\n]*)(.*)$")
  set(regex "${CMAKE_MATCH_1}")
  set(rest "${CMAKE_MATCH_2}")
  if(NOT "${output}" MATCHES "${regex}")
    message("${output}")
    message(FATAL_ERROR " nothing in the output matches: ${regex}")
  endif()
endwhile()
