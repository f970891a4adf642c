# SPDX-License-Identifier: BSL-1.0
# The single header where there is no Boost: a program compiles and runs, and what Boost would be needed for says so.
#   cmake -DROOT=<repository> -DSCRATCH=<folder> -P without_boost.cmake -- <compiler> <flags>...
cmake_minimum_required(VERSION 3.22)
include("${CMAKE_CURRENT_LIST_DIR}/behind_dashes.cmake")
list(POP_FRONT behind_dashes compiler)
set(flags -nostdinc -nostdinc++)
foreach(flag IN LISTS behind_dashes) # no other way to Boost
  if(flag MATCHES "^-(std|fconstexpr|W|O)")
    list(APPEND flags "${flag}")
  endif()
endforeach()

# The compiler's own folders, those with Boost replaced by folders of links to all else.
execute_process(COMMAND "${compiler}" -v -E -x c++ /dev/null OUTPUT_QUIET ERROR_VARIABLE told)
string(REGEX MATCH "#include <\\.\\.\\.> search starts here:\n(.*)\nEnd of search list" found "${told}")
if(NOT found)
  message(FATAL_ERROR " ${compiler} does not say where it looks for headers")
endif()
string(REPLACE "\n" ";" directories "${CMAKE_MATCH_1}")
set(number 0)
foreach(directory IN LISTS directories)
  string(STRIP "${directory}" directory)
  if(IS_DIRECTORY "${directory}/boost")
    math(EXPR number "${number} + 1")
    set(links "${SCRATCH}/without${number}")
    file(REMOVE_RECURSE "${links}")
    file(MAKE_DIRECTORY "${links}")
    file(GLOB entries RELATIVE "${directory}" "${directory}/*")
    list(REMOVE_ITEM entries boost)
    foreach(entry IN LISTS entries)
      file(CREATE_LINK "${directory}/${entry}" "${links}/${entry}" SYMBOLIC)
    endforeach()
    set(directory "${links}")
  endif()
  list(APPEND flags -isystem "${directory}")
endforeach()

execute_process(COMMAND ${CMAKE_COMMAND} "-DROOT=${ROOT}/include" -DIN=varve/varve.hpp
    "-DOUT=${SCRATCH}/single/varve/varve.hpp" -P "${ROOT}/single_include/amalgamate.cmake" COMMAND_ERROR_IS_FATAL ANY)
list(APPEND flags "-I${SCRATCH}/single")
file(WRITE "${SCRATCH}/program.cpp" [==[
#if __has_include(<boost/hana.hpp>) || __has_include(<boost/version.hpp>)
#error Boost is here, so that this test proves nothing
#endif
#include <varve/varve.hpp>
#include <cstdio>
namespace vv = varve;
int main() {
  auto const f = [](auto const& x) { return vv::sum(vv::sin(x) * x); };
#ifdef FAIL
  vv::grad([](auto const& x) {
    (void)vv::stack_of<decltype(x)>;
    return x * x;
  })(2.0);
#endif
  vv::tensor const t = vv::grad(f)(vv::tensor({1.0, 2.0}));
  std::printf("%.4f %.4f\n", double(vv::grad(f)(vv::array<double, 2>{1, 2})[1]), t[1].item());
}
]==])
execute_process(COMMAND "${compiler}" ${flags} -O0 "${SCRATCH}/program.cpp" -o "${SCRATCH}/program" -lstdc++ -lm -ldl
    -pthread RESULT_VARIABLE failed ERROR_VARIABLE message)
if(failed)
  message("${message}")
  message(FATAL_ERROR " the single header does not compile without Boost")
endif()
execute_process(COMMAND "${SCRATCH}/program" OUTPUT_VARIABLE out RESULT_VARIABLE end)
if(NOT out STREQUAL "0.0770 0.0770\n" OR NOT end EQUAL 0)
  message(FATAL_ERROR " without Boost the program ended by ${end} and wrote ${out}")
endif()
execute_process(COMMAND "${compiler}" ${flags} -DFAIL -fsyntax-only "${SCRATCH}/program.cpp" RESULT_VARIABLE failed
    ERROR_VARIABLE message)
if(NOT failed OR NOT message MATCHES "stack_of gives a tuple of Boost.Hana, which is not here: install Boost")
  message("${message}")
  message(FATAL_ERROR " without Boost stack_of does not say what it lacks")
endif()
