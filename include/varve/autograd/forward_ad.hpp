// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/autograd/leaf.hpp>
#include <varve/transform/dynamic_scope.hpp>

/// @file
/// Forward-mode derivatives of tensors without a function to transform (`torch.autograd.forward_ad`): a level of `jvp`
/// that lasts for a scope.
namespace varve::forward_ad {

namespace detail {
/// Like the layer of `jvp`, but part of eager autograd, whose kernels handle each call once; it has no keys of its own.
template <class On>
inline constexpr layer_kind dual_level_kind{
    .name = "jvp", .role = layer_role::jvp, .process = varve::detail::jvp_kind<On>.process, .is_dual_level = true};
} // namespace detail

/// A scope in which tensors may be dual. `make_dual` attaches tangents, and operators compute tangents with their
/// results. Only one scope may be active at a time; a second one throws `transform_error`. Values that leave the scope
/// lose their tangents. Eager autograd continues: primals and tangents may require gradients.
template <class On = void>
class dual_level_scope {
public:
  dual_level_scope() : layer_(detail::dual_level_kind<On>, prepared()), on_(this_thread_state.transforms, layer_) {
    current() = &layer_;
  }
  dual_level_scope(dual_level_scope const&) = delete;
  dual_level_scope& operator=(dual_level_scope const&) = delete;
  ~dual_level_scope() { current() = nullptr; }

  static layer*& current() {
    static constinit thread_local layer* level = nullptr;
    return level;
  }

private:
  static layer_stack& prepared() {
    if (current())
      refuse::with<transform_error>(
          "varve: dual_level: nested forward mode AD is not supported; use jvp for derivatives of higher order");
    return this_thread_state.transforms;
  }
  varve::detail::interpreter_layer<jvp_interpreter<dynamic_level>> layer_;
  pushed on_;
};
/// The scope under PyTorch's name.
using dual_level = dual_level_scope<>;

namespace detail {
inline layer& level_of(char const* who) {
  if (!dual_level::current())
    refuse::with<transform_error>(
        (std::string("varve: ") + who + ": no dual_level is there; dual tensors live in the scope of one").c_str());
  return *dual_level::current();
}
} // namespace detail

/// Returns a tensor with a tangent and with the memory and version counter of `primal`. Both must have the same shape
/// (`shape_error`) and the same floating-point dtype (`value_error`). Throws `value_error` if `primal` is dual already.
template <class T = tensor>
T make_dual(T const& primal, T const& tangent) {
  layer& l = detail::level_of("make_dual");
  if (!has_derivatives(primal.dtype()))
    refuse::with<value_error>(
        (std::string("varve: make_dual: the primal must be floating, not ") + name(primal.dtype())).c_str());
  if (!has_derivatives(tangent.dtype()))
    refuse::with<value_error>(
        (std::string("varve: make_dual: the tangent must be floating, not ") + name(tangent.dtype())).c_str());
  if (!(primal.sizes() == tangent.sizes()))
    refuse::shapes_do_not_match("make_dual (primal and tangent)", primal.sizes(), tangent.sizes());
  if (primal.dtype() != tangent.dtype())
    refuse::with<value_error>("varve: make_dual: primal and tangent must be of one dtype");
  if (primal.is_wrapped() && primal.layer() == l.id)
    refuse::with<value_error>("varve: make_dual: the primal is dual already; unpack_dual it first");
  return tensor::wrap(primal, l.id, l.level, tangent, {}, primal.sizes());
}
/// The parts of a dual tensor. `tangent` is undefined if there is none.
struct unpacked_dual {
  tensor primal, tangent;
};
/// Returns primal and tangent of a dual tensor. For other tensors it returns the tensor and no tangent.
inline unpacked_dual unpack_dual(tensor const& t) {
  layer const& l = detail::level_of("unpack_dual");
  if (t.is_wrapped() && t.layer() == l.id)
    return {t.inner(), static_cast<dynamic_level const*>(l.object)->fresh(t).extra()};
  return {t, {}};
}

} // namespace varve::forward_ad
