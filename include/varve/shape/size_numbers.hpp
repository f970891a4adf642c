// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/attributes.hpp>
#include <varve/shape/size_table.hpp>

namespace varve {

/// The numbers that the expressions of a table have for given symbols. The object replaces entries in sizes and
/// attributes by numbers. Without expressions it changes nothing. Usable in constant expressions and at run time.
class size_numbers {
public:
  constexpr size_numbers() = default;
  /// `symbols` has one number for each symbol of the expressions [from, to). Operands come before the expressions that
  /// use them.
  constexpr size_numbers(size_expression const* from, size_expression const* to, index_t const* symbols) {
    for (; from != to; ++from)
      value_.push_back(from->op == size_op::symbol ? symbols[from->a.number()]
                                                   : size_view::combine(from->op, of(from->a), of(from->b)));
  }
  constexpr bool empty() const { return value_.empty(); }
  /// True if a size is a number or an entry of the table.
  constexpr bool knows(extent e) const {
    return e.is_number() || (e.is_entry() && e.environment() == 0 && e.entry() < static_cast<index_t>(value_.size()));
  }
  constexpr index_t of(extent size) const { return size.is_entry() ? value_[size.entry()] : size.number(); }
  constexpr dims of(dims s) const {
    for (int k = 0; k < s.n; ++k) s[k] = of(s[k]);
    return s;
  }
  constexpr attributes of(attributes at) const {
    for (int k = 0; k < at.count; ++k) at.fact[k] = of(at.fact[k]);
    return at;
  }
  constexpr bool holds(size_guard const& g) const {
    return of(g.unless) == 0 || detail::holds(g.is, of(g.left), of(g.right));
  }

private:
  list<index_t> value_{};
};

} // namespace varve
