// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/diagonals.hpp>
#include <varve/op/matmul.hpp>
#include <varve/op/permute.hpp>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// Sums of products in Einstein notation.
namespace varve {

namespace detail {
/// The letters of the axes of operands and result. Axes that `...` stands for get digits as letters; they broadcast.
class axis_letters {
public:
  template <class T>
  axis_letters(std::string_view equation, std::vector<T> const& x) {
    std::string text;
    for (char c : equation)
      if (c != ' ') text += c;
    std::size_t const arrow = text.find("->");
    std::string const left = text.substr(0, arrow);
    for (std::size_t from = 0; from <= left.size();) {
      std::size_t const to = (std::min)(left.find(',', from), left.size());
      operands.push_back(left.substr(from, to - from));
      from = to + 1;
    }
    if (operands.size() != x.size())
      refuse::argument_is_invalid("einsum", "the equation has another number of operands");
    int widest = 0;
    for (std::size_t k = 0; k < x.size(); ++k) {
      std::size_t const dots = operands[k].find("...");
      int const named = static_cast<int>(operands[k].size()) - (dots == std::string::npos ? 0 : 3);
      int const hidden = x[k].dim() - named;
      if (hidden < 0 || (dots == std::string::npos && hidden != 0))
        refuse::argument_is_invalid("einsum", "an operand has another number of dimensions than letters");
      if (hidden > widest) widest = hidden;
      if (dots != std::string::npos) operands[k].replace(dots, 3, hidden_letters(hidden));
      for (char c : operands[k]) require_letter(c);
    }
    result = arrow == std::string::npos ? implied(widest) : text.substr(arrow + 2);
    if (std::size_t const dots = result.find("..."); dots != std::string::npos)
      result.replace(dots, 3, hidden_letters(widest));
    for (std::size_t k = 0; k < result.size(); ++k) {
      require_letter(result[k]);
      bool known = false;
      for (auto const& o : operands) known = known || o.find(result[k]) != std::string::npos;
      if (!known || result.find(result[k], k + 1) != std::string::npos)
        refuse::argument_is_invalid("einsum", "a letter of the result is unknown, or comes twice");
    }
    all = result;
    for (auto const& o : operands)
      for (char c : o)
        if (all.find(c) == std::string::npos) all += c;
    if (all.size() > static_cast<std::size_t>(max_rank))
      refuse::argument_is_invalid("einsum", "there are more than eight letters");
  }
  std::vector<std::string> operands;
  /// The letters of the result, and `all`: these followed by the letters that are summed over.
  std::string result, all;

private:
  static std::string hidden_letters(int n) { // numbered from the last one
    std::string r;
    for (int k = n; k > 0; --k) r += static_cast<char>('0' + k);
    return r;
  }
  static void require_letter(char c) {
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '1' && c <= '9')))
      refuse::argument_is_invalid("einsum", "axes are named by letters");
  }
  /// Returns the result's letters for an equation without an arrow: those that occur once, in alphabetical order.
  std::string implied(int widest) const {
    std::string r = hidden_letters(widest);
    for (char c = 'A'; c <= 'z'; ++c) {
      int n = 0;
      for (auto const& o : operands)
        for (char d : o) n += d == c;
      if (n == 1) r += c;
    }
    return r;
  }
};
/// Permutes an operand so that its axes are the letters of `all`, with size 1 for letters that it lacks.
template <class T>
T with_all_letters(T x, std::string letters, std::string const& all) {
  // a repeated letter selects the diagonal, which becomes the last axis
  for (std::size_t k = 0; k < letters.size(); ++k)
    if (std::size_t const again = letters.find(letters[k], k + 1); again != std::string::npos) {
      if (!(x.sizes()[static_cast<int>(k)] == x.sizes()[static_cast<int>(again)]))
        refuse::shapes_do_not_match("einsum", x.sizes(), x.sizes());
      x = diagonal(x, dims{0}, dims{static_cast<index_t>(k)}, dims{static_cast<index_t>(again)});
      char const c = letters[k];
      letters.erase(again, 1), letters.erase(k, 1);
      letters += c;
      k = static_cast<std::size_t>(-1);
    }
  dims order, sizes;
  for (char c : all) {
    std::size_t const at = letters.find(c);
    sizes.push_back(at == std::string::npos ? extent(1) : x.sizes()[static_cast<int>(at)]);
    if (at != std::string::npos) order.push_back(static_cast<index_t>(at));
  }
  return reshape(T(permute(x, order)), sizes);
}
/// The roles of the axes in the sum of products of two operands. Both operands have all letters, with size 1 for
/// letters that they lack.
class einsum_axes {
public:
  template <class T>
  einsum_axes(T const& x, T const& y, dims const& gone) {
    for (int k = 0; k < x.dim(); ++k) {
      bool const in_x = !(x.sizes()[k] == 1), in_y = !(y.sizes()[k] == 1);
      if (in_x && in_y && !(x.sizes()[k] == y.sizes()[k])) refuse::shapes_do_not_match("einsum", x.sizes(), y.sizes());
      bool const summed = std::find(gone.begin(), gone.end(), extent(k)) != gone.end();
      if (summed && in_x != in_y) (in_x ? of_x : of_y).push_back(k);
      std::vector<int>& part = summed ? (in_x && in_y ? inner : single) : in_x == in_y ? common : in_x ? rows : columns;
      part.push_back(k);
      size.push_back(in_x ? x.sizes()[k] : y.sizes()[k]);
    }
  }
  /// Axes that are summed over: in one operand alone (`of_x`, `of_y`), or in both (`inner`). `single` are all summed
  /// axes but `inner`; the result has size 1 there.
  dims of_x, of_y;
  std::vector<int> inner, single;
  /// Axes of the result: in the first operand alone (`rows`), in the second alone (`columns`), or the remaining ones
  /// (`common`).
  std::vector<int> common, rows, columns;
  dims size;

  extent count(std::vector<int> const& part) const {
    extent n = 1;
    for (int k : part) n = n * size[k];
    return n;
  }
  static dims order(std::initializer_list<std::vector<int> const*> parts) {
    dims r;
    for (auto const* p : parts)
      for (int k : *p) r.push_back(k);
    return r;
  }
};
/// Returns the sum of products over the axes `gone`. It uses a matrix product where the products would be larger than
/// operands and result.
template <class T>
T summed_product(T x, T y, dims const& gone) {
  einsum_axes const a(x, y, gone);
  if (!a.of_x.empty()) x = sum(x, a.of_x, keepdim);
  if (!a.of_y.empty()) y = sum(y, a.of_y, keepdim);
  dims const inner = einsum_axes::order({&a.inner});
  if (inner.empty()) return mul(x, y);
  if (a.rows.empty() || a.columns.empty() || x.dtype() != y.dtype() || !has_derivatives(x.dtype()))
    return sum(T(mul(x, y)), inner, keepdim);
  extent const n = a.count(a.common), r = a.count(a.rows), c = a.count(a.columns), m = a.count(a.inner);
  auto const shaped = [](T const& v, dims const& order, dims const& to) {
    return T(reshape(T(permute(v, order)), to));
  };
  T const left = shaped(x, a.order({&a.common, &a.rows, &a.inner, &a.columns, &a.single}), dims{n, r, m});
  T const right = shaped(y, a.order({&a.common, &a.inner, &a.columns, &a.rows, &a.single}), dims{n, m, c});
  dims const order = a.order({&a.common, &a.rows, &a.columns, &a.inner, &a.single});
  dims sizes, back = order;
  for (int k = 0; k < order.n; ++k) {
    bool const kept = k < order.n - inner.n - static_cast<int>(a.single.size());
    sizes.push_back(kept ? a.size[static_cast<int>(order[k].number())] : extent(1));
    back[static_cast<int>(order[k].number())] = k;
  }
  return permute(T(reshape(T(matmul(left, right)), sizes)), back);
}
} // namespace detail

/// `einsum("ij,jk->ik", {a, b})`: products of all operands, whose axes are named by letters, summed over the letters
/// that the result lacks (`torch.einsum`). Axes that `...` stands for broadcast. A letter twice in one operand selects
/// its diagonal. It accepts tensors only. Operands are multiplied from left to right; axes that no later operand has
/// are summed as early as possible.
template <class T = tensor>
  requires std::is_same_v<T, tensor>
T einsum(std::string_view equation, std::vector<T> const& x) {
  if (x.empty()) refuse::argument_is_invalid("einsum", "there are no operands");
  detail::axis_letters const names(equation, x);
  std::vector<tensor const*> operands;
  for (T const& v : x) operands.push_back(&v);
  if (dtype const type = detail::type_of_halves(operands.data(), static_cast<int>(x.size())); type != dtype::bool_) {
    std::vector<T> wide;
    for (T const& v : x) wide.push_back(detail::in_float(v));
    T const y = einsum(equation, wide);
    return y.dtype() == dtype::float32 ? T(to(y, type)) : y;
  }
  auto const gone_before = [&](std::size_t next) { // letters that neither the result nor later operands have
    dims gone;
    for (std::size_t k = names.result.size(); k < names.all.size(); ++k) {
      bool later = false;
      for (std::size_t o = next; o < x.size(); ++o)
        later = later || names.operands[o].find(names.all[k]) != std::string::npos;
      if (!later) gone.push_back(static_cast<index_t>(k));
    }
    return gone;
  };
  T y = detail::with_all_letters(x[0], names.operands[0], names.all);
  dims first;
  for (extent const k : gone_before(1))
    if (x.size() == 1 || !(y.sizes()[static_cast<int>(k.number())] == 1)) first.push_back(k);
  if (!first.empty()) y = sum(y, first, keepdim);
  for (std::size_t k = 1; k < x.size(); ++k)
    y = detail::summed_product(y, detail::with_all_letters(x[k], names.operands[k], names.all), gone_before(k + 1));
  return reshape(y, y.sizes().sub(0, static_cast<int>(names.result.size())));
}
/// `einsum` with separate operands, as in PyTorch: `einsum("ij,jk->ik", a, b)`.
template <class T, std::same_as<T>... Rest>
  requires std::is_same_v<T, tensor>
T einsum(std::string_view equation, T const& first, Rest const&... rest) {
  return einsum<T>(equation, std::vector<T>{first, rest...});
}

} // namespace varve
