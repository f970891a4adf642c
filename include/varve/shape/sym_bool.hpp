// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/shape/size_table.hpp>

/// @file
/// Conditions on sizes whose decision is deferred. Comparing sizes by `a == b` decides at once, by the hints, and
/// records a guard. The conditions of this file stay expressions with the values 0 and 1, made of operations on sizes.
namespace varve {

/// Returns the lesser of two sizes without a decision (`torch.sym_min`); `sym_max` returns the greater
/// (`torch.sym_max`).
constexpr extent sym_min(extent a, extent b) {
  bool const known = a.is_number() && b.is_number();
  return known ? extent(size_view::combine(size_op::least, a.number(), b.number()))
               : detail::combined_sizes(size_op::least, a, b);
}
constexpr extent sym_max(extent a, extent b) {
  bool const known = a.is_number() && b.is_number();
  return known ? extent(size_view::combine(size_op::greatest, a.number(), b.number()))
               : detail::combined_sizes(size_op::greatest, a, b);
}

/// A condition on sizes (`torch.SymBool`). Converting it to `bool` decides it and records a guard. Until then it can be
/// combined with others (`!`, `&`, `|`) and can select between sizes (`sym_ite`). For plain numbers the value is a
/// plain number. The decision throws what comparing sizes throws (`data_dependent_error` if it depends on data).
class sym_bool {
public:
  constexpr sym_bool(bool known) : left_(known ? 0 : 1), right_(0) {}
  constexpr sym_bool(relation is, extent left, extent right) : is_(is), left_(left), right_(right) {}

  constexpr explicit operator bool() const {
    switch (is_) {
    case relation::equal:
      return left_ == right_;
    case relation::unequal:
      return left_ != right_;
    case relation::less:
      return left_ < right_;
    default:
      return left_ <= right_;
    }
  }
  /// Returns a size that is 1 if the condition holds, otherwise 0.
  constexpr extent value() const {
    extent const apart = right_ - left_;
    switch (is_) {
    case relation::equal:
      return sym_max(0, 1 - sym_max(apart, -apart));
    case relation::unequal:
      return sym_min(1, sym_max(apart, -apart));
    case relation::less:
      return sym_max(0, sym_min(1, apart));
    default:
      return sym_max(0, sym_min(1, apart + 1));
    }
  }
  friend constexpr sym_bool operator!(sym_bool const& a) {
    switch (a.is_) {
    case relation::equal:
      return {relation::unequal, a.left_, a.right_};
    case relation::unequal:
      return {relation::equal, a.left_, a.right_};
    case relation::less:
      return {relation::less_equal, a.right_, a.left_};
    default:
      return {relation::less, a.right_, a.left_};
    }
  }
  friend constexpr sym_bool operator&(sym_bool const& a, sym_bool const& b) {
    return {relation::unequal, a.value() * b.value(), 0};
  }
  friend constexpr sym_bool operator|(sym_bool const& a, sym_bool const& b) {
    return {relation::unequal, a.value() + b.value(), 0};
  }

private:
  relation is_ = relation::equal;
  extent left_, right_;
};

/// Compare sizes without deciding the result.
constexpr sym_bool sym_eq(extent a, extent b) { return {relation::equal, a, b}; }
constexpr sym_bool sym_ne(extent a, extent b) { return {relation::unequal, a, b}; }
constexpr sym_bool sym_lt(extent a, extent b) { return {relation::less, a, b}; }
constexpr sym_bool sym_le(extent a, extent b) { return {relation::less_equal, a, b}; }
constexpr sym_bool sym_gt(extent a, extent b) { return {relation::less, b, a}; }
constexpr sym_bool sym_ge(extent a, extent b) { return {relation::less_equal, b, a}; }
constexpr sym_bool sym_not(sym_bool const& a) { return !a; }

/// Returns one of two sizes (`torch.sym_ite`). If the condition is known, this is `then` or `otherwise` itself.
/// Otherwise it is an expression that equals one of them; a guard is recorded only if the expression is decided later.
constexpr extent sym_ite(sym_bool const& condition, extent then, extent otherwise) {
  extent const c = condition.value();
  if (c.is_number()) return c.number() != 0 ? then : otherwise;
  return c * then + (1 - c) * otherwise;
}

} // namespace varve
