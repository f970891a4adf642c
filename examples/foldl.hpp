// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/varve.hpp>

namespace vv = varve;

/// A fold over rows that may end early, as an operator with two functions.
struct foldl_t {
  static constexpr auto op_name = "foldl";
  static constexpr vv::hop_signature signature{
      "(GraphModule step, GraphModule ends, Tensor init, Tensor xs, Tensor[] captured) -> Tensor[]"};
  static constexpr int operands = 2; // init and xs; those behind them are what the functions captured
  static vv::boxed_args operands_of(int k, vv::boxed_hop const&, vv::boxed_args const& x) {
    if (k == 1) return vv::boxed_args(x[0]);
    bool const none = x[1].sizes()[0] == 0; // then a row is needed all the same, for its shape
    return vv::boxed_args(x[0], none ? vv::tensor(vv::zeros(x[1].sizes().sub(1, x[1].dim()), x[1].dtype()))
                                     : vv::tensor(vv::select(x[1], 0, 0)));
  }
  static vv::boxed_args run(vv::boxed_hop const& call, vv::boxed_args const& x) {
    auto const call_with = [&](int k, vv::boxed_args in) {
      for (int i = operands; i < x.size(); ++i) in.push_back(x[i]);
      return call.functions[static_cast<std::size_t>(k)](in)[0];
    };
    // The rows behind the end are walked through and change nothing.
    auto const step = [&](vv::tensor const& c, vv::tensor const& row) {
      vv::tensor const next = vv::cond(
          call_with(1, vv::boxed_args(c)), [](vv::tensor const& a, vv::tensor const&) { return vv::clone(a); },
          [&](vv::tensor const& a, vv::tensor const& r) { return call_with(0, vv::boxed_args(a, r)); }, c, row);
      return std::pair(next, vv::none);
    };
    return vv::boxed_args(vv::scan(step, x[0], x[1]).first);
  }
};
/// Returns step(...step(step(init, xs[0]), xs[1])...), which ends before the first row for which ends(value) is true.
template <class Step, class Ends>
vv::tensor foldl(Step const& step, Ends const& ends, vv::tensor const& init, vv::tensor const& xs) {
  return vv::hop_operator<foldl_t>()(
      {[&](vv::boxed_args const& x) { return vv::boxed_args(vv::tensor(step(x[0], x[1]))); },
       [&](vv::boxed_args const& x) { return vv::boxed_args(vv::tensor(ends(x[0]))); }},
      vv::boxed_args(init, xs))[0];
}
