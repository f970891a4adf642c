# SPDX-License-Identifier: BSL-1.0
# The module, and a program that imports it:  cmake -DSOURCE= -DSCRATCH= -P check.cmake -- <clang++> <flags>...
cmake_minimum_required(VERSION 3.22)
include("${CMAKE_CURRENT_LIST_DIR}/../behind_dashes.cmake")
file(MAKE_DIRECTORY "${SCRATCH}")
# xsimd's functions are static in the headers of the compiler, which an importing unit does not see (clang 19).
set(flags ${behind_dashes} -UVARVE_USE_XSIMD -DVARVE_USE_XSIMD=0)
function(run)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY "${SCRATCH}" RESULT_VARIABLE failed OUTPUT_VARIABLE output
      ERROR_VARIABLE error)
  if(failed)
    message("${output}${error}")
    message(FATAL_ERROR " failed: ${ARGN}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()
run(${flags} --precompile "${SOURCE}/src/varve.cppm" -o varve.pcm)
run(${flags} -fmodule-file=varve=varve.pcm -c "${CMAKE_CURRENT_LIST_DIR}/main.cpp" -o main.o)
run(${flags} -c varve.pcm -o varve.o)
run(${flags} main.o varve.o -o program)
run("${SCRATCH}/program")
if(NOT output STREQUAL "tensor([1.381773291, 0.07700375373], dtype=float64)\n27\n")
  message(FATAL_ERROR " the program that imports varve printed: ${output}")
endif()
