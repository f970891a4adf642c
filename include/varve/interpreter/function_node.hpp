// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/interpreter/recorded_call.hpp>

#include <string>
#include <vector>

namespace varve::detail {

[[noreturn]] VARVE_COLD inline void refuse_seen_again(char const* name) {
  refuse::with<transform_error>(
      (std::string("varve: autograd::grad: inside of a transform, create_graph cannot pass ") + name +
       ", which keeps values from below that transform; call grad of a function there")
          .c_str());
}
/// A node whose pullback is a function from the cotangents of the results to those of the operands. A pullback that
/// stores no values declares a member `is_linear`.
template <class F>
struct function_node : grad_node {
  F pullback;
  std::vector<edge> edges;
  std::string label;

  static grad_node_type const type_;
  function_node(F f, std::vector<edge> e, std::uint16_t n, char const* l)
      : grad_node(&type_), pullback(std::move(f)), edges(std::move(e)), label(l) {
    next = edges.data();
    count = static_cast<std::uint16_t>(edges.size());
    results = n;
    sequence = this_thread_state.next_node++;
  }
  static boxed_args backward(grad_node& n, boxed_args& g, bool const* wanted) {
    auto& self = static_cast<function_node&>(n);
    if constexpr (requires { self.pullback.released; }) {
      if (self.released) refuse_released(self.label.c_str());
    }
    if constexpr (!requires { F::is_linear; })
      if (this_thread_sees_again.layer && this_thread_state.grad_mode) [[unlikely]]
        refuse_seen_again(self.label.c_str());
    return self.pullback(g, wanted);
  }
  static boxed_args saved_of([[maybe_unused]] grad_node& n) {
    if constexpr (requires(F const& f) { f.saved(); }) {
      auto& self = static_cast<function_node&>(n);
      if (self.released) refuse_released(self.label.c_str());
      return self.pullback.saved();
    } else {
      return {};
    }
  }
  static void let_go([[maybe_unused]] grad_node& n, [[maybe_unused]] tensor const& written) {
    if constexpr (requires(F& f) { f.let_go(written); }) static_cast<function_node&>(n).pullback.let_go(written);
  }
  static void release(grad_node& n) {
    auto& self = static_cast<function_node&>(n);
    self.released = true;
    if constexpr (requires { self.pullback.release(); }) self.pullback.release();
  }
  static void destroy(grad_node* n) {
    if (n->extra) drop_extra(n->extra);
    delete static_cast<function_node*>(n);
  }
  static void name_of(grad_node const& n, char* out) {
    std::strncpy(out, static_cast<function_node const&>(n).label.c_str(), 63);
    out[63] = 0;
  }
};
template <class F>
inline constexpr grad_node_type function_node<F>::type_{
    &function_node::backward, &function_node::release, &function_node::destroy, &function_node::name_of, false,
    &function_node::saved_of, &function_node::let_go};
/// Creates the node of a function of operands with the given edges. The caller takes ownership.
template <class F>
grad_node* record_function(F pullback, std::vector<edge> edges, int results, char const* label) {
  return new function_node<F>(std::move(pullback), std::move(edges), static_cast<std::uint16_t>(results), label);
}
} // namespace varve::detail
