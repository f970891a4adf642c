// SPDX-License-Identifier: BSL-1.0
// expect: returned a vector or an aggregate.*return a std::tuple or a std::array
#include <varve/autograd/function.hpp>
#include <varve/op/operators.hpp>
namespace vv = varve;

struct two : vv::function<two> {
#ifdef FAIL
  static auto forward(vv::tensor const& x) { return std::vector<vv::tensor>{x * 2.0, x * 3.0}; }
#else
  static auto forward(vv::tensor const& x) { return std::array<vv::tensor, 2>{x * 2.0, x * 3.0}; }
#endif
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static auto backward(auto&, auto const& g, auto const& h) { return g * 2.0 + h * 3.0; }
};
vv::tensor first(vv::tensor const& x) { return two::apply(x)[0]; }
