// SPDX-License-Identifier: BSL-1.0
// Saved values: hooks that pack them, and writes into them.
#include "../sample/value.hpp"

#include <varve/indexing.hpp>
#include <varve/varve.hpp>

#include <algorithm>
#include <string_view>
#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
tensor leaf(tensor const& t) {
  tensor const r = vv::clone(t);
  r.requires_grad_();
  return r;
}
} // namespace

TEST_CASE("saved values: packed when recorded, unpacked when needed", "[autograd][saved]") { // AG-23
  tensor const x = leaf(tensor{{0.5, 2.0}});
  int packed = 0, unpacked = 0;
  tensor y;
  {
    vv::saved_tensors_hooks const on(
        [&](tensor const& t) {
          ++packed;
          return vv::to(t.detach(), dtype::float32);
        },
        [&](tensor const& t) {
          ++unpacked;
          return vv::to(t, dtype::float64);
        });
    y = vv::sum(vv::mul(vv::sin(x), vv::add(x, 1.0)));
  }
  CHECK(packed == 3); // sin's operand, both of mul; add and sum keep nothing
  CHECK(unpacked == 0);
  y.backward();
  CHECK(unpacked == 3);
  tensor const exact =
      vv::grad([](auto const& t) { return vv::sum(vv::mul(vv::sin(t), vv::add(t, 1.0))); })(x.detach());
  CHECK(difference(x.grad(), exact, 1e-6) == "");
  CHECK(difference(x.grad(), exact, 0) != "");
}

TEST_CASE("saved values: derivatives of derivatives see through hooks and checkpoints",
          "[autograd][saved][checkpoint]") { // AG-23, CK-5
  tensor const x = leaf(tensor{{0.5, 2.0}}), w = leaf(tensor{{1.5, 0.3}});
  auto const f = [&](tensor const& t) {
    return vv::mul(vv::exp(vv::mul(t, w)), vv::tanh(t));
  }; // operands and results are read
  auto const second = [&](auto const& call) {
    auto const g = vv::autograd::grad<>({vv::sum(call(x))}, {x, w}, {}, {.create_graph = true});
    return vv::autograd::grad<>({vv::sum(vv::mul(g[0], g[0])) + vv::sum(g[1])}, {x, w});
  };
  auto const want = second(f);
  auto const detached = [](tensor const& t) { return t.detach(); };
  auto const hooked = second([&](tensor const& t) {
    vv::saved_tensors_hooks const on(detached, detached);
    return f(t);
  });
  auto const checkpointed = second([&](tensor const& t) { return vv::checkpoint(f, t); });
  for (std::size_t k = 0; k < 2; ++k) {
    CHECK(difference(hooked[k], want[k], 1e-14) == "");
    CHECK(difference(checkpointed[k], want[k], 1e-14) == "");
  }
}

TEST_CASE("saved values: hooks that write, and hooks around transforms, are refused",
          "[autograd][saved][FS-S15]") { // AG-23, TR-25
  tensor const x = leaf(tensor{{0.5, 2.0}});
  auto const same = [](tensor const& t) { return t; };
  auto const f = [](auto const& t) { return vv::sum(vv::sin(t)); };
  {
    vv::saved_tensors_hooks const on(
        [](tensor const& t) {
          vv::no_grad const off;
          vv::mul_(t, 2.0);
          return t;
        },
        same);
    CHECK_THROWS_WITH(vv::sin(vv::mul(x, 1.0)), ContainsText("modified its input"));
  }
  {
    vv::saved_tensors_hooks const on(same, same);
    CHECK_THROWS_WITH(vv::grad(f)(x), ContainsText("saved tensor hooks"));
    CHECK_NOTHROW(vv::jvp(f, std::tuple{tensor(x.detach())}, std::tuple{tensor(x.detach())}));
    CHECK_NOTHROW(vv::vmap(f)(x));
    vv::disable_saved_tensors_hooks const off;
    CHECK_NOTHROW(vv::grad(f)(x));
  }
  CHECK_THROWS_WITH(vv::grad([&](auto const& t) {
                      vv::saved_tensors_hooks const on(same, same);
                      return f(t);
                    })(x),
                    ContainsText("saved tensor hooks"));
  auto const inside = [&](auto const& t) {
    vv::saved_tensors_hooks const on(same, same);
    return f(t);
  };
  auto const refused = [](auto const& call) { CHECK_THROWS_WITH(call(), ContainsText("saved tensor hooks")); };
  tensor const plain = x.detach();
  refused([&] { (void)vv::jacrev(inside)(plain); });
  refused([&] { (void)vv::value_and_grad(inside)(plain); });
  refused([&] { (void)vv::hessian(inside)(plain); });
  {
    vv::saved_tensors_hooks const on(same, same);
    refused([&] { (void)vv::jacrev(f)(plain); });
    refused([&] { (void)vv::value_and_grad(f)(plain); });
    refused([&] { (void)vv::hessian(f)(plain); });
  }
  CHECK(vv::this_thread_state.saved_hooks == nullptr);
}

TEST_CASE("saved values: may be written into where that is allowed", "[autograd][saved][in_place][AG-S27]") { // AG-24
  tensor const x = leaf(tensor{{0.5, 2.0}});
  tensor outside;
  {
    vv::allow_mutation_on_saved_tensors const allowed;
    CHECK_THROWS_AS(vv::allow_mutation_on_saved_tensors(), vv::autograd_error);
    tensor const a = vv::clone(x);
    tensor b = vv::mul(a, a);
    CHECK(allowed.copies() == 0);
    vv::sin_(a);
    CHECK(allowed.copies() == 1); // both operands were one
    tensor c = vv::mul(a, a);
    vv::sin_(a);
    CHECK(allowed.copies() >= 2); // and what sin_ had saved
    vv::sum(vv::add(b, vv::add(c, a))).backward({}, true);
    auto const plain = [](auto const& t) {
      auto const s = vv::sin(t);
      return vv::sum(vv::add(vv::mul(t, t), vv::add(vv::mul(s, s), vv::sin(s))));
    };
    tensor const want = [&] {
      vv::disable_saved_tensors_hooks const off;
      return vv::grad(plain)(x.detach());
    }();
    CHECK(difference(x.grad(), want, 1e-15) == "");
    tensor const v = vv::exp(x); // a result, and through a view, at the second order too
    tensor const y = vv::mul(v, v);
    vv::mul_(vv::select(v, 0, 0), 3.0);
    tensor const g = vv::autograd::grad<>({vv::sum(y)}, {x}, {}, {.create_graph = true})[0];
    tensor const h = vv::autograd::grad<>({vv::sum(g)}, {x})[0];
    CHECK(difference(h, vv::mul(vv::exp(vv::mul(x.detach(), 2.0)), 4.0), 1e-14) == "");
    outside = vv::sum(vv::mul(v, v));
    b = c = tensor();
  }
  CHECK_THROWS_WITH(outside.backward(), ContainsText("outside of the scope"));
  CHECK(vv::this_thread_state.saved_hooks == nullptr);
  CHECK(vv::this_thread_state.quiet());
  // Copies live as long as the graphs that need them.
  vv::allow_mutation_on_saved_tensors const allowed;
  tensor const a = vv::detach(vv::clone(x)).requires_grad_();
  tensor b = vv::mul(a, a), c;
  {
    vv::no_grad const off;
    vv::sin_(a);
  }
  c = vv::mul(a, a);
  {
    vv::no_grad const off;
    vv::sin_(a);
  }
  CHECK(allowed.copies() == 2);
  b = tensor();
  CHECK(allowed.copies() == 1);
  c = tensor();
  CHECK(allowed.copies() == 0);
}

TEST_CASE("saved values: what is written by index needs the index alone", "[autograd][saved][in_place]") {
  tensor const x = leaf(tensor{{0.5, 2.0, -1.0}}), s = leaf(tensor{{3.0, 4.0}}), at({std::int64_t{2}, std::int64_t{0}});
  tensor const source = s * 1.0, y = vv::scatter(x * 1.0, 0, at, source);
  vv::mul_(y, 2.0), vv::mul_(source, 5.0);
  vv::sum(y).backward();
  CHECK(elements(x.grad()) == std::vector<double>{0, 2, 0});
  CHECK(elements(s.grad()) == std::vector<double>{2, 2});
  tensor const z = vv::index_put(x * 1.0, {at}, s);
  vv::mul_(vv::index_copy(z, 0, at, s), 3.0), vv::mul_(z, 2.0);
  vv::sum(z).backward();
  CHECK(elements(x.grad()) == std::vector<double>{0, 4, 0});
  CHECK(elements(s.grad()) == std::vector<double>{4, 4});
  auto const f = [&](auto const& v) {
    tensor const u = vv::scatter(v * 1.0, 0, at, s.detach());
    vv::mul_(u, v);
    return vv::sum(u);
  };
  CHECK(elements(vv::grad(f)(x.detach())) == std::vector<double>{4, 4, 3});
}
