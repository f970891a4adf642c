// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/shape/size_table.hpp>

/// @file
/// Conditions on sizes that are not decided where they are written (SY-14). `a == b` of two sizes asks at once: the
/// answer is that of the hints, and a guard. Those made here are expressions: of 0 and 1, in operations that sizes
/// have.
namespace varve {

/// The lesser and the greater of two sizes (`torch.sym_min`, `torch.sym_max`): asks nobody which that is.
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

/// A condition on sizes (`torch.SymBool`). It is decided, and becomes a guard, where a `bool` is made of it; until then
/// it can be combined with others (`!`, `&`, `|`) and choose between sizes (`sym_ite`). Of numbers it is one. Errors of
/// the decision: those of comparing sizes (`data_dependent_error` where it depends on data).
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
  /// 1 where it holds, 0 where it does not: a size like others.
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

/// Comparisons of sizes that ask nobody.
constexpr sym_bool sym_eq(extent a, extent b) { return {relation::equal, a, b}; }
constexpr sym_bool sym_ne(extent a, extent b) { return {relation::unequal, a, b}; }
constexpr sym_bool sym_lt(extent a, extent b) { return {relation::less, a, b}; }
constexpr sym_bool sym_le(extent a, extent b) { return {relation::less_equal, a, b}; }
constexpr sym_bool sym_gt(extent a, extent b) { return {relation::less, b, a}; }
constexpr sym_bool sym_ge(extent a, extent b) { return {relation::less_equal, b, a}; }
constexpr sym_bool sym_not(sym_bool const& a) { return !a; }

/// One of two sizes (`torch.sym_ite`): `then` itself where the condition is a known one, else an expression that is
/// either, by which no guard is recorded before somebody asks what it is.
constexpr extent sym_ite(sym_bool const& condition, extent then, extent otherwise) {
  extent const c = condition.value();
  if (c.is_number()) return c.number() != 0 ? then : otherwise;
  return c * then + (1 - c) * otherwise;
}

} // namespace varve
