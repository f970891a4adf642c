# SPDX-License-Identifier: BSL-1.0
# Each header of a list alone, included twice: cmake "-DHEADERS=<header>;..." -DSCRATCH=<folder> -P headers.cmake --
# <compiler> <flags>...
cmake_minimum_required(VERSION 3.22)
include("${CMAKE_CURRENT_LIST_DIR}/behind_dashes.cmake")
set(compile ${behind_dashes})

set(bad "")
foreach(header IN LISTS HEADERS)
  get_filename_component(name "${header}" NAME_WE)
  file(CONFIGURE OUTPUT "${SCRATCH}/${name}.cpp" CONTENT "#include \"${header}\"\n#include \"${header}\"\n")
  execute_process(COMMAND ${compile} -Wall -Wextra -Wpedantic -Werror -fsyntax-only "${SCRATCH}/${name}.cpp"
      RESULT_VARIABLE failed
                  ERROR_VARIABLE message)
  if(failed AND message MATCHES "error: [^\n]*varve/[a-z_/]+[.]hpp needs <[a-z./]+>")
    continue() # asks for what this machine has not
  endif()
  if(failed)
    message("${message}")
    string(APPEND bad " ${header} does not compile by itself\n")
  endif()
endforeach()
if(bad)
  message(FATAL_ERROR "${bad}")
endif()
