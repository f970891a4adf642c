// SPDX-License-Identifier: BSL-1.0
// A table of custom functions under every transform and two of them nested: against the same function written of
// operators.
#include "autograd_test.hpp"

using namespace autograd_test;

namespace {
struct cube : vv::function<cube> {
  static constexpr bool generate_vmap_rule = true;
  static auto forward(auto x) { return x * x * x; }
  static auto setup_context(auto ctx, auto const& in, auto const&) {
    return ctx.save_for_backward(std::get<0>(in)).save_for_forward(std::get<0>(in));
  }
  static auto backward(auto& ctx, auto g) {
    auto [x] = ctx.saved();
    return g * x * x * 3;
  }
  static auto jvp(auto& ctx, auto t) {
    auto [x] = ctx.saved_for_forward();
    return t * x * x * 3;
  }
};
/// The same with a vmap of its own.
struct cube_vmap : vv::function<cube_vmap> {
  static auto forward(auto x) { return cube::forward(x); }
  static auto setup_context(auto ctx, auto const& in, auto const& y) { return cube::setup_context(ctx, in, y); }
  static auto backward(auto& ctx, auto g) { return cube::backward(ctx, g); }
  static auto jvp(auto& ctx, auto t) { return cube::jvp(ctx, t); }
  static auto vmap(vv::vmap_info const&, auto const&, auto x) { return std::pair(cube_vmap::apply(x), true); }
};
/// A backward that calls another custom function (its derivative as a function), as PyTorch's numpy functions do.
struct exp_by_result : vv::function<exp_by_result> {
  static constexpr bool generate_vmap_rule = true;
  static auto forward(auto x) { return vv::exp(x); }
  static auto setup_context(auto ctx, auto const&, auto const& y) {
    return ctx.save_for_backward(y).save_for_forward(y);
  }
  static auto backward(auto& ctx, auto g) {
    auto [y] = ctx.saved();
    return g * y;
  }
  static auto jvp(auto& ctx, auto t) {
    auto [y] = ctx.saved_for_forward();
    return t * y;
  }
};
/// Several results, of several operands.
struct mul_sum : vv::function<mul_sum> {
  static constexpr bool generate_vmap_rule = true;
  static auto forward(auto x, auto y) { return std::tuple(x * y, x + y * 2); }
  static auto setup_context(auto ctx, auto const& in, auto const&) {
    return ctx.save_for_backward(std::get<0>(in), std::get<1>(in)).save_for_forward(std::get<0>(in), std::get<1>(in));
  }
  static auto backward(auto& ctx, auto gp, auto gs) {
    auto [x, y] = ctx.saved();
    return std::tuple(gp * y + gs, gp * x + gs * 2);
  }
  static auto jvp(auto& ctx, auto tx, auto ty) {
    auto [x, y] = ctx.saved_for_forward();
    return std::tuple(tx * y + x * ty, tx + ty * 2);
  }
};
/// Sorts two neighbours: results, and which came first as a result without derivative.
struct sort_two : vv::function<sort_two> {
  static constexpr bool generate_vmap_rule = true;
  static auto forward(auto x, auto y) {
    return std::tuple(vv::minimum(x, y), vv::maximum(x, y), vv::to(x < y, vv::type<double>));
  }
  static auto setup_context(auto ctx, auto const&, auto const& out) {
    return ctx.save_for_backward(std::get<2>(out))
        .save_for_forward(std::get<2>(out))
        .template mark_non_differentiable<2>();
  }
  static auto backward(auto& ctx, auto gl, auto gh, auto) {
    auto [first] = ctx.saved();
    return std::tuple(gl * first + gh * (1 - first), gh * first + gl * (1 - first));
  }
  static auto jvp(auto& ctx, auto tx, auto ty) {
    auto [first] = ctx.saved_for_forward();
    return std::tuple(tx * first + ty * (1 - first), ty * first + tx * (1 - first), first * 0);
  }
};

/// As functions of one vector, with the plain composition beside them.
template <class F, class P>
void laws(char const* name, F const& f, P const& plain) {
  INFO(name);
  numbers draw(11);
  tensor const x = uniform({4}, draw, 0.4, 1.6), t = uniform({4}, draw), u = uniform({4}, draw), g = uniform({4}, draw);
  tensor const xs = uniform({3, 4}, draw, 0.4, 1.6), ts = uniform({3, 4}, draw), gs = uniform({3, 4}, draw),
               xss = uniform({2, 3, 4}, draw, 0.4, 1.6);
  auto const same = [&](char const* what, auto const& test) {
    INFO(what);
    CHECK(difference(test(f), test(plain), 1e-12) == "");
  };
  auto const vjp = [](auto const& h) {
    return [h](tensor const& v, tensor const& c) { return std::get<0>(vv::vjp(h, v).second(c)); };
  };
  auto const jvp = [](auto const& h) {
    return [h](tensor const& v, tensor const& d) { return vv::jvp(h, std::tuple(v), std::tuple(d)).second; };
  };
  same("value", [&](auto const& h) { return h(x); });
  same("grad", [&](auto const& h) { return vv::grad([&](tensor const& v) { return vv::sum(h(v) * g); })(x); });
  same("eager", [&](auto const& h) {
    tensor const l = from(elements(x), x.sizes()).requires_grad_();
    vv::sum(h(l) * g).backward();
    return l.grad();
  });
  same("eager, twice", [&](auto const& h) {
    tensor const l = from(elements(x), x.sizes()).requires_grad_();
    tensor const first = vv::autograd::grad<>({h(l)}, {l}, {g}, {.create_graph = true})[0];
    return vv::autograd::grad<>({first}, {l}, {u})[0];
  });
  same("vjp", [&](auto const& h) { return vjp(h)(x, g); });
  same("jvp", [&](auto const& h) { return jvp(h)(x, t); });
  same("vjpvjp", [&](auto const& h) { return vjp([&](tensor const& v) { return vjp(h)(v, g); })(x, u); });
  same("vjpvjp, of the cotangent",
       [&](auto const& h) { return vjp([&](tensor const& c) { return vjp(h)(x, c); })(g, u); });
  same("jvpjvp", [&](auto const& h) { return jvp([&](tensor const& v) { return jvp(h)(v, t); })(x, u); });
  same("jvpvjp", [&](auto const& h) { return jvp([&](tensor const& v) { return vjp(h)(v, g); })(x, t); });
  same("vjpjvp", [&](auto const& h) { return vjp([&](tensor const& v) { return jvp(h)(v, t); })(x, g); });
  same("vmap", [&](auto const& h) { return vv::vmap(h)(xs); });
  same("vmapvmap", [&](auto const& h) { return vv::vmap(vv::vmap(h))(xss); });
  same("vmapvjp", [&](auto const& h) { return vv::vmap(vjp(h))(xs, gs); });
  same("vmapvjp, of the cotangent",
       [&](auto const& h) { return vv::vmap([&](tensor const& c) { return vjp(h)(x, c); })(gs); });
  same("vmapjvp", [&](auto const& h) { return vv::vmap(jvp(h))(xs, ts); });
  same("vjpvmap", [&](auto const& h) { return vjp([&](tensor const& v) { return vv::vmap(h)(v); })(xs, gs); });
  same("jvpvmap", [&](auto const& h) { return jvp([&](tensor const& v) { return vv::vmap(h)(v); })(xs, ts); });
  same("vmapvjpvjp", [&](auto const& h) {
    return vv::vmap([&](tensor const& v, tensor const& c) {
      return vjp([&](tensor const& w) { return vjp(h)(w, c); })(v, u);
    })(xs, gs);
  });
  same("jacrev", [&](auto const& h) { return vv::jacrev(h)(x); });
  same("jacfwd", [&](auto const& h) { return vv::jacfwd(h)(x); });
  same("hessian", [&](auto const& h) { return vv::hessian([&](tensor const& v) { return vv::sum(h(v) * g); })(x); });
  same("eager, through vmap", [&](auto const& h) {
    tensor const l = from(elements(xs), xs.sizes()).requires_grad_();
    vv::sum(vv::vmap(h)(l) * gs).backward();
    return l.grad();
  });
  CHECK(thread_is_clean());
  // The gradient against differences.
  tensor const by_rule = vjp(f)(x, g);
  double const h = 1e-6;
  for (index_t k = 0; k < 4; ++k) {
    list e(4, 0);
    e[static_cast<std::size_t>(k)] = 1;
    CHECK(element(by_rule, k) ==
          Approx((inner(f(axpy(x, h, vec(e))), g) - inner(f(axpy(x, -h, vec(e))), g)) / (2 * h)).epsilon(1e-6));
  }
}
} // namespace

TEST_CASE("custom functions: under every transform as the plain composition", "[autograd][function][laws]") {
  laws("cube", [](tensor const& x) { return cube::apply(x); }, [](tensor const& x) { return tensor(x * x * x); });
  laws(
      "cube, its own vmap", [](tensor const& x) { return cube_vmap::apply(x); },
      [](tensor const& x) { return tensor(x * x * x); });
  laws(
      "exp by its result", [](tensor const& x) { return exp_by_result::apply(x * x); },
      [](tensor const& x) { return tensor(vv::exp(x * x)); });
  laws(
      "two results",
      [](tensor const& x) {
        auto const [p, s] = mul_sum::apply(x, vv::sin(x));
        return tensor(p * s);
      },
      [](tensor const& x) { return tensor(x * vv::sin(x) * (x + vv::sin(x) * 2)); });
  laws(
      "two results, one used, an operand constant",
      [](tensor const& x) { return std::get<1>(mul_sum::apply(number(2), x * x)); },
      [](tensor const& x) { return tensor(x * x * 2 + 2); });
  laws(
      "sort",
      [](tensor const& x) {
        auto const [l, h, n] = sort_two::apply(x, vv::neg(x) + 2);
        return tensor(l * h * h);
      },
      [](tensor const& x) {
        tensor const y = vv::neg(x) + 2, h = vv::maximum(x, y);
        return tensor(vv::minimum(x, y) * h * h);
      });
  laws(
      "one in the other", [](tensor const& x) { return cube::apply(exp_by_result::apply(vv::sin(x))); },
      [](tensor const& x) { return tensor(vv::exp(vv::sin(x) * 3)); });
}
