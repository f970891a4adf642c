// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/dispatch/dispatch.hpp>
#include <varve/graph/builder.hpp>
#include <varve/kernel/convert.hpp>
#include <varve/op/clone.hpp>
#include <varve/op/create.hpp>
#include <varve/op/expand.hpp>
#include <varve/op/mul.hpp>
#include <varve/op/to.hpp>
#include <varve/shape/sample.hpp>
#include <varve/value/math.hpp>

#include <bit>

/// @file
/// Traced values, and how they meet static ones. The shapes of static values are types and those of traced values are
/// data, and rules cannot compute with both. Where they meet, the static values therefore become constants of the trace
/// (`meets_trace`, `beside_trace` in `dispatch/dispatch.hpp`). This happens in `dispatch` if there is an interpreter in
/// between, in composites, in `cat` and `cond`, and for the tracked arguments, cotangents and tangents of transforms.
/// Plain numbers remain, since no rule needs their shape.
namespace varve {

struct at_t;
struct copy__t;

/// The value of a trace: a node of the graph being written. Its dtype and shape are data, so that one tracer serves all
/// shapes. Without a builder it is a constant whose elements all equal `splat`.
struct proxy : math::functions {
  graph_builder* builder;
  int id;
  meta info;
  double splat;
  /// The trace in which a constant was made, if it was made like one of that trace's values.
  graph_builder* home;

  constexpr proxy(graph_builder* b = nullptr, int node = -1, meta const& m = {}, double all = 0,
                  graph_builder* made_in = nullptr)
      : builder(b), id(node), info(m), splat(all), home(made_in) {}
  /// Converts a number to a constant, as in `T s = 0` in a traced function.
  template <number N>
  constexpr proxy(N v) : proxy(nullptr, -1, {dtype_of_type<N>(), {}, true}, detail::held(v)) {}

  constexpr void made_like(proxy const& p) { home = p.builder ? p.builder : p.home; }
  /// Returns a view, as for tensors: `x[i]`, `x.at(i, j)`. Assigning to it writes, as in `x[0] = y` (see `at`).
  template <class I>
  constexpr auto operator[](I const& i) const -> detail::indexed_part<at_t, proxy, I> {
    return dependent<at_t, I>{}(*this, i);
  }
  template <class... I>
  constexpr auto at(I const&... i) const -> detail::indexed_part<at_t, proxy, I...> {
    return dependent<at_t, I...>{}(*this, i...);
  }
  template <value Y>
  constexpr void operator=(Y const& y) const&& {
    dependent<copy__t, Y>{}(*this, y);
  }

  /// Refuses the conversion, as for values seen through transforms.
  template <std::same_as<double> T>
  constexpr operator T() const {
    return detail::refuse_double<dependent<proxy, T>>();
  }
  template <class T = double>
  constexpr proxy item() const {
    return detail::refuse_item<T>(), *this;
  }
  constexpr explicit operator bool() const {
    if (!(builder && builder->follows_branches()))
      a_traced_value_cannot_steer_cpp_control_flow_use_where_cond_or_while_loop(); // varve: no if on a traced value
    return false;
  }

private:
  /// Not usable in a constant expression, so that the compiler prints its name.
  static void a_traced_value_cannot_steer_cpp_control_flow_use_where_cond_or_while_loop() {
    refuse::with<transform_error>("varve: a traced value cannot steer C++ control flow; use where, cond or while_loop");
  }
};

template <>
struct traits<proxy> {
  using base = proxy;
  static constexpr int level = 0;
  static constexpr dims shape(proxy const& p) { return p.info.sizes; }
  static constexpr dims type(proxy const& p) { return dims{static_cast<index_t>(p.info.type)}; }
};
template <>
inline constexpr bool is_proxy_base<proxy> = true;
constexpr meta meta_of(proxy const& p) { return p.info; }

namespace detail {
/// Returns the function being traced to which a constant beside this value belongs, or null if it is unknown.
constexpr graph_builder* trace_of(proxy const& p) {
  graph_builder* const b = p.builder ? p.builder : p.home;
  return b ? &b->current() : nullptr;
}
template <class V>
constexpr graph_builder* trace_of(V const& v) {
  if constexpr (traced_value<V> && is_seen<V>) return trace_of(v.value);
  else return nullptr; // others may be facts, which are no values
}
/// Returns the first trace to which one of some values belongs, or null.
template <class... X>
constexpr graph_builder* trace_of_all(X const&... x) {
  graph_builder* found = nullptr;
  ((found = found ? found : trace_of(x)), ...);
  return found;
}

/// True if a size is the sample of a symbol in the trace to which a value belongs.
template <class V>
constexpr bool is_sample_of(V const& v, index_t size) {
  graph_builder const* const b = trace_of(v);
  return b && b->least_sample() > 0 && fusion::is_sample(size);
}

/// Returns a value as a value of the trace. An array whose elements are equal stays a constant, with which operators on
/// constants compute. 0, 1, ..., n - 1 becomes an `arange`; other arrays become a constant in the function `b`.
constexpr proxy as_proxy(proxy const& p, graph_builder* = nullptr) { return p; }
template <number T>
constexpr proxy as_proxy(T v, graph_builder* b = nullptr) {
  return {nullptr, -1, {dtype_of_type<T>(), {}, true}, held(v), b};
}
/// True if two elements have the same bits, so that 0 and -0 differ.
template <class T>
constexpr bool same_element(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return std::bit_cast<std::uint64_t>(static_cast<double>(a)) == std::bit_cast<std::uint64_t>(static_cast<double>(b));
  else return a == b;
}
template <class T, index_t... D>
constexpr proxy as_proxy(array<T, D...> const& a, graph_builder* b = nullptr) {
  meta const m{dtype_of_type<T>(), ints<D...>::to_dims(), false};
  bool equal = true, counts = sizeof...(D) == 1;
  for (index_t k = 0; k < a.size() && (equal || counts); ++k)
    equal = equal && same_element(a.data[k], a.data[0]),
    counts = counts && static_cast<double>(a.data[k]) == static_cast<double>(k);
  if (equal) return {nullptr, -1, m, held(a.size() ? a.data[0] : T(0)), b};
  if (!b) refuse::argument_is_invalid("trace", "an array constant meets no value of the trace; pass it as an argument");
  if (counts)
    return {b, b->add_node(&handle<arange_t>, attributes(m.sizes, dims{static_cast<index_t>(m.type)}), nullptr, 0, m),
            m, 0};
  return {b, b->constant(m.type, m.sizes, a.data), m, 0};
}

/// Returns the node number of a value in the function being traced. Constants are written at their first use.
constexpr int node_in(graph_builder& b, proxy const& p) {
  if (p.builder) return b.lift(p.builder, p.id, p.info);
  int c = b.constant(p.info.type, p.splat);
  if (p.info.sizes.n == 0) return c;
  return b.add_node(&handle<expand_t>, attributes(p.info.sizes), &c, 1, p.info);
}
} // namespace detail

/// The backend of traced values. Every operator becomes a node of the function being traced; operators on constants
/// only are computed.
template <>
struct backend<detail::traced_base> {
  template <class Op, class... X>
  static constexpr proxy call(Op const& op, X const&... x) {
    static_assert(rules<typename Op::tag>::kind != op_kind::effect,
                  "varve: an operator that does something outside of the program has no place in a graph that the "
                  "compiler makes (trace, fuse); trace at run time (make_fx, compile), or call it outside");
    if constexpr (rules<typename Op::tag>::kind == op_kind::effect) return proxy{}; // after the message
    graph_builder* nearest = nullptr;
    if constexpr ((is_array<X> || ...)) nearest = detail::trace_of_all(x...);
    proxy in[] = {detail::as_proxy(x, nearest)..., proxy{}};
    return add_node<typename Op::tag>(op.boxed(), in, static_cast<int>(sizeof...(X)));
  }
  template <class S, class T, number N>
  static constexpr proxy full(S const& sizes, T const& type, N v) {
    proxy r{nullptr, -1, {dtype_of_type<N>(), to_dims(sizes), false}, detail::held(v)};
    become(r, static_cast<dtype>(to_dims(type)[0]));
    return r;
  }

  /// Returns a static value, possibly seen through transforms, as a value of the trace to which some of `others`
  /// belong.
  template <class X, class... O>
  static constexpr auto lift(X const& x, O const&... others) {
    return lifted(detail::trace_of_all(others...), x);
  }

  /// Returns 0, 1, ..., n - 1 as int64, in the function in which `like` is traced.
  static constexpr proxy arange(proxy const& like, dims const& n) {
    meta const out{dtype::int64, n};
    graph_builder* const nearest = like.builder ? like.builder : like.home;
    if (!nearest)
      refuse::argument_is_invalid("trace", "a derivative of a constant was asked for; pass the value as an argument");
    graph_builder& b = nearest->current();
    return {&b, b.add_node(&handle<arange_t>, attributes(n, dims{static_cast<index_t>(dtype::int64)}), nullptr, 0, out),
            out, 0};
  }

  /// Returns how many elements of shape `from` are reduced to one of shape `to`: a constant, or a node if it depends on
  /// a symbolic size.
  static constexpr proxy count(proxy const& like, dims const& from, dims const& to) {
    graph_builder* const b = detail::trace_of(like);
    if (b && is_sampled(*b, from, to)) return counted(*b, like.info.type, from, to);
    return detail::as_proxy(numel_per(from, to), b);
  }

  /// True if a size may be symbolic. In other calls it may be larger, so that what is out of range now would be in
  /// range.
  static constexpr bool may_be_symbolic(proxy const& of, index_t size) {
    graph_builder const* const b = detail::trace_of(of);
    return b && b->least_sample() > 0 && size >= b->least_sample();
  }

  /// Records an in-place operator as it is; `functionalize` replaces it when the trace is complete. A constant that is
  /// written into becomes a node first.
  template <class Tag, class X, class... Y>
  static constexpr void write(X& x, Y const&... y) {
    using R = rules<Tag>;
    graph_builder* const nearest = detail::trace_of_all(x, y...);
    if (!nearest)
      refuse::argument_is_invalid(
          Tag::op_name,
          "a constant that meets no value of the trace was written into; make it like one of them (zeros_like)");
    if (!x.builder) {
      if constexpr (std::is_const_v<X>)
        refuse::argument_is_invalid(Tag::op_name, "a constant was written into that is const; make it a variable, so "
                                                  "that it can become a value of the trace");
      else x = materialized(*nearest, x);
    }
    proxy in[] = {x, detail::as_proxy(y, nearest)...};
    constexpr int count = 1 + sizeof...(Y);
    meta metas[count];
    for (int k = 0; k < count; ++k) metas[k] = in[k].info;
    meta result = metas[count - 1];
    if constexpr (requires { typename R::functional; }) {
      using F = rules<typename R::functional>;
      result = F::shape({}, metas, count);
      if (category(result.type) > category(x.info.type))
        refuse::argument_is_invalid(
            Tag::op_name, "the dtype of the result has no place in what is written; convert what is written first");
    }
    if (!(broadcast(x.info.sizes, result.sizes) == x.info.sizes))
      refuse::shapes_do_not_match(Tag::op_name, x.info.sizes, result.sizes);
    for (int k = 1; k < count; ++k)
      if (!in[k].builder) become(in[k], result.type);
    (void)add_node<Tag>({}, in, count);
  }

private:
  /// Changes the dtype of a constant. A float32 constant keeps all digits with which it was written until it is used.
  static constexpr void become(proxy& constant, dtype type) {
    if (type != dtype::float32) constant.splat = kernel::converted(type, constant.splat, constant.info.type);
    constant.info.type = type;
  }
  static constexpr bool is_sampled(graph_builder const& b, dims const& from, dims const& to) {
    return b.least_sample() > 0 && numel(to) > 0 && numel(from) / numel(to) >= b.least_sample();
  }
  static constexpr proxy counted(graph_builder& b, dtype type, dims const& from, dims const& to) {
    return {&b,
            b.add_node(&sym_numel_handle, attributes(dims{numel(from) / numel(to)}), nullptr, 0, {type, {}}),
            {type, {}, true},
            0};
  }
  /// Returns a constant as a node with elements of its own.
  static constexpr proxy materialized(graph_builder& b, proxy const& x) {
    meta const m{x.info.type, x.info.sizes, false};
    int id = detail::node_in(b, x);
    if (m.sizes.n) id = b.add_node(&handle<clone_t>, {}, &id, 1, m);
    return {&b, id, m, 0, x.home};
  }
  template <class X>
  static constexpr auto lifted(graph_builder* b, X const& x) {
    if constexpr (is_seen<X>) {
      auto const v = lifted(b, x.value);
      if constexpr (value<decltype(x.extra)>) return detail::reseen(x, v, lifted(b, x.extra));
      else return detail::reseen(x, v, x.extra); // the slot of a tape keeps its type; the tape handles this
    } else if constexpr (std::is_same_v<X, proxy>) {
      return x;
    } else {
      return detail::as_proxy(detail::plain(x), b);
    }
  }
  template <class Tag>
  static constexpr proxy add_node(attributes const& at, proxy* in, int count) {
    using R = rules<Tag>;
    meta metas[R::arity + 1]{};
    for (int k = 0; k < count; ++k) metas[k] = in[k].info;
    meta const out = R::shape(at, metas, count);
    if constexpr (R::kind == op_kind::pointwise) {
      dtype const t = R::compute_type(metas, count);
      for (int k = 0; k < count; ++k) {
        dtype const want = k < R::conditions ? dtype::bool_ : t;
        if (in[k].info.type == want) continue;
        if (in[k].builder) in[k] = add_node<to_t>(attributes(dims{static_cast<index_t>(want)}), in + k, 1);
        else become(in[k], want);
      }
    }
    graph_builder *any = nullptr, *home = nullptr;
    for (int k = 0; k < count; ++k) {
      if (in[k].builder) any = in[k].builder;
      if (in[k].home) home = in[k].home;
    }
    if constexpr (R::kind == op_kind::reduction && requires { R::sums; })
      if (graph_builder* const b = !any && home ? &home->current() : nullptr;
          b && is_sampled(*b, metas[0].sizes, out.sizes)) { // the count is a symbolic size
        become(in[0], out.type), in[0].info.sizes = out.sizes;
        proxy both[] = {in[0], counted(*b, out.type, metas[0].sizes, out.sizes)};
        return add_node<mul_t>(no_attributes, both, 2);
      }
    if (!any && foldable<R> && (!home || folds<Tag>(in, count))) {
      proxy r = fold<R>(in, count, out);
      r.home = home;
      return r;
    }
    if (!any) any = home;
    if (!any)
      refuse::argument_is_invalid(
          "trace", "this operator was called on constants only while tracing; pass one of them as an argument");
    graph_builder& b = any->current();
    int ids[R::arity + 1]{};
    for (int k = 0; k < count; ++k) ids[k] = detail::node_in(b, in[k]);
    return {&b, b.add_node(&handle<Tag>, at, ids, count, out), out, 0};
  }
  /// True for operators whose result on constants is a constant.
  template <class R>
  static constexpr bool foldable =
      R::kind == op_kind::pointwise || R::kind == op_kind::view || R::kind == op_kind::convert ||
      (R::kind == op_kind::reduction && requires { requires R::sums; });
  /// True if the compiler may compute the operator. Overflow, division by 0 and NaN from arithmetic are not constant
  /// expressions; such constants are computed at run time.
  template <class Tag>
  static constexpr bool folds(proxy const* in, int count) {
    bool r = true;
    for (int k = 0; k < count && rules<Tag>::kind == op_kind::pointwise; ++k)
      r = r && in[k].splat > -1e150 && in[k].splat < 1e150;
    if constexpr (std::is_same_v<Tag, div_t> || std::is_same_v<Tag, reciprocal_t>)
      r = r && (in[count - 1].splat > 1e-150 || in[count - 1].splat < -1e-150);
    return r;
  }
  template <class R>
  static constexpr proxy fold(proxy const* in, [[maybe_unused]] int count, meta const& out) {
    double v = in[0].splat;
    if constexpr (R::kind == op_kind::pointwise) {
      double a[R::arity + 1]{};
      for (int k = 0; k < count; ++k) a[k] = kernel::converted(in[k].info.type, in[k].splat);
      v = detail::lane<double>::run<R, double>(a);
    } else if constexpr (R::kind == op_kind::reduction) {
      index_t const all = numel(in[0].info.sizes);
      v = all ? 0.0 + v * static_cast<double>(all) / static_cast<double>(numel(out.sizes))
              : 0; // a sum begins with 0, so it is not -0
    }
    if constexpr (R::kind != op_kind::view)
      v = kernel::converted(out.type, v, R::kind == op_kind::convert ? in[0].info.type : out.type);
    return {nullptr, -1, out, v};
  }
};

} // namespace varve
