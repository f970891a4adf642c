# SPDX-License-Identifier: BSL-1.0
# Configures, builds and runs the suite in a build of its own, and where the sanitizer cannot run, without it:
#   cmake -DSOURCE= -DBINARY= -DGENERATOR= -DCORES= -P nested.cmake -- <options for cmake>...
cmake_minimum_required(VERSION 3.22)
include("${CMAKE_CURRENT_LIST_DIR}/behind_dashes.cmake")
set(options ${behind_dashes})
set(sanitizer "")
foreach(option IN LISTS options)
  if(option MATCHES "^-DVARVE_SANITIZE=(.*)")
    set(sanitizer "${CMAKE_MATCH_1}")
  elseif(option MATCHES "^-DCMAKE_CXX_COMPILER=(.*)")
    set(compiler "${CMAKE_MATCH_1}")
  endif()
endforeach()

set(wrap "")
set(cannot "") # why the sanitizer was left out, if it was
if(sanitizer)
  # Sanitizers want the address space as it was when they were written: without randomization, where that may be
  # switched off.
  execute_process(COMMAND setarch -R true RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  if(NOT failed)
    set(wrap setarch -R)
  endif()
  file(CONFIGURE OUTPUT "${BINARY}/probe.cpp" CONTENT "int main() {}\n")
  execute_process(COMMAND "${compiler}" -fsanitize=${sanitizer} "${BINARY}/probe.cpp" -o "${BINARY}/probe"
      RESULT_VARIABLE failed OUTPUT_VARIABLE log
                  ERROR_VARIABLE log)
  foreach(try RANGE 20) # where it may not, some runs go well
    if(NOT failed)
      execute_process(COMMAND ${wrap} "${BINARY}/probe" RESULT_VARIABLE failed OUTPUT_VARIABLE log ERROR_VARIABLE log)
    endif()
  endforeach()
  if(failed)
    set(cannot "${failed} ${log}")
    list(APPEND options -DVARVE_SANITIZE=)
  endif()
endif()

# Silent unless a step fails; then without the lines that only tell of progress.
function(step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE failed OUTPUT_VARIABLE log ERROR_VARIABLE log)
  if(failed)
    string(REGEX REPLACE "(^|\n)\\[[0-9]+/[0-9]+\\] (Building|Linking|Re-checking)[^\n]*" "" log "${log}")
    message("${log}")
    message(FATAL_ERROR " failed: ${ARGN}")
  endif()
endfunction()
step(${CMAKE_COMMAND} -S "${SOURCE}" -B "${BINARY}" -G "${GENERATOR}" ${options})
step(${CMAKE_COMMAND} --build "${BINARY}" --parallel ${CORES})
step(${wrap} ${CMAKE_CTEST_COMMAND} --test-dir "${BINARY}" --output-on-failure --no-tests=error -j ${CORES})
if(cannot) # ctest tells it as skipped; the suite has passed without
  message("varve: cannot run here: an empty program under -fsanitize=${sanitizer}\n${cannot}")
endif()
