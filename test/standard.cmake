# SPDX-License-Identifier: BSL-1.0
# An older standard is refused in one sentence, and a program's own switches are read: cmake -DSCRATCH=<folder> -P standard.cmake -- <compiler> <flags>...
cmake_minimum_required(VERSION 3.22)
include("${CMAKE_CURRENT_LIST_DIR}/behind_dashes.cmake")
set(compile ${behind_dashes})
list(FILTER compile EXCLUDE REGEX "^-std=")
foreach(header varve/varve.hpp varve/transform/grad.hpp)
  file(WRITE "${SCRATCH}/standard.cpp" "#include <${header}>\nint main() {}\n")
  execute_process(COMMAND ${compile} -std=c++17 -fsyntax-only "${SCRATCH}/standard.cpp" RESULT_VARIABLE failed
      ERROR_VARIABLE message)
  if(NOT failed)
    message(FATAL_ERROR " ${header}: compiled as C++17")
  endif()
  string(REGEX REPLACE "[^\n]" "" lines "${message}")
  string(LENGTH "${lines}" lines)
  if(NOT message MATCHES "varve needs C\\+\\+20: compile with -std=c\\+\\+20" OR lines GREATER 25)
    message("${message}")
    message(FATAL_ERROR " ${header}: as C++17 the message is not the one sentence, or has ${lines} lines")
  endif()
endforeach()

file(WRITE "${SCRATCH}/user/varve_user_config.hpp" "#define VARVE_USE_OPENMP 0\n#define the_users_own_switch 1\n")
file(WRITE "${SCRATCH}/user.cpp" "#include <varve/config.hpp>\n#if !the_users_own_switch || VARVE_HAS_OPENMP()\n#error no\n#endif\n")
execute_process(COMMAND ${behind_dashes} "-I${SCRATCH}/user" -fsyntax-only "${SCRATCH}/user.cpp" RESULT_VARIABLE failed
    ERROR_VARIABLE message)
if(failed)
  message("${message}")
  message(FATAL_ERROR " varve_user_config.hpp was not read")
endif()
