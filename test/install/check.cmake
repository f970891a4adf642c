# SPDX-License-Identifier: BSL-1.0
# One step of the consumer tests: cmake -DSTEP=<step> -DSOURCE= -DBUILD= -DSCRATCH= -DGENERATOR= -DCOMPILER= -DCACHE= -P
# check.cmake
#   prefix            installs, then moves the tree: what is installed may not know where it was put
#   find_package, add_subdirectory, pkg-config    build and run main.cpp, each its own way
#   without_compiled, compiled    the component that is not there, and that is; then a program of both forms
# named directories that the user names go before packages; one that is too old stops in one line with the remedy
cmake_minimum_required(VERSION 3.22)
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE failed OUTPUT_VARIABLE log ERROR_VARIABLE log)
  if(failed)
    message("${log}")
    message(FATAL_ERROR " failed: ${ARGN}")
  endif()
  set(log "${log}" PARENT_SCOPE)
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
# must_fail(<text> <command>...): the command must fail, and say this.
function(must_fail text)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE failed OUTPUT_VARIABLE log ERROR_VARIABLE log)
  string(FIND "${log}" "${text}" at)
  if(NOT failed OR at EQUAL -1)
    message(FATAL_ERROR "did not fail with '${text}': ${ARGN}\n${log}")
  endif()
endfunction()
# must_be_precompiled(<build>): varve::pch has had an effect.
function(must_be_precompiled directory)
  file(GLOB_RECURSE found "${directory}/CMakeFiles/consumer.dir/cmake_pch.hxx.[gp]ch")
  if(NOT found)
    message(FATAL_ERROR "varve::pch has precompiled nothing in ${directory}")
  endif()
endfunction()
set(consume ${CMAKE_COMMAND} -S "${here}" -G "${GENERATOR}" -C "${CACHE}" "-DCMAKE_CXX_COMPILER=${COMPILER}"
            -DVARVE_COMPONENTS=compiled)
if(STEP STREQUAL "without_compiled")
  must_fail("varve has no component compiled here: install it with -DVARVE_BUILD_COMPILED=ON" ${consume}
            -B "${build}" "-Dvarve_ROOT=${prefix}")
  return()
endif()
if(STEP STREQUAL "compiled")
  # Installed without a test, an example or a benchmark that was built.
  run(${CMAKE_COMMAND} -S "${SOURCE}" -B "${build}/library" -G "${GENERATOR}" -C "${CACHE}"
      "-DCMAKE_CXX_COMPILER=${COMPILER}" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O0 -DVARVE_BUILD_COMPILED=ON -DVARVE_BUILD_TESTS=OFF
      -DVARVE_BUILD_EXAMPLES=OFF -DVARVE_BUILD_BENCH=OFF)
  run(${CMAKE_COMMAND} --build "${build}/library" --parallel)
  run(${CMAKE_COMMAND} --install "${build}/library" --prefix "${build}/prefix")
  run(${consume} -B "${build}/consumer" "-Dvarve_ROOT=${build}/prefix" -DCMAKE_BUILD_TYPE=Debug -DVARVE_PRECOMPILED=ON)
  if(log MATCHES "no CMAKE_BUILD_TYPE")
    message(FATAL_ERROR "a build of type Debug is told that it has no type:\n${log}")
  endif()
  run(${CMAKE_COMMAND} --build "${build}/consumer")
  must_be_precompiled("${build}/consumer")
  run("${build}/consumer/consumer")
  must_fail("units_of_headers_only_beside_units_of_the_compiled_library" ${CMAKE_COMMAND} --build "${build}/consumer"
            --target mixed)
  return()
endif()
if(STEP STREQUAL "named")
  file(WRITE "${build}/old/boost/version.hpp" "#define BOOST_VERSION 107300\n")
  file(WRITE "${build}/old/xsimd/config/xsimd_config.hpp"
      "#define XSIMD_VERSION_MAJOR 7\n#define XSIMD_VERSION_MINOR 6\n#define XSIMD_VERSION_PATCH 0\n")
  list(APPEND consume -B "${build}/build" "-DVARVE_SOURCE=${SOURCE}")
  must_fail(" varve needs xsimd >= 8.1: apt install libxsimd-dev (brew install xsimd)\n" ${consume} -DVARVE_XSIMD=ON
            "-DVARVE_XSIMD_INCLUDE_DIR=${build}/old")
  must_fail(" varve needs Boost.Hana >= 1.74: apt install libboost-dev (brew install boost)\n" ${consume}
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
  # Folders below the prefix at other depths, and absolute ones, which Nix and Guix choose.
  set(includes lib/include "${build}/apart/include" include)
  set(datas lib/a/share share "${build}/apart/share")
  foreach(include data IN ZIP_LISTS includes datas)
    file(REMOVE_RECURSE "${build}/tree" "${build}/apart")
    run(${CMAKE_COMMAND} -S "${SOURCE}" -B "${build}/tree" -G "${GENERATOR}" -C "${CACHE}"
        "-DCMAKE_CXX_COMPILER=${COMPILER}" -DVARVE_BUILD_TESTS=OFF -DVARVE_BUILD_EXAMPLES=OFF -DVARVE_BUILD_BENCH=OFF
        "-DCMAKE_INSTALL_PREFIX=${build}/tree/prefix" "-DCMAKE_INSTALL_INCLUDEDIR=${include}"
        "-DCMAKE_INSTALL_DATADIR=${data}")
    run(${CMAKE_COMMAND} --install "${build}/tree")
    file(REAL_PATH "${data}" packages BASE_DIRECTORY "${build}/tree/prefix")
    set(ENV{PKG_CONFIG_PATH} "${packages}/pkgconfig")
    execute_process(COMMAND "${PKG_CONFIG}" --variable=includedir varve OUTPUT_VARIABLE found
        OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    if(NOT EXISTS "${found}/varve/varve.hpp")
      message(FATAL_ERROR "varve.pc in ${packages}/pkgconfig says that headers are in ${found}")
    endif()
  endforeach()
else()
  set(how "-Dvarve_ROOT=${prefix}")
  if(STEP STREQUAL "add_subdirectory")
    # a user's warnings are about the user's code
    set(how "-DVARVE_SOURCE=${SOURCE}" -DVARVE_PRECOMPILED=ON
            "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Werror")
  endif()
  run(${CMAKE_COMMAND} -S "${here}" -B "${build}" -G "${GENERATOR}" -C "${CACHE}" "-DCMAKE_CXX_COMPILER=${COMPILER}"
      ${how})
  if(NOT log MATCHES "this build has no CMAKE_BUILD_TYPE")
    message(FATAL_ERROR "a build without a type is not told so:\n${log}")
  endif()
  run(${CMAKE_COMMAND} --build "${build}")
  if(STEP STREQUAL "add_subdirectory")
    must_be_precompiled("${build}")
    execute_process(COMMAND ${CMAKE_COMMAND} --build "${build}" --target help OUTPUT_VARIABLE targets)
    if(targets MATCHES "Nightly|Experimental")
      message(FATAL_ERROR " the user's project has targets of CTest")
    endif()
  endif()
endif()
run("${build}/consumer")
