// SPDX-License-Identifier: BSL-1.0
// Writing into views inside of transforms (semantics AG-15, AG-16, AG-28 at levels): as the same program without.
#include "autograd_test.hpp"

#include <functional>

using namespace autograd_test;

namespace {
tensor weighed(tensor const& y) {
  list w;
  for (index_t k = 0; k < y.numel(); ++k) w.push_back(1 + 0.5 * static_cast<double>(k * k));
  return vv::sum(y * y * from(w, y.sizes()));
}
tensor row(tensor const& t, index_t i) { return vv::select(t, 0, i); }
tensor column(tensor const& t, index_t i) { return vv::select(t, 1, i); }
tensor rows(tensor const& a, tensor const& b, tensor const& c) { return vv::stack(std::vector<tensor>{a, b, c}, 0); }

/// Two programs of a [3, 2] value, one of which writes: under every transform and pairs of them.
template <class W, class P>
void same(char const* what, W const& writes, P const& plain) {
  INFO(what);
  numbers draw(5);
  tensor const x = uniform({3, 2}, draw, 0.5, 2), t = uniform({3, 2}, draw), u = uniform({3, 2}, draw),
               xs = uniform({2, 3, 2}, draw, 0.5, 2), ts = uniform({2, 3, 2}, draw);
  list const before = elements(x);
  auto const agree = [&](char const* transform, auto const& run) {
    INFO(transform);
    CHECK(difference(run(writes), run(plain), 1e-12) == "");
  };
  auto const scalar = [](auto const& f) { return [&f](tensor const& v) { return weighed(f(v)); }; };
  auto const tangent = [](auto const& f) {
    return [f](tensor const& v, tensor const& d) { return vv::jvp(f, std::tuple(v), std::tuple(d)).second; };
  };
  agree("value", [&](auto const& f) { return f(x); });
  agree("eager", [&](auto const& f) {
    tensor const l = vv::clone(x).requires_grad_();
    weighed(f(l)).backward();
    return l.grad();
  });
  agree("grad", [&](auto const& f) { return vv::grad(scalar(f))(x); });
  agree("grad of grad",
        [&](auto const& f) { return vv::grad([&](tensor const& v) { return weighed(vv::grad(scalar(f))(v)); })(x); });
  agree("jvp", [&](auto const& f) { return tangent(f)(x, t); });
  agree("jvp of jvp", [&](auto const& f) { return tangent([&](tensor const& v) { return tangent(f)(v, t); })(x, u); });
  agree("jvp of grad", [&](auto const& f) { return tangent(vv::grad(scalar(f)))(x, t); });
  agree("grad of jvp",
        [&](auto const& f) { return vv::grad([&](tensor const& v) { return weighed(tangent(f)(v, t)); })(x); });
  agree("vmap", [&](auto const& f) { return vv::vmap(f)(xs); });
  agree("vmap of grad", [&](auto const& f) { return vv::vmap(vv::grad(scalar(f)))(xs); });
  agree("grad of vmap",
        [&](auto const& f) { return vv::grad([&](tensor const& v) { return weighed(vv::vmap(f)(v)); })(xs); });
  agree("vmap of jvp", [&](auto const& f) { return vv::vmap(tangent(f))(xs, ts); });
  agree("jvp of vmap", [&](auto const& f) { return tangent([&](tensor const& v) { return vv::vmap(f)(v); })(xs, ts); });
  agree("hessian", [&](auto const& f) { return vv::hessian(scalar(f))(x); });
  agree("eager, through grad", [&](auto const& f) {
    tensor const l = vv::clone(x).requires_grad_();
    weighed(vv::grad(scalar(f))(l)).backward();
    return l.grad();
  });
  CHECK(elements(x) == before);
  CHECK(thread_is_clean());
}
} // namespace

TEST_CASE("view: written inside of transforms, as the same program without", "[autograd][view][transform]") {
  using T = tensor const&;
  same(
      "a row times two",
      [](T x) {
        tensor const y = vv::clone(x);
        vv::mul_(row(y, 0), 2.0);
        return y;
      },
      [](T x) { return rows(row(x, 0) * 2, row(x, 1), row(x, 2)); });
  same(
      "a row becomes a function of another",
      [](T x) {
        tensor const y = x * x;
        vv::copy_(row(y, 1), vv::sin(vv::clone(row(y, 0))) * row(x, 2));
        return y;
      },
      [](T x) {
        return rows(row(x, 0) * row(x, 0), vv::sin(row(x, 0) * row(x, 0)) * row(x, 2), row(x, 2) * row(x, 2));
      });
  same(
      "a row times another, and an operator that reads its result",
      [](T x) {
        tensor const y = vv::sin(x);
        vv::mul_(row(y, 2), row(y, 1));
        vv::exp_(row(y, 2));
        return y;
      },
      [](T x) {
        return rows(vv::sin(row(x, 0)), vv::sin(row(x, 1)), vv::exp(vv::sin(row(x, 2)) * vv::sin(row(x, 1))));
      });
  same(
      "views made before, seen after",
      [](T x) {
        tensor const y = x * 3;
        tensor const v = row(y, 1), other = column(y, 0);
        vv::mul_(other, other);
        return tensor(y * v);
      },
      [](T x) {
        tensor const y = x * 3, c = column(y, 0);
        tensor const z = vv::stack(std::vector<tensor>{c * c, column(y, 1)}, 1);
        return tensor(z * row(z, 1));
      });
  same(
      "the base is written, the view of a view is returned",
      [](T x) {
        tensor const y = vv::sin(x);
        tensor const v = vv::permute(y, dims{1, 0}), w = row(v, 1);
        vv::add_(y, x);
        vv::mul_(w, w);
        vv::sub_(y, 1);
        return w;
      },
      [](T x) {
        tensor const c = vv::sin(column(x, 1)) + column(x, 1);
        return tensor(c * c - 1);
      });
  same(
      "in a loop",
      [](T x) {
        tensor const y = x * 1;
        for (index_t k = 1; k < 3; ++k) vv::mul_(row(y, k), row(y, k - 1));
        return y;
      },
      [](T x) { return rows(row(x, 0), row(x, 0) * row(x, 1), row(x, 0) * row(x, 1) * row(x, 2)); });
  same(
      "by a constant",
      [](T x) {
        tensor const y = x * x;
        vv::zero_(column(y, 1));
        return y;
      },
      [](T x) {
        tensor const y = x * x;
        return tensor(vv::stack(std::vector<tensor>{column(y, 0), column(y, 0) * 0}, 1));
      });
}

TEST_CASE("view: what may not be written inside of transforms", "[autograd][view][transform]") { // AG-14, AG-16
  tensor const x = vec({1, 2, 3});
  auto const at0 = [](tensor const& t) { return vv::slice(t, 0, 0, 1); };
  auto const refused = [&](auto const& f, char const* why) {
    CHECK_THROWS_AS(vv::grad(f)(x), vv::autograd_error);
    CHECK_THROWS_WITH(vv::grad(f)(x), ContainsText(why));
    CHECK(elements(x) == list{1, 2, 3});
    CHECK(thread_is_clean());
  };
  refused([&](tensor const& v) { return vv::mul_(at0(v), 2), vv::sum(v); }, "leaf");
  refused(
      [&](tensor const& v) {
        tensor const y = v * 1;
        tensor const w = [&] {
          vv::no_grad const off;
          return at0(y);
        }();
        vv::mul_(w, 2);
        return vv::sum(y);
      },
      "no_grad");
  auto const in_no_grad = [&](tensor const& v) { // nothing is recorded: a constant is written
    tensor const y = v * 1;
    {
      vv::no_grad const off;
      vv::mul_(at0(y), 5);
    }
    return vv::sum(y * y);
  };
  CHECK(elements(vv::grad(in_no_grad)(x)) == list{10, 4, 6});
  refused( // what was saved is overtaken through a view
      [&](tensor const& v) {
        tensor const y = v * 1, z = y * y;
        vv::mul_(at0(y), 2);
        return vv::sum(z);
      },
      "modified by an in-place operator");
  tensor const captured = vec({5, 6, 7});
  CHECK_THROWS_AS(vv::grad([&](tensor const& v) { return vv::copy_(at0(captured), at0(v)), vv::sum(v); })(x),
                  vv::transform_error);
  CHECK(elements(captured) == list{5, 6, 7});
}

TEST_CASE("dual levels: writing into views of dual tensors", "[autograd][view][forward_ad][AG-S22]") { // AG-28
  tensor const foo = vec({1, 2}), bar = vec({1, 1});
  vv::forward_ad::dual_level const on;
  auto const tangent = [](tensor const& t) { return vv::forward_ad::unpack_dual(t).tangent; };
  tensor const dual = vv::forward_ad::make_dual(foo, bar);
  tensor const view = vv::slice(dual, 0, 0, 1);
  vv::mul_(view, 2);
  CHECK(elements(tangent(dual)) == list{2, 1});
  CHECK(elements(tangent(view)) == list{2});
  CHECK_FALSE(tangent(foo).defined());
  CHECK(elements(bar) == list{1, 1});
  CHECK(elements(foo) == list{2, 2}); // the same memory
  vv::add_(dual, dual);
  CHECK(elements(tangent(view)) == list{4});
  tensor const free = vv::detach(dual); // no differentiable view
  vv::mul_(free, 10);
  CHECK(elements(tangent(dual)) == list{4, 2});
}

TEST_CASE("level: what an operator made there may be written into with values of the level",
          "[autograd][view][transform]") { // FS-7
  auto const buffer = [](dims const& n) { return vv::zeros(n, vv::dtype::float64); };
  {
    tensor const x = vec({1, -2, 3});
    auto const f = [&](tensor const& v) {
      tensor b = buffer({3});
      vv::add_(b, v);
      vv::mul_(b, v);
      return vv::sum(b);
    };
    CHECK(elements(vv::grad(f)(x)) == list{2, -4, 6});
    CHECK(elements(vv::grad([&](tensor const& w) { return vv::sum(vv::grad(f)(w)); })(x)) == list{2, 2, 2});
    CHECK(elements(vv::jvp(f, std::tuple(x), std::tuple(x)).second) == list{28});
    CHECK(elements(vv::jvp(vv::grad(f), std::tuple(x), std::tuple(x)).second) == list{2, -4, 6});
  }
  same(
      "a buffer",
      [&](tensor const& v) {
        tensor b = vv::zeros_like(v);
        vv::add_(b, v);
        vv::mul_(b, v);
        return b;
      },
      [](tensor const& v) { return v * v; });
  same(
      "views of a buffer, before and after",
      [&](tensor const& v) {
        tensor b = vv::zeros_like(v);
        tensor const first = column(b, 0), second = column(b, 1);
        vv::copy_(first, vv::ones_like(first));
        vv::add_(first, column(v, 1));
        vv::copy_(second, column(v, 0) * column(v, 0));
        vv::mul_(b, v);
        return b * 1 + vv::expand(vv::unsqueeze(first, 1), dims{3, 2});
      },
      [](tensor const& v) {
        tensor const b = vv::stack(
            std::vector<tensor>{(column(v, 1) + 1) * column(v, 0), column(v, 0) * column(v, 0) * column(v, 1)}, 1);
        return b + vv::expand(vv::unsqueeze(column(b, 0), 1), dims{3, 2});
      });
  tensor const x = vec({1, 2, 3}), c = vec({5, 5, 5});
  // A copy of a captured tensor is the level's own; the tensor itself, and views of it, are not.
  CHECK(elements(vv::grad([&](tensor const& v) {
          tensor b = vv::clone(c);
          vv::add_(b, v * v);
          return vv::sum(b);
        })(x)) == list{2, 4, 6});
  CHECK_THROWS_AS(vv::grad([&](tensor const& v) {
                    return vv::add_(vv::reshape(c, dims{3, 1}), vv::reshape(v, dims{3, 1})), vv::sum(v);
                  })(x),
                  vv::transform_error);
  CHECK_THROWS_AS(vv::jvp([&](tensor const& v) { return vv::add_(c, v), v; }, std::tuple(x), std::tuple(x)),
                  vv::transform_error);
  CHECK(elements(c) == list{5, 5, 5});
  // Written with constants, and where nothing is recorded.
  CHECK(elements(vv::grad([&](tensor const& v) {
          tensor b = buffer({3});
          tensor const r = vv::reshape(b, dims{3, 1});
          vv::add_(b, 2);
          vv::no_grad const off;
          vv::add_(r, vv::reshape(v, dims{3, 1}));
          vv::enable_grad const on;
          return vv::sum(b * v);
        })(x)) == list{3, 4, 5});
  // After the transform it is an ordinary tensor (FS-10).
  tensor kept;
  (void)vv::grad([&](tensor const& v) {
    kept = vv::transpose(vv::zeros_like(vv::stack(std::vector<tensor>{v, v}, 0)) + 2, 0, 1);
    CHECK_THROWS_AS(kept.data<double>(), vv::transform_error);
    return vv::sum(v);
  })(x);
  CHECK(kept.data<double>()[5] == 2);
  CHECK(elements(vv::add_(kept, 1)) == list(6, 3));
  CHECK(elements(kept) == list(6, 3));
  CHECK(thread_is_clean());
}

namespace {
struct doubled : vv::function<doubled> {
  static constexpr bool generate_vmap_rule = true;
  static tensor forward(tensor const& x) { return x * 2; }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
  static auto backward(auto&, tensor const& g) { return g * 2; }
  static auto jvp(auto&, tensor const& t) { return t * 2; }
};
/// One that gives back what it captured.
tensor const* held = nullptr;
struct returns_held : vv::function<returns_held> {
  static tensor forward(tensor const&) { return *held; }
  static auto setup_context(auto ctx, auto const&, auto const&) { return ctx; }
};
} // namespace

TEST_CASE("level: what higher-order operators and custom functions make of constants there may be written into as well",
          "[autograd][view][transform][hop]") { // FS-7
  tensor const x = vec({1, -2, 3}), c = vec({5, 5, 5}), rows = vv::stack(std::vector<tensor>{c, c}, 0);
  auto const running = [](tensor const& s, tensor const& r) { return std::pair(s + r, s * r); };
  std::function<tensor()> const made[] = {
      [&] { return doubled::apply(c); },
      [&] { return vv::scan(running, c, rows).first; },
      [&] { return vv::sum(vv::scan(running, c, rows).second, 0); },
      [&] { return vv::sum(vv::map([](tensor const& r) { return r * 2; }, rows), 0); },
      [&] {
        return vv::while_loop([](tensor const& s) { return vv::sum(s) < 100; }, [](tensor const& s) { return s * 2; },
                              c);
      },
      [&] { return vv::vmap([](tensor const& r) { return doubled::apply(r); })(c); },
      [&] { return vv::grad([&](tensor const& v) { return vv::sum(v * doubled::apply(c)); })(c); },
  };
  for (auto const& make : made) {
    auto const f = [&](tensor const& v) {
      tensor const b = make();
      vv::mul_(b, v);
      return vv::sum(b * v);
    };
    tensor const k = make();
    list const slope = elements(k * x * 2), outer = elements(k * 2);
    CHECK(elements(vv::grad(f)(x)) == slope);
    CHECK(elements(vv::jvp(f, std::tuple(x), std::tuple(vec({1, 0, 0}))).second) == list{slope[0]});
    CHECK(elements(vv::grad([&](tensor const& w) { return vv::sum(vv::grad(f)(w)); })(x)) == outer);
    CHECK(elements(vv::grad([&](tensor const& v) {
            vv::no_grad const off;
            tensor const b = make();
            vv::enable_grad const on;
            return vv::sum(vv::mul_(b, v));
          })(x)) == elements(k));
    // Of the inner level only: the outer one sees what it made before.
    CHECK_THROWS_AS(vv::grad([&](tensor const& w) {
                      tensor const b = make();
                      return vv::sum(vv::grad([&](tensor const& v) { return vv::sum(vv::mul_(b, v)); })(w));
                    })(x),
                    vv::transform_error);
  }
  // What is captured is no result, though it comes out as one.
  held = &c;
  CHECK_THROWS_AS(vv::grad([&](tensor const& v) { return vv::sum(vv::add_(returns_held::apply(rows), v)); })(x),
                  vv::transform_error);
  auto const ends_with_it = [&](tensor const& v) {
    return vv::sum(
        vv::add_(vv::scan([&](tensor const&, tensor const& r) { return std::pair(c, r); }, c + 1, rows).first, v));
  };
  CHECK(elements(vv::grad(ends_with_it)(x)) == list{1, 1, 1}); // of a copy
  CHECK(elements(c) == list{5, 5, 5});
  CHECK(thread_is_clean());
}

TEST_CASE("level: views are written into in inference mode as outside of it", "[autograd][view][transform]") { // AG-20
  tensor const x = vec({1, 2, 3}), t = vec({1, 1, 1});
  auto const into_view = [](tensor const& v) {
    tensor const b = vv::clone(v), r = vv::reshape(b, dims{3, 1});
    vv::mul_(r, vv::reshape(v, dims{3, 1}));
    return vv::sum(b * v);
  };
  auto const into_base = [](tensor const& v) {
    tensor const b = vv::zeros({3}, vv::dtype::float64), r = vv::reshape(b, dims{3, 1});
    vv::add_(b, v);
    return vv::sum(r * r * r);
  };
  auto const overtaken = [](tensor const& v) {
    tensor const b = vv::clone(v), s = vv::sum(vv::sin(b));
    vv::mul_(b, v);
    return s;
  };
  {
    vv::inference_mode const on;
    for (auto const& f :
         {std::function<tensor(tensor const&)>(into_view), std::function<tensor(tensor const&)>(into_base)}) {
      CHECK(elements(vv::grad(f)(x)) == list{3, 12, 27});
      CHECK(elements(vv::jvp(f, std::tuple(x), std::tuple(t)).second) == list{42});
      CHECK(elements(vv::grad([&](tensor const& v) { return vv::sum(vv::grad(f)(v)); })(x)) == list{6, 12, 18});
    }
    CHECK_THROWS_WITH(vv::grad(overtaken)(x), ContainsText("was modified by an in-place operator"));
    CHECK_THROWS_AS(vv::clone(x).version(), vv::autograd_error);
  }
  CHECK_THROWS_WITH(vv::grad(overtaken)(x), ContainsText("was modified by an in-place operator"));
  CHECK(elements(vv::grad([&](tensor const& v) {
          vv::inference_mode const on;
          return into_view(v);
        })(x)) == list{0, 0, 0}); // inside of a transform it is a no_grad of its level as well
  CHECK(thread_is_clean());
}

TEST_CASE("level: its constants are read, and written into what the function is given", "[autograd][transform]") {
  tensor const x = vec({1, 2, 3}), kept = vec({0, 0, 0});
  auto const f = [&](tensor const& v, tensor const& given) {
    tensor const c = x * 2;
    vv::add_(given, c);
    vv::copy_(vv::select(given, 0, 0), vv::sum(vv::clone(vv::detach(v))));
    c.bump_version();
    return vv::sum(v * vv::sum(c).template item<double>());
  };
  CHECK_THROWS_WITH(vv::grad([&](tensor const& v) { return f(v, kept); })(x),
                    ContainsText("a captured tensor is written into")); // FS-7
  CHECK(elements(kept) == list{0, 0, 0});
  CHECK(elements(vv::grad(f)(x, kept)) == list{12, 12, 12});
  CHECK(elements(vv::jvp(vv::closure(f, kept), std::tuple(x), std::tuple(x)).second) == list{72});
  CHECK(elements(kept) == list{6, 8, 12});
  CHECK_THROWS_AS(vv::grad([&](tensor const& v) { return vv::add_(kept, v), vv::sum(v); })(x), vv::transform_error);
  CHECK_THROWS_AS(vv::vmap([&](tensor const& v) { return v * v.template item<double>(); })(x), vv::transform_error);
  CHECK(elements(kept) == list{6, 8, 12});
  CHECK(thread_is_clean());
}

TEST_CASE("level: what eager autograd recorded is asked for it inside as outside", "[autograd][transform]") {
  tensor const l = leaf(3.0);
  tensor kept;
  int heard = 0;
  tensor const y = vv::grad([&](tensor const& v) {
    kept = l * l;
    CHECK(!kept.is_leaf());
    CHECK(kept.requires_grad());
    CHECK(kept.grad_fn());
    kept.register_hook([&](tensor const&) { ++heard; });
    kept.retain_grad();
    CHECK(vv::zeros({2}).is_leaf());
    return vv::sum(v) * kept;
  })(number(1));
  CHECK(!kept.is_leaf());
  y.backward();
  CHECK(heard == 1);
  CHECK(kept.grad().item<double>() == 1);
  CHECK(grad_of(l) == list{6});
  {
    vv::forward_ad::dual_level const on;
    CHECK(vv::forward_ad::make_dual(l, number(1)).is_leaf());
    CHECK_THROWS_WITH(vv::autograd::grad<>({vv::forward_ad::make_dual(l, number(1)) * 2}, {l}),
                      ContainsText("recorded below the transform"));
    CHECK_THROWS_AS(vv::forward_ad::make_dual(l, number(1)).register_hook([](tensor const&) {}), vv::autograd_error);
  }
  // A view that has its history from its base only.
  vv::autograd::options create;
  create.create_graph = true;
  CHECK(elements(vv::grad([&](tensor const& v) {
          tensor const b = vv::zeros({3}, vv::dtype::float64), first = vv::select(b, 0, 0);
          vv::add_(b, v * v * v);
          return vv::sum(vv::autograd::grad<>({first}, {v}, {}, create)[0]);
        })(vec({1, 2, 3}))) == list{6, 0, 0});
  CHECK(thread_is_clean());
}

TEST_CASE("as_strided: of a slice that vmap maps it is a view too", "[op][view][vmap]") {
  numbers draw(9);
  tensor const x = uniform({3, 2, 3}, draw);
  auto const f = [](tensor const& v) {
    tensor const y = v * 1;
    vv::mul_(vv::as_strided(vv::slice(y, 0, 1, 2, 1), dims{2}, dims{1}, dims{1}), 3.0);
    return y;
  };
  std::vector<tensor> rows;
  for (index_t k = 0; k < 3; ++k) rows.push_back(f(vv::select(x, 0, k)));
  CHECK(difference(vv::vmap(f)(x), vv::stack(rows, 0)) == "");
  auto const strided = [](tensor const& v) {
    return vv::as_strided(vv::transpose(v, 0, 1), dims{2}, dims{1}, dims{0});
  };
  CHECK_THROWS_AS(strided(vv::select(x, 0, 0)), vv::value_error);
  CHECK_THROWS_AS(vv::vmap(strided)(x), vv::value_error);
}

TEST_CASE("diagonals and windows are views of what lies in any order", "[op][view][vmap][functionalize]") {
  numbers draw(11);
  tensor const x = uniform({4, 6}, draw), both = vv::stack(std::vector<tensor>{x, x * 2.0}, 0);
  auto const agrees = [&](auto const& f) {
    tensor const right = f(x), rows = vv::stack(std::vector<tensor>{right, f(x * 2.0)}, 0);
    tensor const back_to_front = vv::movedim(both, 0, -1);
    CHECK(vv::allclose(vv::functionalize(f)(x), right));
    CHECK(vv::allclose(vv::compile(f)(x), right));
    CHECK(vv::allclose(vv::interpret(vv::make_fx(f)(x), vv::boxed_args(x))[0], right));
    CHECK(vv::allclose(vv::vmap(f)(both), rows));
    CHECK(vv::allclose(vv::vmap(f, vv::in_dims<-1>)(back_to_front), rows));
    CHECK(vv::allclose(vv::vmap(vv::functionalize(f), vv::in_dims<-1>)(back_to_front), rows));
    CHECK(vv::allclose(vv::functionalize(vv::vmap(f, vv::in_dims<-1>))(back_to_front), rows));
    auto const loss = [f](tensor const& v) {
      tensor const y = f(v * 1.0);
      return vv::sum(y * y);
    };
    tensor const leaf = vv::clone(x);
    leaf.requires_grad_();
    loss(leaf).backward();
    CHECK(vv::allclose(vv::grad(loss)(x), leaf.grad()));
    CHECK(vv::allclose(vv::jacfwd(loss)(x), leaf.grad()));
    return right;
  };
  tensor const seen = agrees([](tensor const& v) {
    tensor const y = v * 1.0;
    vv::mul_(vv::diagonal(vv::transpose(y, 0, 1), 1), 3.0);
    return y;
  });
  CHECK(elements(seen)[6] == 3 * elements(x)[6]); // row 1, column 0
  CHECK(elements(seen)[1] == elements(x)[1]);
  (void)agrees([](tensor const& v) {
    tensor const y = v * 1.0, d = vv::diagonal(vv::slice(y, 1, 1, 6, 2), -1);
    vv::mul_(y, 3.0);
    vv::tanh_(d);
    return y * vv::sum(d);
  });
  (void)agrees([](tensor const& v) {
    tensor const y = v * 1.0, w = vv::unfold(vv::transpose(y, 0, 1), 0, 3, 2);
    vv::mul_(vv::select(w, 2, 0), 3.0);
    return w * vv::sum(y);
  });
  (void)agrees([](tensor const& v) {
    tensor const y = v * 1.0, d = vv::diagonal(vv::expand(y, dims{3, 4, 6}), 0, 0, 2);
    vv::mul_(y, 3.0);
    return d;
  });
}

TEST_CASE("a write into lanes that lie between one another is refused before it is made",
          "[autograd][view][vmap][jvp]") {
  tensor const x = vv::reshape(vv::to(vv::arange(24), vv::dtype::float64), dims{2, 2, 6}), before = vv::clone(x);
  auto const tangent = [](tensor const& v) {
    auto const write = [](tensor const& u) {
      tensor const row = vv::select(u, 0, 0);
      vv::tanh_(row);
      return vv::clone(row);
    };
    return vv::jvp(write, std::tuple(v), std::tuple(v * 0.5)).second;
  };
  CHECK_THROWS_AS(vv::vmap(tangent, vv::in_dims<-1>)(x), vv::autograd_error);
  CHECK_THROWS_AS(vv::vmap(tangent, vv::in_dims<1>)(x), vv::autograd_error);
  CHECK(elements(x) == elements(before));
  CHECK(x.version() == before.version());
  CHECK_NOTHROW(vv::vmap(tangent)(x));
  CHECK(elements(x) != elements(before));
}
