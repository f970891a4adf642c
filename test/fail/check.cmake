# SPDX-License-Identifier: BSL-1.0
# A unit that must not compile:
#   cmake -DFILE=<unit> -DCOMPILER=<name> [-DPRECOMPILED=<header>] -DCONTROL=ON|OFF -DMAX=<lines> -P check.cmake --
#     <compiler> <flags>...
# The unit must compile as it is (the control, if ON), and must not with -DFAIL. Each line `// expect: <regex>` must match the
# message; `// expect(gcc): ` and `// expect(clang): ` are for one compiler. The message may not be longer than MAX
# lines; quoted source, and how the headers include each other, aside. A precompiled header saves most of the time: a
# message that is found wanting with it is judged without it.
cmake_minimum_required(VERSION 3.22)
include("${CMAKE_CURRENT_LIST_DIR}/../behind_dashes.cmake")
set(compile ${behind_dashes})
list(APPEND compile -fsyntax-only "${FILE}")
set(first "")
if(PRECOMPILED)
  set(first -include "${PRECOMPILED}")
endif()

# What compilers and programs print is shown as it is; the text of an error would be wrapped.
function(fail text)
  if(message)
    message("${message}")
  endif()
  message(FATAL_ERROR " ${text}")
endfunction()

# wanting(<result> <message>): what the message lacks, or nothing.
function(wanting result message)
  # Not as a CMake list: a regex may hold `;` and single brackets.
  file(READ "${FILE}" rest)
  string(PREPEND rest "\n")
  set(expected 0)
  while("${rest}" MATCHES "\n// expect(\\([a-z]+\\))?: ([^\n]*)(.*)$")
    set(only "${CMAKE_MATCH_1}")
    set(regex "${CMAKE_MATCH_2}")
    set(rest "${CMAKE_MATCH_3}")
    string(REGEX REPLACE "[()]" "" only "${only}")
    if(only AND NOT COMPILER MATCHES "^${only}")
      continue()
    endif()
    math(EXPR expected "${expected} + 1")
    if(NOT "${message}" MATCHES "${regex}")
      set(${result} "nothing in the message matches: ${regex}" PARENT_SCOPE)
      return()
    endif()
  endwhile()
  set(${result} "" PARENT_SCOPE)
  if(expected EQUAL 0)
    set(${result} "no line `// expect: <regex>` says what the message should be" PARENT_SCOPE)
    return()
  endif()

  # quoted source does not count: g++ 14 repeats it at every step
  string(REGEX REPLACE "\n +[0-9]* *\\|[^\n]*" "" lines "${message}")
  # ... and clang before 19 shows it without a margin: a line, and one of a caret below it
  string(REGEX REPLACE "\n[^\n]*\n *[~^][~^ ]*" "" lines "${lines}")
  string(REGEX REPLACE "(In file included|                ) from [^\n]*\n" "" lines "${lines}")
  string(REGEX REPLACE "[^\n]" "" lines "${lines}")
  string(LENGTH "${lines}" lines)
  if(lines GREATER MAX)
    set(${result} "${lines} lines of message, more than ${MAX}" PARENT_SCOPE)
  endif()
endfunction()

if(CONTROL)
  execute_process(COMMAND ${compile} ${first} RESULT_VARIABLE failed ERROR_VARIABLE message)
  if(failed)
    fail("the control does not compile")
  endif()
endif()
execute_process(COMMAND ${compile} ${first} -DFAIL RESULT_VARIABLE failed ERROR_VARIABLE message)
wanting(lacks "${message}")
if(PRECOMPILED AND (lacks OR NOT failed))
  execute_process(COMMAND ${compile} -DFAIL RESULT_VARIABLE failed ERROR_VARIABLE message)
  wanting(lacks "${message}")
endif()
if(NOT failed)
  fail("compiled with -DFAIL, but must not")
endif()
if(lacks)
  fail("${lacks}")
endif()
