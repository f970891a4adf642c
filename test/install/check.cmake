# SPDX-License-Identifier: BSL-1.0
# One step of the consumer tests: cmake -DSTEP=<step> -DSOURCE= -DBUILD= -DSCRATCH= -DGENERATOR= -DCOMPILER= -DCACHE= -P
# check.cmake
#   prefix            installs, then moves the tree: what is installed may not know where it was put
#   find_package, add_subdirectory, pkg-config    build and run main.cpp, each its own way
# named directories that the user names go before packages; one that is too old stops in one line with the remedy
cmake_minimum_required(VERSION 3.22)
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE failed OUTPUT_VARIABLE log ERROR_VARIABLE log)
  if(failed)
    message("${log}")
    message(FATAL_ERROR " failed: ${ARGN}")
  endif()
endfunction()
set(here "${CMAKE_CURRENT_LIST_DIR}")
set(prefix "${SCRATCH}/prefix")

if(STEP STREQUAL "prefix")
  file(REMOVE_RECURSE "${SCRATCH}")
  run(${CMAKE_COMMAND} --install "${BUILD}" --prefix "${SCRATCH}/first")
  file(RENAME "${SCRATCH}/first" "${prefix}")
  # Complete, and nothing else: the same headers, and no path of the build in the package files.
  file(GLOB_RECURSE wanted RELATIVE "${SOURCE}/include" "${SOURCE}/include/*.hpp")
  file(GLOB_RECURSE found RELATIVE "${prefix}/include" "${prefix}/include/*")
  if(NOT "${wanted}" STREQUAL "${found}")
    message(FATAL_ERROR "installed headers:\n${found}\ninstead of:\n${wanted}")
  endif()
  file(GLOB_RECURSE files "${prefix}/share/*")
  foreach(file IN LISTS files)
    file(READ "${file}" text)
    foreach(path "${SOURCE}" "${BUILD}" "${SCRATCH}")
      string(FIND "${text}" "${path}/" at)
      if(NOT at EQUAL -1)
        message(FATAL_ERROR "${file} holds a path of the build: ${path}")
      endif()
    endforeach()
  endforeach()
  return()
endif()

set(build "${SCRATCH}/${STEP}")
file(REMOVE_RECURSE "${build}")
if(STEP STREQUAL "named")
  file(WRITE "${build}/old/boost/version.hpp" "#define BOOST_VERSION 107300\n")
  file(WRITE "${build}/old/xsimd/config/xsimd_config.hpp"
      "#define XSIMD_VERSION_MAJOR 7\n#define XSIMD_VERSION_MINOR 6\n#define XSIMD_VERSION_PATCH 0\n")
  # refused(<line> <option>...): configuration must stop with this line.
  function(refused line)
    execute_process(COMMAND ${CMAKE_COMMAND} -S "${here}" -B "${build}/build" -G "${GENERATOR}" -C "${CACHE}"
        "-DCMAKE_CXX_COMPILER=${COMPILER}"
                            "-DVARVE_SOURCE=${SOURCE}" ${ARGN} RESULT_VARIABLE failed OUTPUT_VARIABLE log
                                ERROR_VARIABLE log)
    string(FIND "${log}" " ${line}\n" at)
    if(NOT failed OR at EQUAL -1)
      message(FATAL_ERROR "not refused with '${line}': ${ARGN}\n${log}")
    endif()
  endfunction()
  refused("varve needs xsimd >= 8.1: apt install libxsimd-dev (brew install xsimd)" -DVARVE_XSIMD=ON
      "-DVARVE_XSIMD_INCLUDE_DIR=${build}/old")
  refused("varve needs Boost.Hana >= 1.74: apt install libboost-dev (brew install boost)"
      "-DVARVE_BOOST_INCLUDE_DIR=${build}/old")
  return()
endif()
if(STEP STREQUAL "pkg-config")
  file(MAKE_DIRECTORY "${build}")
  set(ENV{PKG_CONFIG_PATH} "${prefix}/share/pkgconfig:$ENV{PKG_CONFIG_PATH}")
  execute_process(COMMAND "${PKG_CONFIG}" --cflags varve OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE
      COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  run("${COMPILER}" -std=c++20 ${flags} "${here}/main.cpp" -o "${build}/consumer")
else()
  set(how "-Dvarve_ROOT=${prefix}")
  if(STEP STREQUAL "add_subdirectory")
    set(how "-DVARVE_SOURCE=${SOURCE}")
  endif()
  run(${CMAKE_COMMAND} -S "${here}" -B "${build}" -G "${GENERATOR}" -C "${CACHE}" "-DCMAKE_CXX_COMPILER=${COMPILER}"
      "${how}")
  run(${CMAKE_COMMAND} --build "${build}")
endif()
run("${build}/consumer")
