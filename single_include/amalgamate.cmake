# SPDX-License-Identifier: BSL-1.0
# Writes the single header, or checks that it is the one the headers would give:
#   cmake -DROOT=include -DIN=varve/varve.hpp -DOUT=<file> [-DCHECK=ON] -P amalgamate.cmake
# Every header of varve is put where it is first included. Nothing of the time or the place of the run enters the
# output, so that it can be compared byte for byte.
cmake_minimum_required(VERSION 3.22)
file(REAL_PATH "${ROOT}" ROOT)
set_property(GLOBAL PROPERTY seen "") # files and system headers that already stand in the output

# Appends the expansion of `path` to the global property `text`: to a variable of millions of characters each line would
# be appended by copying all before it. What is read is walked with FIND and SUBSTRING: CMake lists would swallow `;`,
# `[` and backslashes.
function(expand path)
  file(REAL_PATH "${path}" path)
  get_property(seen GLOBAL PROPERTY seen)
  if(path IN_LIST seen)
    return()
  endif()
  set_property(GLOBAL APPEND PROPERTY seen "${path}")
  file(RELATIVE_PATH name "${ROOT}" "${path}")
  get_filename_component(dir "${path}" DIRECTORY)
  file(READ "${path}" rest)

  set(text "")
  set(fresh TRUE) # the last line written belongs to another file: say whose text follows
  set(dropped TRUE) # the line before was left out: so are the empty lines after it
  set(depth 0) # of #if
  set(number 0)
  while(NOT rest STREQUAL "")
    math(EXPR number "${number} + 1")
    string(FIND "${rest}" "\n" end)
    if(end EQUAL -1)
      message(FATAL_ERROR " ${name}: the last line has no end of line")
    endif()
    string(SUBSTRING "${rest}" 0 ${end} line)
    math(EXPR end "${end} + 1")
    string(SUBSTRING "${rest}" ${end} -1 rest)

    if("${line}" MATCHES "^[ \t]*#[ \t]*(pragma[ \t]+once|if|endif|include)")
      if("${line}" MATCHES "^[ \t]*#[ \t]*pragma[ \t]+once")
        set(dropped TRUE)
        continue()
      elseif("${line}" MATCHES "^[ \t]*#[ \t]*if")
        math(EXPR depth "${depth} + 1")
      elseif("${line}" MATCHES "^[ \t]*#[ \t]*endif")
        math(EXPR depth "${depth} - 1")
      elseif("${line}" MATCHES "^[ \t]*#[ \t]*include[ \t]*(<varve/|\")([^>\"]+)[>\"]")
        if(CMAKE_MATCH_1 STREQUAL "\"")
          set(next "${dir}/${CMAKE_MATCH_2}")
        else()
          set(next "${ROOT}/varve/${CMAKE_MATCH_2}")
        endif()
        if(NOT EXISTS "${next}")
          message(FATAL_ERROR " ${name}:${number}: no such header: ${line}")
        endif()
        file(REAL_PATH "${next}" next)
        get_property(seen GLOBAL PROPERTY seen)
        if(next IN_LIST seen)
          set(dropped TRUE)
          continue()
        elseif(depth GREATER 0)
          # Its text would be there for one branch only, and lost to all who include it later.
          message(FATAL_ERROR
              " ${name}:${number}: an #include of varve may not stand inside #if: put the #if into that header")
        endif()
        set_property(GLOBAL APPEND_STRING PROPERTY text "${text}")
        set(text "")
        expand("${next}")
        set(fresh TRUE)
        set(dropped TRUE)
        continue()
      elseif(depth EQUAL 0 AND "${line}" MATCHES "^#[ \t]*include[ \t]*<([^>]+)>[ \t]*$")
        get_property(seen GLOBAL PROPERTY seen)
        if("<${CMAKE_MATCH_1}>" IN_LIST seen)
          set(dropped TRUE)
          continue()
        endif()
        set_property(GLOBAL APPEND PROPERTY seen "<${CMAKE_MATCH_1}>")
      endif()
    elseif(number EQUAL 1 AND "${line}" MATCHES "^// SPDX-License-Identifier:")
      set(dropped TRUE) # stands once, at the head
      continue()
    endif()

    if("${line}" STREQUAL "")
      if(dropped)
        continue()
      endif()
    elseif(fresh)
      string(APPEND text "\n// ---- ${name}\n")
      set(fresh FALSE)
    endif()
    set(dropped FALSE)
    string(APPEND text "${line}\n")
  endwhile()
  if(NOT depth EQUAL 0)
    message(FATAL_ERROR " ${name}: #if without #endif")
  endif()
  set_property(GLOBAL APPEND_STRING PROPERTY text "${text}")
endfunction()

set_property(GLOBAL PROPERTY text "// SPDX-License-Identifier: BSL-1.0
// varve in one file. Written by single_include/amalgamate.cmake from include/varve: do not edit.
#pragma once
")
expand("${ROOT}/${IN}")
get_property(text GLOBAL PROPERTY text)

set(old "")
if(EXISTS "${OUT}")
  file(READ "${OUT}" old)
endif()
if("${old}" STREQUAL "${text}")
  return()
elseif(CHECK)
  message(FATAL_ERROR " the single header is stale; write it anew: cmake --build <build> --target single_header")
endif()
file(WRITE "${OUT}" "${text}")
