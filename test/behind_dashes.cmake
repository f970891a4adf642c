# SPDX-License-Identifier: BSL-1.0
# behind_dashes: the arguments of `cmake -P script -- <arguments>...`, as a list.
set(behind_dashes "")
set(mine FALSE)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE ${last})
  if(mine)
    list(APPEND behind_dashes "${CMAKE_ARGV${i}}")
  elseif("${CMAKE_ARGV${i}}" STREQUAL "--")
    set(mine TRUE)
  endif()
endforeach()
