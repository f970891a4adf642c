# SPDX-License-Identifier: BSL-1.0
# A program without exceptions: its errors go to a handler, or are printed and end it.
#   cmake -DSCRATCH=<folder> -P no_exceptions.cmake -- <compiler> <flags>...
cmake_minimum_required(VERSION 3.22)
include("${CMAKE_CURRENT_LIST_DIR}/behind_dashes.cmake")
set(compile ${behind_dashes} -fno-exceptions -O0)
file(WRITE "${SCRATCH}/program.cpp" [==[
#include <varve/varve.hpp>
#include <varve/aot.hpp>
#include <varve/export.hpp>
#include <varve/fake.hpp>
#include <varve/io/npz.hpp>
#include <varve/linalg.hpp>
#include <varve/mode/all.hpp>
#include <varve/nn.hpp>
#include <varve/optim.hpp>
#include <cstring>
namespace vv = varve;
int main(int, char** arguments) {
  auto const is = [&](char const* word) { return std::strcmp(arguments[1], word) == 0; };
  if (is("handler"))
    vv::set_error_handler([](std::exception const& e) {
      std::printf("told: %s\n", e.what());
      std::exit(3);
    });
  if (is("returns"))
    vv::set_error_handler([](std::exception const&) {
      std::puts("told");
      std::fflush(stdout);
    });
  if (is("reset")) vv::set_error_handler(vv::set_error_handler([](std::exception const&) { std::exit(9); }));
  auto const f = [](auto const& x) { return vv::sum(vv::matmul(x, x.t())); };
  vv::tensor const t = vv::grad(f)(vv::tensor({{1.0, 2.0}, {3.0, 4.0}}));
  vv::tensor w = vv::ones({2, 2}, vv::dtype::float64); // a checkpoint ends early by an exception where there are some
  w.requires_grad_();
  vv::checkpoint([](vv::tensor const& w) { return vv::sum(vv::tanh(w) * vv::tanh(w)); }, w).backward();
  vv::tensor const inner = vv::cond(
      vv::sum(t) > 0, [](vv::tensor const& x) { return vv::mul_(x.clone(), 2.0); }, [](vv::tensor const& x) { return x; }, t);
  std::printf("%g %d %g\n", t[0][0].item(), w.grad().defined(), inner[0][0].item());
  std::fflush(stdout);
  vv::matmul(t, vv::ones({3}));
  std::puts("went on after an error");
}
]==])
execute_process(COMMAND ${compile} "${SCRATCH}/program.cpp" -o "${SCRATCH}/program" -ldl -pthread RESULT_VARIABLE failed
    ERROR_VARIABLE message)
if(failed)
  message("${message}")
  message(FATAL_ERROR " a program that includes varve does not compile with -fno-exceptions")
endif()
set(text "varve: matmul: shapes [2, 2] and [3] do not fit\n")
foreach(how default handler returns reset)
  execute_process(COMMAND "${SCRATCH}/program" ${how} RESULT_VARIABLE end OUTPUT_VARIABLE out ERROR_VARIABLE err)
  set(want "8 1 16\n")
  set(wanted_err "")
  set(ends "[Aa]bort")
  if(how STREQUAL "handler")
    string(APPEND want "told: ${text}")
    set(ends "^3$")
  elseif(how STREQUAL "returns")
    string(APPEND want "told\n")
  else()
    set(wanted_err "${text}")
  endif()
  if(NOT out STREQUAL want OR NOT err STREQUAL wanted_err OR NOT end MATCHES "${ends}")
    message(FATAL_ERROR " ${how}: ended by ${end}, wrote ${out} and ${err}")
  endif()
endforeach()
