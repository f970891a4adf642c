// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/diagonals.hpp>
#include <varve/op/matmul.hpp>
#include <varve/op/permute.hpp>

#include <string>
#include <string_view>
#include <vector>

/// @file
/// Sums of products by the names of axes.
namespace varve {

namespace detail {
/// The axes of operands and result by their letters; what `...` stands for are letters of its own, which broadcast.
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
  /// The letters of the result, and after them those that are summed over.
  std::string result, all;

private:
  static std::string hidden_letters(int n) { // counted from the last one
    std::string r;
    for (int k = n; k > 0; --k) r += static_cast<char>('0' + k);
    return r;
  }
  static void require_letter(char c) {
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '1' && c <= '9')))
      refuse::argument_is_invalid("einsum", "axes are named by letters");
  }
  /// Without an arrow: what is named once, in the order of the alphabet.
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
/// An operand whose axes are the letters of `all`, of size 1 where it has none.
template <class T>
T with_all_letters(T x, std::string letters, std::string const& all) {
  for (std::size_t k = 0; k < letters.size(); ++k) // a letter twice is the diagonal, which becomes the last axis
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
} // namespace detail

/// `einsum("ij,jk->ik", {a, b})`: the products of all operands whose axes are called by letters, summed over those that
/// the result lacks; `...` are axes that broadcast, a letter twice in one operand is its diagonal (`torch.einsum`). For
/// tensors; it multiplies from the left, and sums what no later operand has as early as may be.
template <class T = tensor>
  requires std::is_same_v<T, tensor>
T einsum(std::string_view equation, std::vector<T> const& x) {
  if (x.empty()) refuse::argument_is_invalid("einsum", "there are no operands");
  detail::axis_letters const names(equation, x);
  T y = detail::with_all_letters(x[0], names.operands[0], names.all);
  auto const sum_up = [&](std::size_t next) {
    dims gone;
    for (std::size_t k = names.result.size(); k < names.all.size(); ++k) {
      bool later = false;
      for (std::size_t o = next; o < x.size(); ++o)
        later = later || names.operands[o].find(names.all[k]) != std::string::npos;
      if (!later && !(y.sizes()[static_cast<int>(k)] == 1)) gone.push_back(static_cast<index_t>(k));
    }
    if (!gone.empty()) y = sum(y, gone, keepdim);
  };
  sum_up(1);
  for (std::size_t k = 1; k < x.size(); ++k) {
    y = mul(y, detail::with_all_letters(x[k], names.operands[k], names.all));
    sum_up(k + 1);
  }
  return reshape(y, y.sizes().sub(0, static_cast<int>(names.result.size())));
}
/// ... as it is called in PyTorch: `einsum("ij,jk->ik", a, b)`.
template <class T, std::same_as<T>... Rest>
  requires std::is_same_v<T, tensor>
T einsum(std::string_view equation, T const& first, Rest const&... rest) {
  return einsum<T>(equation, std::vector<T>{first, rest...});
}

} // namespace varve
