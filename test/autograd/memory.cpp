// SPDX-License-Identifier: BSL-1.0
// Graphs are freed with the last handle: programs in a loop hold no more memory after many rounds than after some. What
// a step takes from the heap, once a first one has been made: nothing.
#include "autograd_test.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<long> live{0}, taken_ever{0};
void* take(std::size_t n, std::size_t align) {
  ++live, ++taken_ever;
  if (void* const p = align > alignof(std::max_align_t) ? std::aligned_alloc(align, (n + align - 1) / align * align)
                                                        : std::malloc(n ? n : 1))
    return p;
  throw std::bad_alloc();
}
void give(void* p) noexcept {
  if (!p) return;
  --live;
  std::free(p);
}
} // namespace
void* operator new(std::size_t n) { return take(n, 0); }
void* operator new(std::size_t n, std::align_val_t a) { return take(n, static_cast<std::size_t>(a)); }
void* operator new(std::size_t n, std::nothrow_t const&) noexcept {
  ++live, ++taken_ever;
  return std::malloc(n ? n : 1);
}
void* operator new(std::size_t n, std::align_val_t a, std::nothrow_t const&) noexcept {
  ++live, ++taken_ever;
  auto const align = static_cast<std::size_t>(a);
  return std::aligned_alloc(align, (n + align - 1) / align * align);
}
void operator delete(void* p, std::nothrow_t const&) noexcept { give(p); }
void operator delete(void* p, std::align_val_t, std::nothrow_t const&) noexcept { give(p); }
void operator delete(void* p) noexcept { give(p); }
void operator delete(void* p, std::size_t) noexcept { give(p); }
void operator delete(void* p, std::align_val_t) noexcept { give(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { give(p); }

using namespace autograd_test;

namespace {
/// Blocks that a program keeps after each round, when its memory has settled.
template <class F>
long kept(F const& program) {
  for (int k = 0; k < 40; ++k) program();
  long const before = live;
  for (int k = 0; k < 40; ++k) program();
  return live - before;
}
struct keeps_its_result : vv::function<keeps_its_result> {
  static auto forward(auto x) { return vv::exp(x); }
  static auto setup_context(auto ctx, auto const& in, auto const& y) {
    return ctx.save_for_backward(y, std::get<0>(in));
  }
  static auto backward(auto& ctx, auto g) {
    auto [y, x] = ctx.saved();
    return vv::mul(g, y);
  }
};
} // namespace

TEST_CASE("memory: graphs that are dropped are freed", "[autograd][memory]") {
  tensor const w = from(list(30, 0.5), {30}).requires_grad_();
  CHECK(kept([&] { (void)vv::sum(vv::exp(w * w) * vv::tanh(w)); }) == 0); // never run
  CHECK(kept([&] { vv::sum(vv::exp(w * w) * vv::tanh(w)).backward(); }) == 0);
  CHECK(kept([&] { vv::sum(vv::softmax(w, vv::axis<0>) * w).backward({}, true); }) == 0);
  CHECK(kept([&] { (void)leaf({1, 2}); }) == 0);
  CHECK(kept([&] {
          tensor const x = leaf({1, 2});
          (x * x).backward(vec({1, 1}));
        }) == 0);
}

TEST_CASE("memory: derivatives of derivatives by grad leave nothing", "[autograd][memory]") {
  CHECK(kept([&] {
          tensor const x = leaf({1, 2});
          tensor const g = vv::autograd::grad<>({vv::sum(vv::exp(x) * x)}, {x}, {}, {.create_graph = true})[0];
          (void)vv::autograd::grad<>({vv::sum(g * g)}, {x})[0];
        }) == 0);
  CHECK(kept([&] {
          tensor const x = leaf({1, 2});
          (void)vv::autograd::grad<>({x * x}, {x}, {from({1, 0, 0, 1}, {2, 2})}, {.is_grads_batched = true})[0];
        }) == 0);
  // Gradients that are collected with their history make a cycle of leaf and gradient, as in PyTorch; zero_grad breaks
  // it.
  CHECK(kept([&] {
          tensor const x = leaf({1, 2});
          vv::sum(x * x).backward({}, false, true);
          x.zero_grad();
        }) == 0);
}

TEST_CASE("memory: writing in place, through views too, leaves nothing", "[autograd][memory][in_place]") {
  tensor const w = leaf({1, 2});
  for (bool run : {false, true}) {
    auto const end = [run](tensor const& y) {
      if (run) vv::sum(y).backward();
    };
    CHECK(kept([&] {
            tensor const a = w * 1;
            vv::mul_(a, w);
            vv::add_(a, a);
            vv::mul_(a, a);
            end(a);
          }) == 0);
    CHECK(kept([&] {
            tensor const a = w * 1, v = vv::slice(a, 0, 0, 1), u = vv::reshape(a, dims{2, 1});
            vv::mul_(v, 3);
            vv::mul_(u, u);
            vv::copy_(v, vv::slice(w, 0, 1, 2));
            end(u * v);
          }) == 0);
    CHECK(kept([&] {
            tensor const buffer = from(list(8, 0), {8});
            for (index_t k = 0; k < 8; ++k) vv::copy_(vv::select(buffer, 0, k), vv::sum(w) * static_cast<double>(k));
            end(buffer);
          }) == 0);
    CHECK(kept([&] {
            tensor const a = w * 1;
            vv::add_(a, vv::sum(w * w)); // an operand of another shape
            tensor const p = vec({1, 2}), y = w + vv::slice(p, 0, 0, 1);
            vv::copy_(p, y);
            end(p * a);
          }) == 0);
  }
}

namespace {
struct doubles_over : vv::function<doubles_over> {
  static tensor forward(tensor x) { return vv::mul_(x, 2); }
  static auto setup_context(auto ctx, auto const&, auto const& y) {
    return ctx.template mark_dirty<0>().save_for_backward(y);
  }
  static auto backward(auto&, tensor g) { return g * 2; }
};
} // namespace

TEST_CASE("memory: what is written with values made of it leaves nothing", "[autograd][memory][in_place]") {
  tensor const w = vector_of({1, 2, 3}).requires_grad_();
  auto const none = [](auto const& program) { CHECK(kept(program) == 0); };
  none([&] { // the product keeps h, whose history is to lead to the product
    tensor const h = vv::exp(w), y = h * w;
    vv::copy_(h, vv::sin(y));
  });
  none([&] { // no history before
    tensor const h = vv::ones({3}, dtype::float64), y = h * w;
    vv::copy_(h, vv::sin(y));
  });
  none([&] { // again and again
    tensor const h = vv::exp(w);
    for (int k = 0; k < 5; ++k) vv::copy_(h, vv::tanh(h * w));
  });
  none([&] { // through views, and of the base of a view
    tensor const h = vv::exp(w), part = vv::slice(h, 0, 0, 2), y = part * part;
    vv::copy_(part, vv::sin(y));
    tensor const other = vv::exp(w), kept_part = vv::slice(other, 0, 1, 3), z = vv::sin(kept_part);
    vv::copy_(other, vv::expand(vv::sum(z), dims{3}));
  });
  none([&] {
    tensor const h = vv::exp(w), y = keeps_its_result::apply(h);
    vv::copy_(h, vv::sin(y));
  });
}

TEST_CASE("what is written with values made of it has its gradient, and no stale one", "[autograd][in_place]") {
  tensor const w = vector_of({0.5, 1, 2}).requires_grad_();
  { // exp keeps its result, the sum nothing: right through the write
    tensor const h = w + 1.0, y = vv::exp(w) + h;
    vv::copy_(h, y * 2.0);
    tensor const g = vv::autograd::grad<>({vv::sum(h)}, {w}, {}, {.create_graph = true})[0];
    std::vector<double> right, second;
    for (double e : {0.5, 1.0, 2.0}) right.push_back(2 * (std::exp(e) + 1)), second.push_back(2 * std::exp(e));
    CHECK(difference(g, vec(right), 1e-12) == "");
    CHECK(difference(vv::autograd::grad<>({vv::sum(g)}, {w})[0], vec(second), 1e-12) == "");
  }
  { // the product needs h as it was
    tensor const h = vv::exp(w), y = h * w;
    vv::copy_(h, vv::sin(y));
    CHECK_THROWS_WITH(vv::sum(h).backward(), ContainsText("modified by an in-place operator"));
    CHECK_THROWS_WITH(vv::sum(y).backward(), ContainsText("modified by an in-place operator"));
  }
  { // hooks keep a value of their own
    vv::saved_tensors_hooks const hooks([](tensor const& t) { return tensor(vv::clone(vv::detach(t))); },
                                        [](tensor const& t) { return t; });
    tensor const h = vv::exp(w), y = h * w;
    vv::copy_(h, y * 3.0);
    std::vector<double> right;
    for (double e : {0.5, 1.0, 2.0}) right.push_back(3 * (e + 1) * std::exp(e));
    CHECK(difference(vv::autograd::grad<>({vv::sum(h)}, {w})[0], vec(right), 1e-12) == "");
  }
}

TEST_CASE("memory: operands marked dirty, and views written inside of transforms, leave nothing",
          "[autograd][memory][in_place]") {
  tensor const w = leaf({1, 2});
  CHECK(kept([&] { (void)doubles_over::apply(w * 1); }) == 0); // never run
  CHECK(kept([&] { vv::sum(doubles_over::apply(w * 1)).backward(); }) == 0);
  auto const writes = [](tensor const& v) {
    tensor const y = v * 1;
    vv::mul_(vv::slice(y, 0, 0, 1), 3);
    return vv::sum(doubles_over::apply(y) * v);
  };
  CHECK(kept([&] { (void)vv::grad(writes)(w.detach()); }) == 0);
  CHECK(kept([&] { (void)vv::grad([&](tensor const& v) { return vv::sum(vv::grad(writes)(v)); })(w.detach()); }) == 0);
}

TEST_CASE("memory: hooks, retained gradients and custom functions leave nothing", "[autograd][memory][hook]") {
  CHECK(kept([&] {
          tensor const x = leaf({1, 2}), a = x * 1;
          x.register_hook([](tensor const&) {});
          x.register_post_accumulate_grad_hook([](tensor const&) {});
          a.retain_grad();
          auto h = a.register_hook([](tensor const& g) { return g * 2; });
          a.grad_fn().register_prehook([](vv::boxed_args&) {});
          vv::sum(a).backward();
          h.remove();
        }) == 0);
  CHECK(kept([&] {
          tensor const x = leaf({1, 2});
          x.register_post_accumulate_grad_hook([](tensor const&) {});
          x.set_data(from({1, 2}, {2}, dtype::float32));
          vv::sum(x).backward();
        }) == 0);
  tensor const w = leaf({1, 2});
  CHECK(kept([&] { (void)keeps_its_result::apply(w); }) == 0); // never run
  CHECK(kept([&] { vv::sum(keeps_its_result::apply(w * 1)).backward(); }) == 0);
  CHECK(kept([&] {
          tensor const g =
              vv::autograd::grad<>({vv::sum(keeps_its_result::apply(w))}, {w}, {}, {.create_graph = true})[0];
          (void)g;
        }) == 0);
  CHECK(kept([&] { (void)vv::grad([](tensor const& v) { return vv::sum(keeps_its_result::apply(v)); })(w); }) == 0);
}

TEST_CASE("memory: an exception in the middle leaves nothing", "[autograd][memory]") {
  struct stop {};
  CHECK(kept([&] {
          tensor const x = leaf({1, 2}), a = x * x;
          a.register_hook([](tensor const&) -> tensor { throw stop{}; });
          try {
            vv::sum(a * a).backward();
          } catch (stop) {}
        }) == 0);
  CHECK(kept([&] {
          tensor const x = leaf({1, 2}), a = x * 1;
          tensor const y = vv::sum(a * a);
          vv::mul_(vv::slice(a, 0, 0, 1), 2);
          try {
            y.backward();
          } catch (vv::autograd_error const&) {}
        }) == 0);
}

TEST_CASE("memory: small tensors, nodes and the lists of a run are used again", "[autograd][memory]") {
  tensor const x = leaf({0.1, 0.2, 0.3, 0.4}), w = leaf({1, 2, 3, 4}), b = vec({0.5, 0.5, 0.5, 0.5});
  auto const chain = [&] {
    tensor y = x;
    for (int k = 0; k < 3; ++k) y = vv::tanh(y * w + b);
    return vv::sum(y);
  };
  // One value that many read: more than one node may run at a time.
  auto const wide = [&] {
    tensor const y = x * w;
    tensor sum = vv::sin(y);
    for (int k = 0; k < 5; ++k) sum = sum + vv::cos(y) * x;
    return vv::sum(sum);
  };
  auto const of_step = [&](auto const& f) {
    long taken = 0;
    list first;
    for (int k = 0; k < 3; ++k) {
      long const before = taken_ever;
      f().backward();
      taken = taken_ever - before;
      list const g = grad_of(x);
      if (k == 0) first = g;
      CHECK(g == first);
      x.zero_grad(), w.zero_grad();
    }
    return taken;
  };
  long const of_chain = of_step(chain), of_wide = of_step(wide);
  if (VARVE_RECYCLE_BLOCKS) { // else every block is the heap's
    CHECK(of_chain == 0);
    CHECK(of_wide == 0);
  } else {
    // the thread sanitizer has its own operator new, which counts nothing
    long const before = taken_ever;
    ::operator delete(::operator new(1));
    long const least = taken_ever - before;
    CHECK(of_chain >= least);
    CHECK(of_wide >= least);
  }
}
