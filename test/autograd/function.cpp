// SPDX-License-Identifier: BSL-1.0
// Custom functions on tensors (semantics AF); on static values: test/static/custom_function.cpp.
#include "autograd_test.hpp"

using namespace autograd_test;

namespace {
tensor grad1(tensor const& y, tensor const& x, bool record = false) {
  return vv::autograd::grad<>({y}, {x}, {}, {.retain_graph = true, .create_graph = record})[0];
}

std::vector<std::array<bool, 2>> asked; // what needs_input_grad was
struct product : vv::function<product> {
  static constexpr bool generate_vmap_rule = true;
  static auto forward(auto x, auto y) { return vv::mul(x, y); }
  static auto setup_context(auto ctx, auto const& in, auto const&) {
    return ctx.save_for_backward(std::get<0>(in), std::get<1>(in));
  }
  static auto backward(auto& ctx, auto g) {
    auto [x, y] = ctx.saved();
    asked.push_back(ctx.needs_input_grad);
    return std::tuple(vv::mul(g, y), vv::mul(g, x));
  }
};
struct my_exp : vv::function<my_exp> {
  static constexpr bool generate_vmap_rule = true;
  static auto forward(auto x) { return vv::exp(x); }
  static auto setup_context(auto ctx, auto const&, auto const& y) {
    return ctx.save_for_backward(y).save_for_forward(y);
  }
  static auto backward(auto& ctx, auto g) {
    auto [y] = ctx.saved();
    return vv::mul(g, y);
  }
  static auto jvp(auto& ctx, auto t) {
    auto [y] = ctx.saved_for_forward();
    return vv::mul(t, y);
  }
};
/// One tensor as two results.
struct twice : vv::function<twice> {
  static constexpr bool generate_vmap_rule = true;
  static auto forward(auto x) {
    auto const y = vv::mul(x, 2.0);
    return std::tuple(y, y);
  }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static auto backward(auto&, auto g, auto h) { return vv::add(vv::mul(g, 5.0), vv::mul(h, 7.0)); }
};
} // namespace

TEST_CASE("custom function: recorded eagerly, to any order", "[autograd][function]") {
  tensor const x = leaf({0.5, -1});
  tensor const y = my_exp::apply(x);
  CHECK(elements(y) == elements(vv::exp(x.detach())));
  CHECK((y.requires_grad() && !y.is_leaf()));
  CHECK_THAT(y.grad_fn().name(), ContainsText("my_exp"));
  tensor const g = grad1(vv::sum(y * y), x, true);
  tensor const h = grad1(vv::sum(g), x, true);
  tensor const t = grad1(vv::sum(h), x);
  for (index_t k = 0; k < 2; ++k) {
    double const e = std::exp(2 * element(x, k));
    CHECK(element(g, k) == Approx(2 * e));
    CHECK(element(h, k) == Approx(4 * e));
    CHECK(element(t, k) == Approx(8 * e));
  }
  {
    vv::no_grad const off;
    CHECK_FALSE(my_exp::apply(x).requires_grad());
  }
  CHECK_FALSE(my_exp::apply(vec({1})).requires_grad());
}

TEST_CASE("custom function: needs_input_grad at every level", "[autograd][function][AF-S02]") {
  asked.clear();
  auto const f = [](tensor const& x, tensor const& y) { return product::apply(x, y); };
  CHECK(vv::grad(f)(number(2), number(3)).item<double>() == 3);
  REQUIRE_FALSE(asked.empty());
  for (auto const& a : asked) CHECK(a == std::array{true, false});
  asked.clear();
  auto const twice = [&](tensor const& x) {
    return vv::grad([&](tensor const& v) { return product::apply(v, number(3)) * v; })(x);
  };
  CHECK(vv::grad(twice)(number(2)).item<double>() == 6);
  REQUIRE(asked.size() >= 2);
  for (auto const& a : asked) CHECK(a == std::array{true, false});
  asked.clear();
  tensor const w = leaf(3);
  product::apply(number(2), w).backward();
  CHECK(asked == std::vector{std::array{false, true}});
  CHECK(grad_of(w) == list{2});
}

namespace {
struct unmapped : vv::function<unmapped> {
  static auto forward(auto x) { return vv::sin(x); }
  static auto setup_context(auto ctx, auto const& in, auto const&) { return ctx.save_for_backward(std::get<0>(in)); }
  static auto backward(auto& ctx, auto g) {
    auto [x] = ctx.saved();
    return vv::mul(g, vv::cos(x));
  }
};
std::vector<std::pair<index_t, vv::random_policy>> infos;
struct own_vmap : vv::function<own_vmap> {
  static auto forward(auto x) { return vv::sin(x); }
  static auto setup_context(auto ctx, auto const& in, auto const&) { return ctx.save_for_backward(std::get<0>(in)); }
  static auto backward(auto& ctx, auto g) {
    auto [x] = ctx.saved();
    return vv::mul(g, vv::cos(x));
  }
  static auto vmap(vv::vmap_info const& info, auto const& mapped, auto x) {
    CHECK(mapped[0]);
    infos.push_back({info.batch_size, info.randomness});
    return std::pair(own_vmap::apply(x), true);
  }
};
struct constant_under_vmap : vv::function<constant_under_vmap> { // results without a batch
  static auto forward(auto x) { return std::tuple(x * 0, x * 1); }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static auto vmap(vv::vmap_info const&, auto const&, auto x) {
    return std::pair(std::tuple(number(0), x * 1), std::array{false, true});
  }
};
struct all_constant : vv::function<all_constant> {
  static auto forward(auto x) { return x * 0; }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static auto vmap(vv::vmap_info const&, auto const&, auto) { return std::pair(number(7), vv::none); }
};
} // namespace

TEST_CASE("custom function: vmap needs a rule, generated or written",
          "[autograd][function][vmap][AF-S06][AF-S08][AF-S11]") {
  tensor const x = vec({0.5, 1, 2});
  CHECK_THROWS_AS(vv::vmap([](tensor const& v) { return unmapped::apply(v); })(x), vv::transform_error);
  CHECK_THROWS_WITH(vv::vmap([](tensor const& v) { return unmapped::apply(v); })(x),
                    ContainsText("unmapped") && ContainsText("no vmap support"));
  CHECK_NOTHROW(vv::vmap([&](tensor const& v) { return v * unmapped::apply(number(1)); })(
      x)); // nothing mapped: the level is skipped (AF-23)
  infos.clear();
  auto const f = [](tensor const& v) { return own_vmap::apply(v); };
  tensor const ten = from(list(10, 0.5), {10});
  CHECK(element(vv::vmap(f)(ten), 3) == Approx(std::sin(0.5)));
  (void)vv::vmap(f, vv::randomness::different)(ten);
  (void)vv::vmap(f, vv::randomness::same)(ten);
  CHECK(infos == std::vector<std::pair<index_t, vv::random_policy>>{{10, vv::random_policy::error},
                                                                    {10, vv::random_policy::different},
                                                                    {10, vv::random_policy::same}});
  CHECK(elements(vv::vmap(vv::grad(f))(x)) == elements(vv::cos(x)));
  CHECK(elements(vv::grad([&](tensor const& v) { return vv::sum(vv::vmap(f)(v)); })(x)) == elements(vv::cos(x)));
  auto const [a, b] = vv::vmap([](tensor const& v) { return constant_under_vmap::apply(v); })(x);
  CHECK(elements(a) == list{0, 0, 0});
  CHECK(elements(b) == elements(x));
  CHECK(elements(vv::vmap([](tensor const& v) { return all_constant::apply(v); })(x)) == list{7, 7, 7});
  CHECK(thread_is_clean());
}

namespace {
struct combined : vv::function<combined> { // forward fills the context
  static auto forward(auto& ctx, auto x) {
    ctx.save_for_backward(x);
    ctx.save_for_backward(x * 2); // the last call counts
    return vv::sin(x);
  }
  static auto backward(auto& ctx, auto g) { return vv::mul(g, vv::cos(ctx.saved()[0] * 0.5)); }
};
} // namespace

TEST_CASE("custom function: one that fills its context in forward works outside of transforms only",
          "[autograd][function][AF-S16][AF-S30]") {
  tensor const x = leaf(2);
  tensor const y = combined::apply(x);
  y.backward({}, true);
  CHECK(x.grad().item<double>() == Approx(std::cos(2.0)));
  y.backward();
  CHECK_THROWS_AS(y.backward(), vv::autograd_error);
  CHECK_THROWS_WITH(y.backward(), ContainsText("retain_graph"));
  auto const f = [](tensor const& v) { return combined::apply(v); };
  auto const refused = [](auto const& g) {
    CHECK_THROWS_AS(g(), vv::transform_error);
    CHECK_THROWS_WITH(g(), ContainsText("must override setup_context") && ContainsText("combined"));
  };
  tensor const n = number(1);
  refused([&] { vv::vmap(f)(vec({1, 2})); });
  refused([&] { vv::grad(f)(n); });
  refused([&] { vv::value_and_grad(f)(n); });
  refused([&] { vv::jvp(f, std::tuple(n), std::tuple(n)); });
  refused([&] { vv::jacrev(f)(n); });
  refused([&] { vv::jacfwd(f)(n); });
  refused([&] { vv::hessian(f)(n); });
  refused([&] { vv::functionalize(f)(n); });
  CHECK(thread_is_clean());
}

namespace {
struct sin_by_jvp : vv::function<sin_by_jvp> {
  static constexpr bool generate_vmap_rule = true;
  static auto forward(auto x) {
    auto const one = vv::ones_like(x);
    return vv::jvp([](auto v) { return vv::neg(vv::cos(v)); }, std::tuple(x), std::tuple(one)).second;
  }
  static auto setup_context(auto ctx, auto const& in, auto const&) { return ctx.save_for_backward(std::get<0>(in)); }
  static auto backward(auto& ctx, auto g) {
    auto [x] = ctx.saved();
    return vv::jvp([](auto v) { return vv::sin(v); }, std::tuple(x), std::tuple(g)).second;
  }
};
struct adds_in_place : vv::function<adds_in_place> {
  static auto forward(tensor a, tensor b) {
    vv::add_(a, b);
    return std::tuple(a, b + 2);
  }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx.template mark_dirty<0>(); }
  static auto backward(auto&, auto ga, auto gb) { return std::tuple(ga, ga + gb); }
};
struct doubles_in_place : vv::function<doubles_in_place> {
  static auto forward(tensor a) {
    vv::mul_(a, 2);
    return a;
  }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx.template mark_dirty<0>(); }
  static auto backward(auto&, auto g) { return g * 2; }
};
struct adds_into_second : vv::function<adds_into_second> {
  static auto forward(tensor a, tensor b) {
    vv::add_(b, a);
    return b;
  }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx.template mark_dirty<1>(); }
  static auto backward(auto&, auto g) { return std::tuple(g * 10, g * 100); }
};
struct forgets_to_return : vv::function<forgets_to_return> {
  static auto forward(tensor a) {
    vv::mul_(a, 2);
    return a * 1;
  }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx.template mark_dirty<0>(); }
  static auto backward(auto&, auto g) { return g * 2; }
};
} // namespace

TEST_CASE("custom function: jvp inside of forward and backward", "[autograd][function][jvp][AF-S17]") {
  tensor const x = leaf(0.7);
  tensor const y = sin_by_jvp::apply(x);
  CHECK(y.item<double>() == Approx(std::sin(0.7)));
  CHECK(grad1(y, x).item<double>() == Approx(std::cos(0.7)));
  CHECK(vv::grad([](tensor const& v) { return sin_by_jvp::apply(v); })(number(0.7)).item<double>() ==
        Approx(std::cos(0.7)));
  CHECK(element(vv::vmap(vv::grad([](tensor const& v) { return sin_by_jvp::apply(v); }))(vec({0.7, 1})), 1) ==
        Approx(std::cos(1.0)));
}

TEST_CASE("custom function: operands marked dirty", "[autograd][function][in_place][AF-S19]") { // AF-6
  tensor const x = vec({1, 2}), y = leaf({3, 4});
  auto const [a, b] = adds_in_place::apply(x, y);
  CHECK(a.is(x));
  CHECK(x.version() == 1);
  CHECK(x.requires_grad());
  CHECK_THAT(x.grad_fn().name(), ContainsText("adds_in_place"));
  vv::sum(a).backward();
  CHECK(grad_of(y) == list{1, 1});
  CHECK(elements(b) == list{5, 6});

  tensor const l = leaf({1, 2}); // through its history
  tensor const c = l * 3;
  CHECK(doubles_in_place::apply(c).is(c));
  vv::sum(c * c).backward();
  CHECK(grad_of(l) == list{72, 144});
  CHECK_THROWS_AS(doubles_in_place::apply(l), vv::autograd_error); // a leaf
  CHECK_THROWS_WITH(doubles_in_place::apply(l), ContainsText("leaf"));
  CHECK_THROWS_AS(forgets_to_return::apply(l * 1), vv::autograd_error);
  CHECK_THROWS_WITH(forgets_to_return::apply(l * 1), ContainsText("must be returned"));
  CHECK(vv::grad([](tensor const& v) { return doubles_in_place::apply(v * 1); })(number(1)).item<double>() == 2);
  CHECK(thread_is_clean());

  tensor const m = leaf({1, 2}); // a view: the base follows
  tensor const base = m * 1;
  doubles_in_place::apply(vv::slice(base, 0, 0, 1));
  CHECK(elements(base) == list{2, 2});
  vv::sum(base * base).backward();
  CHECK(grad_of(m) == list{8, 4});

  tensor const p = leaf({1, 1}), q = leaf({1, 1}); // the second operand
  tensor const d = q * 1;
  CHECK(adds_into_second::apply(p, d).is(d));
  vv::sum(d).backward();
  CHECK(grad_of(p) == list{10, 10});
  CHECK(grad_of(q) == list{100, 100});
  p.zero_grad();
  q.zero_grad();
  tensor const e = q * 1; // ... and a view at that
  adds_into_second::apply(vv::slice(p, 0, 0, 1), vv::slice(e, 0, 1, 2));
  CHECK(elements(e) == list{1, 2});
  vv::sum(e * vec({1, 3})).backward();
  CHECK(grad_of(p) == list{30, 0});
  CHECK(grad_of(q) == list{1, 300});
  // a view, and several results
  tensor const f = leaf({1, 2}) * 1;
  CHECK_THROWS_AS(adds_in_place::apply(vv::slice(f, 0, 0, 1), leaf(list{1})), vv::autograd_error);
}

namespace {
std::vector<list> incoming;
struct mixed : vv::function<mixed> {
  static auto forward(auto x) { return std::tuple(x + 1, x + 2); }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx.template mark_non_differentiable<0>(); }
  static auto backward(auto&, auto g0, auto g1) {
    incoming = {elements(g0), elements(g1)};
    return g1;
  }
};
struct with_integers : vv::function<with_integers> {
  static auto forward(auto x) { return std::tuple(x * 2, vv::argmax(x)); }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static auto backward(auto&, auto g, auto) { return g * 2; }
};
std::vector<bool> arrived;
template <bool Materialize>
struct two_ways : vv::function<two_ways<Materialize>> {
  static auto forward(auto x) { return std::tuple(x * 2, x * 3); }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx.set_materialize_grads(Materialize); }
  static auto backward(auto&, tensor a, tensor b) {
    arrived = {a.defined(), b.defined()};
    tensor r;
    if (a.defined()) r = a * 2;
    if (b.defined()) r = r.defined() ? tensor(r + b * 3) : tensor(b * 3);
    return r;
  }
};
struct gives_nothing : vv::function<gives_nothing> {
  static auto forward(auto x) { return x * 1; }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx.set_materialize_grads(false); }
  static auto backward(auto&, tensor g) {
    arrived = {g.defined()};
    return tensor();
  }
};
} // namespace

TEST_CASE("custom function: results without derivative, and gradients that do not arrive",
          "[autograd][function][AF-S20][AF-S21]") {
  tensor const x = leaf({1, 2});
  auto const [a, b] = mixed::apply(x);
  CHECK((!a.requires_grad() && b.requires_grad()));
  vv::sum(b).backward();
  CHECK(incoming == std::vector<list>{{0, 0}, {1, 1}});
  CHECK(grad_of(x) == list{1, 1});
  auto const [y, n] = with_integers::apply(x);
  CHECK((n.dtype() == dtype::int64 && !n.requires_grad()));
  x.zero_grad();
  vv::sum(y).backward();
  CHECK(grad_of(x) == list{2, 2});
  x.zero_grad();
  vv::sum(std::get<1>(two_ways<true>::apply(x))).backward();
  CHECK(arrived == std::vector{true, true});
  CHECK(grad_of(x) == list{3, 3});
  vv::sum(std::get<1>(two_ways<false>::apply(x))).backward();
  CHECK(arrived == std::vector{false, true});
  CHECK(grad_of(x) == list{6, 6});
  x.zero_grad();
  gives_nothing::apply(gives_nothing::apply(x)).backward(vec({1, 1})); // undefined all the way
  CHECK(arrived == std::vector{false});
  CHECK_FALSE(x.grad().defined());
}

namespace {
struct wrong_shape : vv::function<wrong_shape> {
  static auto forward(auto x) { return x * 1; }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static auto backward(auto&, auto) { return from(list(10, 1), {10}); }
};
struct wider : vv::function<wider> { // a gradient that is summed to the operand's shape, of another dtype
  static auto forward(auto x, auto y) { return x * y; }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static auto backward(auto&, auto g) { return std::tuple(vv::to(g, dtype::float32), g); }
};
struct too_many : vv::function<too_many> {
  static auto forward(tensor x) { return x * 1; }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static auto backward(auto&, tensor g) { return std::tuple(g, g); }
};
struct too_few : vv::function<too_few> {
  static auto forward(tensor x, tensor y) { return x * y; }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static auto backward(auto&, tensor g) { return g; }
};
struct no_backward : vv::function<no_backward> {
  static constexpr bool generate_vmap_rule = true;
  static auto forward(auto x) { return x * 1; }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
};
struct no_context : vv::function<no_context> {
  static constexpr bool generate_vmap_rule = true;
  static auto forward(auto x) { return x * 1; }
  static auto backward(auto&, auto g) { return g; }
};
struct sum_of_two : vv::function<sum_of_two> {
  static constexpr bool generate_vmap_rule = true;
  static auto forward(auto a, auto b) { return vv::add(a, b); }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static auto backward(auto&, auto g) { return std::tuple(g, vv::mul(g, 2)); }
};
struct scaled : vv::function<scaled> { // arguments that are no values
  static constexpr bool generate_vmap_rule = true;
  static auto forward(auto x, int n, std::string const& what) { return what == "double" ? x * (2 * n) : x * n; }
  static auto setup_context(auto ctx, auto const& in, auto const&) {
    return ctx.keep(std::get<1>(in), std::get<2>(in));
  }
  static auto backward(auto& ctx, auto g) {
    auto const& [n, what] = ctx.kept();
    CHECK(ctx.needs_input_grad == std::array{true, false, false});
    return std::tuple(what == "double" ? g * (2 * n) : g * n, vv::none, vv::none);
  }
};
struct once : vv::function<once> {
  static constexpr bool once_differentiable = true;
  static auto forward(auto x) { return vv::sin(x); }
  static auto setup_context(auto ctx, auto const& in, auto const&) { return ctx.save_for_backward(std::get<0>(in)); }
  static auto backward(auto& ctx, auto g) {
    CHECK_FALSE(vv::is_grad_enabled());
    auto [x] = ctx.saved();
    return g * vv::cos(x);
  }
};
} // namespace

TEST_CASE("custom function: what backward returns is checked",
          "[autograd][function][AF-S25][AF-S30][AF-S32]") { // AF-11
  tensor const x = from(list(25, 1), {5, 5}).requires_grad_();
  CHECK_THROWS_AS(vv::sum(wrong_shape::apply(x)).backward(), vv::autograd_error);
  CHECK_THROWS_WITH(vv::sum(wrong_shape::apply(x)).backward(),
                    ContainsText("expected shape") && ContainsText("[5, 5]") && ContainsText("wrong_shape"));
  tensor const a = leaf({1, 2}), b = leaf({1, 1}, {2, 1});
  vv::sum(wider::apply(a, b)).backward();
  CHECK((a.grad().dtype() == dtype::float64 && grad_of(a) == list{2, 2}));
  CHECK((b.grad().sizes() == dims{2, 1} && grad_of(b) == list{2, 2}));
  CHECK_THROWS_WITH(too_many::apply(leaf(1)).backward(), ContainsText("expected 1, got 2"));
  CHECK_THROWS_WITH(too_few::apply(leaf(1), leaf(2)).backward(), ContainsText("expected 2, got 1"));
  CHECK_THROWS_WITH(no_backward::apply(leaf(1)).backward(), ContainsText("no_backward") && ContainsText("backward"));
  CHECK_THROWS_WITH(no_context::apply(leaf(1)), ContainsText("must override setup_context"));
  CHECK_THROWS_WITH(
      vv::jvp([](tensor const& v) { return product::apply(v, v); }, std::tuple(number(1)), std::tuple(number(1))),
      ContainsText("product") && ContainsText("jvp"));
  tensor const s = leaf(1);
  sum_of_two::apply(s, s).backward(); // one operand twice
  CHECK(grad_of(s) == list{3});
  CHECK(vv::grad([](tensor const& v) { return sum_of_two::apply(v, v); })(number(1)).item<double>() == 3);
  CHECK(elements(vv::vmap(vv::grad([](tensor const& v) { return sum_of_two::apply(v, v); }))(vec({1, 2}))) ==
        list{3, 3});
  CHECK(thread_is_clean());
}

namespace {
struct with_nothing_more : vv::function<with_nothing_more> {
  static auto forward(tensor x) { return x * 2; }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static auto backward(auto&, tensor g) { return std::tuple(g * 2, vv::none, tensor()); }
};
struct one_tangent : vv::function<one_tangent> {
  static auto forward(tensor x) { return std::tuple(x * 2, x * 3); }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static auto backward(auto&, tensor g, tensor h) { return g * 2 + h * 3; }
  static auto jvp(auto&, tensor t) { return t * 2; }
};
struct keeps_intermediate : vv::function<keeps_intermediate> {
  static tensor forward(auto& ctx, tensor x) {
    tensor const twice = x * 2;
    ctx.save_for_backward(x, twice);
    return x * twice;
  }
  static auto backward(auto& ctx, tensor g) { return g * 2 * ctx.saved()[1]; }
};
struct keeps_outside : vv::function<keeps_outside> { // ... as transforms take it
  static inline tensor twice;
  static tensor forward(tensor x) {
    twice = x * 2;
    return x * twice;
  }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx.save_for_backward(twice); }
  static auto backward(auto& ctx, tensor g) {
    auto [t] = ctx.saved();
    return g * 2 * t;
  }
};
struct two_views : vv::function<two_views> {
  static auto forward(tensor x) { return std::tuple(vv::slice(x, 0, 0, 1), vv::slice(x, 0, 1, 2)); }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static auto backward(auto&, tensor g, tensor h) { return vv::cat(std::tuple(g, h), 0); }
};
} // namespace

TEST_CASE("custom function: nothing for arguments that there are not, and tangents for every result",
          "[autograd][function]") { // AF-10, AF-14
  tensor const x = leaf({1, 2});
  vv::sum(with_nothing_more::apply(x)).backward();
  CHECK(grad_of(x) == list{2, 2});
  CHECK_THROWS_WITH(vv::jvp([](tensor const& v) { return std::get<0>(one_tangent::apply(v)); }, std::tuple(vec({1})),
                            std::tuple(vec({1}))),
                    ContainsText("1 tangents for 2 results"));
  CHECK(thread_is_clean());
}

TEST_CASE("custom function: a value saved that is neither argument nor result has no second derivative",
          "[autograd][function]") { // AF-4
  tensor const x = leaf(3);
  CHECK(grad1(keeps_intermediate::apply(x), x).item<double>() == 12);
  tensor const g = grad1(keeps_intermediate::apply(x), x, true); // 4 x
  CHECK(g.item<double>() == 12);
  CHECK_THROWS_AS(g.backward({}, true), vv::autograd_error);
  CHECK_THROWS_WITH(g.backward({}, true),
                    ContainsText("keeps_intermediate") && ContainsText("neither an argument nor a result"));
  auto const f = [](tensor const& v) { return vv::sum(keeps_outside::apply(v)); };
  auto const derivative = [&](tensor const& v) { return vv::sum(vv::grad(f)(v)); };
  CHECK(vv::grad(f)(vec({3, 1})).to_vector() == list{12, 4});
  auto const refused = ContainsText("keeps_outside saved a value that is neither an argument nor a result");
  CHECK_THROWS_WITH(vv::grad(derivative)(vec({3, 1})), refused);
  CHECK_THROWS_WITH(derivative(x).backward(), refused);
  CHECK(thread_is_clean());
}

TEST_CASE("custom function: several results that are views may not be written into",
          "[autograd][function][view]") { // AF-13
  tensor const x = leaf({1, 2});
  tensor const a = x * 1;
  auto const [u, v] = two_views::apply(a);
  CHECK_THROWS_WITH(vv::mul_(u, 2), ContainsText("custom function"));
  CHECK_THROWS_WITH(vv::mul_(v, 2), ContainsText("custom function"));
  vv::sum(u * 3 + v * 5).backward();
  CHECK(grad_of(x) == list{3, 5});
}

TEST_CASE("custom function: names of its nodes", "[autograd][function]") { // AF-29
  CHECK_THAT(my_exp::apply(leaf(1)).grad_fn().name(), ContainsText("my_expBackward"));
  std::string inside;
  (void)vv::grad([&](tensor const& v) {
    tensor const y = my_exp::apply(v);
    inside = y.grad_fn().name();
    return y;
  })(number(1));
  CHECK_THAT(inside, ContainsText("my_expGeneratedBackward"));
}

TEST_CASE("custom function: what it saves goes through saved tensor hooks", "[autograd][function][saved]") { // AG-23
  tensor const x = leaf({0.5, 1}), w = leaf({2, 3});
  int packed = 0, unpacked = 0;
  tensor y;
  {
    vv::saved_tensors_hooks const on([&](tensor const& t) { return ++packed, elements(t); },
                                     [&](list const& v) { return ++unpacked, vec(v); });
    y = vv::sum(product::apply(my_exp::apply(x), w));
  }
  CHECK((packed == 4 && unpacked == 0)); // my_exp: its result, for both modes; product: both operands
  vv::add_(w.detach(), 1);               // packed values are nobody else's
  y.backward();
  CHECK(unpacked == 4);
  CHECK(element(x.grad(), 1) == Approx(3 * std::exp(1)));
  CHECK(element(w.grad(), 0) == Approx(std::exp(0.5)));
  {
    vv::saved_tensors_hooks const on([](tensor const& t) { return t.detach(); }, [](tensor const& t) { return t; });
    y = vv::sum(product::apply(my_exp::apply(x), x));
  }
  tensor const second = grad1(vv::sum(grad1(y, x, true)), x); // what hooks give back has its history
  for (index_t k = 0; k < 2; ++k) CHECK(element(second, k) == Approx((2 + element(x, k)) * std::exp(element(x, k))));
  x.zero_grad();
  w.zero_grad();
  auto const f = [&](tensor const& v) { return product::apply(my_exp::apply(v), w); };
  vv::sum(vv::checkpoint(f, x)).backward();
  CHECK(element(x.grad(), 1) == Approx(4 * std::exp(1)));
}

TEST_CASE("custom function: arguments that are no values", "[autograd][function]") {
  tensor const x = leaf({1, 2});
  vv::sum(scaled::apply(x, 3, std::string("double"))).backward();
  CHECK(grad_of(x) == list{6, 6});
  auto const f = [](tensor const& v) { return scaled::apply(v, 5, std::string()); };
  CHECK(elements(vv::vmap(vv::grad(f))(vec({1, 2}))) == list{5, 5});
}

TEST_CASE("custom function: once_differentiable refuses the second derivative only", "[autograd][function]") { // AF-12
  tensor const x = leaf(0.3);
  CHECK(grad1(once::apply(x), x).item<double>() == Approx(std::cos(0.3)));
  tensor const y = once::apply(x);
  tensor const g = vv::autograd::grad<>({y * y}, {x}, {}, {.create_graph = true})[0]; // the cotangent depends on x
  CHECK_THROWS_AS(g.backward(), vv::autograd_error);
  CHECK_THROWS_WITH(g.backward(), ContainsText("once_differentiable"));
}

namespace {
struct as_view : vv::function<as_view> {
  static auto forward(auto x) { return vv::slice(x, 0, 0, 2); }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static auto backward(auto&, auto g) { return vv::cat(std::tuple(g, from({0}, {1})), vv::axis<0>); }
};
template <bool SaveInput>
struct identity : vv::function<identity<SaveInput>> {
  static auto forward(auto x) { return x; }
  static auto setup_context(auto ctx, auto const& in, auto const& y) {
    if constexpr (SaveInput) return ctx.save_for_backward(std::get<0>(in));
    else return (void)y, ctx;
  }
  static auto backward(auto&, auto g) { return g * 7; }
};
} // namespace

TEST_CASE("custom function: results that are views, or the operand itself",
          "[autograd][function][view][AF-S27]") { // AF-7
  tensor const x = leaf({1, 2, 3});
  tensor const a = x * 1;
  tensor const v = as_view::apply(a);
  CHECK(v.shares_storage(a));
  CHECK_THROWS_AS(vv::mul_(v, 2), vv::autograd_error);
  CHECK_THROWS_WITH(vv::mul_(v, 2), ContainsText("custom function"));
  vv::sum(v * v).backward({}, true);
  CHECK(grad_of(x) == list{2, 4, 0});
  x.zero_grad();
  tensor const same = identity<false>::apply(a);
  CHECK_FALSE(same.is(a));
  CHECK(same.shares_storage(a));
  vv::sum(same).backward({}, true);
  CHECK(grad_of(x) == list{7, 7, 7});
  x.zero_grad();
  vv::sum(a + 0).backward(); // its own history is as it was
  CHECK(grad_of(x) == list{1, 1, 1});
  CHECK_THROWS_AS(identity<true>::apply(a), vv::autograd_error);
  CHECK_THROWS_WITH(identity<true>::apply(a), ContainsText("returned as-is"));
  CHECK(identity<false>::apply(leaf(1)).grad_fn().name() != "");
}

TEST_CASE("custom function: saved values are checked for writes", "[autograd][function][in_place]") {
  tensor const x = leaf(2);
  tensor const a = x * 1;
  tensor const y = product::apply(a, a);
  vv::mul_(a, 2);
  CHECK_THROWS_AS(y.backward(), vv::autograd_error);
  CHECK_THROWS_WITH(y.backward(), ContainsText("product") && ContainsText("version 1"));
  tensor const e = my_exp::apply(x);
  vv::add_(e, 1);
  CHECK_THROWS_AS(e.backward(), vv::autograd_error);
}

TEST_CASE("custom function: an exception in forward or backward leaves the thread as it was", "[autograd][function]") {
  struct stop {};
  static bool in_forward;
  struct throws : vv::function<throws> {
    static tensor forward(tensor x) {
      if (in_forward) throw stop{};
      return x * 1;
    }
    static auto setup_context(vv::function_context<1> ctx, std::tuple<tensor> const&, tensor const&) { return ctx; }
    static tensor backward(vv::function_context<1>&, tensor) { throw stop{}; }
  };
  tensor const x = leaf(1);
  in_forward = true;
  CHECK_THROWS_AS(throws::apply(x), stop);
  CHECK(thread_is_clean());
  CHECK_THROWS_AS(vv::grad([](tensor const& v) { return throws::apply(v); })(number(1)), stop);
  CHECK(thread_is_clean());
  in_forward = false;
  CHECK_THROWS_AS(throws::apply(x).backward(), stop);
  CHECK(thread_is_clean());
  CHECK_THROWS_AS(vv::grad([](tensor const& v) { return throws::apply(v); })(number(1)), stop);
  CHECK(thread_is_clean());
}

TEST_CASE("one tensor as two results: each has its own gradient", "[autograd][function]") {
  tensor const x = vector_of({0.5, -1.25, 2});
  auto const first = [](tensor const& v) { return vv::sum(std::get<0>(twice::apply(v))); };
  auto const both = [](tensor const& v) {
    auto const y = twice::apply(v);
    return vv::sum(std::get<0>(y) * v + std::get<1>(y));
  };
  auto const backward = [&](auto const& f) {
    tensor const leaf = vv::clone(x);
    leaf.requires_grad_();
    f(leaf).backward();
    return elements(leaf.grad());
  };
  for (auto const& f : {std::function<tensor(tensor const&)>(first), std::function<tensor(tensor const&)>(both)}) {
    auto const right = elements(vv::grad(f)(x));
    CHECK(backward(f) == right);
    CHECK(backward(vv::compile(f)) == right);
  }
  CHECK(backward(first) == doubles({5, 5, 5}));
  CHECK(backward(both) == doubles({10.5, -1.75, 21})); // 5 v + 2 v + 7
}
