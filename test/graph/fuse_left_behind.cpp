// SPDX-License-Identifier: BSL-1.0
// Values that transforms left behind, given to fused and compiled functions: they stand for what they hold, as for
// operators (FS-10).
#include "../autograd/autograd_test.hpp"

using namespace autograd_test;
using vv::spec;

namespace {
constexpr auto affine = [](auto const& x, auto const& y) { return x * y + 1.0; };
struct left_behind {
  tensor constant, tracked, twice, with_tangent;
};
/// Made in the transforms of `x`, and stored.
left_behind stored(tensor const& x) {
  left_behind r;
  (void)vv::grad([&](tensor const& v) {
    r.constant = vv::zeros_like(x) + 2;
    r.tracked = v * v;
    (void)vv::grad([&](tensor const& w) { return r.twice = w * v, vv::sum(w); })(v);
    return vv::sum(v);
  })(x);
  (void)vv::jvp([&](tensor const& v) { return r.with_tangent = v + v; }, std::tuple(x), std::tuple(x));
  return r;
}
template <class F>
void takes_them(F const& f, left_behind const& v, tensor const& x) {
  CHECK(v.tracked.is_wrapped());
  CHECK(elements(f(v.constant, x)) == list{3, -3, 7});
  CHECK(elements(f(x, v.constant)) == list{3, -3, 7});
  CHECK(elements(f(v.tracked, x)) == list{2, -7, 28});
  CHECK(elements(f(v.tracked, v.twice)) == list{2, 17, 82});
  CHECK(elements(f(v.with_tangent, x)) == list{3, 9, 19});
  CHECK(!f(v.tracked, v.twice).is_wrapped());
}
} // namespace

TEST_CASE("fuse: values left behind by transforms are what they hold", "[fuse][transform]") { // FS-10
  tensor const x = vec({1, -2, 3});
  left_behind const v = stored(x);
  constexpr auto fixed = vv::fuse<spec<double, 3>, spec<double, 3>>(affine);
  constexpr auto sized = vv::fuse<spec<double, vv::dim<"n">>, spec<double, vv::dim<"n">>>(affine);
  takes_them([](auto const&... a) { return affine(a...); }, v, x); // operator by operator
  takes_them(fixed, v, x);
  takes_them(vv::fuse<spec<double, 3>, spec<double, 3>>(affine, vv::table_driven), v, x);
  takes_them(sized, v, x);
  auto const graph = vv::fuse(vv::make_fx(affine)(x, x));
  takes_them([&](tensor const& a, tensor const& b) { return graph(vv::boxed_args(a, b))[0]; }, v, x);
  auto const compiled = vv::compile(affine);
  takes_them(compiled, v, x);
  CHECK(compiled.versions() == 1);
  takes_them(vv::compile([&](tensor const& a, tensor const& b) { return a * b + (v.constant - 1); }), v, x); // captured
  CHECK(thread_is_clean());
}

TEST_CASE("fuse: what transforms left behind is written into", "[fuse][transform]") {
  tensor const x = vec({1, -2, 3});
  constexpr auto fixed = vv::fuse<spec<double, 3>, spec<double, 3>>(affine);
  constexpr auto sized = vv::fuse<spec<double, vv::dim<"n">>, spec<double, vv::dim<"n">>>(affine);
  auto const into = [&](auto const& f) {
    left_behind const v = stored(x);
    tensor const memory = v.constant.inner();
    auto const before = v.constant.version();
    f.into(v.constant)(x, v.tracked);
    CHECK(elements(memory) == list{2, -7, 28});
    CHECK(v.constant.version() == before + 1);
    CHECK_THROWS_WITH(f.into(v.constant)(v.constant, x), ContainsText("overlaps argument 0"));
    CHECK_THROWS_WITH(f.into(v.constant)(memory, x), ContainsText("overlaps argument 0"));
  };
  into(fixed);
  into(sized);
  left_behind const v = stored(x);
  vv::compile([](tensor const& a, tensor const& b) { return vv::add_(a, b), b * 1; })(v.constant, v.tracked);
  CHECK(elements(v.constant) == list{3, 6, 11});
}

TEST_CASE("fuse: of values left behind the same is refused as of others", "[fuse][transform]") {
  tensor const x = vec({1, -2, 3}), leafy = leaf({1, -2, 3});
  left_behind const v = stored(x), with_history = stored(leafy);
  constexpr auto fixed = vv::fuse<spec<double, 3>, spec<double, 3>>(affine);
  constexpr auto sized = vv::fuse<spec<double, vv::dim<"n">>, spec<double, vv::dim<"n">>>(affine);
  auto const compiled = vv::compile(affine);
  tensor mapped;
  (void)vv::vmap([&](tensor const& row) { return mapped = row * 2; })(vv::reshape(x, dims{3, 1}));
  auto const refuses = [&](auto const& f) {
    CHECK_THROWS_WITH(f(mapped, x), ContainsText("after its vmap had returned"));
    // A transform that is at work, and one that keeps a value of one that is not.
    CHECK_THROWS_WITH(vv::grad([&](tensor const& w) { return vv::sum(f(v.tracked, w)); })(x),
                      ContainsText("is seen through a transform"));
    CHECK_THROWS_WITH(f(with_history.tracked, x), ContainsText("requires grad"));
    vv::no_grad const off;
    CHECK(elements(f(with_history.tracked, x)) == list{2, -7, 28});
  };
  refuses(fixed);
  refuses(sized);
  CHECK_THROWS_WITH(fixed(tensor(vv::reshape(v.tracked, dims{3, 1})), x), ContainsText("expected float64[3]"));
  // Compiled functions go operator by operator there.
  CHECK_THROWS_AS(compiled(mapped, x), vv::transform_error);
  CHECK(elements(vv::grad([&](tensor const& w) { return vv::sum(compiled(v.tracked, w)); })(x)) == list{1, 4, 9});
  vv::sum(compiled(with_history.tracked, x)).backward();
  CHECK(grad_of(leafy) == list{2, 8, 18});
  CHECK(thread_is_clean());
}
