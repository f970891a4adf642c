// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/extent.hpp>
#include <varve/core/spin_lock.hpp>

#include <string>

namespace varve {

/// The base class of environments of symbolic sizes at run time. `here` makes entries of the environment; operations
/// and comparisons on its entries call its virtual functions. It may be used by any thread, but only by one at a time.
///
/// Each environment has a number while it lives, by which its sizes find it. Sizes may outlive their environment, but
/// using them then throws `size_error`. A number is used again only after about two million others.
class shape_recorder {
public:
  shape_recorder();
  shape_recorder(shape_recorder const&) = delete;
  shape_recorder& operator=(shape_recorder const&) = delete;
  virtual ~shape_recorder();

  /// Returns the result of an operation on numbers and entries of this environment. At least one operand is an entry.
  virtual extent combine(size_op op, extent a, extent b) = 0;
  /// Returns true if a relation holds. Not called for two sizes that are known to be equal.
  virtual bool decide(relation is, extent a, extent b) = 0;
  /// Specializes an entry: returns the number that it represents from now on.
  virtual index_t specialize(extent a) = 0;
  /// Records a relation that the program states, and throws `value_error` if it does not hold. `check_is_size` states
  /// that a number is a size, that is, 0 or more.
  virtual void check(relation is, extent a, extent b);
  virtual void check_is_size(extent a) { check(relation::less_equal, 0, a); }
  /// Returns an expression as text for messages.
  virtual std::string text(extent a) const { return "expression " + std::to_string(a.entry()); }

  /// Returns the number of this environment, which is 1 or more.
  index_t environment() const { return number_; }
  /// Returns entry `k` of this environment.
  extent here(index_t k) const { return extent::entry(k, number_); }
  /// Returns the environment with a number, or null if it was destroyed.
  static shape_recorder* find(index_t number);

private:
  index_t number_ = 0;
  shape_recorder* next_ = nullptr;
};

/// States that a relation of sizes holds (`torch._check`). Throws `value_error` if it does not. A relation of symbolic
/// sizes is known from then on. If the sizes depend on data, a traced program checks it in each run.
void check(relation is, extent a, extent b);
/// States that a number is a size (`torch._check_is_size`), that is, 0 or more. Shape rules of traces then assume that
/// it is 2 or more. Throws `value_error` if it is negative.
void check_is_size(extent a);

#if VARVE_DEFINES
namespace detail {
struct recorder_list {
  spin_lock lock{};
  shape_recorder* first = nullptr;
  index_t last = 0; // the last number that was used
};
inline constinit recorder_list recorders;

/// Returns the environment that computes an operation on two sizes, or throws `size_error`.
VARVE_COLD VARVE_LIBRARY shape_recorder& recorder_of(extent a, extent b = 0) {
  extent const e = a.is_number() ? b : a;
  if (a.is_name() || b.is_name())
    refuse::with<size_error>(
        "varve: a size that only has a name, as in a spec, was computed with (or a number of 2^62 and "
        "more); trace or fuse the function, where names become sizes");
  if (e.environment() == 0)
    refuse::with<size_error>(
        "varve: a symbolic size of a finished graph was computed with, or taken for a number (or a number "
        "of 2^62 and more was); give the graph operands, which tell what its sizes are");
  if (a.is_entry() && b.is_entry() && a.environment() != b.environment())
    refuse::with<size_error>("varve: symbolic sizes of two environments meet; trace with one of them");
  shape_recorder* const r = shape_recorder::find(e.environment());
  if (!r)
    refuse::with<size_error>(
        "varve: a symbolic size was used after its environment was destroyed; keep that as long as what "
        "was traced in it");
  return *r;
}

VARVE_COLD VARVE_LIBRARY extent combined_sizes(size_op op, extent a, extent b) {
  if (!a.is_number() || !b.is_number()) {
    if (op == size_op::least && a.bits == INT64_MAX) return b; // "the end" of `slice`: no size is greater
    if (op == size_op::least && b.bits == INT64_MAX) return a;
    if (op == size_op::product && (known_equal(a, 1) || known_equal(b, 0))) return b;
    if (op == size_op::product && (known_equal(b, 1) || known_equal(a, 0))) return a;
    if (op == size_op::sum && known_equal(a, 0)) return b;
    if ((op == size_op::sum && known_equal(b, 0)) || (op == size_op::quotient && known_equal(b, 1))) return a;
    return recorder_of(a, b).combine(op, a, b);
  }
  std::uint64_t const x = static_cast<std::uint64_t>(a.bits), y = static_cast<std::uint64_t>(b.bits);
  switch (op) {
  case size_op::sum:
    return static_cast<index_t>(x + y);
  case size_op::product:
    return static_cast<index_t>(x * y);
  case size_op::quotient:
    return floor_div(a.bits, b.bits);
  case size_op::remainder:
    return floor_mod(a.bits, b.bits);
  case size_op::least:
    return a.bits < b.bits ? a : b;
  default:
    return a.bits < b.bits ? b : a;
  }
}
VARVE_COLD VARVE_LIBRARY bool decided_sizes(relation is, extent a, extent b) {
  if (known_equal(a, b)) return is == relation::equal || is == relation::less_equal;
  if ((a.is_number() && b.is_number()) || a.bits == INT64_MAX || b.bits == INT64_MAX)
    return holds(is, a.bits, b.bits); // an entry is less than "the end": so are its bits
  bool const nobody = (a.is_number() || !a.is_size()) && (b.is_number() || !b.is_size());
  if (nobody && (is == relation::equal || is == relation::unequal))
    return is == relation::unequal; // in a finished graph different expressions are unequal
  return recorder_of(a, b).decide(is, a, b);
}
VARVE_COLD VARVE_LIBRARY index_t number_of_size(extent a) {
  return a.is_entry() && a.environment() != 0 ? recorder_of(a).specialize(a) : a.bits;
}
VARVE_COLD VARVE_LIBRARY index_t specialized_size(extent a) {
  return a.is_number() ? a.bits : recorder_of(a).specialize(a);
}
} // namespace detail

VARVE_LIBRARY void shape_recorder::check(relation is, extent a, extent b) {
  if (!decide(is, a, b)) refuse::with<value_error>("varve: check: the relation does not hold");
}
VARVE_LIBRARY void check(relation is, extent a, extent b) {
  if (!a.is_number() || !b.is_number()) return detail::recorder_of(a, b).check(is, a, b);
  if (detail::holds(is, a.bits, b.bits)) return;
  using enum relation;
  char const* const sign = is == equal ? " == " : is == unequal ? " != " : is == less ? " < " : " <= ";
  refuse::with<value_error>(
      ("varve: check: " + std::to_string(a.bits) + sign + std::to_string(b.bits) + " does not hold").c_str());
}
VARVE_LIBRARY void check_is_size(extent a) {
  if (!a.is_number()) return detail::recorder_of(a).check_is_size(a);
  if (a.bits < 0)
    refuse::with<value_error>(("varve: check_is_size: " + std::to_string(a.bits) + " is negative").c_str());
}

VARVE_LIBRARY shape_recorder::shape_recorder() {
  auto& all = detail::recorders;
  all.lock([&] {
    auto const taken = [&](index_t n) {
      for (shape_recorder const* r = all.first; r; r = r->next_)
        if (r->number_ == n) return true;
      return false;
    };
    do all.last = all.last % extent::most_environments + 1;
    while (taken(all.last));
    number_ = all.last;
    next_ = all.first;
    all.first = this;
  });
}
VARVE_LIBRARY shape_recorder::~shape_recorder() {
  detail::recorders.lock([&] {
    shape_recorder** at = &detail::recorders.first;
    while (*at != this) at = &(*at)->next_;
    *at = next_;
  });
}
VARVE_LIBRARY shape_recorder* shape_recorder::find(index_t number) {
  shape_recorder* found = nullptr;
  detail::recorders.lock([&] {
    found = detail::recorders.first;
    while (found && found->number_ != number) found = found->next_;
  });
  return found;
}
#endif

} // namespace varve
