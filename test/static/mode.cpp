// SPDX-License-Identifier: BSL-1.0
// The modes that people use, resolved by the compiler: counts, logs and checks of static values are constant
// expressions.
#include <varve/mode/flop_counter_mode.hpp>
#include <varve/mode/logging_mode.hpp>
#include <varve/mode/nan_check_mode.hpp>
#include <varve/varve.hpp>
namespace vv = varve;

constexpr auto layer = [](auto w, auto x) { return vv::tanh(vv::mm(w, x)); };
constexpr vv::array<float, 2, 3> w{1, 2, 3, 4, 5, 6};
constexpr vv::array<float, 3, 4> x{};
constexpr bool same(char const* a, char const* b) { return vv::detail::same_text(a, b); }

// --- FLOPs and bytes
constexpr auto counted(bool elementwise, auto const& f, auto const&... a) {
  vv::flop_counter_mode m(elementwise);
  (void)vv::with(m, f, a...);
  return m;
}
static_assert(counted(false, layer, w, x).get_total_flops() == 2 * 2 * 3 * 4);
static_assert(counted(true, layer, w, x).get_total_flops() == 2 * 2 * 3 * 4 + 8);
static_assert(counted(true, layer, w, x).get_flop_counts("tanh").flops == 8);
static_assert(counted(false, layer, w, x).get_flop_counts("mm").bytes_read == 4 * (6 + 12));
static_assert(counted(false, layer, w, x).get_total_bytes() == 4 * (6 + 12 + 8) + 4 * (8 + 8));
static_assert(counted(false, layer, w, x).get_flop_counts("exp").calls == 0);
// the gradient of a product of matrices is two more of them
constexpr auto loss = [](auto a, auto b) { return vv::sum(vv::mm(a, b)); };
static_assert(counted(false, vv::grad(loss, vv::argnums<0, 1>), w, x).get_total_flops() == 3 * 2 * 2 * 3 * 4);
// mapped over 5 examples
static_assert(counted(false, vv::vmap(loss, vv::in_dims<vv::none, 0>), w, vv::array<float, 5, 3, 4>{})
                  .get_total_flops() == 5 * 2 * 2 * 3 * 4);
// views move nothing
static_assert(counted(true, [](auto a) { return vv::reshape(a, vv::shape<6>); }, w).get_total_bytes() == 0);
// an operator's own formula
static_assert([] {
  vv::flop_counter_mode m;
  m.register_flop_formula("tanh",
                          [](vv::call_record const& c) -> vv::index_t { return 20 * vv::numel(c.results[0].sizes); });
  (void)vv::with(m, layer, w, x);
  return m.get_total_flops() == 48 + 160;
}());

// --- a log, with shapes, dtypes and levels
struct shapes_log {
  int calls = 0, level = 0;
  bool right = true;
  constexpr void operator()(vv::call_record const& c) {
    char const* const names[] = {"mm", "tanh"};
    right = right && same(c.name, names[calls]) && c.results[0].sizes == vv::dims{2, 4} &&
            c.results[0].type == vv::dtype::float32 && c.results[0].handle == nullptr;
    level = c.operands[0].level;
    ++calls;
  }
};
constexpr shapes_log logged(auto const& run) {
  shapes_log sink;
  vv::logging_mode m{sink};
  run(m);
  return sink;
}
static_assert(logged([](auto& m) { (void)vv::with(m, layer, w, x); }).right);
static_assert(logged([](auto& m) { (void)vv::with(m, layer, w, x); }).calls == 2);
// above a transform the operands are seen through it
static_assert(logged([](auto& m) {
                (void)vv::grad([&](auto a) { return vv::sum(vv::with(m, layer, a, x)); })(w);
              }).level == 1);
static_assert(logged([](auto& m) {
                (void)vv::grad([&](auto a) { return vv::sum(vv::with(m, layer, a, x)); })(w);
              }).right);

// --- modes around one another, in both orders
constexpr auto nested(auto& outer, auto& inner) {
  return vv::with(outer, [&](auto a) { return vv::with(inner, [](auto u) { return vv::log(u) * u; }, a); }, 2.0);
}
static_assert([] {
  vv::flop_counter_mode flops(true);
  vv::nan_check_mode check;
  (void)nested(flops, check);
  (void)nested(check, flops);
  return flops.get_total_flops() == 4;
}());
// --- finite, or no constant
static_assert([] {
  vv::nan_check_mode check;
  return vv::with(check, vv::vmap(vv::grad([](auto u) { return vv::log(u); })), vv::array<double, 2>{1, 2}).data[1] ==
         0.5;
}());
