// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/custom/boxed_custom_call.hpp>
#include <varve/functional/functional_scope.hpp>

/// @file
/// Custom functions under `functionalize`.

namespace varve::detail {

/// A policy that runs the parts of a custom function in a `functionalize` scope of their own, so that no part writes
/// below. A backward pass may run after the scope of the call has ended.
struct own_functional_run {
  template <class S>
  struct opened {
    S& scope;
    boxed_args operands(boxed_args const& x) const { return scope.level().wrap(x); }
    boxed_args close(boxed_args const& x) const { return operands(x); }
    boxed_args open(boxed_args const& y) const {
      return tree_map([&](auto const& t) { return t.defined() ? scope.result(t) : t; }, y);
    }
    boxed_args reduce(boxed_args const& g) const { return open(g); }
    boxed_context open_context(boxed_context c) const {
      c.saved = open(c.saved);
      c.dirty_operands = 0; // below, a written operand is a result
      return c;
    }
    boxed_context close_context(boxed_context c) const {
      c.saved = operands(c.saved);
      return c;
    }
  };
  template <class Body>
  auto run(Body const& body) const {
    dynamic_functional_scope<dependent<void, Body>> scope;
    return scope.run([&] { return body(opened<decltype(scope)>{scope}); });
  }
};

/// A custom function without writes. If the original wrote into an operand and returned it, this one returns a new
/// value.
template <class On = void>
class functional_custom_function final : public boxed_custom_function {
  using T = dependent<tensor, On>;

public:
  explicit functional_custom_function(custom_function_ptr f) : as_{{std::move(f)}, {}} {}
  char const* name() const override { return f().name(); }
  boxed_args forward(boxed_args const& x) const override {
    return told(x, [&](auto const& in) { return f().forward(in); });
  }
  boxed_args vmap(vmap_info const& info, std::vector<bool> const& mapped, boxed_args const& x) const override {
    return told(x, [&](auto const& in) { return f().vmap(info, mapped, in); });
  }
  boxed_context context(std::vector<bool> const& needs, boxed_args const& x, boxed_args const& y) const override {
    return as_.batch.run([&](auto const& b) {
      boxed_args const results = b.close(y);
      boxed_args in = b.operands(x);
      for (int k = 0; k < y.size(); ++k)
        for (int i = 0; i < x.size(); ++i)
          if (written_operand(k) == i || (y[k].defined() && y[k].is(x[i]))) in[i] = results[k];
      return b.open_context(f().context(needs, in, results));
    });
  }
  boxed_args backward(boxed_context const& c, boxed_args const& g) const override { return as_.backward(c, g); }
  boxed_args jvp(boxed_context const& c, boxed_args const& t) const override { return as_.jvp(c, t); }

  void const* type() const override { return &custom_type_mark<functional_custom_function>; }
  /// Returns the original function, which may write.
  custom_function_ptr const& inside() const { return as_.f.f; }

  /// Returns the operand that result k is, after a write; -1 if there is none.
  int written_operand(int k) const {
    return k < static_cast<int>(written_.size()) ? written_[static_cast<std::size_t>(k)] : -1;
  }

  /// True if result k shares memory with another result.
  bool is_shared(int k) const { return k < static_cast<int>(shared_.size()) && shared_[static_cast<std::size_t>(k)]; }

  /// Returns the operand with which result k shares memory without having been written; -1 if there is none.
  int operand_behind(int k) const {
    return k < static_cast<int>(behind_.size()) ? behind_[static_cast<std::size_t>(k)] : -1;
  }

private:
  boxed_custom_function const& f() const { return *as_.f.f; }
  template <class Call>
  boxed_args told(boxed_args const& x, Call const& call) const {
    return as_.batch.run([&](auto const& b) {
      boxed_args const in = b.operands(x), y = call(in);
      written_.assign(static_cast<std::size_t>(y.size()), -1);
      for (int i = 0; i < in.size(); ++i) {
        if (!in[i].defined() || !functionalize_interpreter<T>::is_written(in[i])) continue;
        bool returned = false;
        for (int k = 0; k < y.size(); ++k)
          if (y[k].is(in[i])) written_[static_cast<std::size_t>(k)] = i, returned = true;
        if (!returned)
          refuse::with<transform_error>((std::string("varve: functionalize: ") + name() +
                                         " writes into an argument that it does not return; return it, marked dirty")
                                            .c_str());
      }
      find_shared(in, y);
      return b.open(y);
    });
  }
  void find_shared(boxed_args const& in, boxed_args const& y) const {
    shared_.assign(written_.size(), false);
    behind_.assign(written_.size(), -1);
    auto const is_seen = [](tensor const& t) { return t.defined() && t.is_wrapped() && t.state(); };
    auto const in_one_memory = [&](tensor const& a, tensor const& b) {
      return is_seen(a) && is_seen(b) && functionalize_interpreter<T>::share_memory(a, b);
    };
    for (int k = 0; k < y.size(); ++k) {
      for (int j = 0; j < y.size(); ++j)
        if (j != k && in_one_memory(y[k], y[j])) shared_[static_cast<std::size_t>(k)] = true;
      for (int i = 0; i < in.size(); ++i)
        if (in_one_memory(y[k], in[i])) behind_[static_cast<std::size_t>(k)] = i;
    }
  }

  mapped_function<custom_function_ref, dependent<own_functional_run, On>> as_;
  // State of one call.
  mutable std::vector<int> written_, behind_;
  mutable std::vector<dependent<bool, On>> shared_;
};

/// Calls a custom function below a host without writes. The new value of an operand that it wrote becomes the operand's
/// value.
template <class Host>
boxed_args functional_custom_call(Host const& in, custom_function_ptr const& f, boxed_args const& x) {
  [[maybe_unused]] auto const off = in.below();
  auto const g = std::make_shared<functional_custom_function<dependent<void, Host>>>(f);
  boxed_args const plain = in.open_functional(x), y = call_custom<>(g, plain);
  boxed_args r;
  for (int k = 0; k < y.size(); ++k) {
    int const written = g->written_operand(k);
    int same = written;
    for (int i = 0; same < 0 && i < x.size(); ++i)
      if (y[k].defined() && y[k].is(plain[i])) same = i;
    if (written >= 0 && !in.mine(x[written]))
      refuse::with<transform_error>(
          (std::string("varve: functionalize: ") + f->name() + " writes into a captured tensor; pass it as an argument")
              .c_str());
    if (written >= 0) in.replace(f->name(), x[written], y[k]);
    if (same >= 0) r.push_back(x[same]);
    else r.push_back(y[k].defined() ? in.wrap_result(f->name(), y[k], plain, g->is_shared(k)) : y[k]);
    int const behind = g->operand_behind(k);
    if (same >= 0 || !y[k].defined() || behind < 0) continue;
    if (in.mine(x[behind])) in.lie_in(r[k], in.memory_of(x[behind]), f->name());
    else in.refuse_writes(r[k], f->name());
  }
  return r;
}

} // namespace varve::detail
