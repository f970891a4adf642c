// SPDX-License-Identifier: BSL-1.0
#include "../sample/value.hpp"

#include <varve/varve.hpp>

#include <varve_test.hpp>

using namespace sample;
namespace vv = varve;

namespace {
struct interrupted {};
/// A mode that throws at the n-th operator it sees.
struct throwing : vv::dispatch_mode<throwing> {
  int left;
  explicit throwing(int n) : left(n) {}
  tensor process(vv::boxed_op op, vv::boxed_args const& args) {
    if (left-- == 0) throw interrupted{};
    return op(args);
  }
};
/// Two levels of every transform, factories and views.
tensor program(tensor const& x) {
  auto inner = [](auto const& v) { return vv::sum(vv::softmax(v * v + vv::ones_like(v), 0) * vv::slice(v, 0, 0, 3)); };
  auto const g = vv::grad([&](auto const& v) { return vv::sum(vv::grad(inner)(v) * v); })(x);
  auto const b = vv::vmap(vv::vmap([](auto const& v) { return vv::tanh(v) * 2; }))(vv::reshape(x, dims{3, 1}));
  auto const [y, dy] =
      vv::jvp([&](auto const& v) { return vv::vmap(vv::grad([](auto const& u) { return u * u * u; }))(v); },
              std::tuple(x), std::tuple(g));
  return vv::sum(y) + vv::sum(dy) + vv::sum(b);
}
int throws_at(int n, tensor const& x) { // the n-th call of an operator by a user
  if (n == 0) throw interrupted{};
  (void)x;
  return 0;
}
} // namespace

TEST_CASE("exceptions: thrown by a mode at the n-th operator, for every n, leave all stacks empty",
          "[dispatch][exception]") {
  tensor const x = from({0.5, -1, 2}, {3});
  tensor const want = program(x);
  int n = 0;
  for (;; ++n) {
    throwing m(n);
    bool thrown = false;
    try {
      vv::mode_guard const on{m};
      (void)program(x);
    } catch (interrupted const&) { thrown = true; }
    REQUIRE(vv::this_thread_state.quiet());
    if (!thrown) break;
    CHECK(elements(x) == std::vector<double>{0.5, -1, 2});
  }
  CHECK(n > 60);
  CHECK(x.version() == 0);
  CHECK(difference(program(x), want) == "");
}

TEST_CASE("exceptions: thrown by the user's function under each transform and pairs of them", "[dispatch][exception]") {
  tensor const x = from({0.5, -1, 2}, {3});
  auto f = [](auto const& v) {
    auto y = vv::sin(v) * v;
    throws_at(0, y);
    return vv::sum(y);
  };
  CHECK_THROWS_AS(vv::grad(f)(x), interrupted);
  CHECK(vv::this_thread_state.quiet());
  CHECK_THROWS_AS(vv::vmap(f)(vv::reshape(x, dims{3, 1})), interrupted);
  CHECK(vv::this_thread_state.quiet());
  CHECK_THROWS_AS(vv::jvp(f, std::tuple(x), std::tuple(x)), interrupted);
  CHECK(vv::this_thread_state.quiet());
  CHECK_THROWS_AS(vv::grad([&](auto const& v) { return vv::sum(vv::grad(f)(v)); })(x), interrupted);
  CHECK_THROWS_AS(vv::vmap(vv::grad(f))(vv::reshape(x, dims{3, 1})), interrupted);
  CHECK(vv::this_thread_state.quiet());
  // One that is caught inside leaves the outer transform at work.
  auto g = [&](auto const& v) {
    try {
      (void)vv::grad(f)(v);
    } catch (interrupted const&) {}
    return vv::sum(v * v);
  };
  CHECK(elements(vv::grad(g)(x)) == std::vector<double>{1, -2, 4});
}

TEST_CASE("exceptions: thrown by a kernel below transforms and modes", "[dispatch][exception]") {
  tensor const x = from({0.5, -1, 2}, {3}), index = from({0, 7}, {2}, dtype::int64);
  auto f = [&](auto const& v) { return vv::sum(vv::gather(v * v, 0, index)); };
  CHECK_THROWS_AS(f(x), vv::index_error);
  CHECK_THROWS_AS(vv::grad(f)(x), vv::index_error);
  CHECK_THROWS_AS(vv::grad([&](auto const& v) { return vv::jvp(f, std::tuple(v), std::tuple(v)).second; })(x),
                  vv::index_error);
  CHECK_THROWS_AS(vv::vmap(f)(vv::reshape(x, dims{1, 3})), vv::index_error);
  throwing never(1 << 30);
  {
    vv::mode_guard const on{never};
    CHECK_THROWS_AS(vv::grad(f)(x), vv::index_error);
    CHECK_FALSE(vv::this_thread_state.quiet()); // the mode of this scope is back
    CHECK(vv::this_thread_state.transforms.top == nullptr);
  }
  CHECK(vv::this_thread_state.quiet());
  CHECK_THROWS_WITH(f(x), ContainsText("gather") && ContainsText("7") && ContainsText("3"));
}

TEST_CASE("exceptions: every refusal leaves operands and stacks as they were", "[dispatch][exception]") {
  tensor const x = from({1, 2, 3, 4, 5, 6}, {2, 3}), y = from({1, 2}, {2}), flags = from({1, 0}, {2}, dtype::bool_);
  using refused = void (*)(tensor const&, tensor const&, tensor const&);
  refused const calls[] = {[](tensor const& a, tensor const& b, tensor const&) { (void)(a + b); },
                           [](tensor const& a, tensor const& b, tensor const&) { (void)vv::where(a, a, b); },
                           [](tensor const& a, tensor const&, tensor const&) { (void)vv::reshape(a, dims{5}); },
                           [](tensor const& a, tensor const& b, tensor const&) { (void)vv::matmul(a, b); },
                           [](tensor const& a, tensor const& b, tensor const&) { (void)vv::add_(a, b); },
                           [](tensor const&, tensor const&, tensor const& c) { (void)vv::neg(c); },
                           [](tensor const&, tensor const&, tensor const& c) { (void)(c - c); },
                           [](tensor const& a, tensor const& b, tensor const&) { (void)vv::gather(a, 0, b); },
                           [](tensor const& a, tensor const&, tensor const&) { (void)vv::sum(a, 5); }};
  for (auto call : calls) {
    CHECK_THROWS_AS(call(x, y, flags), vv::error);
    CHECK_THROWS_AS(vv::vmap([&](auto const& a) {
                      call(a, y, flags);
                      return a;
                    })(vv::expand(x, dims{4, 2, 3})),
                    vv::error);
    CHECK(vv::this_thread_state.quiet());
  }
  CHECK(elements(x) == std::vector<double>{1, 2, 3, 4, 5, 6});
  CHECK(x.version() + y.version() + flags.version() == 0);
}

TEST_CASE("exceptions: undefined tensors are refused by whatever asks something of them", "[dispatch][exception]") {
  tensor const x = from({1, 2, 3, 4, 5, 6}, {2, 3}), none;
  auto const refused = [](auto const& f, std::string const& who) {
    CHECK_THROWS_AS(f(), vv::value_error);
    CHECK_THROWS_WITH(f(), ContainsText("varve: " + who + ": the tensor is undefined; ask defined() first"));
  };
  refused([&] { (void)(x + none); }, "add");
  refused([&] { (void)(none * 2.0); }, "mul");
  refused([&] { (void)vv::exp(none); }, "exp");
  refused([&] { (void)vv::where(none, x, x); }, "where");
  refused([&] { (void)vv::mm(x, none); }, "mm");
  refused([&] { (void)vv::matmul(x, none); }, "sizes");
  refused([&] { (void)vv::sum(none); }, "sizes");
  refused([&] { (void)vv::softmax(none, 0); }, "dtype");
  refused([&] { vv::add_(none, x); }, "add_");
  refused([&] { vv::add_(x, none); }, "add_");
  refused([&] { (void)vv::cat(std::vector{x, none}); }, "dtype");
  refused([&] { (void)vv::stack(std::vector{x, none}); }, "sizes");
  refused([&] { (void)vv::to(none, dtype::int32); }, "dtype");
  refused([&] { (void)none.dtype(); }, "dtype");
  refused([&] { (void)none.sizes(); }, "sizes");
  refused([&] { (void)none.data<float>(); }, "dtype");
  refused([&] { (void)none.item<float>(); }, "sizes");
  refused([&] { (void)static_cast<bool>(none); }, "sizes");
  refused([&] { (void)none.strides(); }, "strides");
  refused([&] { (void)none.is_contiguous(); }, "is_contiguous");
  refused([&] { (void)none.raw(); }, "dtype");
  refused([&] { (void)none.alias(); }, "alias");
  refused([&] { (void)none.data(); }, "data");
  refused([&] { (void)none.version(); }, "version");
  refused([&] { vv::unsafe_set_version_counter(none, 1); }, "version");
  refused([&] { vv::increment_version(none); }, "version");
  refused([&] { (void)none.output_nr(); }, "output_nr");
  refused([&] { none.detach_(); }, "detach_");
  refused([&] { none.requires_grad_(); }, "requires_grad_");
  refused([&] { (void)none.detach(); }, "detach");
  refused([&] { (void)vv::grad([](auto const& v) { return vv::sum(v * v); })(none); }, "dtype");
  refused([&] { (void)vv::vmap([](auto const& v) { return v * v; })(none); }, "sizes");
  refused([&] { (void)vv::cond(none, [](auto const& v) { return v; }, [](auto const& v) { return v * 2; }, x); },
          "sizes");
  refused([&] { (void)vv::scan([](auto const& c, auto const& v) { return std::pair{c + v, c}; }, none, x); }, "scan");
  CHECK(vv::sum(x + x).item<double>() == 42);
}
TEST_CASE("exceptions: a value seen through a transform has no memory to share", "[dispatch][exception]") {
  tensor const x = from({1, 2, 3, 4, 5, 6}, {2, 3});
  auto const shares = [](tensor const& v) { return vv::sum(v.alias()); };
  auto const lays_out = [](tensor const& v) { return vv::sum(v.with_layout(v.where())); };
  auto const refused = ContainsText("alias: a tensor seen through a transform has no memory of its own");
  CHECK_THROWS_WITH(vv::grad(shares)(x), refused);
  CHECK_THROWS_WITH(vv::vmap(shares)(x), refused);
  CHECK_THROWS_WITH(vv::compile(shares)(x), refused);
  CHECK_THROWS_WITH(vv::functionalize(shares)(x), refused);
  CHECK_THROWS_WITH(vv::grad(lays_out)(x), refused);
  CHECK(vv::this_thread_state.quiet());
}
TEST_CASE("exceptions: undefined tensors have no history", "[dispatch][exception]") { // as in PyTorch
  tensor const x = from({1, 2, 3, 4, 5, 6}, {2, 3}), none;
  CHECK_FALSE(none.requires_grad());
  CHECK(none.is_leaf());
  CHECK_FALSE(none.grad().defined());
  CHECK_FALSE(static_cast<bool>(none.grad_fn()));
  CHECK_FALSE(none.is_view());
  CHECK_FALSE(none.is_inference());
  CHECK_FALSE(none.has_data());
  CHECK_FALSE(none.shares_storage(x));
  CHECK_FALSE(x.shares_storage(none));
  auto const refused = [](auto const& f) { CHECK_THROWS_AS(f(), vv::autograd_error); };
  tensor const w = x.alias();
  w.requires_grad_();
  tensor const y = vv::sum(w * w);
  refused([&] { none.backward(); });
  refused([&] { none.retain_grad(); });
  refused([&] { (void)none.register_hook([](tensor const& g) { return g; }); });
  refused([&] { (void)none.register_post_accumulate_grad_hook([](tensor const&) {}); });
  refused([&] { none.set_grad(x); });
  refused([&] { none.zero_grad(); });
  refused([&] { (void)vv::autograd::grad({y}, {none}); });
  refused([&] { (void)vv::autograd::grad({none}, {w}); });
  refused([&] { vv::autograd::backward({none}); });
  refused([&] { vv::autograd::backward<>({y}, {}, {}, {none}); });
  CHECK_THROWS_AS(w.set_data(none), vv::dtype_error);
  CHECK_THROWS_AS(none.set_data(x), vv::dtype_error);
  y.backward();
  CHECK(elements(w.grad()) == std::vector<double>{2, 4, 6, 8, 10, 12});
}
