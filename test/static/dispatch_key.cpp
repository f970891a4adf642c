// SPDX-License-Identifier: BSL-1.0
#include <varve/varve.hpp>

namespace vv = varve;
using vv::dispatch_key_set;
using vv::kernel_inventory;
using vv::resolution;
using enum vv::dispatch_key;

// --- sets
// --------------------------------------------------------------------------------------------------------------------
constexpr bool every_key_is_its_own_highest() {
  for (int i = 1; i < vv::dispatch_key_count; ++i) {
    auto const k = static_cast<vv::dispatch_key>(i);
    if (dispatch_key_set(k).highest() != k || !dispatch_key_set(k).has(k)) return false;
  }
  return dispatch_key_set().highest() == undefined;
}
static_assert(every_key_is_its_own_highest());
constexpr bool lower_keys_are_below() {
  for (int i = 1; i < vv::dispatch_key_count; ++i)
    for (int j = 1; j < vv::dispatch_key_count; ++j) {
      auto const a = static_cast<vv::dispatch_key>(i), b = static_cast<vv::dispatch_key>(j);
      bool const one_functionality =
          (vv::is_backend(a) && vv::is_backend(b)) || (vv::is_autograd(a) && vv::is_autograd(b));
      if ((dispatch_key_set::full().below(a).has(b)) != (!one_functionality && j < i)) return false;
      if (!dispatch_key_set::full().below(a).above(a).empty()) return false;
    }
  return true;
}
static_assert(lower_keys_are_below());
static_assert((dispatch_key_set(cpu) | dispatch_key_set(autograd_cpu)).highest() == autograd_cpu);
static_assert(dispatch_key_set(autograd).has(autograd_cpu) && dispatch_key_set(autograd).has(autograd_meta) &&
              !dispatch_key_set(autograd).has(cpu));
static_assert(dispatch_key_set(composite_explicit).has(private_use));
// Functionality and backend are two things (DK-3): without the autograd of the CPU there still is a CPU, and no
// autograd of any backend.
static_assert((vv::default_keys - dispatch_key_set(autograd_cpu)).has(cpu));
static_assert(
    !(dispatch_key_set(autograd_cpu, private_use) - dispatch_key_set(autograd_cpu)).has(autograd_private_use));
// Products meet: a tensor of the CPU beside one of a registered backend is that backend's call.
static_assert((vv::default_keys | dispatch_key_set(private_use)).highest() == autograd_private_use);
static_assert((vv::default_keys | dispatch_key_set(private_use)).without_backend(private_use).highest() ==
              autograd_cpu);

// --- resolution (DK-5)
// ---------------------------------------------------------------------------------------------------------------------
constexpr kernel_inventory nothing, on_cpu = kernel_inventory().add(cpu),
                                    composite = kernel_inventory().add(composite_implicit);
static_assert(vv::resolve(on_cpu, vv::built_in_fallbacks, cpu) == resolution::direct);
static_assert(vv::resolve(on_cpu, vv::built_in_fallbacks, meta) == resolution::missing);
static_assert(vv::resolve(composite, vv::built_in_fallbacks, meta) == resolution::composite_implicit);
static_assert(vv::resolve(composite, vv::built_in_fallbacks, autograd_cpu) == resolution::composite_implicit);
static_assert(vv::resolve(nothing, vv::built_in_fallbacks, autograd_cpu) == resolution::fallthrough);
static_assert(vv::resolve(nothing, vv::built_in_fallbacks, dispatch_mode) == resolution::fallback);
static_assert(vv::resolve(nothing, nothing, autocast) == resolution::missing);
static_assert(vv::resolve(on_cpu, kernel_inventory().add(private_use), private_use) == resolution::fallback);
// A backend's own kernel beats the composite, and its autograd is then not the composite's.
constexpr kernel_inventory both = kernel_inventory().add(cpu).add(composite_implicit);
static_assert(vv::resolve(both, vv::built_in_fallbacks, cpu) == resolution::direct);
static_assert(vv::resolve(both, vv::built_in_fallbacks, autograd_cpu) == resolution::fallthrough);
static_assert(vv::resolve(both, vv::built_in_fallbacks, private_use) == resolution::composite_implicit);
// Precedence of aliases (DK-4): explicit before implicit on backends; the composite before the autograd alias.
constexpr kernel_inventory all = kernel_inventory()
                                     .add(composite_implicit)
                                     .add(composite_explicit)
                                     .add(composite_explicit_non_functional)
                                     .add(autograd);
static_assert(vv::resolve(all, vv::built_in_fallbacks, cpu) == resolution::composite_explicit_non_functional);
static_assert(vv::resolve(kernel_inventory().add(composite_implicit).add(composite_explicit), vv::built_in_fallbacks,
                          cpu) == resolution::composite_explicit);
static_assert(vv::resolve(all, vv::built_in_fallbacks, autograd_cpu) == resolution::autograd);
static_assert(vv::resolve(kernel_inventory().add(composite_implicit).add(autograd), vv::built_in_fallbacks,
                          autograd_cpu) == resolution::composite_implicit);
// A direct kernel at one autograd key beats the alias there only.
constexpr kernel_inventory own = kernel_inventory().add(autograd).add(autograd_cpu);
static_assert(vv::resolve(own, vv::built_in_fallbacks, autograd_cpu) == resolution::direct &&
              vv::resolve(own, vv::built_in_fallbacks, autograd_meta) == resolution::autograd);
// Neither a composite nor a backend's kernel is right for the autograd that several backends share (DK-6).
static_assert(vv::resolve(both, vv::built_in_fallbacks, autograd_other) == resolution::ambiguous);
static_assert(vv::resolve(kernel_inventory(both).add(autograd_other), vv::built_in_fallbacks, autograd_other) ==
              resolution::direct);

// --- a call
// --------------------------------------------------------------------------------------------------------------------
constexpr dispatch_key_set stops = vv::stops_of(vv::built_in_kernels, vv::built_in_fallbacks);
static_assert(vv::key_of_call(vv::default_keys, {}, {}, stops) == cpu);
static_assert(vv::key_of_call(vv::default_keys, dispatch_mode, {}, stops) == dispatch_mode);
static_assert(vv::key_of_call(vv::default_keys, {transform, dispatch_mode}, {}, stops) == transform);
static_assert(vv::key_of_call(vv::default_keys, {transform, dispatch_mode}, transform, stops) == dispatch_mode);
static_assert(vv::key_of_call(vv::default_keys | subclass, dispatch_mode, {}, stops) == dispatch_mode);
static_assert(vv::key_of_call(vv::default_keys | subclass, dispatch_mode, {dispatch_mode, subclass}, stops) == cpu);
// A fallthrough is never called, it makes the operator blind to the key (DK-7).
static_assert(vv::key_of_call(vv::default_keys, dispatch_mode, {},
                              vv::stops_of(kernel_inventory(vv::built_in_kernels).skip(dispatch_mode),
                                           vv::built_in_fallbacks)) == cpu);

// --- keys of the kinds of transform (FS-3)
// ---------------------------------------------------------------------------------------------------
using vv::transform_keys;
using vv::transform_type;
static_assert(transform_keys(transform_type::grad) == dispatch_key_set(autograd_functionality, inplace_or_view));
static_assert(transform_keys(transform_type::jvp) == transform_keys(transform_type::grad));
static_assert(transform_keys(transform_type::vmap).empty());
static_assert(transform_keys(transform_type::functionalize) == dispatch_key_set(functionalize));
constexpr dispatch_key_set passed_by_vmap = vv::passed_over(transform_keys(transform_type::vmap));
static_assert(passed_by_vmap == dispatch_key_set(autograd_functionality, inplace_or_view,
                                                 functionalize)); // neither autocast nor what stands outside
static_assert(vv::passed_over(transform_keys(transform_type::grad)) == dispatch_key_set(functionalize));
static_assert(vv::key_of_call(vv::default_keys, autocast, passed_by_vmap, dispatch_key_set::full()) == autocast);
static_assert(vv::key_of_call(vv::default_keys, transform_back, passed_by_vmap, dispatch_key_set::full()) ==
              transform_back);
constexpr auto keys_of_grad = [](auto x) {
  static_assert(decltype(x)::interpreter::keys == transform_keys(transform_type::grad));
  return x * x;
};
static_assert(vv::grad(keys_of_grad)(3.0) == 6.0);
constexpr auto keys_of_vmap = [](auto x) {
  static_assert(decltype(x)::interpreter::keys == transform_keys(transform_type::vmap));
  return x * 2;
};
static_assert(vv::equal(vv::vmap(keys_of_vmap)(vv::array<double, 2>{1, 2}), vv::array<double, 2>{2, 4}));

// --- static stacks: the same resolution on types
// -------------------------------------------------------------------------------------------
constexpr auto keys_inside_grad = [](auto x) {
  static_assert(vv::keys_of<decltype(x)>.has(transform) && vv::static_key<decltype(x), double> == transform);
  return x * x;
};
static_assert(vv::grad(keys_inside_grad)(3.0) == 6.0);
struct quiet_mode : vv::dispatch_mode<quiet_mode> {
  constexpr auto process(auto op, auto const&... x) const { return op(x...); }
};
constexpr auto keys_inside_mode = [](auto x) {
  static_assert(vv::keys_of<decltype(x)>.has(dispatch_mode) && vv::static_key<decltype(x), double> == dispatch_mode);
  return vv::vmap([](auto y) {
    static_assert(vv::keys_of<decltype(y)>.has(dispatch_mode) && vv::keys_of<decltype(y)>.has(transform));
    static_assert(vv::static_key<decltype(y)> == transform); // the innermost interpreter, as the level says
    return y * y;
  })(x);
};
constexpr auto under_mode = [] {
  quiet_mode m;
  return vv::with(m, keys_inside_mode, vv::array<double, 2>{1, 2});
}();
static_assert(vv::equal(under_mode, vv::array<double, 2>{1, 4}));
static_assert(vv::keys_of<double> == vv::default_keys && vv::static_key<double, double> == cpu);
static_assert(vv::keys_of<vv::proxy>.has(meta));

int main() {}
