// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/spin_lock.hpp>
#include <varve/dispatch/boxed.hpp>
#include <varve/dispatch/form.hpp>
#include <varve/dispatch/handle.hpp>
#include <varve/dispatch/integer_range.hpp>
#include <varve/dispatch/tensor_eval.hpp>

namespace varve {

namespace detail {
template <class Tag, int Facts>
auto rebound(attributes const& at) {
  if constexpr (Facts == 0) return bound<Tag>{};
  else if constexpr (Facts == 1) return bound<Tag, dims>{at[0], {}, {}};
  else if constexpr (Facts == 2) return bound<Tag, dims, dims>{at[0], at[1], {}};
  else return bound<Tag, dims, dims, dims>{at[0], at[1], at[2]};
}
[[noreturn]] VARVE_COLD inline void no_rule(char const* op, char const* interpreter) {
  refuse::with<missing_rule>(
      (std::string("varve: operator ") + op + " has no rule for " + interpreter +
       "; add it to its rules<>, or register a rule or a composite_implicit kernel with library::impl")
          .c_str());
}

template <class R>
constexpr char const* schema_of() {
  if constexpr (requires { R::schema; }) return R::schema;
  else return "";
}
/// The rules of an operator that are needed to check a call and to make its result without data. The functions that use
/// them exist once for all operators.
struct call_rules {
  char const* name;
  char const* schema;
  int facts, least;
  /// Returns checked and completed attributes. Null for rules that do not check attributes.
  attributes (*checked)(attributes const& at, meta const* in);
  meta (*shape)(attributes const& at, meta const* in, int count);
  bool writes, compares;
};
template <class R>
constexpr auto checked_of() -> attributes (*)(attributes const&, meta const*) {
  if constexpr (requires(attributes const& at, meta const* in) { R::checked(at, in); })
    return [](attributes const& at, meta const* in) -> attributes { return R::checked(at, in); };
  else return nullptr;
}
template <class R>
constexpr int least_attributes_of(int facts) {
  if constexpr (requires { R::least_attributes; }) return R::least_attributes;
  else return facts;
}
template <class R>
constexpr auto shape_rule_of() -> meta (*)(attributes const&, meta const*, int) {
  if constexpr (requires(meta (*f)(attributes const&, meta const*, int)) { f = &R::shape; }) return &R::shape;
  else return [](attributes const& at, meta const* in, int count) -> meta { return R::shape(at, in, count); };
}
template <class Tag, int Facts>
inline constexpr call_rules call_rules_of{Tag::op_name,
                                          schema_of<rules<Tag>>(),
                                          Facts,
                                          least_attributes_of<rules<Tag>>(Facts),
                                          checked_of<rules<Tag>>(),
                                          shape_rule_of<rules<Tag>>(),
                                          rules<Tag>::kind == op_kind::mutation,
                                          std::is_base_of_v<comparing_operator<Tag>, Tag> ||
                                              std::is_base_of_v<extreme_operator<Tag>, Tag>};
/// Returns the attributes of a call by name, or of a node, as `rules<>::checked` completes them. Throws
/// `dispatch_error` for a wrong number of attributes.
attributes checked_call(call_rules const& op, attributes const& at, boxed_args const& x);
/// Returns the result without data, by the `shape` rule. An operator that writes returns its first operand.
tensor meta_of_call(call_rules const& op, attributes const& at, boxed_args const& x);
/// The rules of an operator instantiated on tensors, from the same source text as for static values.
template <class Tag, int Facts>
struct erased {
  using R = rules<Tag>;
  static constexpr std::size_t arity = static_cast<std::size_t>(R::arity);
  using all = std::make_index_sequence<arity>;

  static tensor eval(attributes const& at, boxed_args const& x) {
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      return evaluate_at<Tag, Facts>(at, x[static_cast<int>(K)]...);
    }(all{});
  }
  template <std::size_t I, std::size_t... K>
  static tensor jvp_at(attributes const& at, tensor const& d, tensor const& y, boxed_args const& x,
                       std::index_sequence<K...>) {
    if constexpr (requires { R::jvp(arg<I>, rebound<Tag, Facts>(at), d, y, x[static_cast<int>(K)]...); })
      return R::jvp(arg<I>, rebound<Tag, Facts>(at), d, y, x[static_cast<int>(K)]...);
    else no_rule(Tag::op_name, "jvp");
  }
  template <std::size_t I, std::size_t... K>
  static tensor vjp_at(attributes const& at, tensor const& g, tensor const& y, boxed_args const& x,
                       std::index_sequence<K...>) {
    if constexpr (requires { R::vjp(arg<I>, rebound<Tag, Facts>(at), g, y, x[static_cast<int>(K)]...); })
      return R::vjp(arg<I>, rebound<Tag, Facts>(at), g, y, x[static_cast<int>(K)]...);
    else no_rule(Tag::op_name, "grad");
  }
  VARVE_COLD static tensor jvp(int i, attributes const& at, tensor const& d, tensor const& y, boxed_args const& x) {
    if constexpr (!constant_to_derivatives<Tag> && has_jvp<Tag>) {
      tensor r;
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        (void)((static_cast<int>(I) == i && (r = jvp_at<I>(at, d, y, x, all{}), true)) || ...);
      }(all{});
      return r;
    } else {
      no_rule(Tag::op_name, "jvp");
    }
  }
  VARVE_COLD static tensor vjp(int i, attributes const& at, tensor const& g, tensor const& y, boxed_args const& x) {
    if constexpr (!constant_to_derivatives<Tag> && has_vjp<Tag>) {
      tensor r;
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        (void)((static_cast<int>(I) == i && (r = vjp_at<I>(at, g, y, x, all{}), true)) || ...);
      }(all{});
      return r;
    } else {
      no_rule(Tag::op_name, "grad");
    }
  }
  VARVE_COLD static tensor batch(attributes const& at, extent n, boxed_args const& x, bool const* batched) {
    if constexpr (has_batch<Tag>) {
      return [&]<std::size_t... K>(std::index_sequence<K...>) {
        return R::batch(rebound<Tag, Facts>(at), dims{n}, operand<tensor, bool>{x[static_cast<int>(K)], batched[K]}...);
      }(all{});
    } else {
      no_rule(Tag::op_name, "vmap");
    }
  }
  VARVE_COLD static tensor meta_of_result(attributes const& at, boxed_args const& x) {
    if constexpr (has_layout<R> && R::kind == op_kind::view && !requires { &R::make; }) {
      layout const l = R::layout_of(at, x[0].where());
      if (l.expressible) return x[0].with_layout(l, !constant_to_derivatives<Tag>); // no view from `detach`
    }
    tensor y = meta_of_call(call_rules_of<Tag, Facts>, at, x);
    if constexpr (R::kind == op_kind::mutation) {
      if constexpr (requires { R::require_writable(x[0]); }) R::require_writable(x[0]);
      x[0].bump_version();
    }
    return y;
  }
  static op_handle const* handle_of() { return &handle<Tag>; }
  VARVE_COLD static attributes checked(attributes const& at, boxed_args const& x) {
    return checked_call(call_rules_of<Tag, Facts>, at, x);
  }
};

template <class R>
constexpr saved_values saved_of() {
  if constexpr (requires { R::saved; }) return R::saved;
  else return {};
}

/// Returns the rule `saved_by` of an operator whose attributes decide what is saved; null for others.
template <class R>
constexpr auto saved_by_of() -> saved_values (*)(attributes const&) {
  if constexpr (requires(attributes const& at) { R::saved_by(at); }) return &R::saved_by;
  else return nullptr;
}

template <class Tag, int Facts>
constexpr op_table const* functional_of();
/// True if an operator may receive complex operands. Operators of users may, since they refuse dtypes without a kernel
/// themselves.
template <class Tag>
constexpr bool takes_complex() {
  using R = rules<Tag>;
  return has_layout<R> || moves_elements<R> || requires { requires R::takes_complex; } || !declared::by_varve<Tag>();
}
/// Returns what the rules of an operator, or the tag of a composite, state as `of_complex`.
template <class R>
constexpr complex_rule complex_rule_of() {
  if constexpr (requires { R::of_complex; }) return R::of_complex;
  else return complex_rule::refused;
}
template <class Tag>
constexpr pointwise_info const* pointwise_of() {
  if constexpr (rules<Tag>::kind == op_kind::pointwise) return &info_of<Tag>;
  else return nullptr;
}

/// The kernels registered at run time for an operator; null while there are none.
template <class Tag>
inline constinit std::atomic<dispatch_table const*> registered{nullptr};

/// An entry of the list of all tables. A table adds itself from the start of a program that contains it.
struct table_entry {
  op_table const* table;
  table_entry* next;
};
inline table_entry*& first_table() {
  static table_entry* first = nullptr;
  return first;
}
/// The lock that is held while the list of tables, or what is registered for them, is read or changed.
inline constinit spin_lock lock_of_tables;
struct table_registration {
  table_entry entry;
  explicit table_registration(op_table const* t) : entry{t, nullptr} {
    spin_lock::held const on(lock_of_tables);
    entry.next = first_table();
    first_table() = &entry;
  }
};
} // namespace detail

/// The rules of an operator for tensors.
template <class Tag, int Facts>
inline constexpr op_table table{.name = Tag::op_name,
                                .schema = detail::schema_of<rules<Tag>>(),
                                .arity = rules<Tag>::arity,
                                .differentiable = !constant_to_derivatives<Tag>,
                                .eval = &detail::erased<Tag, Facts>::eval,
                                .jvp = &detail::erased<Tag, Facts>::jvp,
                                .vjp = &detail::erased<Tag, Facts>::vjp,
                                .batch = &detail::erased<Tag, Facts>::batch,
                                .handle = &detail::erased<Tag, Facts>::handle_of,
                                .meta = &detail::erased<Tag, Facts>::meta_of_result,
                                .registered = &detail::registered<Tag>,
                                .saved = detail::saved_of<rules<Tag>>(),
                                .kind = rules<Tag>::kind,
                                .pointwise = detail::pointwise_of<Tag>(),
                                .functional = detail::functional_of<Tag, Facts>(),
                                .checked = &detail::erased<Tag, Facts>::checked,
                                .takes_complex = detail::takes_complex<Tag>(),
                                .of_complex = detail::complex_rule_of<rules<Tag>>(),
                                .saved_by = detail::saved_by_of<rules<Tag>>()};
template <class Tag, int Facts>
constexpr op_table const* detail::functional_of() {
  if constexpr (requires { typename rules<Tag>::functional; }) return &table<typename rules<Tag>::functional, Facts>;
  else return nullptr;
}

namespace detail {
template <class Tag, int Facts>
VARVE_FIRST inline table_registration const registration{&table<Tag, Facts>};
/// Returns the table of an operator. `ops::find` knows it from the start of a program that contains it, before the
/// program's static objects are initialized.
template <class Tag, int Facts>
op_table const* defined_table() {
  (void)&registration<Tag, Facts>;
  if constexpr (requires { typename rules<Tag>::functional; })
    (void)&registration<typename rules<Tag>::functional, Facts>; // `functionalize` may put it into a graph
  return &table<Tag, Facts>;
}
/// True for rules of varve with `in_headers`, which are compiled where they are used: they need something that the
/// library is not linked to.
template <class Tag>
concept in_headers = requires { rules<Tag>::in_headers; };
/// True if an operator is in the compiled library and called there.
template <class Tag>
inline constexpr bool in_library = VARVE_COMPILED && declared::by_varve<Tag>() && !in_headers<Tag>;

/// An operator of varve in the compiled library. The library has none for a user's tag in namespace varve: then the
/// linker's message shows the names of the functions, which explain the error.
template <class Tag, int Facts, std::size_t Arity = static_cast<std::size_t>(rules<Tag>::arity)>
struct library_operator {
  using bound_type = decltype(rebound<Tag, Facts>(no_attributes));
  static op_table const* table_since_users_tags_are_not_in_namespace_varve();
  /// Calls it on `Arity` tensors, as `backend<tensor_base>` does.
  static tensor call_since_users_tags_are_not_in_namespace_varve(bound_type const& op, tensor const* const* x);
};
#if VARVE_DEFINES_OPERATORS()
template <class Tag, int Facts, std::size_t Arity>
op_table const* library_operator<Tag, Facts, Arity>::table_since_users_tags_are_not_in_namespace_varve() {
  return defined_table<Tag, Facts>();
}
#endif

template <class Tag, int Facts>
op_table const* registered_table() {
  if constexpr (in_library<Tag>)
    return library_operator<Tag, Facts>::table_since_users_tags_are_not_in_namespace_varve();
  else return defined_table<Tag, Facts>();
}
/// Returns the table of the operator with a name, or null. If several have the name, returns that of varve. The lock
/// must be held.
inline op_table const* table_named(char const* name) {
  op_table const* found = nullptr;
  if (std::strncmp(name, "aten::", 6) == 0) name += 6;
  for (auto* e = first_table(); e; e = e->next)
    if (std::strcmp(e->table->name, name) == 0 && (!found || (e->table->handle && e->table->handle()->own)))
      found = e->table;
  return found;
}
/// Returns the table of an operator in a graph, or null if it is not known for tensors. Operators of varve are found by
/// name, others by identity.
inline op_table const* table_of(op_handle const& op) {
  spin_lock::held const on(lock_of_tables);
  for (auto* e = first_table(); e; e = e->next) {
    op_handle const* const other = std::strcmp(e->table->name, op.name) ? nullptr : e->table->node();
    if (other && (other == &op || (other->own && op.own))) return e->table;
  }
  return nullptr;
}
} // namespace detail

inline op_table const* ops::find(char const* name) {
  detail::spin_lock::held const on(detail::lock_of_tables);
  return detail::table_named(name);
}

} // namespace varve

#if VARVE_DEFINES
namespace varve::detail {
/// Refuses an operand of rank 0 that the integer dtype of the other one cannot represent. Comparisons and extrema
/// compute in one integer dtype. The public functions convert such operands (`integer_range.hpp`), but a call by name
/// does not.
VARVE_COLD VARVE_LIBRARY void refuse_narrowed(char const* op, tensor const& v, tensor const& beside) {
  dtype const into = beside.dtype();
  if (category(v.dtype()) != 1 || category(into) != 1 || promote_types(v.dtype(), into) == into) return;
  if (v.dim() != 0 || (beside.dim() == 0 && (!v.is_number() || beside.is_number()))) return; // both influence the dtype
  bool const known = v.has_data() && !v.is_wrapped();
  if (std::int64_t const n = known ? v.item<std::int64_t>() : 0; known && n >= least_of(into) && n <= greatest_of(into))
    return;
  refuse::argument_is_invalid(op, "by name, an operand of rank 0 must lie in the range of the other's dtype; call the "
                                  "function itself, or convert both to int64");
}
VARVE_COLD VARVE_LIBRARY attributes checked_attributes(call_rules const& op, attributes const& at, meta const* in) {
  attributes r = at;
  bool const fits = !op.checked || at.count >= op.least;
  if (op.checked && fits && at.count <= op.facts) r = op.checked(at, in);
  if (!fits || r.count != op.facts)
    refuse::with<dispatch_error>((std::string("varve: ") + op.name + op.schema + " was called with " +
                                  std::to_string(at.count) + " attributes; it takes " + std::to_string(op.facts))
                                     .c_str());
  return r;
}
VARVE_COLD VARVE_LIBRARY attributes checked_call(call_rules const& op, attributes const& at, boxed_args const& x) {
  constexpr int most = 8;
  meta in[most];
  for (int k = 0; k < x.size() && k < most; ++k) {
    if (!x[k].defined()) refuse_undefined(op.name);
    in[k] = meta_of(x[k]);
  }
  attributes const r = checked_attributes(op, at, in);
  if (op.compares) refuse_narrowed(op.name, x[0], x[1]), refuse_narrowed(op.name, x[1], x[0]);
  if (!op.writes) (void)op.shape(r, in, x.size());
  return r;
}
VARVE_COLD VARVE_LIBRARY tensor meta_of_call(call_rules const& op, attributes const& at, boxed_args const& x) {
  constexpr int most = 8;
  meta in[most];
  for (int k = 0; k < x.size() && k < most; ++k) in[k] = meta_of(x[k]);
  meta const m = op.shape(at, in, x.size());
  return op.writes ? x[0] : tensor::meta(m.sizes, m.type);
}
} // namespace varve::detail
#endif
