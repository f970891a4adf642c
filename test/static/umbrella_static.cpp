// SPDX-License-Identifier: BSL-1.0
// The umbrella of static values is enough for operators, transforms and fused functions.
#include <varve/static.hpp>

#include <tuple>

namespace vv = varve;

namespace {
constexpr auto loss = [](auto const& w, auto const& x) { return vv::sum(vv::softmax(w * x, vv::axis<0>) * x); };
constexpr vv::array<double, 2> w{{1, 2}}, x{{0, 0}};
constexpr vv::array<double, 2> gradient = vv::grad(loss)(w, x);
static_assert(gradient[0] == 0 && gradient[1] == 0);

constexpr auto square = [](auto const& v) { return v * v; };
static_assert(vv::vmap(vv::grad(square))(vv::array<double, 2>{{3, 4}})[1] == 8);
static_assert(vv::jvp(square, std::tuple{3.0}, std::tuple{1.0}).second == 6);

[[maybe_unused]] vv::array<double, 2> fused(vv::array<double, 2> const& a) { return vv::fuse(square)(a); }
} // namespace
