// SPDX-License-Identifier: BSL-1.0
// Keys that a guard switches off, and keys that are passed.
#include "../sample/value.hpp"

#include <varve/mode/logging_mode.hpp>
#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;
using vv::dispatch_key;
using names = std::vector<std::string>;

TEST_CASE("scenarios: in-place or view stays on under no_grad, and goes in inference mode",
          "[dispatch][inference]") { // DK-11
  tensor const x = from({1, 2}, {2});
  (void)(x * x);
  int autograd = 0, views = 0;
  vv::library lib("aten");
  auto const counting = [](int& n, dispatch_key at) {
    return [&n, at](vv::boxed_op const& op, vv::dispatch_key_set keys, vv::boxed_args const& a) -> tensor {
      return ++n, vv::redispatch(op, keys.below(at), a);
    };
  };
  lib.impl("mul", dispatch_key::autograd, counting(autograd, dispatch_key::autograd_cpu));
  lib.impl("mul", dispatch_key::inplace_or_view, counting(views, dispatch_key::inplace_or_view));
  {
    vv::no_grad const off;
    CHECK(elements(x * x) == std::vector<double>{1, 4});
  }
  CHECK(std::pair(autograd, views) == std::pair(1, 1));
  vv::inference_mode const on;
  CHECK(elements(x * x) == std::vector<double>{1, 4});
  CHECK(std::pair(autograd, views) == std::pair(1, 1));
}

TEST_CASE("scenarios: the key of modes without a mode, and without a subclass, is passed",
          "[dispatch][mode]") { // MD-14
  tensor const x = from({1, 2}, {2});
  vv::include_keys const on({dispatch_key::dispatch_mode, dispatch_key::subclass, dispatch_key::pre_dispatch,
                             dispatch_key::function_mode, dispatch_key::transform});
  CHECK(elements(x + x) == std::vector<double>{2, 4});
  CHECK(elements(vv::zeros({1})) == std::vector<double>{0});
}
