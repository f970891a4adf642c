// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/value/array.hpp>
#include <varve/value/memory_view.hpp>
#include <varve/value/tensor.hpp>

namespace varve {

/// A view of row-major memory with an element type and shape known to the compiler: the door through which run-time
/// memory (a `tensor`, a buffer, a span, an mdspan, a matrix of Eigen) enters compile-time programs. It owns nothing.
/// Operators read it as an `array`; fused functions read and write the memory itself. `tensor_ref(m)` of an mdspan or a
/// matrix takes its element type and extents from it: those that the compiler knows, `dyn` for the others.
template <class T, index_t... D>
class tensor_ref {
public:
  using element = std::remove_const_t<T>;
  using array_type = array<element, D...>;

  /// Views memory of at least `numel` elements.
  constexpr explicit tensor_ref(T* data) : data_(data) {}
  /// Views anything with `data()` and `size()`, whose size must be right: `shape_error`.
  template <class R>
    requires(!viewable<R> &&
             requires(R& r) {
               { r.data() } -> std::convertible_to<T*>;
               r.size();
             })
  constexpr explicit tensor_ref(R& range) : data_(range.data()) {
    static_assert(!detail::has_strides<R>, "varve: tensor_ref: what has strides is not taken for row-major memory; "
                                           "pass its pointer, with sizes and strides where extents are dyn");
    if (static_cast<index_t>(range.size()) != array_type::count)
      refuse::shapes_do_not_match("tensor_ref", dims{static_cast<index_t>(range.size())}, ints<D...>::to_dims());
  }
  /// Views an mdspan, or a matrix or array of Eigen (`memory_view.hpp`), of these extents: the compiler compares those
  /// that it knows, the others are compared now (`shape_error`). The elements must lie in row-major order
  /// (`value_error`; a matrix that the compiler knows to be column-major is refused by it). A vector may stand for any
  /// shape of as many elements.
  template <class M>
    requires viewable_as<M, T>
  constexpr explicit tensor_ref(M&& view) : data_(detail::row_major_data<D...>(view)) {}
  /// Views a tensor of this dtype and shape (`dtype_error`, `shape_error`), whose elements lie in row-major order
  /// (`value_error` otherwise). The tensor must outlive the view.
  explicit tensor_ref(tensor const& t) : data_(t.data<element>()) {
    if (!(t.sizes() == ints<D...>::to_dims()))
      refuse::shapes_do_not_match("tensor_ref", t.sizes(), ints<D...>::to_dims());
    if (!t.is_contiguous())
      refuse::argument_is_invalid("tensor_ref", "the tensor is not contiguous; pass contiguous(t)");
  }

  constexpr T* data() const { return data_; }
  static constexpr index_t size() { return array_type::count; }
  constexpr T& operator[](index_t i) const { return data_[i]; }
  /// A copy of the elements.
  constexpr array_type load() const {
    array_type r{};
    for (index_t k = 0; k < size(); ++k) r.data[k] = data_[k];
    return r;
  }

private:
  T* data_;
};

/// ... of which some extents are known at run time only: `tensor_ref<float const, dyn, 3>`. Operators take it as a
/// `tensor` on that memory, without a copy; strides are kept.
template <class T, index_t... D>
  requires((D == dyn) || ...)
class tensor_ref<T, D...> {
public:
  using element = std::remove_const_t<T>;
  using tensor_type = tensor;

  /// Views row-major memory of these sizes; `shape_error` where they differ from the extents.
  tensor_ref(T* data, dims const& sizes) : tensor_ref(data, sizes, contiguous_strides(sizes)) {}
  tensor_ref(T* data, dims const& sizes, dims const& strides) : data_(data), sizes_(sizes), strides_(strides) {
    dims const extents{D...};
    bool fits = sizes.n == extents.n && strides.n == extents.n;
    for (int k = 0; fits && k < extents.n; ++k) fits = extents[k] == dyn ? sizes[k] >= 0 : extents[k] == sizes[k];
    if (!fits) refuse::shapes_do_not_match("tensor_ref", sizes, extents);
  }
  /// Views anything with `data()` and `size()` as a vector.
  template <class R>
    requires(sizeof...(D) == 1 && !viewable<R> &&
             requires(R& r) {
               { r.data() } -> std::convertible_to<T*>;
               r.size();
             })
  explicit tensor_ref(R& range) : tensor_ref(range.data(), dims{static_cast<index_t>(range.size())}) {
    static_assert(
        !detail::has_strides<R>,
        "varve: tensor_ref: what has strides is not taken for row-major memory; pass its pointer, sizes and strides");
  }
  /// Views an mdspan, or a matrix or array of Eigen, in whatever order its elements lie; matrices with two extents,
  /// vectors with one or two. Other extents are refused by the compiler or are `shape_error`, negative strides are
  /// `value_error`.
  template <class M>
    requires viewable_as<M, T>
  explicit tensor_ref(M&& view) : tensor_ref(detail::strided_view<D...>(view)) {}
  /// Views a tensor of this dtype (`dtype_error`), in whatever order its elements lie. The tensor must outlive the
  /// view.
  explicit tensor_ref(tensor const& t) : tensor_ref(t.data<element>(), t.sizes(), t.strides()) {}

  T* data() const { return data_; }
  index_t size() const { return numel(sizes_); }
  dims const& sizes() const { return sizes_; }
  dims const& strides() const { return strides_; }
  /// A tensor on the memory.
  tensor view() const {
    return tensor::from_blob(const_cast<element*>(data_), sizes_, strides_, dtype_of_type<element>());
  }

private:
  template <class E>
  explicit tensor_ref(strided<E> const& s) : tensor_ref(s.data, s.sizes, s.strides) {}
  T* data_;
  dims sizes_, strides_;
};

namespace detail {
/// How many elements the type of a range says that it has; `dyn` where it does not.
template <class R>
inline constexpr index_t extent_of_range = dyn;
template <class R>
  requires requires { typename std::array<char, std::tuple_size<R>::value>; }
inline constexpr index_t extent_of_range<R> = static_cast<index_t>(std::tuple_size<R>::value);
template <class R>
  requires requires { typename std::array<char, R::extent + 1>; }
inline constexpr index_t extent_of_range<R> = static_cast<index_t>(R::extent);
} // namespace detail
/// `tensor_ref(v)` of a vector, array or span: of as many elements as its type says, else `dyn`.
template <class R>
  requires(!viewable<R> &&
           requires(R& r) {
             *r.data();
             r.size();
           })
tensor_ref(R& range)
    -> tensor_ref<std::remove_pointer_t<decltype(range.data())>, detail::extent_of_range<std::remove_const_t<R>>>;
template <detail::view_of_rank<0> M>
tensor_ref(M&&) -> tensor_ref<detail::element_of_view<M>>;
template <detail::view_of_rank<1> M>
tensor_ref(M&&) -> tensor_ref<detail::element_of_view<M>, detail::extent_of_view<M, 0>>;
template <detail::view_of_rank<2> M>
tensor_ref(M&&) -> tensor_ref<detail::element_of_view<M>, detail::extent_of_view<M, 0>, detail::extent_of_view<M, 1>>;
template <detail::view_of_rank<3> M>
tensor_ref(M&&) -> tensor_ref<detail::element_of_view<M>, detail::extent_of_view<M, 0>, detail::extent_of_view<M, 1>,
                              detail::extent_of_view<M, 2>>;
template <detail::view_of_rank<4> M>
tensor_ref(M&&) -> tensor_ref<detail::element_of_view<M>, detail::extent_of_view<M, 0>, detail::extent_of_view<M, 1>,
                              detail::extent_of_view<M, 2>, detail::extent_of_view<M, 3>>;

template <class T, index_t... D>
  requires((D == dyn) || ...)
struct traits<tensor_ref<T, D...>> {
  using base = tensor;
  static constexpr int level = 0;
  static dims shape(tensor_ref<T, D...> const& x) { return x.sizes(); }
  static dims type(tensor_ref<T, D...> const&) {
    return dims{static_cast<index_t>(dtype_of_type<std::remove_const_t<T>>())};
  }
};
template <class T, index_t... D>
struct traits<tensor_ref<T, D...>> {
  using base = array<std::remove_const_t<T>, D...>;
  static constexpr int level = 0;
  static constexpr ints<D...> shape(tensor_ref<T, D...> const&) { return {}; }
  static constexpr auto type(tensor_ref<T, D...> const&) {
    return ints<static_cast<index_t>(dtype_of_type<std::remove_const_t<T>>())>{};
  }
};

/// First element of the memory behind a view.
template <class T, index_t... D>
  requires((D != dyn) && ...)
constexpr T* data_of(tensor_ref<T, D...> const& x) {
  return x.data();
}

} // namespace varve
