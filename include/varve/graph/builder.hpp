// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/graph.hpp>

namespace varve {

namespace detail {
/// The operators that only graphs have.
constexpr meta no_shape(attributes const&, meta const*, int) { return {}; }
} // namespace detail
inline constexpr op_handle placeholder_handle{"placeholder", op_kind::placeholder, 0, &detail::no_shape};
inline constexpr op_handle constant_handle{"constant", op_kind::constant, 0, &detail::no_shape};

/// Writes one function of a graph while it is traced. Builders of the functions inside higher-order operators form a stack; a value of an outer function used in an inner one
/// becomes an extra input of it, once (lifting, SL-3, SL-4).
class graph_builder {
public:
  constexpr explicit graph_builder(graph_builder* outer = nullptr) : outer_(outer), root_(outer ? outer->root_ : this) { root_->current_ = this; }
  graph_builder(graph_builder const&) = delete;
  graph_builder& operator=(graph_builder const&) = delete;
  constexpr ~graph_builder() { root_->current_ = outer_; }

  /// The function being traced now.
  constexpr graph_builder& current() { return *root_->current_; }

  constexpr int input(meta const& m) {
    node n;
    n.op = &placeholder_handle;
    n.out = m;
    n.out.number = false;
    n.value = static_cast<double>(inputs_);
    ++inputs_;
    nodes_.push_back(n);
    return static_cast<int>(nodes_.size()) - 1;
  }
  constexpr int constant(dtype type, double v) {
    node n;
    n.op = &constant_handle;
    n.out = {type, {}};
    n.value = v;
    nodes_.push_back(n);
    return static_cast<int>(nodes_.size()) - 1;
  }
  constexpr int emit(op_handle const* op, attributes const& at, int const* operands, int count, meta const& out) {
    node n;
    n.op = op;
    n.at = at;
    n.out = out;
    n.out.number = false;
    n.first = static_cast<int>(edges_.size());
    n.count = count;
    for (int k = 0; k < count; ++k) edges_.push_back(operands[k]);
    nodes_.push_back(n);
    return static_cast<int>(nodes_.size()) - 1;
  }
  /// The number here of a node of an outer function: an extra input, made once.
  constexpr int lift(graph_builder const* owner, int id, meta const& m) {
    if (owner == this) return id;
    if (!outer_) refuse::argument_is_invalid("trace", "a value of another trace was used; pass it as an argument");
    int const outer_id = outer_->lift(owner, id, m);
    for (std::size_t k = 0; k < lifted_.size(); k += 2)
      if (lifted_[k] == outer_id) return lifted_[k + 1];
    int const mine = input(m);
    lifted_.push_back(outer_id);
    lifted_.push_back(mine);
    return mine;
  }
  constexpr void result(int id) { results_.push_back(id); }
  /// The finished function with its inner functions behind it.
  constexpr graph finish() const {
    graph g;
    g.nodes = nodes_;
    g.edges = edges_;
    g.results = results_;
    g.regions.push_back({0, static_cast<int>(nodes_.size()), inputs_, 0, static_cast<int>(results_.size())});
    return g;
  }

private:
  graph_builder* outer_;
  graph_builder* root_;
  graph_builder* current_ = nullptr; // of the root: the innermost open function
  int inputs_ = 0;
  std::vector<node> nodes_;
  std::vector<int> edges_, results_, lifted_;
};

} // namespace varve
