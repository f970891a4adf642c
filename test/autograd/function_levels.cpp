// SPDX-License-Identifier: BSL-1.0
// Custom functions on tensors: the identity of operands and results at every level, and what is asked of a vmap rule.
#include "autograd_test.hpp"

#include <functional>

using namespace autograd_test;

namespace {
enum class saves { nothing, input, output };
template <bool Forward, saves What, bool Dirty>
struct as_it_is : vv::function<as_it_is<Forward, What, Dirty>> {
  static tensor forward(tensor x) { return x; }
  static auto setup_context(auto ctx, auto const& in, auto const& out) {
    tensor const kept = What == saves::input ? std::get<0>(in) : What == saves::output ? tensor(out) : tensor();
    if constexpr (Dirty) return with(ctx.template mark_dirty<0>(), kept);
    else return with(ctx, kept);
  }
  static auto with(auto ctx, tensor const& kept) {
    if constexpr (Forward) return ctx.save_for_forward(kept);
    else return ctx.save_for_backward(kept);
  }
  static auto backward(auto&, tensor g) { return g * 1; }
  static auto jvp(auto&, tensor t) { return t * 1; }
};
/// Every way to call it: eagerly, under grad, under jvp.
template <bool Forward, saves What, bool Dirty>
void returned_as_it_is() {
  INFO("forward " << Forward << ", saves " << static_cast<int>(What) << ", dirty " << Dirty);
  using f = as_it_is<Forward, What, Dirty>;
  bool same = false;
  auto const call = [&](tensor const& x) {
    tensor const c = vv::clone(x);
    tensor const y = f::apply(c);
    same = y.is(c);
    return y;
  };
  auto const grad = [&] { return vv::grad(call)(number(2)).template item<double>(); };
  auto const jvp = [&] {
    return vv::jvp(call, std::tuple(number(2)), std::tuple(number(3))).second.template item<double>();
  };
  auto const eager = [&] {
    tensor const l = leaf(2);
    call(l).backward();
    return l.grad().template item<double>();
  };
  if (What != saves::nothing && !Dirty) {
    CHECK_THROWS_WITH(grad(), ContainsText("returned as-is"));
    CHECK_THROWS_WITH(jvp(), ContainsText("returned as-is"));
    CHECK_THROWS_WITH(eager(), ContainsText("returned as-is"));
  } else {
    CHECK((grad() == 1 && same == Dirty));
    CHECK((jvp() == 3 && same == Dirty));
    CHECK((eager() == 1 && same == Dirty));
  }
  CHECK(thread_is_clean());
}

/// exp, written over its operand.
struct exp_over : vv::function<exp_over> {
  static tensor forward(tensor x) {
    vv::exp_(x);
    return x;
  }
  static auto setup_context(auto ctx, auto const&, auto const& y) {
    return ctx.template mark_dirty<0>().save_for_backward(y).save_for_forward(y);
  }
  static auto backward(auto& ctx, tensor g) { return g * std::get<0>(ctx.saved()); }
  static auto jvp(auto& ctx, tensor t) { return t * std::get<0>(ctx.saved_for_forward()); }
  static auto vmap(vv::vmap_info const&, auto const&, tensor x) { return std::pair(exp_over::apply(x), true); }
};
struct adds_over : vv::function<adds_over> {
  static tensor forward(tensor a, tensor b) { return vv::add_(a, b); }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx.template mark_dirty<0>(); }
  static auto backward(auto&, tensor g) { return std::tuple(g, g); }
};
struct generated_over : vv::function<generated_over> {
  static constexpr bool generate_vmap_rule = true;
  static tensor forward(tensor x) { return exp_over::forward(x); }
  static auto setup_context(auto ctx, auto const& in, auto const& y) { return exp_over::setup_context(ctx, in, y); }
  static auto backward(auto& ctx, tensor g) { return exp_over::backward(ctx, g); }
};
} // namespace

TEST_CASE("custom function: an operand returned as it is, saved or marked dirty in every combination",
          "[autograd][function][AF-S01]") { // AF-7
  returned_as_it_is<false, saves::nothing, false>();
  returned_as_it_is<false, saves::nothing, true>();
  returned_as_it_is<false, saves::input, false>();
  returned_as_it_is<false, saves::input, true>();
  returned_as_it_is<false, saves::output, false>();
  returned_as_it_is<false, saves::output, true>();
  returned_as_it_is<true, saves::nothing, false>();
  returned_as_it_is<true, saves::nothing, true>();
  returned_as_it_is<true, saves::input, false>();
  returned_as_it_is<true, saves::input, true>();
  returned_as_it_is<true, saves::output, false>();
  returned_as_it_is<true, saves::output, true>();
}

TEST_CASE("custom function: an operand marked dirty is the result at every level",
          "[autograd][function][in_place][AF-S28]") { // AF-21
  int calls = 0;
  auto const f = [&](tensor const& x) {
    tensor const c = vv::clone(x);
    tensor const y = exp_over::apply(c);
    CHECK(y.is(c));
    ++calls;
    return y;
  };
  tensor const zeros = vec({0, 0, 0});
  CHECK(vv::grad(f)(number(0)).item<double>() == 1);
  CHECK(vv::grad(f)(number(1)).item<double>() == Approx(std::exp(1)));
  CHECK(vv::grad(vv::grad(f))(number(0)).item<double>() == 1);
  CHECK(vv::grad(vv::grad(f))(number(1)).item<double>() == Approx(std::exp(1)));
  CHECK(elements(vv::vmap(vv::grad(f))(zeros)) == list{1, 1, 1});
  CHECK(elements(vv::grad([&](tensor const& x) { return vv::sum(vv::vmap(f)(x)); })(zeros)) == list{1, 1, 1});
  CHECK(vv::jvp(f, std::tuple(number(1)), std::tuple(number(2))).second.item<double>() == Approx(2 * std::exp(1)));
  CHECK(calls == 7);
  tensor const l = leaf(1);
  f(l).backward();
  CHECK(l.grad().item<double>() == Approx(std::exp(1)));

  CHECK_THROWS_WITH(vv::grad([](tensor const& x) { return exp_over::apply(x); })(number(0)), ContainsText("leaf"));
  tensor const captured = number(0);
  CHECK_THROWS_AS(vv::grad([&](tensor const& x) { return adds_over::apply(captured, x); })(number(1)),
                  vv::transform_error);
  // The generated rule has no such functions.
  CHECK_THROWS_WITH(vv::grad([](tensor const& x) {
                      return vv::sum(vv::vmap([](tensor const& v) { return generated_over::apply(vv::clone(v)); })(x));
                    })(zeros),
                    ContainsText("marked dirty") && ContainsText("vmap"));
  CHECK(thread_is_clean());
}

namespace {
bool saw_duals = false, recorded_inside = false;
struct looks : vv::function<looks> { // whether its forward is watched
  static tensor forward(tensor x) {
    saw_duals = saw_duals || x.is_wrapped() || vv::this_thread_state.transforms.top;
    recorded_inside = recorded_inside || vv::is_grad_enabled();
    return vv::sin(x);
  }
  static auto setup_context(auto ctx, auto const& in, auto const&) {
    return ctx.save_for_backward(std::get<0>(in)).save_for_forward(std::get<0>(in));
  }
  static auto backward(auto& ctx, tensor g) { return g * vv::cos(std::get<0>(ctx.saved())); }
  static auto jvp(auto& ctx, tensor t) { return t * vv::cos(std::get<0>(ctx.saved_for_forward())); }
};
} // namespace

namespace {
struct first_two : vv::function<first_two> {
  static auto forward(auto x) { return vv::slice(x, 0, 0, 2); }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static auto backward(auto&, auto g) { return vv::cat(std::tuple(g, from({0}, {1})), vv::axis<0>); }
};
} // namespace

TEST_CASE("custom function: a result that is a view may not be written into, inside of transforms either",
          "[autograd][function][view]") { // AF-13
  auto const f = [](bool write) {
    return [write](tensor const& x) {
      tensor const y = x * 2, v = first_two::apply(y);
      if (write) vv::mul_(v, 3);
      return vv::sum(v * v);
    };
  };
  CHECK(elements(vv::grad(f(false))(vec({1, 2, 3}))) == list{8, 16, 0});
  CHECK_THROWS_AS(vv::grad(f(true))(vec({1, 2, 3})), vv::autograd_error);
  CHECK_THROWS_WITH(vv::grad(f(true))(vec({1, 2, 3})), ContainsText("custom function"));
  CHECK(thread_is_clean());
}

TEST_CASE("custom function: neither mode of differentiation is on in its forward",
          "[autograd][function][forward_ad][AF-S18]") { // AF-15
  tensor const x = leaf(0.5);
  {
    vv::forward_ad::dual_level const on;
    tensor const y = looks::apply(vv::forward_ad::make_dual(x, number(2)));
    CHECK(vv::forward_ad::unpack_dual(y).tangent.item<double>() == Approx(2 * std::cos(0.5)));
    CHECK(vv::forward_ad::unpack_dual(y).primal.requires_grad());
  }
  CHECK_FALSE(saw_duals);
  CHECK_FALSE(recorded_inside);
}

namespace {
std::vector<std::string> flags_seen;
std::string text(bool b) { return b ? "0" : "none"; }
std::string text(std::vector<bool> const& v) {
  std::string r = "[";
  for (bool b : v) r += text(b) + " ";
  return r + "]";
}
struct takes_list : vv::function<takes_list> { // an operand is a list of tensors
  static tensor forward(tensor x, std::vector<tensor> const& more) {
    tensor r = x;
    for (auto const& t : more) r = vv::mul(r, t);
    return r;
  }
  static auto setup_context(auto ctx, auto const& in, auto const&) {
    auto const& [x, more] = in;
    return ctx.save_for_backward(x, more[0], more[1]);
  }
  static auto backward(auto& ctx, tensor g) {
    auto const [x, a, b] = ctx.saved();
    return std::tuple(g * a * b, std::vector<tensor>{g * x * b, g * x * a});
  }
  static auto vmap(vv::vmap_info const&, auto const& mapped, tensor x, std::vector<tensor> const& more) {
    flags_seen.push_back(text(std::get<0>(mapped)) + ", " + text(std::get<1>(mapped)));
    return std::pair(takes_list::apply(x, more), true);
  }
};
struct wrong_flags : vv::function<wrong_flags> {
  static auto forward(tensor x) { return std::tuple(x, x); }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static auto vmap(vv::vmap_info const&, auto const&, tensor x) {
    return std::pair(std::tuple(x, x), std::array{true, true, true});
  }
};
struct few_flags : vv::function<few_flags> {
  static auto forward(tensor x) { return std::tuple(x, x); }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static auto vmap(vv::vmap_info const&, auto const&, tensor x) {
    return std::pair(std::tuple(x, x), std::array{true});
  }
};
} // namespace

TEST_CASE("custom function: operands in a list have gradients, and flags of the same structure",
          "[autograd][function][vmap][AF-S09]") { // AF-24
  tensor const x = vec({1, 2}), y = vec({3, 4});
  auto const f = [](tensor const& a, tensor const& b) { return takes_list::apply(a, std::vector<tensor>{b, b}); };
  flags_seen.clear();
  CHECK(elements(vv::vmap(f)(x, y)) == list{9, 32});
  CHECK(elements(vv::vmap([&](tensor const& a) { return f(number(1), a); })(x)) == list{1, 4});
  CHECK(flags_seen == std::vector<std::string>{"0, [0 0 ]", "none, [0 0 ]"});
  tensor const a = leaf({1, 2}), b = leaf({3, 4});
  vv::sum(f(a, b)).backward();
  CHECK(grad_of(a) == list{9, 16});
  CHECK(grad_of(b) == list{6, 16});
  CHECK(elements(vv::grad<1>([&](tensor const& u, tensor const& v) { return vv::sum(f(u, v)); })(x, y)) == list{6, 16});
}

TEST_CASE("custom function: flags of a vmap rule that do not fit its results", "[autograd][function][vmap][AF-S13]") {
  CHECK_THROWS_AS(vv::vmap([](tensor const& v) { return wrong_flags::apply(v); })(vec({1, 2})), vv::transform_error);
  CHECK_THROWS_WITH(vv::vmap([](tensor const& v) { return wrong_flags::apply(v); })(vec({1, 2})),
                    ContainsText("incompatible") && ContainsText("wrong_flags"));
  CHECK_THROWS_WITH(vv::vmap([](tensor const& v) { return few_flags::apply(v); })(vec({1, 2})),
                    ContainsText("incompatible"));
  CHECK(thread_is_clean());
}

namespace {
/// Its gradients, given by the test: of which shape, and mapped or not.
std::function<tensor(tensor const& g, tensor const& x)> gradient;
struct given_gradient : vv::function<given_gradient> {
  static constexpr bool generate_vmap_rule = true;
  static tensor forward(tensor x, tensor y) { return vv::sum(x) + vv::sum(y); }
  static auto setup_context(auto ctx, auto const& in, auto const&) { return ctx.save_for_backward(std::get<0>(in)); }
  static auto backward(auto& ctx, tensor g) { return std::tuple(gradient(g, std::get<0>(ctx.saved())), g * 0); }
};
/// The gradient of x, mapped along `axis` or not at all, in a vmap of two slices.
tensor reduced_gradient(tensor const& x, bool mapped) {
  tensor const l = vv::clone(x).requires_grad_();
  auto const both = [](tensor const& a, tensor const& b) { return given_gradient::apply(a, b); };
  tensor const y = vec({1, 2});
  tensor const out = mapped ? vv::vmap(both)(l, y) : vv::vmap([&](tensor const& b) { return both(l, b); })(y);
  vv::sum(out).backward();
  return l.grad();
}
} // namespace

TEST_CASE("custom function: gradients of the generated vmap rule, reduced to what the operand is",
          "[autograd][function][vmap][AF-S15]") { // AF-25
  numbers draw(3);
  tensor const r34 = uniform({3, 4}, draw), r4 = uniform({4}, draw);
  auto const mapped_like = [](tensor const& value) {
    return [value](tensor const& g, tensor const&) { return tensor(value * g); };
  };
  auto const same_for_all = [](tensor const& value) { return [value](tensor const&, tensor const&) { return value; }; };
  gradient = [](tensor const&, tensor const&) { return tensor(); }; // none
  CHECK_FALSE(reduced_gradient(r34, false).defined());
  gradient = mapped_like(r34); // mapped, the operand not: the sum over the batch
  CHECK(difference(reduced_gradient(r34, false), r34 * 2, 1e-15) == "");
  gradient = mapped_like(r34); // ... and over what was broadcast
  CHECK(difference(reduced_gradient(r4, false), vv::sum(r34, dims{0}) * 2, 1e-15) == "");
  gradient = same_for_all(r34); // not mapped, the operand not
  CHECK(difference(reduced_gradient(r34, false), r34, 1e-15) == "");
  tensor const two34 = uniform({2, 3, 4}, draw), two4 = uniform({2, 4}, draw);
  gradient = same_for_all(r34); // not mapped, the operand is: the same for every slice
  CHECK(difference(reduced_gradient(two34, true), vv::stack(std::vector<tensor>{r34, r34}, 0), 1e-15) == "");
  gradient = same_for_all(r34); // ... summed to the slice's shape
  CHECK(difference(reduced_gradient(two4, true),
                   vv::stack(std::vector<tensor>{vv::sum(r34, dims{0}), vv::sum(r34, dims{0})}, 0), 1e-15) == "");
  gradient = mapped_like(r34); // both mapped, wider than the slice
  CHECK(difference(reduced_gradient(two4, true),
                   vv::stack(std::vector<tensor>{vv::sum(r34, dims{0}), vv::sum(r34, dims{0})}, 0), 1e-15) == "");
  gradient = mapped_like(vec({1, 2, 3})); // no shape that could be reduced
  CHECK_THROWS_WITH(reduced_gradient(two4, true), ContainsText("expected shape [4]") && ContainsText("[3]"));
  gradient = nullptr;
  CHECK(thread_is_clean());
}
