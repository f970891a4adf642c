// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/registry.hpp>

namespace varve {

class interpreter;
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

template <class M>
inline constexpr bool is_const_member = false;
template <class R, class C, class... A>
inline constexpr bool is_const_member<R (C::*)(A...) const> = true;
template <class R, class C, class... A>
inline constexpr bool is_const_member<R (C::*)(A...) const noexcept> = true;

template <class F>
concept keyed_kernel =
    requires(F& f, boxed_op const& op, dispatch_key_set k, boxed_args const& x) { static_cast<tensor>(f(op, k, x)); };
template <class F>
concept simple_boxed_kernel =
    requires(F& f, boxed_op const& op, boxed_args const& x) { static_cast<tensor>(f(op, x)); };

/// True if a call may change the function itself.
template <class F>
constexpr bool changed_by_calls() {
  if constexpr (std::is_pointer_v<F> || keyed_kernel<F const> || simple_boxed_kernel<F const>) return false;
  else if constexpr (requires { &F::operator(); }) return !is_const_member<decltype(&F::operator())>;
  else return true;
}

[[noreturn]] VARVE_COLD inline void refuse_no_result(boxed_op const& op) {
  refuse::with<dispatch_error>(
      (std::string("varve: ") + op.name() +
       ": a kernel registered for it returned an undefined tensor; return a tensor, or call the "
       "operator again with lower keys (redispatch)")
          .c_str());
}
template <class F>
tensor run_kernel(void* self, boxed_op const& op, dispatch_key_set keys, boxed_args const& x) {
  F& f = kept_function_of<F>::of(self);
  tensor y = [&]() -> tensor {
    if constexpr (keyed_kernel<F>) return f(op, keys, x);
    else if constexpr (simple_boxed_kernel<F>) return (void)keys, f(op, x);
    else return (void)keys, unboxed_parameters<F>::call(f, op, x);
  }();
  if (!y.defined()) refuse_no_result(op);
  return y;
}
/// Runs a kernel that is registered at autograd or in-place-or-view. In inference mode eager tensors have neither, and
/// the call skips it.
template <class F>
tensor run_unless_inference(void* self, boxed_op const& op, dispatch_key_set keys, boxed_args const& x) {
  if (this_thread_inference && !keys.has(dispatch_key::transform_back))
    return redispatch(op, keys.below(dispatch_key::inplace_or_view), x);
  return run_kernel<F>(self, op, keys, x);
}
} // namespace detail

/// Operators and kernels that a program registers for as long as the object lives (`torch.library.Library`). The
/// destructor removes all of them. Names without `::` belong to the namespace of the library, or to varve's operators
/// if the library is named "aten".
///
/// Registering is safe against calls on other threads. A call that is running may end in the kernel that it found.
/// Kernels are therefore kept (`detail::registry` says how), and what they refer to must outlive such calls.
class library {
public:
  explicit library(std::string name) : name_(std::move(name)) {}
  library(library const&) = delete;
  library& operator=(library const&) = delete;
  ~library() {
    if (take_back_) take_back_(this);
  }

  /// Defines an operator, with its arguments in PyTorch's notation: `def("foo(Tensor x, int[] dim) -> Tensor")`.
  /// Kernels are added by `impl`. Throws `value_error` for an invalid schema or more than 8 operands or 3 attributes,
  /// and `dispatch_error` if the operator is defined already.
  template <class T = void>
  op_table const* def(std::string_view schema) {
    operator_schema const s = operator_schema::parse(schema);
    std::string const full = qualified(s.name);
    if (s.operands() > 8 || s.attributes() > attributes::capacity)
      refuse::with<value_error>(("varve: operator " + full + " has more than 8 operands or 3 attributes").c_str());
    op_table const* const t = all<T>().define(this, full, s);
    if (!t)
      refuse::with<dispatch_error>(
          ("varve: operator " + full + " is defined already; add kernels to it by impl").c_str());
    return t;
  }
  /// Registers a kernel for a key or an alias of keys. It takes either tensors and, after them, `dims`; or `(boxed_op
  /// const&, boxed_args const&)`; or `(boxed_op const&, dispatch_key_set, boxed_args const&)`, for kernels that
  /// redispatch. Throws `dispatch_error` if the operator is unknown, if another kernel is registered for the key, or if
  /// the kernel's parameters are not those of the schema.
  template <class F, class T = void>
  void impl(std::string_view op, dispatch_key key, F kernel) {
    op_table const* const t = known(op);
    if constexpr (!detail::keyed_kernel<F> && !detail::simple_boxed_kernel<F>) {
      using P = detail::unboxed_parameters<F>;
      operator_schema const s = operator_schema::parse(std::string(t->name) + t->schema);
      if (P::tensors != t->arity || P::facts > s.attributes())
        refuse::with<dispatch_error>(
            ("varve: a kernel for " + to_string(s) + " must take its " + std::to_string(t->arity) +
             " tensors and at most " + std::to_string(s.attributes()) + " attributes as dims, but it takes " +
             std::to_string(P::tensors) + " tensors and " + std::to_string(P::facts) + " attributes")
                .c_str());
    }
    all<T>().add(t, kernel_record<F>(key), keep(std::move(kernel), detail::changed_by_calls<F>()));
  }
  /// Makes calls of the operator skip the key.
  template <class T = void>
  void fallthrough(std::string_view op, dispatch_key key) {
    all<T>().add(known(op), {this, key, {}, {}});
  }
  /// Registers the rule of a kind of transform for the operator: `rule(interpreter, boxed_op const&, boxed_args
  /// const&)`. It is called with the transform still on the stack.
  template <class F, class I = interpreter, class T = void>
  void impl(std::string_view op, transform_type type, F rule) {
    interpreter_rule const r{[](void* self, layer& l, boxed_op const& o, boxed_args const& x) -> tensor {
                               return detail::kept_function_of<F>::of(self)(I(l), o, x);
                             },
                             nullptr, varve::name(type)};
    all<T>().add(known(op), {this, dispatch_key::undefined, {}, r},
                 keep(std::move(rule), !std::is_invocable_v<F const&, I, boxed_op const&, boxed_args const&>));
  }
  /// Registers a boxed kernel for all operators that have none at the key.
  template <class F, class T = void>
  void fallback(dispatch_key key, F kernel) {
    static_assert(detail::keyed_kernel<F> || detail::simple_boxed_kernel<F>,
                  "varve: a fallback is boxed: (boxed_op const&, dispatch_key_set, boxed_args const&)");
    all<T>().add_fallback(kernel_record<F>(key), keep(std::move(kernel), detail::changed_by_calls<F>()));
  }
  template <class T = void>
  void fallthrough(dispatch_key key) {
    all<T>().add_fallback({this, key, {}, {}});
  }

private:
  /// Returns the registry. From now on the destructor removes what was registered.
  template <class T>
  detail::registry<T>& all() {
    take_back_ = [](library const* l) { detail::registry<T>::instance().remove(l); };
    return detail::registry<T>::instance();
  }
  std::string qualified(std::string_view op) const {
    if (op.find("::") != op.npos || name_ == "aten") return std::string(op);
    return name_ + "::" + std::string(op);
  }
  op_table const* known(std::string_view op) const {
    op_table const* t = ops::find(qualified(op).c_str());
    if (!t)
      refuse::with<dispatch_error>(("varve: there is no operator " + qualified(op) +
                                    "; define it first, or call it once so that the program contains it")
                                       .c_str());
    return t;
  }
  template <class F>
  static detail::function_owner keep(F&& f, bool changes) {
    return detail::function_owner(new detail::kept_function_of<F>(std::move(f), changes));
  }
  template <class F>
  detail::registration_record kernel_record(dispatch_key key) const {
    bool const eager =
        dispatch_key_set(key).has_any({dispatch_key::autograd_functionality, dispatch_key::inplace_or_view});
    return {this, key, {eager ? &detail::run_unless_inference<F> : &detail::run_kernel<F>, nullptr}, {}};
  }
  std::string name_;
  void (*take_back_)(library const*) = nullptr;
};

template <class... X>
  requires((value<X> || std::is_same_v<X, dims>) && ...)
tensor ops::call(char const* name, X const&... x) {
  op_table const* const t = find(name);
  if (!t)
    refuse::with<dispatch_error>((std::string("varve: there is no operator ") + name +
                                  "; define it in a library, or call it once so that the program contains it")
                                     .c_str());
  boxed_args args;
  attributes at;
  auto const take = [&](auto const& v) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(v)>, dims>) {
      if (at.count == attributes::capacity)
        refuse::with<dispatch_error>((std::string("varve: ") + name + t->schema +
                                      " was called with more than three attributes; an operator has three at most")
                                         .c_str());
      at.fact[at.count++] = v;
    } else {
      args.push_back(detail::as_tensor(v));
    }
  };
  (take(x), ...);
  if (args.size() != t->arity)
    refuse::with<dispatch_error>((std::string("varve: ") + name + t->schema + " was called with " +
                                  std::to_string(args.size()) + " operands; it takes " + std::to_string(t->arity))
                                     .c_str());
  attributes const checked = t->checked ? t->checked(at, args) : at;
  return boxed_op{t, &checked}(args);
}

} // namespace varve
