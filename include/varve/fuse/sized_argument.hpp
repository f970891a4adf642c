// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/fuse/tensors.hpp>

/// @file
/// Arguments of fused functions with symbolic sizes. They bind the symbols and are checked against them.
namespace varve::fusion {

/// The sizes of the symbols in one call. The first argument that has a symbol defines its size.
template <class Names>
struct bound_symbols {
  static constexpr Names names{};
  index_t value[Names::most]{};
  int from[Names::most];

  bound_symbols() {
    for (int& f : from) f = -1;
  }
  /// Binds symbols that are not bound yet. Returns false if the sizes do not fit `Declared::expected`.
  template <class Declared>
  VARVE_INLINE bool fit([[maybe_unused]] int argument, dims const& found) {
    if (Declared::expected.sizes.n != found.n) return false;
    return [&]<int... D>(std::integer_sequence<int, D...>) {
      return (fit_one<Declared::expected.sizes.v[D].number()>(argument, found[D]) && ...);
    }(std::make_integer_sequence<int, Declared::expected.sizes.n>{});
  }
  /// Returns the text of what other arguments define for the symbols of these sizes, as in ", where n is 7 (argument
  /// 0)".
  VARVE_COLD std::string text(int argument, dims const& declared) const {
    std::string s;
    for (extent d : declared)
      if (int const k = is_symbol(d) ? names.find(d.number()) : names.count;
          k < names.count && from[k] >= 0 && from[k] != argument)
        s += (s.empty() ? ", where " : ", ") + text_of_size(d) + " is " + std::to_string(value[k]) + " (argument " +
             std::to_string(from[k]) + ")";
    return s;
  }

private:
  template <index_t Want>
  VARVE_INLINE bool fit_one([[maybe_unused]] int argument, index_t found) {
    if constexpr (is_symbol(Want)) {
      constexpr int k = names.find(Want);
      if (from[k] < 0) value[k] = found, from[k] = argument;
      return value[k] == found;
    } else return Want == found;
  }
};

/// True if an extent of a view or `array` is allowed where a spec has `declared`.
constexpr bool may_be(extent declared, index_t size) { return is_symbol(declared) || size == declared || size == dyn; }

/// The element type and extents of memory that is not a tensor; `none_t` for other types.
template <class X>
struct extents_of {
  using element = none_t;
  static constexpr dims value{};
};
template <class T, index_t... D>
struct extents_of<array<T, D...>> {
  using element = T;
  static constexpr dims value = ints<D...>::to_dims();
};
template <class T, index_t... D>
struct extents_of<tensor_ref<T, D...>> {
  using element = std::remove_const_t<T>;
  static constexpr dims value = ints<D...>::to_dims();
};

/// The `K`-th argument, checked against its spec `S`, whose symbols it binds.
template <class Names, class S, int K>
struct sized_argument {
  using element = typename declared_type<S>::element;
  static constexpr meta expected = S::info();
  static constexpr tensor_role role{"argument", K, expected};

  sized_argument(bound_symbols<Names>& symbols, tensor const& given)
      : sizes_(given.defined() ? given.sizes() : dims{}) {
    tensor const& t = plain_tensor(given);
    bool const fits = symbols.template fit<sized_argument>(K, sizes_);
    // the role with the actual sizes, which `fit` has checked
    tensor_role const here{role.kind, K, {expected.type, sizes_}};
    if (!t.defined() || !fits || t.dtype() != expected.type) [[unlikely]]
      refuse_tensor(role, t, dims{-1}, symbols.text(K, expected.sizes));
    check_tensor(here, t);
    view(static_cast<element const*>(t.raw()), t.strides(), t.is_contiguous());
  }
  template <class X>
    requires(!std::is_same_v<X, tensor>)
  sized_argument(bound_symbols<Names>& symbols, X const& x) {
    constexpr bool number = std::is_arithmetic_v<X> && expected.sizes.n == 0;
    constexpr bool fits = number || accepts<X>();
    static_assert(
        fits,
        "varve: fuse: an argument is neither a tensor nor a static value of the element type and shape of its spec");
    if constexpr (number) {
      number_ = static_cast<element>(x);
    } else if constexpr (fits) {
      if constexpr (can_fuse<X>) sizes_ = extents_of<X>::value;
      else sizes_ = x.sizes();
      if (!symbols.template fit<sized_argument>(K, sizes_)) [[unlikely]]
        refuse_sizes(symbols.text(K, expected.sizes));
      if constexpr (can_fuse<X>) memory_ = data_of(x);
      else view(static_cast<element const*>(x.data()), x.strides(), layout{sizes_, x.strides(), 0, true}.contiguous());
    }
  }
  void const* data() const { return memory_ ? memory_ : &number_; }
  memory_range range() const { return range_of(data(), {expected.type, sizes_}); }

private:
  template <class X>
  static constexpr bool accepts() {
    using E = extents_of<X>;
    bool fits = std::is_same_v<typename E::element, element> && E::value.n == expected.sizes.n;
    for (int d = 0; fits && d < E::value.n; ++d) fits = may_be(expected.sizes[d], E::value[d]);
    return fits;
  }
  void view(element const* data, dims const& strides, bool contiguous) {
    if (!contiguous) [[unlikely]]
      copy_ = in_row_major_order(data, sizes_, strides);
    memory_ = copy_.defined() ? copy_.raw() : data;
  }
  [[noreturn]] VARVE_COLD void refuse_sizes(std::string const& why) const {
    refuse::with<shape_error>(
        (text_of(role) + "is " + text_of(meta{expected.type, sizes_}) + ", expected " + text_of(expected) + why)
            .c_str());
  }
  dims sizes_;
  void const* memory_ = nullptr;
  element number_{};
  tensor copy_;
};

} // namespace varve::fusion
