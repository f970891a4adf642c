// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/tree.hpp>
#include <varve/dispatch/higher_order.hpp>
#include <varve/dispatch/schema.hpp>

/// @file
/// Schemas of calls whose operator has no single schema that fits all of them. They are made from values that are, or
/// could be, its arguments.
namespace varve {

namespace detail {
template <class V>
concept list_of_values = is_tree_node<V> || std::is_same_v<V, boxed_args>;
template <class V>
concept graph_like = std::is_same_v<V, boxed_function> || requires(V const& v) { v.nodes, v.edges, v.regions; };

/// Returns the kind of a value, as schemas write it.
template <class V>
std::string kind_of(V const& v) {
  if constexpr (std::is_same_v<V, bool>) return "bool";
  else if constexpr (std::is_integral_v<V> || std::is_same_v<V, extent>)
    return is_symbol(static_cast<extent>(v)) ? "SymInt" : "int";
  else if constexpr (std::is_floating_point_v<V>) return "float";
  else if constexpr (std::is_convertible_v<V const&, std::string_view>) return "str";
  else if constexpr (value<V>) return "Tensor";
  else {
    static_assert(graph_like<V>, "varve: example_of: a value of this type has no place in a schema; hand over a "
                                 "function as a boxed_function, and each member of a structure by itself");
    return "GraphModule";
  }
}
/// The one kind that all values of a list have.
class kind_of_list {
public:
  void operator()(auto const& v) {
    std::string const k = kind_of(v);
    if (count_++ == 0) kind_ = k;
    else if (k != kind_)
      refuse::with<value_error>(("varve: example_of: a list of " + kind_ + " and " + k +
                                 " has no kind of its own; give each value a name and a place by itself")
                                    .c_str());
  }
  std::string text() const {
    if (count_ == 0)
      refuse::with<value_error>("varve: example_of: of an empty list it is not known what it would hold");
    return kind_ + "[" + std::to_string(count_) + "]";
  }

private:
  std::string kind_;
  int count_ = 0;
};
inline schema_argument argument_of(std::string type, std::string name = "") {
  schema_argument a;
  a.type = std::move(type), a.name = std::move(name);
  return a;
}

/// Returns the schema of a call with a number of functions, operands and results. (A template, as are the functions
/// around it, only so that it costs nothing unless used.)
template <class S = operator_schema>
S schema_of_call(char const* name, hop_signature const& of, attributes const& at, int functions, int operands,
                 int results) {
  S s;
  if (!of.text[0]) {
    s.name = name;
    for (int k = 0; k < functions; ++k) s.arguments.push_back(argument_of("GraphModule", "f" + std::to_string(k)));
    for (int k = 0; k < operands; ++k) s.arguments.push_back(argument_of("Tensor", "x" + std::to_string(k)));
    for (int k = 0; k < at.count; ++k)
      s.arguments.push_back(argument_of("int[" + std::to_string(at[k].n) + "]", "attribute" + std::to_string(k)));
    s.results.assign(static_cast<std::size_t>(results), argument_of("Tensor"));
    return s;
  }
  s = S::parse(std::string(name) + of.text);
  dims const lengths = of.lengths ? of.lengths(at) : dims{};
  int list = 0, left = operands;
  for (auto& a : s.arguments) {
    if (!a.is_tensor()) continue;
    auto const open = a.type.find("[]");
    int const n = open == a.type.npos ? 1 : list < lengths.n ? static_cast<int>(lengths[list]) : left;
    list += open != a.type.npos;
    if (open != a.type.npos) a.type.insert(open + 1, std::to_string(n));
    left -= n;
  }
  if (left != 0)
    refuse::with<value_error>((std::string("varve: schema_of: a call of ") + name + " with " +
                               std::to_string(operands) + " operands does not fit its signature " + of.text)
                                  .c_str());
  if (s.results.size() == 1 && s.results[0].type == "Tensor[]")
    s.results.assign(static_cast<std::size_t>(results), argument_of("Tensor"));
  return s;
}
} // namespace detail

/// Returns an argument or result of a schema, made from a value that could be it. Its type is `bool`, `int`, `float` or
/// `str`; `Tensor` for tensors, arrays, proxies and other values; `GraphModule` for a `boxed_function` or a graph;
/// `SymInt` for a symbolic size. A list of values of one kind has a type such as `Tensor[2]` or `int[3]`. `mutated`:
/// the operator writes into it.
///
/// Schemas are made of such arguments: `operator_schema{"twice", {example_of(x, "x", true), example_of(3, "n")},
/// {example_of(y)}}`. Throws `value_error` for empty lists and lists of several kinds.
template <class V>
schema_argument example_of(V const& v, std::string name = "", bool mutated = false) {
  schema_argument a;
  if constexpr (detail::list_of_values<V> || std::is_same_v<V, dims>) {
    detail::kind_of_list kinds;
    if constexpr (detail::tuple_node<V>) {
      std::apply([&](auto const&... e) { (kinds(e), ...); }, v);
    } else {
      for (auto const& e : v) kinds(e);
    }
    a.type = kinds.text();
  } else {
    a.type = detail::kind_of(v);
  }
  if (mutated) a.alias = name.empty() ? "a" : name, a.mutated = true;
  a.name = std::move(name);
  return a;
}

/// Returns the schema of a call of a higher-order operator with operands `x` and results `y`, by the signature of the
/// operator: `while_loop(GraphModule cond_fn, GraphModule body_fn, Tensor[2] carried_inputs, Tensor[1]
/// additional_inputs) -> (Tensor, Tensor)`. An operator without a signature counts as functional: its functions,
/// operands and attributes are listed in order. Throws `value_error` if the call does not fit the signature. For a
/// recorded call use `schema_of(graph, node)`.
template <class T = boxed_args>
operator_schema schema_of(boxed_hop const& call, T const& x, T const& y) {
  return detail::schema_of_call<>(call.name(), call.op->signature(), call.at, static_cast<int>(call.functions.size()),
                                  x.size(), y.size());
}

} // namespace varve
