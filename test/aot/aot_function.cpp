// SPDX-License-Identifier: BSL-1.0
// Functions compiled ahead of time do what they do without: results, gradients, what is written, what is a view of
// what.
#include "../sample/value.hpp"

#include <varve/aot.hpp>
#include <varve/indexing.hpp>
#include <varve/varve.hpp>

#include <functional>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
tensor data(std::initializer_list<double> v) { return vector_of(v); }
tensor leaf(std::initializer_list<double> v) {
  tensor const t = vector_of(v);
  t.requires_grad_();
  return t;
}
/// A value that requires a gradient and is no leaf.
tensor computed(tensor const& x) { return x * 1.0; }

/// What a call did, in numbers: results, arguments, gradients, who shares memory with whom, and whether it requires a
/// gradient.
struct trace_of_call {
  std::vector<std::vector<double>> values;
  std::vector<int> relations;
  /// Fused sums may be rounded otherwise.
  bool operator==(trace_of_call const& o) const {
    bool same = relations == o.relations && values.size() == o.values.size();
    for (std::size_t k = 0; same && k < values.size(); ++k) {
      same = values[k].size() == o.values[k].size();
      for (std::size_t e = 0; same && e < values[k].size(); ++e) same = close(values[k][e], o.values[k][e], 1e-13);
    }
    return same;
  }
};
std::ostream& operator<<(std::ostream& os, trace_of_call const& t) {
  for (auto const& v : t.values) {
    for (double e : v) os << e << " ";
    os << "; ";
  }
  for (int r : t.relations) os << r;
  return os;
}
template <class F>
trace_of_call called(F const& f, values const& leaves, bool as_leaves) {
  trace_of_call r;
  values given;
  for (tensor const& x : leaves) given.push_back(as_leaves || !x.requires_grad() ? x : computed(x));
  values const y = f(given);
  tensor total = vv::zeros(vv::dims{}, dtype::float64);
  for (std::size_t k = 0; k < y.size(); ++k) {
    if (y[k].requires_grad()) total = total + vv::sum(y[k] * (2.0 + static_cast<double>(k)));
    for (tensor const& x : given) r.relations.push_back(y[k].shares_storage(x) + 2 * y[k].is(x));
    for (tensor const& z : y) r.relations.push_back(y[k].shares_storage(z));
    r.relations.push_back(10 + y[k].requires_grad());
    r.values.push_back(elements(y[k]));
  }
  for (tensor const& x : given) {
    if (!as_leaves && x.requires_grad()) total = total + vv::sum(x * 7.0);
    r.values.push_back(elements(x));
  }
  if (total.requires_grad()) total.backward();
  for (tensor const& x : leaves) {
    tensor const g = x.grad();
    r.values.push_back(g.defined() ? elements(g) : std::vector<double>{});
  }
  return r;
}
/// f by itself, and by each backend and partition.
template <class F>
void is_the_same(F const& f, std::function<values()> const& arguments, bool as_leaves = false) {
  trace_of_call const plain = called(f, arguments(), as_leaves);
  vv::aot_options const all[] = {
      {},
      {.partition_fn = [](vv::graph const& g, vv::joint_shape s) { return vv::min_cut_partition(g, s); }},
      {.partition_fn = [](vv::graph const& g, vv::joint_shape s) { return vv::min_cut_partition(g, s, {0.0}); }},
      {.fw_compiler = vv::backends::fused}};
  for (vv::aot_options const& how : all) {
    auto const compiled = vv::aot_function(f, how);
    for (int round = 0; round < 2; ++round) CHECK(called(compiled, arguments(), as_leaves) == plain);
    CHECK(compiled.versions() == 1);
  }
}
} // namespace

TEST_CASE("aot: values and gradients", "[aot]") {
  auto const three = [] { return values{leaf({1, 2, 3}), leaf({0.5, -1, 2}), data({3, 1, 2})}; };
  is_the_same([](values const& x) { return values{vv::sin(x[0] * x[1]) + x[2]}; }, three);
  is_the_same([](values const& x) { return values{vv::exp(x[0]), vv::sum(x[1] * x[2]), x[2] * 2.0}; }, three);
  is_the_same([](values const& x) { return values{vv::softmax(x[0], vv::axis<0>), vv::relu(x[1] - x[0])}; }, three);
  is_the_same([](values const& x) { return values{x[2] + 1.0}; }, three);
  is_the_same([](values const& x) { return values{x[0].detach() * 2.0, x[1] * 3.0}; }, three);
  is_the_same(
      [](values const& x) {
        tensor const y = x[0] * x[0];
        vv::no_grad const off;
        return values{y, y * 2.0};
      },
      three);
  vv::no_grad const off;
  is_the_same([](values const& x) { return values{vv::sin(x[0] * x[1])}; }, three, true);
}

TEST_CASE("aot: captured tensors are inputs with gradients", "[aot]") {
  tensor const w = leaf({1, 2, 3}), scale = data({2, 2, 0.5});
  auto const f = [&](tensor x) { return vv::sum(vv::tanh(x * w) * scale); };
  auto const compiled = vv::aot_function(f);
  for (double by : {1.0, 3.0}) {
    vv::mul_(scale, by); // counts at each call
    tensor const x = leaf({0.5, -1, 2});
    w.zero_grad();
    f(x).backward();
    auto const gx = elements(x.grad()), gw = elements(w.grad());
    w.zero_grad(), x.zero_grad();
    compiled(x).backward();
    CHECK(elements(x.grad()) == gx);
    CHECK(elements(w.grad()) == gw);
  }
  CHECK(compiled.versions() == 1);
  auto const writes = vv::aot_function([&](tensor x) { return vv::add_(scale, x); });
  CHECK_THROWS_WITH(writes(data({1, 1, 1})), Catch::Contains("writes into a tensor that the traced function captures"));
  CHECK(elements(scale) == std::vector<double>{6, 6, 1.5});
  tensor const v = w * 2.0;
  auto const of_values = vv::aot_function([&](tensor x) { return x * v; });
  CHECK_THROWS_WITH(of_values(data({1, 1, 1})), Catch::Contains("computed from others"));
}

TEST_CASE("aot: captured tensors are operands of functions of operators", "[aot][hop]") {
  tensor const w = leaf({1, 2, 3});
  auto const same = [&](auto const& f) {
    for (auto const& backend : {vv::graph_compiler(vv::backends::aot_eager), vv::graph_compiler(vv::backends::fused)}) {
      auto const compiled = vv::aot_function(f, {.fw_compiler = backend});
      w.zero_grad();
      tensor const x = leaf({0.5, -1, 2}), z = leaf({0.5, -1, 2});
      vv::sum(f(x)).backward();
      auto const gx = elements(x.grad()), gw = elements(w.grad());
      w.zero_grad();
      vv::sum(compiled(z)).backward();
      REQUIRE(w.grad().defined());
      CHECK(elements(z.grad()) == gx);
      CHECK(elements(w.grad()) == gw);
    }
  };
  auto const twice = [](tensor v) { return v * 2.0; };
  same([&](tensor x) { return x + vv::checkpoint([](tensor v) { return v * v; }, w); });
  same([&](tensor x) { return w * x + vv::checkpoint([](tensor v, tensor u) { return v * u; }, w, x); });
  same([&](tensor x) { return x + vv::map(twice, w); });
  same([&](tensor x) { return x + vv::cond(vv::sum(x) > 0.0, twice, [](tensor v) { return v * v; }, w); });
  same([&](tensor x) {
    return x *
           vv::scan([](tensor c, tensor v) { return std::pair(c * v, v); }, vv::ones(dims{}, dtype::float64), w).first;
  });
  tensor const v = w * 2.0;
  auto const of_values = vv::aot_function([&](tensor x) { return x + vv::map(twice, v); });
  CHECK_THROWS_WITH(of_values(data({1, 1, 1})), Catch::Contains("computed from others"));
}

TEST_CASE("aot: arguments that are written", "[aot][AO-S28]") {
  auto const two = [] { return values{leaf({1, 2, 3}), data({3, 1, 2})}; };
  is_the_same([](values const& x) { return values{vv::mul_(x[0], 2.0) + 1.0}; }, two);
  is_the_same([](values const& x) { return values{vv::add_(x[1], 2.0) * x[0]}; }, two);
  is_the_same(
      [](values const& x) {
        vv::mul_(vv::slice(x[0], 0, 0, 2), x[1].size(0) * 1.0);
        vv::add_(x[1], 1.0);
        return values{vv::sum(x[0] * x[1]), x[0]};
      },
      two);
  is_the_same([](values const& x) { return values{vv::copy_(x[1], x[0])}; }, two); // it requires a gradient then
  is_the_same( // a row is masked, after what it was has been used
      [](values const& x) {
        tensor const y = vv::exp(x[0]), row = vv::slice(x[0], 0, 0, 2);
        vv::copy_(row, vv::where(vv::gt(row, 1.0), 0.0, row));
        return values{vv::sum(x[0] * x[1]) + vv::sum(y)};
      },
      two);
  // What is written is saved for the backward pass: as it was.
  is_the_same(
      [](values const& x) {
        tensor const y = vv::sin(x[0]);
        return values{y * 2.0, vv::mul_(x[1], 3.0)};
      },
      two);
}

TEST_CASE("aot: a captured tensor that is an argument of the first call, or shares its memory", "[aot]") {
  for (bool needs : {false, true}) {
    tensor const w = needs ? leaf({1, 2, 3}) : data({1, 2, 3}), z = data({5, 5, 5});
    auto const f = [w](tensor x) { return x * vv::sum(w) + w; };
    for (auto const& how : {vv::aot_options{}, vv::aot_options{.fw_compiler = vv::backends::fused}}) {
      auto const compiled = vv::aot_function(f, how);
      CHECK(elements(compiled(w)) == elements(f(w)));
      CHECK(elements(compiled(z)) == elements(f(z)));
      if (!needs) continue;
      w.zero_grad();
      vv::sum(compiled(z)).backward();
      CHECK(elements(w.grad()) == std::vector<double>{16, 16, 16});
    }
  }
  for (int part : {0, 1}) { // the whole memory and a view of it is written after the capture was read
    tensor const b = data({1, 2, 3, 4});
    auto const f = [b](tensor x) {
      tensor const y = x * vv::sum(b);
      vv::mul_(x, 2.0);
      return y + vv::sum(b);
    };
    auto const argument = [&](tensor const& of) { return part ? tensor(vv::slice(of, 0, 1, 3)) : of; };
    auto const compiled = vv::aot_function(f);
    tensor const before = b.clone();
    for (int round = 0; round < 2; ++round) {
      vv::copy_(b, before);
      auto const expected = elements(f(argument(b)));
      auto const written = elements(b);
      vv::copy_(b, before);
      CHECK(elements(compiled(argument(b))) == expected);
      CHECK(elements(b) == written);
    }
  }
}

TEST_CASE("aot: what is in a call and not in its program", "[aot][exception]") {
  tensor const w = leaf({1, 2, 3}), x = data({1, 1, 2});
  int hooks = 0;
  w.register_hook([&](tensor g) {
    ++hooks;
    return g * 2.0;
  });
  auto const product = vv::aot_function([&](tensor a) { return vv::sum(a * w); });
  product(x).backward(); // hooks of captured leaves are called once, by this
  CHECK(hooks == 1);
  CHECK(elements(w.grad()) == std::vector<double>{2, 2, 4});
  auto const refuses = [](auto const& f, tensor const& a, char const* why) {
    CHECK_THROWS_WITH(vv::aot_function(f)(a), Catch::Contains(why));
  };
  auto const inside = [&](tensor a) {
    tensor const y = vv::sum(a * w);
    y.backward();
    return y.detach();
  };
  refuses(inside, x, "return the gradient");
  CHECK(elements(w.grad()) == std::vector<double>{2, 2, 4});
  refuses([](tensor a) { return vv::sum(a).backward(), a * 2.0; }, leaf({1, 2}), "return the gradient");
  refuses([](tensor a) { return a.requires_grad_() * 2.0; }, x, "before the call");
  refuses([](tensor a) { return a.requires_grad_(false) * 2.0; }, leaf({1, 2}), "before the call");
  refuses([](tensor a) { return tensor((a * 2.0).requires_grad_()); }, x, "made a leaf");
  auto const kept = [](tensor a) {
    tensor const y = a * 2.0;
    y.retain_grad();
    return y;
  };
  refuses(kept, leaf({1, 2}), "retain_grad");
  { // gradients are switched on inside
    vv::no_grad const off;
    tensor const a = leaf({1, 2});
    auto const f = [](tensor v) {
      vv::enable_grad const on;
      tensor const y = v * 3.0;
      return std::pair{y, vv::slice(y, 0, 0, 1)};
    };
    auto const [y, part] = vv::aot_function(f)(a);
    CHECK((y.requires_grad() && part.requires_grad()));
    part.backward();
    CHECK(elements(a.grad()) == std::vector<double>{3, 0});
  }
  // One whose shape is changed, given twice.
  auto const turned = [](tensor a, tensor b) {
    vv::t_(a);
    return a + b * 2.0;
  };
  auto const compiled = vv::aot_function(turned);
  for (int round = 0; round < 2; ++round) {
    tensor const m = vv::reshape(data({1, 2, 3, 4}), vv::dims{2, 2});
    CHECK(elements(compiled(m, m)) == std::vector<double>{3, 9, 6, 12});
  }
}

TEST_CASE("aot: writes that autograd does not see", "[aot][AO-S04][AO-S05]") {
  tensor const one = leaf({1});
  auto const in_no_grad = [](tensor a) {
    {
      vv::no_grad const off;
      vv::mul_(a, 2.0);
    }
    return a + 3.0;
  };
  tensor const y = vv::aot_function(in_no_grad)(one);
  CHECK(elements(y) == std::vector<double>{5});
  CHECK(elements(one) == std::vector<double>{2});
  CHECK((one.is_leaf() && one.requires_grad()));
  y.backward();
  CHECK(elements(one.grad()) == std::vector<double>{1});

  tensor const root = leaf({1}), a = computed(root);
  auto const mixed = [](tensor a) {
    vv::mul_(a.detach(), 2.0);
    vv::mul_(a, 3.0);
    {
      vv::no_grad const off;
      vv::mul_(a, 4.0);
    }
    return a + 5.0;
  };
  tensor const z = vv::aot_function(mixed)(a);
  CHECK(elements(a) == std::vector<double>{24});
  CHECK(elements(z) == std::vector<double>{29});
  z.backward();
  CHECK(elements(root.grad()) == std::vector<double>{3});
}

TEST_CASE("aot: results that are views", "[aot][AO-S12]") {
  auto const two = [] { return values{leaf({1, 2, 3}), data({3, 1, 2})}; };
  is_the_same([](values const& x) { return values{x[0]}; }, two);
  is_the_same([](values const& x) { return values{x[1], vv::slice(x[1], 0, 1, 3)}; }, two);
  is_the_same([](values const& x) { return values{vv::slice(x[0], 0, 1, 3), vv::sum(x[0])}; }, two);
  is_the_same([](values const& x) { return values{vv::reshape(x[0] * 3.0, vv::dims{3, 1})}; }, two);
  is_the_same(
      [](values const& x) {
        tensor const y = x[0] * 3.0;
        return values{vv::slice(y, 0, 0, 2), vv::slice(y, 0, 1, 3)};
      },
      two);
  is_the_same(
      [](values const& x) {
        tensor const y = vv::exp(x[0]);
        return values{y, vv::slice(y, 0, 0, 2), y.detach()};
      },
      two);
  is_the_same(
      [](values const& x) {
        vv::mul_(x[0], 2.0);
        return values{vv::slice(x[0], 0, 0, 2), x[0]};
      },
      two);
  is_the_same(
      [](values const& x) { // views of what was written through a transposed one
        tensor const y = vv::stack(std::vector{vv::exp(x[0]), vv::tanh(x[0])}, 0), t = vv::transpose(y, 0, 1);
        vv::mul_(t, 2.0);
        return values{t, vv::reshape(y, dims{-1}), vv::select(t, 0, 0)};
      },
      two);
  // A write into one shows in the other, and in its gradient.
  auto const pair = [](tensor x) {
    tensor const y = x * 3.0;
    return std::pair{y, vv::select(y, 0, 1)};
  };
  tensor const x = leaf({1, 2, 3});
  auto const [y, part] = vv::aot_function(pair)(x);
  vv::mul_(part, 10.0);
  CHECK(elements(y) == std::vector<double>{3, 60, 9});
  vv::sum(y).backward();
  CHECK(elements(x.grad()) == std::vector<double>{3, 30, 3});
}

TEST_CASE("aot: results are several views of one call", "[aot][exception][AO-S15]") {
  tensor const root = leaf({1, 2, 3});
  auto const f = vv::aot_function([](tensor a) { return vv::unbind(a, vv::axis<0>); });
  auto const parts = f(computed(root));
  CHECK_THROWS_AS(vv::mul_(parts[0], 2.0), vv::autograd_error);
  CHECK(elements(parts[0]) == std::vector<double>{1});
  tensor const a = computed(root);
  auto const others = f(a);
  vv::mul_(a, 2.0);
  CHECK(elements(others[1]) == std::vector<double>{4});
  vv::sum(others[1]).backward();
  CHECK(elements(root.grad()) == std::vector<double>{0, 2, 0});
}

TEST_CASE("aot: arguments that share memory", "[aot][AO-S17]") {
  auto const f = [](tensor a, tensor b) {
    vv::mul_(a, 2.0);
    return a + b;
  };
  auto const compiled = vv::aot_function(f);
  { // parts apart from each other are arguments like others
    tensor const whole = data({1, 2, 3, 4});
    CHECK(elements(compiled(vv::slice(whole, 0, 0, 2), vv::slice(whole, 0, 2, 4))) == std::vector<double>{5, 8});
    CHECK(elements(whole) == std::vector<double>{2, 4, 3, 4});
    CHECK(compiled.versions() == 1);
  }
  { // others are seen through each other
    tensor const whole = data({1, 2, 3});
    CHECK(elements(compiled(vv::slice(whole, 0, 0, 2), vv::slice(whole, 0, 1, 3))) == std::vector<double>{6, 7});
    CHECK(elements(whole) == std::vector<double>{2, 4, 3});
    tensor const same = data({1, 2});
    CHECK(elements(compiled(same, same)) == std::vector<double>{4, 8});
  }
  tensor const x = leaf({1, 2});
  vv::sum(vv::aot_function([](tensor a, tensor b) { return a * b; })(x, x)).backward();
  CHECK(elements(x.grad()) == std::vector<double>{2, 4});
  { // a view that was made in no_grad mode has no part in what its base is
    tensor const w = leaf({3, 4});
    tensor const unseen = [&] {
      vv::no_grad const off;
      return vv::slice(w, 0, 0, 1);
    }();
    vv::sum(vv::aot_function([](tensor a, tensor b) { return a * b; })(w, unseen)).backward();
    CHECK(elements(w.grad()) == std::vector<double>{3, 3});
  }
}

namespace {
/// Its backward doubles what it saved.
struct writes_saved : vv::function<writes_saved> {
  static tensor forward(tensor b) { return vv::clone(b); }
  static auto setup_context(auto ctx, auto const& in, auto const&) { return ctx.save_for_backward(std::get<0>(in)); }
  static auto backward(auto& ctx, tensor g) {
    auto [b] = ctx.saved();
    vv::no_grad const off;
    vv::mul_(b, 2.0);
    return vv::clone(g);
  }
};
struct writes_gradient : vv::function<writes_gradient> {
  static tensor forward(tensor x) { return vv::clone(x); }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static auto backward(auto&, tensor g) { return vv::mul_(g, 2.0); }
};
/// A derivative that is not that of its text.
struct tripled : vv::function<tripled> {
  static tensor forward(tensor x) { return x * 1.0; }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static auto backward(auto&, tensor g) { return g * 3.0; }
};
} // namespace

TEST_CASE("aot: arguments of another shape, and on other memory", "[aot][AO-S07][AO-S08][AO-S09][AO-S10]") {
  auto const two = [] { return values{leaf({1, 2, 3}), data({3, 1, 2})}; };
  is_the_same([](values const& x) { return values{vv::unsqueeze_(x[1], 0) * 2.0, vv::select(x[1], 0, 0)}; }, two);
  is_the_same([](values const& x) { return values{vv::sum(vv::unsqueeze_(x[0], 1) * x[1])}; }, two);
  is_the_same(
      [](values const& x) {
        vv::unsqueeze_(x[0], 0);
        vv::mul_(x[0], 3.0);
        return values{x[0] * 2.0};
      },
      two);
  tensor const m = vv::reshape(data({1, 2, 3, 4, 5, 6}), vv::dims{2, 3});
  tensor const r = vv::aot_function([](tensor a) { return vv::t_(a); })(m);
  CHECK((r.is(m) && m.sizes() == vv::dims{3, 2} && m.strides() == vv::dims{1, 3}));
  CHECK_THROWS_WITH(vv::aot_function([](tensor a) {
                      tensor const before = vv::select(a, 0, 0);
                      vv::t_(a);
                      return before;
                    })(vv::clone(m)),
                    Catch::Contains("before its shape was changed"));
  { // AO-S07
    auto const f = [](tensor a, tensor b) {
      vv::no_grad const off;
      vv::set_(a, b);
      vv::mul_(b, 2.0);
      return a + b;
    };
    for (bool compiled : {false, true}) {
      tensor const a = data({1, 1}), b = data({3, 4});
      tensor const y = compiled ? vv::aot_function(f)(a, b) : f(a, b);
      CHECK(elements(y) == std::vector<double>{12, 16});
      CHECK(elements(a) == std::vector<double>{6, 8});
      CHECK(elements(b) == std::vector<double>{6, 8});
      CHECK(a.shares_storage(b));
    }
  }
  CHECK_THROWS_WITH(vv::aot_function([](tensor a, tensor b) { // AO-S08
                      tensor const view = vv::reshape(a, vv::dims{-1});
                      vv::set_(a, b * 1.0);
                      vv::mul_(view, 2.0);
                      return a;
                    })(data({1, 2}), data({3, 4})),
                    Catch::Contains("frozen"));
  CHECK_THROWS_WITH(vv::aot_function([](tensor a, tensor b) { // AO-S09
                      vv::mul_(a, 2.0);
                      vv::set_(a, b);
                      return a + b;
                    })(data({1, 2}), data({3, 4})),
                    Catch::Contains("cannot be replayed"));
  auto const back = [](tensor a, tensor b) { // AO-S10
    tensor const was = a.detach();
    vv::set_(a, b);
    vv::set_(a, was);
    return a + b;
  };
  tensor const a = data({1, 2}), b = data({3, 4});
  CHECK(elements(vv::aot_function(back)(a, b)) == std::vector<double>{4, 6});
  CHECK((!a.shares_storage(b) && elements(a) == std::vector<double>{1, 2}));
}

TEST_CASE("aot: a backend sees the sizes from before data were assigned", "[aot][VC-S13]") {
  vv::dims seen;
  auto const backend = [&](vv::graph const& g) {
    seen = g.nodes[0].out.sizes;
    return vv::backends::aot_eager(g);
  };
  auto const f = [](tensor x, tensor y) {
    x.set_data(y.data());
    return x * 2.0;
  };
  tensor const x = vv::ones({5, 5}), y = vv::ones({2, 2});
  CHECK(vv::compile(f, backend)(x, y).sizes() == vv::dims{2, 2});
  CHECK(seen == vv::dims{5, 5});
  CHECK(x.sizes() == vv::dims{2, 2});
  CHECK(x.shares_storage(y));
}

TEST_CASE("aot: custom functions have their own derivatives", "[aot]") {
  is_the_same([](values const& x) { return values{tripled::apply(x[0] * 2.0) * x[0]}; },
              [] { return values{leaf({1, 2, 3})}; });
}

TEST_CASE("aot: backward passes that write", "[aot][exception][AO-S18][AO-S19][AO-S20]") {
  auto const f = vv::aot_function([](tensor a, tensor b) { return a * writes_saved::apply(b); });
  tensor const a = leaf({1, 1}), b = data({1, 1});
  vv::sum(f(a, b)).backward();
  CHECK(elements(b) == std::vector<double>{1, 1});
  CHECK(elements(a.grad()) == std::vector<double>{1, 1});

  tensor const root = leaf({1, 1}), non_leaf = computed(root);
  a.zero_grad();
  vv::sum(f(a, non_leaf)).backward();
  CHECK(elements(non_leaf) == std::vector<double>{2, 2});
  CHECK(elements(a.grad()) == std::vector<double>{1, 1});
  CHECK(elements(root.grad()) == std::vector<double>{1, 1});

  tensor const y = vv::sum(f(a, computed(root)));
  CHECK_THROWS_WITH(vv::autograd::grad({y}, {a}, {}, {.create_graph = true}), Catch::Contains("create_graph"));

  auto const g = vv::aot_function([](tensor a) { return writes_gradient::apply(a); });
  CHECK_THROWS_WITH(g(a), Catch::Contains("writes into the gradient that it is given"));
}

TEST_CASE("aot: what a compiled backward pass cannot do", "[aot][exception]") {
  tensor const x = leaf({1, 2});
  auto const f = vv::aot_function([](tensor a) { return vv::sum(vv::exp(a)); });
  auto const g = vv::autograd::grad({f(x)}, {x}, {}, {.create_graph = true});
  CHECK(g[0].requires_grad());
  CHECK_THROWS_WITH(vv::sum(g[0]).backward(), Catch::Contains("cannot be differentiated"));
  CHECK_THROWS_WITH(vv::autograd::grad({vv::sum(g[0])}, {x}, {}, {}, vv::autograd::unused::zeros), // no zeros
                    Catch::Contains("cannot be differentiated"));
  tensor const y = f(x);
  y.backward();
  CHECK_THROWS_AS(y.backward(), vv::autograd_error); // freed
  tensor const z = f(x);
  CHECK_NOTHROW(vv::autograd::grad({z}, {x}, {}, {.retain_graph = true}));
  CHECK_NOTHROW(vv::autograd::grad({z}, {x}));
  // Under a transform it is the function itself.
  CHECK(elements(vv::grad([&](tensor v) { return f(v); })(data({0, 0}))) == std::vector<double>{1, 1});
  CHECK(elements(vv::vmap([&](tensor v) { return f(v); })(vv::zeros({3, 2}))) == std::vector<double>{2, 2, 2});
  // A saved value that is written over is stale.
  tensor const w = leaf({1, 2}), v = computed(w);
  tensor const squares = vv::aot_function([](tensor a) { return a * a; })(v);
  vv::add_(v, 1.0);
  CHECK_THROWS_WITH(vv::sum(squares).backward(), Catch::Contains("modified"));
}

TEST_CASE("aot: random numbers are those of the function", "[aot]") {
  auto const f = [](tensor a) { return vv::sum(a * vv::randn(vv::dims{3}) * vv::exp(a)); };
  auto const run = [&](auto const& g) {
    vv::manual_seed(5);
    tensor const x = leaf({1, 2, 3}), y = g(x);
    y.backward();
    return std::pair{elements(y), elements(x.grad())};
  };
  auto const plain = run(f);
  CHECK(run(vv::aot_function(f)) == plain);
  CHECK(run(vv::aot_function(f, {.partition_fn = [](vv::graph const& g, vv::joint_shape s) {
                               return vv::min_cut_partition(g, s);
                             }})) == plain);
  // What a checkpoint draws again it draws from the state that the forward pass had, at each budget.
  auto const g = [](tensor a) {
    return vv::sum(vv::checkpoint([](tensor v) { return vv::exp(v * vv::randn(vv::dims{3})); }, a));
  };
  auto const again = run(g);
  for (double budget : {1.0, 0.0})
    CHECK(run(vv::aot_function(g, {.partition_fn = [=](vv::graph const& whole, vv::joint_shape s) {
                                 return vv::min_cut_partition(whole, s, {budget});
                               }})) == again);
  vv::manual_seed(7);
  tensor const before = vv::randn(vv::dims{1});
  vv::manual_seed(7);
  (void)vv::aot_function([](tensor a) { return a * 2.0; })(data({1})); // a trace draws nothing
  CHECK(elements(vv::randn(vv::dims{1})) == elements(before));
}

TEST_CASE("aot: graphs are freed, exceptions leave no trace", "[aot][exception]") {
  auto const f = vv::aot_function([](tensor a, tensor b) { return a + b; });
  CHECK_THROWS_AS(f(data({1, 2, 3}), data({1, 2})), vv::shape_error);
  CHECK(f.versions() == 0);
  CHECK(elements(f(data({1, 2, 3}), data({1, 2, 3}))) == std::vector<double>{2, 4, 6});
  CHECK(vv::is_grad_enabled());
  CHECK(!vv::make_fx([](tensor x) { return x * 2.0; })(data({1})).nodes.empty()); // no mode was left on
}

TEST_CASE("aot: operators with functions are differentiated", "[aot][hop]") {
  auto const two = [] { return values{leaf({1, 2, 3}), data({3, 1, 2}), leaf({0.5, -1, 2})}; };
  auto const yes = [](tensor const& t) { return vv::gt(vv::sum(t), 0.0); };
  is_the_same(
      [&](values const& x) {
        return values{
            vv::cond(yes(x[0]), [](tensor v) { return vv::sin(v); }, [](tensor v) { return vv::cos(v); }, x[0])};
      },
      two);
  is_the_same( // what is captured has a gradient too, and so what is captured alone
      [&](values const& x) {
        tensor const y = x[0] * x[2];
        return values{
            vv::cond(
                yes(x[2]), [&](tensor v) { return v * y; }, [&](tensor v) { return v + x[2]; }, x[0]),
            vv::cond(yes(x[1]), [&](tensor v) { return v * y * x[0]; }, [&](tensor v) { return v + x[2]; }, x[1])};
      },
      two);
  is_the_same(
      [](values const& x) {
        auto const [c, ys] = vv::scan([&](tensor c, tensor v) { return std::pair{c * v, vv::sum(x[2]) * c + v}; },
                                      vv::sum(x[0]) * 0.1, x[0]);
        return values{ys * c, vv::map([](tensor v) { return vv::sin(v) * v; }, x[2])};
      },
      two);
  is_the_same(
      [](values const& x) {
        return values{vv::checkpoint([&](tensor v) { return vv::exp(vv::sin(v)) * x[2]; }, x[0])};
      },
      two);
  is_the_same(
      [&](values const& x) { // one in another
        return values{vv::cond(
            yes(x[0]),
            [&](tensor v) {
              return vv::cond(
                  yes(v), [&](tensor u) { return tripled::apply(u) * x[2]; }, [](tensor u) { return u * 2.0; }, v);
            },
            [](tensor v) { return v * 5.0; }, x[0])};
      },
      two);
  tensor const w = leaf({1, 2, 3});
  auto const f = [&](tensor x) {
    return vv::sum(vv::cond(yes(x), [&](tensor v) { return vv::sin(v * w); }, [&](tensor v) { return v * w; }, x));
  };
  auto const gradient_by = [&](auto const& g, tensor const& x) {
    w.zero_grad();
    g(x).backward();
    return elements(w.grad());
  };
  auto const compiled = vv::aot_function(f);
  CHECK(gradient_by(compiled, data({1, 2, 3})) == gradient_by(f, data({1, 2, 3})));
  CHECK(gradient_by(compiled, data({-1, -2, -3})) == gradient_by(f, data({-1, -2, -3})));
  CHECK(gradient_by(compiled, leaf({1, 2, 3})) == gradient_by(f, leaf({1, 2, 3})));
}

TEST_CASE("aot: operators with functions have the gradients that they have without", "[aot][hop][exception]") {
  auto const yes = [](tensor const& t) { return vv::gt(vv::sum(t), 0.0); };
  auto const twice = [](tensor v) { return v * 2.0; };
  // None where nothing requires one.
  tensor const s = data({1, 2}), t = data({3, 4});
  auto const plain = vv::aot_function([&](tensor a, tensor b) {
    return std::pair{
        vv::cond(yes(a), [&](tensor v) { return v * b; }, twice, a), vv::map([&](tensor v) { return v * b; }, a)};
  });
  auto const [c, m] = plain(s, t);
  CHECK_FALSE((c.requires_grad() || m.requires_grad()));
  // A second one by the operands is refused, by what is captured it is right.
  tensor const x = leaf({1, 2}), w = leaf({3, 0.5});
  auto const second = [&](bool by_captured) {
    return [=](tensor a, tensor b) {
      tensor const y = vv::sum(vv::cond(yes(a), [&](tensor v) { return vv::exp(v) * b; }, twice, a));
      tensor const g = vv::autograd::grad({y}, {a}, {}, {.create_graph = true})[0];
      return vv::autograd::grad({vv::sum(g * g)}, {by_captured ? b : a})[0].detach();
    };
  };
  CHECK(elements(vv::aot_function(second(true))(x, w)) == elements(second(true)(x, w)));
  CHECK_THROWS_WITH(vv::aot_function(second(false))(x, w), Catch::Contains("differentiated again by the operands"));
  // What a step captures alone is refused where a trace does not record it.
  CHECK_THROWS_WITH(
      vv::make_fx([&](tensor v) {
        tensor const b = v.detach();
        b.requires_grad_();
        return vv::autograd::grad({vv::sum(vv::map([&](tensor u) { return u * b; }, v)) + vv::sum(b)}, {b})[0].detach();
      })(s),
      Catch::Contains("requires a gradient"));
}

TEST_CASE("aot: a loop of unknown length, while gradients are on though nobody asks for one", "[aot][hop][exception]") {
  tensor const bound = vv::full({}, 99.0), x = data({1, -0.5, 2});
  auto const f = [&](tensor const& a) {
    return vv::while_loop([&](tensor const& v) { return vv::lt(vv::sum(v), bound); },
                          [](tensor const& v) { return v * 2.0 + 1.0; }, a);
  };
  CHECK(vv::is_grad_enabled());
  CHECK(elements(vv::compile(f, vv::backends::aot_eager)(x)) == elements(f(x)));
  tensor const y = vv::clone(x);
  y.requires_grad_();
  CHECK_THROWS_WITH(vv::compile(f, vv::backends::aot_eager)(y),
                    Catch::Contains("its gradient keeps a row for each step"));
}

TEST_CASE("aot: a network is trained step by step as without", "[aot]") {
  auto const step = [](tensor x, tensor y, values w) {
    tensor const hidden = vv::tanh(vv::matmul(x, w[0]) + w[1]), scores = vv::matmul(hidden, w[2]) + w[3];
    return vv::neg(vv::mean(vv::log_softmax(scores, vv::axis<1>) * y));
  };
  auto const trained = [&](auto const& loss_of) {
    vv::manual_seed(1);
    values w{vv::randn(vv::dims{6, 8}), vv::zeros(vv::dims{8}), vv::randn(vv::dims{8, 3}), vv::zeros(vv::dims{3})};
    tensor const x = vv::randn(vv::dims{16, 6}),
                 y = vv::one_hot(vv::argmax(vv::matmul(x, vv::randn(vv::dims{6, 3})), vv::axis<1>), 3);
    for (tensor& p : w) p.requires_grad_();
    std::vector<double> losses;
    for (int k = 0; k < 30; ++k) {
      for (tensor& p : w) p.zero_grad();
      tensor const loss = loss_of(x, y, w);
      loss.backward();
      losses.push_back(loss.item<double>());
      vv::no_grad const off;
      for (tensor& p : w) vv::add_(p, p.grad() * -0.5);
    }
    return losses;
  };
  auto const plain = trained(step);
  CHECK(plain.back() < 0.5 * plain.front());
  for (auto const& losses :
       {trained(vv::compile(step, vv::backends::aot_eager)), trained(vv::compile(step, vv::backends::fused))})
    for (std::size_t k = 0; k < plain.size(); ++k) CHECK(std::abs(losses[k] - plain[k]) < 1e-6);
}

TEST_CASE("a compiled function says which program a call would run, and why another one is made", "[aot][compile]") {
  using Catch::Matchers::Contains;
  tensor const w = data({2, 3, 4}), chooses = vv::full({}, 1.0, vv::dtype::float64);
  auto const f = [&](tensor const& x, int k) {
    return chooses.item<double>() > 0 ? x * w * static_cast<double>(k) : x + w;
  };
  auto const check = [&](auto const& fast) {
    tensor const x = data({1, 2, 3});
    CHECK_THAT(fast.explain(x, 2), Contains("no program was made yet"));
    fast(x, 2);
    CHECK_THAT(fast.explain(x, 2), Contains("runs one of 1 program, the one that was called last"));
    CHECK_THAT(fast.explain(x, 3), Contains("a constant among the arguments is another one"));
    CHECK_THAT(fast.explain(data({1, 2}), 2), Contains("argument 0: sizes [2], but the program is for [3]"));
    CHECK_THAT(fast.explain(vv::to(x, vv::dtype::float32), 2),
               Contains("argument 0: dtype float32, but the program is for float64"));
    CHECK_THAT(fast.explain(leaf({1, 2, 3}), 2), Contains("requires a gradient: yes, but the program is for no"));
    fast(vv::to(x, vv::dtype::float32), 2);
    CHECK_THAT(fast.explain(x, 2), Contains("runs one of 2 programs, with 1 called since it was"));
    CHECK(fast.versions() == 2);
    {
      vv::no_grad const off;
      CHECK_THAT(fast.explain(vv::to(x, vv::dtype::float32), 2), Contains("gradients are off, but were on"));
    }
  };
  auto const fused = vv::compile(f);
  check(fused);
  vv::fill_(chooses, -1.0);
  CHECK_THAT(fused.explain(vv::to(data({1, 2, 3}), vv::dtype::float32), 2),
             Contains("a captured tensor that is read as a number has changed"));
  check(vv::compile([&](tensor const& x, int k) { return x * w * static_cast<double>(k); }, vv::backends::aot_eager));
}

TEST_CASE("what is done to the data of a value behind autograd's back is as without the compiler", "[aot][DT-15]") {
  using function = std::function<tensor(tensor const&)>;
  std::vector<function> const all{
      [](tensor const& v) {
        tensor const y = v * 2.0;
        return vv::fill_(y.data(), 5.0), y * y;
      },
      [](tensor const& v) { // saved before it is written: the gradient uses what was written
        tensor const y = v * 2.0, z = y * y;
        return vv::fill_(y.data(), 5.0), z;
      },
      [](tensor const& v) {
        tensor const y = v * 2.0;
        return y * y.data();
      },
      [](tensor const& v) {
        tensor const y = v * 2.0, d = y.data();
        return vv::mul_(y, 3.0), d + y;
      },
      [](tensor const& v) {
        tensor y = v * 2.0;
        y.set_data(vv::sin(v));
        return y * y;
      }};
  auto const run = [](auto const& f) {
    tensor const a = leaf({1, 2}), y = f(a);
    vv::sum(y).backward();
    return std::pair(elements(y.detach()), elements(a.grad()));
  };
  for (function const& f : all) {
    CHECK(run(vv::compile(f, vv::backends::aot_eager)) == run(f));
    CHECK(run(vv::compile(f, vv::backends::fused)) == run(f));
  }
  // A graph on real values has the value without its history, and refuses what is written through it.
  vv::graph const read = vv::make_fx(all[2])(data({1, 2}));
  CHECK(run([&](tensor const& a) { return vv::interpret(read, vv::boxed_args(a))[0]; }) == run(all[2]));
  CHECK_THROWS_AS(vv::make_fx(all[0])(data({1, 2})), vv::value_error);
}

TEST_CASE("aot: what is drawn and not used is drawn all the same", "[aot]") {
  auto const f = [](tensor const& x) {
    vv::randn(vv::dims{3});
    return x * vv::randn(vv::dims{3});
  };
  auto const run = [](auto const& g) {
    tensor const x = leaf({1, 2, 3});
    vv::manual_seed(5);
    tensor const y = g(x);
    vv::sum(y * vv::randn(vv::dims{3})).backward();
    return std::pair(elements(y.detach()), elements(x.grad()));
  };
  CHECK(run(vv::compile(f, vv::backends::aot_eager)) == run(f));
  CHECK(run(vv::compile(f, vv::backends::fused)) == run(f));
  auto const least = [](vv::graph const& g, vv::joint_shape s) { return vv::min_cut_partition(g, s); };
  CHECK(run(vv::aot_function(f, {.partition_fn = least})) == run(f));
}

TEST_CASE("aot: a captured tensor that is returned and used by nobody", "[aot]") {
  tensor const plain = data({1, 2}), trained = leaf({3, 4});
  for (tensor const& c : {plain, trained})
    for (tensor const& x : {data({5, 6}), leaf({5, 6})}) {
      auto const y = vv::compile([&](tensor const& a) { return values{a * 2.0, c}; }, vv::backends::fused)(x);
      CHECK(y[1].is(c));
      CHECK(elements(y[0].detach()) == std::vector<double>{10, 12});
    }
}

TEST_CASE("aot: numbers that a loop draws and nobody uses are drawn", "[aot][random]") {
  tensor const x = data({1, 2});
  auto const f = [](tensor const& v) {
    auto const draw = [](tensor const& u) { return u + vv::randn({}, dtype::float64); };
    (void)vv::map(draw, v);
    (void)vv::checkpoint(draw, v);
    return vv::randn({3}, dtype::float64) + vv::sum(v);
  };
  auto const drawn = [&](auto const& g) {
    vv::manual_seed(5);
    return g(x);
  };
  for (bool const leaf : {false, true}) {
    x.requires_grad_(leaf);
    tensor const want = drawn(f);
    CHECK(elements(drawn(vv::aot_function(f))) == elements(want));
    CHECK(elements(drawn(vv::compile(f, vv::backends::fused))) == elements(want));
    CHECK(elements(drawn(vv::compile(f))) == elements(want));
  }
}

TEST_CASE("aot: gradients of a cond in a loop whose branches lay them out otherwise", "[aot][hop]") {
  auto const two = [] { return values{leaf({1, -2, 3}), leaf({0.5, -1, 2, 3, 1, -1})}; };
  auto const by = [](auto const& f, auto const& g) {
    return [f, g](values const& x) {
      tensor const h = vv::reshape(x[1] * 2.0, dims{2, 3});
      return values{vv::map(
          [&](tensor v) {
            return vv::cond(vv::gt(v, 0.0), [&](tensor u) { return f(u, h); }, [&](tensor u) { return g(u, h); }, v);
          },
          x[0])};
    };
  };
  auto const expanded = [](tensor u, tensor h) { return u * vv::sum(h); };
  auto const part = [](tensor u, tensor h) { return u + vv::sum(vv::select(h, 0, 0)); };
  auto const transposed = [](tensor u, tensor h) {
    tensor const t = vv::transpose(h, 0, 1);
    return u * vv::sum(t * t * vv::reshape(vv::arange(6, dtype::float64), dims{3, 2}));
  };
  is_the_same(by(expanded, part), two);
  is_the_same(by(transposed, part), two);
  is_the_same(by(transposed, expanded), two);
}

TEST_CASE("aot: a captured tensor that is read as a number is asked at each call", "[aot][compile]") {
  for (auto const& backend : {vv::graph_compiler(vv::backends::aot_eager), vv::graph_compiler(vv::backends::fused)}) {
    tensor const w = vv::full({}, 2.0, dtype::float64);
    auto const f = [&](tensor x) { return w.item<double>() > 1 ? x * w.item<double>() : x + 5.0; };
    auto const compiled = vv::aot_function(f, {.fw_compiler = backend});
    for (double v : {2.0, 0.0, 3.0, 3.0}) {
      vv::fill_(w, v);
      tensor const x = leaf({1, 2}), z = leaf({1, 2});
      vv::sum(f(x)).backward(), vv::sum(compiled(z)).backward();
      CHECK(elements(compiled(data({1, 2}))) == elements(f(data({1, 2}))));
      CHECK(elements(z.grad()) == elements(x.grad()));
    }
    CHECK(compiled.versions() == 2); // of the number that it is, with and without a gradient
  }
  tensor const w = vv::full({}, 2.0, dtype::float64);
  auto const scaled = vv::compile([&](tensor x) { return x * w.item<double>() + 1.0; }, vv::backends::aot_eager);
  for (vv::index_t n : {2, 3, 4, 5}) { // sizes that are free do not make it forget
    vv::fill_(w, static_cast<double>(n));
    CHECK(elements(scaled(vv::ones({n}, dtype::float64))) == std::vector<double>(static_cast<std::size_t>(n), n + 1.0));
  }
}

TEST_CASE("aot: a number that a program would depend on is refused with a remedy", "[aot]") {
  tensor const x = vector_of({1, 0, 2});
  for (auto const& f : {std::function<tensor(tensor)>([](tensor v) { return vv::nonzero(v); }),
                        std::function<tensor(tensor)>([](tensor v) { return v * v[0].item(); })}) {
    CHECK_THROWS_WITH(vv::aot_function(f)(x), ContainsText("depends on data") && ContainsText("use where or cond"));
    CHECK(vv::this_thread_state.quiet());
  }
  // and so is a captured one whose gradient is asked for
  tensor const n = tensor::from_number(4.0).requires_grad_();
  auto const scaled = [n](tensor v) { return tensor(vv::sum(v * n)); };
  CHECK_THROWS_WITH(vv::aot_function(scaled)(x), ContainsText("captures a number") && ContainsText("as an argument"));
  CHECK(!n.grad().defined());
  vv::aot_function([](tensor v, tensor k) { return tensor(vv::sum(v * k)); })(x, n).backward();
  CHECK(n.grad().item() == 3);
}

TEST_CASE("aot: made inside of scopes that pack saved values", "[aot][checkpoint]") {
  tensor const x = leaf({0.5, -1, 2}), w = leaf({1, 2, 3});
  auto const f = vv::aot_function([&](tensor v) { return vv::exp(v) * w; });
  vv::sum(vv::checkpoint([&](tensor v) { return f(vv::sin(v)); }, x)).backward();
  tensor const gx = x.grad(), gw = w.grad();
  x.zero_grad(), w.zero_grad();
  vv::sum(vv::exp(vv::sin(x)) * w).backward();
  CHECK(difference(gx, x.grad(), 1e-14) == "");
  CHECK(difference(gw, w.grad(), 1e-14) == "");
  auto const g = vv::aot_function([&](tensor v) { return vv::exp(v) * w; });
  x.zero_grad();
  tensor y;
  {
    vv::saved_tensors_hooks const on([](tensor const& t) { return vv::clone(t.detach()); },
                                     [](tensor const& t) { return t; });
    y = g(x);
  }
  vv::sum(y).backward();
  CHECK(difference(x.grad(), vv::exp(x.detach()) * w.detach(), 1e-14) == "");
}

TEST_CASE("aot: an argument that is transposed in place is what its gradient needs", "[aot][in_place]") {
  tensor const x = leaf({1, 2, 3, 4, 5, 6});
  auto const f = [&](tensor a) {
    vv::transpose_(a, 0, 1);
    return vv::matmul(vv::reshape(x, dims{2, 3}), a);
  };
  auto const compiled = vv::aot_function(f);
  tensor const a = vv::reshape(data({1, 2, 0, 1, 1, 3}), dims{2, 3}), b = vv::clone(a);
  vv::sum(f(a)).backward();
  auto const right = elements(x.grad());
  x.zero_grad();
  vv::sum(compiled(b)).backward();
  CHECK(elements(x.grad()) == right);
  CHECK(b.sizes() == dims{3, 2});
  tensor const c = vv::reshape(data({1, 2, 0, 1, 1, 3}), dims{2, 3}), y = compiled(c);
  vv::mul_(c, 2.0);
  CHECK_THROWS_AS(vv::sum(y).backward(), vv::autograd_error);
}

TEST_CASE("aot: a write into a view of what is captured is refused under functionalize too", "[aot][functionalize]") {
  tensor const w = vv::ones({1, 2}, vv::dtype::float64), x = vv::ones({}, vv::dtype::float64);
  auto const f = [w](tensor const& v) {
    vv::cos_(vv::select(w, 1, 0));
    return v * w;
  };
  CHECK_THROWS_AS(vv::compile(vv::functionalize(f), vv::backends::aot_eager)(x), vv::error);
  CHECK_THROWS_AS(vv::compile(f, vv::backends::aot_eager)(x), vv::error);
  CHECK(vv::equal(w, vv::ones({1, 2}, vv::dtype::float64)));
  (void)vv::functionalize(f)(x);
  CHECK_FALSE(vv::equal(w, vv::ones({1, 2}, vv::dtype::float64)));
}

TEST_CASE("aot: writes hidden from autograd stay hidden", "[aot]") {
  using writer = tensor (*)(tensor const&);
  for (writer const f :
       {writer([](tensor const& v) { return vv::mul_(v.data(), 2.0), v * 3.0; }), writer([](tensor const& v) {
          tensor const o = vv::cos(v);
          return vv::mul_(vv::select(v.data(), 0, 1), 3.0), o * 1.0;
        }),
        writer([](tensor const& v) {
          tensor const w = v.data(), o = v * 1.0;
          return vv::add_(w, o.detach()), vv::fill_(w[0].data(), 7.0), o;
        }),
        writer([](tensor const& v) { // one that is not
          tensor const o = v * 1.0;
          return vv::mul_(v.data(), 2.0), vv::mul_(v.detach(), 3.0), o;
        })})
    for (auto const& backend : {vv::graph_compiler(vv::backends::aot_eager), vv::graph_compiler(vv::backends::fused)}) {
      auto const outcome = [&](std::function<tensor(tensor const&)> const& g) {
        tensor const l = leaf({1, 2}), x = l * 1.0, s = vv::sin(x);
        std::vector<double> r;
        auto const note = [&](tensor const& t) {
          for (double e : elements(t)) r.push_back(e);
        };
        note(g(x)), note(x);
        r.push_back(x.version());
        try {
          vv::sum(s).backward();
          note(l.grad());
        } catch (vv::autograd_error const&) { r.push_back(-1); }
        return r;
      };
      CHECK(outcome(vv::compile(f, backend)) == outcome(f));
    }
  auto const f = [](tensor const& v) { return vv::mul_(vv::select(v.data(), 0, 1), 3.0), vv::cos(v) * 1.0; };
  tensor const a = leaf({1, 2}), b = leaf({1, 2});
  vv::sum(vv::compile(f, vv::backends::aot_eager)(a * 1.0)).backward();
  vv::sum(f(b * 1.0)).backward();
  CHECK(elements(a.grad()) == elements(b.grad()));
}
