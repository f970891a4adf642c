// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/graph/operator_class.hpp>
#include <varve/kernel/convert.hpp>
#include <varve/op/as_strided.hpp>
#include <varve/sparse/pattern.hpp>

/// @file
/// Values in a graph that are the same in every call: constants, and what operators compute of them. A pattern depends
/// on such values: a `gather` by known indices reads known elements, and a product with a known 0 depends on nothing.
namespace varve::detail {

/// The elements of a value, if they are known: one number for all, or one for each.
struct known_elements {
  enum class form : unsigned char { unknown, splat, each };
  form is = form::unknown;
  double value = 0;
  list<double> of{};

  constexpr explicit operator bool() const { return is != form::unknown; }
  constexpr double operator[](std::ptrdiff_t k) const { return is == form::splat ? value : of[k]; }
  static constexpr known_elements splat(double v) {
    known_elements r;
    r.is = form::splat, r.value = v;
    return r;
  }
  /// Takes the elements out of a list.
  static constexpr known_elements each(list<double>& v) {
    known_elements r;
    r.is = form::each;
    r.of.swap(v);
    return r;
  }
};

/// Calls `f(k, position)` for each element k of a shape, in row-major order, with its position by strides.
template <class F>
constexpr void for_each_position(dims const& sizes, dims const& strides, index_t offset, F const& f) {
  index_t const all = numel(sizes);
  if (all == 0) return;
  int const last = sizes.n - 1;
  if (last < 0) return f(index_t{0}, offset);
  index_t i[max_rank]{};
  index_t const row = sizes[last].number(), step = strides[last].number();
  for (index_t k = 0; k < all;) {
    index_t at = offset;
    for (int d = 0; d < last; ++d) at += i[d] * strides[d].number();
    for (index_t j = 0; j < row; ++j, at += step) f(k++, at);
    for (int d = last - 1; d >= 0 && ++i[d] == sizes[d].number(); --d) i[d] = 0;
  }
}
/// Returns the strides by which an operand of sizes `s` is read at the elements of a shape to which it broadcasts.
constexpr dims broadcast_strides(dims const& s, dims const& to) {
  dims const own = contiguous_strides(s);
  dims r;
  for (int d = 0; d < to.n; ++d) {
    int const k = d - (to.n - s.n);
    r.push_back(k < 0 || s[k] == 1 ? extent(0) : own[k]);
  }
  return r;
}
/// Where the elements of a view are in its operand, by strides.
struct view_map {
  bool is = false;
  dims strides{};
  index_t offset = 0;
};
/// Returns where a node reads its operand, if it is a view with strides. A `reshape` and a copy have those of the
/// result's shape.
constexpr view_map view_of(node const& n, operator_class k, dims const& operand) {
  dims const own = contiguous_strides(operand);
  view_map r{true, {}, 0};
  if (k == operator_class::reshape || (k == operator_class::expand && n.at.count == 0)) {
    r.strides = contiguous_strides(n.out.sizes);
  } else if (k == operator_class::expand) {
    r.strides = broadcast_strides(operand, n.out.sizes);
  } else if (k == operator_class::permute) {
    for (extent a : n.at[0]) r.strides.push_back(own[static_cast<int>(a.number())]);
  } else if (k == operator_class::slice) {
    r.strides = own;
    int const axis = static_cast<int>(n.at[0][0].number());
    r.strides[axis] = own[axis].number() * n.at[0][3].number();
    r.offset = own[axis].number() * n.at[0][1].number();
  } else if (n.op == &handle<as_strided_t>) {
    r.strides = n.at[1], r.offset = n.at[2][0].number();
  } else {
    r.is = false;
  }
  return r;
}
/// Returns where the elements of the operand of `slice_backward` are written.
constexpr view_map place_of_slice(node const& n) {
  dims const own = contiguous_strides(n.at[0]);
  int const axis = static_cast<int>(n.at[1][0].number());
  view_map r{true, own, own[axis].number() * n.at[1][1].number()};
  r.strides[axis] = own[axis].number() * n.at[1][3].number();
  return r;
}
/// Returns strides without that of one axis, along which an index decides.
constexpr dims without_stride(dims s, int axis) {
  if (s.n > 0) s[axis] = 0;
  return s;
}
/// True if a view shows the elements of its operand in their order.
constexpr bool keeps_order(node const& n, operator_class k) {
  return k == operator_class::reshape || (k == operator_class::expand && n.at.count == 0) ||
         k == operator_class::convert;
}

/// Whether floating constants of a graph count as known. In a graph that the compiler made they are constants of the
/// program. At run time they may come from C++ variables, which may have other values in the next call.
enum class floating_constants : unsigned char { known, unknown };

/// Computes the known values of one function of a graph, when they are asked for.
class constant_values {
public:
  constexpr constant_values(graph const& g, region const& r, list<operator_class> const& what,
                            list<known_elements> const& inputs, floating_constants numbers)
      : g_(g), what_(what), first_(r.node_first), numbers_(numbers) {
    of_.resize(static_cast<std::size_t>(r.node_count));
    known_.assign(static_cast<std::size_t>(r.node_count), 0);
    for (int n = first_; n < first_ + r.node_count; ++n) known_[n - first_] = may_be_known(n, inputs);
  }
  /// True if the elements of a node follow from constants by operators that are computed here.
  constexpr bool are_known(int n) const { return known_[n - first_] != 0; }
  /// Returns the elements of a node; unknown if an operator cannot be computed on its operands.
  constexpr known_elements const& of(int n) {
    known_elements& mine = of_[n - first_];
    if (!mine && are_known(n)) {
      known_elements now = computed(n);
      mine.is = now.is, mine.value = now.value, mine.of.swap(now.of);
      if (!mine) known_[n - first_] = 0;
    }
    return mine;
  }

private:
  graph const& g_;
  list<operator_class> const& what_;
  int first_;
  floating_constants numbers_;
  list<known_elements> of_{};
  list<char> known_{};
  static constexpr double most = 1e15; // beyond, an integer may not be exact, and arithmetic may overflow

  constexpr node const& at(int n) const { return g_.nodes[n]; }
  constexpr int operand(node const& nd, int k) const { return g_.edges[nd.first + k]; }
  static constexpr bool computes(operator_class k) {
    return (k >= operator_class::add && k <= operator_class::convert) ||
           (k >= operator_class::reshape && k <= operator_class::gather) || k == operator_class::one_hot;
  }
  constexpr char may_be_known(int n, list<known_elements> const& inputs) {
    node const& nd = at(n);
    operator_class const k = what_[n];
    if (k == operator_class::placeholder) {
      auto const which = static_cast<std::size_t>(nd.value);
      if (which < inputs.size()) of_[n - first_] = inputs[static_cast<std::ptrdiff_t>(which)];
      return static_cast<bool>(of_[n - first_]);
    }
    if (is_compact(nd.out.type) || is_complex(nd.out.type) || nd.text) return 0;
    if (k == operator_class::constant || k == operator_class::data)
      return numbers_ == floating_constants::known || !is_floating(nd.out.type);
    if (k == operator_class::arange) return 1;
    bool all = computes(k) && nd.count > 0 && nd.count <= 3;
    for (int e = 0; all && e < nd.count; ++e) all = are_known(operand(nd, e));
    return all;
  }
  constexpr known_elements computed(int n) {
    node const& nd = at(n);
    operator_class const k = what_[n];
    index_t const all = numel(nd.out.sizes);
    if (k == operator_class::constant) return known_elements::splat(nd.value);
    list<double> r;
    if (k == operator_class::data) {
      for (index_t e = 0; e < all; ++e) r.push_back(g_.constants[static_cast<std::ptrdiff_t>(nd.value) + e]);
      return known_elements::each(r);
    }
    if (k == operator_class::arange) {
      for (index_t e = 0; e < all; ++e) r.push_back(static_cast<double>(e));
      return known_elements::each(r);
    }
    known_elements const* in[3]{};
    for (int e = 0; e < nd.count; ++e)
      if (in[e] = &of(operand(nd, e)); !*in[e]) return {};
    if (is_pointwise(k)) return elementwise(nd, k, in);
    if (k == operator_class::convert) return converted(nd, *in[0]);
    return moved(nd, k, in);
  }
  constexpr known_elements elementwise(node const& nd, operator_class k, known_elements const* const* in) {
    bool splat = true;
    for (int e = 0; e < nd.count; ++e) splat = splat && in[e]->is == known_elements::form::splat;
    index_t const all = splat ? 1 : numel(nd.out.sizes).number();
    list<index_t> from(static_cast<std::size_t>(all * nd.count), index_t{0});
    for (int e = 0; e < nd.count && !splat; ++e)
      for_each_position(nd.out.sizes, broadcast_strides(at(operand(nd, e)).out.sizes, nd.out.sizes), 0,
                        [&](index_t i, index_t p) { from[i * nd.count + e] = p; });
    list<double> r;
    for (index_t i = 0; i < all; ++i) {
      double x[3]{};
      for (int e = 0; e < nd.count; ++e) {
        x[e] = (*in[e])[from[i * nd.count + e]];
        if (!(x[e] > -most && x[e] < most)) return {};
      }
      if (k == operator_class::div && x[1] > -1e-15 && x[1] < 1e-15) return {};
      double const y = k == operator_class::add   ? x[0] + x[1]
                       : k == operator_class::sub ? x[0] - x[1]
                       : k == operator_class::mul ? x[0] * x[1]
                       : k == operator_class::div ? x[0] / x[1]
                       : k == operator_class::neg ? -x[0]
                                                  : nd.op->lane_f64(x);
      if (!is_floating(nd.out.type) && !(y > -most && y < most)) return {}; // the exact integer is needed
      r.push_back(kernel::converted(nd.out.type, y));                       // integers wrap around, and float32 rounds
    }
    if (splat) return known_elements::splat(r[0]);
    return known_elements::each(r);
  }
  constexpr known_elements converted(node const& nd, known_elements const& x) {
    dtype const from = at(operand(nd, 0)).out.type;
    auto const one = [&](double v) { return kernel::converted(nd.out.type, v, from); };
    auto const tiny = [](double v) { return v > -most && v < most; };
    if (x.is == known_elements::form::splat) {
      if (!tiny(x.value)) return {};
      return known_elements::splat(one(x.value));
    }
    list<double> r;
    for (double const v : x.of) {
      if (!tiny(v)) return {};
      r.push_back(one(v));
    }
    return known_elements::each(r);
  }
  constexpr known_elements moved(node const& nd, operator_class k, known_elements const* const* in) {
    known_elements const& x = *in[0];
    dims const& sizes = at(operand(nd, 0)).out.sizes;
    index_t const all = numel(nd.out.sizes);
    if (view_map const v = view_of(nd, k, sizes); v.is) {
      if (x.is == known_elements::form::splat || keeps_order(nd, k)) return x;
      list<double> r;
      for_each_position(nd.out.sizes, v.strides, v.offset, [&](index_t, index_t p) { r.push_back(x[p]); });
      return known_elements::each(r);
    }
    list<double> r(static_cast<std::size_t>(all), 0.0);
    if (k == operator_class::one_hot) {
      index_t const classes = nd.out.sizes.back();
      for (index_t e = 0; classes > 0 && e < all / classes; ++e)
        if (x[e] >= 0 && x[e] < static_cast<double>(classes)) r[e * classes + static_cast<index_t>(x[e])] = 1;
      return known_elements::each(r);
    }
    if (k == operator_class::slice_backward) {
      view_map const v = place_of_slice(nd);
      for_each_position(sizes, v.strides, v.offset, [&](index_t e, index_t p) { r[p] = x[e]; });
      return known_elements::each(r);
    }
    if (k == operator_class::gather) return gathered(nd, x, *in[1], sizes);
    if (k == operator_class::cat) {
      dims const strides = contiguous_strides(nd.out.sizes);
      int const axis = static_cast<int>(nd.at[0][0].number());
      for_each_position(sizes, strides, 0, [&](index_t e, index_t p) { r[p] = x[e]; });
      for_each_position(at(operand(nd, 1)).out.sizes, strides, sizes[axis].number() * strides[axis].number(),
                        [&](index_t e, index_t p) { r[p] = (*in[1])[e]; });
      return known_elements::each(r);
    }
    return {};
  }
  static constexpr known_elements gathered(node const& nd, known_elements const& x, known_elements const& index,
                                           dims const& sizes) {
    int const axis = static_cast<int>(nd.at[0][0].number());
    dims const own = contiguous_strides(sizes);
    double const length = static_cast<double>(sizes[axis].number());
    list<double> r;
    bool inside = true;
    for_each_position(nd.out.sizes, without_stride(own, axis), 0, [&](index_t e, index_t p) {
      inside = inside && index[e] >= 0 && index[e] < length;
      if (inside) r.push_back(x[p + static_cast<index_t>(index[e]) * own[axis].number()]);
    });
    if (!inside) return {};
    return known_elements::each(r);
  }
};

} // namespace varve::detail
