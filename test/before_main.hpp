// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/varve.hpp>

#include <vector>

/// What programs may do before `main`: trace, compile, differentiate, and call operators by name. Units call it to
/// initialize an object of theirs, and compare it with what `main` gets.
namespace before_main {
inline std::vector<double> results() {
  namespace vv = varve;
  using vv::tensor;
  auto const f = [](tensor const& x) {
    return vv::cond(
        vv::gt(vv::sum(x), 0.0), [](tensor const& v) { return vv::sum(vv::exp(v) * v); },
        [](tensor const& v) { return vv::sum(v); }, x);
  };
  tensor const x({0.5, -0.25});
  std::vector<double> r;
  auto const add = [&](tensor const& t) {
    for (double v : t.to_vector()) r.push_back(v);
  };
  add(vv::compile(f)(x));
  add(vv::compile(vv::grad(f))(x));
  add(vv::interpret(vv::make_fx(f)(x), vv::boxed_args(x))[0]);
  add(vv::interpret(vv::make_fx(vv::vmap(vv::grad(f)))(vv::stack(std::vector<tensor>{x, x})),
                    vv::boxed_args(vv::stack(std::vector<tensor>{x, x})))[0]);
  add(vv::fuse(vv::make_fx([](tensor const& v) { return vv::tanh(v) * 2.0; })(x))(vv::boxed_args(x))[0]);
  add(vv::ops::call("exp", x));
  r.push_back(vv::ops::find("mul") != nullptr);
  return r;
}
} // namespace before_main
