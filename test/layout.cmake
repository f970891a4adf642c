# SPDX-License-Identifier: BSL-1.0
# The promises of the tree:  cmake -DROOT=<repository> -P layout.cmake
# - a header has a doc comment; macros are defined in config.hpp only
# - what is written by hand has lines of at most 120 columns: headers, sources, and the prose of documents
# - the umbrella header reaches every header
# - includes point downwards, in the order of `layers`
cmake_minimum_required(VERSION 3.22)

# From the bottom up. A header may include its own layer and those before it.
set(layers core shape value kernel dispatch rule op composite special sorting indexing linalg random nn masked signal complex fft interpreter mode graph pass plan emit block transform trace hop
    loop custom
    fake functional fuse compile autograd aot export call optim io interop library)
# Open to every layer: macros and pure declarations.
set(open config.hpp fwd.hpp)
include(${CMAKE_CURRENT_LIST_DIR}/optional.cmake)
set(max_columns 120)

set(include "${ROOT}/include/varve")
set(bad "")
macro(complain text)
  string(APPEND bad " ${text}\n")
endmacro()

file(GLOB_RECURSE headers RELATIVE "${include}" "${include}/*.hpp")
list(REMOVE_ITEM headers varve.hpp)
foreach(header varve.hpp ${headers})
  if(NOT EXISTS "${include}/${header}")
    complain("${header}: missing")
    continue()
  endif()
  file(READ "${include}/${header}" text)
  if(NOT header STREQUAL "config.hpp" AND "\n${text}" MATCHES "\n[ \t]*#[ \t]*define[ \t]+([A-Za-z_0-9]+)")
    complain("${header}: defines the macro ${CMAKE_MATCH_1}; macros belong into config.hpp")
  endif()
  if(NOT text MATCHES "///")
    complain("${header}: no doc comment (///)")
  endif()
  if(NOT text MATCHES "^// SPDX-License-Identifier: BSL-1.0\n#pragma once\n")
    complain("${header}: does not begin with its licence line and #pragma once")
  endif()

  # What it includes of varve, as paths below include/varve.
  get_filename_component(folder "${header}" DIRECTORY)
  set(includes_${header} "")
  string(REGEX MATCHALL "\n[ \t]*#[ \t]*include[ \t]*(<varve/|\")[^>\"]+" hits "\n${text}")
  foreach(hit IN LISTS hits)
    if(hit MATCHES "<varve/(.*)")
      set(target "${CMAKE_MATCH_1}")
    elseif(hit MATCHES "\"(.*)")
      file(REAL_PATH "${include}/${folder}/${CMAKE_MATCH_1}" target)
      file(RELATIVE_PATH target "${include}" "${target}")
    endif()
    list(APPEND includes_${header} "${target}")
    if(NOT EXISTS "${include}/${target}")
      complain("${header}: includes ${target}, which is not there")
    endif()

    get_filename_component(below "${target}" DIRECTORY)
    list(FIND layers "${folder}" from)
    list(FIND layers "${below}" to)
    if(folder AND NOT target IN_LIST open AND (to EQUAL -1 OR to GREATER from))
      complain("${header}: includes ${target}, which lies above it")
    endif()
  endforeach()
  if(folder AND NOT folder IN_LIST layers)
    complain("${header}: ${folder} is no layer")
  endif()
endforeach()

# Reachable from the umbrella.
set(waiting varve.hpp)
set(reached "")
while(waiting)
  list(POP_FRONT waiting header)
  if(NOT header IN_LIST reached)
    list(APPEND reached "${header}")
    list(APPEND waiting ${includes_${header}})
  endif()
endwhile()
foreach(header IN LISTS headers)
  if(NOT header IN_LIST reached AND NOT header MATCHES "${optional_headers}")
    complain("${header}: not reached from varve.hpp")
  endif()
endforeach()

# Columns are characters: of UTF-8 the first byte of each counts. Tables and program text in documents cannot be broken;
# what a must-fail unit expects is one regular expression.
math(EXPR beyond "${max_columns} + 1")
string(REPEAT "." ${beyond} wide)
file(GLOB_RECURSE written RELATIVE "${ROOT}" "${ROOT}/include/*.hpp" "${ROOT}/test/*.[ch]pp" "${ROOT}/bench/*.[ch]pp"
     "${ROOT}/examples/*.[ch]pp" "${ROOT}/docs/*.md")
list(APPEND written README.md CONTRIBUTING.md CHANGELOG.md)
foreach(file IN LISTS written)
  file(STRINGS "${ROOT}/${file}" hits ENCODING UTF-8 REGEX "${wide}")
  foreach(hit IN LISTS hits)
    if(hit MATCHES "^// expect:|^#error|^\\|" OR (file MATCHES "[.]md$" AND hit MATCHES "^[a-z]+ .*//"))
      continue()
    endif()
    string(HEX "${hit}" bytes)
    string(REGEX REPLACE "(..)" "\\1;" bytes "${bytes}")
    list(FILTER bytes EXCLUDE REGEX "^[89ab]|^$")
    list(LENGTH bytes columns)
    if(columns GREATER max_columns)
      string(SUBSTRING "${hit}" 0 60 hit)
      complain("${file}: ${columns} columns, more than ${max_columns}: ${hit}")
    endif()
  endforeach()
endforeach()

if(bad)
  message(FATAL_ERROR "${bad}")
endif()
