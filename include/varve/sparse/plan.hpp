// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/spin_lock.hpp>
#include <varve/op/cat.hpp>
#include <varve/sparse/compression.hpp>
#include <varve/sparse/sparse_matrix.hpp>
#include <varve/sparse/sparsity.hpp>

#include <atomic>
#include <memory>
#include <utility>

/// @file
/// Plans of sparse derivatives: a pattern, its coloring and the way back. A plan is a constant for static values, part
/// of the trace for traced ones, and kept by the function object for tensors.
namespace varve::detail {

/// The dtype and sizes of a static value as a type.
template <class T, class S>
struct static_kind {
  static constexpr meta info() { return {static_cast<dtype>(T::to_dims()[0].number()), S::to_dims(), false}; }
};
template <class X>
using static_kind_of = static_kind<std::remove_cvref_t<decltype(type_fact(std::declval<X const&>()))>,
                                   std::remove_cvref_t<decltype(shape_of(std::declval<X const&>()))>>;

/// The sizes of the lists of a plan.
struct plan_sizes {
  int rows, columns, entries, colored, colors, steps, reads, subtracts, ordered;
};
/// A plan as a constant.
template <plan_sizes S>
struct frozen_plan {
  static_pattern<S.rows, S.columns, S.entries> pattern{};
  sparse_compression how{};
  int color[S.colored ? S.colored : 1]{};
  int read_first[S.steps + 1]{}, subtract_first[S.steps + 1]{};
  index_t read[S.reads ? S.reads : 1]{}, subtract[S.subtracts ? S.subtracts : 1]{};
  index_t order[S.ordered ? S.ordered : 1]{};

  constexpr frozen_plan(sparsity_pattern const& p, compression const& c) : pattern(p.view()), how(c.how) {
    for (int k = 0; k < S.colored; ++k) color[k] = c.colors.of[k];
    for (int s = 0; s < S.steps; ++s) {
      int r = read_first[s], t = subtract_first[s];
      for (index_t const k : c.steps[s].read) read[r++] = k;
      for (index_t const k : c.steps[s].subtract) subtract[t++] = k;
      read_first[s + 1] = r, subtract_first[s + 1] = t;
    }
    for (int k = 0; k < S.ordered; ++k) order[k] = c.order[k];
  }
};

/// A pattern that `Make::pattern()` computes, and how it is compressed, in a constant expression.
template <class Make, sparse_compression How>
struct computed_plan {
  sparsity_pattern pattern;
  compression c;
  constexpr computed_plan() : pattern(Make::pattern()), c(compress(pattern.view(), How)) {}
  constexpr plan_sizes sizes() const {
    plan_sizes s{pattern.rows,
                 pattern.columns,
                 pattern.count(),
                 static_cast<int>(c.colors.of.size()),
                 c.colors.colors,
                 static_cast<int>(c.steps.size()),
                 0,
                 0,
                 static_cast<int>(c.order.size())};
    for (recovery_step const& r : c.steps)
      s.reads += static_cast<int>(r.read.size()), s.subtracts += static_cast<int>(r.subtract.size());
    return s;
  }
};
template <class Make, sparse_compression How>
constexpr plan_sizes computed_sizes() {
  computed_plan<Make, How> const p;
  return p.sizes();
}
template <class Make, sparse_compression How, plan_sizes S>
constexpr frozen_plan<S> frozen_of() {
  computed_plan<Make, How> const p;
  return {p.pattern, p.c};
}
template <int N>
constexpr array<std::int64_t, N> index_array(index_t const* from) {
  array<std::int64_t, N> r{};
  for (int k = 0; k < N; ++k) r.data[k] = from[k];
  return r;
}
/// The plan of such a pattern as constants.
template <class Make, sparse_compression How>
struct static_plan {
  static constexpr plan_sizes sizes = computed_sizes<Make, How>();
  static constexpr frozen_plan<sizes> frozen = frozen_of<Make, How, sizes>();
  static constexpr bool by_rows = frozen.how == sparse_compression::rows;
  static constexpr int colors = sizes.colors, steps = sizes.steps;

  template <class T>
  static constexpr auto seeds = [] {
    array<T, sizes.colors, sizes.colored> r{};
    for (int k = 0; k < sizes.colored; ++k)
      if (frozen.color[k] >= 0) r.data[index_t{frozen.color[k]} * sizes.colored + k] = T(1);
    return r;
  }();
  template <int Step>
  static constexpr auto read =
      index_array<frozen.read_first[Step + 1] - frozen.read_first[Step]>(frozen.read + frozen.read_first[Step]);
  template <int Step>
  static constexpr auto subtract = index_array<frozen.subtract_first[Step + 1] - frozen.subtract_first[Step]>(
      frozen.subtract + frozen.subtract_first[Step]);
  static constexpr auto order() { return index_array<sizes.ordered>(frozen.order); }
};

/// The plan of a derivative on tensors or traced values.
struct sparse_plan {
  sparsity_pattern pattern{};
  compression c{};
  meta result{}; // of the function

  constexpr sparse_plan(found_pattern const& found, sparse_compression how)
      : pattern(found.pattern), c(compress(pattern.view(), how)), result(found.result) {}
};

/// The arguments and captured tensors for which a plan was made: dtypes and sizes of all, and the elements of those
/// that decide the pattern.
struct plan_key {
  std::vector<meta> kinds{};
  std::vector<std::vector<std::int64_t>> elements{};
  void add(meta const& m, std::vector<std::int64_t> read = {}) {
    kinds.push_back(m);
    elements.push_back(std::move(read));
  }
  void add(tensor const& t) {
    add({t.dtype(), t.sizes(), false}, has_known_elements(t) ? known_numbers(t) : std::vector<std::int64_t>());
  }
  bool operator==(plan_key const& o) const {
    bool same = kinds.size() == o.kinds.size();
    for (std::size_t k = 0; same && k < kinds.size(); ++k)
      same = kinds[k].type == o.kinds[k].type && known_equal(kinds[k].sizes, o.kinds[k].sizes);
    return same && elements == o.elements;
  }
};
/// The plans of one function, the latest first. Threads may share them.
class plan_cache {
public:
  using plan_ptr = std::shared_ptr<sparse_plan const>;
  struct entry {
    plan_key arguments;
    argument_types const* types; // of the arguments after x
    std::shared_ptr<void const> constants;
    std::vector<tensor> captured;
    plan_key captures; // as they were
    plan_ptr plan;
  };
  plan_ptr find(plan_key const& arguments, boxed_call const& rest) const {
    for (auto const& e : all())
      if (is_for(*e, arguments, rest) && e->captures == key_of(e->captured)) return e->plan;
    return nullptr;
  }
  void add(plan_key const& arguments, boxed_call const& rest, std::vector<tensor> const& captured,
           plan_ptr const& plan) {
    auto e =
        std::make_shared<entry const>(entry{arguments, rest.types, rest.constants(), captured, key_of(captured), plan});
    std::vector<entry_ptr> kept{e};
    for (auto& old : all())
      if (!is_for(*old, arguments, rest) && kept.size() < most) kept.push_back(old);
    spin_lock::held const on(lock_);
    all_.swap(kept);
  }
  static plan_key key_of(std::vector<tensor> const& tensors) {
    plan_key k;
    for (auto const& t : tensors) k.add(t);
    return k;
  }

private:
  static bool is_for(entry const& e, plan_key const& arguments, boxed_call const& rest) {
    return e.types == rest.types && e.arguments == arguments && rest.has_constants(e.constants);
  }
  using entry_ptr = std::shared_ptr<entry const>;
  static constexpr std::size_t most = 8;
  mutable spin_lock lock_{};
  std::vector<entry_ptr> all_{};
  std::vector<entry_ptr> all() const {
    spin_lock::held const on(lock_);
    return all_;
  }
};

/// Owns the plans of a function object; copies share them. It exists in constant expressions, but owns nothing there.
class shared_plans {
public:
  constexpr shared_plans() {
    if (!std::is_constant_evaluated()) own_ = new owned;
  }
  constexpr shared_plans(shared_plans const& o) : own_(o.own_) {
    if (own_) own_->count.fetch_add(1, std::memory_order_relaxed);
  }
  constexpr shared_plans& operator=(shared_plans o) {
    std::swap(own_, o.own_);
    return *this;
  }
  constexpr ~shared_plans() {
    if (own_ && own_->count.fetch_sub(1, std::memory_order_acq_rel) == 1) delete own_;
  }
  plan_cache* get() const { return own_ ? &own_->plans : nullptr; }

private:
  struct owned {
    plan_cache plans{};
    std::atomic<int> count{1};
  };
  owned* own_ = nullptr;
};

} // namespace varve::detail
