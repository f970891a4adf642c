// SPDX-License-Identifier: BSL-1.0
// Generators of random numbers of threads.
#include "../sample/value.hpp"

#include <varve/random.hpp>
#include <varve/varve.hpp>

#include <thread>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

TEST_CASE("random: threads have generators of their own, and the same numbers", "[family][random][tls]") {
  vv::manual_seed(3);
  tensor const here = vv::rand({1000}), order = vv::randperm(1000);
  std::string difference_there = "not run";
  std::thread([&] {
    vv::manual_seed(3);
    difference_there = difference(vv::rand({1000}), here, 0);
    difference_there += difference(vv::randperm(1000), order, 0);
  }).join();
  CHECK(difference_there == "");
  vv::generator g{3};
  tensor const again = vv::rand({1000}, vv::default_generator), same = vv::rand({1000}, g);
  CHECK(difference(same, here, 0) == "");
  CHECK(difference(again, here, 0) != ""); // the thread's own, given by name, moved on
}
