// SPDX-License-Identifier: BSL-1.0
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <atomic>
#include <thread>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;
using vv::dispatch_key;

TEST_CASE("library: an operator from a schema, found by name until the library ends", "[dispatch][library]") {
  tensor const x = from({1, 2}, {2}), y = from({10, 20}, {2});
  {
    vv::library lib("mylib");
    auto const* op = lib.def("weigh(Tensor x, Tensor y, int[] factor) -> Tensor");
    CHECK(vv::ops::find("mylib::weigh") == op);
    CHECK_THROWS_WITH(vv::ops::call("mylib::weigh", x, y, dims{3}),
                      ContainsText("mylib::weigh") && ContainsText("no kernel for cpu") && ContainsText("none") &&
                          ContainsText("dispatch_key::cpu, kernel)"));
    lib.impl("weigh", dispatch_key::cpu,
             [](tensor const& a, tensor const& b, dims const& f) -> tensor { return a + b * f[0]; });
    CHECK(elements(vv::ops::call("mylib::weigh", x, y, dims{3})) == std::vector<double>{31, 62});
    CHECK_THROWS_WITH(vv::ops::call("mylib::weigh", x), ContainsText("1 operands; it takes 2"));
  }
  CHECK(vv::ops::find("mylib::weigh") == nullptr);
  CHECK_THROWS_AS(vv::ops::call("mylib::weigh", x, y, dims{3}), vv::dispatch_error);
  vv::library again("mylib");
  CHECK_NOTHROW(again.def("weigh(Tensor x) -> Tensor"));
}

TEST_CASE("library: a kernel that returns nothing is refused, whatever watches", "[dispatch][library]") {
  vv::library lib("mylib");
  lib.def("nothing(Tensor x) -> Tensor");
  lib.impl("nothing", dispatch_key::composite_implicit, [](tensor const&) { return tensor(); });
  tensor const x = from({1, 2}, {2});
  auto const nothing = [](tensor const& v) { return vv::ops::call("mylib::nothing", v); };
  CHECK_THROWS_WITH(nothing(x),
                    ContainsText("mylib::nothing") && ContainsText("undefined tensor") && ContainsText("redispatch"));
  CHECK_THROWS_AS(vv::grad([&](tensor const& v) { return vv::sum(nothing(v)); })(x), vv::dispatch_error);
  CHECK_THROWS_AS(vv::vmap(nothing)(x), vv::dispatch_error);
  CHECK_THROWS_AS(nothing(vv::clone(x).requires_grad_()), vv::dispatch_error);
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("library: faulty registrations are refused and change nothing", "[dispatch][library]") {
  vv::library lib("mylib");
  lib.def("one(Tensor x) -> Tensor");
  CHECK_THROWS_AS(lib.def("one(Tensor x) -> Tensor"), vv::dispatch_error);
  CHECK_THROWS_WITH(lib.def("two(Tensor x -> Tensor"), ContainsText("expected )") && ContainsText("column"));
  CHECK_THROWS_AS(lib.def("(Tensor x) -> Tensor"), vv::value_error);
  auto const kernel = [](tensor const& a) -> tensor { return a; };
  CHECK_THROWS_WITH(lib.impl("absent", dispatch_key::cpu, kernel), ContainsText("no operator mylib::absent"));
  lib.impl("one", dispatch_key::cpu, kernel);
  CHECK_THROWS_WITH(lib.impl("one", dispatch_key::cpu, kernel), ContainsText("already") && ContainsText("cpu"));
  CHECK_THROWS_WITH(lib.impl("one", dispatch_key::meta, [](tensor const& a, tensor const&) -> tensor { return a; }),
                    ContainsText("takes 2 tensors"));
  CHECK(elements(vv::ops::call("mylib::one", from({4}, {1}))) == std::vector<double>{4});
}

TEST_CASE("library: schemas are read and printed alike", "[dispatch][schema]") {
  for (char const* text : {"foo(Tensor self, Tensor other) -> Tensor",
                           "add_(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
                           "split(Tensor(a) self, int[] sizes, int dim=0) -> Tensor(a)",
                           "topk(Tensor self, int k) -> (Tensor values, Tensor indices)", "ns::none() -> ()",
                           "opt(Tensor? bias=None) -> Tensor"})
    CHECK(to_string(vv::operator_schema::parse(text)) == text);
  auto const s = vv::operator_schema::parse("add_(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)");
  CHECK(s.mutates());
  CHECK(s.operands() == 2);
  CHECK(s.attributes() == 1);
  CHECK(s.aliased_operand(0) == 0);
  CHECK(s.arguments[2].keyword_only);
  // Every operator of varve that has a schema has one that reads back, with as many operands as it takes.
  (void)(from({1}, {1}) + 1);
  int n = 0;
  for (auto* e = vv::detail::first_table(); e; e = e->next) {
    if (!*e->table->schema) continue;
    auto const parsed = vv::operator_schema::parse(std::string(e->table->name) + e->table->schema);
    INFO(e->table->name << e->table->schema);
    CHECK(to_string(parsed) == std::string(e->table->name) + e->table->schema);
    if (e->table->arity >= 0)
      CHECK(parsed.operands() +
                (std::string(e->table->schema).find("Scalar") != std::string::npos ? parsed.attributes() : 0) >=
            e->table->arity);
    ++n;
  }
  CHECK(n > 10);
}

TEST_CASE("library: kernels of varve's own operators are overridden, extended by redispatch, and come back",
          "[dispatch][library]") {
  tensor const x = from({1, 2}, {2});
  (void)(x * x);
  int seen = 0;
  {
    vv::library lib("aten");
    lib.impl("mul", dispatch_key::autograd,
             [&](vv::boxed_op const& op, vv::dispatch_key_set keys, vv::boxed_args const& args) -> tensor {
               ++seen;
               CHECK(keys.has(dispatch_key::autograd_cpu));
               return vv::redispatch(op, keys.below(dispatch_key::autograd_cpu), args);
             });
    CHECK(elements(x * x) == std::vector<double>{1, 4});
    CHECK(seen == 1);
    {
      vv::exclude_keys const off(dispatch_key::autograd); // DK-9
      CHECK(elements(x * x) == std::vector<double>{1, 4});
      CHECK(seen == 1);
    }
    // It stands in the place of the product's gradient and records none, at the level of grad and below it.
    CHECK(elements(vv::grad([](auto const& v) { return vv::sum(v * v + v); })(x)) == std::vector<double>{1, 1});
    CHECK(seen == 3);
    {
      vv::library other("aten");
      other.impl("mul", dispatch_key::cpu, [](tensor const& a, tensor const& b) -> tensor { return a + b; });
      CHECK(elements(x * x) == std::vector<double>{2, 4});
    }
    CHECK(elements(x * x) == std::vector<double>{1, 4});
  }
  int const before = seen;
  CHECK(elements(x * x) == std::vector<double>{1, 4});
  CHECK(seen == before);
  CHECK(vv::detail::registered<vv::mul_t>.load() == nullptr); // back on the fast path
}

TEST_CASE("library: a composite works under every transform, a lone kernel only where it has no part",
          "[dispatch][library]") {
  vv::library lib("mylib");
  lib.def("twice_sin(Tensor x) -> Tensor");
  lib.impl("twice_sin", dispatch_key::composite_implicit, [](tensor const& v) -> tensor { return vv::sin(v) * 2; });
  lib.def("opaque(Tensor x) -> Tensor");
  lib.impl("opaque", dispatch_key::cpu, [](tensor const& v) -> tensor { return v * 3; });
  tensor const x = from({0.5, -1}, {2});
  auto f = [](auto const& v) { return vv::sum(vv::ops::call("mylib::twice_sin", v)); };
  CHECK(difference(vv::grad(f)(x), vv::cos(x) * 2) == "");
  CHECK(difference(vv::vmap(vv::grad(f))(vv::reshape(x, dims{2, 1})), vv::reshape(vv::cos(x) * 2, dims{2, 1})) == "");
  CHECK(difference(vv::jvp(f, std::tuple(x), std::tuple(vv::ones_like(x))).second, vv::sum(vv::cos(x) * 2)) == "");
  auto g = [&](auto const& v) { return vv::sum(v * vv::ops::call("mylib::opaque", x)); };
  CHECK(elements(vv::grad(g)(x)) == std::vector<double>{1.5, -3});
  CHECK_THROWS_WITH(vv::grad([](auto const& v) { return vv::sum(vv::ops::call("mylib::opaque", v)); })(x),
                    ContainsText("mylib::opaque") && ContainsText("grad"));
  CHECK(vv::this_thread_state.quiet());
}

TEST_CASE("library: rules per kind of transform, with the layer exposed",
          "[dispatch][library][interpreter][FS-S19][FS-S20]") {
  vv::library lib("mylib");
  lib.def("mysum(Tensor x, int[] dim) -> Tensor");
  lib.impl("mysum", dispatch_key::cpu, [](tensor const& v, dims const& d) -> tensor { return vv::sum(v, d); });
  lib.impl("mysum", vv::transform_type::vmap, [](vv::interpreter in, vv::boxed_op const& op, vv::boxed_args const& x) {
    vv::attributes at = *op.at;
    if (in.owns(x[0])) ++at.fact[0][0]; // the mapped dimension stands in front
    tensor const y = in.lower([&] { return vv::boxed_op{op.table, &at}(in.unwrap(x)); });
    return in.owns(x[0]) ? in.wrap(y) : y;
  });
  lib.impl("mysum", vv::transform_type::grad, [](vv::interpreter in, vv::boxed_op const& op, vv::boxed_args const& x) {
    dims const shape = x[0].sizes();
    index_t const axis = (*op.at)[0][0];
    tensor const y = in.lower([&] { return op(in.unwrap(x)); });
    return in.record(y, x, [=](tensor const& g) {
      dims kept = g.sizes();
      return vv::boxed_args(vv::expand(vv::reshape(g, kept.insert(static_cast<int>(axis), 1)), shape));
    });
  });
  auto mysum = [](tensor const& v, index_t d) { return vv::ops::call("mylib::mysum", v, dims{d}); };
  tensor const x = vv::reshape(vv::sin(vv::to(vv::arange(24), dtype::float64)), dims{2, 3, 4});
  CHECK(difference(vv::vmap([&](tensor const& v) { return mysum(v, 0); })(x), vv::sum(x, 1)) == "");
  CHECK(difference(vv::vmap(vv::vmap([&](tensor const& v) { return mysum(v, 0); }))(x), vv::sum(x, 2)) == "");
  tensor const v = from({0.3, -1, 2}, {3});
  auto inner = [&](tensor const& a) { return mysum(vv::sin(a), 0); };
  auto outer = [&](tensor const& a) { return mysum(vv::grad(inner)(a), 0); };
  CHECK(difference(vv::grad(outer)(v), vv::neg(vv::sin(v))) == "");
  CHECK(difference(vv::vmap(vv::grad(inner))(vv::reshape(v, dims{3, 1})), vv::reshape(vv::cos(v), dims{3, 1})) == "");
  CHECK_THROWS_WITH(vv::jvp(inner, std::tuple(v), std::tuple(v)), ContainsText("mysum") && ContainsText("jvp"));
  CHECK(vv::this_thread_state.quiet());
}

namespace {
/// A backend of a test: its tensors are memory under the key `private_use`.
constexpr vv::dispatch_key_set device_keys{dispatch_key::private_use, dispatch_key::inplace_or_view,
                                           dispatch_key::autograd_private_use};
tensor on_device(tensor const& t) { return vv::clone(t).with_keys(device_keys); }
vv::boxed_args on_host(vv::boxed_args const& x) {
  vv::boxed_args r;
  for (auto const& t : x) r.push_back(t.keys().has(dispatch_key::private_use) ? t.with_keys(vv::default_keys) : t);
  return r;
}
} // namespace

TEST_CASE("library: a registered backend works end to end", "[dispatch][library]") {
  tensor const x = from({0.5, -1, 2}, {3});
  tensor const d = on_device(x);
  CHECK_THROWS_WITH(d + d,
                    ContainsText("add") && ContainsText("no kernel for private_use") && ContainsText("cpu, meta"));
  int calls = 0;
  vv::library lib("device");
  lib.fallback(dispatch_key::private_use, [&](vv::boxed_op const& op, vv::boxed_args const& args) -> tensor {
    ++calls;
    vv::exclude_keys const below(device_keys - vv::dispatch_key_set(dispatch_key::dense));
    return vv::redispatch(op, dispatch_key::cpu, on_host(args)).with_keys(device_keys);
  });
  tensor const y = vv::exp(d) * d + 1;
  CHECK(calls == 3);
  CHECK(y.keys().has(dispatch_key::private_use));
  CHECK(difference(y.with_keys(vv::default_keys), vv::exp(x) * x + 1) == "");
  // Factories go where the thread's keys say, transforms and views as on any backend.
  {
    vv::include_keys const device(dispatch_key::private_use);
    CHECK(vv::zeros({2}).keys().has(dispatch_key::private_use));
  }
  CHECK_FALSE(vv::zeros({2}).keys().has(dispatch_key::private_use));
  tensor const g = vv::grad([](auto const& v) { return vv::sum(vv::exp(v) * v); })(d);
  CHECK(g.keys().has(dispatch_key::private_use));
  CHECK(difference(g.with_keys(vv::default_keys), vv::exp(x) * (x + 1)) == "");
  CHECK(vv::reshape(d, dims{3, 1}).keys().has(dispatch_key::private_use));
  CHECK(vv::vmap([](auto const& v) { return v * 2; })(d).keys().has(dispatch_key::private_use));
}

TEST_CASE("meta: every operator has a shape without data", "[dispatch][meta]") {
  tensor const a = tensor::meta({2, 3}, dtype::float64), b = tensor::meta({3}, dtype::float32);
  tensor const c = vv::matmul(vv::exp(a) * b, vv::permute(a, dims{1, 0}));
  CHECK(c.keys().has(dispatch_key::meta));
  CHECK(c.sizes() == dims{2, 2});
  CHECK(c.dtype() == dtype::float64);
  CHECK(vv::sum(a > 0).dtype() == dtype::int64);
  CHECK(vv::permute(a, dims{1, 0}).strides() == dims{1, 3});
  CHECK_THROWS_WITH(c.item<double>(), ContainsText("one element"));
  CHECK_THROWS_WITH(vv::sum(c).item<double>(), ContainsText("meta"));
  CHECK_THROWS_AS(a + tensor::meta({4}, dtype::float64), vv::shape_error);
  CHECK(vv::grad([](auto const& v) { return vv::sum(vv::softmax(v, 1)); })(a).sizes() == dims{2, 3});
  vv::add_(a, b);
}

TEST_CASE("library: fallthroughs, ambiguous kernels and re-entrant handlers", "[dispatch][library]") {
  tensor const x = from({1, 2}, {2});
  (void)(x - x);
  {
    vv::library lib("aten"); // DK-7: the operator is blind to modes
    lib.fallthrough("sub", dispatch_key::dispatch_mode);
    struct counting : vv::dispatch_mode<counting> {
      int calls = 0;
      tensor process(vv::boxed_op op, vv::boxed_args const& a) { return ++calls, op(a); }
    } m;
    vv::mode_guard const on{m};
    (void)(x - x);
    CHECK(m.calls == 0);
    (void)(x + x);
    CHECK(m.calls == 1);
    CHECK_THROWS_WITH(lib.fallthrough("sub", dispatch_key::dispatch_mode), ContainsText("already"));
  }
  vv::library lib("mylib"); // DK-6
  lib.def("both(Tensor x) -> Tensor");
  lib.impl("both", dispatch_key::composite_implicit, [](tensor const& v) -> tensor { return v; });
  lib.impl("both", dispatch_key::cpu, [](tensor const& v) -> tensor { return v; });
  tensor const elsewhere = x.with_keys({dispatch_key::other, dispatch_key::autograd_other});
  CHECK_THROWS_WITH(vv::ops::call("mylib::both", elsewhere),
                    ContainsText("mylib::both") && ContainsText("ambiguous") && ContainsText("composite_implicit"));
  CHECK_NOTHROW(vv::ops::call("mylib::both", x));
  lib.impl("both", dispatch_key::autograd_other, [](tensor const& v) -> tensor { return v; });
  CHECK_NOTHROW(vv::ops::call("mylib::both", elsewhere));

  // A handler runs below autograd, unless it asks for what was there at the call (MD-9).
  int seen = 0;
  vv::library aten("aten");
  aten.impl("exp", dispatch_key::autograd,
            [&](vv::boxed_op const& op, vv::dispatch_key_set keys, vv::boxed_args const& a) -> tensor {
              ++seen;
              return vv::redispatch(op, keys.below(dispatch_key::autograd_cpu), a);
            });
  struct handler : vv::dispatch_mode<handler> {
    bool reenters = false;
    tensor process(vv::boxed_op op, vv::boxed_args const& a) {
      if (reenters) {
        vv::reentrant_dispatch const on;
        return vv::exp(a[0]);
      }
      return (void)op, vv::exp(a[0]);
    }
  } h;
  vv::mode_guard const on{h};
  (void)vv::sin(x);
  CHECK(seen == 0);
  h.reenters = true;
  (void)vv::sin(x);
  CHECK(seen == 1);
}

TEST_CASE("library: a higher-order operator's keys fall through until something is registered for them",
          "[dispatch][library][hop][HO-S02]") {
  vv::higher_order_operator hop("mylib::twice");
  for (dispatch_key k : {dispatch_key::inplace_or_view, dispatch_key::autocast, dispatch_key::transform_back})
    CHECK_FALSE(hop.has(k));
  std::vector<std::string> called;
  hop.impl(dispatch_key::composite_explicit, [&](vv::boxed_hop const& op, vv::boxed_args const& a) {
    called.emplace_back("composite");
    return op.functions[0](op.functions[0](a));
  });
  tensor const x = from({2}, {1});
  auto const square = [](vv::boxed_args const& a) { return vv::boxed_args(tensor(a[0] * a[0])); };
  CHECK(elements(hop({square}, vv::boxed_args(x))[0]) == std::vector<double>{16});
  hop.impl(dispatch_key::inplace_or_view, [&](vv::boxed_hop const& op, vv::boxed_args const& a) {
    called.emplace_back("inplace_or_view");
    return op.op->redispatch(op, vv::default_keys.below(dispatch_key::inplace_or_view), a);
  });
  CHECK(hop.has(dispatch_key::inplace_or_view));
  CHECK(elements(hop({square}, vv::boxed_args(x))[0]) == std::vector<double>{16});
  CHECK(called == std::vector<std::string>{"composite", "inplace_or_view", "composite"});
  CHECK_THROWS_WITH(
      hop.impl(dispatch_key::inplace_or_view, [](vv::boxed_hop const&, vv::boxed_args const& a) { return a; }),
      ContainsText("already"));
  CHECK_THROWS_WITH(
      vv::vmap([&](tensor const& v) { return hop({square}, vv::boxed_args(v))[0]; })(x),
      ContainsText(
          "the higher-order operator mylib::twice and the transform vmap; register one with op.impl(\"vmap\", rule)"));
  hop.impl(vv::transform_type::vmap, [](vv::interpreter in, vv::boxed_hop const& op, vv::boxed_args const& a) {
    return vv::boxed_args(in.wrap(in.lower([&] { return op(in.unwrap(a)); })[0]));
  });
  CHECK(elements(vv::vmap([&](tensor const& v) { return hop({square}, vv::boxed_args(v))[0]; })(x)) ==
        std::vector<double>{16});
  CHECK(vv::higher_order_operator::find("mylib::twice") == &hop);
}

namespace {
struct one_type : vv::dispatch_mode<one_type> { // declines
  tensor process(vv::boxed_op const&, vv::boxed_args const&) { return {}; }
};
tensor free_kernel(tensor const& a) { return a + 1; }
/// One round of a program that registers and takes back all there is.
void register_everything(int& calls) {
  tensor const x = from({1, 2}, {2});
  vv::library lib("rounds");
  lib.def("twice(Tensor x, int[] n) -> Tensor");
  lib.impl("twice", dispatch_key::cpu, [](tensor const& a, dims const& n) -> tensor { return a * n[0]; });
  lib.impl("twice", dispatch_key::meta,
           [&calls](vv::boxed_op const&, vv::boxed_args const& a) -> tensor { return ++calls, a[0]; });
  lib.impl("twice", vv::transform_type::vmap,
           [&calls](vv::interpreter in, vv::boxed_op const& op, vv::boxed_args const& a) {
             ++calls;
             return in.wrap(in.lower([&] { return op(in.unwrap(a)); }));
           });
  lib.def("plus(Tensor x) -> Tensor");
  lib.impl("plus", dispatch_key::composite_implicit, &free_kernel);
  CHECK(elements(vv::vmap([](tensor const& v) { return vv::ops::call("rounds::twice", v, dims{2}); })(x)) ==
        std::vector<double>{2, 4});
  CHECK(elements(vv::ops::call("rounds::plus", x)) == std::vector<double>{2, 3});
  vv::library aten("aten");
  aten.impl("mul", dispatch_key::autograd,
            [&calls](vv::boxed_op const& op, vv::dispatch_key_set keys, vv::boxed_args const& a) -> tensor {
              return ++calls, vv::redispatch(op, keys.below(dispatch_key::autograd_cpu), a);
            });
  aten.fallthrough("mul", dispatch_key::dispatch_mode);
  aten.fallback(dispatch_key::autocast,
                [&calls](vv::boxed_op const& op, vv::dispatch_key_set keys, vv::boxed_args const& a) -> tensor {
                  return ++calls, vv::redispatch(op, keys.below(dispatch_key::autocast), a);
                });
  CHECK(elements(x * x) == std::vector<double>{1, 4});
}
} // namespace

TEST_CASE("library: registering and taking back in a loop keeps no more than doing it once", "[dispatch][library]") {
  int calls = 0;
  register_everything(calls);
  auto const before = vv::detail::registry<>::instance().kept();
  int const once = calls;
  for (int round = 1; round < 1000; ++round) register_everything(calls);
  CHECK(calls == 1000 * once);
  CHECK(vv::detail::registry<>::instance().kept() == before);
  CHECK(vv::detail::registered<vv::mul_t>.load() == nullptr);
  CHECK(vv::detail::registered<vv::add_t>.load() == nullptr); // had the fallback
  CHECK(vv::ops::find("rounds::twice") == nullptr);
}

TEST_CASE("library: a registration touches the tables of its operator only, and equal tables are one",
          "[dispatch][library]") {
  tensor const x = from({1, 2}, {2});
  (void)(x * x + x - x);
  vv::library aten("aten");
  aten.fallthrough("mul", dispatch_key::autocast);
  auto const* mul = vv::detail::registered<vv::mul_t>.load();
  CHECK(mul != nullptr);
  CHECK(vv::detail::registered<vv::add_t>.load() == nullptr);
  aten.fallthrough("add", dispatch_key::autocast);
  CHECK(vv::detail::registered<vv::mul_t>.load() == mul);
  CHECK(vv::detail::registered<vv::add_t>.load() == mul);
  {
    vv::library all("all");
    all.fallback(dispatch_key::autocast,
                 [](vv::boxed_op const& op, vv::dispatch_key_set keys, vv::boxed_args const& a) {
                   return vv::redispatch(op, keys.below(dispatch_key::autocast), a);
                 });
    CHECK(vv::detail::registered<vv::sub_t>.load() != nullptr);
    CHECK(elements(x - x) == std::vector<double>{0, 0});
  }
  CHECK(vv::detail::registered<vv::sub_t>.load() == nullptr);
  CHECK(vv::detail::registered<vv::mul_t>.load() == mul);
}

TEST_CASE("library: what changes in calls, or cannot be compared, is registered anew each time",
          "[dispatch][library]") {
  tensor const x = from({1}, {1});
  std::string const text = "a string that is longer than what a string holds in place";
  for (int round = 0; round < 3; ++round) {
    vv::library lib("mylib");
    lib.def("count(Tensor x) -> Tensor");
    lib.impl("count", dispatch_key::cpu, [n = 0](tensor const& a) mutable -> tensor { return a * ++n; });
    lib.def("length(Tensor x) -> Tensor");
    lib.impl("length", dispatch_key::cpu,
             [text](tensor const& a) -> tensor { return a * static_cast<int>(text.size()); });
    CHECK(elements(vv::ops::call("mylib::count", x)) == std::vector<double>{1});
    CHECK(elements(vv::ops::call("mylib::count", x)) == std::vector<double>{2});
    CHECK(elements(vv::ops::call("mylib::length", x)) == std::vector<double>{static_cast<double>(text.size())});
  }
}

TEST_CASE("library: the handle of an operator that has ended finds no kernel, until it is defined again",
          "[dispatch][library]") {
  tensor const x = from({1}, {1});
  vv::op_table const* handle = nullptr;
  {
    vv::library lib("mylib");
    handle = lib.def("short_lived(Tensor x) -> Tensor");
    lib.impl("short_lived", dispatch_key::cpu, [](tensor const& a) -> tensor { return a; });
    CHECK(elements(vv::boxed_op{handle, &vv::no_attributes}(vv::boxed_args(x))) == std::vector<double>{1});
  }
  CHECK_THROWS_WITH((vv::boxed_op{handle, &vv::no_attributes}(vv::boxed_args(x))),
                    ContainsText("mylib::short_lived has no kernel for cpu"));
  vv::library other("mylib");
  CHECK(other.def("short_lived(Tensor x, Tensor y) -> Tensor") != handle);
  vv::library again("mylib2");
  CHECK_THROWS_WITH(again.def("mylib::short_lived(Tensor x) -> Tensor"),
                    ContainsText("mylib::short_lived is defined already"));
}

TEST_CASE("library: of several threads that define an operator one does", "[dispatch][library][tls]") {
  constexpr int threads = 4, rounds = 200;
  std::atomic<int> defined{0}, refused{0}, ready{0}, right{0};
  std::vector<std::thread> all;
  for (int k = 0; k < threads; ++k)
    all.emplace_back([&] {
      for (int round = 0; round < rounds; ++round) {
        vv::library lib("race");
        ++ready;
        while (ready < threads * (2 * round + 1)) std::this_thread::yield();
        try {
          lib.def("one(Tensor x) -> Tensor");
          ++defined;
        } catch (vv::dispatch_error const&) { ++refused; }
        ++ready;
        while (ready < threads * (2 * round + 2)) std::this_thread::yield();
      }
    });
  for (auto& t : all) t.join();
  CHECK(defined == rounds);
  CHECK(refused == rounds * (threads - 1));

  // Calls on one thread while another registers and takes back: each finds the kernels of one moment.
  tensor const x = from({3}, {1});
  (void)(x - x);
  std::atomic<bool> end{false};
  std::thread caller([&] {
    bool good = true;
    while (!end) good = good && element(x - x, 0) == 0;
    if (good) ++right;
  });
  for (int round = 0; round < rounds; ++round) {
    vv::library lib("aten");
    lib.impl("sub", dispatch_key::autograd,
             [](vv::boxed_op const& op, vv::dispatch_key_set keys, vv::boxed_args const& a) -> tensor {
               return vv::redispatch(op, keys.below(dispatch_key::autograd_cpu), a);
             });
    lib.fallback(dispatch_key::autocast,
                 [](vv::boxed_op const& op, vv::dispatch_key_set keys, vv::boxed_args const& a) -> tensor {
                   return vv::redispatch(op, keys.below(dispatch_key::autocast), a);
                 });
  }
  end = true;
  caller.join();
  CHECK(right == 1);
}

TEST_CASE("library: errors name the operator, who refuses, and what to do", "[dispatch][library][hop]") {
  tensor const x = from({2}, {1});
  vv::higher_order_operator hop("mylib::bare");
  auto const same = [](vv::boxed_args const& a) { return a; };
  auto const call = [&](tensor const& v) { return hop({same}, vv::boxed_args(v))[0]; };
  CHECK_THROWS_WITH(
      call(x), ContainsText("mylib::bare and the backend cpu; register one with op.impl(dispatch_key::cpu, rule)"));
  CHECK_THROWS_WITH(vv::grad([&](tensor const& v) { return vv::sum(call(v)); })(x),
                    ContainsText("mylib::bare and the transform grad; register one with op.impl(\"grad\", rule)"));
  one_type declining;
  {
    vv::infra_mode_guard const on(vv::infra_mode::proxy, declining);
    CHECK_THROWS_WITH(call(x), ContainsText("mylib::bare and the mode") &&
                                   ContainsText("one_type; register one with op.impl_mode<mode>(rule)"));
  }
  vv::mode_guard const on{declining};
  CHECK_THROWS_WITH(x + x, ContainsText("add: all modes declined") && ContainsText("one_type") &&
                               ContainsText("let the process of one of them return a tensor"));
}

TEST_CASE("library: an operator without a gradient says so where one is taken", "[dispatch][library]") {
  vv::library lib("mylib");
  lib.def("twice(Tensor x) -> Tensor");
  lib.impl("twice", dispatch_key::cpu, [](tensor const& a) -> tensor { return a * 2; });
  lib.def("grow(Tensor(a!) x, Tensor y) -> Tensor");
  lib.impl("grow", dispatch_key::cpu, [](tensor const& a, tensor const& b) -> tensor { return vv::add_(a, b) * 1; });
  tensor const x = vv::clone(from({1, 2}, {2})).requires_grad_();
  tensor const y = vv::ops::call("mylib::twice", x);
  CHECK(elements(y.detach()) == std::vector<double>{2, 4});
  CHECK_THROWS_WITH(vv::sum(y).backward(), ContainsText("mylib::twice has no rule for grad"));
  // What is written would keep the derivative of what was there.
  tensor const t = x * 3;
  CHECK_THROWS_WITH(vv::ops::call("mylib::grow", t, x), ContainsText("mylib::grow has no rule for grad"));
  CHECK(elements(t.detach()) == std::vector<double>{3, 6});
  vv::no_grad const off;
  CHECK(elements(vv::ops::call("mylib::grow", t, x)) == std::vector<double>{4, 8});
}
