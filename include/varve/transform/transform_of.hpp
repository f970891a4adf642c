// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/interpreter/dynamic_level.hpp>
#include <varve/interpreter/static_level.hpp>
#include <varve/transform/scope.hpp>

#include <vector>

/// @file
/// The base of a program's own transform: a function is run with a payload beside each value, and one rule per operator
/// computes the payload of a result. `docs/transforms_of_your_own.md` has an example.
namespace varve {

/// A value and what a transform computes beside it. The payload of a constant is `none`, or an undefined tensor.
template <class V, class P>
struct with_payload {
  V value;
  [[no_unique_address]] P payload;
};
template <class V, class P>
with_payload(V, P) -> with_payload<V, P>;

/// A kind of operators as a type, by which rules of a transform are overloaded.
template <auto K>
using transform_kind = std::integral_constant<decltype(K), K>;

namespace detail {
/// A call of an operator on static values, as the rules of a transform receive it.
template <class Op, class... X>
struct own_static_call {
  Op const& op;
  std::tuple<X const&...> const& x;

  static constexpr char const* name() { return Op::name(); }
  template <class... V>
  constexpr auto operator()(V const&... v) const {
    return op(v...);
  }
  template <class F>
  constexpr auto on(F const& f) const {
    return detail::call_with([&](auto const&... o) { return op(f(o)...); }, x);
  }
  template <std::size_t I>
  constexpr auto const& operand() const {
    return std::get<I>(x);
  }
};
/// A call of an operator on tensors, as the rules of a transform receive it.
template <class T = tensor>
struct own_boxed_call {
  using held = with_payload<T, T>;
  boxed_op const& op;
  std::vector<held> const& x;

  char const* name() const { return op.name(); }
  template <class... V>
  tensor operator()(V const&... v) const {
    return op(boxed_args(tensor(v)...));
  }
  template <class F>
  tensor on(F const& f) const {
    boxed_args in;
    for (held const& o : x) in.push_back(f(o));
    return op(in);
  }
  template <std::size_t I>
  held const& operand() const {
    return x[I];
  }
};
/// The interpreter of a program's transform on static values.
template <class Lv, class T>
struct own_interpreter : Lv {
  static constexpr char const* kind = T::name;
  static constexpr dispatch_key_set keys{};

  template <class X>
  static constexpr auto open(X const& x) {
    if constexpr (at_level<X, Lv::level>) return with_payload{x.value, x.extra};
    else return with_payload<X, none_t>{x, none};
  }
  template <class V, class P>
  constexpr auto close(with_payload<V, P> const& p) const {
    if constexpr (is_none<P>) return p.value;
    else return seen<own_interpreter, V, P>{p.value, *this, p.payload};
  }
  template <class V>
  constexpr auto lift_with(V const& v, V const&) const {
    return close(with_payload{v, T::payload_of_constant(v)});
  }
  template <class V, class L>
  constexpr auto lift_payload(V const& v, L const& lift) const {
    return close(with_payload{lift(v.value), lift(v.extra)});
  }
  template <class Op, class... X>
  constexpr auto process(Op const& op, X const&... x) const {
    if constexpr (is_hop<Op>) {
      static_assert(never<Op, T>, "varve: a transform of your own has no rule for this operator with functions; write "
                                  "it in operators");
      return (open(x).value, ...); // instantiate nothing more after the message
    } else return called(op, open(x)...);
  }

private:
  template <class Op, class... P>
  constexpr auto called(Op const& op, P const&... p) const {
    std::tuple<P const&...> const x(p...);
    own_static_call<Op, P...> const call{op, x};
    constexpr transform_kind<T::kind_of(handle<typename Op::tag>)> k{};
    constexpr bool has = requires { T::rule(k, call); };
    static_assert(has, "varve: a transform of your own has no rule for an operator, whose type stands in the message; "
                       "write the rule, or use other operators");
    if constexpr (has) return close(T::rule(k, call));
    else return call.on([](auto const& o) { return o.value; });
  }
};
/// The layer of a program's transform on tensors. A value holds its payload as `extra`.
template <class T, class On = void>
class own_layer : layer {
  using held = with_payload<tensor, tensor>;

public:
  own_layer() : layer(kind_) {
    level_.self = this, object = &level_;
    pushed::name(*this, this_thread_state.transforms);
  }
  own_layer(own_layer const&) = delete;

  held open(tensor const& t) const { return level_.mine(t) ? held{t.inner(), t.extra()} : held{t, tensor()}; }
  tensor close(held const& p) const {
    return p.payload.defined() ? tensor::wrap(p.value, id, layer::level, p.payload, {}, p.value.sizes()) : p.value;
  }
  template <class Body>
  auto run(Body const& body) {
    pushed const on(this_thread_state.transforms, *this);
    return body();
  }

private:
  static tensor process(layer& l, boxed_op const& op, boxed_args const& x) {
    auto const& self = static_cast<own_layer const&>(l);
    bool any = false;
    for (auto const& t : x) any = any || self.level_.mine(t);
    if (!any) return op(x);
    if (op.table->kind == op_kind::mutation)
      refuse::with<transform_error>((std::string("varve: ") + T::name + ": " + op.name() +
                                     " writes into its operand, which the transform cannot follow; transform "
                                     "functionalize(f)")
                                        .c_str());
    std::vector<held> in;
    for (auto const& t : x) in.push_back(self.open(t));
    own_boxed_call<dependent<tensor, On>> const call{op, in};
    op_handle const* const h = op.table->node();
    return h ? self.close(by_rule<0>(call, static_cast<int>(T::kind_of(*h)))) : refuse_operator(call);
  }
  /// Calls the rule of kind k.
  template <int K, class Call>
  static held by_rule(Call const& call, int k) {
    constexpr transform_kind<static_cast<typename T::kind>(K)> is{};
    if constexpr (K + 1 < T::kinds)
      if (k != K) return by_rule<K + 1>(call, k);
    if constexpr (requires { T::rule(is, call); }) return T::rule(is, call);
    else return {refuse_operator(call), tensor()};
  }
  template <class Call>
  [[noreturn]] static tensor refuse_operator(Call const& call) {
    refuse::with<missing_rule>((std::string("varve: ") + T::name + ": there is no rule for " + call.name() +
                                "; write it, or use other operators")
                                   .c_str());
  }
  static constexpr layer_kind kind_{.name = T::name, .role = layer_role::other, .process = &process};
  dynamic_level level_;
};
} // namespace detail

/// The base of a transform `T` that a program defines, for static values and tensors. `T` says
///
/// - `name`: for messages, and for rules of operators with functions that a program registers;
/// - `kind`, `kinds`, `kind_of(op_handle)`: an enum, the number of its values, and which of them an operator is;
/// - `rule(transform_kind<K>, call)`: overloads that return the `with_payload` of the result of a call. An operator of
/// a
///   kind without an overload is refused by name;
/// - `payload_of_constant(v)`: what stands for an absent payload where branches must agree.
///
/// `call.on(f)` calls the operator on `f(operand)` for each operand, `call(v...)` on values, both below the transform.
/// `call.template operand<I>()` is an operand with its payload.
///
/// `T::run(f, x...)` runs `f` on values with payloads and returns the tree of its results, each `with_payload`. Rules
/// are written with operators, so that a transform composes with all others, and is traced and fused. Errors:
/// `missing_rule` for an operator without a rule, `transform_error` for writes; compile-time errors for static values.
template <class T>
struct transform_of {
  template <class F, class... V, class... P>
  static constexpr auto run(F const& f, with_payload<V, P> const&... x) {
    if constexpr (any_dynamic<V...>) {
      detail::own_layer<T> scope;
      auto const y = scope.run([&] { return f(scope.close(with_payload<tensor, tensor>{x.value, x.payload})...); });
      return tree_map([&](auto const& v) { return scope.open(detail::as_tensor(v)); }, y);
    } else {
      constexpr int level = detail::next_level<F, V..., P...>;
      constexpr detail::own_interpreter<static_level<level, F>, T> in{};
      return tree_map(
          [&]<class Y>(Y const& y) {
            if constexpr (value<Y>) detail::check_exit<level, Y>();
            return in.open(y);
          },
          f(in.close(x)...));
    }
  }
};

} // namespace varve
