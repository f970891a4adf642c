// SPDX-License-Identifier: BSL-1.0
// Objects at namespace scope that trace, compile and call operators by name. `odr` and `implementation` have those of
// programs without the library.
#include "../before_main.hpp"

#include <varve/by_name/nn.hpp>

#include <varve_test.hpp>

namespace {
namespace vv = varve;
std::vector<double> const early = before_main::results();
auto const compiled = vv::compile([](vv::tensor const& x) { return vv::sum(vv::exp(x) * x); });
vv::tensor const value = compiled(vv::tensor({1.0, 2.0}));
vv::tensor const by_name = vv::ops::call("leaky_relu", {vv::tensor({-1.0, 2.0})})[0].as<vv::tensor>();
} // namespace

TEST_CASE("before main: operators are known to statics of the program", "[dispatch][ops]") {
  CHECK(early.size() == 13);
  CHECK(early == before_main::results());
  CHECK(value.item() == Approx(17.496393));
  CHECK(by_name.to_vector() == std::vector<double>{-0.01, 2.0});
}
