// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/registry.hpp>

namespace varve {

class interpreter;
/// The kinds of transform that a rule can be registered for (FS-16).
enum class transform_type : unsigned char { grad, jvp, vmap, functionalize };
constexpr char const* name(transform_type t) {
  constexpr char const* names[] = {"grad", "jvp", "vmap", "functionalize"};
  return names[static_cast<int>(t)];
}

namespace detail {
template <class F>
struct unboxed_parameters : unboxed_parameters<decltype(&F::operator())> {};
template <class R, class... A>
struct unboxed_parameters<R (*)(A...)> {
  static constexpr int tensors = (0 + ... + std::is_same_v<std::remove_cvref_t<A>, tensor>);
  static constexpr int facts = (0 + ... + std::is_same_v<std::remove_cvref_t<A>, dims>);
  static_assert(tensors + facts == sizeof...(A), "varve: a kernel takes tensors, then attributes as dims");
  static_assert(std::is_convertible_v<R, tensor>, "varve: a kernel returns a tensor");
  template <class F>
  static tensor call(F& f, boxed_op const& op, boxed_args const& x) {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      auto const at = [&]<int I>(std::integral_constant<int, I>) -> decltype(auto) {
        if constexpr (I < tensors) return (x[I]);
        else return (op.at->fact[I - tensors]);
      };
      return static_cast<tensor>(f(at(std::integral_constant<int, static_cast<int>(K)>{})...));
    }(std::make_index_sequence<sizeof...(A)>{});
  }
};
template <class R, class C, class... A>
struct unboxed_parameters<R (C::*)(A...)> : unboxed_parameters<R (*)(A...)> {};
template <class R, class C, class... A>
struct unboxed_parameters<R (C::*)(A...) const> : unboxed_parameters<R (*)(A...)> {};

template <class F>
concept keyed_kernel = requires(F& f, boxed_op const& op, dispatch_key_set k, boxed_args const& x) { static_cast<tensor>(f(op, k, x)); };
template <class F>
concept simple_boxed_kernel = requires(F& f, boxed_op const& op, boxed_args const& x) { static_cast<tensor>(f(op, x)); };

template <class F>
tensor run_kernel(void* self, boxed_op const& op, dispatch_key_set keys, boxed_args const& x) {
  F& f = *static_cast<F*>(self);
  if constexpr (keyed_kernel<F>) return f(op, keys, x);
  else if constexpr (simple_boxed_kernel<F>) return (void)keys, f(op, x);
  else return (void)keys, unboxed_parameters<F>::call(f, op, x);
}
} // namespace detail

/// Operators and kernels that a program registers, for as long as the object lives (`torch.library.Library`): on destruction all of it is taken back.
/// Names without `::` belong to the library's own namespace, or to varve's operators when that is "aten". Registration is safe against calls on other threads; a call
/// under way may end in the kernel it found.
class library {
public:
  explicit library(std::string name) : name_(std::move(name)) {}
  library(library const&) = delete;
  library& operator=(library const&) = delete;
  ~library() {
    std::lock_guard const held(all().lock);
    for (op_table const* op : defined_) all().forget(op);
    all().remove(this);
  }

  /// Defines an operator, with its arguments in PyTorch's notation: `def("foo(Tensor x, int[] dim) -> Tensor")`. Kernels come by `impl`.
  op_table const* def(std::string_view schema) {
    operator_schema s = operator_schema::parse(schema);
    std::string const full = qualified(s.name);
    if (s.operands() > 8 || s.attributes() > attributes::capacity) throw value_error(("varve: operator " + full + " has more than 8 operands or 3 attributes").c_str());
    if (ops::find(full.c_str())) throw dispatch_error(("varve: operator " + full + " is defined already").c_str());
    std::lock_guard const held(all().lock);
    defined_.push_back(all().define(full, s));
    return defined_.back();
  }
  /// Registers a kernel for a key or an alias of keys. It takes either tensors and, after them, `dims`; or `(boxed_op const&, boxed_args const&)`; or
  /// `(boxed_op const&, dispatch_key_set, boxed_args const&)`, for those that redispatch. `dispatch_error` when the operator is unknown, when another kernel is
  /// registered for the key, or when the kernel's parameters are not those of the schema.
  template <class F>
  void impl(std::string_view op, dispatch_key key, F kernel) {
    op_table const* const t = known(op);
    if constexpr (!detail::keyed_kernel<F> && !detail::simple_boxed_kernel<F>) {
      using P = detail::unboxed_parameters<F>;
      operator_schema const s = operator_schema::parse(std::string(t->name) + t->schema);
      if (P::tensors != t->arity || P::facts > s.attributes())
        throw dispatch_error(("varve: a kernel for " + to_string(s) + " takes " + std::to_string(P::tensors) + " tensors and " + std::to_string(P::facts) + " attributes").c_str());
    }
    add(t, make(key, std::move(kernel)));
  }
  /// Calls of the operator pass over the key.
  void fallthrough(std::string_view op, dispatch_key key) { add(known(op), {key, {}, {}, {}, this}); }
  /// Registers what a kind of transform does with the operator: `rule(interpreter, boxed_op const&, boxed_args const&)`, called with the transform still on the stack.
  template <class F, class I = interpreter>
  void impl(std::string_view op, transform_type type, F rule) {
    auto owner = std::make_shared<F>(std::move(rule));
    detail::registration_record r;
    r.rule = {[](void* self, layer& l, boxed_op const& o, boxed_args const& x) -> tensor { return (*static_cast<F*>(self))(I(l), o, x); }, owner.get(), varve::name(type)};
    r.owner = owner;
    r.library = this;
    add(known(op), std::move(r));
  }
  /// Registers a boxed kernel for all operators that have none at the key.
  template <class F>
  void fallback(dispatch_key key, F kernel) {
    static_assert(detail::keyed_kernel<F> || detail::simple_boxed_kernel<F>, "varve: a fallback is boxed: (boxed_op const&, dispatch_key_set, boxed_args const&)");
    std::lock_guard const held(all().lock);
    all().add_fallback(make(key, std::move(kernel)));
  }
  void fallthrough(dispatch_key key) {
    std::lock_guard const held(all().lock);
    all().add_fallback({key, {}, {}, {}, this});
  }

private:
  static detail::registry& all() { return detail::registry::instance(); }
  std::string qualified(std::string_view op) const {
    if (op.find("::") != op.npos || name_ == "aten") return std::string(op);
    return name_ + "::" + std::string(op);
  }
  op_table const* known(std::string_view op) const {
    op_table const* t = ops::find(qualified(op).c_str());
    if (!t) throw dispatch_error(("varve: there is no operator " + qualified(op) + "; define it first, or call it once so that the program contains it").c_str());
    return t;
  }
  template <class F>
  detail::registration_record make(dispatch_key key, F kernel) {
    auto owner = std::make_shared<F>(std::move(kernel));
    return {key, {&detail::run_kernel<F>, owner.get()}, {}, owner, this};
  }
  void add(op_table const* t, detail::registration_record r) {
    std::lock_guard const held(all().lock);
    auto& e = all().of(t);
    int rules = 0;
    for (auto const& o : e.records) {
      rules += o.rule.call != nullptr;
      bool const same = r.rule.call ? o.rule.call && std::strcmp(o.rule.kind, r.rule.kind) == 0 : !o.rule.call && o.key == r.key;
      if (same) throw dispatch_error((std::string("varve: operator ") + t->name + " has a kernel registered for " + (r.rule.call ? r.rule.kind : varve::name(r.key)) + " already").c_str());
    }
    if (r.rule.call && rules == dispatch_table::most_rules) throw dispatch_error("varve: too many rules registered for one operator");
    e.records.push_back(std::move(r));
    all().rebuild(e);
  }
  std::string name_;
  std::vector<op_table const*> defined_;
};

template <class... X>
tensor ops::call(char const* name, X const&... x) {
  op_table const* const t = find(name);
  if (!t) throw dispatch_error((std::string("varve: there is no operator ") + name).c_str());
  boxed_args args;
  attributes at;
  auto const take = [&](auto const& v) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(v)>, dims>) {
      if (at.count == attributes::capacity) throw dispatch_error("varve: more than three attributes");
      at.fact[at.count++] = v;
    } else {
      args.push_back(detail::as_tensor(v));
    }
  };
  (take(x), ...);
  if (args.size() != t->arity) throw dispatch_error((std::string("varve: ") + name + t->schema + " was called with " + std::to_string(args.size()) + " operands").c_str());
  return boxed_op{t, &at}(args);
}

} // namespace varve
