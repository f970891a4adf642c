// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/sparse/index_sets.hpp>
#include <varve/sparse/known_elements.hpp>

/// @file
/// Sets of indices through single operators: sums, products, gathers, convolutions.
namespace varve::detail {

/// For each element of a value the number of its set; null for a value that does not depend on the input.
using element_sets = list<int>;

/// Elements of sets that go to elements of a result, several to one.
class set_sums {
public:
  constexpr explicit set_sums(index_t n) : count_(static_cast<std::size_t>(n) + 1, 0) {}
  constexpr void add(index_t to, int set) {
    if (set == index_sets::empty) return;
    to_.push_back(static_cast<int>(to)), set_.push_back(set), ++count_[to + 1];
  }
  constexpr element_sets finish(index_sets& sets) {
    index_t const n = static_cast<index_t>(count_.size()) - 1;
    for (index_t k = 0; k < n; ++k) count_[k + 1] += count_[k];
    list<int> next = count_, sorted(set_.size(), 0);
    for (std::size_t e = 0; e < set_.size(); ++e)
      sorted[next[to_[static_cast<std::ptrdiff_t>(e)]]++] = set_[static_cast<std::ptrdiff_t>(e)];
    element_sets r(static_cast<std::size_t>(n), 0);
    for (index_t k = 0; k < n; ++k) r[k] = sets.unite(sorted.data() + count_[k], sorted.data() + count_[k + 1]);
    return r;
  }

private:
  list<int> to_{}, set_{}, count_;
};

/// The rules of single operators. Operands are pointers to their sets, null for those without.
struct set_rules {
  index_sets& sets;

  static constexpr element_sets all_of(index_t n, int set) { return element_sets(static_cast<std::size_t>(n), set); }
  constexpr int everything(element_sets const& x) { return sets.unite(x.data(), x.data() + x.size()); }
  constexpr void unite_into(element_sets& r, element_sets const& x) {
    if (r.empty()) r = x;
    else
      for (std::size_t k = 0; k < r.size(); ++k)
        r[static_cast<std::ptrdiff_t>(k)] =
            sets.unite(r[static_cast<std::ptrdiff_t>(k)], x[static_cast<std::ptrdiff_t>(k)]);
  }
  /// Reads sets at the positions of a view.
  static constexpr element_sets read(element_sets const& x, dims const& sizes, dims const& strides, index_t offset) {
    element_sets r;
    r.reserve(static_cast<std::size_t>(numel(sizes).number()));
    for_each_position(sizes, strides, offset, [&](index_t, index_t p) { r.push_back(x[p]); });
    return r;
  }
  static constexpr element_sets broadcast(element_sets const& x, dims const& from, dims const& to) {
    if (known_equal(from, to)) return x;
    return read(x, to, broadcast_strides(from, to), 0);
  }
  /// Unites the sets along the axes of a mask. The result has size 1 there.
  constexpr element_sets reduced(element_sets const& x, dims const& sizes, unsigned axes) {
    dims kept = sizes;
    for (int d = 0; d < sizes.n; ++d)
      if (axes >> d & 1u) kept[d] = 1;
    set_sums r(numel(kept));
    for_each_position(sizes, broadcast_strides(kept, sizes), 0, [&](index_t k, index_t p) { r.add(p, x[k]); });
    return r.finish(sets);
  }
  /// Unites the sets along axes, and returns for each element of a shape the union that it belongs to.
  constexpr element_sets spread(element_sets const& x, dims const& sizes, unsigned axes, dims const& to) {
    dims kept = sizes;
    for (int d = 0; d < sizes.n; ++d)
      if (axes >> d & 1u) kept[d] = 1;
    element_sets const lines = reduced(x, sizes, axes);
    return broadcast(lines, kept, to);
  }
  /// For each element, unites the sets of the elements before it along an axis and its own.
  constexpr element_sets running(element_sets const& of, dims const& sizes, int axis, bool reverse) {
    element_sets x = of;
    index_t const step = contiguous_strides(sizes)[axis].number(), n = sizes[axis].number();
    dims first = sizes;
    first[axis] = 1;
    for_each_position(first, contiguous_strides(sizes), 0, [&](index_t, index_t p) {
      for (index_t k = 1; k < n; ++k) {
        index_t const at = p + (reverse ? n - 1 - k : k) * step, before = at + (reverse ? step : -step);
        x[at] = sets.unite(x[at], x[before]);
      }
    });
    return x;
  }

  /// `gather`: where the index is known, the elements that it names; else all along the axis.
  constexpr element_sets gathered(element_sets const& x, dims const& sizes, int axis, dims const& out,
                                  known_elements const& index) {
    dims const own = contiguous_strides(sizes);
    if (index && are_inside(index, numel(out), sizes[axis])) {
      element_sets r;
      for_each_position(out, without_stride(own, axis), 0, [&](index_t k, index_t p) {
        r.push_back(x[p + static_cast<index_t>(index[k]) * own[axis].number()]);
      });
      return r;
    }
    dims kept = sizes;
    kept[axis] = 1;
    element_sets const lines = reduced(x, sizes, 1u << axis);
    return read(lines, out, without_stride(contiguous_strides(kept), axis), 0);
  }
  /// `scatter_add` and its like: the source is read at the indices of the index.
  constexpr element_sets scattered(element_sets const* x, element_sets const* source, dims const& sizes,
                                   dims const& from, int axis, dims const& at, known_elements const& index) {
    index_t const all = numel(sizes);
    set_sums r(all);
    for (index_t k = 0; x && k < all; ++k) r.add(k, (*x)[k]);
    dims const own = contiguous_strides(sizes), flat = without_stride(own, axis);
    if (source) {
      element_sets const part = read(*source, at, contiguous_strides(from), 0);
      bool const known = index && are_inside(index, numel(at), sizes[axis]);
      if (known)
        for_each_position(at, flat, 0, [&](index_t k, index_t p) {
          r.add(p + static_cast<index_t>(index[k]) * own[axis].number(), part[k]);
        });
      else {
        dims kept = at;
        kept[axis] = 1;
        element_sets const line = reduced(part, at, 1u << axis);
        for_each_position(kept, flat, 0, [&](index_t k, index_t p) {
          for (index_t i = 0; i < sizes[axis].number(); ++i) r.add(p + i * own[axis].number(), line[k]);
        });
      }
    }
    return r.finish(sets);
  }
  static constexpr bool are_inside(known_elements const& index, index_t count, extent size) {
    bool inside = true;
    for (index_t k = 0; inside && k < count; ++k)
      inside = index[k] >= 0 && index[k] < static_cast<double>(size.number());
    return inside;
  }

  /// One operand of a matrix product, as matrices [.., m, k] with strides.
  struct matrices {
    element_sets const* sets;
    known_elements const* known;
    dims sizes;
    bool transposed;
  };
  /// `mm`: an entry depends on a row and a column. Where one matrix is known, its zeros count.
  constexpr element_sets product(matrices const& a, matrices const& b, dims const& out) {
    int const r = out.n;
    index_t const m = out[r - 2].number(), n = out[r - 1].number(), both = numel(out).number();
    index_t const batches = m * n > 0 ? both / (m * n) : 0, inner = a.sizes[r - (a.transposed ? 2 : 1)].number();
    set_sums result(both);
    auto const at_a = [&](index_t i, index_t x, index_t z) {
      return i * m * inner + (a.transposed ? z * m + x : x * inner + z);
    };
    auto const at_b = [&](index_t i, index_t z, index_t y) {
      return i * n * inner + (b.transposed ? y * inner + z : z * n + y);
    };
    auto const by = [&](matrices const& of, matrices const& beside, auto const& at, auto const& at_beside, index_t rows,
                        index_t columns, auto const& to) {
      if (!of.sets) return;
      bool const zeros = beside.known && *beside.known;
      element_sets line;
      for (index_t i = 0; i < batches; ++i)
        for (index_t x = 0; x < rows; ++x) {
          line.clear();
          for (index_t z = 0; z < inner; ++z) line.push_back((*of.sets)[at(i, x, z)]);
          int const whole = zeros ? 0 : everything(line);
          for (index_t y = 0; y < columns; ++y) {
            if (!zeros) result.add(to(i, x, y), whole);
            else
              for (index_t z = 0; z < inner; ++z)
                if ((*beside.known)[at_beside(i, z, y)] != 0) result.add(to(i, x, y), line[z]);
          }
        }
    };
    by(a, b, at_a, at_b, m, n, [&](index_t i, index_t x, index_t y) { return (i * m + x) * n + y; });
    by(
        b, a, [&](index_t i, index_t y, index_t z) { return at_b(i, z, y); },
        [&](index_t i, index_t z, index_t x) { return at_a(i, x, z); }, n, m,
        [&](index_t i, index_t y, index_t x) { return (i * m + x) * n + y; });
    return result.finish(sets);
  }

  /// `convolution`, transposed or not: an element depends on the window that it sees, in its group of channels.
  constexpr element_sets convolution(element_sets const* x, element_sets const* w, dims const& in, dims const& weight,
                                     dims const& out, attributes const& at) {
    int const n = in.n - 2;
    bool const turned = at[2][n].number() != 0;
    index_t const groups = at[2][n + 1].number(), samples = in[0].number(), channels = in[1].number() / groups,
                  kinds = out[1].number() / groups;
    dims taps = weight.sub(2, weight.n), field = in.sub(2, in.n), places = out.sub(2, out.n);
    index_t const tap_count = numel(taps), field_count = numel(field), place_count = numel(places);
    element_sets by_group, by_kind; // the sets of inputs without their channels; of weights without input channels
    if (x) {
      set_sums r(samples * groups * field_count);
      for (index_t k = 0; k < static_cast<index_t>(x->size()); ++k)
        r.add((k / field_count / channels) * field_count + k % field_count, (*x)[k]);
      element_sets made = r.finish(sets);
      by_group.swap(made);
    }
    if (w) {
      set_sums r(groups * kinds * tap_count);
      for (index_t k = 0; k < static_cast<index_t>(w->size()); ++k) {
        index_t const first = k / tap_count / weight[1].number(), second = k / tap_count % weight[1].number();
        r.add((turned ? first / channels * kinds + second : first) * tap_count + k % tap_count, (*w)[k]);
      }
      element_sets made = r.finish(sets);
      by_kind.swap(made);
    }
    set_sums r(samples * groups * kinds * place_count);
    dims const tap_strides = contiguous_strides(taps);
    for_each_position(turned ? field : places, contiguous_strides(turned ? field : places), 0, [&](index_t, index_t p) {
      for_each_position(taps, tap_strides, 0, [&](index_t, index_t t) {
        index_t const q = other_end(p, t, turned ? field : places, turned ? places : field, taps, at);
        if (q < 0) return;
        index_t const place = turned ? q : p, from = turned ? p : q;
        for (index_t s = 0; s < samples; ++s)
          for (index_t c = 0; c < groups * kinds; ++c) {
            index_t const to = (s * groups * kinds + c) * place_count + place;
            if (x) r.add(to, by_group[(s * groups + c / kinds) * field_count + from]);
            if (w) r.add(to, by_kind[c * tap_count + t]);
          }
      });
    });
    return r.finish(sets);
  }
  /// Returns the place that a tap connects with place `p`, as a position, or -1 if it lies outside.
  static constexpr index_t other_end(index_t p, index_t t, dims const& from, dims const& to, dims const& taps,
                                     attributes const& at) {
    index_t r = 0, step = 1;
    for (int d = to.n - 1; d >= 0; --d) {
      index_t const i =
          p % from[d].number() * at[0][d].number() - at[1][d].number() + t % taps[d].number() * at[2][d].number();
      p /= from[d].number(), t /= taps[d].number();
      if (i < 0 || i >= to[d].number()) return -1;
      r += i * step, step *= to[d].number();
    }
    return r;
  }
};

} // namespace varve::detail
