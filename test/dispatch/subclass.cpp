// SPDX-License-Identifier: BSL-1.0
// Tensor subclasses: a logging tensor, one with a unit, and one made of two tensors.
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
/// Writes every operator it takes part in, and wraps what comes out.
struct logging_tensor : vv::tensor_subclass<logging_tensor> {
  tensor value;
  static inline std::vector<std::string> log;
  explicit logging_tensor(tensor v) : value(std::move(v)) {}
  auto parts() const { return std::tie(value); }
  logging_tensor with_parts(tensor const& v) const { return logging_tensor(v); }
  static tensor dispatch(vv::boxed_op const& op, vv::boxed_args const& x) {
    log.emplace_back(op.name());
    tensor const y = op(vv::unwrap_all<logging_tensor>(x));
    return vv::return_and_correct_aliasing(op, x, vv::make_subclass(logging_tensor(y)));
  }
};
/// Lengths in metres, areas in square metres: units must agree in sums and add up in products.
struct unit_tensor : vv::tensor_subclass<unit_tensor> {
  tensor value;
  int metres;
  unit_tensor(tensor v, int m) : value(std::move(v)), metres(m) {}
  auto parts() const { return std::tie(value); }
  unit_tensor with_parts(tensor const& v) const { return {v, metres}; }
  static int unit_of(tensor const& t) { return vv::is<unit_tensor>(t) ? vv::unwrap<unit_tensor>(t).metres : 0; }
  static tensor dispatch(vv::boxed_op const& op, vv::boxed_args const& x) {
    std::string const name = op.name();
    int unit = unit_of(x[0]);
    if (name == "mul") unit = unit_of(x[0]) + unit_of(x[1]);
    else if (name == "div") unit = unit_of(x[0]) - unit_of(x[1]);
    else if (name == "sqrt") unit /= 2;
    else if (name == "exp" && unit) throw std::runtime_error("exp of a length");
    else
      for (auto const& t : x)
        if (unit_of(t) != unit) throw std::runtime_error(name + " of different units");
    return vv::make_subclass(unit_tensor(op(vv::unwrap_all<unit_tensor>(x)), unit));
  }
};
/// A pair of tensors on which every operator acts at once.
struct two_tensor : vv::tensor_subclass<two_tensor> {
  tensor a, b;
  two_tensor(tensor p, tensor q) : a(std::move(p)), b(std::move(q)) {}
  auto parts() const { return std::tie(a, b); }
  two_tensor with_parts(tensor const& p, tensor const& q) const { return {p, q}; }
  static tensor dispatch(vv::boxed_op const& op, vv::boxed_args const& x) {
    return vv::make_subclass(two_tensor(op(vv::unwrap_all<two_tensor>(x, 0)), op(vv::unwrap_all<two_tensor>(x, 1))));
  }
};
} // namespace

TEST_CASE("subclass: a logging tensor sees its operators, under every transform", "[dispatch][subclass]") {
  tensor const x = from({0.5, -1, 2}, {3});
  tensor const t = vv::make_subclass(logging_tensor(x));
  CHECK(vv::is<logging_tensor>(t));
  CHECK(t.sizes() == dims{3});
  CHECK(t.dtype() == dtype::float64);
  logging_tensor::log.clear();
  tensor const y = vv::sin(t) * 2 + x;
  CHECK(logging_tensor::log == std::vector<std::string>{"sin", "mul", "add"});
  CHECK(difference(vv::unwrap<logging_tensor>(y).value, vv::sin(x) * 2 + x) == "");
  logging_tensor::log.clear();
  tensor const g = vv::grad([](auto const& v) { return vv::sum(vv::sin(v)); })(t);
  CHECK(vv::is<logging_tensor>(g));
  CHECK(difference(vv::unwrap<logging_tensor>(g).value, vv::cos(x)) == "");
  CHECK(logging_tensor::log.size() >= 4); // sin, sum, and the gradient's
  CHECK(vv::is<logging_tensor>(vv::vmap([](auto const& v) { return v * v; })(t)));
  CHECK_THROWS_WITH(y.raw(), ContainsText("subclass"));
  CHECK_THROWS_AS(vv::sum(y).item<double>(), vv::transform_error); // MD-21
  CHECK_THROWS_WITH(vv::unwrap<two_tensor>(t), ContainsText("two_tensor"));
}

TEST_CASE("subclass: units are checked, in gradients too", "[dispatch][subclass]") {
  tensor const side = vv::make_subclass(unit_tensor(from({2, 3}, {2}), 1)), area = side * side;
  CHECK(vv::unwrap<unit_tensor>(area).metres == 2);
  CHECK(vv::unwrap<unit_tensor>(vv::sqrt(area)).metres == 1);
  CHECK(vv::unwrap<unit_tensor>(area / side).metres == 1);
  CHECK_THROWS_WITH(area + side, ContainsText("add of different units"));
  CHECK_THROWS_WITH(vv::exp(side), ContainsText("exp of a length"));
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("subclass: two tensors in one", "[dispatch][subclass]") {
  tensor const t = vv::make_subclass(two_tensor(from({1, 2}, {2}), from({3, 4}, {2})));
  tensor const y = vv::sum(t * t + 1);
  CHECK(vv::unwrap<two_tensor>(y).a.item<double>() == 7);
  CHECK(vv::unwrap<two_tensor>(y).b.item<double>() == 27);
  tensor const g = vv::grad([](auto const& v) { return vv::sum(v * v); })(t);
  CHECK(elements(vv::unwrap<two_tensor>(g).b) == std::vector<double>{6, 8});
  // flatten and unflatten
  REQUIRE(t.object()->inner_count() == 2);
  tensor const parts[] = {t.object()->inner(1), t.object()->inner(0)};
  CHECK(elements(vv::unwrap<two_tensor>(t.object()->rebuilt(parts)).a) == std::vector<double>{3, 4});
}

namespace {
struct base_tensor : vv::tensor_subclass<base_tensor> {
  tensor value;
  explicit base_tensor(tensor v) : value(std::move(v)) {}
  auto parts() const { return std::tie(value); }
  base_tensor with_parts(tensor const& v) const { return base_tensor(v); }
  static tensor dispatch(vv::boxed_op const&, vv::boxed_args const&) { throw std::runtime_error("asked the base"); }
};
struct derived_tensor : vv::tensor_subclass<derived_tensor> {
  using base_subclass = base_tensor;
  tensor value;
  bool declines;
  derived_tensor(tensor v, bool d) : value(std::move(v)), declines(d) {}
  auto parts() const { return std::tie(value); }
  derived_tensor with_parts(tensor const& v) const { return {v, declines}; }
  static tensor dispatch(vv::boxed_op const&, vv::boxed_args const& x) {
    for (auto const& t : x)
      if (vv::is<derived_tensor>(t) && vv::unwrap<derived_tensor>(t).declines) return vv::not_implemented;
    throw std::runtime_error("asked the derived");
  }
};
} // namespace

TEST_CASE("subclass: the more derived is asked first, then from left to right, all may decline",
          "[dispatch][subclass]") { // MD-10
  tensor const x = from({1}, {1});
  tensor const a = vv::make_subclass(base_tensor(x)), b = vv::make_subclass(derived_tensor(x, false)),
               c = vv::make_subclass(derived_tensor(x, true));
  CHECK(vv::is<base_tensor>(b));
  CHECK_FALSE(vv::is<derived_tensor>(a));
  CHECK_THROWS_WITH(a + b, ContainsText("asked the derived"));
  CHECK_THROWS_WITH(b + a, ContainsText("asked the derived"));
  CHECK_THROWS_WITH(c + a, ContainsText("asked the base"));
  CHECK_THROWS_WITH(c + c, ContainsText("declined") && ContainsText("derived_tensor"));
  tensor const l = vv::make_subclass(logging_tensor(x));
  CHECK_NOTHROW(l + x);
  CHECK_THROWS_WITH(a + l, ContainsText("asked the base"));
}

TEST_CASE("subclass: views and in-place operators alias as the schema says", "[dispatch][subclass]") { // MD-16
  tensor const x = from({1, 2, 3, 4}, {2, 2});
  tensor const t = vv::make_subclass(logging_tensor(x));
  tensor const v = vv::permute(t, dims{1, 0});
  CHECK(v.shares_storage(t));
  CHECK_FALSE((t + t).shares_storage(t));
  tensor const same = vv::add_(t, from({1}, {1}));
  CHECK(same.is(t));
  CHECK(elements(x) == std::vector<double>{2, 3, 4, 5});
  CHECK(x.version() == 1);
}

namespace {
struct ragged : vv::tensor_subclass<ragged> { // asked for its sizes each time
  tensor value;
  mutable dims shape{2, 3};
  static inline int asked = 0;
  explicit ragged(tensor v) : value(std::move(v)) {}
  auto parts() const { return std::tie(value); }
  ragged with_parts(tensor const& v) const { return ragged(v); }
  dims const& sizes() const { return ++asked, shape; }
  static tensor dispatch(vv::boxed_op const& op, vv::boxed_args const& x) { return op(vv::unwrap_all<ragged>(x)); }
};
} // namespace

TEST_CASE("subclass: further keys, and metadata that is computed", "[dispatch][subclass]") { // MD-20
  tensor const x = from({1, 2, 3, 4}, {4});
  tensor const r = vv::make_subclass(ragged(x));
  ragged::asked = 0;
  CHECK(r.sizes() == dims{2, 3});
  CHECK(r.numel() == 6);
  CHECK(ragged::asked >= 2);
  vv::unwrap<ragged>(r).shape = dims{4};
  CHECK(r.dim() == 1);
  CHECK(elements(r + 1) == std::vector<double>{2, 3, 4, 5});
  // A wrapper that a registered autograd kernel sees, though wrappers usually have no such key.
  int seen = 0;
  vv::library lib("aten");
  lib.impl("mul", vv::dispatch_key::autograd,
           [&](vv::boxed_op const& op, vv::dispatch_key_set keys, vv::boxed_args const& a) -> tensor {
             ++seen;
             return vv::redispatch(op, keys.below(vv::dispatch_key::autograd_cpu), a);
           });
  tensor const with_key = vv::make_subclass(two_tensor(x, x), vv::dispatch_key::autograd_cpu);
  (void)(with_key * 2);
  CHECK(seen >= 1);
  tensor const shaped = vv::make_subclass(two_tensor(x, x), dims{7, 7}, dtype::float32, dims{1, 7});
  CHECK(shaped.sizes() == dims{7, 7});
  CHECK(shaped.strides() == dims{1, 7});
  CHECK(shaped.dtype() == dtype::float32);
}

TEST_CASE("subclass: requires_grad_ on a wrapper has its gradient", "[dispatch][subclass][autograd]") { // A16
  tensor const t = vv::make_subclass(two_tensor(from({1, 2}, {2}, dtype::float64), from({3, 4}, {2}, dtype::float64)));
  t.requires_grad_();
  CHECK(t.requires_grad());
  tensor const u = t * 2.0;
  vv::mul_(u, t); // 2 t²
  tensor const y = vv::sum(u);
  CHECK(y.requires_grad());
  y.backward();
  REQUIRE(t.grad().defined());
  CHECK(elements(vv::unwrap<two_tensor>(t.grad()).a) == std::vector<double>{4, 8});
  CHECK(elements(vv::unwrap<two_tensor>(t.grad()).b) == std::vector<double>{12, 16});
  tensor const z = vv::make_subclass(two_tensor(from({1, 2}, {2}, dtype::int64), from({3, 4}, {2}, dtype::int64)));
  CHECK_THROWS_AS(z.requires_grad_(), vv::dtype_error);
}

TEST_CASE("subclass: modes that unwrap and wrap again", "[dispatch][subclass][mode][MD-S19]") {
  struct wrapping : vv::dispatch_mode<wrapping> {
    tensor process(vv::boxed_op op, vv::boxed_args const& x) {
      return vv::make_subclass(two_tensor(op(vv::unwrap_all<two_tensor>(x, 0)), op(vv::unwrap_all<two_tensor>(x, 1))));
    }
  } m;
  struct passing : vv::dispatch_mode<passing> {
    tensor process(vv::boxed_op op, vv::boxed_args const& x) { return op(x); }
  } p;
  tensor const x = from({1, 2}, {2});
  vv::mode_guard const on{m};
  tensor y = x + x, z = y + y;
  CHECK(vv::is<two_tensor>(y));
  CHECK(vv::is<two_tensor>(z));
  vv::mode_guard const above{p};
  y = x + x;
  z = y + y;
  CHECK(vv::is<two_tensor>(z));
  CHECK(elements(vv::unwrap<two_tensor>(z).a) == std::vector<double>{4, 8});
}
