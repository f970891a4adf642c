// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/hop/wrap_activation_checkpoint.hpp>

#include <atomic>
#include <concepts>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <type_traits>
#include <variant>

/// @file
/// Calls that stay calls in graphs that are traced at run time, and otherwise only run their function: `wrap`,
/// `invoke_subgraph`, `hints_wrapper`, `strict_mode`. Outside of traces, and on static values, they are calls of the
/// function. In fused or compiled functions the operators of the function replace the call.
namespace varve {

namespace detail {
/// The base of such calls. When no interpreter observes the call, it runs its function.
struct plain_call {
  static constexpr bool is_call = true;
  static constexpr hop_signature signature{
      "(GraphModule function, int identifier, Tensor[] operands, bool backward) -> Tensor[]"};
  static boxed_args run(tensor const&, bool, boxed_function const& f, boxed_args const& x) { return f(x); }
  /// Returns the call to use when a gradient is computed of a function that draws random numbers.
  template <class Op>
  static auto with_state(Op const& op) {
    return boxed_region_call<wrap_activation_checkpoint_t>{op.f, op.again, op.self};
  }
};
inline std::atomic<index_t> next_region{1};
template <class Tag, class F, class... X>
auto call_region(index_t name, F const& f, X const&... x) -> decltype(f(x...)) {
  if (!inside_trace()) return f(x...);
  auto const call = [name](boxed_function const& region, boxed_args const& operands) {
    return region_operator<Tag>()({region}, joined(boxed_args(tensor::from_number(std::int64_t{name})), operands),
                                  attributes(dims{0}));
  };
  return call_of_trees(call, f, x...);
}
} // namespace detail

/// Tag of `wrap`.
struct wrap_t : detail::plain_call {
  static constexpr auto op_name = "wrap", backward_name = "WrapBackward";
};
/// Tag of `invoke_subgraph`. Operand 0 is the identifier of the region.
struct invoke_subgraph_t : detail::plain_call {
  static constexpr auto op_name = "invoke_subgraph", backward_name = "InvokeSubgraphBackward";
  static constexpr bool shares_region = true;
};
/// Tag of `hints_wrapper`. Operand 0 identifies the hints (`hints_of`).
struct hints_wrapper_t : detail::plain_call {
  static constexpr auto op_name = "hints_wrapper", backward_name = "HintsWrapperBackward";
};
/// Tag of `strict_mode`.
struct strict_mode_t : detail::plain_call {
  static constexpr auto op_name = "strict_mode", backward_name = "StrictModeBackward";
};
template <std::derived_from<detail::plain_call> Tag>
struct rules<Tag> : rule::region_call {};
#if VARVE_COMPILED && VARVE_DEFINES_CAPTURE // for the library
template higher_order_operator& detail::region_operator<wrap_t>();
template higher_order_operator& detail::region_operator<invoke_subgraph_t>();
template higher_order_operator& detail::region_operator<hints_wrapper_t>();
template higher_order_operator& detail::region_operator<strict_mode_t>();
#elif VARVE_COMPILED
extern template higher_order_operator& detail::region_operator<wrap_t>();
extern template higher_order_operator& detail::region_operator<invoke_subgraph_t>();
extern template higher_order_operator& detail::region_operator<hints_wrapper_t>();
extern template higher_order_operator& detail::region_operator<strict_mode_t>();
#endif

/// Returns f(x...), recorded in graphs as one node with a subgraph. Arguments and results are trees of tensors; numbers
/// among the arguments are constants of the subgraph.
template <class F, class... X>
constexpr auto wrap(F const& f, X const&... x) {
  if constexpr ((detail::holds_tensors<X>() || ...)) return detail::call_region<wrap_t>(0, f, x...);
  else return f(x...);
}
/// Returns f(x...), recorded in graphs as one node with a subgraph that several calls can share. Calls in one graph
/// with the same identifier and equal subgraphs share one subgraph, and so do their gradients. Calls with other shapes
/// have a subgraph of their own.
template <class F, class... X>
constexpr auto invoke_subgraph(F const& f, index_t identifier, X const&... x) {
  if constexpr ((detail::holds_tensors<X>() || ...)) return detail::call_region<invoke_subgraph_t>(identifier, f, x...);
  else return f(x...);
}
/// A function whose calls use `invoke_subgraph` with a unique identifier: `auto block = mark_compile_region(f);
/// block(x...)`.
template <class F>
class compile_region {
public:
  explicit compile_region(F f)
      : f_(std::move(f)), identifier_(detail::next_region.fetch_add(1, std::memory_order_relaxed)) {}
  template <class... X>
  auto operator()(X const&... x) const {
    return invoke_subgraph(f_, identifier_, x...);
  }
  index_t identifier() const { return identifier_; }

private:
  F f_;
  index_t identifier_;
};
/// Returns f as a region: its calls in a traced program share one body.
template <class F>
auto mark_compile_region(F f) {
  return compile_region<F>(std::move(f));
}

/// Returns f(x...), recorded in graphs as one node with a subgraph. It adds no further checks, because traces always
/// refuse what a graph cannot represent.
template <class F, class... X>
constexpr auto strict_mode(F const& f, X const&... x) {
  if constexpr ((detail::holds_tensors<X>() || ...)) return detail::call_region<strict_mode_t>(0, f, x...);
  else return f(x...);
}

/// A hint that `hints_wrapper` stores in the graph.
using hint = std::variant<bool, std::int64_t, double, std::string>;
/// Hints by name, for backends.
using hints = std::map<std::string, hint>;
namespace detail {
/// All hints used in this process, each stored once.
class known_hints {
public:
  index_t number_of(hints const& h) {
    std::lock_guard const on(lock_);
    for (std::size_t k = 0; k < all_.size(); ++k)
      if (all_[k] == h) return static_cast<index_t>(k);
    all_.push_back(h);
    return static_cast<index_t>(all_.size()) - 1;
  }
  hints const* at(double number) {
    std::lock_guard const on(lock_);
    return number >= 0 && number < static_cast<double>(all_.size()) ? &all_[static_cast<std::size_t>(number)] : nullptr;
  }
  static known_hints& here() {
    static auto* const all = new known_hints; // never destroyed, so that it outlives every graph
    return *all;
  }

private:
  std::mutex lock_;
  std::deque<hints> all_;
};
} // namespace detail
/// Returns f(x...), recorded in graphs as one node with a subgraph and hints: `hints_wrapper(f, {{"fuse", false},
/// {"tile", 32}}, x...)`. `hints_of` returns the hints of that node. Hints change no value.
template <class F, class... X>
auto hints_wrapper(F const& f, hints const& h, X const&... x) {
  if constexpr ((detail::holds_tensors<X>() || ...))
    return detail::call_region<hints_wrapper_t>(detail::known_hints::here().number_of(h), f, x...);
  else return f(x...);
}
/// Returns the hints of a node of a graph, or null if the node is not a `hints_wrapper` of this process.
template <class G>
hints const* hints_of(G const& g, node const& n) {
  if (n.op != &hop_handle<hints_wrapper_t>) return nullptr;
  int const number = g.edges[static_cast<std::size_t>(n.first)];
  return detail::known_hints::here().at(g.nodes[static_cast<std::size_t>(number)].value);
}

} // namespace varve
