// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/message.hpp>
#include <varve/fuse/fuse.hpp>
#include <varve/fuse/table_driven.hpp>
#include <varve/graph/equal.hpp>
#include <varve/graph/verify.hpp>
#include <varve/kernel/math.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

/// Graphs made by hand, and a plain evaluator to compare with.
namespace sample {
using namespace varve;
using F = kernel::batch<float>;
using D = kernel::batch<double>;

template <class V>
constexpr V as_number(auto m) {
  if constexpr (kernel::is_batch<V>) return kernel::from_mask<kernel::element_t<V>>(m);
  else return V(m);
}
template <class Body>
struct lanes_of {
  static constexpr float f32(float const* a) { return Body::template eval<float>(a); }
  static constexpr double f64(double const* a) { return Body::template eval<double>(a); }
  static F v32(F const* a) { return Body::template eval<F>(a); }
  static D v64(D const* a) { return Body::template eval<D>(a); }
  static constexpr op_lanes const* get() { return &all; }
  static constexpr op_lanes all{&f32, &f64, &v32, &v64};
};
template <bool Compares>
constexpr meta shape_of(attributes const&, meta const* in, int n) {
  meta r{Compares ? dtype::bool_ : in[n - 1].type, in[0].sizes};
  for (int k = 1; k < n; ++k) r.sizes = broadcast(r.sizes, in[k].sizes);
  return r;
}
template <class Body, bool Compares = false>
constexpr op_handle pointwise(char const* name, int arity, operator_class what = operator_class::pointwise) {
  op_handle h{name, op_kind::pointwise, arity, &shape_of<Compares>, &lanes_of<Body>::f64, &lanes_of<Body>::get};
  h.planned_as = what;
  return h;
}
/// An operator that is planned as one of a class.
constexpr op_handle planned(operator_class what, char const* name, op_kind kind, int arity) {
  op_handle h{name, kind, arity, nullptr};
  h.planned_as = what;
  return h;
}
struct add_body {
  template <class V>
  static constexpr V eval(V const* a) {
    return a[0] + a[1];
  }
};
struct sub_body {
  template <class V>
  static constexpr V eval(V const* a) {
    return a[0] - a[1];
  }
};
struct mul_body {
  template <class V>
  static constexpr V eval(V const* a) {
    return a[0] * a[1];
  }
};
struct div_body {
  template <class V>
  static constexpr V eval(V const* a) {
    return a[0] / a[1];
  }
};
struct neg_body {
  template <class V>
  static constexpr V eval(V const* a) {
    return -a[0];
  }
};
struct tanh_body {
  template <class V>
  static constexpr V eval(V const* a) {
    return kernel::tanh(a[0]);
  }
};
struct gt_body {
  template <class V>
  static constexpr V eval(V const* a) {
    return as_number<V>(a[0] > a[1]);
  }
};
struct where_body {
  template <class V>
  static constexpr V eval(V const* a) {
    return a[0] * a[1] + (V(1) - a[0]) * a[2];
  }
};
inline constexpr op_handle add = pointwise<add_body>("add", 2, operator_class::add),
                           sub = pointwise<sub_body>("sub", 2, operator_class::sub),
                           mul = pointwise<mul_body>("mul", 2, operator_class::mul),
                           div_ = pointwise<div_body>("div", 2, operator_class::div),
                           neg = pointwise<neg_body>("neg", 1, operator_class::neg),
                           tanh_ = pointwise<tanh_body>("tanh", 1),
                           gt = pointwise<gt_body, true>("gt", 2, operator_class::cheap),
                           where = pointwise<where_body>("where", 3, operator_class::cheap);

inline constexpr op_handle placeholder{"placeholder", op_kind::placeholder, 0, nullptr},
    constant{"constant", op_kind::constant, 0, nullptr}, to{"to", op_kind::convert, 1, nullptr};
inline constexpr op_handle sum = planned(operator_class::sum, "sum", op_kind::reduction, 1),
                           amax = planned(operator_class::amax, "amax", op_kind::reduction, 1),
                           argmax = planned(operator_class::argmax, "argmax", op_kind::reduction, 1),
                           mm = planned(operator_class::mm, "mm", op_kind::contraction, 2),
                           reshape = planned(operator_class::reshape, "reshape", op_kind::view, 1),
                           permute = planned(operator_class::permute, "permute", op_kind::view, 1),
                           expand = planned(operator_class::expand, "expand", op_kind::view, 1),
                           slice = planned(operator_class::slice, "slice", op_kind::view, 1),
                           slice_backward = planned(operator_class::slice_backward, "slice_backward", op_kind::view, 1),
                           cat = planned(operator_class::cat, "cat", op_kind::join, -1),
                           arange = planned(operator_class::arange, "arange", op_kind::factory, 0),
                           one_hot = planned(operator_class::one_hot, "one_hot", op_kind::indexing, 1),
                           gather = planned(operator_class::gather, "gather", op_kind::indexing, 2),
                           scatter_add = planned(operator_class::scatter_add, "scatter_add", op_kind::indexing, 3);

/// Writes a graph, shapes computed.
struct writer {
  graph g{};
  dtype type = dtype::float32;
  constexpr writer(dtype t = dtype::float32) : type(t) { g.regions.resize(1); }
  constexpr meta const& out(int n) const { return g.nodes[static_cast<std::size_t>(n)].out; }
  constexpr dims const& sizes(int n) const { return out(n).sizes; }
  constexpr int push(op_handle const& o, meta m, std::initializer_list<int> in, attributes at = {}, double v = 0) {
    node n;
    n.op = &o, n.at = at, n.out = m, n.first = static_cast<int>(g.edges.size()), n.count = static_cast<int>(in.size()),
    n.value = v;
    for (int i : in) g.edges.push_back(i);
    g.nodes.push_back(n);
    return static_cast<int>(g.nodes.size()) - 1;
  }
  constexpr int argument(dims s) { return argument(s, type); }
  constexpr int argument(dims s, dtype t) {
    int const k = g.regions[0].inputs++;
    return push(placeholder, {t, s}, {}, {}, k);
  }
  constexpr int number(double v) { return push(constant, {type, {}}, {}, {}, v); }
  /// An array constant: 0.5, -1, 1.5, -2, ...; for integers 1, 2, 0, 1, 2, ...
  constexpr int table(dims s, dtype t) {
    int const id = push(constant, {t, s}, {}, {}, static_cast<double>(g.constants.size()));
    for (index_t e = 0; e < numel(s); ++e)
      g.constants.push_back(is_floating(t) ? 0.5 * static_cast<double>(e % 7 + 1) * (e % 2 ? -1 : 1)
                                           : static_cast<double>((e + 1) % 3));
    return id;
  }
  constexpr int table(dims s) { return table(s, type); }
  constexpr int apply(op_handle const& o, int a) { return push(o, out(a), {a}); }
  constexpr int apply(op_handle const& o, int a, int b) {
    return push(o, {&o == &gt ? dtype::bool_ : out(b).type, broadcast(sizes(a), sizes(b))}, {a, b});
  }
  constexpr int choose(int p, int a, int b) {
    return push(where, {out(b).type, broadcast(broadcast(sizes(p), sizes(a)), sizes(b))}, {p, a, b});
  }
  constexpr int convert(int a, dtype t) { return push(to, {t, sizes(a)}, {a}, attributes(dims(static_cast<int>(t)))); }
  constexpr int reduce(op_handle const& o, int a, dims axes, bool keep = false) {
    dims s;
    for (int k = 0; k < sizes(a).n; ++k)
      if (!axes.contains(k)) s.push_back(sizes(a)[k]);
      else if (keep) s.push_back(1);
    return push(o, {&o == &argmax ? dtype::int64 : out(a).type, s}, {a}, attributes(axes, dims(keep ? 1 : 0)));
  }
  constexpr int product(int a, int b, bool ta = false, bool tb = false) {
    dims s = sizes(a);
    s[s.n - 2] = sizes(a)[s.n - (ta ? 1 : 2)], s[s.n - 1] = sizes(b)[s.n - (tb ? 2 : 1)];
    return push(mm, {out(a).type, s}, {a, b}, attributes(dims(ta ? 1 : 0, tb ? 1 : 0)));
  }
  constexpr int shaped(op_handle const& o, int a, dims s) { return push(o, {out(a).type, s}, {a}, attributes(s)); }
  constexpr int permuted(int a, dims p) {
    dims s = p;
    for (int k = 0; k < p.n; ++k) s[k] = sizes(a)[static_cast<int>(p[k])];
    return push(permute, {out(a).type, s}, {a}, attributes(p));
  }
  constexpr int sliced(int a, int axis, index_t start, index_t stop, index_t step = 1) {
    dims s = sizes(a);
    s[axis] = (stop - start + step - 1) / step;
    return push(slice, {out(a).type, s}, {a}, attributes(dims(axis, start, stop, step)));
  }
  constexpr int unsliced(int a, dims s, int axis, index_t start, index_t stop, index_t step = 1) {
    return push(slice_backward, {out(a).type, s}, {a}, attributes(s, dims(axis, start, stop, step)));
  }
  constexpr int joined(std::initializer_list<int> in, int axis) {
    meta m = out(*in.begin());
    m.sizes[axis] = 0;
    for (int i : in) m.sizes[axis] += sizes(i)[axis];
    return push(cat, m, in, attributes(dims(axis)));
  }
  constexpr graph done(std::initializer_list<int> results) {
    for (int r : results) g.results.push_back(r);
    g.regions[0].node_count = static_cast<int>(g.nodes.size()),
    g.regions[0].result_count = static_cast<int>(results.size());
    return g;
  }
};

/// Evaluates region 0 node by node, in double: what every optimized form is compared with.
inline std::vector<std::vector<double>> evaluate(graph const& g, std::vector<std::vector<double>> const& arguments) {
  std::vector<std::vector<double>> v(g.nodes.size());
  list<operator_class> const what = identify(g);
  for (std::size_t n = 0; n < g.nodes.size(); ++n) {
    node const& nd = g.nodes[n];
    dims const& s = nd.out.sizes;
    dims const st = contiguous_strides(s);
    auto in = [&](int k) -> std::vector<double> const& {
      return v[static_cast<std::size_t>(g.edges[static_cast<std::size_t>(nd.first + k)])];
    };
    auto meta_in = [&](int k) {
      return g.nodes[static_cast<std::size_t>(g.edges[static_cast<std::size_t>(nd.first + k)])].out;
    };
    std::vector<double>& r = v[n];
    r.assign(static_cast<std::size_t>(numel(s)), 0.0);
    auto index = [&](index_t e, int d) -> index_t { return e / st[d] % s[d]; };
    auto read = [&](int k, auto coordinate) { // element of operand k at coordinate(d)
      dims const q = meta_in(k).sizes, qs = contiguous_strides(q);
      index_t at = 0;
      for (int d = 0; d < q.n; ++d) at += (q[d] == 1 ? index_t{0} : coordinate(d)) * qs[d];
      return in(k)[static_cast<std::size_t>(at)];
    };
    if (what[n] == operator_class::placeholder) {
      r = arguments[static_cast<std::size_t>(nd.value)];
      continue;
    }
    if (is_reduction(what[n]) || what[n] == operator_class::argmax) {
      dims const q = meta_in(0).sizes, qs = contiguous_strides(q);
      bool const keep = nd.at[1][0] != 0;
      std::vector<double> best(r.size(), -INFINITY);
      for (index_t e = 0; e < numel(q); ++e) {
        index_t to_ = 0, along = 0;
        for (int d = 0, o = 0; d < q.n; ++d) {
          if (nd.at[0].contains(d)) along = e / qs[d] % q[d], o += keep;
          else to_ += e / qs[d] % q[d] * st[o++];
        }
        double const x = in(0)[static_cast<std::size_t>(e)];
        auto const k = static_cast<std::size_t>(to_);
        if (what[n] == operator_class::sum) r[k] += x;
        else if (x > best[k]) best[k] = x, r[k] = what[n] == operator_class::amax ? x : static_cast<double>(along);
      }
      continue;
    }
    for (index_t e = 0; e < numel(s); ++e) {
      double& y = r[static_cast<std::size_t>(e)];
      auto own = [&](int d) { return index(e, d); };
      switch (what[n]) {
      case operator_class::constant:
        y = nd.value;
        break;
      case operator_class::data:
        y = g.constants[static_cast<std::ptrdiff_t>(nd.value) + e];
        break;
      case operator_class::arange:
        y = static_cast<double>(e);
        break;
      case operator_class::one_hot:
        y = in(0)[static_cast<std::size_t>(e / s[s.n - 1])] == static_cast<double>(e % s[s.n - 1]);
        break;
      case operator_class::permute:
        y = read(0, [&](int d) {
          for (int k = 0;; ++k)
            if (nd.at[0][k] == d) return own(k);
        });
        break;
      case operator_class::reshape:
        y = in(0)[static_cast<std::size_t>(e)];
        break;
      case operator_class::slice:
        y = read(0, [&](int d) { return d == nd.at[0][0] ? index_t(nd.at[0][1] + nd.at[0][3] * own(d)) : own(d); });
        break;
      case operator_class::slice_backward: {
        dims const& a = nd.at[1];
        index_t const i = own(static_cast<int>(a[0]));
        if (i >= a[1] && i < a[2] && (i - a[1]) % a[3] == 0)
          y = read(0, [&](int d) { return d == a[0] ? index_t((i - a[1]) / a[3]) : own(d); });
        break;
      }
      case operator_class::cat: {
        index_t i = own(static_cast<int>(nd.at[0][0]));
        int k = 0;
        for (; i >= meta_in(k).sizes[static_cast<int>(nd.at[0][0])]; ++k)
          i -= meta_in(k).sizes[static_cast<int>(nd.at[0][0])];
        y = read(k, [&](int d) { return d == nd.at[0][0] ? i : own(d); });
        break;
      }
      case operator_class::gather: {
        index_t const i = static_cast<index_t>(read(1, own));
        y = read(0, [&](int d) { return d == nd.at[0][0] ? i : own(d); });
        break;
      }
      case operator_class::scatter_add: {
        y = in(0)[static_cast<std::size_t>(e)];
        dims const q = meta_in(1).sizes, qs = contiguous_strides(q);
        for (index_t f = 0; f < numel(q); ++f) {
          bool hit = true;
          for (int d = 0; d < q.n; ++d)
            hit = hit && (d == nd.at[0][0] ? static_cast<index_t>(in(1)[static_cast<std::size_t>(f)])
                                           : index_t(f / qs[d] % q[d])) == own(d);
          if (hit) y += in(2)[static_cast<std::size_t>(f)];
        }
        break;
      }
      case operator_class::mm: {
        bool const ta = nd.at[0][0] != 0, tb = nd.at[0][1] != 0;
        int const q = s.n;
        index_t const inner = meta_in(0).sizes[q - (ta ? 2 : 1)], i = own(q - 2), j = own(q - 1);
        for (index_t k = 0; k < inner; ++k)
          y += read(0, [&](int d) { return d == q - 2   ? (ta ? k : i)
                                           : d == q - 1 ? (ta ? i : k)
                                                        : own(d); }) *
               read(1, [&](int d) { return d == q - 2   ? (tb ? j : k)
                                           : d == q - 1 ? (tb ? k : j)
                                                        : own(d); });
        break;
      }
      default: { // pointwise, convert, expand
        double a[4]{};
        for (int k = 0; k < nd.count; ++k) a[k] = read(k, [&](int d) { return own(d + s.n - meta_in(k).sizes.n); });
        if (what[n] == operator_class::convert)
          y = nd.out.type == dtype::bool_ ? a[0] != 0 : is_floating(nd.out.type) ? a[0] : std::trunc(a[0]);
        else if (what[n] == operator_class::expand) y = a[0];
        else y = nd.op->lane_f64(a);
      }
      }
    }
  }
  std::vector<std::vector<double>> out;
  for (int k = 0; k < g.regions[0].result_count; ++k)
    out.push_back(v[static_cast<std::size_t>(g.results[static_cast<std::size_t>(k)])]);
  return out;
}

/// A deterministic argument value in (-1, 1), or a small index for integers.
inline double argument_value(dtype t, std::size_t argument, std::size_t i) {
  double const x = std::sin(0.7 + 1.3 * static_cast<double>(i) + 2.1 * static_cast<double>(argument));
  return t == dtype::bool_ ? x > 0
         : is_floating(t)  ? static_cast<double>(static_cast<float>(x))
                           : static_cast<double>(i * 7 % 3);
}

/// Greatest difference between the results of a graph fused at run time and what is expected, relative to 1 +
/// |expected|. In fuse_graph.cpp, where the operators of tensors are.
double run_time_difference(graph const& g, std::vector<std::vector<double>> const& arguments,
                           std::vector<std::vector<double>> const& expected);

/// Greatest difference between the compiled program of `Make{}()`, unrolled or as tables, or the same graph fused at
/// run time, and the evaluator, relative to 1 + |expected|; NaN, wrong sizes, and a pass that leaves a flaw are 1e9.
template <class Make>
double difference() {
  using P = fusion::compiled<Make>;
  graph const g = Make{}();
  graph const live = dce(g), folded = fold(live), merged = cse(folded);
  graph const all = detail::results_apart(g, merged);
  if (!verify(g) || !verify(live) || !verify(folded) || !verify(merged) || !equal(optimize(g), dce(all))) return 1e9;
  constexpr int arguments = static_cast<int>(Make{}().regions[0].inputs),
                results = static_cast<int>(P::value.used.results);
  std::vector<std::vector<double>> in;
  std::vector<std::vector<char>> raw, out;
  fusion::memory<arguments, results> mem{};
  auto put = [](char* p, dtype t, double x) {
    on_dtype(t, "test", [&]<class T>() { *reinterpret_cast<T*>(p) = static_cast<T>(x); });
  };
  for (int a = 0; a < arguments; ++a) {
    meta const m = g.nodes[static_cast<std::size_t>(a)].out;
    in.emplace_back();
    raw.emplace_back(static_cast<std::size_t>(numel(m.sizes) * itemsize(m.type)));
    for (std::size_t i = 0; i < static_cast<std::size_t>(numel(m.sizes)); ++i) {
      in.back().push_back(argument_value(m.type, static_cast<std::size_t>(a), i));
      put(raw.back().data() + i * static_cast<std::size_t>(itemsize(m.type)), m.type, in.back().back());
    }
  }
  for (int r = 0; r < results; ++r)
    out.emplace_back(static_cast<std::size_t>(numel(P::value.results[r].sizes) * itemsize(P::value.results[r].type)));
  for (int a = 0; a < arguments; ++a) mem.argument[a] = raw[static_cast<std::size_t>(a)].data();
  for (int r = 0; r < results; ++r) mem.result[r] = out[static_cast<std::size_t>(r)].data();
  auto const expected = evaluate(g, in);
  double worst = expected.size() == static_cast<std::size_t>(results) ? 0 : 1e9;
  auto compare = [&] {
    for (std::size_t r = 0; r < expected.size(); ++r)
      for (std::size_t i = 0; i < expected[r].size(); ++i) {
        dtype const t = P::value.results[r].type;
        double got = 0;
        on_dtype(t, "test", [&]<class T>() {
          got = static_cast<double>(*reinterpret_cast<T const*>(out[r].data() + i * sizeof(T)));
        });
        double const d = std::fabs(got - expected[r][i]) / (1 + std::fabs(expected[r][i]));
        worst = d <= worst ? worst : d >= 0 ? d : 1e9;
      }
  };
  fusion::run<P>(mem);
  compare();
  for (auto& bytes : out) std::fill(bytes.begin(), bytes.end(), char(0x55));
  fusion::tabulated<Make>::template run<arguments, results>(mem);
  compare();
  double const at_run_time = run_time_difference(g, in, expected);
  return at_run_time <= worst ? worst : at_run_time;
}

} // namespace sample
