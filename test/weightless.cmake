# SPDX-License-Identifier: BSL-1.0
# A program that only includes the library contains no operator: cmake -DSCRATCH=<folder> -P weightless.cmake --
# <compiler> <flags>...
# One call in a header that is not in a template, or does not depend on its parameters, puts the rules and kernels of
# its operator, and of
# those that they call, into every unit of every user.
cmake_minimum_required(VERSION 3.22)
include("${CMAKE_CURRENT_LIST_DIR}/behind_dashes.cmake")
set(compile ${behind_dashes})

# operators_of(<variable> <text of a unit>): what operators registered themselves in its assembly, by mangled name
function(operators_of variable text)
  file(WRITE "${SCRATCH}/unit.cpp" "${text}")
  execute_process(COMMAND ${compile} -O0 -S "${SCRATCH}/unit.cpp" -o "${SCRATCH}/unit.s" RESULT_VARIABLE failed
      ERROR_VARIABLE message)
  if(failed)
    message(FATAL_ERROR "${message}")
  endif()
  file(STRINGS "${SCRATCH}/unit.s" found REGEX "varve6detail(12registration|6erased|16known_from_start|11fake_memory)")
  set(${variable} "${found}" PARENT_SCOPE)
endfunction()

operators_of(found "#include <varve/varve.hpp>\n")
if(found)
  list(LENGTH found n)
  list(GET found 0 first)
  message(FATAL_ERROR
      " a unit that only includes <varve/varve.hpp> names operators in ${n} lines of its assembly, the first of them\n ${first}")
endif()
operators_of(found "#include <varve/indexing.hpp>\n#include <varve/linalg.hpp>\n#include <varve/nn.hpp>\n#include <varve/optim.hpp>\n#include <varve/random.hpp>\n#include <varve/sorting.hpp>
#include <varve/special.hpp>\n")
if(found)
  list(GET found 0 first)
  message(FATAL_ERROR " a unit that only includes the families beside the umbrella names operators:\n ${first}")
endif()
operators_of(found "#define VARVE_COMPILED 1\n#include <varve/aot.hpp>\n#include <varve/export.hpp>\n#include <varve/fake.hpp>
#include <varve/functional.hpp>\n#include <varve/sparse.hpp>\n")
if(found)
  list(GET found 0 first)
  message(FATAL_ERROR " a unit of the library form that only includes traces, exports and fakes compiles them:\n ${first}")
endif()
operators_of(found "#include <varve/varve.hpp>\nvarve::tensor f(varve::tensor const& x) { return varve::sin(x); }\n")
if(NOT found)
  message(FATAL_ERROR " a unit that calls an operator shows none, so this check proves nothing")
endif()
